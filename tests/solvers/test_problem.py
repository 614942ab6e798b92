"""The best point of a segment against a fine grid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toprank.solvers.problem import best_on_segment


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
