"""Newton's method with cuts: its optimum against the interior-point method."""

import numpy as np
import pytest
from scipy.optimize import nnls

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import TopMean
from toprank.solvers import cuts
from toprank.solvers import working_set_newton as newton
from toprank.solvers.cuts import has_cuts
from toprank.solvers.problem import Problem
from toprank.solvers.working_set_newton import solve_newton


def make_problem(rng, name="quadratic", *, alpha=0.01, n=600, d=6, shift=0.7, dtype=np.float64, **threshold):
    positive = np.arange(n) % 5 == 0
    X = (rng.standard_normal((n, d)) + shift * positive[:, None]).astype(dtype)
    formulation = Formulation(SURROGATES[name], TopMean(**threshold))
    return Problem(X, positive, rng.uniform(0.5, 2, n), formulation, alpha)


def test_what_has_cuts(rng):
    assert {name for name in SURROGATES if has_cuts(make_problem(rng, name))} == {"quadratic", "huber"}
    assert not has_cuts(make_problem(rng, k=3))
    assert not has_cuts(make_problem(rng, d=200))


@pytest.mark.parametrize("name", ["quadratic", "huber"])
@pytest.mark.parametrize("alpha", [1e2, 1e-1, 1e-4, 1e-8])
@pytest.mark.parametrize("shift", [0.0, 0.7, 4.0])
def test_the_optimum_of_the_interior_point_method(name, alpha, shift, monkeypatch):
    problem = make_problem(np.random.default_rng(3), name, alpha=alpha, shift=shift)
    with_cuts = solve_newton(problem, tol=1e-6)
    monkeypatch.setattr(newton, "has_cuts", lambda problem: False)
    without = solve_newton(problem, tol=1e-6)
    assert with_cuts.converged
    assert with_cuts.primal == pytest.approx(without.primal, rel=2e-6)
    primal = problem.primal(with_cuts.coef, problem.scores(with_cuts.coef))
    assert with_cuts.primal == pytest.approx(primal, rel=1e-9)
    if with_cuts.dual_point is not None:
        assert with_cuts.dual <= problem.lower_bound(with_cuts.dual_point) * (1 + 1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_constant_columns_and_bad_scales(dtype):
    rng = np.random.default_rng(0)
    problem = make_problem(rng, dtype=dtype, d=8)
    problem.X[::7] = problem.X[0]
    problem.X[:, 1], problem.X[:, 2] = 1.0, problem.X[:, 3]
    problem.X[:, 4] *= 1e4
    problem.X[:, 5] *= 1e-4
    solution = solve_newton(problem)
    assert solution.converged
    assert problem.lower_bound(solution.dual_point) >= (1 - 1.1e-4) * solution.primal


@pytest.mark.parametrize("failure", [RuntimeError("too many iterations"), None])
def test_where_least_squares_fail_the_interior_point_method_goes_on(failure, rng, monkeypatch):
    problem = make_problem(rng)
    expected = solve_newton(problem, tol=1e-6)

    def fails(G, r):
        if failure is not None:
            raise failure
        return np.full(G.shape[1], np.nan), np.nan

    monkeypatch.setattr(cuts, "nnls", fails)
    found = solve_newton(problem, tol=1e-6)
    assert found.converged
    assert found.primal == pytest.approx(expected.primal, rel=2e-6)


def test_few_rounds_to_an_exact_end(rng):
    solution = solve_newton(make_problem(rng, n=3000))
    assert solution.gap < 1e-9
    assert solution.n_iter <= 10


def test_a_limit_of_rounds(rng):
    assert solve_newton(make_problem(rng, n=3000), max_iter=1).n_iter == 1


@pytest.mark.parametrize("alike", [False, True])
def test_multipliers_by_parts_are_those_of_all_cuts(alike, rng, monkeypatch):
    """Whatever is likely to have one, nothing and what has none included."""
    sizes = []
    monkeypatch.setattr(cuts, "nnls", lambda G, r: sizes.append(G.shape[1]) or nnls(G, r))
    for _ in range(30):
        G, r = rng.standard_normal((8, 40)), rng.standard_normal(8)
        if alike:
            G[:, 20:] = G[:, :20] * (1 + 1e-9 * rng.standard_normal((8, 20)))
        least = nnls(G, r)[1]
        for n_likely in (0, 1, 5, 20, 40):
            b = cuts._multipliers(G, r, rng.permutation(40)[:n_likely])
            assert (b >= 0).all()
            assert np.linalg.norm(r - G @ b) == pytest.approx(least, rel=1e-9, abs=1e-9)
    assert min(sizes) > 0
    assert np.mean(np.array(sizes) < 40) > 0.5
