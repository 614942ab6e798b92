"""The root of a sum over rows in blocks: between bounds from several points at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.matrices.block_expressions import PORTION
from toprank.matrices.block_tasks import fetched
from toprank.matrices.block_vector import BlockVector, applied, several

# Distances from a lower bound, as parts of the last step or of the way to the upper bound, where the sum is asked for.
_AHEAD = np.array([0.0, 1e-6, 1e-3, 0.03, 0.3, 1.0, 4.0])
# The same around an estimate that is much better than its bounds.
_AROUND = np.array([0.0, -1e-2, -1e-4, 1e-4, 1e-2])
_MOST_TRIPS = 100
_ROUNDING = 1e-15
# The longest step back, as a multiple of where it starts.
_FARTHEST = 1e6
# Bounds that are so close, as parts of the root, that an estimate between them is exact but for rounding.
_CLOSE = 1e-12


def root_from_below(
    values: BlockVector,
    share: BlockVector,
    sums: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]],
    first: Floats,
) -> float:
    """The root of a convex, falling function of t; `sums` are its values and its slopes, without the sign, in a block.

    A Newton step ends below the root wherever it starts, and the line through a point on either side of the root meets
    zero above it: the bounds of each trip come close to each other as the square of the distance of its points from
    the root. Minus infinity is where no row has a slope that counts.
    """
    pairs, known, reached = applied(several, values, share), np.zeros((3, 0)), -np.inf
    points = np.asarray(first, dtype=np.float64)
    for _ in range(_MOST_TRIPS):
        parts = fetched(pairs.tasks(_at_points, [], sums, points))
        known = np.concatenate([known, [points, *np.sum(parts, axis=0)]], axis=1)
        known = known[:, np.argsort(known[0], kind="stable")]
        t, value, slope = known
        # far above the root it is flat, and a step back from there would have no digits left
        is_flat = value <= -_FARTHEST * slope * np.maximum(np.abs(t), np.ptp(t))
        steps = np.divide(value, slope, out=np.full(len(t), -np.inf), where=(slope > 0) & ~is_flat)
        last, reached = reached, float((t + steps).max())
        if not np.isfinite(reached):
            break
        upper, step = _upper_bound(known), reached - (last if np.isfinite(last) else float(points.min()))
        if upper - reached <= _CLOSE * min(abs(reached), abs(upper)):
            return _estimate(known, reached, upper)
        rounding = _ROUNDING * max(1.0, abs(reached))
        if np.isfinite(last) and step <= rounding:
            break
        points = _next_points(known, reached, upper, max(abs(step), rounding))
    return reached


def _upper_bound(known: Floats) -> float:
    """Where the line through the last point above zero and the first one that is not is zero."""
    t, value, _ = known
    after = int(np.argmax(value <= 0)) if (value <= 0).any() else len(t)
    if after in (0, len(t)):
        return float(t[0]) if after == 0 else np.inf
    left, right = after - 1, after
    return float(t[left] + value[left] / (value[left] - value[right]) * (t[right] - t[left]))


def _next_points(known: Floats, lower: float, upper: float, step: float) -> Floats:
    """Bounds, and points around an estimate between them where points on both sides of the root are known."""
    if np.isfinite(upper) and known[1, 0] > 0:
        around = _estimate(known, lower, upper) + _AROUND * (upper - lower)
        return np.unique(np.clip(np.concatenate([[lower, upper], around]), lower, upper))
    return lower + _AHEAD * (upper - lower if np.isfinite(upper) else step)


def _estimate(known: Floats, lower: float, upper: float) -> float:
    """The root by Hermite's cubic for t as a function of the value, whose derivative is -1 / slope."""
    t, value, slope = known
    right = int(np.argmax(value <= 0))
    left = right - 1
    if right == 0 or not slope[right] > 0:
        return lower
    width = value[right] - value[left]
    x = -value[left] / width
    ends = (1 + 2 * x) * (1 - x) ** 2 * t[left] + x**2 * (3 - 2 * x) * t[right]
    bends = x * (1 - x) ** 2 / slope[left] - x**2 * (1 - x) / slope[right]
    return float(np.clip(ends - width * bends, lower, upper))


def _at_points(pair: tuple[Floats, Floats], sums: Any, points: Floats) -> Floats:
    values, share = pair
    total = np.zeros((2, len(points)))
    for start in range(0, len(values), PORTION):
        rows = slice(start, start + PORTION)
        total += sums(values[rows], share[rows], points)
    return total
