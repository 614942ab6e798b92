"""Newton's method for the surrogate quantile against cvxpy, and its certificate."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import SurrogateQuantile
from toprank.solvers import newton_system
from toprank.solvers.problem import Problem
from toprank.solvers.smooth_newton import solve_smooth_newton


def make_problem(rng, name, *, alpha=0.1, tau=0.1, beta=1.0, over="negatives", n=60, d=4, wrap=np.asarray):
    positive = np.arange(n) % 3 == 0
    X = rng.standard_normal((n, d)) + 0.7 * positive[:, None]
    surrogate = SURROGATES[name]
    formulation = Formulation(surrogate, SurrogateQuantile(tau, beta, surrogate), over)
    return Problem(wrap(X), positive, rng.uniform(0.5, 2, n), formulation, alpha)


@pytest.mark.covering
@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("over", ["negatives", "all"])
@pytest.mark.parametrize(("alpha", "tau", "beta"), [(1.0, 0.1, 0.3), (1e-2, 0.02, 1.0), (1e-3, 0.3, 3.0)])
def test_agrees_with_cvxpy(name, over, alpha, tau, beta):
    problem = make_problem(np.random.default_rng(3), name, alpha=alpha, tau=tau, beta=beta, over=over)
    solution = solve_smooth_newton(problem, tol=1e-7)
    exact = optimum(problem.X, problem.positive, problem.weights, alpha, name, tau=tau, beta=beta, over=over)
    assert solution.converged
    assert solution.primal == pytest.approx(exact, rel=1e-6)
    assert solution.dual <= exact * (1 + 1e-6)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, problem.scores(solution.coef)), rel=1e-9)


@pytest.mark.parametrize("name", SURROGATES)
def test_lower_bound_holds_everywhere(name, rng):
    problem = make_problem(rng, name)
    best = solve_smooth_newton(problem, tol=1e-7).primal
    for scale in (0.0, 0.01, 1.0, 100.0):
        w = scale * rng.standard_normal(4)
        scores = problem.scores(w)
        assert problem.lower_bound(problem.dual_point_at(scores)) <= best * (1 + 1e-7)
        assert problem.primal(w, scores) >= best * (1 - 1e-7)


@pytest.mark.parametrize("wrap", [np.asarray, csr_array])
@pytest.mark.parametrize(("explicit", "d"), [(2000, 4), (2000, 300), (10, 300)])
def test_the_three_ways_to_solve_the_newton_system_agree(wrap, explicit, d, monkeypatch):
    """Features, active rows, conjugate gradients: chosen by size, here forced by the limit of explicit systems."""
    problem = make_problem(np.random.default_rng(0), "logistic", d=d, wrap=wrap)
    monkeypatch.setattr(newton_system, "EXPLICIT", explicit)
    solution = solve_smooth_newton(problem, tol=1e-9)
    exact = optimum(
        problem.X if wrap is np.asarray else problem.X.toarray(),
        problem.positive,
        problem.weights,
        problem.alpha,
        "logistic",
        tau=0.1,
        beta=1.0,
    )
    assert solution.converged
    assert solution.primal == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("name", ["quadratic", "hinge"])
@pytest.mark.parametrize("alpha", [1e-8, 1e4])
def test_extreme_penalties_scales_and_singular_data(name, alpha, rng):
    problem = make_problem(rng, name, alpha=alpha)
    X = problem.X * [1e-4, 1.0, 1e4, 0.0]  # badly scaled, with a constant column
    X = np.hstack([X, X[:, :2], np.full((len(X), 1), 7.0)])  # duplicate and constant columns
    X = np.vstack([X, X[:30]])  # duplicate rows
    positive, weights = np.append(problem.positive, problem.positive[:30]), np.append(problem.weights, np.ones(30))
    problem = Problem(X, positive, weights, problem.formulation, alpha)
    solution = solve_smooth_newton(problem, tol=1e-4)
    assert solution.converged
    assert np.isfinite(solution.coef).all()


def test_history_and_warm_start(rng):
    problem = make_problem(rng, "quadratic")
    solution = solve_smooth_newton(problem, tol=1e-8)
    history = solution.history
    assert {len(values) for values in history.values()} == {solution.n_iter + 1}
    assert np.all(np.diff(history["primal"]) <= 0)
    assert np.all(np.diff(history["dual"]) >= 0)
    assert np.all(np.diff(history["passes"]) >= 0)
    assert history["gap"][-1] == solution.gap <= 1e-8
    again = solve_smooth_newton(problem, tol=1e-8, start=solution)
    assert again.n_iter <= 1


def test_limit_of_iterations(rng):
    solution = solve_smooth_newton(make_problem(rng, "quadratic"), tol=1e-12, max_iter=1)
    assert not solution.converged
    assert solution.n_iter == 1


@pytest.mark.parametrize("name", ["hinge", "huber", "quadratic"])
def test_goes_on_where_no_positive_is_active(name):
    """From far beyond the optimum, where the loss is zero and no row has curvature."""
    X = np.vstack([np.eye(12), -np.eye(12)])
    positive = np.arange(24) < 12
    surrogate = SURROGATES[name]
    formulation = Formulation(surrogate, SurrogateQuantile(0.3, 1.0, surrogate), over="negatives")
    problem = Problem(X, positive, np.ones(24), formulation, 1e-3)
    solution = solve_smooth_newton(problem, tol=1e-7)
    start = solve_smooth_newton(problem, tol=1e-7)
    start.coef = 100 * start.coef
    again = solve_smooth_newton(problem, tol=1e-7, start=start)
    assert solution.converged
    assert again.converged
    assert again.primal == pytest.approx(solution.primal, rel=1e-6)
    exact = optimum(X, positive, np.ones(24), 1e-3, name, tau=0.3, beta=1.0)
    assert again.primal == pytest.approx(exact, rel=1e-6)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")  # of cvxpy; digits enough for this
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("alpha", [1e-4, 1e-2])
def test_bounds_hold_where_all_positives_are_far_beyond_the_threshold(name, alpha, dtype):
    """A Newton step may go so far that the dual variables vanish beside αw: they are no excuse for a false bound."""
    X, labels = load_iris(return_X_y=True)
    X, positive = StandardScaler().fit_transform(X).astype(dtype), labels == 0
    surrogate, weights = SURROGATES[name], np.ones(len(labels))
    formulation = Formulation(surrogate, SurrogateQuantile(0.05, 0.1, surrogate), "negatives")
    solution = solve_smooth_newton(Problem(X, positive, weights, formulation, alpha), tol=1e-5)
    exact = optimum(X.astype(np.float64), positive, weights, alpha, name, tau=0.05, beta=0.1)
    assert solution.dual <= exact * (1 + 1e-5)
    assert solution.primal >= exact * (1 - 1e-5)
    assert solution.converged
    assert solution.primal == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("name", ["logistic", "exponential"])
def test_one_positive_has_all_the_weight(name, rng):
    """Its dual variable may be anywhere up to the end of its domain."""
    X = rng.standard_normal((100, 4))
    positive = np.arange(100) == 0
    surrogate = SURROGATES[name]
    formulation = Formulation(surrogate, SurrogateQuantile(0.05, 0.5, surrogate), "all")
    solution = solve_smooth_newton(Problem(X, positive, np.ones(100), formulation, 0.1), tol=1e-6)
    assert solution.converged


@pytest.mark.parametrize("wrap", [np.asarray, csr_array])
@pytest.mark.parametrize("tau", [0.05, 0.001, 0.0005])
@pytest.mark.parametrize("over", ["negatives", "all"])
def test_identical_rows_give_the_exponential_nothing_to_gain(wrap, tau, over, rng):
    """Rounding in a gradient of 1e33 must not become a step, nor an objective that no data have."""
    X = wrap(np.tile(rng.standard_normal(3), (50, 1)))
    surrogate = SURROGATES["exponential"]
    formulation = Formulation(surrogate, SurrogateQuantile(tau, 0.1, surrogate), over)
    solution = solve_smooth_newton(Problem(X, np.arange(50) < 10, np.ones(50), formulation, 0.1))
    assert solution.primal == pytest.approx(tau**-10, rel=1e-9)
    assert solution.converged
    assert solution.dual <= tau**-10 * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("separation", [0.7, 4.0])
@pytest.mark.parametrize("constant", [False, True])
def test_exponential_with_a_small_tau(seed, separation, constant):
    """At w = 0 the loss is 1e30; it may stay there, when the penalty is nothing, or fall to below 1000."""
    rng = np.random.default_rng(seed)
    positive = np.arange(60) < 12
    X = rng.standard_normal((60, 3)) + separation * positive[:, None]
    if constant:  # a direction in which no two rows differ
        X = np.hstack([X, np.ones((60, 1))])
    surrogate = SURROGATES["exponential"]
    formulation = Formulation(surrogate, SurrogateQuantile(0.001, 0.1, surrogate), "negatives")
    solution = solve_smooth_newton(Problem(X, positive, np.ones(60), formulation, 0.1))
    assert solution.converged
    assert solution.n_iter < 40
    w = cp.Variable(X.shape[1])
    threshold = (cp.log_sum_exp(0.1 * (X[~positive] @ w)) - np.log(48 * 0.001)) / 0.1
    log_loss = cp.log_sum_exp(threshold - X[positive] @ w) - np.log(12)
    if solution.primal > 1e12:
        least = cp.Problem(cp.Minimize(log_loss)).solve(solver=cp.CLARABEL)
    else:
        least = np.log(cp.Problem(cp.Minimize(0.05 * cp.sum_squares(w) + cp.exp(log_loss))).solve(solver=cp.CLARABEL))
    assert np.log(solution.primal) == pytest.approx(least, abs=2e-4)
    assert np.log(solution.dual) <= least + 1e-5


def test_exponential_beyond_the_largest_float(rng):
    """At w = 0 the loss is e^4605, which no float holds."""
    positive = np.arange(200) < 40
    X = rng.standard_normal((200, 4)) + 5 * positive[:, None]
    surrogate = SURROGATES["exponential"]
    formulation = Formulation(surrogate, SurrogateQuantile(0.01, 0.001, surrogate), "negatives")
    solution = solve_smooth_newton(Problem(X, positive, np.ones(200), formulation, 0.1))
    assert solution.converged
    assert solution.primal < 1e5


def test_the_last_step_counts(rng):
    problem = make_problem(rng, "quadratic")
    primal = [solve_smooth_newton(problem, max_iter=n, tol=1e-12).primal for n in (1, 2, 3)]
    assert primal[0] < problem.primal(np.zeros(4), np.zeros(60))
    assert primal[0] > primal[1] >= primal[2]


def test_no_features(rng):
    problem = make_problem(rng, "quadratic")
    empty = Problem(np.zeros((60, 0)), problem.positive, problem.weights, problem.formulation, 0.1)
    assert solve_smooth_newton(empty).coef.shape == (0,)
