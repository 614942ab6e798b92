"""Sweeps over single multipliers: a feasible point close to the optimum, and the pair method from there."""

from dataclasses import replace

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


@pytest.mark.parametrize("name", ["quadratic", "hinge", "huber"])
def test_sweeps_give_feasible_points_and_bounds_that_rise_to_the_optimum(name, rng):
    problem = sparse_problem(rng, name)
    best = optimum(problem.X.toarray(), problem.positive, problem.weights, problem.alpha, name)
    for rounds in (1, 4, 100):
        solution = sweeps.solve_by_sweeps(problem, tol=1e-6, max_iter=rounds)
        point, passes = solution.dual_point, solution.history["passes"][-1]
        assert solution.n_iter <= rounds
        assert 3 * solution.n_iter < passes <= solution.n_iter * (3 + sweeps._SWEEPS * (1 + sweeps._MORE_SWEEPS))
        assert point.y.min() >= 0
        assert np.all(point.y <= problem.positive_share * problem.formulation.surrogate.max_slope)
        assert point.p.min() >= 0
        assert point.p.sum() == pytest.approx(1)
        assert solution.dual == pytest.approx(problem.lower_bound(point), rel=1e-9)
        assert solution.dual <= best * (1 + 1e-6)
        assert solution.primal >= best * (1 - 1e-6)
        assert solution.primal == pytest.approx(problem.primal(solution.coef, problem.scores(solution.coef)), rel=1e-9)
    assert solution.dual > 0.9 * best


def test_sweeps_alone_arrive_with_a_curved_loss(rng):
    problem = sparse_problem(rng)
    best = optimum(problem.X.toarray(), problem.positive, problem.weights, problem.alpha, "quadratic")
    solution = sweeps.solve_by_sweeps(problem, tol=1e-7)
    assert solution.converged
    assert solution.primal == pytest.approx(best, rel=1e-6)


def test_rows_that_are_much_alike_are_swept_more_often(rng, monkeypatch):
    """A few negatives that are nearly positives: with the same number of sweeps for all rows it takes far longer."""
    problem = sparse_problem(rng, n=400, d=300)
    X = problem.X.toarray()
    X[1:12:4] = X[0:12:4]
    X[1:12:4, -1] += 0.01
    problem = replace(problem, X=csr_array(X), alpha=1e-2)
    best = optimum(X, problem.positive, problem.weights, problem.alpha, "quadratic")
    monkeypatch.setattr(sweeps, "_PATIENCE", sweeps._ROUNDS)
    solution = sweeps.solve_by_sweeps(problem, tol=1e-4)
    assert solution.converged
    assert solution.primal == pytest.approx(best, rel=1.1e-4)
    monkeypatch.setattr(sweeps, "_MORE_SWEEPS", 1)
    assert 1.5 * solution.n_iter < sweeps.solve_by_sweeps(problem, tol=1e-4).n_iter


def test_sweeps_from_an_earlier_point(rng):
    problem = sparse_problem(rng)
    earlier = sweeps.solve_by_sweeps(problem, tol=1e-7)
    nearby = replace(problem, alpha=0.09)
    warm, cold = (sweeps.solve_by_sweeps(nearby, tol=1e-5, start=start) for start in (earlier, None))
    assert warm.converged
    assert cold.converged
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("name", ["quadratic", "hinge"])
def test_pair_method_from_swept_multipliers(name, rng, monkeypatch):
    monkeypatch.setattr(sweeps, "_ROUNDS", 2)
    problem = sparse_problem(rng, name)
    best = optimum(problem.X.toarray(), problem.positive, problem.weights, problem.alpha, name)
    solution = solve_linear_pairs(problem, tol=1e-6)
    assert solution.gap <= 1e-6
    assert solution.primal == pytest.approx(best, rel=1e-5)
    assert len(solution.history["gap"]) > 2
    passes = solution.history["passes"]
    assert np.all(np.diff(passes) >= 0)  # a round that cannot be the last one may need no product
    assert passes[-1] > passes[1]


def test_only_sparse_rows_of_a_largest_score_are_swept(rng):
    problem = sparse_problem(rng)
    assert sweeps.has_sweeps(problem)
    assert not sweeps.has_sweeps(replace(problem, X=problem.X.toarray()))
    assert not sweeps.has_sweeps(sparse_problem(rng, k=3))
    assert not sweeps.has_sweeps(sparse_problem(rng, over="all"))


def test_rows_without_entries_have_no_point(rng):
    problem = sparse_problem(rng)
    empty = replace(problem, X=csr_array(problem.X.shape))
    assert sweeps.solve_by_sweeps(empty, tol=1e-4).state is None
    assert solve_linear_pairs(empty).primal == pytest.approx(1.0)
