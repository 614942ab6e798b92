"""The rows of a working set against sets of Python."""

import numpy as np
import pytest

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import TopMean, top_mean
from toprank.solvers.problem import Problem
from toprank.solvers.row_choice import NearPositives, RowChoice


def choice_of(rng, parameters, n=60):
    positive = np.arange(n) % 3 == 0
    formulation = Formulation(SURROGATES["quadratic"], TopMean(**parameters))
    problem = Problem(rng.standard_normal((n, 2)), positive, rng.uniform(0.5, 2, n), formulation, 0.1)
    return RowChoice(problem, formulation.threshold.caps(problem.threshold_weights))


@pytest.mark.parametrize("parameters", [{}, {"k": 8}])
@pytest.mark.parametrize("n_points", [1, 2, 3])
def test_rows_next_to_the_threshold(parameters, n_points, rng):
    choice = choice_of(rng, parameters)
    points = [rng.standard_normal(60) for _ in range(n_points)]
    keep = np.array([1, 17])
    inside_each, above_each = [], []
    for scores in points:
        order = np.argsort(-scores[choice.problem.threshold_rows], kind="stable").tolist()
        first, last = 0, 6
        if choice.caps is not None:
            end = next(i for i in range(40) if choice.caps[order[: i + 1]].sum() >= 1 - 1e-12) + 1
            first, last = max(0, end - 3), end + 3
        inside_each.append(set(order[first:last]) | set(keep.tolist()))
        above_each.append(set(order[:first]) - inside_each[-1])
    everywhere, somewhere = set.intersection(*above_each), set.union(*above_each)
    inside, above = choice.next_to_threshold(points, 6, keep)
    expected = set.union(*inside_each) | (somewhere - everywhere)
    assert inside.tolist() == sorted(expected)
    assert above.tolist() == sorted(everywhere - expected)


@pytest.mark.parametrize("parameters", [{}, {"k": 8}])
def test_near_positives(parameters, rng):
    choice, points = choice_of(rng, parameters), [rng.standard_normal(60) for _ in range(2)]
    problem = choice.problem
    near = {3}
    for scores in points:
        t = top_mean(scores[problem.threshold_rows], choice.caps)[0]
        near |= {i for i, row in enumerate(problem.positives) if t - scores[row] > -0.5}
    assert choice.near_positives(NearPositives(points, 0.5, np.array([3]))).tolist() == sorted(near)
