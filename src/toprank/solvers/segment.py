"""The best point between two."""

from __future__ import annotations

from collections.abc import Callable

from toprank.arrays import Floats


def best_on_segment(
    objective: Callable[[float, Floats], float], squares: tuple[float, float, float], old: Floats, new: Floats
) -> tuple[float, float]:
    """The share of the new point at the best point between an old and a new one, and the objective there.

    The objective is a convex function of ‖w‖² and the scores; `squares` are the products old·old, old·new and new·new
    of the points themselves. The new point itself is taken if the best one cannot be further away than a tenth of the
    segment; otherwise the best of what nine rounds of golden-section search have seen.
    """
    aa, ab, bb = squares

    def at(share: float) -> float:
        squared = (1 - share) ** 2 * aa + 2 * share * (1 - share) * ab + share**2 * bb
        return objective(squared, (1 - share) * old + share * new)

    end = at(1.0)
    if end <= at(0.9):
        return 1.0, end
    low, high, golden = 0.0, 1.0, 0.6180339887498949
    left, right = 1 - golden, golden
    below, above = at(left), at(right)
    seen = [(at(0.0), 0.0), (end, 1.0), (below, left), (above, right)]
    for _ in range(8):
        if below < above:
            high, right, above = right, left, below
            left = high - golden * (high - low)
            below = at(left)
            seen.append((below, left))
        else:
            low, left, below = left, right, above
            right = low + golden * (high - low)
            above = at(right)
            seen.append((above, right))
    value, share = min(seen)
    return share, value
