"""The interior-point method with working sets against cvxpy, and its certificate."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import TopMean
from toprank.matrices import working_rows
from toprank.solvers import working_set_newton as newton
from toprank.solvers.problem import Problem, without_noise
from toprank.solvers.working_set_newton import solve_newton

THRESHOLDS = {
    "max": ({}, "negatives"),
    "k=3": ({"k": 3}, "negatives"),
    "k=2.5": ({"k": 2.5}, "negatives"),
    "15 %": ({"share": 0.15}, "negatives"),
    "60 % of all": ({"share": 0.6}, "all"),
}


def make_problem(rng, name="quadratic", threshold="max", *, alpha=0.1, n=80, d=4, wrap=np.asarray, shift=1.0):
    positive = np.arange(n) % 4 == 0
    X = rng.standard_normal((n, d)) + shift * positive[:, None]
    parameters, over = THRESHOLDS[threshold]
    formulation = Formulation(SURROGATES[name], TopMean(**parameters), over)
    return Problem(wrap(X), positive, rng.uniform(0.5, 2, n), formulation, alpha)


def exact(problem):
    threshold, X = problem.formulation.threshold, problem.X
    return optimum(
        X.toarray() if hasattr(X, "toarray") else X,
        problem.positive,
        problem.weights,
        problem.alpha,
        problem.formulation.surrogate.name,
        k=threshold.k,
        share=threshold.share,
        over=problem.formulation.over,
    )


@pytest.mark.covering
@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_agrees_with_cvxpy(name, threshold, alpha):
    problem = make_problem(np.random.default_rng(1), name, threshold, alpha=alpha)
    solution = solve_newton(problem, tol=1e-7)
    best = exact(problem)
    assert solution.converged
    assert solution.gap <= 1e-7
    assert solution.primal == pytest.approx(best, rel=1e-6)
    assert solution.dual <= best * (1 + 1e-6)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, problem.scores(solution.coef)), rel=1e-9)


@pytest.mark.parametrize("wrap", [np.asarray, csr_array])
@pytest.mark.parametrize("threshold", ["max", "k=3", "15 %"])
@pytest.mark.parametrize(("few_rows", "d"), [(500, 200), (5, 200), (500, 20)])
def test_feature_space_row_space_and_conjugate_gradients_agree(wrap, threshold, few_rows, d, monkeypatch):
    monkeypatch.setattr(working_rows, "FEW_ROWS", few_rows)
    problem = make_problem(np.random.default_rng(2), threshold=threshold, d=d, wrap=wrap)
    solution = solve_newton(problem, tol=1e-6)
    assert solution.converged
    assert solution.primal == pytest.approx(exact(problem), rel=1e-5)


@pytest.mark.parametrize("name", ["quadratic", "hinge", "logistic"])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_working_sets_and_random_parts_reach_the_same_optimum(name, threshold, monkeypatch, rng):
    """Sizes that make a small problem go through all that large ones go through."""
    problem = make_problem(rng, name, threshold, n=1200, d=6, alpha=0.01)
    whole = solve_newton(problem, tol=1e-7)
    monkeypatch.setattr(newton, "_SMALL_PART", 50)
    monkeypatch.setattr(newton._WorkingSetSolver, "_first_size", lambda self: 20)
    monkeypatch.setattr(newton, "_ALL_ROWS", 100)
    parts = solve_newton(problem, tol=1e-6)
    assert parts.converged
    assert parts.primal == pytest.approx(whole.primal, rel=2e-6)


def test_passes_count_every_time_that_the_rows_are_read(rng):
    """A step reads all rows for the residual, the matrix and its border, and twice for each of two or more systems."""
    solution = solve_newton(make_problem(rng, threshold="k=3", n=200))
    assert 7 * solution.n_iter <= solution.history["passes"][-1] <= 11 * solution.n_iter + 10


def test_a_gap_that_rounding_keeps_open_ends_the_run(rng):
    problem = make_problem(rng, "quadratic", "max", n=400, d=10, alpha=1e-3)
    single = replace(problem, X=problem.X.astype(np.float32))
    solution = solve_newton(single, tol=1e-12)
    assert solution.gap < 1e-5
    assert solution.n_iter < 300  # of 1000


@pytest.mark.parametrize("name", ["quadratic", "hinge", "exponential"])
@pytest.mark.parametrize("threshold", ["max", "k=3", "60 % of all"])
def test_collapse_is_found_and_certified(name, threshold, rng):
    problem = make_problem(rng, name, threshold, shift=0.0, n=400, d=2)
    solution = solve_newton(problem)
    assert not solution.coef.any()
    assert solution.primal == pytest.approx(1.0)
    assert solution.dual >= 1 - 1e-4


@pytest.mark.covering
@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("threshold", ["max", "k=3", "15 %"])
@pytest.mark.parametrize(("of_positives", "factor"), [(True, 1e2), (True, 1e3), (True, 1e6), (False, 1e4)])
def test_an_outlier_does_not_stop_the_others(name, threshold, of_positives, factor):
    """The certificate is computed again from the dual point, and cvxpy agrees where it copes with the scale."""
    problem = make_problem(np.random.default_rng(1), name, threshold, n=200, d=5, shift=2.0)
    problem.X[np.flatnonzero(problem.positive == of_positives)[0]] *= factor
    solution = solve_newton(problem)
    primal = problem.primal(solution.coef, problem.scores(solution.coef))
    assert solution.converged
    assert solution.n_iter < 80
    if solution.coef.any():
        assert problem.lower_bound(solution.dual_point) >= (1 - 1e-4) * primal
    if factor == 1e2:
        assert primal == pytest.approx(exact(problem), rel=1.1e-4)


@pytest.mark.parametrize(("name", "seed"), [("logistic", 52), ("logistic", 81), ("exponential", 20)])
def test_a_multiplier_that_has_vanished_comes_back(name, seed):
    """Of several outliers one may be far above the threshold on the way, and below it at the optimum."""
    problem = make_problem(np.random.default_rng(seed), name, "k=3", n=200, d=20, shift=0.5, alpha=0.01)
    problem.X[np.flatnonzero(problem.positive)[:3]] *= 1e6
    assert solve_newton(problem).gap <= 1e-4


@pytest.mark.parametrize("name", ["logistic", "exponential"])
def test_heavy_tails_in_working_sets(name):
    rng = np.random.default_rng(0)
    X = rng.standard_t(1.5, (8000, 20))
    scores = X @ rng.standard_normal(20)
    formulation = Formulation(SURROGATES[name], TopMean(share=0.05))
    positive = scores > np.quantile(scores, 0.8)
    solution = solve_newton(Problem(X / X.std(axis=0), positive, np.ones(8000), formulation, 1e-3))
    assert solution.gap <= 1e-4


@pytest.mark.parametrize("alpha", [1e-8, 1e4])
@pytest.mark.parametrize("threshold", ["max", "15 %"])
def test_extreme_penalties_scales_and_singular_data(alpha, threshold, rng):
    problem = make_problem(rng, threshold=threshold, alpha=alpha, d=5)
    X = problem.X * [1e-5, 1.0, 1e5, 0.0, 1.0]  # badly scaled, with a column of zeros
    X = np.hstack([X, X[:, :2], np.full((len(X), 1), 7.0)])  # duplicate columns and a constant one
    X = np.vstack([X, X[:30]])  # duplicate rows
    positive, weights = np.append(problem.positive, problem.positive[:30]), np.append(problem.weights, np.ones(30))
    solution = solve_newton(Problem(X, positive, weights, problem.formulation, alpha))
    assert solution.converged
    assert np.isfinite(solution.coef).all()


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_weight_is_repetition(threshold, rng):
    problem = make_problem(rng, threshold=threshold)
    times = rng.integers(1, 4, len(problem.positive))
    weighted = Problem(problem.X, problem.positive, times.astype(float), problem.formulation, 0.1)
    rows = np.repeat(np.arange(len(times)), times)
    repeated = Problem(problem.X[rows], problem.positive[rows], np.ones(len(rows)), problem.formulation, 0.1)
    first, second = solve_newton(weighted, tol=1e-9), solve_newton(repeated, tol=1e-9)
    assert first.primal == pytest.approx(second.primal, rel=1e-8)
    np.testing.assert_allclose(first.coef, second.coef, atol=1e-4)


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_order_of_rows_and_storage_do_not_matter(threshold, rng):
    problem = make_problem(rng, threshold=threshold)
    best = solve_newton(problem, tol=1e-8).primal
    shuffled = rng.permutation(len(problem.positive))
    X, positive, weights = problem.X[shuffled], problem.positive[shuffled], problem.weights[shuffled]
    for stored in (X, np.asfortranarray(X), csr_array(X)):
        other = Problem(stored, positive, weights, problem.formulation, problem.alpha)
        assert solve_newton(other, tol=1e-8).primal == pytest.approx(best, rel=1e-7)
    single = Problem(X.astype(np.float32), positive, weights, problem.formulation, problem.alpha)
    assert solve_newton(single, tol=1e-5).primal == pytest.approx(best, rel=1e-4)


def test_lower_bound_holds_everywhere(rng):
    problem = make_problem(rng, threshold="k=3")
    best = solve_newton(problem, tol=1e-8).primal
    for scale in (0.0, 0.1, 10.0):
        assert problem.lower_bound(problem.dual_point_at(problem.scores(scale * rng.standard_normal(4)))) <= best


def test_history_and_warm_start(rng):
    problem = make_problem(rng, threshold="k=3", n=4000)
    solution = solve_newton(problem)
    history = solution.history
    assert len({len(values) for values in history.values()}) == 1
    assert history["gap"][-1] == solution.gap <= 1e-4
    assert np.all(np.diff(history["primal"]) <= 0)
    assert np.all(np.diff(history["dual"]) >= 0)
    again = solve_newton(problem, start=solution)
    assert again.converged
    assert again.primal <= solution.primal * (1 + 1e-12)


def test_limit_of_iterations(rng):
    solution = solve_newton(make_problem(rng, threshold="k=3"), tol=1e-12, max_iter=2)
    assert not solution.converged
    assert solution.n_iter <= 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threshold", ["k=3", "15 %", "60 % of all"])
def test_wide_rows_of_many_scales_with_a_small_penalty(threshold, seed):
    rng = np.random.default_rng(seed)
    X, positive = rng.standard_normal((40, 200)) * np.logspace(-4, 4, 200), rng.random(40) < 0.5
    parameters, over = THRESHOLDS[threshold]
    formulation = Formulation(SURROGATES["quadratic"], TopMean(**parameters), over)
    solution = solve_newton(Problem(X, positive, np.ones(40), formulation, 1e-4))
    assert solution.gap <= 1e-4
    assert solution.n_iter <= 40


@pytest.mark.parametrize("threshold", ["max", "15 %"])
def test_small_problems_begin_with_the_discriminant(threshold, rng, monkeypatch):
    monkeypatch.setattr(newton, "_COVARIANCE_ROWS", 30)
    problem = make_problem(rng, "quadratic", threshold, n=80, d=3)
    tried = []
    advance = newton._WorkingSetSolver._advance
    monkeypatch.setattr(newton._WorkingSetSolver, "_advance", lambda solver, w: tried.append(w) or advance(solver, w))
    assert solve_newton(problem).converged
    X, positive, weights = problem.X, problem.positive, problem.weights
    means = [np.average(X[rows], axis=0, weights=weights[rows]) for rows in (positive, ~positive)]
    covariances = np.cov(X[::2].T, aweights=weights[::2], ddof=0) + problem.alpha * np.eye(3)
    w = np.linalg.solve(covariances, means[0] - means[1])
    np.testing.assert_allclose(tried[0], w / (w @ (means[0] - means[1])), rtol=1e-9)


def test_classes_of_equal_means_have_no_discriminant():
    X = np.array([[1.0], [-1.0], [2.0], [-2.0]] * 5)
    positive = np.array([True, True, False, False] * 5)
    problem = Problem(X, positive, np.ones(20), Formulation(SURROGATES["quadratic"], TopMean()), 0.1)
    solution = solve_newton(problem)
    assert solution.converged
    assert not without_noise(problem, solution).coef.any()
