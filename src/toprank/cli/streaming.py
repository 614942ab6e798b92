"""The model before and after ``toprank stream``."""

from __future__ import annotations

from typing import Any

from toprank.cli.output import Output


def learner(
    source: Any,
    method: str,
    features: list[str] | None,
    start: str | None,
    scale_rows: int,
    fill_missing: float | None,
    seed: int,
    output: Output,
) -> Any:
    """The model to start with: one of an earlier stream, or a new one after a scaler.

    Parameters
    ----------
    source : table
        The file.
    method : str
        Name of the online method.
    features : list of str or None
        Columns; None for svmlight.
    start : str or None
        File of an earlier model.
    scale_rows : int
        So many rows fit the scaler; 0 for no scaler.
    fill_missing : float or None
        What stands for missing values in these rows.
    seed : int
        Of the method.
    output : Output
        For notes.
    """
    from sklearn.pipeline import Pipeline

    import toprank.online

    if start is not None:
        return _earlier(start, features, output)
    model = getattr(toprank.online, method)()
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    if features is None or scale_rows == 0:
        return Pipeline([("rank", model)])
    return Pipeline([("scale", _scaler(source, features, scale_rows, fill_missing)), ("rank", model)])


def _earlier(path: str, features: list[str] | None, output: Output) -> Any:
    from toprank.cli.model_files import load_model

    model = load_model(path, output)
    if not hasattr(getattr(model.estimator_, "steps", [(None, None)])[-1][1], "partial_fit"):
        raise ValueError(f"{path!r} cannot learn from a stream; give a model that toprank stream made")
    if (None if model.columns is None else list(model.columns)) != features:
        raise ValueError(
            f"the columns of {path!r} are others than those of this file; give a file with the same columns"
        )
    return model.estimator_


def _scaler(source: Any, features: list[str], n_rows: int, fill_missing: float | None) -> Any:
    import numpy as np
    from sklearn.preprocessing import StandardScaler

    from toprank.tables.errors import NotANumberError
    from toprank.tables.source import NUMBER, require_columns

    require_columns(source, features, "columns must have different names")
    parts, count = [], 0
    try:
        for batch in source.batches(dict.fromkeys(features, NUMBER)):
            parts.append(batch.frame.head(n_rows - count).to_numpy())
            count += len(parts[-1])
            if count >= n_rows:
                break
    except NotANumberError as error:
        reason = str(error).partition(";")[0]
        left_out = " ".join(f"--ignore {name}" for name in error.columns)
        raise ValueError(f"{reason}; a stream takes numbers only, so leave such columns out by {left_out}") from None
    X = np.concatenate(parts) if parts else np.zeros((0, len(features)))
    X = X if fill_missing is None else np.where(np.isnan(X), fill_missing, X)
    X = X[np.isfinite(X).all(axis=1)]
    if not len(X):
        raise ValueError(
            f"none of the first {n_rows} rows of {source.path!r} is complete, so there is nothing to scale by; use "
            "--fill-missing 0 or --scale-rows 0"
        )
    return StandardScaler().fit(X)


def wrapped(
    result: Any,
    features: list[str] | None,
    target: str | None,
    positive: str | None,
    id_column: str | None,
    zero_based: bool,
) -> Any:
    """The learned model with its columns."""
    from toprank.tables import TableModel

    columns = None if features is None else dict.fromkeys(features, "number")
    known: dict[str, Any] = {"target": target, "positive": positive, "id_column": id_column}
    return TableModel(result.model, columns, as_array=True, zero_based=zero_based, **known).keep_fitted(result.model)
