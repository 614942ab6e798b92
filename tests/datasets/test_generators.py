"""Generators against the answers that are known for them."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from toprank.datasets import make_imbalanced, make_outlier, make_randnet, make_randpoly, optimal_tpr

N = 20_000
# Five standard errors of a mean of N uniforms on an interval of length 1; the largest spacing near
# an end point of the interval, about log(N) / N, and the outlier's share, 2 / N, are far smaller.
TOLERANCE = 5 / np.sqrt(12 * N)


def _hinge(s):
    return np.maximum(0, 1 + s)


def _scores(w, seed):
    X, y = make_outlier(N, random_state=seed)
    scores = X @ np.asarray(w, dtype=float)
    return scores, scores[y == 1], scores[y == 0]


def _false_negatives(threshold, positives):
    return _hinge(threshold - positives).mean()


def _top_mean(scores, k):
    return np.sort(scores)[-k:].mean()


@pytest.mark.parametrize("seed", range(3))
def test_outlier_support(seed):
    X, y = make_outlier(500, random_state=seed)
    assert X.shape == (1001, 2)
    assert X.dtype == np.float64
    assert y.tolist() == [0] * 500 + [1] * 500 + [0]
    assert X[-1].tolist() == [2, 0]
    assert np.all((X[:500, 0] >= -1) & (X[:500, 0] <= 0))
    assert np.all((X[500:-1, 0] >= 0) & (X[500:-1, 0] <= 1))
    assert np.all(np.abs(X[:, 1]) <= 1)
    # Five standard errors of a mean of 1000 uniforms on [-1, 1].
    assert abs(X[:-1, 1].mean()) < 5 / np.sqrt(3 * 1000)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_table_3_1_toppush_and_toppushk(k, seed):
    _, positives, negatives = _scores((1, 0), seed)
    threshold = _top_mean(negatives, k)
    assert threshold == pytest.approx(2 / k, abs=TOLERANCE)
    assert _false_negatives(threshold, positives) == pytest.approx(0.5 + 2 / k, abs=2 * TOLERANCE)
    _, positives, negatives = _scores((0, 0), seed)
    assert _top_mean(negatives, k) == 0
    assert _false_negatives(0, positives) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tau", [0.05, 0.2, 0.4])
def test_table_3_1_topmeank(tau, seed):
    scores, positives, _ = _scores((1, 0), seed)
    threshold = _top_mean(scores, round(tau * scores.size))
    # The mean of the top tau is less exact than that of all rows: fewer of them.
    tolerance = TOLERANCE / np.sqrt(tau) + 2 / (tau * N)
    objective = _false_negatives(threshold, positives)
    assert threshold == pytest.approx(1 - tau, abs=tolerance)
    assert objective == pytest.approx(1.5 - tau, abs=tolerance + TOLERANCE)
    assert objective > 1  # so the zero vector, with objective 1, is better


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tau", [0.05, 0.2, 0.4])
def test_table_3_1_grill_with_the_sign_put_right(tau, seed):
    scores, positives, negatives = _scores((1, 0), seed)
    threshold = np.sort(scores)[-round(tau * scores.size)]
    # A quantile of N uniforms has standard error sqrt(q (1 - q) / N) <= 1 / sqrt(4 N).
    tolerance = 5 / np.sqrt(4 * N)
    objective = _false_negatives(threshold, positives) + _hinge(negatives - threshold).mean()
    assert threshold == pytest.approx(1 - 2 * tau, abs=tolerance)
    assert objective == pytest.approx(1.5 - 2 * tau * (1 - tau), abs=tolerance + 2 * TOLERANCE)
    assert abs(objective - (1.5 + 2 * tau * (1 - tau))) > 2 * tolerance  # what is printed


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("tau", "beta"), [(0.2, 0.1), (0.2, 0.2), (0.1, 0.4), (0.05, 1.0)])
def test_table_3_1_patmat(tau, beta, seed):
    def solve(scores):
        return brentq(lambda t: _hinge(beta * (scores - t)).mean() - tau, -10, 10 + 1 / beta, xtol=1e-12)

    zeros, positives, _ = _scores((0, 0), seed)
    threshold = solve(zeros)
    assert threshold == pytest.approx((1 - tau) / beta, abs=1e-9)
    assert _false_negatives(threshold, positives) == pytest.approx(1 + threshold)

    scores, positives, _ = _scores((1, 0), seed)
    threshold = solve(scores)
    expected = (1 - tau) / beta if beta <= tau else 1 + 1 / beta - 2 * np.sqrt(tau / beta)
    # The threshold is at most as inexact as the mean over the share of rows on the sloped part.
    tolerance = 2 * TOLERANCE / min(1, np.sqrt(tau / beta))
    assert threshold == pytest.approx(expected, abs=tolerance)
    assert _false_negatives(threshold, positives) == pytest.approx(0.5 + expected, abs=tolerance + TOLERANCE)


@pytest.mark.parametrize("make", [make_randnet, make_randpoly])
@pytest.mark.parametrize("seed", range(5))
def test_ranking_functions_order_the_levels(make, seed):
    X, y, scores = make(400, 20, n_levels=4, random_state=seed)
    assert X.shape == (400, 20)
    assert np.abs(X).max() <= 1
    assert np.unique(y).tolist() == [0, 1, 2, 3]
    higher = y[:, None] > y[None, :]
    assert np.all(scores[:, None] > scores[None, :], where=higher)


def test_randpoly_is_a_standardised_mean():
    _, _, scores = make_randpoly(5000, random_state=0)
    assert scores.mean() == pytest.approx(0, abs=1e-12)
    # Terms of degree 1, 2 and 3 are nearly uncorrelated: the variance of their mean is near 1/3.
    assert scores.var() == pytest.approx(1 / 3, abs=0.05)


def test_randnet_is_bounded_by_its_output_unit():
    _, _, scores = make_randnet(5000, n_hidden=40, random_state=0)
    assert np.abs(scores).max() < 1
    assert np.ptp(scores) > 1


@pytest.mark.parametrize(("make", "published"), [(make_randnet, 195_907), (make_randpoly, 225_131)])
def test_published_number_of_training_pairs_is_plausible(make, published):
    """Table 1 of the RankNCG paper: pairs of different levels among 80 % of 1000 rows."""
    pairs = []
    for seed in range(30):
        sizes = np.bincount(make(1000, random_state=seed)[1])
        pairs.append((1000**2 - (sizes**2).sum()) / 2 * (800 * 799) / (1000 * 999))
    assert min(pairs) < published < max(pairs)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("separation", "max_fpr", "condition"), [(2.0, 0.05, 1.0), (3.0, 0.01, 100.0)])
def test_imbalanced_reaches_its_optimal_tpr(separation, max_fpr, condition, seed):
    X, y, direction = make_imbalanced(
        60_000, positive_share=1 / 3, separation=separation, condition=condition, random_state=seed
    )
    scores = X @ direction
    expected = optimal_tpr(max_fpr, separation=separation)
    true_positives = (scores[y == 1] > norm.isf(max_fpr)).mean()
    false_positives = (scores[y == 0] > norm.isf(max_fpr)).mean()
    assert abs(true_positives - expected) < 5 * np.sqrt(expected * (1 - expected) / 20_000)
    assert abs(false_positives - max_fpr) < 5 * np.sqrt(max_fpr * (1 - max_fpr) / 40_000)


@pytest.mark.parametrize("seed", range(3))
def test_no_direction_beats_the_optimum(seed):
    X, y, direction = make_imbalanced(60_000, 5, positive_share=0.5, condition=30.0, random_state=seed)
    best = optimal_tpr(0.1, separation=2.0)
    mean_difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)

    def tpr(w):
        scores = X @ w
        return (scores[y == 1] > np.quantile(scores[y == 0], 0.9)).mean()

    # The empirical threshold adds to the binomial error; ten standard errors cover both.
    tolerance = 10 * np.sqrt(0.25 / 30_000)
    assert abs(tpr(direction) - best) < tolerance
    others = np.random.default_rng(seed).standard_normal((20, 5))
    assert max(tpr(w) for w in others) < best + tolerance
    assert tpr(mean_difference) < best - tolerance


@pytest.mark.parametrize(("n", "share", "expected"), [(1000, 0.05, 50), (1000, 1e-6, 1), (10, 0.99, 9)])
def test_imbalanced_number_of_positives(n, share, expected):
    X, y, direction = make_imbalanced(n, 3, positive_share=share, random_state=0)
    assert X.shape == (n, 3)
    assert direction.shape == (3,)
    assert y.sum() == expected


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("positive_share", 0.0),
        ("positive_share", 1.0),
        ("positive_share", np.nan),
        ("positive_share", "few"),
        ("separation", -1.0),
        ("separation", np.nan),
        ("separation", np.inf),
        ("separation", None),
        ("condition", 0.5),
        ("condition", np.nan),
        ("condition", np.inf),
    ],
)
def test_imbalanced_refuses(name, wrong):
    with pytest.raises(ValueError, match=f"{name} must be .* got {wrong!r}"):
        make_imbalanced(**{name: wrong})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (make_outlier, "n_per_class"),
        *((make_randnet, name) for name in ("n_samples", "n_features", "n_hidden", "n_levels")),
        *((make_randpoly, name) for name in ("n_samples", "n_features", "n_levels")),
        *((make_imbalanced, name) for name in ("n_samples", "n_features")),
    ],
)
@pytest.mark.parametrize("wrong", [10.5, 10.0, np.nan, "ten", None, True, 0, -3])
def test_sizes_are_whole_numbers(make, name, wrong):
    with pytest.raises(ValueError, match=f"{name} must be a whole number of at least [12], got {wrong!r}"):
        make(**{name: wrong})


def test_the_smallest_sizes():
    assert make_outlier(np.int64(1), random_state=0)[0].shape == (3, 2)
    for make in (make_randnet, make_randpoly):
        assert make(2, 1, n_levels=2, random_state=0)[1].tolist() in ([0, 1], [1, 0])
    assert sorted(make_imbalanced(2, 1, random_state=0)[1].tolist()) == [0, 1]


def test_optimal_tpr_is_a_concave_roc_curve():
    rates = np.linspace(0, 1, 101)
    curve = optimal_tpr(rates, separation=1.5)
    assert curve[0] == 0
    assert curve[-1] == 1
    assert np.all(np.diff(curve) > 0)
    assert np.all(np.diff(curve, 2) < 1e-12)
    np.testing.assert_allclose(optimal_tpr(rates, separation=0), rates, atol=1e-12)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan, [0.5, 2.0]])
def test_optimal_tpr_refuses(wrong):
    with pytest.raises(ValueError, match=r"max_fpr must be in \[0, 1\]"):
        optimal_tpr(wrong, separation=1.0)
    with pytest.raises(ValueError, match="separation must be a finite number of at least 0, got nan"):
        optimal_tpr(0.5, separation=np.nan)


@pytest.mark.parametrize("make", [make_outlier, make_randnet, make_randpoly, make_imbalanced])
def test_seeds(make):
    first, again, other = make(random_state=7), make(random_state=7), make(random_state=8)
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(first[0], other[0])
    assert first[0].dtype == np.float64
    assert first[1].dtype == np.int64
