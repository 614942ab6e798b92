r"""The low-rank route: on a subspace, the kernel problem is a linear one, and Newton's method solves it.

With the features Φ of `toprank.matrices.incomplete_cholesky` as data, the linear problem is the kernel problem on a
subspace, with the true scores and the true norm: its optimum is an upper bound. Its dual point (y, p) is feasible for
the kernel problem too. With r the signed weights of all rows that belong to it,

.. math:: r^\top K r = \|\Phi^\top r\|^2 + r^\top R\, r, \qquad R = K - \Phi \Phi^\top,

and D loses :math:`r^\top R\, r / (2\alpha)` against the linear problem. That is what the subspace has to make small:
the part of Σ rᵢ φ(xᵢ) outside of it. Two ways:

- Pivots, rows of large :math:`r_i^2 R_{ii}`. (Rows of large :math:`R_{ii}` alone, as usual, are worse: on spambase with
  a Gaussian kernel, 1600 of them left a gap 10 to 200 times as large.)
- The direction Σ rᵢ φ(xᵢ) itself. It costs K r; then only the change of r from round to round is outside. Near the
  optimum it is worth hundreds of pivots, above all for a surrogate quantile, whose r changes smoothly. The support
  vectors are then all rows with a multiplier; without directions they are the pivots.

Steps:

1. Pivots: at first by :math:`R_{ii}`.
2. The linear problem by `solve_proximal_newton`, `solve_newton` or `solve_smooth_newton`, from the last solution, as
   exactly as the gap needs.
3. The lower bound with the true kernel, and the direction of r, from K r. Where K is not in memory, a sample of the
   entries says first whether the gap is small enough for that; if not, :math:`r^\top R\, r \le (\sum_i |r_i|
   \sqrt{R_{ii}})^2` gives a bound for nothing, a poor one.
4. Stop when the relative gap is at most `tol`, or when nothing can be added. Otherwise, if the direction is new and the
   gap is falling fast, go on with step 2; else add pivots, up to twice as many as there are. Last, the objective is
   computed again from the coefficients with K.

The bound holds for positive semidefinite kernels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toprank.arrays import Floats
from toprank.formulations.certificates import rounding_of_square
from toprank.formulations.thresholds import within_caps
from toprank.matrices.dense_or_sparse import matvec, transpose_matvec
from toprank.matrices.gram import Gram
from toprank.matrices.incomplete_cholesky import IncompleteCholesky
from toprank.solvers.incumbent import COLLAPSE, Incumbent
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.problem import DualPoint, Problem, Solution, relative_gap
from toprank.solvers.proximal_newton import has_proximal_points, solve_proximal_newton
from toprank.solvers.segment import best_on_segment
from toprank.solvers.smooth_newton import solve_smooth_newton
from toprank.solvers.working_set_newton import solve_newton

# Bytes that the factor may take.
_MOST_BYTES = 400_000_000
# Directions beyond the largest rank.
_DIRECTIONS = 30
# A gap above this is no time for directions, and if the last round left more than that part of it, for pivots.
_FAR, _SLOW = 0.1, 0.6
# Rows of the sample that says whether an exact lower bound is worth its cost.
_SAMPLE = 512
# More kernel values than the first number are computed for a lower bound only if the gap is at most so many `tol`, and
# if they are at most so many times those of the factor.
_FEW_VALUES, _NEAR, _MORE_VALUES = 500_000_000, 100.0, 20
# Part of the last gap to which the linear problem is solved by the interior-point method, and by proximal points.
_EXACTNESS, _EXACTNESS_OF_POINTS = 0.01, 0.1
# Gap, in `tol`, above which directions are no use to proximal points, whose steps at a high rank cost more than pivots.
_NEAR_FOR_POINTS = 10.0
# What rows without a multiplier count for as pivots, in mean multipliers: at an optimum of w = 0, as subspaces of few
# pivots have it, multipliers say little.
_FLOOR, _FLOOR_OF_POINTS = 1e-3, 1.0


def default_most_rank(gram: Gram) -> int:
    """The rank at which the factor takes 400 MB, at most the number of rows."""
    return max(1, min(gram.n, _MOST_BYTES // (gram.n * int(gram.dtype.itemsize))))


def solve_low_rank(
    problem: KernelProblem,
    *,
    tol: float = 1e-4,
    max_iter: int = 5000,
    verbose: int = 0,
    start: Solution | None = None,
    first_rank: int = 200,
    most_rank: int | None = None,
) -> Solution:
    """Minimise on a growing subspace; the module's docstring has the steps.

    `max_iter` counts all Newton steps. The support vectors of `start`, by any kernel solver, are the first pivots;
    there are `first_rank` of them to begin with and `most_rank` at most, by default as many as fit into 400 MB.
    """
    most = default_most_rank(problem.gram) if most_rank is None else min(most_rank, problem.gram.n)
    incumbent = Incumbent.from_zero(problem, problem.gram.n, tol, verbose)
    return _LowRankSolver(problem, max_iter, most, incumbent).run(start, first_rank)


class _LowRankSolver:
    """The loop over subspaces."""

    def __init__(self, problem: KernelProblem, max_iter: int, most_rank: int, incumbent: Incumbent) -> None:
        self.problem, self.max_iter, self.most_rank, self.incumbent = problem, max_iter, most_rank, incumbent
        self.tol, self.recorder = incumbent.tol, incumbent.recorder
        self.factor = IncompleteCholesky(problem.gram, most_rank + _DIRECTIONS)
        self.factor.residual[problem.weights == 0] = 0.0  # what takes no part is no pivot
        self.is_smooth = problem.formulation.threshold.is_implicit
        self.has_points = has_proximal_points(problem)
        self.n = problem.gram.n
        self.squared_norm = 0.0

    def run(self, start: Solution | None, first_rank: int) -> Solution:
        """Steps 1 to 4."""
        incumbent, importance, linear = self.incumbent, self._first_importance(start), None
        previous, exactness = np.inf, 0.1
        # 1. Pivots.
        self._add_pivots(first_rank, importance)
        while True:
            # 2. The linear problem.
            if self.is_smooth or self.factor.is_complete:
                exactness = min(exactness, 0.2 * self.tol)
            linear = self._step(exactness, linear)
            # 3. The lower bound, and the direction of r.
            gap, has_direction = incumbent.gap, False
            if linear.dual_point is not None:
                gap, importance, has_direction = self._certify(linear, linear.dual_point)
            # 4. Stop, or enlarge the subspace.
            can_grow = has_direction or self._can_add_pivots()
            is_exact = linear.gap <= 0.3 * (gap if can_grow else self.tol) or not linear.converged
            is_solved = gap <= self.tol and (incumbent.is_informative(gap) or gap > 0.5 * previous)
            if is_solved or (is_exact and not can_grow) or incumbent.n_iter >= self.max_iter:
                return self._finish()
            incumbent.record()
            exactness = max(0.2 * self.tol if gap > self.tol else 0.1 * COLLAPSE, self._exactness() * gap)
            if not is_exact:
                exactness = min(exactness, 0.1 * linear.gap)
            elif not has_direction or gap > self._far() or gap > _SLOW * previous:
                self._add_pivots(2 * self.factor.rank, importance)
                if self.has_points and linear.dual_point is not None:
                    exactness = min(exactness, max(0.2 * self.tol, 0.3 * self._expected_loss(linear.dual_point)))
            previous = gap

    def _exactness(self) -> float:
        """The part of a gap to which the next linear problem is solved."""
        return _EXACTNESS_OF_POINTS if self.has_points else _EXACTNESS

    def _far(self) -> float:
        """The gap above which pivots are added even if there is a new direction."""
        return _NEAR_FOR_POINTS * self.tol if self.has_points else _FAR

    def _expected_loss(self, point: DualPoint) -> float:
        """What is lost of the bound, as a share of the objective, if what the subspace misses of the rows is noise."""
        r = self.problem.signed(point.y, point.p)
        _, scale = self.problem.dual_value(point, float(np.sum(transpose_matvec(self.factor.features, r) ** 2)))
        return scale**2 * float(r**2 @ self.factor.residual) / (2 * self.problem.alpha * self.incumbent.primal)

    def _can_add_pivots(self) -> bool:
        return self.factor.rank < self.most_rank and not self.factor.is_complete

    def _first_importance(self, start: Solution | None) -> Floats:
        """The same for all rows; the support vectors of a start count most."""
        size = np.zeros(self.n) if start is None else np.abs(start.coef).astype(np.float64)
        return size + (1e-3 * float(size.mean()) or 1.0)

    def _add_pivots(self, rank: int, importance: Floats) -> None:
        """Step 1."""
        before = self.factor.rank
        self.factor.add_pivots(min(rank, self.most_rank), importance)
        self.recorder.passes += (self.factor.rank - before) / self.n

    def _step(self, tol: float, last: Solution | None) -> Solution:
        """Step 2."""
        problem, rank = self.problem, self.factor.rank
        features, positive, weights = self.factor.features, problem.positive, problem.weights
        if not (some := weights > 0).all():
            features, positive, weights = features[some], positive[some], weights[some]
        linear = Problem(features, positive, weights, problem.formulation, problem.alpha)
        if last is not None:
            last = replace(last, coef=np.concatenate([last.coef, np.zeros(rank - len(last.coef))]))
        solve = solve_smooth_newton if self.is_smooth else solve_newton
        if self.has_points:
            solve = solve_proximal_newton
        solution = solve(linear, tol=tol, max_iter=max(self.max_iter - self.incumbent.n_iter, 1), start=last)
        self.incumbent.n_iter += solution.n_iter
        self.recorder.passes += solution.history["passes"][-1] * rank / self.n
        v = solution.coef
        self._advance(self.factor.coefficients(v), matvec(self.factor.features, v), float(v @ v))
        return solution

    def _advance(self, c: Floats, scores: Floats, squared_norm: float) -> None:
        """Move the best point along the segment to a new one."""
        cross = float(self.incumbent.coef @ scores)
        share, better = self.incumbent.advance(c, scores, (self.squared_norm, cross, squared_norm))
        if better:
            rest = 1 - share
            self.squared_norm = rest**2 * self.squared_norm + 2 * rest * share * cross + share**2 * squared_norm

    def _certify(self, linear: Solution, point: DualPoint) -> tuple[float, Floats, bool]:
        """Step 3; returns the gap, perhaps an estimate, the importance of the rows, and if a direction was added."""
        problem, gram = self.problem, self.problem.gram
        if not (self.is_smooth or self.has_points):
            point = self._without_small_entries(point, linear.gap)
        r = problem.signed(point.y, point.p)
        importance = np.abs(r) + (_FLOOR_OF_POINTS if self.has_points else _FLOOR) * np.abs(r).mean()
        in_span = transpose_matvec(self.factor.features, r)
        n_active = np.count_nonzero(r)
        if gram.full is None and self._can_add_pivots():
            gap = self._estimated_gap(point, r, in_span)
            is_near = gap <= _NEAR * self.tol and n_active <= _MORE_VALUES * self.factor.rank
            if gap > _FAR or not (is_near or n_active * self.n <= _FEW_VALUES):
                outside = float(np.abs(r) @ np.sqrt(self.factor.residual)) ** 2
                outside += rounding_of_square(gram.diagonal, r)
                bound, _ = problem.dual_value(point, float(in_span @ in_span) + outside)
                self.incumbent.raise_bound(bound, point)
                return gap, importance, False
        products = gram.product(r)
        self.recorder.passes += n_active / self.n
        squared_norm = max(problem.squared_norm(r, products), float(in_span @ in_span))
        bound, scale = problem.dual_value(point, squared_norm)
        self.incumbent.raise_bound(bound, point)
        gap = self.incumbent.gap
        if gap <= self.tol or not self.factor.add_direction(r, products):
            return gap, importance, False
        multiple = scale / problem.alpha
        self._advance(multiple * r, multiple * products, multiple**2 * squared_norm)
        return self.incumbent.gap, importance, True

    def _estimated_gap(self, point: DualPoint, r: Floats, in_span: Floats) -> float:
        """The gap that an exact bound would leave, by a sample of the rows; `in_span` is Φᵀr."""
        size = np.abs(r) * np.sqrt(self.factor.residual)
        total, active = float(size.sum()), np.flatnonzero(r)
        steps = (np.arange(_SAMPLE) + 0.5) / _SAMPLE * total
        sample = np.minimum(np.searchsorted(np.cumsum(size), steps), self.n - 1)
        products = self.problem.gram.between(sample, active) @ r[active] - self.factor.features[sample] @ in_span
        outside = total * float(np.mean(r[sample] * products / np.maximum(size[sample], np.finfo(float).tiny)))
        bound, _ = self.problem.dual_value(point, float(in_span @ in_span) + max(outside, 0.0))
        return relative_gap(self.incumbent.primal, bound)

    def _without_small_entries(self, point: DualPoint, share: float) -> DualPoint:
        """A feasible point near the given one, in which no more than a share of y and of p was set to zero.

        An interior point has small entries everywhere, and K r costs as many rows of K as there are entries.
        """
        caps = self.problem.formulation.threshold.caps(self.problem.threshold_weights)
        most = np.ones(len(point.p)) if caps is None else caps
        return DualPoint(_trimmed(point.y, share), within_caps(_trimmed(point.p, share), most, 1.0))

    def _finish(self) -> Solution:
        """The objective from the coefficients: the features are not quite exact, and large coefficients round off.

        What rounding may hide of the objective is taken from the bound, so that the gap has it.
        Where rounding makes the point worse than w = 0, the best point between the two is taken.
        """
        problem, best = self.problem, self.incumbent
        best.scores = problem.scores(best.coef)
        best.primal = problem.primal(best.coef, best.scores)
        best.dual = max(best.dual - problem.rounding(best.coef, best.scores), 0.0)
        self.recorder.passes += np.count_nonzero(best.coef) / self.n
        if best.primal > best.at_zero:
            squares = (0.0, 0.0, float(best.coef @ best.scores))
            share, value = best_on_segment(problem.objective, squares, np.zeros(self.n), best.scores)
            if not value < best.at_zero:  # rounding left nothing convex
                share, value = 0.0, best.at_zero
            best.coef, best.scores, best.primal = share * best.coef, share * best.scores, value
        best.record()
        return best.solution(state=best.dual_point)


def _trimmed(values: Floats, share: float) -> Floats:
    """Values with the smallest ones, together at most a share of the sum, set to zero."""
    order = np.argsort(values)
    small = order[np.cumsum(values[order]) <= share * values.sum()]
    trimmed = values.copy()
    trimmed[small] = 0.0
    return trimmed
