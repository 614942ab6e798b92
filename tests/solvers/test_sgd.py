import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean
from toprank.solvers.problem import HISTORY, Problem
from toprank.solvers.sgd import solve_sgd


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Products this small only lose by threads, above all on a busy machine."""
    with threadpool_limits(1):
        yield


def make_data(rng, n=300, d=6, shift=1.5):
    positive = np.arange(n) % 5 == 0
    X = rng.normal(size=(n, d))
    X[positive, :3] += shift
    return X, positive, rng.uniform(0.5, 2.0, size=n)


def make_problem(rng, threshold, over="negatives", surrogate="quadratic", alpha=0.1, false_positives=False, **options):
    formulation = Formulation(get_surrogate(surrogate), threshold, over, false_positives)
    return Problem(*make_data(rng, **options), formulation, alpha)


def pat_mat(rng, over, surrogate, alpha=0.1, **options):
    return make_problem(rng, SurrogateQuantile(0.1, 0.5, get_surrogate(surrogate)), over, surrogate, alpha, **options)


def smooth_optimum(problem):
    def objective(w):
        scores = problem.scores(w)
        gradient = problem.formulation.evaluate(scores, problem.positive, problem.weights)[1]
        return problem.primal(w, scores), problem.combine(gradient) + problem.alpha * w

    start = np.zeros(problem.X.shape[1])
    options = {"maxiter": 2000, "ftol": 1e-15, "gtol": 1e-10}
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=options).fun


def exact_optimum(problem):
    """PatMat with the quadratic loss as a conic program: the threshold is the least t that satisfies its inequality."""
    threshold = problem.formulation.threshold
    w, t = cp.Variable(problem.X.shape[1]), cp.Variable()
    share = problem.threshold_weights / problem.threshold_weights.sum()
    above = cp.pos(1 + threshold.beta * (problem.X[problem.threshold_rows] @ w - t))
    losses = cp.square(cp.pos(1 + t - problem.X[problem.positives] @ w))
    objective = cp.Minimize(problem.alpha / 2 * cp.sum_squares(w) + problem.positive_share @ losses)
    return cp.Problem(objective, [share @ cp.square(above) <= threshold.tau]).solve(solver="CLARABEL")


CASES = {
    "largest": (TopMean(), "negatives", False),
    "k=5": (TopMean(k=5), "negatives", False),
    "share": (TopMean(share=0.1), "negatives", False),
    "share-of-all": (TopMean(share=0.3), "all", False),
    "pat-mat": (SurrogateQuantile(0.1, 0.5, get_surrogate("quadratic")), "all", False),
    "pat-mat-np": (SurrogateQuantile(0.1, 0.5, get_surrogate("quadratic")), "negatives", False),
    "grill": (Quantile(0.2), "all", True),
    "grill-np": (Quantile(0.1), "negatives", True),
}
every_case = pytest.mark.parametrize("case", CASES)


@pytest.mark.parametrize("over", ["all", "negatives"])
@pytest.mark.parametrize("surrogate", ["huber", "quadratic", "logistic"])
def test_delayed_gradients_converge_to_the_optimum(rng, over, surrogate):
    problem = pat_mat(rng, over, surrogate)
    optimum = smooth_optimum(problem)
    solution = solve_sgd(problem, max_iter=200, random_state=0)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, problem.scores(solution.coef)), rel=1e-12)
    assert solution.dual <= optimum * (1 + 1e-9) <= solution.primal * (1 + 1e-8)
    assert solution.primal <= optimum * (1 + 1e-4)


@pytest.mark.parametrize("over", ["all", "negatives"])
def test_delayed_gradients_agree_with_a_conic_solver(over):
    problem = pat_mat(np.random.default_rng(0), over, "quadratic")
    assert solve_sgd(problem, random_state=0).primal == pytest.approx(exact_optimum(problem), rel=1e-4)


def test_the_error_of_delayed_gradients_falls_with_the_epochs(rng):
    problem = pat_mat(rng, "negatives", "huber")
    optimum = smooth_optimum(problem)
    errors = np.array(solve_sgd(problem, tol=0, max_iter=200, random_state=0).history["primal"]) / optimum - 1
    assert errors[50] < 1e-3
    assert errors[200] < 0.3 * errors[50]


def test_unequal_minibatches_do_not_move_the_limit():
    """Weights that differ a hundredfold: the share of a positive is its own, not that of its minibatch."""
    X, positive, weights = make_data(np.random.default_rng(0))
    weights = np.where(np.arange(len(weights)) % 7 == 0, 50.0, weights)
    problem = pat_mat(np.random.default_rng(0), "negatives", "logistic")
    problem = Problem(X, positive, weights, problem.formulation, 0.1)
    solution = solve_sgd(problem, max_iter=200, random_state=0)
    assert solution.primal <= smooth_optimum(problem) * (1 + 3e-4)


def test_the_certificate_ends_the_run():
    solution = solve_sgd(pat_mat(np.random.default_rng(0), "negatives", "huber"), tol=0.01, random_state=0)
    assert solution.converged
    assert solution.gap <= 0.01
    assert solution.n_iter < 200


@every_case
def test_basic_gradients_lower_the_objective(rng, case):
    threshold, over, false_positives = CASES[case]
    problem = make_problem(rng, threshold, over, false_positives=false_positives, alpha=0.01, shift=3.0)
    solution = solve_sgd(problem, delayed=False, max_iter=20, random_state=0)
    at_zero = problem.primal(np.zeros(6), np.zeros(len(problem.positive)))
    assert solution.primal < (0.995 if case == "share-of-all" else 0.9) * at_zero
    scores = problem.scores(solution.coef)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, scores), rel=1e-12)
    rows = problem.threshold_rows
    assert solution.threshold == pytest.approx(threshold.value(scores[rows], problem.weights[rows]), rel=1e-12)
    assert np.isfinite(solution.dual) == (not false_positives)


@every_case
def test_the_same_seed_gives_the_same_model(case):
    threshold, over, false_positives = CASES[case]
    problem = make_problem(np.random.default_rng(1), threshold, over, false_positives=false_positives, shift=3.0)
    first, second, other = (solve_sgd(problem, max_iter=5, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.coef, second.coef)
    assert np.any(first.coef != other.coef)


@every_case
def test_every_storage_gives_the_same_model(stored, case):
    threshold, over, false_positives = CASES[case]
    problem = make_problem(np.random.default_rng(1), threshold, over, false_positives=false_positives, shift=3.0)
    other = Problem(stored(problem.X), problem.positive, problem.weights, problem.formulation, problem.alpha)
    expected, found = (solve_sgd(p, max_iter=3, random_state=0) for p in (problem, other))
    single = other.X.dtype == np.float32
    assert found.primal == pytest.approx(expected.primal, rel=1e-3 if single else 1e-9)
    assert found.coef.dtype == np.float64


def test_minibatches_of_two_rows_and_few_positives():
    rng = np.random.default_rng(0)
    problem = make_problem(rng, TopMean(k=2), alpha=0.1, shift=3.0, n=40)
    for batch_size in (2, 40, 1000):
        assert solve_sgd(problem, batch_size=batch_size, max_iter=20, random_state=0).primal < 0.9
    one = Problem(problem.X, np.arange(40) == 0, problem.weights, problem.formulation, 0.1)
    assert solve_sgd(one, batch_size=2, max_iter=20, random_state=0).primal < 0.9


@pytest.mark.parametrize("surrogate", ["exponential", "quadratic"])
@pytest.mark.parametrize("delayed", [True, False])
def test_a_step_that_is_far_too_long_is_shortened(surrogate, delayed):
    problem = pat_mat(np.random.default_rng(0), "negatives", surrogate)
    solution = solve_sgd(problem, step=1e6, delayed=delayed, max_iter=60, random_state=0)
    assert solution.primal < 1.01 * smooth_optimum(problem)


def test_epochs_that_are_undone_do_not_end_a_non_convex_run():
    problem = make_problem(np.random.default_rng(0), Quantile(0.2), "all", false_positives=True, shift=3.0)
    solution = solve_sgd(problem, step=1e6, random_state=0)
    assert solution.converged
    assert solution.primal < 1.1 * solve_sgd(problem, random_state=0).primal


def test_a_warm_start_is_never_worse():
    problem = pat_mat(np.random.default_rng(0), "all", "huber")
    first = solve_sgd(problem, max_iter=20, random_state=0)
    second = solve_sgd(problem, max_iter=20, random_state=0, start=first)
    assert second.history["primal"][0] == pytest.approx(first.primal, rel=1e-12)
    assert second.primal <= first.primal


def test_a_collapse_ends_early_at_zero():
    """Positives like negatives: no direction lifts them above the largest negative score."""
    problem = make_problem(np.random.default_rng(0), TopMean(), shift=0.0)
    solution = solve_sgd(problem, random_state=0)
    assert solution.primal == pytest.approx(1.0)
    assert not np.any(solution.coef)
    assert solution.n_iter < 200


def test_history_has_a_row_for_the_start_and_for_each_epoch():
    solution = solve_sgd(pat_mat(np.random.default_rng(0), "all", "huber"), tol=0, max_iter=7, random_state=0)
    assert set(solution.history) == set(HISTORY)
    assert solution.history["iteration"] == list(range(8))
    assert np.all(np.diff(solution.history["passes"]) >= 4)
    assert np.all(np.diff(solution.history["primal"]) <= 0)
    assert np.all(np.diff(solution.history["dual"]) >= 0)
    assert solution.n_iter == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 1}, "batch_size=1 .* use 2 or more"),
        ({"step": 0.0}, "step=0.0 .* > 0"),
        ({"step": -2.0}, "step=-2.0 .* > 0"),
        ({"step": np.nan}, "step=nan .* > 0"),
        ({"delayed": True}, "delayed=True .* TopMean; use delayed=False"),
    ],
)
def test_bad_input_is_refused_with_the_value_and_the_remedy(options, message):
    problem = make_problem(np.random.default_rng(0), TopMean())
    with pytest.raises(ValueError, match=message):
        solve_sgd(problem, **options)


def test_sparse_rows_are_not_made_dense(monkeypatch):
    problem = pat_mat(np.random.default_rng(0), "all", "huber")
    sparse = Problem(csr_array(problem.X), problem.positive, problem.weights, problem.formulation, problem.alpha)

    def refuse(*_args, **_options):
        raise AssertionError("a sparse matrix was made dense")

    monkeypatch.setattr(csr_array, "toarray", refuse)
    monkeypatch.setattr(csr_array, "todense", refuse)
    for delayed in (True, False):
        solve_sgd(sparse, max_iter=2, delayed=delayed, random_state=0)
