r"""The pair method: ascent of the dual on a growing working set, for few features too many, or none at all.

It needs of the data only products of rows, so it serves kernels and wide sparse data alike. It is made for
piecewise quadratic surrogates with the mean of the k largest scores, and for the quadratic one with its quantile.

1. A first point: equal multipliers for (some of) the positives, and the threshold's gradient at their mean; for sparse
   rows and a largest score that of `toprank.solvers.sweeps`, where that is not the end.
2. Working set: the positives and the threshold rows that score highest.
3. Moves of two multipliers with the largest gain to second order, on the working set, until its own gap is small
   (`toprank.solvers._pair_moves`). Products of rows are kept up to `cache_size`; the rest is computed again.
4. The multipliers, zero elsewhere, are feasible for the whole problem: a lower bound. One product scores all rows; the
   best point on the segment from the best so far is the new best.
5. Stop when the relative gap is at most `tol`; otherwise add the rows that are above the threshold or below their
   margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.formulations.certificates import rounding_of_square
from toprank.formulations.thresholds import top_mean, within_caps
from toprank.matrices.own_storage import OwnStorage
from toprank.matrices.row_products import RowProducts
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.pair_dual import DualTerms, WorkingSetDual
from toprank.solvers.pair_newton import COST_OF_MOVE, FaceStep, SecondOrderStep
from toprank.solvers.phases import joined
from toprank.solvers.problem import DualPoint, Problem, Solution, WeightedRows
from toprank.solvers.program_step import ProgramStep
from toprank.solvers.sweeps import has_sweeps, solve_by_sweeps
from toprank.solvers.working_set import Products, WorkingSet

# Positives whose mean is the first direction.
_FIRST_POSITIVES = 500
# Rows of a class that enter the working set at a time.
_ROWS_AT_ONCE = 400
# Rounds without progress that end the run.
_FAILURES = 5
# Moves without any limit by the caller, in all and for each row.
_MOVES, _MOVES_A_ROW = 100_000, 2000
# Sum of multipliers beyond which the moves have no end.
_MOST = 1e100
# Share of the largest row weight that is rounding.
_SAME = 1e-12
# Sums of products that scores may be added up of where a run ends: so many units of their last digit are lost.
_FEW_SUMS = 40
# Megabytes for the products of the rows of a linear problem.
_LINEAR_CACHE = 1000.0


def solve_pairs(
    problem: WeightedRows,
    products: Products,
    *,
    cache_size: float,
    tol: float = 1e-4,
    max_iter: int | None = None,
    within_memory: bool = False,
    verbose: int = 0,
    start: Solution | None = None,
) -> Solution:
    """Maximise the dual to a relative gap of `tol`; the solution's `coef` are the weights c of the rows, w = Σ c x.

    `cache_size` is in megabytes, `max_iter` counts moves. With `within_memory` it ends where the products of the
    working set no longer fit into that. Of a `start` the dual point is used, if it is of these rows.
    """
    incumbent = Incumbent.from_zero(problem, products.n, tol, verbose)
    incumbent.of_rows = True
    return _PairSolver(problem, WorkingSet(products, cache_size), incumbent, max_iter, within_memory).run(start)


def solve_kernel_pairs(problem: KernelProblem, **options: Any) -> Solution:
    """The pair method for a kernel matrix."""
    return solve_pairs(problem, problem.gram, **options)


def solve_linear_pairs(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    start: Solution | None = None,
    verbose: int = 0,
    **options: Any,
) -> Solution:
    """The pair method for rows and a direction w; sparse rows of a largest score are swept first."""
    first = None
    if has_sweeps(problem):
        first = solve_by_sweeps(problem, tol=tol, max_iter=max_iter, verbose=verbose, start=start)
        if first.converged or first.n_iter == max_iter:
            return first
        start, max_iter = first, None if max_iter is None else max_iter - first.n_iter
    options = {"cache_size": _LINEAR_CACHE, "tol": tol, "max_iter": max_iter, "verbose": verbose, **options}
    solution = solve_pairs(problem, RowProducts(problem.X), start=start, **options)
    w = problem.combine(solution.coef)
    scores = problem.scores(w)  # of w itself: those of products of rows may have lost digits
    solution = solution.recertified(problem.primal(w, scores), solution.dual, tol, coef=w, scores=scores)
    return solution if first is None else joined(first, solution, tol)


class _PairSolver:
    """The multipliers u and b, and the choice of rows."""

    def __init__(
        self,
        problem: WeightedRows,
        working: WorkingSet,
        incumbent: Incumbent,
        max_iter: int | None,
        within_memory: bool,
    ) -> None:
        self.problem, self.working, self.products, self.incumbent = problem, working, working.products, incumbent
        self.tol, self.recorder, self.within_memory = incumbent.tol, incumbent.recorder, within_memory
        self.max_iter = _MOVES + _MOVES_A_ROW * self.products.n if max_iter is None else max_iter
        self.terms = DualTerms.of(problem)
        self.second_order: SecondOrderStep = ProgramStep() if self._has_program() else FaceStep()
        self.u, self.b = np.zeros(len(problem.positives)), np.zeros(len(problem.threshold_rows))
        self.is_near, self.spent = False, 0.0
        self.known_scores: Floats | None = None
        self.n_sums = 1  # of products that the newest scores were added up of

    def _has_program(self) -> bool:
        """Whether the loss is curved; models of leaves stay what they were, bit by bit."""
        is_of_leaves = isinstance(getattr(self.problem, "X", None), OwnStorage)
        return self.terms.surrogate.width > 0 and not is_of_leaves

    def run(self, start: Solution | None) -> Solution:
        """Steps 1 to 5."""
        incumbent, working, n = self.incumbent, self.working, self.products.n
        # 1. The first point.
        newest = self._first_point(start)
        gap, failures, inner_tol = 1.0, 0, 0.3
        while True:
            # 2. The working set, with the rows of step 5.
            grown = self._add_rows(newest)
            if grown:
                self.recorder.passes += len(working.numbers) / n
            # 3. Moves of two multipliers.
            least = (0.9 if len(working.numbers) == n else 0.3) * self.tol
            inner_tol = min(inner_tol, max(0.1 * gap, least) if not failures else 0.1 * inner_tol)
            dual = self._step(newest, inner_tol, least)
            # 4. The lower bound, and the best point.
            if dual is not None:
                is_stuck = failures > 0 or incumbent.n_iter >= self.max_iter
                most_sums = 0.0 if is_stuck else _FEW_SUMS if dual.gap() <= self.tol else np.inf
                newest = self._certify(dual, most_sums)
            previous, gap = gap, incumbent.gap
            incumbent.record()
            # 5. Stop, or go on with more rows.
            failures = failures + 1 if gap > 0.9 * previous and not grown else 0
            if gap <= self.tol or failures >= _FAILURES or incumbent.n_iter >= self.max_iter or dual is None:
                break
            if self.within_memory and not working.is_complete:
                break
        return incumbent.solution(state=self._dual_point(), scores=incumbent.scores)

    def _first_point(self, start: Solution | None) -> Floats:
        """Step 1; returns the scores."""
        if (earlier := self.problem.start_point(start)) is not None:
            self.u, self.b = np.minimum(earlier.y, self.terms.top), earlier.p
            self._make_feasible()
            scores = self._take_best_multiple()
            if self.u.any():  # else the point is worse than none, as after a change of τ
                self.is_near = not self.terms.tau
                self.known_scores = None if start is None else start.scores
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
            scores = self.products.product(problem.row_weights(self.u, 0.0))
            self.recorder.passes += 2
        _, p = problem.formulation.threshold.evaluate(scores[problem.threshold_rows], problem.threshold_weights)
        self.b = self.u.sum() * p

    def _take_best_multiple(self) -> Floats:
        """Scale the multipliers; returns the scores."""
        weights = self._row_weights()
        scores = self._remembered_product(weights)
        _, scale = self.problem.dual_value(self._dual_point(), float(weights @ scores))
        self.u, self.b = scale * self.u, scale * self.b
        return np.asarray(scores * (scale / self.problem.alpha))

    def _remembered_product(self, weights: Floats) -> Floats:
        """The scores of row weights; where these are a multiple of the last ones of the same products, without them."""
        last, last_scores, n_sums = self.products.remembered.get("certified", (None, None, 0))
        if last is not None:
            multiple = float(weights @ last) / max(float(last @ last), np.finfo(float).tiny)
            if np.abs(weights - multiple * last).max() <= _SAME * np.abs(weights).max():
                self.n_sums = n_sums
                return np.asarray(multiple * last_scores)
        self.recorder.passes += 2
        return self.products.product(weights)

    def _row_weights(self) -> Floats:
        return self.problem.row_weights(self.u, -self.b)

    def _dual_point(self) -> DualPoint:
        total = max(float(self.u.sum()), np.finfo(float).tiny)
        return DualPoint(self.u.copy(), self.b / total, self.terms.conjugate(self.u, self.b, self.terms.d))

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

    def _step(self, scores: Floats, tol: float, least: float) -> WorkingSetDual | None:
        """Step 3, from multipliers with given scores, to a gap of `tol`, or at once to `least`; returns where it ended.

        None if the products are so large that rounding leaves them indefinite: then moves may be without end.
        """
        dual, incumbent = WorkingSetDual(self.terms, self.working, self.u, self.b, scores), self.incumbent
        is_solved = False
        if self.is_near and self.second_order.cost(dual) < np.inf:
            known = self.known_scores
            self.second_order(dual, least, None if known is None else known[self.working.numbers])
            is_solved = dual.gap() <= tol
        self.is_near = False
        while not is_solved:
            steps = min(max(100, min(dual.size // 8, 1000)), self.max_iter - incumbent.n_iter)
            done, optimal = dual.ascend(steps)
            incumbent.n_iter += done
            self.spent += COST_OF_MOVE * done * dual.size
            if optimal or incumbent.n_iter >= self.max_iter or not _in_range(dual):
                break
            if dual.gap() > tol and self.second_order.share * self.spent >= self.second_order.cost(dual):
                self.second_order(dual, least)
                self.spent = 0.0
            is_solved = dual.gap() <= tol
        if not _in_range(dual):
            return None
        self.u[dual.members[0]], self.b[dual.members[1]] = dual.u, dual.b
        return dual

    def _certify(self, dual: WorkingSetDual, most_sums: float) -> Floats:
        """Step 4; returns the newest scores: those of a dual of all rows, if they are added up of not too many sums.

        Each of the sums may have added an error to them, which the bound allows for.
        """
        problem, n_sums = self.problem, self.n_sums + dual.n_sums
        self._make_feasible()
        c = self._row_weights() / problem.alpha
        if dual.size == self.products.n and n_sums <= most_sums:
            scores: Floats = dual.scores[self.working.index_of]
            self.n_sums = n_sums
        else:
            scores = self.products.product(c)
            self.recorder.passes += 2  # one for w, one for the scores
            self.n_sums = 1
        self.products.remembered["certified"] = c, scores, self.n_sums
        squared, best, known = float(c @ scores), self.incumbent, self._dual_point()
        squared_norm = (squared + self.n_sums * rounding_of_square(self.products.diagonal, c)) * problem.alpha**2
        best.raise_bound(problem.dual_value(known, squared_norm)[0], known)
        best.advance(c, scores, (float(best.coef @ best.scores), float(best.coef @ scores), squared))
        return scores

    def _make_feasible(self) -> None:
        """Against rounding: equal sums, and no multiplier above its bound."""
        total = float(self.u.sum())
        self.b = within_caps(self.b * (total / float(self.b.sum())), self.terms.caps * total, total)


def _in_range(dual: WorkingSetDual) -> bool:
    """Whether there are multipliers, and they have not grown without end: squares of such are beyond the range."""
    return all(0 < float(multipliers.sum()) < _MOST for multipliers in (dual.u, dual.b))
