r"""The best point between two of a penalised convex risk, by tangents of the risk.

On the way from one point to another the penalty is a known parabola, and each point where the risk was looked at
gives a tangent below it. So the objective is above the larger of two parabolas of one curvature: those of the nearest
point before the best one and of the nearest behind it. Where the larger of them is least the risk is looked at next. A
risk of pieces of planes has few of them between two points, so a handful of looks is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from toprank.arrays import Floats

# Looks at the risk between the ends, at most.
_LOOKS = 8
# Share of the gain of a step that may be left.
_LEFT = 0.1
# Share of the way between two points that the next one keeps from both.
_DISTANCE = 0.02


class RiskPoint(Protocol):
    """A risk at given scores."""

    @property
    def value(self) -> float:
        """The risk."""

    @property
    def gradient(self) -> Floats:
        """A subgradient by the scores."""


Risk = Callable[[Floats], RiskPoint]


@dataclass(frozen=True)
class Tangent:
    """The objective at a share of the way, its slope along the way, and the risk there."""

    share: float
    value: float
    slope: float
    point: RiskPoint

    def parabola(self, share: float, curvature: float) -> float:
        """A lower bound of the objective elsewhere."""
        step = share - self.share
        return self.value + step * (self.slope + 0.5 * curvature * step)


@dataclass(frozen=True)
class Way:
    """The way from one point to another, with the scores at both and the products old·old, old·new and new·new."""

    risk: Risk
    alpha: float
    old: Floats
    new: Floats
    squares: tuple[float, float, float]

    @property
    def curvature(self) -> float:
        """That of the penalty."""
        aa, ab, bb = self.squares
        return max(self.alpha * (aa - 2 * ab + bb), 0.0)

    def scores(self, share: float) -> Floats:
        """The scores at a share of the way."""
        return self.old + share * (self.new - self.old)

    def tangent(self, share: float, point: RiskPoint | None = None) -> Tangent:
        """The objective at a share of the way, where the risk is `point` if that is known."""
        aa, ab, bb = self.squares
        rest, point = 1.0 - share, self.risk(self.scores(share)) if point is None else point
        penalty = 0.5 * self.alpha * (rest**2 * aa + 2 * share * rest * ab + share**2 * bb)
        slope = self.alpha * (share * bb - rest * aa + (rest - share) * ab)
        return Tangent(share, penalty + point.value, slope + float(point.gradient @ (self.new - self.old)), point)

    def best(self, start: RiskPoint) -> Tangent:
        """The best point that was looked at, where `start` is the risk at the beginning."""
        before, behind = self.tangent(0.0, start), self.tangent(1.0)
        first, best = before, min(before, behind, key=lambda one: one.value)
        if behind.slope <= 0.0 or before.slope >= 0.0:
            return best
        for _ in range(_LOOKS):
            share, bound = self._between(before, behind)
            if best.value - bound <= _LEFT * (first.value - best.value):
                break
            margin = _DISTANCE * (behind.share - before.share)
            found = self.tangent(min(max(share, before.share + margin), behind.share - margin))
            best = min(best, found, key=lambda one: one.value)
            before, behind = (found, behind) if found.slope < 0.0 else (before, found)
        return best

    def _between(self, before: Tangent, behind: Tangent) -> tuple[float, float]:
        """Where the larger of two parabolas is least, and its value there."""
        curvature = self.curvature
        # both less the same parabola are lines; they cross where the first one is no longer the larger
        slopes = [one.slope - curvature * one.share for one in (before, behind)]
        heights = [one.parabola(0.0, curvature) for one in (before, behind)]
        rise = slopes[1] - slopes[0]
        cross = (heights[0] - heights[1]) / rise if rise > 0.0 else behind.share
        share = min(max(cross, before.share), behind.share)
        if curvature > 0.0:
            share = min(share, before.share - before.slope / curvature)
            share = max(share, behind.share - behind.slope / curvature)
        return share, max(one.parabola(share, curvature) for one in (before, behind))
