"""From a file to a model that knows its columns, row by row: what the command ``stream`` does, for Python."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from typing import Any

from toprank.files.errors import TableError, no_rows
from toprank.files.model import TableModel
from toprank.files.open import open_rows
from toprank.files.rows import BadLine, Batch, RowSource, batches, stop_at
from toprank.files.summary import summary_of
from toprank.streams.checkpoint import content_of
from toprank.streams.learner import Learner, forget_columns
from toprank.streams.run import StreamResult, checked_settings, stream_from


def stream_table(
    path: str,
    online: Any,
    *,
    target: str | None = None,
    positive: str | None = None,
    id_column: str | None = None,
    ignore: Collection[str] = (),
    start: TableModel | None = None,
    scale_rows: int = 10_000,
    fill_missing: float | None = None,
    on_bad_line: str = "stop",
    batch: int = 1000,
    window: int = 10_000,
    max_fpr: float = 0.01,
    checkpoint: str | None = None,
    every: int = 100_000,
    resume: bool = True,
    grows: bool | None = None,
    random_state: int = 0,
    format: str | None = None,
    delimiter: str | None = None,
    zero_based: bool = False,
    n_features: int | None = None,
    verbose: int = 0,
) -> tuple[TableModel, StreamResult]:
    r"""Learn from a file as `toprank.stream` does, with a scaler before the model; the command ``toprank stream``.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input.
    online : estimator
        A new model of `toprank.online`; it is not used with `start`.
    target, positive, id_column, ignore
        As in `toprank.files.fit_file`; all other columns are numbers.
    start : TableModel, optional
        A model of an earlier stream that goes on learning.
    scale_rows : int, default=10_000
        So many first rows fit the scaler; 0 for none. svmlight rows are not scaled.
    fill_missing, on_bad_line, batch, window, max_fpr, checkpoint, every, resume, grows
        As in `toprank.stream`.
    random_state : int, default=0
        Of the model, if it has one.
    format, delimiter, zero_based, n_features, verbose
        As in `toprank.stream`.

    Returns
    -------
    model : TableModel
        It scores tables with the same columns; save it by `toprank.save`.
    result : StreamResult
        Of `toprank.stream`.

    Examples
    --------
    >>> import os, tempfile
    >>> from toprank import CBR
    >>> from toprank.streams import stream_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clicks.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("x,y\n" + "1.5,1\n0.5,0\n" * 50)
    ...     model, result = stream_table(path, CBR(), target="y")
    >>> model.columns, result.n_rows
    ({'x': 'number'}, 100)
    """
    measuring = checked_settings(path, checkpoint, every, on_bad_line, batch, window, max_fpr)
    earlier = content_of(checkpoint) if checkpoint is not None and resume and os.path.exists(checkpoint) else None
    if n_features is None and earlier is not None and earlier["settings"]["features"] is None:
        n_features = earlier["settings"]["n_features"]
    if n_features is None and start is not None:
        n_features = Learner(start.estimator_).n_features
    label = None if positive is None else _number_or_text(positive)
    reading: dict[str, Any] = {"target": target, "positive": label}
    reading |= {"zero_based": zero_based, "fill_missing": fill_missing}
    # labels of columns are compared as text, digit by digit; a checkpoint knows them as numbers
    wanted = reading | {"positive": label if target is None else positive}
    left_out = [name for name in (id_column, *ignore) if name is not None]
    source = open_rows(
        path,
        features=None,
        format=format,
        delimiter=delimiter,
        n_features=n_features,
        ignore=left_out,
        grows=checkpoint is not None if grows is None else grows,
        **wanted,
    )
    skips = on_bad_line == "skip"
    first = _going_on(start, source) or _new(online, random_state, source, scale_rows, fill_missing, skips, earlier)
    result = stream_from(source, first, reading | measuring, checkpoint, every, resume, (), verbose, earlier)
    _require_rows(path, result.n_rows, result.bad_lines)
    forget_columns(result.model)  # the table knows them, and gives arrays
    columns = None if source.feature_names is None else dict.fromkeys(source.feature_names, "number")
    known: dict[str, Any] = {"target": target, "positive": positive, "id_column": id_column}
    model = TableModel(result.model, columns, as_array=True, zero_based=zero_based, **known).keep_fitted(result.model)
    counts = {
        "rows": result.n_rows,
        "positives": result.n_positives,
        "learned_from": result.n_rows,
        "holdout": 0.0,
        "seed": random_state,
    }
    model.summary_ = summary_of(model, type(Learner(result.model).last).__name__, path, counts)
    return model, result


def _number_or_text(label: str) -> float | str:
    try:
        number = float(label)
    except ValueError:
        return label
    return number if math.isfinite(number) else label


def _going_on(start: TableModel | None, source: RowSource) -> Any:
    """The estimator of an earlier stream, None if there is none."""
    if start is None:
        return None
    if (None if start.columns is None else list(start.columns)) != source.feature_names:
        raise TableError(
            f"the columns of the model to start with are others than those of {source.path!r}; give a file with the "
            "same columns"
        )
    return start.estimator_


def _new(
    online: Any,
    seed: int,
    source: RowSource,
    scale_rows: int,
    fill_missing: float | None,
    skips: bool,
    earlier: dict[str, Any] | None,
) -> Any:
    """A new model after a filler of gaps and a scaler; the scaler of a checkpoint stays, though there may be more rows.

    What fills gaps is for rows to score, as the reader does it in rows to learn from.
    """
    import numpy as np
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline

    if "random_state" in online.get_params():
        online.set_params(random_state=seed)
    steps = [("rank", online)]
    if source.feature_names is not None and scale_rows > 0:
        steps.insert(0, ("scale", _scaler_of(earlier, scale_rows) or _scaler(source, scale_rows, skips)))
    if source.feature_names is not None and fill_missing is not None:
        filler = SimpleImputer(strategy="constant", fill_value=float(fill_missing), keep_empty_features=True)
        steps.insert(0, ("fill", filler.fit(np.zeros((1, source.n_features)))))
    return Pipeline(steps)


def _scaler_of(earlier: dict[str, Any] | None, scale_rows: int) -> Any:
    """The scaler of a checkpoint, None if it has none that was fitted to up to so many rows."""
    from sklearn.preprocessing import StandardScaler

    scaler = None if earlier is None else getattr(earlier["model"], "named_steps", {}).get("scale")
    return scaler if isinstance(scaler, StandardScaler) and int(scaler.n_samples_seen_) <= scale_rows else None


def _scaler(source: RowSource, scale_rows: int, skips: bool) -> Any:
    from sklearn.preprocessing import StandardScaler

    first = next(batches(source.peek(stops=not skips), scale_rows), Batch(None, [], 0, source.start()))
    if first.bad and not skips:
        raise stop_at(first.bad[0], source)
    _require_rows(source.path, 0 if first.rows is None else len(first.rows), first.bad)
    assert first.rows is not None
    return StandardScaler().fit(first.rows.X)


def _require_rows(path: str, n_rows: int, bad: list[BadLine]) -> None:
    """Refuse a file without rows, from which nothing can be learned."""
    if n_rows == 0 and bad:
        text = "{path!r} has no rows but bad lines, the first: line {line}, {reason}"
        raise TableError.saying(text, path=path, line=bad[0].line, reason=bad[0].reason)
    if n_rows == 0:
        raise no_rows(path)
