"""The kernel problem with a linear kernel is the linear problem."""

import numpy as np
import pytest

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES, get_surrogate
from toprank.formulations.thresholds import SurrogateQuantile, TopMean
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.solvers.dual_cd import solve_dual_cd
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.low_rank import solve_low_rank
from toprank.solvers.pair_ascent import solve_kernel_pairs
from toprank.solvers.problem import DualPoint, Problem
from toprank.solvers.working_set_newton import solve_newton

CASES = [
    (TopMean(), "negatives"),
    (TopMean(k=3), "negatives"),
    (TopMean(share=0.4), "all"),
    (SurrogateQuantile(0.1, 0.5, get_surrogate("quadratic")), "all"),
]


def make(rng, threshold, over, surrogate="quadratic", n=60):
    positive = np.arange(n) % 4 == 0
    X = rng.standard_normal((n, 3)) + positive[:, None]
    weights, formulation = rng.uniform(0.5, 2, n), Formulation(get_surrogate(surrogate), threshold, over)
    linear = Problem(X, positive, weights, formulation, 0.1)
    gram = Gram(Kernel.resolve("linear", X), X, 10.0)
    return linear, KernelProblem(gram, positive, weights, formulation, 0.1)


@pytest.mark.parametrize(("threshold", "over"), CASES)
def test_shares_scores_and_objective_are_those_of_the_linear_problem(threshold, over, rng):
    linear, kernel = make(rng, threshold, over)
    for name in ("positives", "positive_share", "threshold_rows", "threshold_weights", "threshold_share"):
        np.testing.assert_array_equal(getattr(linear, name), getattr(kernel, name))
    c = rng.standard_normal(60)
    w = linear.X.T @ c
    np.testing.assert_allclose(kernel.scores(c), linear.scores(w), atol=1e-11)
    assert kernel.primal(c, kernel.scores(c)) == pytest.approx(linear.primal(w, linear.scores(w)), rel=1e-11)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize(("threshold", "over"), CASES)
def test_lower_bound_is_that_of_the_linear_problem(threshold, over, surrogate, rng):
    linear, kernel = make(rng, threshold, over, surrogate)
    s = linear.scores(rng.standard_normal(3))
    t, p = threshold.evaluate(s[linear.threshold_rows], linear.threshold_weights)
    y = linear.positive_share * linear.formulation.surrogate.derivative(t - s[linear.positives])
    point = DualPoint(y, p, float(p @ s[linear.threshold_rows]) - t)
    assert kernel.lower_bound(point) == pytest.approx(linear.lower_bound(point), rel=1e-9)
    assert linear.lower_bound(linear.dual_point_at(s)) == pytest.approx(linear.lower_bound(point), rel=1e-9)
    np.testing.assert_allclose(linear.X.T @ kernel.signed(y, p), _combined(linear, y, p), atol=1e-12)


def _combined(problem, y, p):
    X = problem.X
    return X[problem.positives].T @ y - y.sum() * X[problem.threshold_rows].T @ p


def test_lower_bound_is_below_the_optimum(rng):
    linear, kernel = make(rng, TopMean(k=3), "negatives")
    best = solve_newton(linear, tol=1e-9).primal
    for _ in range(20):
        y = linear.positive_share * rng.random(len(linear.positives))
        p = rng.dirichlet(np.full(len(linear.threshold_rows), 20.0))
        caps = linear.formulation.threshold.caps(linear.threshold_weights)
        assert np.all(p <= caps)
        assert kernel.lower_bound(DualPoint(y, p)) <= best * (1 + 1e-9)


@pytest.mark.parametrize(("solve", "tol"), [(solve_kernel_pairs, 1e-8), (solve_low_rank, 1e-8), (solve_dual_cd, 1e-3)])
@pytest.mark.parametrize(("threshold", "over"), CASES)
def test_a_row_of_weight_zero_is_a_removed_row_with_a_score(threshold, over, solve, tol, rng):
    """The highest of the rows that the threshold looks at is among those removed."""
    n = 60
    positive, X = np.arange(n) % 4 == 0, rng.standard_normal((n, 3))
    weights, kept = rng.uniform(0.5, 2, n), np.arange(n) % 5 != 1
    X[1] = 3.0
    formulation, kernel = Formulation(get_surrogate("quadratic"), threshold, over), Kernel.resolve("rbf", X, 0.3)
    whole = KernelProblem(Gram(kernel, X, 10.0), positive, np.where(kept, weights, 0.0), formulation, 0.1)
    part = KernelProblem(Gram(kernel, X[kept], 10.0), positive[kept], weights[kept], formulation, 0.1)
    options = {"cache_size": 10.0} if solve is solve_kernel_pairs else {}
    found, expected = (solve(problem, tol=tol, **options) for problem in (whole, part))
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=2 * tol)
    assert not found.coef[~kept].any()
    np.testing.assert_allclose(found.coef[kept] @ whole.gram.full[kept], whole.scores(found.coef))
    np.testing.assert_allclose(whole.scores(found.coef)[kept], part.scores(expected.coef), atol=10 * tol**0.5)
    slopes, of_part = (
        problem.evaluate(problem.scores(c))[1] for problem, c in ((whole, found.coef), (part, expected.coef))
    )
    assert not slopes[~kept].any()
    np.testing.assert_allclose(slopes[kept].sum(), of_part.sum(), atol=1e-6)
