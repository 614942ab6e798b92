"""Trees as arrays: the walk down a tree, one step at a time and many rows side by side."""

import numpy as np
import pytest

from toprank import TopForest
from toprank.datasets import make_imbalanced
from toprank.trees.plain_trees import PlainTrees, at_most


@pytest.fixture(scope="module")
def trees():
    """Random trees, among them one of a single leaf, whose thresholds are values of rows, with gaps going both ways."""
    rng = np.random.default_rng(0)
    parts = []
    for n_inner in (0, 1, 2, 7, 40, 150):
        n = 2 * n_inner + 1
        feature, left, right = np.full(n, -1), np.full(n, -1), np.full(n, -1)
        open_ends, used = [0], 1
        for _ in range(n_inner):
            node = open_ends.pop(rng.integers(len(open_ends)))
            feature[node], left[node], right[node] = rng.integers(3), used, used + 1
            open_ends += [used, used + 1]
            used += 2
        threshold = np.where(rng.random(n) < 0.5, rng.integers(-3, 4, n), rng.normal(size=n)).astype(float)
        ends = feature < 0
        numbers = np.where(ends, np.cumsum(ends) - 1, -1)
        gaps = rng.integers(0, 2, n)
        parts.append(_plain([0], feature, threshold, left, right, gaps, numbers, [ends.sum()], np.ones(n)))
    return PlainTrees.joined(parts)


def _plain(*columns):
    kinds = ("i8", "i4", "f8", "i4", "i4", "u1", "i4", "i8", "f4")
    return PlainTrees(*(np.asarray(column, kind) for column, kind in zip(columns, kinds, strict=True)))


def _leaf(trees, root, x):
    node = root
    while trees.feature[node] >= 0:
        value = float(x[trees.feature[node]])
        is_left = trees.missing_left[node] if np.isnan(value) else value <= trees.threshold[node]
        node = trees.left[node] if is_left else trees.right[node]
    return node


@pytest.mark.parametrize("n", [1, 7, 8, 9, 600])
def test_the_walk_is_that_of_each_row_alone(trees, n):
    rng = np.random.default_rng(n)
    X = np.where(rng.random((n, 3)) < 0.5, rng.integers(-3, 4, (n, 3)), rng.normal(size=(n, 3))).astype(np.float32)
    X[rng.random((n, 3)) < 0.2] = np.nan
    nodes = np.array([[_leaf(trees, root, x) for root in trees.roots] for x in X])
    np.testing.assert_array_equal(trees.leaf_numbers(X), trees.leaf[nodes])
    values = rng.normal(size=len(trees.leaf))
    expected = np.zeros(n)
    for of_tree in nodes.T:  # in the order of the trees: the same bits
        expected += values[of_tree]
    np.testing.assert_array_equal(trees.scores(X, values), expected)


def test_thresholds_in_single_precision_part_its_numbers_as_before(rng):
    thresholds = np.concatenate([rng.normal(size=500), [0.0, -0.0, 1.0, np.inf, 1e-50, -1e-50, 1 / 3]])
    near = thresholds.astype(np.float32)
    below = at_most(thresholds)
    for x in (near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))):
        np.testing.assert_array_equal(x.astype(np.float64) <= thresholds, x <= below)


def test_rows_that_are_wrong_are_refused_as_ever():
    X, y, _ = make_imbalanced(300, n_features=4, random_state=0)
    model = TopForest(tau=0.05, n_estimators=5, alpha=1.0, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.decision_function(np.asfortranarray(X)), scores)
    np.testing.assert_array_equal(model.decision_function(X.tolist()), scores)
    for wrong, said in (
        (X[:, :3], "3 features"),
        (X[:0], "0 sample"),
        (X[0], "1D array"),
        (np.full((1, 4), np.inf), "infinity"),
        (np.full((1, 4), 1e200), "too large"),
    ):
        with np.errstate(over="ignore"), pytest.raises(ValueError, match=said):
            model.decision_function(wrong)
