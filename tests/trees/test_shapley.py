"""Shapley values of trees: the definition over all subsets of features, and that they add up to the score."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from toprank.trees.plain_trees import PlainTrees
from toprank.trees.shapley import shapley_values


def expected_value(trees, values, node, x, known):
    """The mean of the leaf values if only some features are known: at others both ways, by the training rows."""
    if trees.feature[node] < 0:
        return values[node]
    feature, left, right = trees.feature[node], trees.left[node], trees.right[node]
    if feature in known:
        missing = np.isnan(x[feature])
        goes_left = trees.missing_left[node] if missing else x[feature] <= trees.threshold[node]
        return expected_value(trees, values, left if goes_left else right, x, known)
    shares = (float(trees.cover[child]) / float(trees.cover[node]) for child in (left, right))
    of_children = (expected_value(trees, values, child, x, known) for child in (left, right))
    return sum(share * value for share, value in zip(shares, of_children, strict=True))


def by_definition(trees, values, x):
    """The mean over all orders of the features of what a feature changes when it becomes known."""
    d = len(x)
    worth = {
        known: sum(expected_value(trees, values, root, x, known) for root in trees.roots)
        for size in range(d + 1)
        for known in combinations(range(d), size)
    }
    found = np.zeros(d)
    for known, value in worth.items():
        for j in set(range(d)) - {*known}:
            change = worth[tuple(sorted((*known, j)))] - value
            found[j] += change / (d * comb(d - 1, len(known)))
    return found, worth[()]


def grown(kind, d, *, n=200, n_trees=3, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[rng.random((n, d)) < 0.1] = np.nan
    y = np.nan_to_num(X).sum(axis=1) + rng.normal(size=n)
    weights = rng.random(n) + 0.1
    trees = PlainTrees.of(kind(n_trees, random_state=0, **options).fit(X, y, sample_weight=weights).estimators_)
    return trees, trees.node_values(rng.normal(size=int(trees.n_leaves.sum()))), X


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("kind", [ExtraTreesRegressor, RandomForestRegressor])
def test_they_are_the_values_of_the_definition(kind, d):
    trees, values, X = grown(kind, d)
    found, base = shapley_values(trees, values, X[:3])
    for x, of_row in zip(X, found, strict=False):
        expected, mean = by_definition(trees, values, x)
        np.testing.assert_allclose(of_row, expected, atol=1e-10)
        assert base == pytest.approx(mean, abs=1e-10)


def test_trees_grown_best_first_and_trees_that_split_nothing():
    trees, values, X = grown(RandomForestRegressor, 3, max_leaf_nodes=6)
    found, _ = shapley_values(trees, values, X[:2])
    np.testing.assert_allclose(found[0], by_definition(trees, values, X[0])[0], atol=1e-10)
    trees, values, X = grown(ExtraTreesRegressor, 3, min_samples_leaf=200)
    found, base = shapley_values(trees, values, X)
    assert not found.any()
    assert base == pytest.approx(values.sum())


def test_they_add_up_to_the_score():
    trees, values, X = grown(ExtraTreesRegressor, 40, n=400, n_trees=25)  # deep trees, groups of rows, several threads
    found, base = shapley_values(trees, values, X[:37])
    np.testing.assert_allclose(found.sum(axis=1) + base, trees.scores(X[:37], values), atol=1e-9)
    one_by_one = np.vstack([shapley_values(trees, values, X[i : i + 1])[0] for i in range(3)])
    np.testing.assert_array_equal(found[:3], one_by_one)
    assert shapley_values(trees, values, X[:0])[0].shape == (0, 40)
