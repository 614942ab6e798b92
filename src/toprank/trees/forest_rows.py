"""The rows of a `TopForest`: checked, and as its trees read them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_feature_names, _check_n_features, validate_data

from toprank.arrays import is_dask
from toprank.exceptions import InputError
from toprank.trees.table_columns import TableColumns, is_frame

# What trees read: single precision, gaps allowed.
_READ: dict[str, Any] = {"dtype": np.float32, "order": "C", "ensure_all_finite": "allow-nan"}


def check_checkpoint(path: Any, X: Any, random_state: Any) -> None:
    """Rows are in blocks, and the same trees can be grown again."""
    if not is_dask(X):
        raise InputError.of("checkpoint", str(path), "is for Dask arrays", "leave it out, rows are in memory")
    if not isinstance(random_state, Integral):
        raise InputError.of(
            "random_state",
            random_state,
            "must be a whole number where a forest has a {checkpoint}",
            "use {random_state=0}: to go on, the same trees have to be grown again",
        )


def training_rows(forest: Any, X: Any, y: Any) -> tuple[TableColumns, NDArray[np.float32], Any]:
    """What the columns hold, rows in single precision, and labels."""
    columns = TableColumns.of(X)
    rows, y = validate_data(forest, columns.read(X), y, **_READ)
    if is_frame(X):
        _check_feature_names(forest, X, reset=True)
    return columns, rows, y


def rows_for_sources(forest: Any, X: Any, y: Any) -> tuple[TableColumns, Any, Any]:
    """The same for ensembles that read rows in their own way: rows as they are."""
    y = column_or_1d(y, warn=True)
    X = rows_as_they_are(forest, X, reset=True)
    check_consistent_length(X, y)
    return TableColumns({}), X, y


def rows_as_they_are(forest: Any, X: Any, *, reset: bool) -> Any:
    """Rows of which only names and number of the features are looked at; in training they are kept."""
    X = X if hasattr(X, "shape") else np.asarray(X)
    _check_feature_names(forest, X, reset=reset)
    _check_n_features(forest, X, reset=reset)
    return X


def rows_to_score(forest: Any, X: Any) -> NDArray[np.float32]:
    """Rows in single precision, with the features that the forest knows."""
    at_once = _plain_rows(forest, X)
    if at_once is not None:
        return at_once
    if not is_frame(X):
        _check_no_categories(forest)
        return np.asarray(validate_data(forest, X, **_READ, reset=False))
    read = forest._columns.read(X)
    _check_feature_names(forest, X, reset=False)
    _check_n_features(forest, X, reset=False)
    return np.asarray(check_array(read, **_READ))


def columns_of_categories(forest: Any) -> list[Any]:
    """Names of the columns that hold text or categories, or their numbers where columns have no names."""
    names = getattr(forest, "feature_names_in_", range(forest.n_features_in_))
    return [names[number] for number in sorted(forest._columns.categories)]


def _check_no_categories(forest: Any) -> None:
    """Refuse an array where there are categories: its numbers would be taken for their codes."""
    if forest._columns.categories:
        raise InputError.saying(
            "columns {columns} held text or categories in the training rows, and an array has none; pass a frame of "
            "pandas or polars",
            columns=columns_of_categories(forest),
        )


def _plain_rows(forest: Any, X: Any) -> NDArray[np.float32] | None:
    """Rows of an array of numbers in which nothing is wrong, else None.

    The checks of scikit-learn come to the same, but take several times as long as a row takes in the trees.
    """
    is_plain = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind == "f" and len(X) > 0
    if not is_plain or X.shape[1] != forest.n_features_in_:
        return None
    if hasattr(forest, "feature_names_in_") or forest._columns.categories:
        return None
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(X, np.float32)
    return None if np.isinf(rows).any() else rows
