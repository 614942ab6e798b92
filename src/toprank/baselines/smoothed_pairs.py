r"""Newton's method on the hinge loss of pairs with its kink smoothed, for problems that need many cutting planes.

.. math:: h_\mu(z) = \frac{z_+^2 - (z - \mu)_+^2}{2\mu}, \qquad 0 \le z_+ - h_\mu(z) \le \mu/2

is the hinge with a parabola of width μ in place of its kink. It is a difference of two squared hinges, so that sums
over all pairs come from sorted scores. Steps of an iteration:

1. A Newton step on α/2 ‖w‖² + mean of h_μ(1 − sᵢ + sⱼ), by conjugate gradients, with a search along it.
2. A plane: the slopes aᵢⱼ = h_μ'(1 − sᵢ + sⱼ) are within 0 and 1, so (mean a) + ∇·s is nowhere above the mean of the
   plain hinge, where ∇ is the gradient of the smoothed loss by the scores. With the planes before it, it gives a lower
   bound, as in the method of cutting planes.
3. Stop at a relative gap of `tol`, or when some steps have not halved the gap. Where Newton's method has less to gain
   than what smoothing costs, lower μ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.baselines.cutting_planes import Planes, Reached
from toprank.baselines.hinge_pairs import HingePairLoss
from toprank.pairwise.graph import Preferences
from toprank.pairwise.solvers import Point, Preconditioner, Problem, backtrack, newton_direction
from toprank.solvers.problem import Recorder, relative_gap

# The width at first, at most; where rounding errors of differences become as large as the gain; and its reduction.
_WIDEST, _NARROWEST, _NARROWER = 0.5, 1e-6, 0.2
# With more columns, as of words, the direction of a step takes too many products with the Hessian; with fewer pairs a
# column, too few of them are within the width to show the curvature.
_MOST_COLUMNS, _FEWEST_PAIRS = 2000, 100
# Steps that have to halve the gap.
_PATIENCE = 20
# Part of the gap that Newton's method may leave before the width is lowered.
_LEFT = 0.1
# Residual of a Newton direction, as a share of the gradient.
_EXACTNESS = 0.1


def is_suited(n_columns: int, preferences: Preferences) -> bool:
    """Whether many planes are likely to cost more than Newton's method."""
    counts = np.bincount(preferences.level, minlength=len(preferences.strengths))
    n_pairs = counts @ (preferences.strengths > 0) @ counts + len(preferences.pairs)
    return n_columns <= _MOST_COLUMNS and bool(n_pairs >= _FEWEST_PAIRS * n_columns)


class SmoothedHinge:
    """The mean of h_μ over the pairs of some preferences; call it with scores to get a `SmoothedPoint`."""

    def __init__(self, preferences: Preferences, width: float) -> None:
        self.width = width
        self.outer = HingePairLoss(preferences, squared=True)
        self.inner = HingePairLoss(preferences, squared=True, margin=1.0 - width)

    def __call__(self, scores: Floats) -> SmoothedPoint:
        """The loss at the scores of all rows."""
        return SmoothedPoint(self, scores)


class SmoothedPoint:
    """Value and derivatives of a `SmoothedHinge` at given scores."""

    def __init__(self, loss: SmoothedHinge, scores: Floats) -> None:
        self.outer, self.inner = loss.outer(scores), loss.inner(scores)
        self.scores = self.outer.scores
        self._factor = 1.0 / (2.0 * loss.width)

    @cached_property
    def value(self) -> float:
        """The loss."""
        return self._factor * (self.outer.value - self.inner.value)

    @cached_property
    def gradient(self) -> Floats:
        """Its derivative by each score."""
        return self._factor * (self.outer.gradient - self.inner.gradient)

    @property
    def plain_value(self) -> float:
        """The mean of the plain hinge: the slope of the squared one is twice what a pair lacks."""
        return 0.5 * self.outer.mean_slope

    @property
    def mean_slope(self) -> float:
        """The mean over all pairs of h_μ'."""
        return self._factor * (self.outer.mean_slope - self.inner.mean_slope)

    @cached_property
    def curvature(self) -> Floats:
        """The diagonal of its Hessian."""
        return np.asarray(np.maximum(self._factor * (self.outer.curvature - self.inner.curvature), 0.0))

    def hessian_product(self, direction: Floats) -> Floats:
        """Its Hessian times a direction in the space of scores."""
        return self._factor * (self.outer.hessian_product(direction) - self.inner.hessian_product(direction))


@dataclass(frozen=True)
class SmoothedNewton:
    """The problem of the plain hinge over all pairs; call it with a point to go on from there, see the module."""

    X: Any
    preferences: Preferences
    alpha: float
    tol: float
    max_iter: int

    def __call__(self, start: Reached, planes: Planes, recorder: Recorder) -> Reached:
        """The best point and the best bound."""
        reached, w, gaps = start, start.w, [start.primal - start.bound]
        width = min(_WIDEST, float(np.sqrt(gaps[0])))
        while width >= _NARROWEST:
            problem = Problem(self.X, SmoothedHinge(self.preferences, width), self.alpha)
            for point, plain, offset in self._steps(problem, w):
                w = point.w
                # 2. The plane.
                planes.add(point.gradient - self.alpha * w, offset)
                bound = planes.minimum(self.alpha)[1]
                best = (w, plain) if plain < reached.primal else (reached.w, reached.primal)
                reached = Reached(*best, max(bound, reached.bound), reached.n_iter + 1)
                gaps.append(reached.primal - reached.bound)
                recorder.passes, problem.recorder.passes = recorder.passes + problem.recorder.passes, 0.0
                recorder.record(reached.n_iter, reached.primal, reached.bound)
                # 3. Whether that is enough.
                is_slow = len(gaps) > _PATIENCE and gaps[-1] > 0.5 * gaps[-1 - _PATIENCE]
                is_solved = relative_gap(reached.primal, reached.bound) <= self.tol
                if is_solved or is_slow or reached.n_iter == self.max_iter:
                    return reached
            width *= _NARROWER
        return reached

    def _steps(self, problem: Problem, w: Floats) -> Iterator[tuple[Point, float, float]]:
        """Steps to the minimum of a smoothed objective, with the plain one and the mean slope of pairs at each."""
        point = problem.point(w, problem.loss(problem.scores(w)))
        if not point.loss.curvature.any():
            return
        preconditioner = Preconditioner(self.X, point.loss.curvature, self.X.shape[0])
        smoothing = 0.0
        while point.suboptimality(self.alpha) > _LEFT * smoothing:
            # 1. The step.
            direction, _ = newton_direction(problem, point, preconditioner, _EXACTNESS)
            following = backtrack(problem, point, direction)
            if following is None:
                return
            point = following
            loss: Any = point.loss
            plain = 0.5 * self.alpha * float(point.w @ point.w) + loss.plain_value
            yield point, plain, loss.mean_slope
            smoothing = plain - point.objective
