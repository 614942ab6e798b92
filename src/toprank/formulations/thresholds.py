r"""Thresholds: functions t(s) of the scores of some rows with weights.

Each gives its value and p = ∂t/∂s, non-negative and of sum 1. A weight of 2 equals a repeated row.

Conventions. k and τ·(sum of weights) may be fractional: the last row of the top then counts in part. At ties the rows
of equal score are taken in the order of their index; any choice is a subgradient.

A threshold also declares what kind of problem it makes, as attributes of `Threshold`, by which solvers are chosen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toprank.arrays import Floats, Mask
from toprank.exceptions import InputError, Message
from toprank.formulations.surrogates import LARGEST_GAP, Surrogate

# Distances from a known threshold at which that of similar scores in blocks is looked for, as parts of it.
_AROUND = np.array([0.0, -0.1, -0.01, 0.01, 0.1])
# The same from a lower bound, as parts of how far above it the threshold may be.
_ABOVE = np.array([0.0, 1e-3, 0.03, 0.1, 0.3, 1.0, 3.0])
# A part of the rows that is worth a copy of its own, where most rows count for nothing.
_FEW_ROWS = 0.5
# A row of at most this part of a mean of scores does not move it by a rounding error of 1.
_NEGLIGIBLE = float(np.finfo(float).eps) / LARGEST_GAP


class Threshold(ABC):
    """A function of scores and weights, and what kind of problem it makes."""

    is_convex: ClassVar[bool] = True
    is_maximum: ClassVar[bool] = False
    """Whether it is the maximum of p · s over the simplex with upper bounds `caps`."""
    is_implicit: ClassVar[bool] = False
    """Whether an equation defines it and it bends wherever its loss does: the problem is smooth if the loss is."""
    k: float | None = None
    """Number of rows that it looks at, if that does not grow with their weights."""

    @property
    def implicit(self) -> SurrogateQuantile:
        """The threshold itself, for what is made for those that an equation defines."""
        raise ValueError(f"no equation defines the threshold {self}")

    @property
    def level(self) -> float:
        """Share of the weight from the threshold upwards, of a true quantile."""
        raise ValueError(f"the threshold {self} is no quantile")

    def caps(self, weights: Floats) -> Floats | None:
        """Upper bounds of p where the threshold is a maximum, or None for the plain maximum."""
        raise ValueError(f"the threshold {self} is no maximum over a simplex with bounds")

    def of_parts(self, weights: Floats) -> Threshold:
        """The threshold that stands for this one on random parts of the rows with the given weights."""
        return self

    @abstractmethod
    def evaluate(self, scores: Floats, weights: Floats) -> tuple[float, Floats]:
        """The threshold and its (sub)gradient p with respect to the scores."""

    def value(self, scores: Floats, weights: Floats) -> float:
        """The threshold alone."""
        return self.evaluate(scores, weights)[0]

    def negligible(self, weights: Floats) -> Mask:
        """Rows whose weight is too small to move the threshold at double precision, whatever their scores."""
        return np.asarray(weights <= _NEGLIGIBLE * weights.sum())


@dataclass(frozen=True)
class TopMean(Threshold):
    r"""Mean of the k largest scores, :math:`t(s) = \max \{ p \cdot s : 0 \le p \le c, \sum p = 1 \}`, c = weights / k.

    Give `k`, or `share` for k = share · (sum of weights); with neither it is the largest score, whatever the weights.
    """

    k: float | None = None
    share: float | None = None
    is_maximum: ClassVar[bool] = True

    def caps(self, weights: Floats) -> Floats | None:
        """Upper bounds c of p, or None for the plain maximum: bounds of 1 and more say nothing."""
        if self.k is None and self.share is None:
            return None
        total = float(weights.sum())
        k = self.share * total if self.k is None and self.share is not None else self.k
        assert k is not None
        if k <= weights.min() * (1 + 1e-12):  # a share of 1/n may come out a little larger
            return None
        if k > total * (1 - 1e-9):
            top, parameter = Message("the {k=:g} largest scores", k=k), Message("{k}")
            if self.share is not None:
                top, parameter = Message("the largest scores, a share {tau=}", tau=self.share), Message("{tau}")
            few = f"there are only {total:g} such rows (sum of weights), of which the top must be a part"
            text = "the threshold is the mean of {top}, but {few}; use a smaller {parameter}"
            raise InputError.saying(text, top=top, few=few, parameter=parameter)
        return np.maximum(weights / k, _NEGLIGIBLE)  # a smaller one says the same, but its reciprocal may overflow

    def of_parts(self, weights: Floats) -> Threshold:
        """A number of rows becomes a share."""
        return self if self.k is None else TopMean(share=self.k / float(weights.sum()))

    def evaluate(self, scores: Floats, weights: Floats) -> tuple[float, Floats]:
        """Fill the largest scores up to their caps until the total is 1."""
        return top_mean(scores, self.caps(weights))

    def value(self, scores: Floats, weights: Floats) -> float:
        """The mean alone."""
        return top_mean_value(scores, self.caps(weights))

    def negligible(self, weights: Floats) -> Mask:
        """Rows of negligible cap; to the largest score every row counts."""
        caps = self.caps(weights)
        return np.zeros(len(weights), dtype=bool) if caps is None else np.asarray(caps <= _NEGLIGIBLE)


def top_mean(scores: Floats, caps: Floats | None) -> tuple[float, Floats]:
    """Maximum of p · scores over the capped simplex, and a maximiser p: O(n + k log k)."""
    p = np.zeros_like(scores, dtype=np.float64)
    if caps is None:
        best = int(np.argmax(scores))
        p[best] = 1.0
        return float(scores[best]), p
    most = min(int(np.ceil(1 / caps.min())) + 1, len(scores))
    top = np.argpartition(scores, len(scores) - most)[len(scores) - most :]
    top = top[np.argsort(-scores[top], kind="stable")]
    before = np.concatenate([[0.0], np.cumsum(caps[top])[:-1]])
    p[top] = np.clip(1.0 - before, 0.0, caps[top])
    p /= p.sum()
    return float(p[top] @ scores[top]), p


def top_mean_value(scores: Any, caps: Any) -> float:
    """The maximum alone; scores that are not in one array know the mean of the largest themselves."""
    if not isinstance(scores, np.ndarray):
        return float(scores.top_mean(caps))
    return float(scores.max()) if caps is None else top_mean(scores, caps)[0]


def within_caps(values: Floats, most: Floats, total: float) -> Floats:
    """Values close to the given ones that are at most `most` and have the sum `total`; zeros stay zeros if they can."""
    values = np.minimum(values, most)
    excess = float(values.sum()) - total
    if excess > 0 or not np.isfinite(most).all():
        return np.asarray(values * (total / max(total + excess, np.finfo(float).tiny)))
    spare = np.where(values > 0, most - values, 0.0)
    if float(spare.sum()) < -excess:
        spare = most - values
    return np.asarray(values - spare * (excess / max(float(spare.sum()), np.finfo(float).tiny)))


@dataclass(frozen=True)
class Quantile(Threshold):
    r"""Top quantile, :math:`\max \{ t : \sum_{s_j \ge t} \text{weight}_j \ge \tau \sum_j \text{weight}_j \}`."""

    tau: float
    is_convex: ClassVar[bool] = False

    @property
    def level(self) -> float:
        """The share τ."""
        return self.tau

    def evaluate(self, scores: Floats, weights: Floats) -> tuple[float, Floats]:
        """The score at which the weight of the rows from above reaches its share."""
        order = np.argsort(-scores, kind="stable")
        reached = np.cumsum(weights[order])
        place = int(np.searchsorted(reached, self.tau * reached[-1] * (1 - 1e-12), side="left"))
        row = order[min(place, len(order) - 1)]
        p = np.zeros(len(scores))
        p[row] = 1.0
        return float(scores[row]), p


@dataclass(frozen=True)
class SurrogateQuantile(Threshold):
    r"""Surrogate top quantile: the t with mean :math:`\ell(\beta (s_j - t)) = \tau`."""

    tau: float
    beta: float
    surrogate: Surrogate
    is_implicit: ClassVar[bool] = True

    @property
    def implicit(self) -> SurrogateQuantile:
        """Itself."""
        return self

    def evaluate(self, scores: Floats, weights: Floats) -> tuple[float, Floats]:
        """Solve for t, and differentiate."""
        share = weights / weights.sum()
        t = self.solve(scores, share)
        return t, self.gradient(scores, share, t)

    def value(self, scores: Floats, weights: Floats) -> float:
        """Solve for t."""
        return self.solve(scores, weights / weights.sum())

    def gradient(self, scores: Floats, share: Floats, t: float) -> Floats:
        """The p that belongs to a threshold t: proportional to the slopes (Theorem 3.4 of the framework paper)."""
        slopes = self.slopes(scores, share, t)
        p: Floats = slopes / slopes.sum()
        return p

    def slopes(self, scores: Floats, share: Floats, t: float) -> Floats:
        """Terms share · ℓ'(β(s − t))."""
        return share * self.surrogate.derivative(self.beta * (scores - t))

    def curvature(self, scores: Floats, share: Floats, t: float, factor: float, total: float | None = None) -> Floats:
        """Weights h of the Hessian Σ h (x − g)(x − g)ᵀ of t(Xw), g = Xᵀp, times a factor.

        `total` is the sum of the slopes, where it is known.
        """
        excess = self.beta * (scores - t)
        total = float(share @ self.surrogate.derivative(excess)) if total is None else total
        weights: Floats = factor * self.beta / total * share * self.surrogate.curvature(excess)
        return weights

    def negligible(self, weights: Floats) -> Mask:
        """Rows that no loss lifts to a visible part of τ."""
        return np.asarray(weights <= self.tau * self.surrogate.negligible_share * weights.sum())

    def solve(self, scores: Floats, share: Floats, start: float = -np.inf, above: float = 0.0) -> float:
        """Newton's method from below on a convex, falling function: it rises to the root and never passes it.

        It starts from the largest of the lower bounds that one row alone, the mean by Jensen's inequality, and a Newton
        step from `start`, which ends below the root wherever `start` is, give. With `above`, `start` is about a lower
        bound, and the root is about so far above it.
        """
        if (root := self.surrogate.quantile(self.beta * scores, share, self.tau)) is not None:
            return root / self.beta
        if hasattr(scores, "root_from_below"):
            return self._solve_in_blocks(scores, share, start, above)
        heaviest = int(np.argmax(np.where(share > 0, scores, -np.inf)))
        single = scores[heaviest] - float(self.surrogate.inverse(np.array(self.tau / share[heaviest]))) / self.beta
        jensen = share @ scores - float(self.surrogate.inverse(np.array(self.tau))) / self.beta
        t = max(float(single), float(jensen))
        if np.isfinite(start):
            t = max(t, self._newton_step(scores, share, start))
        for _ in range(200):
            following = self._newton_step(scores, share, t)
            if following <= t + 1e-15 * max(1.0, abs(t)):
                break
            t = following
        return t

    def _solve_in_blocks(self, scores: Any, share: Any, start: float, above: float) -> float:
        """The same for scores that are not in one array: from several points at a time, as a step is a round trip."""

        def rise() -> float:
            t = -np.inf
            if np.isfinite(start):
                near = above * _ABOVE if above > 0 else max(abs(start), 1e-9) * _AROUND
                t = float(scores.root_from_below(share, self._excess_and_slope, start + near))
            if not np.isfinite(t):  # no row has a slope at the start
                jensen = share @ scores - float(self.surrogate.inverse(np.array(self.tau))) / self.beta
                t = float(scores.root_from_below(share, self._excess_and_slope, [jensen]))
            return t

        return float(scores.noted(repr(self), rise))

    def _excess_and_slope(self, scores: Floats, share: Floats, points: Floats) -> tuple[Floats, Floats]:
        """Terms of some of the rows in the equation and in its slope at some t; of τ they have a part by their share.

        A row that has no slope at the lowest t has no loss there, and so at none of them.
        """
        of_tau = self.tau * float(share.sum())
        rows = np.flatnonzero(self.surrogate.derivative(self.beta * (scores - points.min())))
        if len(rows) < _FEW_ROWS * len(scores):
            scores, share = scores[rows], share[rows]
        excess, slope = np.zeros(len(points)), np.zeros(len(points))
        for k, t in enumerate(points):
            z = self.beta * (scores - t)
            excess[k] = share @ self.surrogate.value(z) - of_tau
            slope[k] = self.beta * (share @ self.surrogate.derivative(z))
        return excess, slope

    def conjugate(self, p: Floats, share: Floats) -> float:
        """t*(p) at any p of the simplex, for the surrogates for which it has a closed form."""
        return self.surrogate.quantile_conjugate(p, share, self.tau) / self.beta

    def _newton_step(self, scores: Floats, share: Floats, t: float) -> float:
        z = self.beta * (scores - t)
        slope = self.beta * float(share @ self.surrogate.derivative(z))
        excess = float(share @ self.surrogate.value(z)) - self.tau
        return t + excess / slope if slope > 0 else -np.inf
