"""Proximal points of the dual against cvxpy, the interior-point method, and what their bounds promise."""

import numpy as np
import pytest

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import TopMean
from toprank.matrices.threads import one_blas_thread
from toprank.solvers.problem import Problem
from toprank.solvers.proximal_newton import _NewtonSystem, has_proximal_points, solve_proximal_newton
from toprank.solvers.working_set_newton import solve_newton


@pytest.fixture(autouse=True)
def _one_thread():
    with one_blas_thread():
        yield


def make_problem(rng, name="quadratic", *, alpha=0.01, n=150, d=12, over="negatives", shift=1.0, **threshold):
    positive = np.arange(n) % 3 == 0
    X = rng.standard_normal((n, d)) + shift * positive[:, None] * (np.arange(d) < 2)
    formulation = Formulation(SURROGATES[name], TopMean(**threshold), over)
    return Problem(X, positive, rng.uniform(0.5, 2, n), formulation, alpha)


@pytest.mark.parametrize("name", ["quadratic", "huber"])
@pytest.mark.parametrize("alpha", [0.3, 1e-2, 1e-4])
@pytest.mark.parametrize("over", ["negatives", "all"])
def test_agrees_with_cvxpy(name, alpha, over, rng):
    problem = make_problem(rng, name, alpha=alpha, over=over)
    best = optimum(problem.X, problem.positive, problem.weights, alpha, name, over=over)
    solution = solve_proximal_newton(problem, tol=1e-8)
    assert solution.converged
    assert solution.dual - 1e-6 * best <= best <= solution.primal + 1e-6 * best
    assert solution.primal == pytest.approx(best, rel=2e-6)


def test_the_bound_is_that_of_its_dual_point(rng):
    problem = make_problem(rng)
    solution = solve_proximal_newton(problem, tol=1e-6)
    point = solution.dual_point
    assert point.p.sum() == pytest.approx(1.0)
    assert (point.p >= 0).all()
    assert (point.y >= 0).all()
    assert problem.lower_bound(point) == pytest.approx(solution.dual, rel=1e-12)
    assert problem.primal(solution.coef, problem.scores(solution.coef)) == pytest.approx(solution.primal, rel=1e-9)


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
def test_more_rows_than_a_factor_is_updated_for_agree_with_the_interior_point_method(alpha, rng):
    problem = make_problem(rng, alpha=alpha, n=900, d=80)
    found, other = (solve(problem, tol=1e-7) for solve in (solve_proximal_newton, solve_newton))
    assert found.converged
    assert other.converged
    assert found.primal == pytest.approx(other.primal, rel=3e-7)


def test_a_start_at_the_optimum_ends_soon(rng):
    problem = make_problem(rng, n=600, d=60)
    first = solve_proximal_newton(problem, tol=1e-6)
    again = solve_proximal_newton(problem, tol=1e-6, start=first)
    assert again.converged
    assert again.n_iter < first.n_iter
    assert again.primal == pytest.approx(first.primal, rel=2e-6)


def test_w_zero_is_certified_where_it_is_the_optimum(rng):
    problem = make_problem(rng, shift=0.0, alpha=10.0)
    solution = solve_proximal_newton(problem, tol=1e-4)
    assert solution.gap <= 1e-9
    assert not solution.coef.any()


@pytest.mark.parametrize("d", [0, 3])
def test_rows_of_nothing(d, rng):
    problem = make_problem(rng, n=12, d=d)
    problem.X[:] = 0.0
    solution = solve_proximal_newton(problem)
    assert solution.converged
    assert not solution.coef.any()


def test_steps_are_limited(rng):
    solution = solve_proximal_newton(make_problem(rng), tol=1e-12, max_iter=3)
    assert solution.n_iter == 3
    assert not solution.converged


def test_a_factor_with_changes_solves_the_system(rng):
    X, weights = rng.standard_normal((50, 40)), rng.uniform(0.1, 100, 50)
    system, slope = _NewtonSystem(X, 0.3), rng.standard_normal(40)
    system.solve(weights, slope)
    for row in (3, 7, 3):  # fewer than a new factor is made for
        weights = weights.copy()
        weights[row] = 0.0 if weights[row] else 5.0
        of_w, of_t, along_t = system.solve(weights, slope)
        H, border = 0.3 * np.eye(40) + X.T @ (weights[:, None] * X), -weights @ X
        np.testing.assert_allclose(of_w, np.linalg.solve(H, slope), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(of_t, np.linalg.solve(H, border), rtol=1e-8, atol=1e-10)
        assert along_t == pytest.approx(weights.sum() - border @ np.linalg.solve(H, border), rel=1e-8)


def test_it_is_for_a_largest_score_and_parabolas(rng):
    assert has_proximal_points(make_problem(rng, "huber"))
    assert not has_proximal_points(make_problem(rng, "hinge"))
    assert not has_proximal_points(make_problem(rng, "logistic"))
    assert not has_proximal_points(make_problem(rng, k=3))
