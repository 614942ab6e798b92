"""From labels and targets to what a ranker learns from: 0/1 classes or ordered levels."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.checks import missing_values, require_count

Positive = str | float | Collection[Any] | Callable[[NDArray[Any]], Any]


def binarize(y: ArrayLike, *, positive: Positive) -> NDArray[np.int64]:
    """Turn labels into 1 for the positive class and 0 for the rest.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of any kind: numbers, strings or booleans, in a list, a NumPy array, or a pandas or
        polars series. A missing label is an error, since it is neither positive nor negative.
    positive : label, collection of labels, or callable
        What counts as positive. A string is one label. A callable gets the labels as an array and
        returns a boolean array, for example ``lambda quality: quality >= 7``.

    Returns
    -------
    ndarray of int64 of shape (n_samples,)
        1 where the label is positive, else 0. Both values occur.

    Raises
    ------
    ValueError
        If a label is missing or a positive label does not occur in `y`, or if all rows would be in one class.

    Examples
    --------
    >>> from toprank.datasets import binarize
    >>> binarize(["spam", "ham", "spam"], positive="spam")
    array([1, 0, 1])
    >>> binarize([3, 7, 8, 5], positive=[7, 8])
    array([0, 1, 1, 0])
    >>> binarize([3, 7, 8, 5], positive=lambda quality: quality <= 4)
    array([1, 0, 0, 0])
    """
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise ValueError(
            f"y must have one dimension, got shape {labels.shape}; of a label matrix choose one column first."
        )
    n_missing = int(missing_values(labels).sum())
    if n_missing:
        raise ValueError(f"y has {n_missing} missing labels; drop these rows or give them a label.")
    mask = _satisfies(labels, positive) if callable(positive) else _equals_any(labels, positive)
    n_positive = int(mask.sum())
    if n_positive in (0, labels.size):
        raise ValueError(
            f"positive={positive!r} makes {n_positive} of {labels.size} rows positive, but both "
            f"classes are needed. Labels in y: {_shown(labels)}."
        )
    return mask.astype(np.int64)


def _satisfies(labels: NDArray[Any], predicate: Callable[[NDArray[Any]], Any]) -> NDArray[np.bool_]:
    mask = np.asarray(predicate(labels))
    if mask.dtype != bool or mask.shape != labels.shape:
        raise ValueError(
            "A callable positive must return a boolean array with one entry per label; got "
            f"dtype {mask.dtype} and shape {mask.shape} for {labels.size} labels."
        )
    return mask


def _equals_any(labels: NDArray[Any], positive: Any) -> NDArray[np.bool_]:
    if isinstance(positive, str | bytes) or not isinstance(positive, Collection):
        positive = [positive]
    # np.isin would first cast all labels to one type, and make the integer 1 equal to "1".
    mask = np.zeros(labels.shape, dtype=bool)
    absent = []
    for label in positive:
        matches = np.asarray(labels == label, dtype=bool)
        if not matches.any():
            absent.append(label)
        mask |= matches
    if absent:
        raise ValueError(f"Positive labels that do not occur in y: {absent!r}. Labels in y: {_shown(labels)}.")
    return mask


def _shown(labels: NDArray[Any], at_most: int = 20) -> str:
    distinct = list(dict.fromkeys(labels.tolist()))
    more = f" and {len(distinct) - at_most} more" if len(distinct) > at_most else ""
    return f"{distinct[:at_most]!r}{more}"


def discretize(target: ArrayLike, n_levels: int, *, strategy: Literal["width", "count"] = "width") -> NDArray[np.int64]:
    r"""Cut a continuous target into ordered levels :math:`0, \dots, S - 1`.

    With ``strategy="width"`` the bins are equally wide,

    .. math:: \text{level}(v) = \min\Bigl(S - 1,
              \Bigl\lfloor S \frac{v - \min}{\max - \min} \Bigr\rfloor\Bigr),

    with ``strategy="count"`` they hold equally many rows, up to ties and one row. Equal targets
    always get equal levels, and a larger target never gets a lower level.

    Parameters
    ----------
    target : array-like of shape (n_samples,)
        Finite numbers.
    n_levels : int
        Number of levels S, at least 2.
    strategy : {"width", "count"}, default="width"
        See Notes for the choice.

    Returns
    -------
    ndarray of int64 of shape (n_samples,)
        The level of every row; each of the `n_levels` levels occurs.

    Raises
    ------
    ValueError
        If a level would stay empty: then there are fewer levels in the data than asked for.

    Notes
    -----
    The experiments of RankNCG (Raykar, Duraiswami and Krishnapuram 2008, section 6.1) use "S equal sized bins", with S
    "chosen such that none of them were empty". Only bins of equal *width* can be empty, and the numbers of training
    pairs in their Table 1 say the same: bins of equal count give :math:`(0.8 N)^2 (1 - 1/S) / 2` pairs whatever the
    data, that is 266667 for RandNet with N = 1000 and S = 6 and 90.9 million for California Housing, where the table
    has 195907 and 82.4 million; equally wide bins of the California target give 82.4 million. For most other sets the
    target gives neither: there the table's numbers are not reproduced. That of Abalone agrees to 0.03 % with equally
    wide bins of the first column, sex, so the wrong column may have been cut.

    Examples
    --------
    >>> from toprank.datasets import discretize
    >>> discretize([0.0, 1.0, 2.0, 9.0, 10.0], 2)
    array([0, 0, 0, 1, 1])
    >>> discretize([0.0, 1.0, 2.0, 3.0, 4.0, 10.0], 3, strategy="count")
    array([0, 0, 1, 1, 2, 2])
    """
    values = np.asarray(target, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ValueError("target must be a non-empty array of one dimension and finite numbers.")
    require_count("n_levels", n_levels, least=2)
    levels = np.searchsorted(_inner_edges(values, n_levels, strategy), values, side="right")
    empty = np.flatnonzero(np.bincount(levels, minlength=n_levels) == 0)
    if empty.size:
        raise ValueError(
            f"With {n_levels} levels and strategy={strategy!r} the levels {empty.tolist()} stay "
            "empty. Use fewer levels or the other strategy."
        )
    return levels.astype(np.int64)


def _inner_edges(values: NDArray[np.float64], n_levels: int, strategy: str) -> NDArray[np.float64]:
    """Lower edges of the levels 1, ..., S - 1."""
    if strategy == "width":
        return np.linspace(values.min(), values.max(), n_levels + 1)[1:-1]
    if strategy == "count":
        first_rows = np.arange(1, n_levels) * values.size // n_levels
        return np.sort(values)[first_rows]
    raise ValueError(f"strategy must be 'width' or 'count', got {strategy!r}.")
