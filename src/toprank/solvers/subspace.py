r"""What the routes of low rank share: the kernel problem on a subspace that grows, where it is a linear one.

With the features Φ of `toprank.matrices.incomplete_cholesky` as data, the linear problem is the kernel problem on a
subspace, with the true scores and the true norm: its optimum is an upper bound. Its dual point (y, p) is feasible for
the kernel problem too. With r the signed weights of all rows that belong to it,

.. math:: r^\top K r = \|\Phi^\top r\|^2 + r^\top R\, r, \qquad R = K - \Phi \Phi^\top,

and D loses :math:`r^\top R\, r / (2\alpha)` against the linear problem. That is what the subspace has to make small:
the part of Σ rᵢ φ(xᵢ) outside of it. Pivots, rows of large :math:`r_i^2 R_{ii}`, do. (Rows of large :math:`R_{ii}`
alone, as usual, are worse: on spambase with a Gaussian kernel, 1600 of them left a gap 10 to 200 times as large.)
A sample of the entries says how much is lost, and :math:`r^\top R\, r \le (\sum_i |r_i| \sqrt{R_{ii}})^2` gives a bound
for nothing, a poor one. The bounds hold for positive semidefinite kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from toprank.arrays import Floats
from toprank.formulations.certificates import rounding_of_square
from toprank.matrices.dense_or_sparse import matvec
from toprank.matrices.gram import Gram
from toprank.matrices.incomplete_cholesky import IncompleteCholesky
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.problem import DualPoint, Problem, Solution, relative_gap
from toprank.solvers.segment import best_on_segment

# Rows of the sample that says how much a subspace loses.
_SAMPLE = 512


def most_rank_within(n_bytes: int, gram: Gram) -> int:
    """The rank at which the factor takes so many bytes, at most the number of rows."""
    return max(1, min(gram.n, n_bytes // (gram.n * int(gram.dtype.itemsize))))


class Subspace:
    """A kernel problem, the factor of its matrix, and the best point and bound so far; a route is its loop.

    `solve_linear` is the solver of the linear problems; beside `most_rank` pivots there may be `n_directions`.
    """

    def __init__(
        self,
        problem: KernelProblem,
        solve_linear: Callable[..., Solution],
        incumbent: Incumbent,
        max_iter: int,
        most_rank: int,
        n_directions: int = 0,
    ) -> None:
        self.problem, self.solve_linear, self.incumbent = problem, solve_linear, incumbent
        self.max_iter, self.most_rank = max_iter, most_rank
        self.tol, self.recorder = incumbent.tol, incumbent.recorder
        self.factor = IncompleteCholesky(problem.gram, most_rank + n_directions)
        self.factor.residual[problem.weights == 0] = 0.0  # what takes no part is no pivot
        self.n = problem.gram.n
        self.squared_norm = 0.0

    def _can_add_pivots(self) -> bool:
        return self.factor.rank < self.most_rank and not self.factor.is_complete

    def _first_importance(self, start: Solution | None) -> Floats:
        """The same for all rows; the support vectors of a start count most."""
        size = np.zeros(self.n) if start is None else np.abs(start.coef).astype(np.float64)
        return size + (1e-3 * float(size.mean()) or 1.0)

    def _add_pivots(self, rank: int, importance: Floats) -> None:
        """Add pivots up to a rank."""
        before = self.factor.rank
        self.factor.add_pivots(min(rank, self.most_rank), importance)
        self.recorder.passes += (self.factor.rank - before) / self.n

    def _step(self, tol: float, last: Solution | None) -> Solution:
        """Solve the linear problem, from the solution of the last one."""
        problem, rank = self.problem, self.factor.rank
        features, positive, weights = self.factor.features, problem.positive, problem.weights
        if not (some := weights > 0).all():
            features, positive, weights = features[some], positive[some], weights[some]
        linear = Problem(features, positive, weights, problem.formulation, problem.alpha)
        if last is not None:
            last = replace(last, coef=np.concatenate([last.coef, np.zeros(rank - len(last.coef))]))
        steps = max(self.max_iter - self.incumbent.n_iter, 1)
        solution = self.solve_linear(linear, tol=tol, max_iter=steps, start=last)
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

    def _bound_for_nothing(self, point: DualPoint, r: Floats, in_span: Floats) -> None:
        """Raise the bound to one that asks for no kernel value; `in_span` is Φᵀr."""
        outside = float(np.abs(r) @ np.sqrt(self.factor.residual)) ** 2
        outside += rounding_of_square(self.problem.gram.diagonal, r)
        bound, _ = self.problem.dual_value(point, float(in_span @ in_span) + outside)
        self.incumbent.raise_bound(bound, point)

    def _estimated_gap(self, point: DualPoint, r: Floats, in_span: Floats) -> float:
        """The gap that an exact bound would leave, by a sample of the rows; `in_span` is Φᵀr."""
        size = np.abs(r) * np.sqrt(self.factor.residual)
        total, active = float(size.sum()), np.flatnonzero(r)
        if total == 0:
            return relative_gap(self.incumbent.primal, self.problem.dual_value(point, float(in_span @ in_span))[0])
        steps = (np.arange(_SAMPLE) + 0.5) / _SAMPLE * total
        sample = np.minimum(np.searchsorted(np.cumsum(size), steps), self.n - 1)
        products = self.problem.gram.between(sample, active) @ r[active] - self.factor.features[sample] @ in_span
        outside = total * float(np.mean(r[sample] * products / np.maximum(size[sample], np.finfo(float).tiny)))
        bound, _ = self.problem.dual_value(point, float(in_span @ in_span) + max(outside, 0.0))
        return relative_gap(self.incumbent.primal, bound)

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
