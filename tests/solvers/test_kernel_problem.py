"""The kernel problem with a linear kernel is the linear problem."""

import numpy as np
import pytest

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES, get_surrogate
from toprank.formulations.thresholds import SurrogateQuantile, TopMean
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.solvers.kernel_problem import KernelProblem
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
