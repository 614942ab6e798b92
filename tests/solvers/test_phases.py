"""Several solvers in turn: who takes over from whom, and an honest account of it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack

from toprank import DegenerateSolutionWarning, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean
from toprank.solvers.phases import Phase, solve_in_phases
from toprank.solvers.problem import HISTORY, Problem
from toprank.solvers.registry import SOLVERS, phases_for
from toprank.solvers.traits import unevenness, without_empty_columns

MEANS = {
    "TopPush": (TopMean(), "negatives"),
    "TopPushK": (TopMean(k=3), "negatives"),
    "TauFPL": (TopMean(share=0.2), "negatives"),
    "TopMeanK": (TopMean(share=0.6), "all"),
}


def make_problem(threshold="TopPushK", surrogate="quadratic", alpha=0.01, rows=90):
    rng = np.random.default_rng(0)
    positive = np.arange(rows) % 3 == 0
    X = rng.standard_normal((rows, 6)) + 0.8 * positive[:, None]
    rule, over = MEANS[threshold]
    return Problem(X, positive, rng.uniform(0.5, 2.0, rows), Formulation(SURROGATES[surrogate], rule, over), alpha)


def sparse_rows(n, d, entries, seed=0, zipf=0.0):
    """Rows with a planted direction and noise; with `zipf` some columns are frequent."""
    rng = np.random.default_rng(seed)
    frequency = np.arange(1, d + 1) ** -zipf
    columns = np.minimum(np.searchsorted(np.cumsum(frequency / frequency.sum()), rng.random(n * entries)), d - 1)
    X = csr_matrix((rng.standard_normal(n * entries), columns, np.arange(0, n * entries + 1, entries)), shape=(n, d))
    X.sum_duplicates()
    scores = X @ rng.standard_normal(d)
    scores += scores.std() * rng.standard_normal(n)
    return X, scores > np.quantile(scores, 0.9)


def linear_phase(name, budget=None):
    return next(s for s in SOLVERS if s.name == name).phase({}, budget)


CHAINS = {"pairs, newton": ("pairs", "newton"), "newton, pairs": ("newton", "pairs"), "apg, newton": ("apg", "newton")}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("threshold", MEANS)
def test_the_next_goes_on_and_all_is_counted(threshold, chain):
    first, second = CHAINS[chain]
    problem = make_problem(threshold, "hinge" if first == "newton" else "quadratic")  # cuts would end in one round
    phases = [linear_phase(first, 3), linear_phase(second)]
    alone = phases[0].solve(problem, tol=1e-6, max_iter=3)
    solution, last = solve_in_phases(phases, problem, tol=1e-6)
    assert not alone.converged
    assert last == second
    assert solution.converged
    assert solution.gap <= 1e-6
    assert solution.primal == pytest.approx(problem.primal(solution.coef, problem.scores(solution.coef)), rel=1e-12)
    history = {name: np.array(values) for name, values in solution.history.items()}
    assert tuple(history) == HISTORY
    assert history["iteration"][-1] == solution.n_iter > alone.n_iter
    for name in ("iteration", "passes", "seconds", "dual"):
        assert np.all(np.diff(history[name]) >= 0)
    assert np.all(np.diff(history["primal"]) <= 0)
    assert (history["primal"][-1], history["dual"][-1]) == (solution.primal, solution.dual)


def test_a_bound_and_a_point_outlive_a_phase_that_finds_worse_ones():
    problem = make_problem()
    good = replace(linear_phase("newton").solve(problem, tol=1e-3), converged=False)
    poor = linear_phase("apg").solve(problem, tol=1e-9, max_iter=1)
    phases = [Phase("good", lambda *_, **__: good), Phase("poor", lambda *_, **__: poor)]
    solution, last = solve_in_phases(phases, problem, tol=1e-9)
    assert last == "poor"
    assert good.primal < poor.primal
    assert good.dual > poor.dual
    assert solution.primal == good.primal
    assert solution.dual == good.dual
    np.testing.assert_array_equal(solution.coef, good.coef)
    assert solution.dual <= problem.lower_bound(good.dual_point) * (1 + 1e-9)


@pytest.mark.parametrize("max_iter", [1, 5, 12])
def test_the_limit_of_iterations_holds_for_all_phases_together(max_iter):
    phases = [linear_phase("pairs", 4), linear_phase("newton")]
    solution, last = solve_in_phases(phases, make_problem(), tol=1e-12, max_iter=max_iter)
    assert solution.n_iter <= max_iter
    assert last == ("pairs" if max_iter <= 4 else "newton")


def test_what_auto_stands_for():
    dense = make_problem()
    alike, positive = sparse_rows(2500, 4000, 5)
    uneven, positive_uneven = sparse_rows(2500, 20_000, 20, zipf=1.0)

    def names(problem):
        return [phase.name for phase in phases_for("auto", problem, {"random_state": 0})]

    def sparse(X, y, formulation=dense.formulation):
        return Problem(X, y, np.ones(len(y)), formulation, 0.1)

    logistic = Formulation(SURROGATES["logistic"], TopMean())
    quantile = SurrogateQuantile(0.1, 0.1, SURROGATES["quadratic"])
    grill = Formulation(SURROGATES["quadratic"], Quantile(0.1), false_positives=True)
    assert names(dense) == ["newton", "pairs"]
    assert names(make_problem(rows=9000)) == ["newton"]
    assert names(sparse(alike, positive)) == ["apg", "newton"]
    assert names(sparse(alike[:1000], positive[:1000])) == ["pairs", "newton"]
    assert names(sparse(uneven, positive_uneven)) == ["pairs", "newton"]
    assert names(sparse(uneven, positive_uneven, logistic)) == ["newton"]
    assert names(sparse(alike, positive, Formulation(SURROGATES["quadratic"], quantile))) == ["newton"]
    assert names(sparse(alike, positive, grill)) == ["restarts"]


@pytest.mark.parametrize(
    ("rows", "features", "positives", "share", "first"),
    [
        (1200, 300, 60, 0.05, "pairs"),
        (1200, 300, 60, 0.5, "newton"),  # the rows of the top are more than the features
        (1200, 300, 200, 0.05, "newton"),  # half as many positives as features would do
        (1200, 100, 20, 0.05, "newton"),
        (600, 300, 20, 0.05, "newton"),  # systems are small
    ],
)
def test_dense_rows_of_many_features_begin_with_pairs_if_few_have_multipliers(rows, features, positives, share, first):
    rng = np.random.default_rng(0)
    X, positive = rng.standard_normal((rows, features)), np.arange(rows) < positives
    formulation = Formulation(SURROGATES["quadratic"], TopMean(share=share))
    problem = Problem(X, positive, np.ones(rows), formulation, 0.1)
    assert phases_for("auto", problem, {})[0].name == first


@pytest.mark.parametrize("surrogate", ["quadratic", "hinge"])
def test_dense_rows_of_many_features_have_the_same_optimum(surrogate):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1200, 300)), np.arange(1200) % 20 == 0
    X[y] += 0.2
    options = {"alpha": 0.01, "tau": 0.05, "surrogate": surrogate, "threshold": "trained"}
    by_pairs, by_newton = (TauFPL(**options, solver=solver).fit(X, y) for solver in ("auto", "newton"))
    assert (by_pairs.solver_, by_newton.solver_) == ("pairs", "newton")
    assert max(model.history_["gap"][-1] for model in (by_pairs, by_newton)) <= 1e-4
    assert by_pairs.history_["primal"][-1] == pytest.approx(by_newton.history_["primal"][-1], rel=1e-4)


def test_unevenness():
    X, _ = sparse_rows(3000, 5000, 20)
    assert 0.3 < unevenness(X) < 2.0
    assert unevenness(7.0 * X) == pytest.approx(unevenness(X), rel=1e-6)
    one_heavy = X.copy()
    one_heavy.data[one_heavy.indices == 0] *= 100.0
    assert unevenness(one_heavy) > 20.0
    assert unevenness(csr_matrix(np.ones((300, 300)))) > 20.0  # each column is light, but they share a direction
    assert unevenness(csr_matrix((3, 2))) == 0.0


@pytest.mark.parametrize("model", [TopPush(), TopPushK(k=5), TauFPL(tau=0.1), TopMeanK(tau=0.7), PatMatNP(tau=0.1)])
def test_empty_columns_do_not_matter(model):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 3 == 0
    columns = 1000.0 * (rng.standard_normal((400, 4)) + np.outer(y, [2.0, 1.0, 0.0, 0.0]))
    empty = csr_matrix((400, 1500))
    X = hstack([empty, csr_matrix(columns), empty]).tocsr()
    wide = model.fit(X, y)
    assert wide.solver_ == "newton"
    assert wide.dual_gap_ <= 1e-4
    assert wide.n_iter_ <= 100
    coef, objective = wide.coef_[0].copy(), wide.objective_
    assert coef.shape == (3004,)
    assert not coef[:1500].any()
    narrow = model.fit(csr_matrix(columns), y)
    np.testing.assert_array_equal(coef[1500:1504], narrow.coef_[0])
    assert objective == narrow.objective_


def test_a_warm_start_with_empty_columns():
    X, y = sparse_rows(300, 50, 5)
    X = csr_matrix((X.data, X.indices, X.indptr), shape=(300, 4000))
    model = TopPush(warm_start=True).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ <= cold
    assert model.coef_.shape == (1, 4000)
    assert without_empty_columns(Problem(X, y, np.ones(300), make_problem().formulation, 0.1))[0].X.shape == (300, 50)


@pytest.mark.parametrize("hashed", [4096, 16_384])
def test_numbers_beside_hashed_categories(hashed):
    rng = np.random.default_rng(0)
    n = 1000
    numbers = np.column_stack([1000 * rng.standard_normal(n), rng.lognormal(8, 1, n), rng.integers(0, 100, n)])
    categories = csr_matrix(
        (np.ones(5 * n), (np.repeat(np.arange(n), 5), rng.integers(0, hashed, 5 * n))), shape=(n, hashed)
    )
    y = numbers[:, 0] / 1000 + rng.standard_normal(n) > 1
    X = hstack([csr_matrix(numbers), categories]).tocsr()
    model = TopPush().fit(X, y)
    assert model.dual_gap_ <= 1e-4
    assert model.objective_ == pytest.approx(TopPush(solver="newton").fit(X, y).objective_, rel=1e-4)


@pytest.mark.covering(1)
@pytest.mark.parametrize("model", [TopPush(), TopPushK(k=20), TauFPL(tau=0.02), TopMeanK(tau=0.2)])
@pytest.mark.parametrize("alpha", [0.1, 1e-3])
def test_wide_sparse_rows_whose_columns_are_alike_need_few_passes(model, alpha):
    X, y = sparse_rows(2500, 8000, 20)
    model.set_params(alpha=alpha).fit(X, y)
    assert model.solver_ == "apg"
    assert model.dual_gap_ <= 1e-4
    assert model.history_["passes"][-1] <= 200
    by_newton = type(model)(**{**model.get_params(), "solver": "newton"}).fit(X, y)
    assert model.objective_ == pytest.approx(by_newton.objective_, rel=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_million_wide_sparse_rows(share):
    rng = np.random.default_rng(0)
    n, d, entries = 1_000_000, 100_000, 20
    columns = rng.integers(0, d, n * entries).astype(np.int32)
    X = csr_matrix((rng.standard_normal(n * entries), columns, np.arange(0, n * entries + 1, entries)), shape=(n, d))
    scores = X @ rng.standard_normal(d)
    scores += scores.std() * rng.standard_normal(n)
    model = TopPush(tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSolutionWarning)  # so many rows hold the mean of the positives
        model.fit(X, scores > np.quantile(scores, 1 - share))
    assert model.dual_gap_ <= 1e-3
    assert model.history_["passes"][-1] <= 150
