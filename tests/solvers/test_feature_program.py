"""Programs with a factor of the kernel matrix: the same as dense ones, and a way to the optimum of the kernel."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from solvers.test_low_rank import best_value, make_problem
from toprank.matrices.gram import Gram
from toprank.matrices.incomplete_cholesky import IncompleteCholesky
from toprank.solvers import subspace_programs
from toprank.solvers.feature_program import FeatureElimination, FeatureProgram, FeatureProgramStep
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.low_rank import solve_low_rank
from toprank.solvers.pair_dual import DualTerms, WorkingSetDual
from toprank.solvers.problem import DualPoint, relative_gap
from toprank.solvers.proximal_newton import solve_proximal_newton
from toprank.solvers.threshold_program import Elimination, ThresholdProgram
from toprank.solvers.working_set import WorkingSet


def terms(rng, m, n_doubtful, k):
    """Signs, bends, slopes, base and fixed sum of a program of m eliminated positives and n_doubtful + k rows of z."""
    signs = np.concatenate([-np.ones(n_doubtful), np.ones(k)])
    bend = np.concatenate([rng.uniform(0.5, 1, n_doubtful), np.zeros(k)])
    slopes = rng.standard_normal(m), rng.standard_normal(n_doubtful + k)
    base = rng.uniform(0, 1, m), rng.uniform(0, 1, n_doubtful + k)
    return signs, bend, slopes, base, 0.7


@pytest.mark.parametrize("n_doubtful", [0, 4])
@pytest.mark.parametrize("rank", [1, 6, 40])
def test_with_the_products_of_its_model_it_is_the_dense_program(rank, n_doubtful, rng):
    m, k, alpha = 25, 15, 0.3
    size = n_doubtful + k
    features, by_loss = rng.standard_normal((m + size, rank)), rng.uniform(0.5, 2, m)
    rows = rng.standard_normal((size, size))
    left = rows @ rows.T
    products = features @ features.T
    products[m:, m:] += left
    given = terms(rng, m, n_doubtful, k)
    elimination = FeatureElimination(features[:m], by_loss, alpha)
    program = FeatureProgram(elimination, features[m:], left / alpha, *given)

    def part(some, others, dtype):
        return (products[np.ix_(some, others)] / alpha).astype(dtype)

    dense = Elimination(part, np.arange(m), by_loss, alpha, m + size)
    places = dense.places(np.arange(m, m + size), part)
    expected = ThresholdProgram(dense, places, *given, np.zeros(0, np.intp))
    scale = np.abs(expected.H).max()
    np.testing.assert_allclose(program.H, expected.H, atol=1e-9 * scale)
    np.testing.assert_allclose(program.q, expected.q, atol=1e-9 * np.abs(expected.q).max())
    np.testing.assert_allclose(program.curvature, expected.curvature, rtol=1e-9)
    z = rng.uniform(0, 1, size)
    np.testing.assert_allclose(program.eliminated_at(z), expected.eliminated_at(z), atol=1e-8)
    x = rng.standard_normal(m)
    np.testing.assert_allclose(
        part(np.arange(m), np.arange(m), float) @ elimination.solve(x) + by_loss * elimination.solve(x), x
    )


@pytest.mark.parametrize("rank", [60, 90])
def test_steps_come_to_the_optimum_of_the_kernel_with_a_part_of_its_rank(rank, rng):
    problem = make_problem(rng, threshold="max", n=300, d=3, alpha=0.05, shift=1.5)
    factor = IncompleteCholesky(problem.gram, rank)
    factor.add_pivots(rank, np.ones(300))
    u = 0.5 * problem.positive_share
    b = np.full(len(problem.threshold_rows), float(u.sum()) / len(problem.threshold_rows))
    scores = problem.gram.product(problem.row_weights(u, -b)) / problem.alpha
    dual = WorkingSetDual(DualTerms.of(problem), WorkingSet.without_products(problem.gram), u, b, scores)
    step, first, gaps = FeatureProgramStep(factor), dual.gap(), []
    for _ in range(20):
        step(dual, 1e-7)
        gaps.append(dual.gap())
        if gaps[-1] <= 1e-7:
            break
    assert first > 0.1
    assert gaps[-1] <= 1e-7
    assert factor.residual.max() > 1e-4  # so much of the kernel the factor does not have
    on_rows = problem.row_weights(dual.u, -dual.b) / problem.alpha
    np.testing.assert_allclose(dual.scores, problem.scores(on_rows), atol=1e-9)
    assert problem.primal(on_rows, dual.scores) == pytest.approx(best_value(problem), rel=1e-6)


def test_a_factor_is_kept_until_rows_or_rank_change(rng):
    problem = make_problem(rng, threshold="max", n=200, alpha=0.05, shift=1.5)
    factor = IncompleteCholesky(problem.gram, 50)
    factor.add_pivots(20, np.ones(200))
    u = 0.5 * problem.positive_share
    b = np.full(len(problem.threshold_rows), float(u.sum()) / len(problem.threshold_rows))
    dual = WorkingSetDual(DualTerms.of(problem), WorkingSet.without_products(problem.gram), u, b, np.zeros(200))
    step, number = FeatureProgramStep(factor), np.arange(10)
    first = step._elimination(dual, number)
    assert step._elimination(dual, number) is first
    assert step._elimination(dual, number[:-1]) is not first
    last = step._elimination(dual, number)
    factor.add_pivots(30, np.ones(200))
    assert step._elimination(dual, number) is not last


@pytest.mark.parametrize("name", ["quadratic", "huber"])
@pytest.mark.parametrize("cache", [50.0, 0.01])
@pytest.mark.parametrize("tol", [1e-4, 1e-8])
@pytest.mark.parametrize("alpha", [1.0, 0.1, 1e-3])
def test_the_route_ends_with_a_rank_that_could_not_hold_the_optimum(alpha, tol, cache, name, rng):
    problem = make_problem(rng, name, "max", n=400, d=4, gamma=0.5, alpha=alpha, shift=1.0, cache=cache)
    solution = solve_low_rank(problem, tol=tol, first_rank=25, most_rank=100)
    best = best_value(problem, 1e-9)
    assert solution.dual <= best * (1 + 1e-9)
    assert best <= solution.primal * (1 + 1e-9)
    if alpha > 1e-3 and name == "quadratic":  # else R is large beside the loss's curvature, or u are at upper bounds
        assert solution.converged
        assert solution.primal <= best * (1 + 2 * tol)


def test_where_programs_are_slow_the_subspace_grows(monkeypatch, rng):
    problem = make_problem(rng, threshold="max", n=300, d=4, gamma=1.0, alpha=1e-3)
    monkeypatch.setattr(subspace_programs, "_MOST_CURVATURE", np.inf)  # programs before their time
    grown = []
    add = subspace_programs.SubspacePrograms._add_pivots
    monkeypatch.setattr(
        subspace_programs.SubspacePrograms,
        "_add_pivots",
        lambda self, rank, by: grown.append(rank) or add(self, rank, by),
    )
    solution = solve_low_rank(problem, tol=1e-6, first_rank=10)
    assert solution.converged
    assert len(grown) > 1
    assert solution.primal == pytest.approx(best_value(problem), rel=2e-6)


@pytest.mark.parametrize("cache", [50.0, 0.01])
def test_a_start_of_another_penalty_spares_the_linear_problems_and_most_of_the_factor(cache, monkeypatch, rng):
    problem = make_problem(rng, threshold="max", n=400, d=2, alpha=0.1, cache=cache)
    first = solve_low_rank(problem, tol=1e-6, first_rank=30)
    harder = replace(problem, alpha=0.03)
    gram = Gram(problem.gram.kernel, problem.gram.X, cache)
    alone = solve_low_rank(replace(harder, gram=gram), tol=1e-6, first_rank=30)
    monkeypatch.setattr(subspace_programs.SubspacePrograms, "_step", None)  # not called
    added = []
    append = IncompleteCholesky._append
    monkeypatch.setattr(IncompleteCholesky, "_append", lambda self, new, L: added.extend(new) or append(self, new, L))
    solution = solve_low_rank(harder, tol=1e-6, first_rank=30, start=first)
    assert solution.converged
    assert solution.primal == pytest.approx(alone.primal, rel=2e-6)
    factor, takes_part = problem.gram.remembered["factor"]
    assert len(added) < factor.rank
    assert takes_part.all()


def test_a_factor_of_other_rows_is_not_used(rng):
    problem = make_problem(rng, threshold="max", n=300, d=2, alpha=0.1)
    first = solve_low_rank(problem, tol=1e-6, first_rank=30)
    factor, _ = problem.gram.remembered["factor"]
    weights = problem.weights * (rng.random(300) < 0.8)
    part = replace(problem, weights=weights)
    solution = solve_low_rank(part, tol=1e-6, first_rank=30, start=first)
    assert solution.converged
    assert problem.gram.remembered["factor"][0] is not factor
    kept = weights > 0
    X = problem.gram.X[kept]
    gram = Gram(problem.gram.kernel, X, 50.0)
    alone = replace(problem, gram=gram, positive=problem.positive[kept], weights=weights[kept])
    assert solution.primal == pytest.approx(best_value(alone), rel=2e-6)


def test_a_matrix_that_remembers_its_factor_is_freed_at_once(rng):
    problem = make_problem(rng, threshold="max", n=100)
    solve_low_rank(problem)
    matrix = weakref.ref(problem.gram)
    assert "factor" in problem.gram.remembered
    gc.disable()
    try:
        del problem
        assert matrix() is None
    finally:
        gc.enable()


def test_of_a_factor_that_leaves_nothing_the_estimate_is_the_bound(rng):
    problem = make_problem(rng, threshold="max", kernel="linear", n=200, d=3, alpha=1e21)
    problem = replace(problem, gram=Gram(problem.gram.kernel, 1e11 * problem.gram.X, 50.0))
    incumbent = Incumbent.from_zero(problem, 200, 1e-4)
    solver = subspace_programs.SubspacePrograms(problem, solve_proximal_newton, incumbent, 100, 10)
    solver._add_pivots(10, np.ones(200))
    solver.factor.residual[:] = 0.0
    n = len(problem.threshold_rows)
    point = DualPoint(problem.positive_share, np.full(n, 1 / n))
    r = problem.signed(point.y, point.p)
    with np.errstate(all="raise"):
        gap = solver._estimated_gap(point, r, solver.factor.features.T @ r)
    assert gap == pytest.approx(relative_gap(incumbent.primal, problem.lower_bound(point)), rel=1e-6)


def test_steps_are_counted_and_limited(rng):
    problem = make_problem(rng, threshold="max", n=300, d=4, gamma=0.5, alpha=0.05)
    limited = solve_low_rank(problem, tol=1e-10, max_iter=3, first_rank=20)
    assert not limited.converged
    assert limited.n_iter <= 3 + 8  # the programs of one step are not interrupted
    assert limited.dual <= best_value(problem) <= limited.primal * (1 + 1e-9)
