"""The program of the multipliers that may be at a bound, against cvxpy; and the pair method with such steps."""

import cvxpy as cp
import numpy as np
import pytest

from solvers.test_pair_ascent import MEANS, by_newton, check_certificate, make_kernel, solve, with_features
from toprank.matrices.dense_or_sparse import Cholesky, one_blas_thread
from toprank.solvers import pair_newton
from toprank.solvers.threshold_program import ThresholdProgram


@pytest.fixture(autouse=True)
def one_thread():
    """As in the estimators."""
    with one_blas_thread():
        yield


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize(("n_doubtful", "fixed"), [(0, 0.0), (5, 0.7)])
def test_program_is_the_dual_with_some_multipliers_eliminated(capped, n_doubtful, fixed, rng):
    """The same u, y and b as those of the whole quadratic program: max l·x − ½ ‖R x‖², Σu + Σy + fixed = Σb."""
    m, k = 12, 15
    n = m + n_doubtful + k
    signs = np.r_[np.ones(m + n_doubtful), -np.ones(k)]
    rows = rng.standard_normal((n, 40)) + 1.0
    bend = np.r_[np.full(m + n_doubtful, 2.0), np.full(k, 1e-3)]
    curvature = (rows * signs[:, None]) @ (rows * signs[:, None]).T + np.diag(bend)
    slopes = np.r_[60.0 + rng.random(m), rng.standard_normal(n_doubtful), rng.standard_normal(k)]
    caps = np.full(k, 0.15) if capped else None
    A, M = curvature[:m, :m].copy(), curvature[m:, m:].copy()
    program = ThresholdProgram(A, -curvature[:m, m:], M, (slopes[:m], slopes[m:]), fixed, k)
    z = program.solve(np.r_[np.zeros(n_doubtful), np.ones(k)], caps, 1e-8)

    x = cp.Variable(n)
    b = x[m + n_doubtful :]
    limits = [x[m:] >= 0, cp.sum(x[: m + n_doubtful]) + fixed == cp.sum(b)]
    if capped:
        limits.append(b <= 0.15 * cp.sum(b))
    root = np.linalg.cholesky(curvature)
    best = cp.Problem(cp.Maximize(slopes @ x - 0.5 * cp.sum_squares(root.T @ x)), limits).solve(solver=cp.CLARABEL)
    found = np.r_[program.eliminated_at(z), z]
    assert slopes @ found - 0.5 * found @ curvature @ found == pytest.approx(best, rel=1e-6)
    assert signs @ found + fixed == pytest.approx(0.0, abs=1e-9 * np.abs(found).sum())
    np.testing.assert_allclose(found, x.value, atol=1e-3 * np.abs(x.value).max())
    assert 0 < np.count_nonzero(z[n_doubtful:]) < k  # some b are zero, and exactly so


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("threshold", MEANS)
@pytest.mark.parametrize("name", ["quadratic", "huber"])
def test_programs_from_the_first_moves_on(name, threshold, alpha, monkeypatch):
    """Wherever the programs start from, the pair method ends at the optimum."""
    monkeypatch.setattr(pair_newton, "_COST_OF_STEP", 0.0)
    monkeypatch.setattr(pair_newton, "_FIRST_SHARE", (1e9, 1e9))
    problem = make_kernel(5, name, threshold, alpha=alpha)
    solution = solve(problem, tol=1e-8)
    reference = by_newton(with_features(problem))
    assert solution.converged
    assert solution.primal == pytest.approx(reference.primal, rel=1e-7)
    check_certificate(problem, solution, reference.primal)


def test_programs_save_most_of_the_moves(monkeypatch):
    """Where many rows share the threshold and the penalty is small."""
    problem = make_kernel(6, alpha=1e-5, n=400)
    monkeypatch.setattr(pair_newton, "_COST_OF_STEP", 1e5)
    with_programs = solve(problem, tol=1e-6)
    monkeypatch.setattr(pair_newton.ProgramStep, "cost", lambda self, dual: np.inf)
    moves_alone = solve(problem, tol=1e-6)
    assert with_programs.converged
    assert with_programs.n_iter < 0.2 * moves_alone.n_iter


def test_cholesky_in_place_solves_singular_systems_too(rng):
    half = rng.standard_normal((20, 8))
    definite, right = half @ half.T + np.eye(20), rng.standard_normal((20, 3))
    factor = Cholesky(definite.copy(), in_place=True)
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(definite, right), rtol=1e-9, atol=1e-12)
    root = factor.half_solve(right)
    np.testing.assert_allclose(root.T @ root, right.T @ np.linalg.solve(definite, right), rtol=1e-9, atol=1e-12)
    singular = half @ half.T
    solution = Cholesky(singular.copy(), in_place=True).solve(singular @ right)
    np.testing.assert_allclose(singular @ solution, singular @ right, rtol=1e-4, atol=1e-4)
