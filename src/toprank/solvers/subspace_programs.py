r"""The low-rank route for a largest score and a loss of parabolas: proximal points on a subspace, then programs.

A subspace that has all that matters to the gap would need a rank of thousands. But a smaller one leaves
:math:`R = K - \Phi \Phi^\top` so small that its curvature hardly matters beside that of the loss of the positives, and
programs (`toprank.solvers.feature_program`) with exact slopes come to the optimum of K itself. Steps:

1. Pivots: at first by :math:`R_{ii}`, later by the multipliers too.
2. The linear problem by `solve_proximal_newton`, from the last solution, about as exactly as the subspace is.
3. What the subspace loses, by a sample of the kernel matrix. Stop where a bound that needs no more of it is enough.
   Where what R adds to the curvature is small beside that of the loss, go on with step 4, else with twice as many
   pivots.
4. Exact scores of the point found: the lower bound with the true kernel, and another upper one.
5. Stop when the relative gap is at most `tol`. Otherwise programs, each from exact scores; where they are slow, go on
   with step 2 and twice as many pivots. Last, the objective is computed again from the coefficients with K.

From a start, such as the solution of a neighbour in a search, it begins with step 4, and a factor that is known of the
same kernel matrix is used again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toprank.arrays import Floats
from toprank.matrices.dense_or_sparse import transpose_matvec
from toprank.solvers.feature_program import FeatureProgramStep
from toprank.solvers.pair_dual import DualTerms, WorkingSetDual
from toprank.solvers.problem import DualPoint, Solution
from toprank.solvers.subspace import Subspace
from toprank.solvers.working_set import WorkingSet

# Gap of the first linear problem, and that of others as a part of what the subspace is expected to lose.
_FIRST_GAP, _EXACTNESS = 0.1, 0.5
# The most that may be lost where no kernel value is asked for, in `tol`; the gap of a linear problem then, and the
# least one where programs follow.
_NOTHING, _EXACT, _ROUGH = 0.7, 0.2, 5.0
# What rows without a multiplier count for as pivots, in mean multipliers: at an optimum of w = 0, as subspaces of few
# pivots have it, multipliers say little.
_FLOOR = 1.0
# Rows with a multiplier for each direction beyond which programs would be large, as at the gap of a linear problem many
# rows share that they will not at the optimum, and the part of the gap to which it is solved again then.
_ROWS_A_DIRECTION, _TIGHTER = 1.5, 0.3
# Positives of the sample that says what R adds to the curvature; how many times that of the loss it may be; and from a
# rank on, at which a larger one costs more than some more programs.
_SAMPLE, _MOST_CURVATURE, _LARGE_RANK, _CURVATURE_AT_LARGE = 256, 0.25, 1000, 3.0
# Rows with a multiplier beyond which there are no programs.
_MOST_ROWS = 8000
# Part of a gap that programs leave where they are slow.
_SLOW = 0.7


class SubspacePrograms(Subspace):
    """The loop over subspaces, and that over programs."""

    def run(self, start: Solution | None, first_rank: int) -> Solution:
        """Steps 1 to 5."""
        self._take_known_factor()
        if (known := self.problem.start_point(start)) is not None:
            self._go_on(known, first_rank)
            if self._is_over():
                return self._finish()
        # 1. Pivots.
        self._add_pivots(first_rank, self._first_importance(start))
        linear, exactness = None, _FIRST_GAP
        while True:
            # 2. The linear problem.
            linear = self._step(exactness, linear)
            if (point := linear.dual_point) is None:
                return self._finish()
            # 3. What the subspace loses.
            gap = self._estimate(point)
            self.incumbent.record()
            if self._is_over():
                return self._finish()
            loss, at_most = max(gap - linear.gap, 0.0), self.incumbent.gap - linear.gap
            is_exact = at_most <= _NOTHING * self.tol
            exactness = _EXACT * self.tol if is_exact else max(_ROUGH * self.tol, _EXACTNESS * loss)
            if is_exact or not self._can_add_pivots() or self._is_nearly_flat():
                if np.count_nonzero(point.p) > _ROWS_A_DIRECTION * self.factor.rank:
                    exactness = max(_EXACT * self.tol, min(exactness, _TIGHTER * linear.gap))
                if linear.converged and linear.gap > 2 * exactness:
                    continue
                # 4. and 5. Exact scores, and programs.
                point = self._make_programs(point)
                if self._is_over() or not self._can_add_pivots():
                    return self._finish()
                linear = replace(linear, dual_point=point)
            self._add_pivots(2 * self.factor.rank, self._importance(point))
            exactness = max(_ROUGH * self.tol, _EXACTNESS * self._expected_loss(point))

    def _take_known_factor(self) -> None:
        """That of an earlier problem with the same kernel matrix, if the same rows took part in it."""
        remembered, takes_part = self.problem.gram.remembered, self.problem.weights > 0
        factor, others = remembered.get("factor", (None, None))
        if factor is not None and factor.most_rank == self.most_rank and np.array_equal(takes_part, others):
            self.factor = factor
        remembered["factor"] = self.factor, takes_part

    def _go_on(self, point: DualPoint, first_rank: int) -> None:
        """From the point of a problem with another penalty, say: steps 4 and 5, with as many pivots as they need."""
        while self._can_add_pivots() and not (self.factor.rank and self._is_nearly_flat()):
            self._add_pivots(max(2 * self.factor.rank, first_rank), self._importance(point))
        if self.factor.rank:
            self._make_programs(point)

    def _is_solved(self, previous: float = np.inf) -> bool:
        """Whether the gap is small enough, and w = 0 ruled out or not worth more."""
        gap = self.incumbent.gap
        return gap <= self.tol and (self.incumbent.is_informative(gap) or gap > 0.5 * previous)

    def _is_over(self, previous: float = np.inf) -> bool:
        """Whether it is solved, or has made all steps that it may."""
        return self._is_solved(previous) or self.incumbent.n_iter >= self.max_iter

    def _importance(self, point: DualPoint) -> Floats:
        """Of rows as pivots."""
        size = np.abs(self.problem.signed(point.y, point.p))
        return size + _FLOOR * float(size.mean())

    def _estimate(self, point: DualPoint) -> float:
        """Step 3: the gap that exact scores would leave, by a sample; and the bound that is to be had for nothing."""
        r = self.problem.signed(point.y, point.p)
        in_span = transpose_matvec(self.factor.features, r)
        self._bound_for_nothing(point, r, in_span)
        return self._estimated_gap(point, r, in_span)

    def _expected_loss(self, point: DualPoint) -> float:
        """What is lost of the bound, as a share of the objective, if what the subspace misses of the rows is noise."""
        r = self.problem.signed(point.y, point.p)
        _, scale = self.problem.dual_value(point, float(np.sum(transpose_matvec(self.factor.features, r) ** 2)))
        return scale**2 * float(r**2 @ self.factor.residual) / (2 * self.problem.alpha * self.incumbent.primal)

    def _is_nearly_flat(self) -> bool:
        """Whether R has no eigenvalue among the positives, by a sample, that is large beside the loss's curvature."""
        positives = self.problem.positives
        some = positives[np.unique(np.linspace(0, len(positives) - 1, _SAMPLE).astype(np.intp))]
        features = self.factor.features[some].astype(np.float64)
        left = self.problem.gram.between(some, some).astype(np.float64) - features @ features.T
        largest = float(np.linalg.eigvalsh(left)[-1]) * len(positives) / len(some)
        surrogate, share = self.problem.formulation.surrogate.pieces, self.problem.positive_share
        most = _MOST_CURVATURE if self.factor.rank < _LARGE_RANK else _CURVATURE_AT_LARGE
        return largest <= most * self.problem.alpha * surrogate.width / float(np.median(share))

    def _make_programs(self, point: DualPoint) -> DualPoint:
        """Steps 4 and 5; returns the point where they ended, or got slow."""
        incumbent, dual, programs = self.incumbent, self._dual_at(point), FeatureProgramStep(self.factor)
        previous = np.inf
        if np.count_nonzero(dual.b) > _MOST_ROWS:
            return point
        while not self._is_over(previous) and incumbent.gap <= _SLOW * previous:
            previous, n_before = incumbent.gap, programs.n_programs
            programs(dual, self.tol)
            incumbent.n_iter += programs.n_programs - n_before
            point = self._certify(dual)
            incumbent.record()
        return point

    def _dual_at(self, point: DualPoint) -> WorkingSetDual:
        """Step 4."""
        problem, r = self.problem, self.problem.signed(point.y, point.p)
        products = problem.gram.product(r)
        _, scale = problem.dual_value(point, problem.squared_norm(r, products))
        u, terms = scale * point.y, DualTerms.of(problem)
        working, b = WorkingSet.without_products(problem.gram), float(u.sum()) * point.p
        dual = WorkingSetDual(terms, working, u, b, products * (scale / problem.alpha))
        self._certify(dual)
        return dual

    def _certify(self, dual: WorkingSetDual) -> DualPoint:
        """Offer the point and the bound of multipliers whose scores are exact; returns the dual point."""
        problem, point = self.problem, DualPoint(dual.u.copy(), dual.b / float(dual.b.sum()))
        r = problem.row_weights(dual.u, -dual.b)
        self.recorder.passes += np.count_nonzero(r) / self.n
        self.incumbent.raise_bound(problem.lower_bound(point, problem.alpha * dual.scores), point)
        c = r / problem.alpha
        self._advance(c, dual.scores, float(c @ dual.scores))
        return point
