"""Scores of any classifier of scikit-learn, as one number a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.checks import require_choice

RESPONSES = ("decision_function", "predict_proba")


def check_response_method(response_method: str) -> None:
    """Refuse a method that gives no scores."""
    require_choice("response_method", response_method, ("auto", *RESPONSES))


def scores_of(model: Any, X: Any, response_method: str = "auto") -> NDArray[Any]:
    """Scores of rows under a fitted model, larger for the second class.

    "auto" takes the decision function where there is one, as probabilities may round to 0 and 1.
    """
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
