"""The pair method against cvxpy and against Newton's method, with every product at hand and with hardly any."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import SurrogateQuantile, TopMean
from toprank.matrices import row_products
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.matrices.row_products import RowProducts
from toprank.matrices.threads import one_blas_thread
from toprank.solvers import pair_ascent, working_set
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.pair_ascent import solve_linear_pairs, solve_pairs
from toprank.solvers.problem import HISTORY, Problem
from toprank.solvers.registry import solver_names
from toprank.solvers.smooth_newton import solve_smooth_newton
from toprank.solvers.working_set_newton import solve_newton

QUANTILE = {"tau": 0.1, "beta": 0.5}
THRESHOLDS = {
    "max": ({}, "negatives"),
    "k=3": ({"k": 3}, "negatives"),
    "k=2.5": ({"k": 2.5}, "negatives"),
    "15 %": ({"share": 0.15}, "negatives"),
    "60 % of all": ({"share": 0.6}, "all"),
    "PatMatNP": (QUANTILE, "negatives"),
    "PatMat": (QUANTILE, "all"),
}
MEANS = ["max", "k=3", "k=2.5", "15 %", "60 % of all"]
CASES = [(name, threshold) for threshold in MEANS for name in ("quadratic", "hinge", "huber")]
CASES += [("quadratic", "PatMatNP"), ("quadratic", "PatMat")]
every_case = pytest.mark.parametrize(("name", "threshold"), CASES)
every_threshold = pytest.mark.parametrize("threshold", THRESHOLDS)


@pytest.fixture(autouse=True)
def one_thread():
    """As in the estimators: more threads slow small matrices down."""
    with one_blas_thread():
        yield


def make_linear(rng, name="quadratic", threshold="max", *, alpha=0.1, n=80, d=4, unit=False, wrap=np.asarray):
    positive = np.arange(n) % 4 == 0
    X = wrap(rng.standard_normal((n, d)) + positive[:, None])
    weights = np.ones(n) if unit else rng.uniform(0.5, 2, n)
    return Problem(X, positive, weights, make_formulation(name, threshold), alpha)


def make_formulation(name, threshold):
    parameters, over = THRESHOLDS[threshold]
    surrogate = get_surrogate(name)
    kind = SurrogateQuantile(surrogate=surrogate, **parameters) if "tau" in parameters else TopMean(**parameters)
    return Formulation(surrogate, kind, over)


def with_rbf(linear, cache_size=10.0, gamma=0.3):
    """The same rows, weights and formulation with a Gaussian kernel, whose matrix has full rank."""
    gram = Gram(Kernel.resolve("rbf", linear.X, gamma), linear.X, cache_size)
    return KernelProblem(gram, linear.positive, linear.weights, linear.formulation, linear.alpha)


def with_features(problem):
    """The linear problem that equals a kernel problem: X Xᵀ is the kernel matrix."""
    K = problem.gram.kernel.block(problem.gram.X, problem.gram.X).astype(float)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-13 * values[-1]
    X = vectors[:, kept] * np.sqrt(values[kept])
    return Problem(X, problem.positive, problem.weights, problem.formulation, problem.alpha)


def make_kernel(seed, name="quadratic", threshold="max", **kwargs):
    return with_rbf(make_linear(np.random.default_rng(seed), name, threshold, **kwargs))


def solve(problem, *, cache_size=10.0, **kwargs):
    return solve_pairs(problem, problem.gram, cache_size=cache_size, **kwargs)


def exact(problem, threshold):
    X = problem.X.toarray() if hasattr(problem.X, "toarray") else problem.X
    parameters, over = THRESHOLDS[threshold]
    name = problem.formulation.surrogate.name
    return optimum(X, problem.positive, problem.weights, problem.alpha, name, over=over, **parameters)


def by_newton(linear, tol=1e-9):
    if isinstance(linear.formulation.threshold, SurrogateQuantile):
        return solve_smooth_newton(linear, tol=tol)
    return solve_newton(linear, tol=tol)


def check_certificate(problem, solution, best):
    """The objective is that of the coefficients, and the optimum lies between the two bounds."""
    scores = problem.scores(solution.coef)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, scores), rel=1e-9)
    np.testing.assert_allclose(solution.scores, scores, atol=1e-9 * np.abs(scores).max())
    t = problem.formulation.threshold.value(scores[problem.threshold_rows], problem.threshold_weights)
    assert solution.threshold == pytest.approx(t, abs=1e-9)
    assert solution.dual <= best * (1 + 1e-8)
    assert solution.primal >= best * (1 - 1e-8)


@every_case
@pytest.mark.parametrize("alpha", [1.0, 1e-2])
def test_agrees_with_cvxpy(name, threshold, alpha):
    problem = make_kernel(1, name, threshold, alpha=alpha, n=60)
    solution = solve(problem, tol=1e-7)
    best = exact(with_features(problem), threshold)
    assert solution.converged
    assert solution.gap <= 1e-7
    assert solution.primal == pytest.approx(best, rel=1e-6)
    assert solution.dual == pytest.approx(best, rel=1e-6)
    assert solution.dual <= best * (1 + 1e-7)


@every_case
@pytest.mark.parametrize("alpha", [1.0, 1e-2])
@pytest.mark.parametrize("unit", [True, False], ids=["no weights", "weights"])
def test_agrees_with_newton(name, threshold, alpha, unit):
    """Without weights and with whole k, all rows of the top are at their bound at once."""
    problem = make_kernel(2, name, threshold, alpha=alpha, unit=unit)
    solution = solve(problem, tol=1e-8)
    reference = by_newton(with_features(problem))
    assert solution.converged
    assert solution.primal == pytest.approx(reference.primal, rel=1e-7)
    check_certificate(problem, solution, reference.primal)


@every_case
@pytest.mark.parametrize("wrap", [np.asarray, csr_array])
def test_rows_and_a_direction(name, threshold, wrap):
    problem = make_linear(np.random.default_rng(3), name, threshold, wrap=wrap, d=30)
    solution = solve_linear_pairs(problem, tol=1e-7)
    best = exact(problem, threshold)
    assert solution.converged
    assert solution.coef.shape == (30,)
    assert solution.primal == pytest.approx(best, rel=1e-6)
    check_certificate(problem, solution, by_newton(problem).primal)


@every_case
def test_missing_products_are_computed_again(name, threshold):
    """So small a cache that eight rows of products are kept."""
    whole = make_kernel(4, name, threshold, n=60)
    small = KernelProblem(
        Gram(whole.gram.kernel, whole.gram.X, 1e-6), whole.positive, whole.weights, whole.formulation, whole.alpha
    )
    assert small.gram.full is None
    solution = solve(small, cache_size=1e-6, tol=1e-7)
    assert solution.converged
    assert solution.primal == pytest.approx(solve(whole, tol=1e-7).primal, rel=2e-7)
    check_certificate(whole, solution, by_newton(with_features(whole)).primal)
    assert small.gram.evaluations > 60 * 60


@every_case
@pytest.mark.parametrize("cache_size", [10.0, 0.02], ids=["room for all", "room for some"])
def test_a_growing_working_set_reaches_the_same_optimum(name, threshold, cache_size, monkeypatch):
    monkeypatch.setattr(pair_ascent, "_ROWS_AT_ONCE", 20)
    monkeypatch.setattr(pair_ascent, "_FIRST_POSITIVES", 5)
    monkeypatch.setattr(row_products, "_FEW_ROWS", 0)
    sizes = []
    add = working_set.WorkingSet.add

    def add_and_note(self, new):
        add(self, new)
        sizes.append(len(self.numbers))
        placed = np.flatnonzero(self.place >= 0)
        expected = self.products.between(self.numbers[placed], self.numbers)
        np.testing.assert_allclose(self.rows[self.place[placed]], expected, atol=1e-12)
        assert self.buffer.nbytes <= max(cache_size * 2**20, 8 * 8 * len(self.numbers))

    monkeypatch.setattr(working_set.WorkingSet, "add", add_and_note)
    monkeypatch.setattr(pair_ascent, "_LINEAR_CACHE", cache_size)
    problem = make_linear(np.random.default_rng(5), name, threshold, n=300, d=40, alpha=0.3)
    solution = solve_linear_pairs(problem, tol=1e-6)
    assert solution.converged
    assert solution.primal == pytest.approx(by_newton(problem).primal, rel=2e-6)
    if threshold != "PatMat":  # whose first point has a multiplier for every row
        assert len(set(sizes)) > 2
    if threshold in ("max", "k=3"):
        assert sizes[-1] < 300


@every_threshold
def test_single_precision(threshold):
    double = make_kernel(6, "quadratic", threshold)
    X = double.gram.X.astype(np.float32)
    gram = Gram(Kernel.resolve("rbf", X, 0.3), X, 10.0)
    single = KernelProblem(gram, double.positive, double.weights, double.formulation, double.alpha)
    solution = solve(single, tol=1e-5)
    assert solution.converged
    assert solution.primal == pytest.approx(solve(double, tol=1e-8).primal, rel=2e-5)


@every_threshold
@pytest.mark.parametrize("cache_size", [10.0, 1e-6])
def test_two_runs_are_equal_to_the_bit(threshold, cache_size):
    first, second = (
        solve_pairs(problem, problem.gram, cache_size=cache_size, tol=1e-6)
        for problem in (with_rbf(make_linear(np.random.default_rng(7), threshold=threshold), cache_size) for _ in "ab")
    )
    np.testing.assert_array_equal(first.coef, second.coef)
    assert (first.primal, first.dual, first.n_iter) == (second.primal, second.dual, second.n_iter)


@every_case
def test_a_weight_is_a_repeated_row(name, threshold):
    """Repeated rows make the matrix singular, and their multipliers are not unique; scores and objective are."""
    problem = make_kernel(8, name, threshold)
    times = np.random.default_rng(8).integers(1, 4, len(problem.positive))
    rows = np.repeat(np.arange(len(times)), times)
    X, kernel = problem.gram.X, problem.gram.kernel
    weighted = KernelProblem(problem.gram, problem.positive, times.astype(float), problem.formulation, 0.1)
    gram = Gram(kernel, X[rows], 10.0)
    repeated = KernelProblem(gram, problem.positive[rows], np.ones(len(rows)), problem.formulation, 0.1)
    first, second = solve(weighted, tol=1e-9), solve(repeated, tol=1e-9)
    assert first.converged
    assert second.converged
    assert first.primal == pytest.approx(second.primal, rel=1e-8)
    np.testing.assert_allclose(first.scores[rows], second.scores, atol=2e-4)


@every_case
def test_multipliers_are_feasible_and_vanish_where_they_must(name, threshold):
    problem = make_kernel(9, name, threshold)
    solution = solve(problem, tol=1e-9)
    assert solution.coef.sum() == pytest.approx(0.0, abs=1e-9)
    u = problem.alpha * solution.coef[problem.positives]
    if problem.formulation.over == "negatives":
        surrogate = problem.formulation.surrogate
        slopes = surrogate.derivative(solution.threshold - solution.scores[problem.positives])
        assert np.all(u >= 0)
        assert np.all(u <= problem.positive_share * surrogate.max_slope * (1 + 1e-9))
        if surrogate.width > 0:
            np.testing.assert_allclose(u, problem.positive_share * slopes, atol=1e-5)
        assert np.all(solution.coef[problem.threshold_rows] <= 0)
        assert np.count_nonzero(solution.coef[problem.threshold_rows]) < len(problem.threshold_rows)


@every_threshold
def test_a_warm_start_saves_moves(threshold):
    problem = make_kernel(10, "quadratic", threshold, n=120, alpha=0.01)
    cold = solve(problem, tol=1e-6)
    again = solve(problem, tol=1e-6, start=cold)
    assert again.converged
    assert again.n_iter < 0.5 * cold.n_iter
    assert again.primal == pytest.approx(cold.primal, rel=1e-6)


def test_a_warm_start_of_rows_and_a_direction():
    problem = make_linear(np.random.default_rng(11), threshold="k=3", d=30, n=120)
    cold = solve_linear_pairs(problem, tol=1e-6)
    again = solve_linear_pairs(problem, tol=1e-6, start=cold)
    assert again.n_iter < 0.5 * cold.n_iter
    foreign = solve_linear_pairs(problem, tol=1e-6, start=solve_newton(problem))
    assert foreign.primal == pytest.approx(cold.primal, rel=1e-6)


@every_threshold
def test_a_warm_start_with_another_penalty(threshold):
    first, second = (make_kernel(10, "quadratic", threshold, n=120, alpha=alpha) for alpha in (0.01, 0.007))
    warm = solve(second, tol=1e-7, start=solve(first, tol=1e-7))
    assert warm.converged
    check_certificate(second, warm, by_newton(with_features(second)).primal)


@every_case
@pytest.mark.parametrize("max_iter", [1, 20])
def test_a_limit_of_moves_leaves_an_honest_gap(name, threshold, max_iter):
    problem = make_kernel(13, name, threshold, alpha=1e-3)
    solution = solve(problem, tol=1e-12, max_iter=max_iter)
    assert not solution.converged
    assert solution.n_iter <= max_iter
    assert solution.gap > 1e-12
    check_certificate(problem, solution, by_newton(with_features(problem)).primal)


@every_threshold
def test_history(threshold):
    solution = solve(make_kernel(14, "quadratic", threshold, alpha=1e-3))
    history = solution.history
    assert set(history) == set(HISTORY)
    assert len({len(values) for values in history.values()}) == 1
    assert history["gap"][-1] == solution.gap <= 1e-4
    assert np.all(np.diff(history["primal"]) <= 0)
    assert np.all(np.diff(history["dual"]) >= 0)


@pytest.mark.parametrize("name", ["quadratic", "hinge"])
@pytest.mark.parametrize("threshold", ["max", "k=3", "60 % of all"])
def test_collapse_is_certified(name, threshold, rng):
    """Classes that cannot be told apart: w = 0 is the optimum, of objective 1."""
    linear = make_linear(rng, name, threshold, n=400, d=2)
    X = rng.standard_normal(linear.X.shape)
    solution = solve_linear_pairs(Problem(X, linear.positive, linear.weights, linear.formulation, 0.1))
    assert solution.converged
    assert solution.primal == pytest.approx(1.0, rel=1e-4)
    assert solution.dual >= 1 - 1e-4


@pytest.mark.parametrize("threshold", ["max", "15 %", "PatMat"])
def test_two_rows_and_equal_rows(threshold):
    formulation = make_formulation("quadratic", threshold)
    for X in ([[1.0], [0.0]], [[1.0], [1.0]], [[0.0], [0.0]]):
        problem = Problem(np.array(X), np.array([True, False]), np.ones(2), formulation, 0.1)
        solution = solve_linear_pairs(problem, tol=1e-7)
        assert solution.converged
        assert solution.primal == pytest.approx(by_newton(problem).primal, rel=1e-6)


def test_which_formulations_it_is_made_for():
    for name in ("quadratic", "hinge", "huber", "logistic", "exponential"):
        surrogate = get_surrogate(name)
        mean, quantile = TopMean(k=3), SurrogateQuantile(0.1, 0.5, surrogate)
        assert ("pairs" in solver_names(Formulation(surrogate, mean), ["kernel"])) == (
            name in ("quadratic", "hinge", "huber")
        )
        assert ("pairs" in solver_names(Formulation(surrogate, quantile), ["rows"])) == (name == "quadratic")


def zipf(rng, n=300, d=60):
    """Columns from full to nearly empty."""
    return rng.standard_normal((n, d)) * (rng.random((n, d)) < 1 / np.arange(1, d + 1) ** 1.5)


@pytest.mark.parametrize("columns", [0, 5, 1000])
def test_products_of_rows(columns, stored, rng, monkeypatch):
    monkeypatch.setattr(row_products, "_DENSE_COLUMNS", columns)
    monkeypatch.setattr(row_products, "_BLOCK_ROWS", 16)
    X = zipf(rng)
    expected = stored(X)
    expected = np.asarray(expected.toarray() if hasattr(expected, "toarray") else expected, dtype=float)
    K = expected @ expected.T
    products = RowProducts(stored(X))
    single = stored(X).dtype == np.float32
    tolerance = 1e-4 if single else 1e-11
    assert products.n == 300
    np.testing.assert_allclose(products.diagonal, K.diagonal(), atol=tolerance)
    rows_a, rows_b = rng.integers(300, size=40), rng.integers(300, size=7)
    between = products.between(rows_a, rows_b)
    assert between.dtype == np.float64
    np.testing.assert_allclose(between, K[np.ix_(rows_a, rows_b)], atol=1e-11)
    part = np.ones((50, 20))[:40, 5:12]
    assert products.between(rows_a, rows_b, part) is part
    np.testing.assert_array_equal(part, between)
    assert products.between(rows_a, rows_b[:0]).shape == (40, 0)
    np.testing.assert_allclose(products.full, K, atol=1e-11)
    c = rng.standard_normal(300)
    np.testing.assert_allclose(products.product(c), K @ c, atol=1e-3 if single else 1e-10)
    if hasattr(products, "frequent"):
        assert products.frequent.shape[1] <= columns
        assert (products.frequent.nnz > 0) == (columns > 0)
        assert products.frequent.nnz + products.rare.nnz == np.count_nonzero(X)


def test_products_of_many_rows_are_not_kept_as_a_whole(monkeypatch):
    monkeypatch.setattr(row_products, "_FEW_ROWS", 10)
    assert RowProducts(np.ones((11, 2))).full is None
    assert RowProducts(np.ones((10, 2))).full.shape == (10, 10)
