"""The model before and after ``toprank stream``, and what may go wrong in between."""

from __future__ import annotations

import os
from typing import Any

from toprank.cli.output import Output, told


def begun(checkpoint: str | None, resume: bool) -> dict[str, Any] | None:
    """What the checkpoint holds that a run goes on from, None if it starts anew."""
    from toprank.persistence.model_file import read_tree

    if checkpoint is None or not resume or not os.path.exists(checkpoint):
        return None
    content: dict[str, Any] = read_tree(checkpoint, kind="checkpoint")
    return content


def started(path: str | None, output: Output) -> Any:
    """The model of an earlier stream that goes on learning, None if there is none."""
    from toprank.cli.model_files import load_model

    if path is None:
        return None
    model = load_model(path, output)
    if not hasattr(getattr(model.estimator_, "steps", [(None, None)])[-1][1], "partial_fit"):
        raise ValueError(f"{path!r} cannot learn from a stream; give a model that toprank stream made")
    return model


def opened(
    data: str,
    reading: dict[str, Any],
    positive: str | None,
    format: str | None,
    delimiter: str | None,
    n_features: int | None,
    left_out: list[str],
    grows: bool,
    earlier: dict[str, Any] | None,
    model: Any,
) -> Any:
    """The rows of a file or a pipe; of svmlight with as many features as a checkpoint or an earlier model has."""
    from toprank.files.open import open_rows
    from toprank.streams.learner import Learner

    if n_features is None and earlier is not None and earlier["settings"]["features"] is None:
        n_features = earlier["settings"]["n_features"]
    if n_features is None and model is not None:
        n_features = Learner(model.estimator_).n_features
    if reading["target"] is not None:  # labels of columns are compared as text, digit by digit
        reading = {**reading, "positive": positive}
    return open_rows(
        data,
        features=None,
        format=format,
        delimiter=delimiter,
        n_features=n_features,
        ignore=left_out,
        grows=grows,
        **reading,
    )


def first_model(
    source: Any,
    model: Any,
    path: str | None,
    method: str,
    scale_rows: int,
    fill_missing: float | None,
    skips: bool,
    earlier: dict[str, Any] | None,
    seed: int,
) -> Any:
    """The model to start with: one of an earlier stream, or a new one after a scaler.

    Parameters
    ----------
    source : Source
        The rows; without names of features for svmlight.
    model : TableModel or None
        That of an earlier stream.
    path : str or None
        Its file.
    method : str
        Name of the online method.
    scale_rows : int
        So many rows fit the scaler; 0 for no scaler.
    fill_missing : float or None
        What stands for missing values.
    skips : bool
        Whether bad lines among these rows are left out.
    earlier : dict or None
        The checkpoint to go on from: its scaler stays, though the file may have more rows to scale by now.
    seed : int
        Of the method.
    """
    from sklearn.pipeline import Pipeline

    import toprank.online

    features = source.feature_names
    if model is not None:
        if (None if model.columns is None else list(model.columns)) != features:
            raise ValueError(
                f"the columns of {path!r} are others than those of this file; give a file with the same columns"
            )
        return model.estimator_
    new = getattr(toprank.online, method)()
    if "random_state" in new.get_params():
        new.set_params(random_state=seed)
    steps = [("rank", new)]
    if features is not None and scale_rows > 0:
        steps.insert(0, ("scale", _scaler_of(earlier, scale_rows) or _scaler(source, scale_rows, skips)))
    if features is not None and fill_missing is not None:
        steps.insert(0, ("fill", _filler(fill_missing, len(features))))
    return Pipeline(steps)


def _filler(value: float, n_features: int) -> Any:
    """What fills gaps in rows to score, as the reader does in rows to learn from."""
    import numpy as np
    from sklearn.impute import SimpleImputer

    imputer = SimpleImputer(strategy="constant", fill_value=float(value), keep_empty_features=True)
    return imputer.fit(np.zeros((1, n_features)))


def _scaler_of(earlier: dict[str, Any] | None, scale_rows: int) -> Any:
    """The scaler of a checkpoint, None if it has none that was fitted to up to so many rows."""
    from sklearn.preprocessing import StandardScaler

    scaler = None if earlier is None else getattr(earlier["model"], "named_steps", {}).get("scale")
    return scaler if isinstance(scaler, StandardScaler) and int(scaler.n_samples_seen_) <= scale_rows else None


def _scaler(source: Any, scale_rows: int, skips: bool) -> Any:
    from sklearn.preprocessing import StandardScaler

    from toprank.files.rows import Batch, batches, stop_at

    first: Any = next(batches(source.peek(stops=not skips), scale_rows), Batch(None, [], 0, source.start()))
    if first.bad and not skips:
        raise stop_at(first.bad[0], source)
    require_rows(source.path, 0 if first.rows is None else len(first.rows), first.bad)
    return StandardScaler().fit(first.rows.X)


def require_rows(data: str, n_rows: int, bad: list[Any]) -> None:
    """Refuse a file without rows, from which nothing can be learned."""
    if n_rows == 0:
        found = (
            f" but bad lines, the first: line {bad[0].line}, {told(bad[0].reason)}"
            if bad
            else "; give a file with rows"
        )
        raise ValueError(f"{data!r} has no rows{found}")


def wrapped(
    result: Any,
    features: list[str] | None,
    target: str | None,
    positive: str | None,
    id_column: str | None,
    zero_based: bool,
) -> Any:
    """The learned model with its columns."""
    from toprank.files import TableModel
    from toprank.streams.learner import forget_columns

    forget_columns(result.model)  # the table knows them, and gives arrays
    columns = None if features is None else dict.fromkeys(features, "number")
    known: dict[str, Any] = {"target": target, "positive": positive, "id_column": id_column}
    return TableModel(result.model, columns, as_array=True, zero_based=zero_based, **known).keep_fitted(result.model)
