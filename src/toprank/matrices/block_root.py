"""The root of a sum over rows in blocks, by Newton's method from several points at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.matrices.block_tasks import added_up
from toprank.matrices.block_vector import BlockVector, applied

# Distances from the last point, as parts of the last step, at which the sum is asked for too.
_AHEAD = np.array([0.0, 1e-6, 1e-3, 0.03, 0.3, 1.0, 4.0])
_MOST_TRIPS = 100


def root_from_below(
    values: BlockVector, share: BlockVector, sums: Callable[[Floats, Floats, float], tuple[float, float]], first: Floats
) -> float:
    """The root of a convex, falling function of t; `sums` are its value and its slope, without the sign, in a block.

    A Newton step ends below the root wherever it starts, so the largest of several is the best one, and the method
    rises to the root as it does from one point, in fewer trips. Minus infinity is where no row has a slope.
    """
    pairs, points, reached = applied(_both, values, share), np.asarray(first, dtype=np.float64), -np.inf
    for _ in range(_MOST_TRIPS):
        found = np.asarray(added_up(pairs.tasks(_at_points, [], sums, points)))
        steps = np.divide(found[0], found[1], out=np.full(len(points), -np.inf), where=found[1] > 0)
        following = float((points + steps).max())
        if not np.isfinite(following):
            break
        length = following - (reached if np.isfinite(reached) else float(points.min()))
        if np.isfinite(reached) and length <= 1e-15 * max(1.0, abs(reached)):
            break
        reached = following
        points = reached + _AHEAD * max(abs(length), 1e-15 * max(1.0, abs(reached)))
    return reached


def _both(values: Any, share: Any) -> tuple[Any, Any]:
    return values, share


def _at_points(pair: tuple[Floats, Floats], sums: Any, points: Floats) -> Floats:
    return np.array([sums(*pair, t) for t in points.tolist()]).T
