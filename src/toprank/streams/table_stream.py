"""From a file to a model that knows its columns, row by row: what the command ``stream`` does, for Python."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toprank.checks import require_count
from toprank.files.errors import TableError, no_rows
from toprank.files.found_in_rows import FoundInStream
from toprank.files.model import TableModel
from toprank.files.open import is_svmlight, open_rows
from toprank.files.rows import BadLine, Batch, Rows, RowSource, batches, stop_at
from toprank.files.spelling import Spelling
from toprank.files.summary import summary_of
from toprank.files.watching import Warner, Watcher
from toprank.inspection import scorer_of
from toprank.streams.checkpoint import content_of
from toprank.streams.learner import Learner, forget_columns
from toprank.streams.preparation import Asked, model_by_first_rows, model_of_checkpoint, model_that_goes_on
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
    types: Mapping[str, str] | None = None,
    first_rows: int = 10_000,
    scale: bool = True,
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
    missing: Collection[str] = (),
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    watcher: Watcher | None = None,
    verbose: int = 0,
) -> tuple[TableModel, StreamResult]:
    r"""Learn from a file as `toprank.stream` does, from columns of any kind; the command ``toprank stream``.

    Columns are used as in `toprank.files.fit_file`: numbers are scaled, their gaps filled by the median and marked,
    text becomes columns of 0 and 1. What a column holds, its median, its scale and its categories are found in the
    first rows and stay. A value of a column of numbers that is none counts as missing, and a category that is not in
    the first rows tells nothing; at the end a note names them.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input.
    online : estimator
        A new model of `toprank.online`; it is not used with `start`.
    target, positive, id_column, ignore, types
        As in `toprank.files.fit_file`.
    start : TableModel
        A model of an earlier stream that goes on learning, with its columns and its rules to read a file.
    first_rows : int, default=10_000
        So many first rows decide how columns are used.
    scale : bool, default=True
        Scale numbers by their mean and deviation in the first rows. svmlight rows are not scaled.
    fill_missing : float, optional
        A number that stands for missing ones, instead of the median and a mark.
    on_bad_line, batch, window, max_fpr, checkpoint, every, resume, grows
        As in `toprank.stream`. A line without a label is bad, and so is a number beyond 1e150.
    random_state : int, default=0
        Of the model, if it has one.
    format, delimiter, zero_based, n_features, verbose
        As in `toprank.stream`.
    missing, decimal, thousands, encoding
        As in `toprank.files.open_table`.
    watcher : Watcher, optional
        As in `toprank.files.fit_file`.

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
    ...         _ = file.write("x,y\n" + "1.5,1\n0.5,0\n1.0,1\n1.0,0\n" * 25)
    ...     model, result = stream_table(path, CBR(), target="y")
    >>> model.columns, result.n_rows
    ({'x': 'number'}, 100)
    """
    measuring = checked_settings(path, checkpoint, every, on_bad_line, batch, window, max_fpr)
    require_count("first_rows", first_rows)
    watcher = watcher or Warner()
    earlier = content_of(checkpoint) if checkpoint is not None and resume and os.path.exists(checkpoint) else None
    run = _Asked(path, online, random_state, on_bad_line == "skip", earlier, start, watcher)
    label = None if positive is None else _number_or_text(positive)
    reading: dict[str, Any] = {"target": target, "positive": label}
    reading |= {"zero_based": zero_based, "fill_missing": fill_missing}
    # labels of columns are compared as text, digit by digit; a checkpoint knows them as numbers
    wanted = reading | {"positive": label if target is None else positive, "format": format, "delimiter": delimiter}
    wanted["grows"] = checkpoint is not None if grows is None else grows
    if is_svmlight(path, format, delimiter, target):
        source, first = run.sparse(n_features, wanted)
    else:
        spelling = Spelling.of(missing, decimal, thousands, encoding)
        if start is not None:
            spelling = Spelling.of_model(start.reading)
        asked = Asked(
            str(target), positive, id_column, ignore, types or {}, scale, fill_missing, int(first_rows), run.skips
        )
        written = {"missing": list(missing), "decimal": decimal, "thousands": thousands, "encoding": encoding}
        source, first = run.table(asked, spelling, wanted, {"types": types} | written)
        reading |= asked.settings() | written
    result = stream_from(source, first, reading | measuring, checkpoint, every, resume, (), verbose, earlier)
    _require_rows(path, result.n_rows, result.bad_lines)
    model = result.model
    if result.found is None:
        forget_columns(model)  # the table knows them, and gives arrays
        known: dict[str, Any] = {"target": target, "positive": positive, "id_column": id_column}
        model = TableModel(model, None, as_array=True, zero_based=zero_based, **known).keep_fitted(model)
    else:
        result.found.tell_of_stream(watcher, first_rows)
    counts = {
        "rows": result.n_rows,
        "positives": result.n_positives,
        "learned_from": result.n_rows,
        "holdout": 0.0,
        "seed": random_state,
    }
    summary = summary_of(model, type(scorer_of(model.estimator_)).__name__, path, counts)
    model.summary_ = summary | _of_columns(model, result.found)
    return model, result


def _of_columns(model: TableModel, found: FoundInStream | None) -> dict[str, Any]:
    """What the summary says of columns: those of the first rows, with the missing values of all."""
    if found is None:
        return {}
    table = [one | {"missing": found.missing.get(one["name"])} for one in model.summary_.get("table", [])]
    missing = {name: count for name, count in found.missing.items() if count}
    return {"missing": missing, "left_out": model.summary_.get("left_out", {}), "table": table}


@dataclass(frozen=True)
class _Asked:
    """What a run starts with: a source, and a model that has its preparation."""

    path: str
    online: Any
    seed: int
    skips: bool
    earlier: dict[str, Any] | None
    start: TableModel | None
    watcher: Watcher

    def sparse(self, n_features: int | None, wanted: dict[str, Any]) -> tuple[RowSource, Any]:
        """Rows of svmlight, which are not prepared."""
        from sklearn.pipeline import Pipeline

        if n_features is None and self.earlier is not None and self.earlier["settings"]["features"] is None:
            n_features = self.earlier["settings"]["n_features"]
        if n_features is None and self.start is not None:
            n_features = Learner(self.start.estimator_).n_features
        source = open_rows(self.path, features=None, n_features=n_features, **wanted)
        if self.start is not None and self.start.columns is not None:
            raise TableError(
                f"the model to start with takes columns with names, and {self.path!r} has none; give such a file"
            )
        return source, Pipeline([("rank", self._new())]) if self.start is None else self.start.estimator_

    def table(
        self, asked: Asked, spelling: Spelling, wanted: dict[str, Any], given: dict[str, Any]
    ) -> tuple[RowSource, Any]:
        """Rows of a table, and a model with its columns: that of a start, of a checkpoint, or of the first rows."""
        left_out = asked.left_out()
        source = open_rows(self.path, features=None, n_features=None, ignore=left_out, spelling=spelling, **wanted)
        if self.start is not None:
            return source, model_that_goes_on(self.start, source, asked, given, self.watcher)
        before = None if self.earlier is None else self.earlier["model"]
        if isinstance(before, TableModel):
            return source, model_of_checkpoint(before, self._new(), asked)
        return source, model_by_first_rows(
            source, self._first(source, asked.first_rows), self._new(), asked, spelling, self.watcher
        )

    def _new(self) -> Any:
        if "random_state" in self.online.get_params():
            self.online.set_params(random_state=self.seed)
        return self.online

    def _first(self, source: RowSource, n_rows: int) -> Rows:
        first = next(batches(source.peek(stops=not self.skips), n_rows), Batch(None, [], 0, source.start()))
        if first.bad and not self.skips:
            raise stop_at(first.bad[0], source)
        _require_rows(source.path, 0 if first.rows is None else len(first.rows), first.bad)
        assert first.rows is not None
        return first.rows


def _number_or_text(label: str) -> float | str:
    try:
        number = float(label)
    except ValueError:
        return label
    return number if math.isfinite(number) else label


def _require_rows(path: str, n_rows: int, bad: list[BadLine]) -> None:
    """Refuse a file without rows, from which nothing can be learned."""
    if n_rows == 0 and bad:
        text = "{path!r} has no rows but bad lines, the first: line {line}, {reason}"
        raise TableError.saying(text, path=path, line=bad[0].line, reason=bad[0].reason)
    if n_rows == 0:
        raise no_rows(path)
