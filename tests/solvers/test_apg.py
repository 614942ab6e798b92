"""Accelerated gradients against an exact solver, across storages, with weights, and its two ways to stop."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean
from toprank.solvers.apg import solve_apg
from toprank.solvers.problem import DualPoint, Problem

SURROGATES = ("quadratic", "logistic", "exponential", "huber", "hinge")
THRESHOLDS = {
    "TopPush": (TopMean(), "negatives"),
    "TopPushK": (TopMean(k=5), "negatives"),
    "fractional": (TopMean(k=3.4), "negatives"),
    "TopMeanK": (TopMean(share=0.6), "all"),
}


def make_problem(seed=0, surrogate="quadratic", threshold="TopPushK", alpha=0.3, weights=None, rows=60):
    rng = np.random.default_rng(seed)
    positive = np.arange(rows) % 3 == 0
    X = rng.normal(size=(rows, 4)) + np.outer(positive, [2.5, 2.0, 1.0, 0.0])
    rule, over = THRESHOLDS[threshold]
    weights = np.ones(rows) if weights is None else weights
    return Problem(X, positive, weights, Formulation(get_surrogate(surrogate), rule, over), alpha)


def exact_optimum(problem):
    formulation = problem.formulation
    rule = {"k": formulation.threshold.k, "share": formulation.threshold.share, "over": formulation.over}
    return optimum(problem.X, problem.positive, problem.weights, problem.alpha, formulation.surrogate.name, **rule)


@pytest.mark.covering
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_the_optimum_of_an_exact_solver_lies_in_the_gap(surrogate, threshold, adaptive):
    problem = make_problem(0, surrogate, threshold)
    solution = solve_apg(problem, tol=1e-5, adaptive=adaptive)
    assert solution.converged
    assert solution.gap <= 1e-5
    expected = exact_optimum(problem)
    assert solution.primal == pytest.approx(expected, rel=1.1e-5)
    assert solution.dual <= expected * (1 + 1e-6)


@pytest.mark.parametrize("surrogate", ["quadratic", "logistic", "exponential"])
@pytest.mark.parametrize("threshold", ["TopPush", "TopMeanK"])
def test_the_solution_is_what_it_says(surrogate, threshold):
    problem = make_problem(1, surrogate, threshold)
    solution = solve_apg(problem)
    scores = problem.X @ solution.coef
    assert solution.primal == pytest.approx(problem.primal(solution.coef, scores), rel=1e-12)
    rows = problem.threshold_rows
    assert solution.threshold == pytest.approx(
        problem.formulation.threshold.value(scores[rows], problem.weights[rows]), rel=1e-9
    )
    history = solution.history
    assert len(history["gap"]) == solution.n_iter + 1
    assert history["gap"][-1] == solution.gap <= 1e-4 < history["gap"][-2]
    assert np.all(np.diff(history["primal"]) <= 0)
    assert np.all(np.diff(history["dual"]) >= 0)
    assert 2 * solution.n_iter <= history["passes"][-1] <= 2 * solution.n_iter + 40


def test_storages_agree(stored):
    problem = make_problem(2)
    problem = replace(problem, X=np.where(np.abs(problem.X) < 0.5, 0, problem.X))
    expected = solve_apg(problem, tol=1e-5)
    solution = solve_apg(replace(problem, X=stored(problem.X)), tol=1e-5)
    single = stored(problem.X).dtype == np.float32
    assert solution.coef.dtype == np.float64
    assert solution.primal == pytest.approx(expected.primal, rel=2e-5 if single else 1e-9)
    np.testing.assert_allclose(solution.coef, expected.coef, atol=1e-2 if single else 1e-7)


def test_rows_of_a_csr_matrix_without_entries():
    problem = make_problem(3, "logistic", "TopMeanK")
    X = problem.X.copy()
    X[[0, 1, 7]] = 0
    assert solve_apg(replace(problem, X=csr_array(X))).primal == pytest.approx(
        solve_apg(replace(problem, X=X)).primal, rel=1e-4
    )


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("surrogate", ["quadratic", "logistic"])
def test_weights_equal_repeated_rows(threshold, surrogate):
    times = np.random.default_rng(5).integers(1, 4, size=60)
    weighted = make_problem(4, surrogate, threshold, weights=times.astype(float))
    rows = np.repeat(np.arange(60), times)
    repeated = replace(weighted, X=weighted.X[rows], positive=weighted.positive[rows], weights=np.ones(len(rows)))
    assert solve_apg(weighted, tol=1e-5).primal == pytest.approx(solve_apg(repeated, tol=1e-5).primal, rel=2e-5)


def test_the_rule_of_the_paper():
    problem = make_problem(6)
    loose, tight = (solve_apg(problem, stop="objective", tol=tol) for tol in (1e-2, 1e-9))
    assert loose.converged
    assert tight.converged
    assert loose.n_iter < tight.n_iter
    assert tight.gap < 1e-4 < loose.gap


@pytest.mark.parametrize("surrogate", ["quadratic", "exponential"])
def test_warm_start(surrogate):
    problem = make_problem(7, surrogate)
    cold = solve_apg(problem)
    assert isinstance(cold.state, DualPoint)
    assert cold.state.p.sum() == pytest.approx(1.0, rel=1e-12)
    assert problem.lower_bound(cold.dual_point) == pytest.approx(cold.dual, rel=1e-9)
    again = solve_apg(problem, start=cold)
    assert (again.n_iter, again.converged) == (0, True)
    scaled = replace(cold, state=DualPoint(60 * cold.state.y, 2 * cold.state.p))  # as in files of earlier versions
    assert solve_apg(problem, start=scaled).n_iter <= 1
    near = replace(problem, alpha=1.02 * problem.alpha)
    assert solve_apg(near, start=cold, max_iter=1).history["gap"][0] < 0.05
    other = make_problem(7, surrogate, rows=90)
    np.testing.assert_array_equal(solve_apg(other, start=cold).coef, solve_apg(other).coef)


def test_max_iter_is_kept_and_reported():
    solution = solve_apg(make_problem(8), tol=1e-12, max_iter=5)
    assert solution.n_iter == 5
    assert not solution.converged
    assert solution.dual <= solution.primal


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_a_problem_whose_optimum_is_zero(surrogate):
    problem = make_problem(9, surrogate, "TopPush")
    X = problem.X.copy()
    X[1] = 100 * X[problem.positive].mean(axis=0)
    solution = solve_apg(replace(problem, X=X / 100))
    assert solution.converged
    assert solution.primal == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_one_row_of_each_kind(surrogate):
    formulation = Formulation(get_surrogate(surrogate), TopMean())
    problem = Problem(np.array([[1.0], [0.0]]), np.array([True, False]), np.ones(2), formulation, 0.5)
    assert solve_apg(problem, tol=1e-5).primal == pytest.approx(exact_optimum(problem), rel=1.1e-5)


def test_what_the_solver_cannot_do():
    problem = make_problem()
    quadratic = get_surrogate("quadratic")
    for formulation, name in (
        (Formulation(quadratic, SurrogateQuantile(0.1, 1.0, quadratic)), "SurrogateQuantile"),
        (Formulation(quadratic, Quantile(0.1)), "Quantile"),
        (Formulation(quadratic, TopMean(), false_positives=True), "false positives"),
    ):
        with pytest.raises(ValueError, match=rf"solver='apg' needs a threshold .*{name}.*use solver='auto'"):
            solve_apg(replace(problem, formulation=formulation))
    with pytest.raises(ValueError, match='stop must be "gap" or "objective", got \'time\''):
        solve_apg(problem, stop="time")


def test_patience_ends_a_run_that_does_not_halve_the_gap():
    problem = make_problem(alpha=1e-4)
    assert solve_apg(problem, tol=1e-15, patience=5, max_iter=1000).n_iter < 1000
    patient = solve_apg(problem, tol=1e-15, patience=1000, max_iter=200)
    assert patient.n_iter == 200
    assert not patient.converged


def test_restarts_and_a_metric_save_passes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 300)) * (rng.random((400, 300)) < 0.1)
    positive = X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(400) > 0.2
    formulation = Formulation(get_surrogate("quadratic"), TopMean(), "negatives")
    problem = Problem(csr_array(X), positive, np.ones(400), formulation, 0.1)
    faithful, adaptive = (solve_apg(problem, adaptive=choice) for choice in (False, True))
    assert adaptive.converged
    assert adaptive.history["passes"][-1] < 0.6 * faithful.history["passes"][-1]
