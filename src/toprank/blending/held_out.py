"""Models of a blend on rows that they have not seen: folds, and scores of held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from toprank.arrays import Floats
from toprank.decision._scores import scores_of
from toprank.exceptions import InputError


def stratified_folds(y: NDArray[Any], most: int, random_state: Any) -> StratifiedKFold:
    """As many stratified folds as there are rows of the rarer class, at most so many as asked for."""
    fewest = int(np.bincount(y.astype(np.int64), minlength=2).min())
    if fewest < 2:
        raise ValueError(f"a blend needs at least 2 rows of each class to hold some out, got {fewest}; give more rows")
    return StratifiedKFold(min(most, fewest), shuffle=True, random_state=random_state)


def fit_and_score(model: Any, X: Any, y: NDArray[Any], weights: Floats | None, split: Any) -> tuple[Any, Any]:
    """A model fitted to some rows, and its scores of others."""
    train, test = split
    fitted = clone(model)
    if not isinstance(model, FrozenEstimator):
        fitted.fit(_safe_indexing(X, train), y[train], **_weight_argument(fitted, weights, train))
    return fitted, None if test is None else scores_of(fitted, _safe_indexing(X, test))


def _weight_argument(model: Any, weights: Floats | None, rows: NDArray[np.intp]) -> dict[str, Any]:
    """Weights under the name by which a model, or the last step of a pipeline, takes them."""
    if weights is None:
        return {}
    prefix, last = "", model
    while hasattr(last, "steps"):
        name, last = last.steps[-1]
        prefix += f"{name}__"
    if not has_fit_parameter(last, "sample_weight"):
        raise InputError.saying(
            "{model} takes no {sample_weight}; leave it out of the blend, or fit without weights",
            model=type(last).__name__,
        )
    return {f"{prefix}sample_weight": weights[rows]}
