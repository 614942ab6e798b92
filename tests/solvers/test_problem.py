"""The best point of a segment against a fine grid, and what a gap says of a bound above the objective."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.solvers.problem import Solution, relative_gap
from toprank.solvers.segment import best_on_segment


@given(st.floats(-1.0, 2.0), st.floats(0.01, 100.0))
def test_best_point_of_a_parabola(bottom, curvature):
    def objective(squared, scores):
        return curvature * (scores[0] - bottom) ** 2 + 0.1 * squared

    share, value = best_on_segment(objective, (0.0, 0.0, 1.0), np.zeros(1), np.ones(1))
    grid = np.linspace(0, 1, 2001)
    best = np.min(curvature * (grid - bottom) ** 2 + 0.1 * grid**2)
    assert value == pytest.approx(objective(share**2, np.array([share])))
    if share < 1:
        assert value - best <= 2e-4 * (curvature + 0.1)  # nine rounds leave a hundredth of the segment
    else:  # the end stands for the last tenth
        assert np.argmin(curvature * (grid - bottom) ** 2 + 0.1 * grid**2) >= 1800


def test_the_objective_is_asked_twice_where_the_new_point_is_best():
    asked = []

    def objective(squared, scores):
        asked.append(scores[0])
        return -scores[0]

    assert best_on_segment(objective, (0.0, 0.0, 1.0), np.zeros(1), np.ones(1)) == (1.0, -1.0)
    assert asked == [1.0, pytest.approx(0.9)]


@pytest.mark.parametrize("primal", [1e-8, 1.0, 1e8])
def test_a_bound_above_the_objective_is_never_a_certificate(primal):
    """Rounding is none, the error of single precision is the gap, and more than that voids the bound."""

    def solution(share):
        return Solution(np.zeros(1), 0.0, primal, (1 + share) * primal, 1, True, {})

    assert relative_gap(primal, 0.9 * primal) == pytest.approx(0.1)
    assert relative_gap(primal, (1 + 5e-10) * primal) == 0.0
    assert relative_gap(primal, (1 + 3e-7) * primal) == pytest.approx(3e-7, rel=1e-6)
    for share in (3e-6, 5e-5, 0.5, np.inf):
        assert relative_gap(primal, (1 + share) * primal) == 1.0
        void = solution(share)
        assert (void.gap, void.dual, void.converged) == (1.0, 0.0, False)
        assert void.excess == pytest.approx(share)
    for share in (-0.5, 0.0, 5e-10, 3e-7):
        assert solution(share).converged
        assert solution(share).dual == (1 + share) * primal
    assert relative_gap(0.0, 0.0) == 0.0
