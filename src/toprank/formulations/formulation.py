r"""A formulation: surrogate × threshold, as a function of the scores alone.

.. math:: F(s) = \sum_i a_i\, \ell(t(s) - s_i^+) \;[\, + \sum_j b_j\, \ell(s_j^- - t(s)) \,]

with weights a of the positives and b of the negatives that sum to 1. The second sum, of false positives, belongs to
Grill and GrillNP only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.surrogates import Surrogate
from toprank.formulations.thresholds import Threshold

Over = Literal["negatives", "all"]


@dataclass(frozen=True)
class Formulation:
    """What is minimised, apart from the penalty.

    `over` says which rows the threshold looks at, and `false_positives` whether negatives above the threshold are
    penalised too, which makes the problem non-convex.
    """

    surrogate: Surrogate
    threshold: Threshold
    over: Over = "negatives"
    false_positives: bool = False

    @property
    def is_convex(self) -> bool:
        """Whether the problem is convex and so has a certificate."""
        return self.threshold.is_convex and not self.false_positives

    def threshold_rows(self, positive: Mask) -> Rows:
        """Numbers of the rows that the threshold looks at."""
        return np.flatnonzero(~positive) if self.over == "negatives" else np.arange(len(positive))

    def negligible(self, positive: Mask, weights: Floats) -> Mask:
        """Rows whose weight is too small to matter at double precision, in the loss and in the threshold."""
        rows = self.threshold_rows(positive)
        mask = np.full(len(weights), True)
        mask[rows] = self.threshold.negligible(weights[rows])
        for side in (positive, ~positive) if self.false_positives else (positive,):
            mask[side] &= weights[side] <= self.surrogate.negligible_share * weights[side].sum()
        return mask

    def evaluate(self, scores: Floats, positive: Mask, weights: Floats) -> tuple[float, Floats, float]:
        """Loss, its (sub)gradient with respect to all scores, and the threshold."""
        rows = self.threshold_rows(positive)
        t, p = self.threshold.evaluate(scores[rows], weights[rows])
        gradient = np.zeros(len(scores))
        loss, total_slope = 0.0, 0.0
        sides = [(positive, -1.0)] + ([(~positive, 1.0)] if self.false_positives else [])
        for side, sign in sides:
            share = weights[side] / weights[side].sum()
            z = sign * (scores[side] - t)
            slopes = share * self.surrogate.derivative(z)
            loss += float(share @ self.surrogate.value(z))
            gradient[side] += sign * slopes
            total_slope -= sign * float(slopes.sum())
        gradient[rows] += total_slope * p
        return loss, gradient, t

    def curvature_of_groups(self, scores: Floats, positive: Mask, weights: Floats) -> Floats:
        """Numbers d ≥ 0 such that moving any group of rows by the same amount bends a convex loss by at most Σ d.

        The Hessian is Σ d⁰ (e − p)(e − p)ᵀ with d⁰ = a·ℓ''(t − s), and the weights of that of the threshold. For a
        group G with the part P of p it is Σ_G d⁰ (1 − P)² + P² Σ d⁰ over the others, at most Σ_G d⁰ + P Σ d⁰.
        """
        rows = self.threshold_rows(positive)
        t, p = self.threshold.evaluate(scores[rows], weights[rows])
        share = weights[positive] / weights[positive].sum()
        gaps = t - scores[positive]
        bent = np.zeros(len(scores))
        bent[positive] = share * self.surrogate.curvature(gaps)
        if self.threshold.is_implicit:
            slope = float(share @ self.surrogate.derivative(gaps))
            among = weights[rows] / weights[rows].sum()
            bent[rows] += self.threshold.implicit.curvature(scores[rows], among, t, slope)
        total = float(bent.sum())
        bent[rows] += total * p
        return bent
