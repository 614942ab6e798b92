"""Splits: they partition the rows, have the papers' sizes, and notice a missing class."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.datasets import five_folds, split_half_quarters, split_two_thirds

SPLITS = [split_two_thirds, split_half_quarters, lambda y, **options: five_folds(y, **options)[0]]


def _balanced(n):
    return np.arange(n) % 2


def _assert_partition(parts, rows):
    joined = np.concatenate(parts)
    assert joined.dtype == np.int64
    assert np.array_equal(np.sort(joined), rows)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(40, 300), seed=st.integers(0, 1000), stratify=st.booleans())
def test_parts_partition_the_rows(n, seed, stratify):
    n += 0 if stratify else 200  # in parts of 8 random rows a class may be missing
    y = _balanced(n)
    options = {"stratify": stratify, "random_state": seed}
    train, test = split_two_thirds(y, **options)
    _assert_partition((train, test), np.arange(n))
    assert len(test) == n // 3
    train, validation, test = split_half_quarters(y, **options)
    _assert_partition((train, validation, test), np.arange(n))
    assert 0 <= len(test) - len(validation) <= 1
    assert len(train) == (n + 1) // 2
    folds = five_folds(y, **options)
    assert len(folds) == 5
    _assert_partition([test for _, test in folds], np.arange(n))
    for train, test in folds:
        _assert_partition((train, test), np.arange(n))


@pytest.mark.parametrize(
    ("n", "n_positive", "sizes", "positives"),
    [
        (351, 225, (176, 87, 88), (0.642, 0.644, 0.636)),  # ionosphere
        (4601, 1813, (2301, 1150, 1150), (0.394, 0.394, 0.394)),  # spambase
        (4898, 1060, (2449, 1224, 1225), (0.216, 0.217, 0.216)),  # white wine
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_sizes_and_shares_of_the_kernel_paper(n, n_positive, sizes, positives, seed):
    y = (np.arange(n) < n_positive).astype(int)
    parts = split_half_quarters(y, random_state=seed)
    assert tuple(len(part) for part in parts) == sizes
    for part, share in zip(parts, positives, strict=True):
        assert abs(y[part].sum() - share * len(part)) <= 1.5  # one row, and the rounding of the share


def test_official_test_part_is_kept():
    y = np.arange(70) % 10 == 0
    train, validation, test = split_half_quarters(y, n_train=60, random_state=0)
    assert test.tolist() == list(range(60, 70))
    assert len(validation) == 10
    _assert_partition((train, validation), np.arange(60))
    assert y[validation].sum() == 1


def test_all_rows_official_training_rows_means_no_test_part():
    parts = split_half_quarters(_balanced(40), n_train=40, random_state=0)
    assert [len(part) for part in parts] == [20, 10, 10]


@pytest.mark.parametrize("n_train", [0, 10, 20, 41])
def test_impossible_official_split(n_train):
    with pytest.raises(ValueError, match=f"n_train={n_train} of 40 rows"):
        split_half_quarters(_balanced(40), n_train=n_train)


@pytest.mark.parametrize("split", SPLITS)
def test_seeds(split):
    y = _balanced(200)
    first, again, other = (split(y, random_state=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert not np.array_equal(split(y, random_state=np.random.RandomState(5))[0], first[0])


@pytest.mark.parametrize("seed", range(5))
def test_max_rows_draws_without_replacement(seed):
    folds = five_folds(_balanced(500), max_rows=101, random_state=seed)
    chosen = np.sort(np.concatenate([test for _, test in folds]))
    assert chosen.size == np.unique(chosen).size == 101
    assert chosen.max() > 101
    for train, test in folds:
        _assert_partition((train, test), chosen)


def test_max_rows_above_the_number_of_rows_changes_nothing():
    limited, free = (five_folds(_balanced(50), max_rows=m, random_state=0) for m in (8000, None))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(limited, free, strict=True))


@pytest.mark.parametrize("seed", range(3))
def test_stratified_folds_keep_the_shares(seed):
    y = np.repeat([0, 1], [950, 50])
    for _, test in five_folds(y, stratify=True, random_state=seed):
        assert y[test].sum() == 10


def test_plain_split_is_not_stratified():
    y = np.repeat([0, 1], [90, 30])
    counts = {int(y[split_two_thirds(y, random_state=seed)[1]].sum()) for seed in range(30)}
    assert len(counts) > 3


@pytest.mark.parametrize("split", SPLITS)
def test_missing_class_is_an_error(split):
    y = np.repeat([0, 1], [99, 1])
    with pytest.raises(ValueError, match=r"has no row of class 1.*stratify=True"):
        split(y, stratify=False, random_state=0)


@pytest.mark.parametrize("split", SPLITS)
def test_continuous_targets_are_split_without_a_class_check(split):
    y = np.linspace(0, 1, 30)
    assert len(np.concatenate(split(y, stratify=False, random_state=0))) == 30


@pytest.mark.parametrize("split", [split_two_thirds, split_half_quarters])
def test_stratifying_a_continuous_target_is_refused(split):
    with pytest.raises(ValueError, match="stratify=False, as for a continuous target"):
        split(np.linspace(0, 1, 30), stratify=True)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("y", [[], [0, 1], np.eye(9)])
def test_wrong_labels(split, y):
    with pytest.raises(ValueError, match="one dimension and at least"):
        split(y)


def test_too_few_rows_for_folds():
    with pytest.raises(ValueError, match="max_rows must be at least 5"):
        five_folds(_balanced(50), max_rows=4)


@pytest.mark.parametrize("container", [list, pd.Series, pl.Series])
def test_string_labels_in_any_container(container):
    y = ["g", "b"] * 30
    train, _ = split_two_thirds(container(y), random_state=0)
    assert np.array_equal(train, split_two_thirds(_balanced(60), random_state=0)[0])


def test_indices_fit_dense_sparse_and_frames():
    X = np.arange(60.0).reshape(30, 2)
    _, test = split_two_thirds(_balanced(30), random_state=0)
    expected = X[test]
    np.testing.assert_array_equal(sp.csr_matrix(X)[test].toarray(), expected)
    np.testing.assert_array_equal(pd.DataFrame(X).iloc[test].to_numpy(), expected)
    np.testing.assert_array_equal(pl.DataFrame(X)[test].to_numpy(), expected)


def test_folds_serve_as_cv():
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import cross_val_score

    y = _balanced(50)
    scores = cross_val_score(DummyClassifier(), np.zeros((50, 1)), y, cv=five_folds(y, random_state=0))
    assert scores.shape == (5,)
