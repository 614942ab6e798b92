"""Scores of any classifier of scikit-learn, as one number a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import is_dask
from toprank.checks import require_choice

RESPONSES = ("decision_function", "predict_proba")


def check_response_method(response_method: str) -> None:
    """Refuse a method that gives no scores."""
    require_choice("response_method", response_method, ("auto", *RESPONSES))


def scores_of(model: Any, X: Any, response_method: str = "auto") -> Any:
    """Scores of rows under a fitted model, larger for the second class; a Dask array for what Dask has.

    "auto" takes the decision function where there is one, as probabilities may round to 0 and 1.
    """
    if is_dask(X):
        from toprank.matrices.block_tasks import sent
        from toprank.matrices.dask_columns import is_frame, row_by_row

        one_row = X._meta_nonempty[:1] if is_frame(X) else np.zeros((1, X.shape[1]), X.dtype)
        dtype = _scores(model, one_row, response_method).dtype
        return row_by_row(_scores_of_block, X, sent(model), response_method, dtype, dtype=dtype)
    return _scores(model, X, response_method)


def _scores_of_block(X: Any, model: Any, response_method: str, dtype: Any) -> NDArray[Any]:
    return _scores(model, X, response_method) if X.shape[0] else np.zeros(0, dtype)


def _scores(model: Any, X: Any, response_method: str) -> NDArray[Any]:
    wanted = RESPONSES if response_method == "auto" else (response_method,)
    method = next((name for name in wanted if hasattr(model, name)), None)
    if method is None:
        raise ValueError(
            f"{type(model).__name__} has no {' and no '.join(wanted)}, so its rows have no scores; use a classifier "
            "with one of them"
        )
    values = np.asarray(getattr(model, method)(X))
    if values.ndim == 2:
        if values.shape[1] > 2 or (method == "predict_proba" and values.shape[1] < 2):
            raise ValueError(f"{method} of {type(model).__name__} must be for two classes, got shape {values.shape}")
        values = values[:, -1]
    values = values if values.dtype.kind == "f" else values.astype(np.float64)
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"{method} of {type(model).__name__} is {values[row]} in row {row}; scores must be finite, check the model"
        )
    return values
