"""The rows that an estimator of the top family gets: arrays, CSR, frames, or a matrix with a storage of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_feature_names, _check_n_features, validate_data

from toprank.base import check_indices, check_magnitude
from toprank.exceptions import InputError
from toprank.matrices.own_storage import OwnStorage

_FLOATS = [np.float64, np.float32]


def training_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Validated rows and labels; float32 stays float32."""
    if isinstance(X, OwnStorage):
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        _check_feature_names(estimator, X, reset=True)
        _check_n_features(estimator, X, reset=True)
        return X, y
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=_FLOATS, order="C")
    check_indices(X)
    return X, y


def rows_to_score(estimator: Any, X: Any) -> Any:
    """Validated rows of as many features as the estimator was fitted to."""
    if isinstance(X, OwnStorage):
        _check_n_features(estimator, X, reset=False)
        return X
    return validate_data(estimator, X, accept_sparse="csr", dtype=_FLOATS, reset=False)


def check_rows(X: Any, *, as_features: bool) -> None:
    """Refuse features of a size that makes no sense, and a storage that kernels cannot read."""
    if not isinstance(X, OwnStorage):
        check_magnitude(X)
    elif not as_features:
        raise InputError.saying(
            "a {storage} is for linear models with a solver that works on rows of features; use {kernel='linear'} and "
            "{solver='auto'}, or its tocsr()",
            storage=type(X).__name__,
        )
