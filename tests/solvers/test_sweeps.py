"""Sweeps over single multipliers: a feasible point close to the optimum, and the pair method from there."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_array

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import TopMean
from toprank.solvers import sweeps
from toprank.solvers.pair_ascent import solve_linear_pairs
from toprank.solvers.problem import Problem


def sparse_problem(rng, name="quadratic", *, n=120, d=30, over="negatives", **parameters):
    positive = np.arange(n) % 4 == 0
    X = np.where(rng.random((n, d)) < 0.2, rng.random((n, d)), 0.0)
    X[positive, :5] += rng.random((positive.sum(), 5))
    formulation = Formulation(SURROGATES[name], TopMean(**parameters), over)
    return Problem(csr_array(X), positive, rng.uniform(0.5, 2, n), formulation, 0.1)


def with_penalised_threshold(problem):
    """The slopes of the quadratic loss at the optimum with a penalty on the threshold, by cvxpy."""
    X, positive = problem.X.toarray(), problem.positive
    w, t = cp.Variable(X.shape[1]), cp.Variable()
    epsilon = problem.alpha / (X**2).sum(axis=1).mean()
    losses = cp.square(cp.pos(1 + t - X[positive] @ w))
    objective = problem.alpha / 2 * cp.sum_squares(w) + epsilon / 2 * t**2 + problem.positive_share @ losses
    cp.Problem(cp.Minimize(objective), [X[~positive] @ w <= t]).solve(solver="CLARABEL")
    return problem.positive_share * np.maximum(2 * (1 + t.value - X[positive] @ w.value), 0)


def test_many_sweeps_reach_the_optimum_with_a_penalised_threshold(rng, monkeypatch):
    monkeypatch.setattr(sweeps, "_ROUNDS", 200)
    problem = sparse_problem(rng)
    point, _ = sweeps.swept(problem)
    u = with_penalised_threshold(problem)
    np.testing.assert_allclose(point.y, u, atol=1e-4 * u.max())


@pytest.mark.parametrize("name", ["quadratic", "hinge", "huber"])
def test_sweeps_give_a_feasible_point_and_a_bound(name, rng, monkeypatch):
    problem = sparse_problem(rng, name)
    best = optimum(problem.X.toarray(), problem.positive, problem.weights, problem.alpha, name)
    bounds = []
    for rounds in (1, 4, 100):
        monkeypatch.setattr(sweeps, "_ROUNDS", rounds)
        point, passes = sweeps.swept(problem)
        assert rounds < passes <= rounds * (1 + sweeps._SWEEPS)
        assert point.y.min() >= 0
        assert np.all(point.y <= problem.positive_share * problem.formulation.surrogate.max_slope)
        assert point.p.min() >= 0
        assert point.p.sum() == pytest.approx(1)
        bounds.append(problem.lower_bound(point))
    assert max(bounds) <= best * (1 + 1e-6)
    assert bounds[-1] > 0.9 * best


@pytest.mark.parametrize("name", ["quadratic", "hinge"])
def test_pair_method_from_swept_multipliers(name, rng):
    problem = sparse_problem(rng, name)
    best = optimum(problem.X.toarray(), problem.positive, problem.weights, problem.alpha, name)
    solution = solve_linear_pairs(problem, tol=1e-6)
    assert solution.gap <= 1e-6
    assert solution.primal == pytest.approx(best, rel=1e-5)
    assert solution.history["passes"][0] > sweeps._ROUNDS


def test_only_sparse_rows_of_a_largest_score_are_swept(rng):
    problem = sparse_problem(rng)
    assert sweeps.has_sweeps(problem)
    assert not sweeps.has_sweeps(replace(problem, X=problem.X.toarray()))
    assert not sweeps.has_sweeps(sparse_problem(rng, k=3))
    assert not sweeps.has_sweeps(sparse_problem(rng, over="all"))


def test_rows_without_entries_have_no_point(rng):
    problem = sparse_problem(rng)
    empty = replace(problem, X=csr_array(problem.X.shape))
    assert sweeps.swept(empty)[0] is None
    assert solve_linear_pairs(empty).primal == pytest.approx(1.0)
