"""The projections against sorting, against the condition that characterises a projection, and in their corners."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank.solvers.projection import project_balanced, project_capped

# Few different numbers make ties; the others make hard sums.
numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-10, 10))
vectors = arrays(np.float64, st.integers(1, 8), elements=numbers)
scales = st.sampled_from([1e-12, 1.0, 1e12])
metrics = st.sampled_from([0.1, 1.0, 30.0])


@st.composite
def capped_problems(draw):
    """Two points and caps of sum at least 1: of equal rows, of weighted ones, and the tightest possible."""
    alpha0, beta0 = draw(vectors), draw(vectors)
    n = len(beta0)
    weights = draw(arrays(np.float64, n, elements=st.one_of(st.just(1.0), st.floats(0.1, 3.0))))
    k = 1 + draw(st.sampled_from([0.0, 0.3, 1.0])) * (weights.sum() - 1)
    return alpha0, beta0, weights / min(max(k, 0.1), weights.sum())


def by_sorting(alpha0, beta0):
    """Proposition 2 of the TopPush paper with all break points sorted and ρ interpolated between two of them."""
    points = np.sort(np.concatenate([alpha0, -beta0]))
    values = [np.maximum(alpha0 - x, 0).sum() - np.maximum(beta0 + x, 0).sum() for x in points]
    last = max((k for k, value in enumerate(values) if value >= 0), default=None)
    assert last is not None, "ρ is not negative at its first break point"
    gamma = points[last]
    if values[last] > 0:
        gamma += values[last] * (points[last + 1] - points[last]) / (values[last] - values[last + 1])
    return np.maximum(alpha0 - gamma, 0), np.maximum(beta0 + gamma, 0)


def top_mean(scores, caps):
    """Fill the largest scores up to their caps until 1 is used up."""
    value, left = 0.0, 1.0
    for j in np.argsort(-scores):
        value, left = value + min(caps[j], left) * scores[j], left - min(caps[j], left)
    return value


def assert_is_projection(alpha0, beta0, alpha, beta, caps=None, upper=None, rho=1.0):
    """Feasible, and no feasible point makes an acute angle with the rest r = point − projection, that of α times ρ.

    The largest r·z over the domain is explicit: a unit of α at row i is worth r_i and with it the best unit of β.
    """
    caps = np.ones(len(beta)) if caps is None else caps
    total, size = alpha.sum(), max(1.0, rho) * max(np.abs(alpha0).max(), np.abs(beta0).max()) * (len(alpha) + len(beta))
    assert alpha.min() >= 0
    assert beta.min() >= 0
    rounding = 1e-15 * size + np.finfo(float).tiny  # below the smallest normal number nothing is relative
    assert beta.sum() == pytest.approx(total, rel=1e-12, abs=rounding)
    assert np.all(beta <= caps * total * (1 + 1e-12) + rounding)
    rest = rho * (alpha0 - alpha)
    gains = rest + top_mean(beta0 - beta, caps)
    attained = rest @ alpha + (beta0 - beta) @ beta
    if upper is None:  # a cone: nothing is to be gained, and the projection attains zero
        assert gains.max() <= 1e-13 * size
        assert attained == pytest.approx(0, abs=1e-12 * size**2)
    else:
        assert np.all(alpha <= upper)
        assert attained >= upper @ np.maximum(gains, 0) - 1e-12 * size * (size + upper.sum())


@given(vectors, vectors, scales)
def test_balanced_agrees_with_sorting(alpha0, beta0, scale):
    alpha0, beta0 = scale * alpha0, scale * beta0
    result = project_balanced(alpha0, beta0)
    assert_is_projection(alpha0, beta0, *result)
    for part, expected in zip(result, by_sorting(alpha0, beta0), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-13 * scale, rtol=1e-12)


@given(capped_problems(), scales, metrics)
def test_capped_is_the_projection(problem, scale, rho):
    alpha0, beta0, caps = problem
    alpha0, beta0 = scale * alpha0, scale * beta0
    assert_is_projection(alpha0, beta0, *project_capped(alpha0, beta0, caps, rho=rho), caps=caps, rho=rho)


@given(capped_problems(), st.floats(0.01, 5), st.booleans(), metrics)
def test_with_upper_bounds(problem, bound, use_caps, rho):
    alpha0, beta0, caps = problem
    upper = bound * np.linspace(1, 2, len(alpha0))
    if use_caps:
        result = project_capped(alpha0, beta0, caps, upper, rho)
    else:
        result = project_balanced(alpha0, beta0, upper, rho)
    assert_is_projection(alpha0, beta0, *result, caps=caps if use_caps else None, upper=upper, rho=rho)


@given(capped_problems())
def test_projecting_twice_changes_nothing(problem):
    alpha0, beta0, caps = problem
    for project in (project_balanced, lambda alpha, beta: project_capped(alpha, beta, caps)):
        once = project(alpha0, beta0)
        for first, second in zip(once, project(*once), strict=True):
            np.testing.assert_allclose(first, second, atol=1e-13, rtol=1e-13)


@given(vectors, vectors)
def test_caps_that_cannot_bind(alpha0, beta0):
    loose = np.full(len(beta0), 1.5)
    barely_loose = np.r_[loose[:-1], 1 - 1e-16]
    for caps in (loose, barely_loose):
        for part, expected in zip(project_capped(alpha0, beta0, caps), project_balanced(alpha0, beta0), strict=True):
            np.testing.assert_allclose(part, expected, atol=1e-13, rtol=1e-13)


@pytest.mark.parametrize(
    ("alpha0", "beta0"),
    [([-1.0, -2.0], [-3.0]), ([0.0], [0.0]), ([1.0, 1.0], [-1.0, -1.0]), ([1.0], [-2.0, -2.0]), ([-2.0, -2.0], [2.0])],
)
def test_the_projection_is_zero(alpha0, beta0):
    alpha0, beta0 = np.array(alpha0), np.array(beta0)
    for alpha, beta in (project_balanced(alpha0, beta0), project_capped(alpha0, beta0, np.full(len(beta0), 0.9999999))):
        assert not alpha.any()
        assert not beta.any()


@pytest.mark.parametrize("k", [1.0, 2.5, 4.0])
def test_capped_agrees_with_an_exact_solver(rng, k):
    cp = pytest.importorskip("cvxpy")
    alpha0, beta0, weights = rng.normal(size=6) + 0.5, rng.normal(size=7), rng.uniform(0.5, 2, size=7)
    alpha, beta = cp.Variable(6, nonneg=True), cp.Variable(7, nonneg=True)
    limits = [cp.sum(beta) == cp.sum(alpha), beta <= weights / k * cp.sum(alpha)]
    distance = cp.sum_squares(alpha - alpha0) + cp.sum_squares(beta - beta0)
    cp.Problem(cp.Minimize(distance), limits).solve(solver=cp.CLARABEL)
    result = project_capped(alpha0, beta0, weights / k)
    for part, expected in zip(result, (alpha.value, beta.value), strict=True):
        np.testing.assert_allclose(part, expected, atol=1e-3)
    assert (
        sum(((part - x) ** 2).sum() for part, x in zip(result, (alpha0, beta0), strict=True)) <= distance.value + 1e-7
    )


@pytest.mark.parametrize("arrangement", ["random", "sorted", "tied"])
def test_many_rows(rng, arrangement):
    alpha0, beta0 = rng.normal(size=30_000), rng.normal(size=70_000)
    if arrangement == "sorted":
        alpha0, beta0 = np.sort(alpha0), np.sort(beta0)
    elif arrangement == "tied":
        alpha0, beta0 = np.round(alpha0), np.round(beta0)
    before = alpha0.copy(), beta0.copy()
    caps = rng.uniform(0.5, 2, size=70_000) / 500
    assert_is_projection(alpha0, beta0, *project_balanced(alpha0, beta0))
    assert_is_projection(alpha0, beta0, *project_capped(alpha0, beta0, caps), caps=caps)
    np.testing.assert_array_equal(before[0], alpha0)
    np.testing.assert_array_equal(before[1], beta0)
