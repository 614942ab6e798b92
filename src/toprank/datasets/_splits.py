"""The split protocols of the papers, as row indices: they fit arrays, CSR matrices and frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Rows = NDArray[np.int64]


def split_two_thirds(y: ArrayLike, *, stratify: bool = False, random_state: Any = None) -> tuple[Rows, Rows]:
    """Random 2/3 of the rows for training and 1/3 for testing.

    The protocol of TopPush (Li, Jin and Zhou 2014, section 5.1), which averages over thirty such
    trials: call it with ``random_state`` 0, ..., 29. Parameters are chosen there by
    :func:`five_folds` on the training rows.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels. If they have two values, each part must have both.
    stratify : bool, default=False
        Keep the class shares in both parts. The paper divides at random.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    train, test : ndarray of int64
        Row indices; the test part has ``n_samples // 3`` rows.

    Examples
    --------
    >>> from toprank.datasets import split_two_thirds
    >>> train, test = split_two_thirds([0, 1] * 15, random_state=0)
    >>> len(train), len(test)
    (20, 10)
    """
    labels = _as_labels(y, at_least=3)
    rows = np.arange(labels.size)
    train, test = _divide(rows, labels, labels.size // 3, stratify, random_state)
    _check_classes(labels, {"training": train, "test": test})
    return train, test


def split_half_quarters(
    y: ArrayLike, *, n_train: int | None = None, stratify: bool = True, random_state: Any = None
) -> tuple[Rows, Rows, Rows]:
    """Random 50 % of the rows for training, 25 % for validation and 25 % for testing.

    The protocol of the kernel paper (Macha, Adam and Smidl 2020, section 4.3). A set with an official test part keeps
    it: the other rows are divided at random, and validation gets as many rows as the test has.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels. If they have two values, each part must have both.
    n_train : int, optional
        Number of rows before the official test part, such as ``load(name).n_train``. None, or all
        rows, means that there is no such part.
    stratify : bool, default=True
        Keep the class shares in the parts that are drawn. The paper writes "randomly divided", but
        the shares in its Table 2 are equal to the row, as a stratified division makes them.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    train, validation, test : ndarray of int64
        Row indices. Without an official test part an odd row goes to training, and the next one to the test.

    Examples
    --------
    >>> from toprank.datasets import split_half_quarters
    >>> [len(part) for part in split_half_quarters([0, 1, 1] * 117, random_state=0)]
    [176, 87, 88]
    >>> train, validation, test = split_half_quarters([0, 1] * 10, n_train=16, random_state=0)
    >>> len(train), len(validation), test.tolist()
    (12, 4, [16, 17, 18, 19])
    """
    from sklearn.utils import check_random_state

    labels = _as_labels(y, at_least=4)
    rows = np.arange(labels.size)
    if n_train is None or n_train == labels.size:
        # One generator for both divisions: the same seed twice would repeat its draws.
        rng = check_random_state(random_state)
        train, rest = _divide(rows, labels, labels.size // 2, stratify, rng)
        validation, test = _divide(rest, labels, rest.size - rest.size // 2, stratify, rng)
    else:
        n_test = labels.size - n_train
        if not 0 < n_test < n_train:
            raise ValueError(
                f"n_train={n_train} of {labels.size} rows leaves {n_test} for the official test "
                "part, which must be at least 1 and fewer than n_train, as validation gets as many."
            )
        train, validation = _divide(rows[:n_train], labels, n_test, stratify, random_state)
        test = rows[n_train:]
    _check_classes(labels, {"training": train, "validation": validation, "test": test})
    return train, validation, test


def five_folds(
    y: ArrayLike, *, max_rows: int | None = None, stratify: bool = False, random_state: Any = None
) -> list[tuple[Rows, Rows]]:
    """Five random folds, each of which is the test part once.

    The protocol of RankNCG (Raykar, Duraiswami and Krishnapuram 2008, section 6.2) and of CBR
    (Khalid, Ray and Chitsaz, section 4.2). CBR draws at most 8000 rows of a benchmark set and 2000
    of a high-dimensional one first, and averages over ten and five such runs.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels or targets. If they have two values, each part must have both.
    max_rows : int, optional
        If there are more rows, draw this many at random and divide only them.
    stratify : bool, default=False
        Keep the class shares in all folds. The papers divide at random.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    list of five (train, test)
        Pairs of int64 arrays of row indices of `y`. It can be handed to scikit-learn as ``cv=``.

    Examples
    --------
    >>> from toprank.datasets import five_folds
    >>> folds = five_folds([0, 1] * 50, max_rows=60, random_state=0)
    >>> len(folds), [(len(train), len(test)) for train, test in folds][0]
    (5, (48, 12))
    """
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.utils import check_random_state

    labels = _as_labels(y, at_least=5)
    rng = check_random_state(random_state)
    rows = np.arange(labels.size)
    if max_rows is not None and max_rows < labels.size:
        if max_rows < 5:
            raise ValueError(f"max_rows must be at least 5 to make five folds, got {max_rows}.")
        rows = np.sort(rng.choice(rows, size=max_rows, replace=False))
    kind = StratifiedKFold if stratify else KFold
    divider = kind(n_splits=5, shuffle=True, random_state=rng)
    folds = [(rows[train], rows[test]) for train, test in divider.split(rows, labels[rows])]
    for number, (train, test) in enumerate(folds, start=1):
        _check_classes(labels, {f"training, fold {number},": train, f"test, fold {number},": test})
    return folds


def _as_labels(y: ArrayLike, *, at_least: int) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.ndim != 1 or labels.size < at_least:
        raise ValueError(f"y must have one dimension and at least {at_least} rows, got shape {labels.shape}.")
    return labels


def _divide(rows: Rows, labels: NDArray[Any], n_second: int, stratify: bool, random_state: Any) -> tuple[Rows, Rows]:
    """Divide rows at random into two sorted parts, the second with n_second rows."""
    from sklearn.model_selection import train_test_split

    if stratify and np.unique(labels[rows], return_counts=True)[1].min() < 2:
        raise ValueError(
            "stratify=True needs at least two rows of each class among the rows to divide; use "
            "stratify=False, as for a continuous target."
        )
    first, second = train_test_split(
        rows,
        train_size=rows.size - n_second,
        test_size=n_second,
        stratify=labels[rows] if stratify else None,
        random_state=random_state,
    )
    return np.sort(first), np.sort(second)


def _check_classes(labels: NDArray[Any], parts: dict[str, Rows]) -> None:
    """Both classes of a binary task must be in every part: no ranking can be learned of one."""
    classes = set(labels.tolist())
    if len(classes) != 2:
        return
    for name, rows in parts.items():
        missing = classes - set(labels[rows].tolist())
        if missing:
            raise ValueError(
                f"The {name} part of {rows.size} rows has no row of class {missing.pop()!r}. Use "
                "stratify=True, another random_state, or more rows of that class."
            )
