"""The loss over pairs against loops over all pairs: value, gradient, curvature, for graphs, pairs and weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit

from toprank.pairwise.graph import Preferences, check_pairs, strength_matrix
from toprank.pairwise.objective import LossPoint, PairLoss

GRAPHS = {
    "full": "full",
    "chain": "chain",
    "edges": [(2, 0), (1, 3, 2.5), (0, 1, 0.5), (2, 0, 1.0)],
}


def brute_force(preferences, s):
    """Mean loss, gradient and Hessian in the scores by a loop over pairs."""
    n, loss, total = len(s), 0.0, 0.0
    gradient, hessian = np.zeros(n), np.zeros((n, n))

    def add(i, j, p):
        nonlocal loss, total
        margin = s[i] - s[j]
        loss -= p * log_expit(margin)
        total += p
        difference = np.zeros(n)
        difference[i], difference[j] = 1, -1
        gradient[:] -= p * expit(-margin) * difference
        hessian[:] += p * expit(margin) * expit(-margin) * np.outer(difference, difference)

    for i in range(n):
        for j in range(n):
            p = preferences.strengths[preferences.level[i], preferences.level[j]]
            if p:
                add(i, j, p * preferences.weights[i] * preferences.weights[j])
    for (i, j), p in zip(preferences.pairs, preferences.pair_weights, strict=True):
        add(i, j, p)
    return loss / total, gradient / total, hessian / total


def random_preferences(rng, graph, n=30, n_pairs=10):
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(n_pairs)], dtype=np.int64).reshape(-1, 2)
    return Preferences(
        rng.integers(0, 4, n),
        np.zeros((4, 4)) if graph is None else strength_matrix(GRAPHS[graph], np.arange(4)),
        rng.random(n) + 0.5,
        pairs,
        rng.random(n_pairs),
    )


@pytest.mark.covering
@pytest.mark.parametrize("summation", ["exact", "direct"])
@pytest.mark.parametrize("n_pairs", [0, 10])
@pytest.mark.parametrize("graph", ["full", "chain", "edges", None])
@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
def test_against_all_pairs(spread, graph, n_pairs, summation, rng):
    if graph is None and not n_pairs:
        n_pairs = 5
    preferences = random_preferences(rng, graph, n_pairs=n_pairs)
    s = spread * rng.normal(size=30) + 1000
    value, gradient, hessian = brute_force(preferences, s)
    point = PairLoss(preferences, summation)(s)
    assert point.value == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(point.gradient, gradient, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(point.curvature, hessian.diagonal(), rtol=1e-9, atol=1e-14)
    for direction in (rng.normal(size=30), np.ones(30)):
        np.testing.assert_allclose(point.hessian_product(direction), hessian @ direction, rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("summation", ["exact", "erfc"])
def test_too_many_boxes(summation, rng, monkeypatch):
    """Wide scores of many levels are summed level by level, with the same result."""
    preferences = random_preferences(rng, "edges")
    s, direction = 10 * rng.normal(size=30), rng.normal(size=30)
    in_boxes = PairLoss(preferences, summation)(s)
    expected = in_boxes.value, in_boxes.gradient, in_boxes.curvature, in_boxes.hessian_product(direction)
    monkeypatch.setattr("toprank.pairwise.objective.MAX_CELLS", 3)
    monkeypatch.delattr(LossPoint, "_polynomials")
    point = PairLoss(preferences, summation)(s)
    for value, other in zip(
        (point.value, point.gradient, point.curvature, point.hessian_product(direction)), expected, strict=True
    ):
        np.testing.assert_allclose(value, other, rtol=1e-9, atol=1e-14)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.floats(0, 50), st.sampled_from(["full", "chain", "edges"]))
def test_shift_free_convex_and_symmetric(seed, spread, graph):
    rng = np.random.default_rng(seed)
    preferences = random_preferences(rng, graph, n=20, n_pairs=3)
    if not preferences.total > 0:
        return
    loss = PairLoss(preferences)
    s, d, e = spread * rng.normal(size=20), rng.normal(size=20), rng.normal(size=20)
    point = loss(s)
    assert loss(s + 7).value == pytest.approx(point.value, rel=1e-10, abs=1e-300)
    assert point.gradient.sum() == pytest.approx(0, abs=1e-13)
    assert d @ point.hessian_product(d) >= -1e-14
    assert d @ point.hessian_product(e) == pytest.approx(e @ point.hessian_product(d), rel=1e-8, abs=1e-13)
    assert loss(s + d).value >= point.value + point.gradient @ d - 1e-12


def test_erfc_gradient_is_near_the_true_one(rng):
    preferences = random_preferences(rng, "full", n=200)
    s = 2 * rng.normal(size=200)
    exact, approximate = PairLoss(preferences)(s), PairLoss(preferences, "erfc")(s)
    assert approximate.value == exact.value
    # each pair is off by at most 0.0227, and each row is in pairs of total weight at most its share
    mass = np.bincount(preferences.level, preferences.weights, minlength=4)
    joined = (preferences.strengths + preferences.strengths.T) @ mass
    bound = 0.0228 * preferences.weights * joined[preferences.level] / preferences.total
    assert np.all(np.abs(approximate.gradient - exact.gradient) <= bound)
    assert np.abs(approximate.gradient - exact.gradient).max() > 1e-5


def test_two_levels_are_logistic_regression_on_differences(rng):
    s = rng.normal(size=9)
    preferences = Preferences(
        np.repeat([0, 1], [4, 5]), strength_matrix("full", np.arange(2)), np.ones(9), np.zeros((0, 2), int), np.zeros(0)
    )
    margins = s[4:, None] - s[:4]
    assert PairLoss(preferences)(s).value == pytest.approx(np.log1p(np.exp(-margins)).mean(), rel=1e-12)


def test_strength_matrix():
    np.testing.assert_array_equal(strength_matrix("full", np.arange(3)), [[0, 0, 0], [1, 0, 0], [1, 1, 0]])
    np.testing.assert_array_equal(strength_matrix("chain", np.arange(3)), [[0, 0, 0], [1, 0, 0], [0, 1, 0]])
    edges = strength_matrix([("b", "a"), ("a", "c", 0.5), ("b", "a", 2.0)], np.array(["a", "b", "c"]))
    np.testing.assert_array_equal(edges, [[0, 0, 0.5], [3, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="graph must be 'full', 'chain' or a list of edges, got 'ring'"):
        strength_matrix("ring", np.arange(3))
    with pytest.raises(ValueError, match=r"y has 1001 levels, more than 1000; cut it .*discretize"):
        strength_matrix("full", np.arange(1001))


def test_check_pairs():
    pairs, weights = check_pairs([[0, 1], [2, 0]], None, 3)
    assert pairs.tolist() == [[0, 1], [2, 0]]
    assert weights.tolist() == [1, 1]
    for bad, message in [
        ([[0.5, 1]], "pairs must be integers"),
        ([0, 1], r"got int64 of shape \(2,\)"),
        ([[0, 3]], "pairs name row 3, but X has the rows 0 to 2"),
        ([[-1, 0]], "pairs name row -1"),
        ([[2, 2]], "prefer row 2 to itself"),
    ]:
        with pytest.raises(ValueError, match=message):
            check_pairs(bad, None, 3)
    with pytest.raises(ValueError, match="pair_weight must be 1 finite numbers"):
        check_pairs([[0, 1]], [np.nan], 3)
    with pytest.raises(ValueError, match="without pairs"):
        check_pairs(None, [1.0], 3)
