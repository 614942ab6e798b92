r"""The pair method: ascent of the dual on a growing working set, for few features too many, or none at all.

It needs of the data only products of rows, so it serves kernels and wide sparse data alike. It is made for
piecewise quadratic surrogates with the mean of the k largest scores, and for the quadratic one with its quantile.

1. A first point: equal multipliers for (some of) the positives, and the threshold's gradient at their mean.
2. Working set: the positives and the threshold rows that score highest.
3. Moves of two multipliers with the largest gain to second order, on the working set, until its own gap is small
   (`toprank.solvers._pair_moves`). Products of rows are kept up to `cache_size`; the rest is computed again.
4. The multipliers, zero elsewhere, are feasible for the whole problem: a lower bound. One product scores all rows; the
   best point on the segment from the best so far is the new best.
5. Stop when the relative gap is at most `tol`; otherwise add the rows that are above the threshold or below their
   margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toprank.formulations.certificates import rounding_of_square
from toprank.formulations.thresholds import top_mean
from toprank.matrices.row_products import RowProducts
from toprank.saved_state import Array, Schema
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.pair_dual import DualTerms, Play, filled
from toprank.solvers.problem import DualPoint, Problem, Recorder, Solution, WeightedRows, best_on_segment, relative_gap
from toprank.solvers.working_set import Products, WorkingSet

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Positives whose mean is the first direction.
_FIRST_POSITIVES = 500
# Rows of a class that enter the working set at a time.
_ROWS_AT_ONCE = 400
# Part of the time of the moves that Newton steps may take: they pay only once it is clear who is at a bound.
_NEWTON_SHARE = 0.25
# Rounds without progress that end the run.
_FAILURES = 5
# Moves without any limit by the caller, in all and for each row.
_MOVES, _MOVES_A_ROW = 100_000, 2000
# Megabytes for the products of the rows of a linear problem.
_LINEAR_CACHE = 1000.0


def solve_pairs(
    problem: WeightedRows,
    products: Products,
    *,
    cache_size: float,
    tol: float = 1e-4,
    max_iter: int | None = None,
    verbose: int = 0,
    start: Solution | None = None,
) -> Solution:
    """Maximise the dual to a relative gap of `tol`; the solution's `coef` are the weights c of the rows, w = Σ c x.

    `cache_size` is in megabytes, `max_iter` counts moves. A `start` is used if it is of this method and these rows.
    """
    return _PairSolver(problem, products, cache_size, tol, max_iter, Recorder(verbose)).run(start)


def solve_kernel_pairs(problem: KernelProblem, **options: Any) -> Solution:
    """The pair method for a kernel matrix."""
    return solve_pairs(problem, problem.gram, **options)


def solve_linear_pairs(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    within_memory: bool = False,
    verbose: int = 0,
    start: Solution | None = None,
) -> Solution:
    """The pair method for rows and a direction w.

    With `within_memory` it ends where the products of the working set no longer fit into memory.
    """
    products, recorder = RowProducts(problem.X), Recorder(verbose)
    solver = _PairSolver(problem, products, _LINEAR_CACHE, tol, max_iter, recorder, within_memory)
    solution = solver.run(start)
    w = problem.combine(solution.coef)
    scores = problem.scores(w)  # of w itself: those of products of rows may have lost digits
    primal = problem.primal(w, scores)
    gap = relative_gap(primal, solution.dual)
    solution.history["primal"][-1], solution.history["gap"][-1] = primal, gap
    return replace(solution, coef=w, scores=scores, primal=primal, converged=gap <= tol)


@dataclass
class Multipliers:
    """The dual point at which the pair method ended, for a warm start."""

    saved_state: ClassVar[Schema] = Schema(
        {"u": Array("f8", (None,), low=0), "b": Array("f8", (None,), low=0)}, fitted=None
    )

    u: Floats
    b: Floats


class _PairSolver:
    """What is known so far, and the choice of rows."""

    def __init__(
        self,
        problem: WeightedRows,
        products: Products,
        cache_size: float,
        tol: float,
        max_iter: int | None,
        recorder: Recorder,
        within_memory: bool = False,
    ) -> None:
        self.problem, self.products, self.within_memory = problem, products, within_memory
        self.tol, self.recorder = tol, recorder
        self.max_iter = _MOVES + _MOVES_A_ROW * products.n if max_iter is None else max_iter
        self.terms = DualTerms.of(problem)
        self.u, self.b = np.zeros(len(problem.positives)), np.zeros(len(problem.threshold_rows))
        self.working = WorkingSet(products, cache_size)
        self.c, self.scores = np.zeros(products.n), np.zeros(products.n)
        self.primal, self.dual = problem.formulation.evaluate(self.scores, problem.positive, problem.weights)[0], 0.0
        self.point: DualPoint | None = None
        self.n_iter = 0

    def run(self, start: Solution | None) -> Solution:
        """Steps 1 to 5."""
        newest = self._first_point(start)
        gap, failures, inner_tol = 1.0, 0, 0.3
        while True:
            grown = self._add_rows(newest)
            if grown:
                self.recorder.passes += len(self.working.numbers) / self.products.n
            least = (0.9 if len(self.working.numbers) == self.products.n else 0.3) * self.tol
            inner_tol = min(inner_tol, max(0.1 * gap, least) if not failures else 0.1 * inner_tol)
            goes_on = self._ascend(newest, inner_tol)
            if goes_on:
                newest = self._advance()
            previous, gap = gap, relative_gap(self.primal, self.dual)
            self.recorder.record(self.n_iter, self.primal, self.dual)
            failures = failures + 1 if gap > 0.9 * previous and not grown else 0
            if gap <= self.tol or failures >= _FAILURES or self.n_iter >= self.max_iter or not goes_on:
                break
            if self.within_memory and not self.working.is_complete:
                break
        t = self.problem.formulation.threshold.value(
            self.scores[self.problem.threshold_rows], self.problem.threshold_weights
        )
        return Solution(
            self.c,
            t,
            self.primal,
            self.dual,
            self.n_iter,
            gap <= self.tol,
            self.recorder.rows,
            state=Multipliers(self.u, self.b),
            scores=self.scores,
            dual_point=self.point,
        )

    def _first_point(self, start: Solution | None) -> Floats:
        """Step 1; returns the scores."""
        last = None if start is None else start.state
        if isinstance(last, Multipliers) and len(last.u) == len(self.u) and len(last.b) == len(self.b):
            self.u, self.b = np.minimum(last.u, self.terms.top), last.b.copy()
            if self.u.any() and self.b.any():
                self._make_feasible()
                scores = self._take_best_multiple()
                if self.u.any():  # else the point is worse than none, as after a change of τ
                    return scores
        self._take_first_multipliers()
        return self._take_best_multiple()

    def _take_first_multipliers(self) -> None:
        """Some positives alike, against the gradient of the threshold at their sum."""
        problem = self.problem
        self.u = np.zeros(len(self.u))
        chosen = np.arange(0, len(self.u), max(1, len(self.u) // _FIRST_POSITIVES))
        self.u[chosen] = 0.5 * np.minimum(self.terms.top, problem.positive_share)[chosen]
        scores = np.zeros(self.products.n)  # at which the dual of a surrogate quantile is positive
        if not self.terms.tau:
            scores[problem.positives] = self.u
            scores = self.products.product(scores)
            self.recorder.passes += 2
        _, p = problem.formulation.threshold.evaluate(scores[problem.threshold_rows], problem.threshold_weights)
        self.b = self.u.sum() * p

    def _take_best_multiple(self) -> Floats:
        """Scale the multipliers; returns the scores."""
        weights = self._row_weights()
        scores = self.products.product(weights)
        _, scale = self._dual_value(float(weights @ scores))
        self.u, self.b = scale * self.u, scale * self.b
        self.recorder.passes += 2
        return np.asarray(scores * (scale / self.problem.alpha))

    def _row_weights(self) -> Floats:
        weights = np.zeros(self.products.n)
        weights[self.problem.positives] = self.u
        weights[self.problem.threshold_rows] -= self.b
        return weights

    def _dual_value(self, squared_norm: float) -> tuple[float, float]:
        return self.terms.value(self.problem.positive_share, self.u, self.b, self.terms.d, squared_norm)

    def _add_rows(self, scores: Floats) -> bool:
        """Steps 2 and 5: rows with a multiplier, and those that want one by their scores; whether any is new."""
        problem, working = self.problem, self.working
        size = len(working.numbers)
        working.add(np.flatnonzero(self._row_weights()))
        threshold, share = problem.formulation.threshold, problem.threshold_share
        s = scores[problem.threshold_rows]
        inside = working.index_of[problem.threshold_rows] >= 0
        if threshold.is_implicit:
            t = threshold.implicit.solve(s, share)
            level = t - self.terms.e
        else:
            caps = self.terms.caps[inside] if self.terms.has_caps else None
            t, p = top_mean(s[inside], caps)
            level = float(s[inside][p > 0].min())
        margin = t - scores[problem.positives] + self.terms.surrogate.shift
        for rows, excess in ((problem.positives, margin), (problem.threshold_rows, s - level)):
            outside = np.flatnonzero(working.index_of[rows] < 0)
            wanted = int(np.count_nonzero(excess[outside] > 0))
            if wanted or size == 0:
                taken = min(max(2 * wanted, _ROWS_AT_ONCE // 10), _ROWS_AT_ONCE, len(outside))
                order = np.argsort(-excess[outside], kind="stable")
                working.add(rows[outside[order[:taken]]])
        return len(working.numbers) > size

    def _ascend(self, scores: Floats, tol: float) -> bool:
        """Step 3, from multipliers with the given scores; whether it went well.

        It does not if the products are so large that rounding leaves them indefinite: then moves may be without end.
        """
        play = Play(self.terms, self.working, self.u, self.b, scores)
        spent = 0.0
        while True:
            steps = min(max(100, min(play.size // 8, 1000)), self.max_iter - self.n_iter)
            done, optimal = play.ascend(steps)
            self.n_iter += done
            spent += 10.0 * done * play.size
            if optimal or play.gap() <= tol or self.n_iter >= self.max_iter:
                break
            if _NEWTON_SHARE * spent >= play.newton_cost():
                play.newton_step()
                spent = 0.0
        if not (np.isfinite(play.u.sum()) and 0 < play.b.sum() < np.inf):
            return False
        self.u[play.in_play[0]], self.b[play.in_play[1]] = play.u, play.b
        return True

    def _advance(self) -> Floats:
        """Step 4; returns the newest scores."""
        problem = self.problem
        self._make_feasible()
        c = self._row_weights() / problem.alpha
        scores = self.products.product(c)
        self.recorder.passes += 2  # one for w, one for the scores
        bb = float(c @ scores)
        bound, _ = self._dual_value((bb + rounding_of_square(self.products.diagonal, c)) * problem.alpha**2)
        if bound > self.dual:
            conjugate = self.terms.conjugate(self.u, self.b, self.terms.d)
            self.dual, self.point = bound, DualPoint(self.u.copy(), self.b / float(self.u.sum()), conjugate)

        def objective(squared: float, s: Floats) -> float:
            return 0.5 * problem.alpha * squared + problem.formulation.evaluate(s, problem.positive, problem.weights)[0]

        squares = (float(self.c @ self.scores), float(self.c @ scores), bb)
        share, value = best_on_segment(objective, squares, self.scores, scores)
        if value < self.primal:
            self.c = (1 - share) * self.c + share * c
            self.scores = (1 - share) * self.scores + share * scores
            self.primal = value
        return scores

    def _make_feasible(self) -> None:
        """Against rounding: equal sums, and no multiplier above its bound."""
        total = float(self.u.sum())
        self.b = filled(self.b * (total / float(self.b.sum())), self.terms.caps * total, total)
