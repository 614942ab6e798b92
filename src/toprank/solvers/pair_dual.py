"""The dual of the pair method on a working set, and moves of two multipliers; `pair_newton` has those of many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats, Mask
from toprank.formulations.certificates import dual_value
from toprank.formulations.surrogates import PiecewiseQuadratic
from toprank.formulations.thresholds import top_mean
from toprank.matrices.dense_or_sparse import weighted_sum
from toprank.solvers._pair_moves import ascend
from toprank.solvers._pair_state import (
    BOUND_NORM,
    COST,
    DELTA,
    MASS,
    OPTIMAL,
    ROW_MISSING,
    TOTAL,
    Positives,
    Products,
    State,
    Thresholds,
)
from toprank.solvers.problem import WeightedRows, relative_gap
from toprank.solvers.working_set import WorkingSet


@dataclass
class DualTerms:
    r"""What the dual needs beside the products of rows.

    .. math:: \max_{u, b}\; \text{shift} \sum u - \text{width} \sum \frac{u_i^2}{2 a_i} - \frac{1}{2\alpha} \|w\|^2
              + e \sum b - \sum \frac{d_j b_j^2}{2 \delta} - \tau \delta, \qquad \sum u = \sum b = S,

    with 0 ≤ u ≤ `top` and 0 ≤ b ≤ `caps` S. For a mean of the largest scores e, d and τ are zero; for the quantile of a
    surrogate the caps are infinite.
    """

    problem: WeightedRows
    surrogate: PiecewiseQuadratic
    top: Floats
    caps: Floats
    d: Floats
    e: float
    tau: float

    @classmethod
    def of(cls, problem: WeightedRows) -> DualTerms:
        """The terms of a problem that the pair method supports."""
        surrogate, threshold = problem.formulation.surrogate.pieces, problem.formulation.threshold
        top, n = problem.positive_share * surrogate.max_slope, len(problem.threshold_rows)
        if threshold.is_implicit:
            beta, tau = threshold.implicit.beta, threshold.implicit.tau
            d = surrogate.width / (problem.threshold_share * beta**2)
            return cls(problem, surrogate, top, np.full(n, np.inf), d, surrogate.shift / beta, tau)
        caps = threshold.caps(problem.threshold_weights)
        return cls(problem, surrogate, top, np.full(n, np.inf) if caps is None else caps, np.zeros(n), 0.0, 0.0)

    @property
    def has_caps(self) -> bool:
        """Whether b has upper bounds."""
        return bool(np.isfinite(self.caps[0]))

    def best_delta(self, b: Floats, d: Floats) -> float:
        """The best δ for b; one where there is none."""
        return float(np.sqrt(0.5 * d @ b**2 / self.tau)) if self.tau else 1.0

    def value(self, share: Floats, u: Floats, b: Floats, d: Floats, squared_norm: float) -> tuple[float, float]:
        """Dual objective at the best multiple of (u, b), and that multiple; `squared_norm` is ‖Σ u x − Σ b x‖²."""
        return dual_value(self.surrogate, share, u, squared_norm, self.problem.alpha, self.conjugate(u, b, d))

    def conjugate(self, u: Floats, b: Floats, d: Floats) -> float:
        """The conjugate of the threshold at b / Σu."""
        return 2 * self.tau * self.best_delta(b, d) / float(u.sum()) - self.e if self.tau else 0.0


class WorkingSetDual:
    """The dual on a working set: copies of its multipliers, and their moves.

    `scores` are those of all rows at (u, b), to which `n_sums` of products were added here, and `members` the numbers
    of the multipliers among all of their kind.
    """

    def __init__(self, terms: DualTerms, working: WorkingSet, u: Floats, b: Floats, scores: Floats) -> None:
        problem = terms.problem
        self.terms, self.working, self.alpha, self.surrogate = terms, working, problem.alpha, terms.surrogate
        classes = problem.positives, problem.threshold_rows
        self.members = tuple(np.flatnonzero(working.index_of[rows] >= 0) for rows in classes)
        self.positives, self.thresholds = (working.index_of[r[i]] for r, i in zip(classes, self.members, strict=True))
        of_positives, of_thresholds = self.members
        self.share, self.top, self.u = (x[of_positives] for x in (problem.positive_share, terms.top, u))
        self.caps, self.d, self.b = (x[of_thresholds] for x in (terms.caps, terms.d, b))
        self.threshold_share = problem.threshold_share[of_thresholds]
        self.diagonal = np.asarray(working.products.diagonal[working.numbers], dtype=np.float64)
        self.size = len(working.numbers)
        self.scalars = np.zeros(5)
        self.scores, self.n_sums = scores[working.numbers], 0
        self._refresh()

    def rescore(self) -> None:
        """The scores that follow from the multipliers, without the rounding of the updates."""
        weights = np.zeros(self.size)
        weights[self.positives] = self.u
        weights[self.thresholds] -= self.b
        self.scores = self.combination(weights / self.alpha)

    def _refresh(self) -> None:
        """What else follows from the multipliers."""
        self.scalars[DELTA] = self.terms.best_delta(self.b, self.d)
        self.bound = self.b >= (1 - 1e-12) * self.caps * self.u.sum()
        on_rows = np.zeros(self.size)
        on_rows[self.thresholds] = np.where(self.bound, self.caps, 0.0)
        self.bound_row = self.combination(on_rows)
        self.scalars[MASS], self.scalars[BOUND_NORM] = on_rows.sum(), on_rows @ self.bound_row

    def combination(self, weights: Floats) -> Floats:
        """Products of all rows of the working set with a weighted sum of them."""
        working = self.working
        if not weights.any():
            return np.zeros(len(weights))
        if working.is_complete:
            return weighted_sum(working.rows, weights)
        full = np.zeros(len(working.index_of))
        full[working.numbers] = weights
        return working.products.product(full)[working.numbers]

    def slopes(self) -> tuple[Floats, Floats]:
        """Derivatives of the dual by u and by b."""
        g = self.surrogate.shift - self.scores[self.positives] - self.surrogate.width * self.u / self.share
        return g, self.scores[self.thresholds] + self.terms.e - self.d * self.b / self.scalars[DELTA]

    def ascend(self, steps: int) -> tuple[int, bool]:
        """Moves of two multipliers; returns how many, and whether there is none left.

        Multipliers at a bound that are far from wanting to leave it do not take part.
        """
        self.scalars[TOTAL], self.scalars[COST] = self.u.sum(), 0.5 * float(self.d @ self.b**2)
        some = self._worth_a_look()
        done, optimal = self._ascend(*some, steps)
        if optimal and not all(mask.all() for mask in some):
            more, optimal = self._ascend(np.full(len(self.u), True), np.full(len(self.b), True), steps - done)
            done += more
        self.n_sums += done
        return done, optimal

    def _worth_a_look(self) -> tuple[Mask, Mask]:
        g, h = self.slopes()
        low_u, high_u = g[self.u > 0].min(initial=np.inf), g[self.u < self.top].max(initial=-np.inf)
        low_b, high_b = h[self.b > 0].min(initial=np.inf), h[~self.bound].max(initial=-np.inf)
        spread_u, spread_b = max(high_u - low_u, 0.0), max(high_b - low_b, 0.0)
        look_u = ((self.u > 0) | (g > low_u - spread_u)) & ((self.u < self.top) | (g < high_u + spread_u))
        return look_u, (self.b > 0) | (h > low_b - spread_b)

    def _ascend(self, look_u: Mask, look_b: Mask, steps: int) -> tuple[int, bool]:
        working, terms, shift, width = self.working, self.terms, self.surrogate.shift, self.surrogate.width
        rows, top, u = (x[look_u] for x in (self.positives, self.top, self.u))
        g, gains = np.empty(len(u)), np.empty(max(len(look_u), len(look_b)))
        positives = Positives(rows, self.diagonal[rows], width / self.share[look_u], top, shift, u, *_with_bits(g))
        rows, caps, d, b, bound = (x[look_b] for x in (self.thresholds, self.caps, self.d, self.b, self.bound))
        h, room = np.empty(len(b)), np.full(len(b), np.inf)
        thresholds = Thresholds(rows, self.diagonal[rows], caps, d, terms.e, terms.tau, b, bound, *_with_bits(h), room)
        state = State(self.scores, self.bound_row, self.scalars)
        left, code = steps, ROW_MISSING
        while left > 0 and code == ROW_MISSING:
            products = Products(working.buffer, working.place, self.diagonal, 1 / self.alpha)
            code, missing, done = ascend(products, positives, thresholds, state, _with_bits(gains), left)
            left -= done
            if code == ROW_MISSING:
                working.fetch(missing)
        self.u[look_u], self.b[look_b], self.bound[look_b] = u, b, bound
        return steps - left, code == OPTIMAL

    def gap(self) -> float:
        """The relative gap of the problem on the working set."""
        s = self.scores[self.thresholds]
        threshold = self.terms.problem.formulation.threshold
        if threshold.is_implicit:
            t = threshold.implicit.solve(s, self.threshold_share)
        else:
            t = top_mean(s, self.caps if self.terms.has_caps else None)[0]
        on_positives = self.scores[self.positives]
        squared = float(self.u @ on_positives - self.b @ s)
        primal = 0.5 * squared + float(self.share @ self.surrogate.value(t - on_positives))
        dual, _ = self.terms.value(self.share, self.u, self.b, self.d, squared * self.alpha)
        return relative_gap(primal, dual)

    def free(self) -> tuple[Mask, Mask]:
        """Multipliers strictly between their bounds."""
        return (self.u > 0) & (self.u < self.top), (self.b > 0) & ~self.bound

    def take(self, u: Floats, b: Floats, scores: Floats | None = None) -> None:
        """Go on from other multipliers, which keep the bounds but for rounding."""
        total = float(u.sum())
        tiny = 1e-14 * total
        self.u, self.b = np.where(u < tiny * self.share, 0.0, u), np.where(b < tiny / len(b), 0.0, b)
        if scores is None:
            self.rescore()
        else:
            self.scores, self.n_sums = scores, self.n_sums + 1
        self._refresh()


def _with_bits(values: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """An array and a view of its bits."""
    return values, values.view(np.int64)
