"""The best point and bound of a solver, and the objective that all of them share."""

import numpy as np
import pytest

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES, get_surrogate
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import DualPoint, Problem, Recorder, Solution


def make(rng, formulation, n=40):
    positive = np.arange(n) % 3 == 0
    X = rng.standard_normal((n, 3)) + positive[:, None]
    return Problem(X, positive, rng.uniform(0.5, 2, n), formulation, 0.1)


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("over", ["negatives", "all"])
@pytest.mark.parametrize("kind", ["top", "quantile", "surrogate quantile"])
def test_the_objective_is_that_of_the_formulation(surrogate, over, kind, rng):
    loss = get_surrogate(surrogate)
    threshold = {
        "top": TopMean(k=4),
        "quantile": Quantile(0.2),
        "surrogate quantile": SurrogateQuantile(0.1, 0.5, loss),
    }[kind]
    problem = make(rng, Formulation(loss, threshold, over, false_positives=kind == "quantile"))
    scores = rng.standard_normal(40)
    expected, _, t = problem.formulation.evaluate(scores, problem.positive, problem.weights)
    assert problem.objective(4.0, scores) == 0.2 + expected
    assert problem.objective(4.0, scores, t) == 0.2 + expected
    assert problem.threshold_at(scores) == t


def test_the_best_point_and_bound_are_kept(rng):
    problem = make(rng, Formulation(get_surrogate("quadratic"), TopMean()))
    incumbent = Incumbent(problem, 0.3, Recorder())
    zeros, scores = np.zeros(3), np.zeros(40)
    assert incumbent.offer(1.0, zeros, scores)
    assert not incumbent.offer(1.5, np.ones(3), scores)
    assert incumbent.offer(1.0, np.ones(3), scores)  # as good, and with a direction
    assert not incumbent.offer(1.0, 2 * np.ones(3), scores)
    first, second = DualPoint(np.ones(2), np.ones(2)), DualPoint(np.zeros(2), np.ones(2))
    incumbent.raise_bound(0.5, first)
    incumbent.raise_bound(0.4, second)
    assert incumbent.dual_point is first
    assert (incumbent.gap, incumbent.converged) == (0.5, False)
    incumbent.raise_bound(0.8, second)
    incumbent.record()
    solution = incumbent.solution()
    assert (solution.primal, solution.dual, solution.dual_point, solution.converged) == (1.0, 0.8, second, True)
    assert solution.history["gap"] == [pytest.approx(0.2)]
    assert not incumbent.solution(converged=False).converged


def test_no_advance_raises_the_objective(rng):
    loss = get_surrogate("quadratic")
    problem = make(rng, Formulation(loss, SurrogateQuantile(0.1, 0.5, loss)))  # for which w = 0 is no optimum
    incumbent = Incumbent.from_zero(problem, 3, 1e-4)
    assert incumbent.primal == incumbent.at_zero == problem.primal(np.zeros(3), np.zeros(40))
    for _ in range(20):
        before, w = incumbent.primal, 0.3 + 0.3 * rng.standard_normal(3)
        best = incumbent.coef
        squares = (float(best @ best), float(best @ w), float(w @ w))
        share, better = incumbent.advance(w, problem.scores(w), squares)
        assert 0 <= share <= 1
        assert better == (incumbent.primal < before)
        np.testing.assert_allclose(incumbent.scores, problem.scores(incumbent.coef), atol=1e-12)
        assert incumbent.primal == pytest.approx(problem.primal(incumbent.coef, incumbent.scores), rel=1e-12)
    assert incumbent.primal < incumbent.at_zero


def test_a_start_of_other_rows_or_of_an_earlier_form_is_none(rng):
    problem = make(rng, Formulation(get_surrogate("quadratic"), TopMean()))
    m, n = len(problem.positives), len(problem.threshold_rows)

    def start(state):
        return Solution(np.zeros(3), 0.0, 1.0, 0.0, 1, False, {}, state=state)

    y, p = rng.random(m), rng.random(n)
    point = problem.start_point(start(DualPoint(y, 5 * p)))
    np.testing.assert_array_equal(point.y, y)
    np.testing.assert_allclose(point.p, p / p.sum())
    states = (DualPoint(y[1:], p), DualPoint(y, p[1:]), DualPoint(0 * y, p), np.ones(m + n), None)
    assert [problem.start_point(start(state)) for state in states] == [None] * 5
    assert problem.start_point(None) is None
