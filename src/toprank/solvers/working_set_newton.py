"""The default solver of TopPush, TopPushK, TauFPL and TopMeanK: interior point on working sets, with a certificate.

1. A first point: the same method on a random part of the rows, loosely (not for small problems or a warm start).
2. Working set: positives that are not far above the threshold, threshold rows next to it; rows far above the threshold
   enter by their sum, rows far below not at all.
3. Interior-point method on the working set, as exactly as the current gap is worth.
4. Its dual point, with zeros for the rows left out, is feasible for the whole problem: a lower bound.
5. One pass for the scores of all rows; the best point on the segment from the best so far is the new best.
6. Stop when the relative gap is at most `tol`, and w = 0 either is ruled out or is optimal; otherwise choose rows
   again, more of them if progress is slow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank.formulations.thresholds import top_mean
from toprank.solvers.interior_point import Outcome, carried_over, interior_point
from toprank.solvers.problem import DualPoint, Problem, Recorder, Solution, best_on_segment, relative_gap
from toprank.solvers.restricted import Restricted, State
from toprank.solvers.working_rows import MOST_FEATURES, WorkingRows

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Rows of a class in the smallest random part; problems of fewer than five times as many rows are solved directly.
_SMALL_PART = 1500
# Up to this number of threshold rows all of them are in the working set.
_ALL_ROWS = 4000
# Relative gap at which w = 0 is taken for the optimum.
_COLLAPSE = 1e-9
# Relative difference of objectives next to w = 0 that may be rounding alone.
_ROUNDING = 16 * float(np.finfo(float).eps)
# So many working sets in a row that could not be solved, or that brought no progress, end the run.
_FAILURES = 12
# Steps of the interior-point method on one working set.
_INNER_STEPS = 80


def solve_newton(
    problem: Problem, *, tol: float = 1e-4, max_iter: int = 1000, verbose: int = 0, start: Solution | None = None
) -> Solution:
    """Minimise a formulation with the mean of the k largest scores to a relative duality gap of `tol`."""
    return _WorkingSetSolver(problem, tol, max_iter, Recorder(verbose)).run(start)


class _WorkingSetSolver:
    """The outer loop: what is known so far, and the choice of rows."""

    def __init__(self, problem: Problem, tol: float, max_iter: int, recorder: Recorder) -> None:
        self.problem, self.tol, self.max_iter, self.recorder = problem, tol, max_iter, recorder
        self.caps = problem.formulation.threshold.caps(problem.threshold_weights)
        self.surrogate = problem.formulation.surrogate
        self.has_barrier = self.surrogate.is_own_barrier
        self.n, self.d = problem.X.shape
        self.m, self.n_threshold = len(problem.positives), len(problem.threshold_rows)
        self.w, self.scores = np.zeros(self.d), np.zeros(self.n)
        self.at_zero = self._objective(0.0, self.scores)
        self.primal, self.dual = self.at_zero, 0.0
        self.dual_outcome: Outcome | None = None
        self.newest_scores, self.share_of_newest = self.scores, 0.0
        self.n_iter = 0
        self.size = self._first_size()
        few = self.n_threshold <= max(_ALL_ROWS, 1.2 * self.size) and self.n <= 8 * _ALL_ROWS
        self.takes_all = (few and self.d <= MOST_FEATURES) or self.n <= 2 * _SMALL_PART

    def run(self, start: Solution | None = None) -> Solution:
        """Steps 1 to 6."""
        gap = self._first_point(start)
        base_mu = 0.1 if self.has_barrier else 10.0
        inner_tol = 0.5 * self.tol if self.takes_all else max(0.3 * self.tol, 0.1 * gap)
        outcome: Outcome | None = None
        failures, stalls, previous = 0, 0, np.inf
        while self.n_iter < self.max_iter and max(failures, stalls) < _FAILURES:
            restricted = self._restricted(outcome)
            restricted.refine = failures > 0
            mu = base_mu * (1, 30, 1 / 30, 1000)[failures % 4] * gap * self.primal / restricted.n_products
            if outcome is not None and self.share_of_newest >= 0.9 and failures % 4 == 0:
                state = self._carried(outcome, restricted, gap)
            else:
                state = restricted.centred(self.w, mu)
            outcome = self._solve(restricted, state, inner_tol)
            bound = outcome.problem.lower_bound(outcome.state)
            self.recorder.passes += outcome.problem.rows.visited() / self.n
            if bound > self.dual:
                self.dual, self.dual_outcome = bound, outcome
            self._advance(outcome.state.extended[:-2])
            gap = relative_gap(self.primal, self.dual)
            self.recorder.record(self.n_iter, self.primal, self.dual)
            if gap <= self.tol and (self._is_informative(gap) or gap > 0.5 * previous):
                break
            failures = 0 if outcome.solved else failures + 1
            stalls = stalls + 1 if gap > 0.9 * previous else 0
            inner_tol = min(inner_tol, max(0.3 * self.tol if gap > self.tol else _COLLAPSE / 10, 0.1 * gap))
            if gap > 0.5 * previous:
                self.size = min(int(1.5 * self.size), 2 * self.n)
            previous = gap
        return self._solution()

    def _is_informative(self, gap: float) -> bool:
        """Whether most of what can be gained against w = 0 is gained, or it is certain that nothing can be.

        Where the penalty is so large that w = 0 is within `tol` of the optimum, the direction matters all the same.
        """
        gained = self.at_zero - self.primal
        return gap * self.primal <= 0.5 * gained or gap <= _COLLAPSE

    def _objective(self, w_squared: float, scores: Floats) -> float:
        problem = self.problem
        t, _ = top_mean(scores[problem.threshold_rows], self.caps)
        loss = problem.positive_share @ self.surrogate.value(t - scores[problem.positives])
        return 0.5 * problem.alpha * w_squared + float(loss)

    def _first_size(self) -> int:
        """Number of threshold rows in the first working set: as many as cost little beside the rest of a step."""
        X, m = self.problem.X, self.m
        if self.d > MOST_FEATURES:
            size, above = 800.0, 1.0
        else:
            entries = X.nnz / self.n if issparse(X) else self.d
            cholesky = self.d**3 / 6 / max(entries, 1) ** 2 / (10 if issparse(X) else 1)
            size, above = max(800.0, min(m if issparse(X) else m // 2, 4000 + m // 8), cholesky), 2.5
        if self.caps is not None:
            size = max(size, above / self.caps.mean())
        return int(size)

    def _first_point(self, start: Solution | None) -> float:
        """Step 1; returns an estimate of the relative gap."""
        if start is not None:
            self._advance(start.coef.astype(np.float64))
            return 0.1
        if self.n <= 5 * _SMALL_PART:
            return 1.0
        wide_top = self.m >= 8 * _SMALL_PART or (self.caps is not None and 1 / self.caps.mean() >= 160)
        in_steps = self.n >= 16 * _SMALL_PART and self.d <= MOST_FEATURES and wide_top
        thinned, share = _thinned(self.problem, self.n // 8 if in_steps else 0)
        recorder = Recorder()
        part = _WorkingSetSolver(thinned, 0.03, 200, recorder).run()
        self.recorder.passes += share * recorder.passes
        self.n_iter += part.n_iter
        self._advance(part.coef)
        return float(np.clip(1 - part.dual / max(self.primal, 1e-300), 0.05, 1.0))

    def _advance(self, w: Floats) -> None:
        """Score all rows at w and move the best point along the segment to it; rounding alone does not leave w = 0."""
        scores = self.problem.scores(w)
        self.recorder.passes += 1
        with np.errstate(over="ignore"):  # a step that went astray is no better point
            squares = (float(self.w @ self.w), float(self.w @ w), float(w @ w))
        share, value = best_on_segment(self._objective, squares, self.scores, scores)
        self.newest_scores, self.share_of_newest = scores, share
        if value < (self.primal if self.w.any() else (1 - _ROUNDING) * self.at_zero):
            self.w = (1 - share) * self.w + share * w
            self.scores = (1 - share) * self.scores + share * scores
            self.primal = value

    def _restricted(self, outcome: Outcome | None) -> Restricted:
        """Step 2: choose rows by the scores of the newest and the best point, and keep those that proved active."""
        problem, caps = self.problem, self.caps
        positives, inside, above = np.arange(self.m), np.arange(self.n_threshold), np.zeros(0, np.intp)
        if not self.takes_all:
            keep = np.zeros(0, np.intp) if outcome is None else _active_threshold_rows(outcome)
            inside, above = self._next_to_threshold(self.newest_scores, keep)
            if self.share_of_newest < 0.9:
                more, above_best = self._next_to_threshold(self.scores, keep)
                inside = np.unique(np.concatenate([inside, more, np.setxor1d(above, above_best)]))
                above = np.setdiff1d(above, inside)
            if outcome is not None and not self.has_barrier:
                positives = self._near_positives(outcome)
        g, k0 = np.zeros(self.d), 1.0
        if len(above) and caps is not None:
            g = np.asarray(problem.X[problem.threshold_rows[above]].T @ caps[above], dtype=np.float64)
            k0 -= float(caps[above].sum())
            self.recorder.passes += len(above) / self.n
        rows = WorkingRows.of(problem.X, problem.positives[positives], problem.threshold_rows[inside])
        caps_inside = None if caps is None else caps[inside]
        share = problem.positive_share[positives]
        return Restricted(rows, problem.alpha, self.surrogate, share, caps_inside, g, k0, positives, inside, above)

    def _next_to_threshold(self, scores: Floats, keep: Rows) -> tuple[Rows, Rows]:
        """Threshold rows next to the end of the top by rank, together with `keep`; and the rows above them."""
        s = scores[self.problem.threshold_rows]
        if self.caps is None:
            size = min(self.size, len(s))
            largest = np.argpartition(s, len(s) - size)[len(s) - size :]
            return np.flatnonzero(_marked(len(s), largest, keep)), np.zeros(0, np.intp)
        order = np.argsort(-s, kind="stable")
        end = int(np.searchsorted(np.cumsum(self.caps[order]), 1.0 - 1e-12)) + 1
        first, last = max(0, end - self.size // 2), min(len(s), max(end + self.size // 2, end + 2))
        inside = _marked(len(s), order[first:last], keep)
        return np.flatnonzero(inside), np.flatnonzero(_marked(len(s), order[:first]) & ~inside)

    def _near_positives(self, outcome: Outcome) -> Rows:
        """Positives that are active or nearly so at the newest or the best point, and those with a multiplier."""
        problem, shift = self.problem, self.surrogate.pieces.shift
        near = np.full(self.m, False)
        for scores in (self.scores, self.newest_scores):
            t, _ = top_mean(scores[problem.threshold_rows], self.caps)
            near |= t - scores[problem.positives] + shift > -0.3
        u = outcome.state.y[: outcome.problem.m]
        near[outcome.problem.positives[u > 1e-6 * u.mean()]] = True
        return np.flatnonzero(near)

    def _carried(self, outcome: Outcome, restricted: Restricted, gap: float) -> State:
        mu = max(outcome.mu, 0.1 * gap * self.primal / restricted.n_products)
        return carried_over(outcome.problem, outcome.state, restricted, mu)

    def _solve(self, restricted: Restricted, state: State, tol: float) -> Outcome:
        """Step 3."""
        steps = min(_INNER_STEPS, self.max_iter - self.n_iter)
        outcome = interior_point(restricted, state, tol, max_iter=steps, shrink=not self.takes_all)
        self.n_iter += max(outcome.iterations, 1)
        self.recorder.passes += outcome.rows_visited / self.n
        return outcome

    def _solution(self) -> Solution:
        t, _ = top_mean(self.scores[self.problem.threshold_rows], self.caps)
        converged = relative_gap(self.primal, self.dual) <= self.tol
        return Solution(
            self.w, t, self.primal, self.dual, self.n_iter, converged, self.recorder.rows, dual_point=self._dual_point()
        )

    def _dual_point(self) -> DualPoint | None:
        """The point of the best lower bound; positives and threshold rows that were left out have zeros."""
        if self.dual_outcome is None:
            return None
        restricted = self.dual_outcome.problem
        y, p = np.zeros(self.m), np.zeros(self.n_threshold)
        if self.caps is not None:
            p[restricted.above] = self.caps[restricted.above]
        y[restricted.positives], p[restricted.threshold_rows] = restricted.feasible(self.dual_outcome.state)
        return DualPoint(y, p)


def _marked(n: int, *rows: Rows) -> NDArray[np.bool_]:
    """A mask of n rows that is true for the given ones."""
    mask = np.full(n, False)
    for some in rows:
        mask[some] = True
    return mask


def _active_threshold_rows(outcome: Outcome) -> Rows:
    """Threshold rows whose multiplier is neither negligible nor at its cap."""
    restricted, S = outcome.problem, outcome.state.S
    b = outcome.state.y[restricted.m :]
    negligible = 1e-3 * S / len(b)
    if restricted.caps is None:
        return restricted.threshold_rows[b > negligible]
    most = restricted.caps * S
    return restricted.threshold_rows[(b > np.minimum(negligible, 1e-3 * most)) & (b < (1 - 1e-4) * most)]


def _thinned(problem: Problem, size: int) -> tuple[Problem, float]:
    """The problem on a random part of each class, with weights raised so that the classes weigh the same.

    At least `_SMALL_PART` rows of each class are taken, where there are as many. Returns the part of the rows too.
    """
    rng = np.random.default_rng(0)
    rows, factors = [], []
    for members in (problem.positives, np.flatnonzero(~problem.positive)):
        wanted = max(_SMALL_PART, size * len(members) // len(problem.positive))
        chosen = rng.choice(members, wanted, replace=False) if wanted < len(members) else members
        rows.append(chosen)
        factors.append(np.full(len(chosen), problem.weights[members].sum() / problem.weights[chosen].sum()))
    taken = np.concatenate(rows)
    order = np.argsort(taken)
    taken, factor = taken[order], np.concatenate(factors)[order]
    thinned = replace(
        problem, X=problem.X[taken], positive=problem.positive[taken], weights=factor * problem.weights[taken]
    )
    return thinned, len(taken) / len(problem.positive)
