"""PatMat and PatMatNP with the hinge, a quadratic program: against cvxpy, and where smoothing alone got stuck."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import SurrogateQuantile
from toprank.solvers.hinge_quantile import improve_hinge_quantile
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import Problem, Recorder
from toprank.solvers.smooth_newton import solve_smooth_newton

HINGE = SURROGATES["hinge"]


def make_problem(X, positive, *, alpha, tau, beta, over="negatives", weights=None):
    weights = np.ones(len(positive)) if weights is None else weights
    return Problem(X, positive, weights, Formulation(HINGE, SurrogateQuantile(tau, beta, HINGE), over), alpha)


def interior_point(problem, tol):
    """The interior-point method alone, from w = 0."""
    incumbent = Incumbent(problem, tol, Recorder())
    w, scores = np.zeros(problem.X.shape[1]), np.zeros(len(problem.positive))
    incumbent.offer(problem.primal(w, scores), w, scores)
    improve_hinge_quantile(problem, incumbent, max_iter=200)
    return incumbent.solution()


@pytest.mark.parametrize("wrap", [np.asarray, csr_array])
@pytest.mark.parametrize("over", ["negatives", "all"])
@pytest.mark.parametrize(("alpha", "tau", "beta"), [(1.0, 0.001, 0.01), (1e-2, 0.02, 1.0), (1e-4, 0.3, 10.0)])
def test_interior_point_agrees_with_cvxpy(wrap, over, alpha, tau, beta, rng):
    positive = np.arange(60) % 4 == 0
    X = (rng.standard_normal((60, 4)) + 0.7 * positive[:, None]) * (rng.random((60, 4)) < 0.6)
    X[:5] = 0.0  # rows without entries count through the centre
    weights = rng.uniform(0.5, 2, 60)
    problem = make_problem(wrap(X), positive, alpha=alpha, tau=tau, beta=beta, over=over, weights=weights)
    solution = interior_point(problem, 1e-7)
    exact = optimum(X, positive, weights, alpha, "hinge", tau=tau, beta=beta, over=over)
    assert solution.converged
    assert solution.n_iter < 50
    assert solution.primal == pytest.approx(exact, rel=1e-6)
    assert solution.dual <= exact * (1 + 1e-6)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, problem.scores(solution.coef)), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_one_positive_and_many_features_need_few_steps(seed):
    """Almost all rows are at a kink."""
    X = np.random.default_rng(seed).standard_normal((100, 60))
    problem = make_problem(X, np.arange(100) == 0, alpha=0.01, tau=0.01, beta=0.1, over="all")
    solution = solve_smooth_newton(problem, max_iter=150)
    assert solution.converged


def test_random_fits_converge_and_have_a_direction():
    """Nothing is left at w = 0, although that is within the tolerance of many of these optima."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(200, 600)), int(rng.integers(2, 5))
        positive = rng.random(n) < 0.3
        X = np.eye(d)[rng.integers(0, d, n)] * rng.choice([0.1, 1.0, 100.0])
        problem = make_problem(X, positive, alpha=10 ** rng.uniform(-2.5, 1), tau=0.002, beta=rng.choice([0.1, 1.0]))
        solution = solve_smooth_newton(problem)
        at_zero = problem.primal(np.zeros(d), np.zeros(n))
        assert solution.converged, seed
        assert solution.coef.any(), seed
        assert solution.primal <= at_zero, seed
        assert solution.history["primal"][-1] == solution.primal
