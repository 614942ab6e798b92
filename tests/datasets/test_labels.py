"""Labels to classes and targets to levels."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank.datasets import binarize, discretize, load

CONTAINERS = [list, np.array, pd.Series, pl.Series, lambda y: pd.Series(y).astype("category")]


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("labels", [["a", "b", "c", "b"], [3, -1, 0, -1], [0.5, 1.5, 2.5, 1.5]])
def test_scalar_collection_and_callable_agree(container, labels):
    expected = [0, 1, 0, 1]
    y = container(labels)
    for positive in (labels[1], [labels[1]], {labels[1]}, np.array([labels[1]]), lambda v: v == labels[1]):
        result = binarize(y, positive=positive)
        assert result.tolist() == expected
        assert result.dtype == np.int64


def test_booleans_and_numpy_scalars():
    assert binarize([True, False], positive=True).tolist() == [1, 0]
    assert binarize([2, 3], positive=np.int8(3)).tolist() == [0, 1]
    assert binarize(np.array(["g", "b"]), positive=np.str_("g")).tolist() == [1, 0]


@given(data=st.data())
def test_binarize_is_membership(data):
    present = sorted(data.draw(st.sets(st.integers(0, 4), min_size=2)))
    labels = st.sampled_from(present)
    positive = data.draw(st.sets(labels, min_size=1, max_size=len(present) - 1))
    y = data.draw(st.permutations(present + data.draw(st.lists(labels, max_size=35))))
    assert binarize(np.array(y), positive=positive).tolist() == [int(label in positive) for label in y]


def test_absent_label_names_those_present():
    with pytest.raises(ValueError, match=r"do not occur in y: \['eggs'\]. Labels in y: \['spam', 'ham'\]"):
        binarize(["spam", "ham"], positive="eggs")
    with pytest.raises(ValueError, match=r"do not occur in y: \[9\]"):
        binarize([7, 8, 3], positive=[7, 9])


def test_a_string_is_not_the_number_it_spells():
    with pytest.raises(ValueError, match=r"do not occur in y: \['1'\]"):
        binarize([0, 1], positive="1")
    with pytest.raises(ValueError, match=r"do not occur in y: \[1\]"):
        binarize(["0", "1"], positive=1)


@pytest.mark.parametrize("positive", [[0, 1], lambda y: y > 5, []])
def test_one_class_is_refused(positive):
    with pytest.raises(ValueError, match="both classes are needed"):
        binarize([0, 1, 1], positive=positive)


def test_long_lists_of_labels_are_cut():
    with pytest.raises(ValueError, match=r"19\] and 80 more"):
        binarize(range(100), positive=-1)


@pytest.mark.parametrize(
    "y",
    [
        [1.0, np.nan, 0.0],
        np.array(["a", None, "b"], dtype=object),
        pd.Series([1, None, 0], dtype="Int64"),
        pd.Series(["a", None, "b"]),
        pl.Series([1, None, 0]),
        pl.Series(["a", None, "b"]),
    ],
)
def test_missing_labels_are_refused(y):
    with pytest.raises(ValueError, match="1 missing labels"):
        binarize(y, positive=1)


def test_label_matrix_is_refused():
    with pytest.raises(ValueError, match="choose one column"):
        binarize(np.eye(2), positive=1)


@pytest.mark.parametrize("predicate", [lambda y: y * 2, lambda y: True, lambda y: (y > 0)[:1]])
def test_predicate_must_return_one_boolean_a_label(predicate):
    with pytest.raises(ValueError, match="boolean array with one entry per label"):
        binarize([0, 1, 2], positive=predicate)


targets = arrays(np.float64, st.integers(2, 60), elements=st.floats(-1e6, 1e6, width=32))


@pytest.mark.parametrize("strategy", ["width", "count"])
@given(target=targets, n_levels=st.integers(2, 5))
def test_levels_are_monotone_and_complete(strategy, target, n_levels):
    try:
        levels = discretize(target, n_levels, strategy=strategy)
    except ValueError as error:
        if "stay empty" in str(error):
            return
        raise
    assert np.unique(levels).tolist() == list(range(n_levels))
    order = np.argsort(target)
    assert np.all(np.diff(levels[order]) >= 0)
    equal = np.diff(target[order]) == 0
    assert np.all(np.diff(levels[order])[equal] == 0)


@given(n=st.integers(2, 80), n_levels=st.integers(2, 6), seed=st.integers(0, 99))
def test_count_levels_are_balanced_without_ties(n, n_levels, seed):
    assume(n >= n_levels)
    target = np.random.default_rng(seed).permutation(n).astype(float)
    sizes = np.bincount(discretize(target, n_levels, strategy="count"))
    assert sizes.max() - sizes.min() <= 1


def test_width_levels_by_hand():
    assert discretize([0, 2.9, 3, 5.9, 6, 9], 3).tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("wrong", [[], [[1.0, 2.0]], [1.0, np.nan], [1.0, np.inf]])
def test_targets_refused(wrong):
    with pytest.raises(ValueError, match="target must be"):
        discretize(wrong, 2)


def test_settings_refused():
    with pytest.raises(ValueError, match="at least 2, got 1"):
        discretize([1.0, 2.0], 1)
    with pytest.raises(ValueError, match=r"n_levels must be a whole number of at least 2, got 2\.5"):
        discretize([1.0, 2.0], 2.5)
    with pytest.raises(ValueError, match="got 'quantile'"):
        discretize([1.0, 2.0], 2, strategy="quantile")
    with pytest.raises(ValueError, match=r"levels \[1\] stay empty"):
        discretize([0.0, 0.1, 1.0], 3)
    with pytest.raises(ValueError, match="stay empty"):
        discretize([5.0, 5.0], 2)


def _training_pairs(levels):
    """Expected number of pairs of different levels among a random 80 % of the rows."""
    sizes, n = np.bincount(levels), len(levels)
    return (n**2 - (sizes**2).sum()) / 2 * (0.8 * n * (0.8 * n - 1)) / (n * (n - 1))


@pytest.mark.skipif(not os.environ.get("TOPRANK_DATA"), reason="TOPRANK_DATA names no data folder")
@pytest.mark.parametrize(
    ("name", "n_levels", "published", "column"),
    [
        ("california_housing", 3, 82_420_255, "target"),
        ("abalone", 3, 3_713_729, 0),
        ("wisconsin_prognostic", 4, 8_162, 0),
        ("stocks", 5, 217_301, 0),
    ],
)
def test_published_pair_counts_are_those_of_equal_widths(name, n_levels, published, column):
    """Table 1 of the RankNCG paper, in rows where the target or the first column comes near it."""
    data = load(name)
    values = data.y if column == "target" else data.X[:, column]
    assert _training_pairs(discretize(values, n_levels)) == pytest.approx(published, rel=0.005)
    if name != "abalone":
        balanced = _training_pairs(np.arange(len(values)) % n_levels)
        assert balanced > 1.05 * published
