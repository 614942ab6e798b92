"""Thresholds against linear programs and plain loops; gradients against differences; weights against repeated rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from toprank import TauFPL, TopPush, TopPushK
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean

QUADRATIC = SURROGATES["quadratic"]
ALL = [
    TopMean(),
    TopMean(k=2.5),
    TopMean(share=0.3),
    Quantile(0.3),
    *(SurrogateQuantile(0.1, beta, surrogate) for surrogate in SURROGATES.values() for beta in (0.3, 2.0)),
]
every_threshold = pytest.mark.parametrize("threshold", ALL, ids=repr)

tied_scores = st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.0, 1.0, 3.5]), min_size=4, max_size=9)


@given(scores=tied_scores, k=st.sampled_from([0.5, 1, 1.3, 2, 3]))
def test_top_mean_is_the_maximum_over_the_capped_simplex(scores, k):
    scores, weights = np.array(scores), np.tile([1.0, 2.0, 0.5], 3)[: len(scores)]
    value, p = TopMean(k=k).evaluate(scores, weights)
    best = linprog(-scores, A_eq=np.ones((1, len(scores))), b_eq=[1], bounds=[(0, w / k) for w in weights])
    assert value == pytest.approx(-best.fun, abs=1e-9)
    assert p @ scores == pytest.approx(value)
    assert p.sum() == pytest.approx(1)
    assert np.all((p >= 0) & (p <= weights / k + 1e-12))


@given(scores=tied_scores, tau=st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_quantile_is_the_largest_score_with_enough_rows_above(scores, tau):
    scores, weights = np.array(scores), np.tile([1.0, 2.0, 0.5], 3)[: len(scores)]
    candidates = [t for t in scores if weights[scores >= t].sum() >= tau * weights.sum() * (1 - 1e-12)]
    assert Quantile(tau).value(scores, weights) == max(candidates)


@pytest.mark.covering
@pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES)
@pytest.mark.parametrize("tau", [1e-4, 0.05, 0.9])
@pytest.mark.parametrize("beta", [1e-3, 1.0, 50.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_surrogate_quantile_solves_its_equation(surrogate, tau, beta, scale, rng):
    scores, weights = scale * rng.standard_normal(200), rng.uniform(0.1, 2, 200)
    t, p = SurrogateQuantile(tau, beta, surrogate).evaluate(scores, weights)
    mean = weights / weights.sum() @ surrogate.value(beta * (scores - t))
    assert mean == pytest.approx(tau, rel=1e-6)
    assert p.sum() == pytest.approx(1)
    assert np.all(p >= 0)


def test_order_of_the_three_thresholds(rng):
    """Proposition 3.1 of the framework: quantile <= mean of the top <= surrogate quantile."""
    scores, weights = rng.standard_normal(100), np.ones(100)
    for tau in (0.05, 0.2, 0.5):
        quantile = Quantile(tau).value(scores, weights)
        mean = TopMean(share=tau).value(scores, weights)
        assert quantile <= mean
        for surrogate in SURROGATES.values():
            for beta in (0.1, 1.0, 10.0):
                assert mean <= SurrogateQuantile(tau, beta, surrogate).value(scores, weights) + 1e-9


@every_threshold
def test_gradient(threshold, rng):
    scores, weights = rng.standard_normal(30), rng.uniform(0.5, 2, 30)
    _, p = threshold.evaluate(scores, weights)
    direction = rng.standard_normal(30)
    h = 1e-6
    ahead, behind = (threshold.value(scores + sign * h * direction, weights) for sign in (1, -1))
    assert (ahead - behind) / (2 * h) == pytest.approx(p @ direction, rel=1e-4, abs=1e-5)


@every_threshold
def test_weight_is_repetition(threshold, rng):
    scores, times = np.round(rng.standard_normal(20), 1), rng.integers(1, 4, 20)
    value, p = threshold.evaluate(scores, times.astype(float))
    repeated, q = threshold.evaluate(np.repeat(scores, times), np.ones(times.sum()))
    assert value == pytest.approx(repeated, abs=1e-9)
    assert p @ scores == pytest.approx(q @ np.repeat(scores, times), abs=1e-9)


def test_top_mean_of_more_rows_than_there_are():
    for k in (3, 5):
        with pytest.raises(ValueError, match=f"mean of the k={k} largest scores, but there are only 3"):
            TopMean(k=k).caps(np.ones(3))


def test_top_mean_of_a_share_of_all_rows_names_the_share():
    with pytest.raises(ValueError, match=r"a share tau=0.999999999999, .* only 190 .* use a smaller tau"):
        TopMean(share=1 - 1e-12).caps(np.ones(190))


@pytest.mark.parametrize("size", range(1, 200, 9))
def test_bounds_of_one_and_more_are_none(size):
    weights = np.linspace(0.7, 2.0, size)
    for threshold in (TopMean(k=0.7), TopMean(k=0.2), TopMean(share=0.7 / weights.sum())):
        assert threshold.caps(weights) is None
    if size > 1:
        np.testing.assert_array_equal(TopMean(k=0.71).caps(weights), weights / 0.71)


@pytest.mark.covering
@pytest.mark.parametrize("surrogate", ["hinge", "quadratic"])
@pytest.mark.parametrize("alpha", [1e-8, 1e-4, 0.1])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(4))
def test_the_top_row_alone_is_top_push(surrogate, alpha, kernel, seed):
    rng = np.random.default_rng(seed)
    y = rng.random(60) < 0.4
    X = rng.standard_normal((60, 3)) + 1.5 * y[:, None]
    options = {"surrogate": surrogate, "alpha": alpha, "kernel": kernel}
    plain = TopPush(**options).fit(X, y).decision_function(X)
    for model in (TopPushK(k=1, **options), TopPushK(k=0.5, **options), TauFPL(tau=1 / (~y).sum(), **options)):
        model.threshold = "trained"
        np.testing.assert_array_equal(model.fit(X, y).decision_function(X), plain)


@pytest.mark.covering
@pytest.mark.parametrize("threshold", [TopMean(k=3), Quantile(0.2), SurrogateQuantile(0.1, 1.0, QUADRATIC)], ids=repr)
@pytest.mark.parametrize("over", ["negatives", "all"])
@pytest.mark.parametrize("false_positives", [False, True])
@pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES)
def test_formulation_gradient(threshold, over, false_positives, surrogate, rng):
    formulation = Formulation(surrogate, threshold, over, false_positives)
    scores, positive = rng.standard_normal(40), np.arange(40) % 3 == 0
    weights, direction, h = rng.uniform(0.5, 2, 40), rng.standard_normal(40), 1e-6
    loss, gradient, t = formulation.evaluate(scores, positive, weights)
    ahead, behind = (formulation.evaluate(scores + sign * h * direction, positive, weights)[0] for sign in (1, -1))
    assert (ahead - behind) / (2 * h) == pytest.approx(gradient @ direction, rel=1e-4, abs=1e-5)
    rows = ~positive if over == "negatives" else np.full(40, True)
    assert t == threshold.value(scores[rows], weights[rows])
    share = weights[positive] / weights[positive].sum()
    by_hand = share @ surrogate.value(t - scores[positive])
    if false_positives:
        by_hand += weights[~positive] / weights[~positive].sum() @ surrogate.value(scores[~positive] - t)
    assert loss == pytest.approx(by_hand)


@pytest.mark.parametrize("name", ["exponential", "hinge"])
def test_conjugate_of_the_surrogate_quantile(name, rng):
    """Fenchel and Young: t*(p) ≥ p·s − t(s), with equality at p = ∇t(s)."""
    threshold, weights = SurrogateQuantile(0.1, 0.7, SURROGATES[name]), rng.uniform(0.1, 2, 30)
    share = weights / weights.sum()
    other = rng.dirichlet(np.ones(30))
    for scale in (0.1, 1.0, 10.0):
        scores = scale * rng.standard_normal(30)
        t, p = threshold.evaluate(scores, weights)
        assert threshold.conjugate(p, share) == pytest.approx(p @ scores - t, abs=1e-9)
        assert threshold.conjugate(other, share) >= other @ scores - t - 1e-9


@every_threshold
def test_what_it_declares_is_so(threshold, rng):
    weights = rng.uniform(0.5, 2.0, 30)
    gaps = []
    for _ in range(200):
        a, b = rng.standard_normal((2, 30))
        middle = threshold.value(0.5 * (a + b), weights)
        gaps.append(0.5 * (threshold.value(a, weights) + threshold.value(b, weights)) - middle)
    assert (min(gaps) >= -1e-12) == threshold.is_convex
    scores = rng.standard_normal(30)
    if threshold.is_maximum:
        caps = threshold.caps(weights)
        best = linprog(
            -scores, A_eq=np.ones((1, 30)), b_eq=[1], bounds=[(0, c) for c in caps] if caps is not None else None
        )
        assert threshold.value(scores, weights) == pytest.approx(-best.fun)
    else:
        with pytest.raises(ValueError, match="is no maximum over a simplex"):
            threshold.caps(weights)
    if threshold.is_implicit:
        assert threshold.implicit is threshold
    else:
        with pytest.raises(ValueError, match="no equation defines the threshold"):
            threshold.implicit  # noqa: B018
    if threshold.is_convex:
        with pytest.raises(ValueError, match="is no quantile"):
            threshold.level  # noqa: B018
    else:
        assert threshold.level == 0.3


def test_a_number_of_rows_becomes_a_share_of_parts():
    assert TopMean(k=3).of_parts(np.full(10, 2.0)) == TopMean(share=0.15)
    for threshold in (TopMean(), TopMean(share=0.2), Quantile(0.1), SurrogateQuantile(0.1, 1.0, QUADRATIC)):
        assert threshold.of_parts(np.ones(10)) is threshold
        assert threshold.k is None
    assert TopMean(k=3).k == 3


@pytest.mark.parametrize("name", [name for name, surrogate in SURROGATES.items() if surrogate.is_smooth])
def test_curvature_of_the_surrogate_quantile(name, rng):
    threshold, share = SurrogateQuantile(0.2, 0.7, SURROGATES[name]), rng.dirichlet(np.ones(40))
    scores, along, h = rng.standard_normal(40), rng.standard_normal(40), 1e-5
    t, p = threshold.evaluate(scores, share)
    change = threshold.evaluate(scores + h * along, share)[1] - threshold.evaluate(scores - h * along, share)[1]
    bend = threshold.curvature(scores, share, t, 3.0) @ (along - p @ along) ** 2
    assert bend == pytest.approx(3 * along @ change / (2 * h), rel=1e-4)


@pytest.mark.parametrize("name", ["quadratic", "huber", "logistic"])
def test_a_quantile_without_a_closed_conjugate_says_so(name):
    threshold, share = SurrogateQuantile(0.2, 0.7, SURROGATES[name]), np.full(4, 0.25)
    with pytest.raises(ValueError, match=f"quantile of the surrogate '{name}' has no conjugate in closed form"):
        threshold.conjugate(share, share)
