"""The low-rank route against cvxpy on a full factor, its factor, and its bound with the true kernel."""

from dataclasses import replace

import numpy as np
import pytest

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import SurrogateQuantile, TopMean
from toprank.matrices.gram import Gram
from toprank.matrices.incomplete_cholesky import IncompleteCholesky
from toprank.matrices.kernel import Kernel
from toprank.matrices.threads import one_blas_thread
from toprank.solvers import low_rank, subspace
from toprank.solvers import working_set_newton as newton
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.low_rank import solve_low_rank
from toprank.solvers.problem import HISTORY, Problem
from toprank.solvers.smooth_newton import solve_smooth_newton
from toprank.solvers.working_set_newton import solve_newton

THRESHOLDS = {
    "max": ({}, "negatives"),
    "k=2.5": ({"k": 2.5}, "negatives"),
    "30 %": ({"share": 0.3}, "negatives"),
    "30 % of all": ({"share": 0.3}, "all"),
    "PatMatNP": ({"tau": 0.1, "beta": 0.5}, "negatives"),
    "PatMat": ({"tau": 0.1, "beta": 0.5}, "all"),
}
SMALL_CACHE = 0.01


@pytest.fixture(autouse=True)
def _one_thread():
    """As the estimators do; several threads would only slow such small problems down."""
    with one_blas_thread():
        yield


def make_problem(
    rng, name="quadratic", threshold="30 %", *, alpha=0.01, n=80, d=3, kernel="rbf", gamma=0.3, shift=1.0, cache=50.0,
    dtype=np.float64,
):  # fmt: skip
    positive = np.arange(n) % 4 == 0
    X = (rng.standard_normal((n, d)) + shift * positive[:, None]).astype(dtype)
    parameters, over = THRESHOLDS[threshold]
    surrogate = SURROGATES[name]
    kind = SurrogateQuantile(surrogate=surrogate, **parameters) if "tau" in parameters else TopMean(**parameters)
    gram = Gram(Kernel.resolve(kernel, X, gamma), X, cache)
    return KernelProblem(gram, positive, rng.uniform(0.5, 2, n), Formulation(surrogate, kind, over), alpha)


def exact_factor(problem):
    """A matrix whose rows have the kernel's products, by eigenvalues."""
    values, vectors = np.linalg.eigh(problem.gram.rows(np.arange(problem.gram.n)).astype(np.float64))
    kept = values > 1e-13 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def best_value(problem, tol=1e-9):
    """The optimum of the kernel problem, by the linear solver on an exact factor."""
    linear = Problem(exact_factor(problem), problem.positive, problem.weights, problem.formulation, problem.alpha)
    is_smooth = isinstance(problem.formulation.threshold, SurrogateQuantile)
    solution = (solve_smooth_newton if is_smooth else solve_newton)(linear, tol=tol)
    assert solution.converged
    return solution.primal


@pytest.mark.covering
@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("alpha", [0.3, 1e-2])
def test_agrees_with_cvxpy(name, threshold, alpha):
    problem = make_problem(np.random.default_rng(1), name, threshold, alpha=alpha, n=60)
    solution = solve_low_rank(problem, tol=1e-6, first_rank=8)
    parameters, over = THRESHOLDS[threshold]
    best = optimum(exact_factor(problem), problem.positive, problem.weights, alpha, name, over=over, **parameters)
    assert solution.converged
    assert solution.gap <= 1e-6
    assert solution.primal == pytest.approx(best, rel=2e-6)
    assert solution.dual <= best * (1 + 1e-7)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, problem.scores(solution.coef)), rel=1e-12)


@pytest.mark.covering
@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("name", ["quadratic", "huber", "logistic"])
@pytest.mark.parametrize("cache", [50.0, SMALL_CACHE])
def test_bounds_hold_at_every_rank(name, threshold, cache, monkeypatch):
    monkeypatch.setattr(low_rank, "_DIRECTIONS", 2)
    problem = make_problem(np.random.default_rng(2), name, threshold, n=120, cache=cache)
    best = best_value(problem, 1e-8)
    for rank in (1, 3, 10, 30):
        solution = solve_low_rank(problem, tol=1e-10, first_rank=rank, most_rank=rank)
        assert not solution.converged
        assert solution.gap > 1e-10
        assert solution.dual <= best
        assert best <= solution.primal * (1 + 1e-8)
        assert solution.primal == pytest.approx(problem.primal(solution.coef, problem.scores(solution.coef)), rel=1e-12)


def test_features_are_those_of_the_span(rng):
    problem = make_problem(rng, n=150)
    K = problem.gram.full
    factor = IncompleteCholesky(problem.gram, 44)
    factor.add_pivots(12, np.ones(150))
    r = rng.standard_normal(150)
    assert factor.add_direction(r, K @ r)
    assert not factor.add_direction(2 * r, 2 * K @ r)
    factor.add_pivots(41, rng.uniform(0.1, 1, 150))
    assert factor.rank == 1 + len(set(factor.pivots)) == 41
    features, v = factor.features, rng.standard_normal(41)
    np.testing.assert_allclose(features @ features[factor.pivots].T, K[:, factor.pivots], atol=1e-12)
    np.testing.assert_allclose(features @ (features.T @ r), K @ r, atol=1e-10)
    np.testing.assert_allclose(np.diag(K - features @ features.T), factor.residual, atol=1e-12)
    c = factor.coefficients(v)
    np.testing.assert_allclose(K @ c, features @ v, rtol=1e-7, atol=1e-7)
    assert c @ K @ c == pytest.approx(v @ v)


def test_pivots_are_about_as_good_as_those_of_one_at_a_time(rng):
    problem = make_problem(rng, n=600, d=4)
    importance = rng.uniform(0.01, 1, 600)
    factor = IncompleteCholesky(problem.gram, 100)
    factor.add_pivots(100, importance)
    K, residual, columns = problem.gram.full, np.ones(600), np.zeros((600, 0))
    for _ in range(100):
        pivot = int(np.argmax(importance**2 * residual))
        column = (K[:, pivot] - columns @ columns[pivot]) / np.sqrt(residual[pivot])
        columns, residual = np.column_stack([columns, column]), np.maximum(residual - column**2, 0)
    assert importance**2 @ factor.residual <= 1.5 * importance**2 @ residual


@pytest.mark.parametrize("threshold", ["max", "30 %", "PatMatNP"])
def test_a_part_of_the_rank_is_enough(threshold, rng):
    problem = make_problem(rng, threshold=threshold, n=300, d=3, alpha=0.03)
    solution = solve_low_rank(problem, tol=1e-4, first_rank=20)
    assert solution.converged
    assert len(solution.history["gap"]) > 1
    assert solution.primal <= best_value(problem, 1e-5) * (1 + 1e-4)
    with_limit = solve_low_rank(problem, tol=1e-4, first_rank=20, most_rank=75)
    assert with_limit.converged


@pytest.mark.parametrize("threshold", ["30 %", "PatMat"])
def test_expensive_bounds_are_computed_only_where_they_are_worth_it(threshold, monkeypatch, rng):
    problem = make_problem(rng, threshold=threshold, n=400, alpha=0.03, cache=SMALL_CACHE)
    plain = solve_low_rank(problem, first_rank=5)
    monkeypatch.setattr(low_rank, "_FEW_VALUES", 0)
    monkeypatch.setattr(subspace, "_SAMPLE", 200)
    n_exact = []
    product = problem.gram.product
    monkeypatch.setattr(problem.gram, "product", lambda c: n_exact.append(len(c)) or product(c))
    solution = solve_low_rank(problem, first_rank=5)
    assert solution.converged
    assert solution.primal == pytest.approx(plain.primal, rel=2e-4)
    assert solution.history["gap"][0] > 0.5  # the free bound of the first rank
    assert 0 < len(n_exact) <= len(solution.history["gap"])


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_kernel_of_low_rank_ends_at_its_rank(threshold, rng):
    problem = make_problem(rng, threshold=threshold, kernel="linear", d=5, n=300)
    factor = IncompleteCholesky(problem.gram, 300)
    factor.add_pivots(300, np.ones(300))
    assert factor.is_complete
    assert factor.rank == 5
    solution = solve_low_rank(problem, tol=1e-7)
    assert solution.converged
    assert solution.primal == pytest.approx(best_value(problem), rel=2e-7)


def test_duplicate_rows_and_rows_of_zeros(rng):
    problem = make_problem(rng, kernel="linear", d=4, n=40)
    X = np.vstack([problem.gram.X, problem.gram.X, np.zeros((5, 4))])
    positive = np.concatenate([problem.positive, problem.positive, np.full(5, False)])
    gram = Gram(problem.gram.kernel, X, 50.0)
    repeated = KernelProblem(gram, positive, np.ones(85), problem.formulation, problem.alpha)
    solution = solve_low_rank(repeated, tol=1e-7)
    assert solution.converged
    assert np.count_nonzero(solution.coef) <= 4
    nothing = KernelProblem(Gram(gram.kernel, 0 * X, 50.0), positive, np.ones(85), problem.formulation, 0.1)
    solution = solve_low_rank(nothing)
    assert solution.converged
    assert solution.primal == pytest.approx(1.0)


@pytest.mark.parametrize("threshold", ["30 %", "PatMatNP"])
def test_storages_agree(threshold, rng):
    problem = make_problem(rng, threshold=threshold, n=200)
    best = best_value(problem, 1e-7)
    K = problem.gram.full.copy()
    grams = [
        Gram(Kernel.resolve("precomputed", K), K, 1.0),
        Gram(problem.gram.kernel, problem.gram.X, SMALL_CACHE),
        Gram(Kernel.resolve(lambda A, B: np.exp(-0.3 * ((A[:, None] - B) ** 2).sum(-1)), K), problem.gram.X, 1.0),
    ]
    for gram in grams:
        other = KernelProblem(gram, problem.positive, problem.weights, problem.formulation, problem.alpha)
        solution = solve_low_rank(other, tol=1e-6, first_rank=20)
        assert solution.converged
        assert solution.primal == pytest.approx(best, rel=1.1e-6)
    single = Gram(problem.gram.kernel, problem.gram.X.astype(np.float32), 1.0)
    other = KernelProblem(single, problem.positive, problem.weights, problem.formulation, problem.alpha)
    solution = solve_low_rank(other, tol=1e-4, first_rank=20)
    assert solution.converged
    assert solution.primal == pytest.approx(best, rel=2e-4)


@pytest.mark.parametrize("threshold", ["max", "k=2.5", "30 % of all"])
@pytest.mark.parametrize("name", ["quadratic", "hinge", "exponential"])
def test_collapse_is_found_and_certified(name, threshold, rng):
    problem = make_problem(rng, name, threshold, kernel="linear", d=2, n=300, shift=0.0)
    solution = solve_low_rank(problem)
    assert not solution.coef.any()
    assert solution.primal == pytest.approx(1.0)
    assert solution.dual >= 1 - 1e-4


def test_a_large_penalty_leaves_a_direction(rng):
    problem = make_problem(rng, threshold="30 %", alpha=1e5, shift=3.0)
    solution = solve_low_rank(problem, first_rank=5)
    at_zero, best = 1.0, best_value(problem, 1e-12)
    assert solution.coef.any()
    assert at_zero - solution.primal >= 0.5 * (at_zero - best)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_start_where_no_pivot_would_be_needed(kernel, rng):
    """With a huge penalty nothing is curved beside the loss; with rows of zeros there is nothing to pivot on."""
    problem = make_problem(rng, threshold="max", kernel=kernel)
    start = solve_low_rank(problem)
    flat = replace(problem, alpha=1e6)
    solution = solve_low_rank(flat, start=start)
    assert solution.converged
    assert solution.gap <= 1e-4
    gram = Gram(problem.gram.kernel, np.zeros_like(problem.gram.X), 50.0)
    of_zeros = solve_low_rank(replace(flat, gram=gram), start=start)
    np.testing.assert_allclose(of_zeros.primal, 1.0, rtol=1e-4)  # all rows are alike: w = 0 is optimal


def test_history_and_warm_start(rng):
    problem = make_problem(rng, n=200)
    solution = solve_low_rank(problem, first_rank=10)
    history = solution.history
    assert tuple(history) == HISTORY
    assert len({len(values) for values in history.values()}) == 1
    assert history["gap"][-1] == solution.gap <= 1e-4
    assert history["iteration"][-1] == solution.n_iter
    assert np.all(np.diff(history["iteration"]) > 0)
    assert np.all(np.diff(history["dual"]) >= 0)
    assert np.all(np.diff(history["primal"]) <= 1e-9)
    again = solve_low_rank(problem, first_rank=np.count_nonzero(solution.coef), start=solution)
    assert again.converged
    assert len(again.history["gap"]) <= len(history["gap"])


def test_same_result_every_time(rng):
    problem = make_problem(rng, n=300)
    gram = Gram(problem.gram.kernel, problem.gram.X, 50.0)  # an object that was asked before may round otherwise
    same = KernelProblem(gram, problem.positive, problem.weights, problem.formulation, problem.alpha)
    first, second = solve_low_rank(problem, first_rank=30), solve_low_rank(same, first_rank=30)
    np.testing.assert_array_equal(first.coef, second.coef)


def test_limit_of_iterations(rng):
    solution = solve_low_rank(make_problem(rng), tol=1e-10, max_iter=3)
    assert not solution.converged
    assert solution.n_iter <= 3


def test_the_most_rank_bounds_the_memory():
    gram = Gram(Kernel.resolve("linear", np.zeros((1, 1))), np.zeros((50_000, 1), np.float32), 1.0)
    rank = subspace.most_rank_within(400_000_000, gram)
    assert rank * 50_000 * 4 <= 400e6 < (rank + 1) * 50_000 * 4
    assert subspace.most_rank_within(400_000_000, Gram(gram.kernel, np.zeros((10, 1)), 1.0)) == 10
    assert subspace.most_rank_within(1, gram) == 1


@pytest.mark.covering
@pytest.mark.parametrize("name", ["quadratic", "hinge", "logistic"])
@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("size", [20, 1000])
def test_dual_points_of_the_linear_solvers_attain_their_bounds(name, threshold, size, monkeypatch):
    """Also with working sets, where rows are left out, below the threshold or above it."""
    monkeypatch.setattr(newton._WorkingSetSolver, "_first_size", lambda self: size)
    monkeypatch.setattr(newton, "_ALL_ROWS", 5 * size)
    monkeypatch.setattr(newton, "_SMALL_PART", 2 * size)
    kernel_problem = make_problem(np.random.default_rng(3), name, threshold, n=600, kernel="linear")
    X, formulation = kernel_problem.gram.X, kernel_problem.formulation
    problem = Problem(X, kernel_problem.positive, kernel_problem.weights, formulation, 0.01)
    is_smooth = isinstance(formulation.threshold, SurrogateQuantile)
    solution = (solve_smooth_newton if is_smooth else solve_newton)(problem, tol=1e-5)
    point = solution.dual_point
    assert np.all(point.y >= 0)
    assert np.all(point.p >= 0)
    assert point.p.sum() == pytest.approx(1.0, abs=1e-12)
    if not is_smooth and (caps := formulation.threshold.caps(problem.threshold_weights)) is not None:
        assert np.all(point.p <= caps * (1 + 1e-12))
    bound = problem.lower_bound(point)
    assert bound == pytest.approx(solution.dual, rel=1e-9)
