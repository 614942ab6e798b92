import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from toprank.datasets import load_bundled
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import Quantile, TopMean
from toprank.solvers.problem import Problem
from toprank.solvers.quantile_descent import SmoothedQuantile, _shortest_combination, solve_grill
from toprank.solvers.sgd import solve_sgd


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Products this small only lose by threads, above all on a busy machine."""
    with threadpool_limits(1):
        yield


def make_problem(data, over="all", tau=0.1, surrogate="quadratic", alpha=0.01):
    X, positive, weights = data
    return Problem(X, positive, weights, Formulation(get_surrogate(surrogate), Quantile(tau), over, True), alpha)


def normal_data(seed=0, n=200, d=5, shift=1.0):
    rng = np.random.default_rng(seed)
    positive = np.arange(n) % 4 == 0
    X = rng.normal(size=(n, d))
    X[positive, :2] += shift
    return X, positive, rng.uniform(0.5, 2.0, size=n)


def real_data(name):
    bunch = load_bundled(name)
    X, y = bunch.X[:500], bunch.y[:500]
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9), y == 1, np.ones(len(y))


DATA = {
    "normal": lambda: normal_data(),
    "overlapping": lambda: normal_data(seed=1, shift=0.3),
    "breast-cancer": lambda: real_data("breast_cancer"),
    "digits": lambda: real_data("digits"),
}


@pytest.mark.covering(1)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize(("over", "tau"), [("all", 0.1), ("negatives", 0.05)])
def test_it_is_at_least_as_good_as_stochastic_gradients_and_zero(data, over, tau):
    problem = make_problem(DATA[data](), over, tau)
    solution = solve_grill(problem, n_restarts=2, max_iter=60, random_state=0)
    assert solution.primal <= problem.primal(0 * solution.coef, np.zeros(len(problem.positive)))
    for seed in range(2):
        assert solution.primal <= solve_sgd(problem, random_state=seed).primal
    scores = problem.scores(solution.coef)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, scores), rel=1e-12)
    rows = problem.threshold_rows
    assert solution.threshold == pytest.approx(Quantile(tau).value(scores[rows], problem.weights[rows]))
    assert solution.dual == -np.inf


@pytest.mark.covering(1)
@pytest.mark.parametrize("surrogate", ["quadratic", "logistic", "huber"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_combination_of_the_gradients_of_the_tied_rows_is_zero(surrogate, seed):
    tol = 1e-4
    problem = make_problem(normal_data(seed), surrogate=surrogate, alpha=0.1)
    solution = solve_grill(problem, tol=tol, max_iter=500, n_restarts=2, random_state=seed)
    assert solution.converged
    loss, positive, X = problem.formulation.surrogate.value, problem.positive, problem.X
    share = np.where(positive, problem.weights / problem.weights[positive].sum(), 0.0)
    share += np.where(~positive, problem.weights / problem.weights[~positive].sum(), 0.0)

    def piece(w, row):
        t = X[row] @ w
        z = np.where(positive, t - X @ w, X @ w - t)
        return 0.05 * w @ w + share @ loss(z)

    scores = problem.scores(solution.coef)
    tied = np.flatnonzero(np.abs(scores - solution.threshold) <= tol * scores.std())
    gradients = np.array([approx_fprime(solution.coef, piece, 1e-7, row) for row in tied])
    p = cp.Variable(len(tied), nonneg=True)
    shortest = cp.Problem(cp.Minimize(cp.norm(gradients.T @ p)), [cp.sum(p) == 1]).solve(solver="CLARABEL")
    assert shortest <= 10 * tol
    assert len(tied) > 1


def test_one_feature_is_solved_globally():
    """With one feature there are two rays, and the objective is convex on each."""
    problem = make_problem(normal_data(d=2), alpha=0.05)
    problem = Problem(problem.X[:, :1], problem.positive, problem.weights, problem.formulation, problem.alpha)
    grid = np.linspace(-5, 5, 4001)[:, None]
    best = min(problem.primal(w, problem.scores(w)) for w in grid)
    assert solve_grill(problem, random_state=0).primal <= best * (1 + 1e-6)


@pytest.mark.parametrize("over", ["all", "negatives"])
def test_a_weight_of_two_is_a_repeated_row(rng, over):
    X, positive, _ = normal_data(n=60)
    twice = rng.integers(1, 3, size=60)
    weighted = make_problem((X, positive, twice.astype(float)), over)
    repeated = make_problem((np.repeat(X, twice, axis=0), np.repeat(positive, twice), np.ones(twice.sum())), over)
    for w in rng.normal(size=(20, 5)):
        assert weighted.primal(w, weighted.scores(w)) == pytest.approx(
            repeated.primal(w, repeated.scores(w)), rel=1e-13
        )
    primals = [solve_grill(problem, n_restarts=3, random_state=0).primal for problem in (weighted, repeated)]
    assert primals[0] == pytest.approx(primals[1], rel=0.05)


def test_the_same_seed_gives_the_same_model():
    problem = make_problem(normal_data())
    first, second = (solve_grill(problem, random_state=5, max_iter=50) for _ in range(2))
    np.testing.assert_array_equal(first.coef, second.coef)


def test_every_storage_gives_a_point_as_good(stored):
    problem = make_problem(normal_data())
    other = Problem(stored(problem.X), problem.positive, problem.weights, problem.formulation, problem.alpha)
    expected, found = (solve_grill(p, n_restarts=2, random_state=0) for p in (problem, other))
    assert found.primal == pytest.approx(expected.primal, rel=0.05)
    if isinstance(other.X, csr_array):
        assert found.primal == pytest.approx(other.primal(found.coef, other.scores(found.coef)), rel=1e-6)


def test_more_starts_and_a_warm_start_are_never_worse():
    problem = make_problem(normal_data(seed=3))
    one = solve_grill(problem, n_restarts=1, random_state=0)
    several = solve_grill(problem, n_restarts=4, random_state=0)
    assert several.primal <= one.primal
    assert np.all(np.diff(several.history["primal"]) <= 0)
    assert np.all(np.diff(several.history["passes"]) >= 0)
    again = solve_grill(problem, n_restarts=1, random_state=0, start=several)
    assert again.primal <= several.primal * (1 + 1e-6)


def test_the_scale_of_the_features_does_not_matter():
    X, positive, weights = normal_data()
    problem = make_problem((X, positive, weights), alpha=0.01)
    larger = make_problem((1000 * X, positive, weights), alpha=0.01 * 1000**2)
    primals = [solve_grill(p, n_restarts=2, random_state=0).primal for p in (problem, larger)]
    assert primals[0] == pytest.approx(primals[1], rel=0.05)


def test_the_smoothed_quantile_becomes_the_quantile(rng):
    scores, weights = rng.normal(size=50), rng.uniform(0.5, 2.0, size=50)
    exact = Quantile(0.3).value(scores, weights)
    assert SmoothedQuantile(0.3, 1e-6).value(scores, weights) == pytest.approx(exact)
    smoothed = SmoothedQuantile(0.3, 0.2)
    value, p = smoothed.evaluate(scores, weights)
    assert np.all(p >= 0)
    assert p.sum() == pytest.approx(1.0)
    assert smoothed.value(3 * scores, weights) == pytest.approx(3 * value)
    np.testing.assert_allclose(p, approx_fprime(scores, lambda s: smoothed.value(s, weights), 1e-7), atol=1e-6)
    assert smoothed.value(np.repeat(scores, 2), np.repeat(weights, 2) / 2) == pytest.approx(value)


def test_the_shortest_combination_is_shortest(rng):
    vectors = rng.normal(size=(6, 3)) + rng.normal(size=3)
    p = _shortest_combination(vectors @ vectors.T)
    assert np.all(p >= 0)
    assert p.sum() == pytest.approx(1.0)
    reference = minimize(
        lambda q: float((q @ vectors) @ (q @ vectors)),
        np.full(6, 1 / 6),
        bounds=[(0, 1)] * 6,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).fun
    assert float((p @ vectors) @ (p @ vectors)) <= reference + 1e-8


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"n_restarts": 0}, "n_restarts=0 .* use 1 or more"),
        ({"threshold": TopMean()}, {}, "needs a true quantile .* the threshold TopMean.*; use solver"),
        ({"false_positives": False}, {}, r"a loss of the false positives, got .* Quantile\(tau=0.1\); use solver"),
    ],
)
def test_bad_input_is_refused_with_the_value_and_the_remedy(change, options, message):
    problem = make_problem(normal_data())
    settings = {"threshold": Quantile(0.1), "over": "all", "false_positives": True} | change
    formulation = Formulation(get_surrogate("quadratic"), **settings)
    with pytest.raises(ValueError, match=message):
        solve_grill(Problem(problem.X, problem.positive, problem.weights, formulation, 0.1), **options)
