"""The default solver of TopPush, TopPushK, TauFPL and TopMeanK: interior point on working sets, with a certificate.

1. A first point: the same method on a random part of the rows, loosely; for small problems Fisher's discriminant, for a
   warm start what is known. A largest score over few dense features is solved from there by `toprank.solvers.cuts`,
   mostly to the end; what follows is for all others.
2. Working set: positives that are not far above the threshold, threshold rows next to it; rows far above the threshold
   enter by their sum, rows far below not at all.
3. Interior-point method on the working set, as exactly as the current gap is worth.
4. Its dual point, with zeros for the rows left out, is feasible for the whole problem: a lower bound.
5. One pass for the scores of all rows; the best point on the segment from the best so far is the new best.
6. Stop when the relative gap is at most `tol`, and w = 0 either is ruled out or is optimal; otherwise choose rows
   again, more of them if progress is slow.
"""

from __future__ import annotations

import numpy as np

from toprank.arrays import Floats, Rows
from toprank.matrices.dense_or_sparse import Cholesky, sandwich
from toprank.matrices.working_rows import MOST_FEATURES
from toprank.solvers.cuts import CutNewton, has_cuts
from toprank.solvers.incumbent import COLLAPSE, Incumbent
from toprank.solvers.interior_point import Outcome, carried_over, interior_point
from toprank.solvers.problem import Problem, Solution
from toprank.solvers.restricted import Restricted, State
from toprank.solvers.row_choice import NearPositives, Wish

# Rows of a class in the smallest random part; problems of fewer than five times as many rows are solved directly.
_SMALL_PART = 1500
# Rows of which the discriminant takes its covariances, and how many there are for a feature at least.
_COVARIANCE_ROWS, _ROWS_A_FEATURE = 1000, 4
# Estimates of the gap at the discriminant, of the largest score and of means of several.
_GAP_OF_LARGEST, _GAP_OF_MEAN = 0.1, 0.3
# Up to this number of threshold rows all of them are in the working set.
_ALL_ROWS = 4000
# Rows next to the end of a top that is not in the working set as a whole: for each feature, at least and at most. One
# for each feature may be at the threshold in the end, and where w = 0 is near, many more take turns there.
_WINDOW_A_FEATURE, _WINDOWS = 4, (2000, 4000)
# So many working sets in a row that could not be solved, or that brought no progress, end the run.
_FAILURES = 12
# Steps of the interior-point method on one working set.
_INNER_STEPS = 80


def solve_newton(
    problem: Problem, *, tol: float = 1e-4, max_iter: int = 1000, verbose: int = 0, start: Solution | None = None
) -> Solution:
    """Minimise a formulation with the mean of the k largest scores to a relative duality gap of `tol`."""
    return _WorkingSetSolver(problem, max_iter, _from_zero(problem, tol, verbose)).run(start)


def _from_zero(problem: Problem, tol: float, verbose: int = 0) -> Incumbent:
    return Incumbent.from_zero(problem, problem.X.shape[1], tol, verbose)


class _WorkingSetSolver:
    """The outer loop and the choice of rows."""

    def __init__(self, problem: Problem, max_iter: int, incumbent: Incumbent) -> None:
        self.problem, self.max_iter, self.incumbent = problem, max_iter, incumbent
        self.tol, self.recorder = incumbent.tol, incumbent.recorder
        self.caps = problem.formulation.threshold.caps(problem.threshold_weights)
        self.choice = problem.row_choice(self.caps)
        self.surrogate = problem.formulation.surrogate
        self.has_barrier = self.surrogate.is_own_barrier
        self.n, self.d = problem.X.shape
        self.is_sparse = not isinstance(problem.X, np.ndarray)
        self.m, self.n_threshold = len(problem.positive_share), len(problem.threshold_weights)
        self.newest_scores, self.share_of_newest = incumbent.scores, 0.0
        self.size = self._first_size()
        few = self.n_threshold <= max(_ALL_ROWS, 1.2 * self.size) and self.n <= 8 * _ALL_ROWS
        self.takes_all = (few and self.d <= MOST_FEATURES) or self.n <= 2 * _SMALL_PART

    def run(self, start: Solution | None = None) -> Solution:
        """Steps 1 to 6."""
        incumbent, outcome = self.incumbent, None
        # 1. The first point.
        gap = self._first_point(start)
        if has_cuts(self.problem):  # mostly that is all
            if CutNewton(self.problem, incumbent).run(self.newest_scores, self.max_iter):
                return incumbent.solution()
            self.newest_scores, gap = incumbent.scores, min(gap, incumbent.gap)
        inner_tol = 0.5 * self.tol if self.takes_all else max(0.3 * self.tol, 0.1 * gap)
        failures, stalls, previous = 0, 0, np.inf
        while incumbent.n_iter < self.max_iter and max(failures, stalls) < _FAILURES:
            # 2. The working set.
            restricted = self._restricted(outcome)
            restricted.refine = failures > 0
            # 3. The interior-point method on it.
            outcome = self._step(restricted, self._first_state(restricted, outcome, gap, failures), inner_tol)
            # 4. and 5. The lower bound, and the best point.
            self._certify(outcome)
            gap = incumbent.gap
            # 6. Stop, or go on with more rows.
            if gap <= self.tol and (incumbent.is_informative(gap) or gap > 0.5 * previous):
                break
            failures = 0 if outcome.solved else failures + 1
            stalls = stalls + 1 if gap > 0.9 * previous else 0
            inner_tol = min(inner_tol, max(0.3 * self.tol if gap > self.tol else COLLAPSE / 10, 0.1 * gap))
            if gap > 0.5 * previous:
                self.size = min(int(1.5 * self.size), 2 * self.n)
            previous = gap
        return incumbent.solution()

    def _first_size(self) -> int:
        """Number of threshold rows in the first working set: as many as cost little beside the rest of a step."""
        X, m = self.problem.X, self.m
        if self.d > MOST_FEATURES:
            size, above = 800.0, 1.0
        else:
            entries = X.nnz / self.n if self.is_sparse else self.d
            cholesky = self.d**3 / 6 / max(entries, 1) ** 2 / (10 if self.is_sparse else 1)
            size, above = max(800.0, min(m if self.is_sparse else m // 2, 4000 + m // 8), cholesky), 2.5
        if self.caps is not None:
            window = np.clip(_WINDOW_A_FEATURE * self.d, *_WINDOWS)
            size = max(size, above / self.caps.mean() if self.choice.grows_with_top else window)
        return int(size)

    def _first_point(self, start: Solution | None) -> float:
        """Step 1; returns an estimate of the relative gap."""
        if start is not None:
            self._advance(start.coef.astype(np.float64))
            return 0.1
        if self.n <= 5 * _SMALL_PART:
            return self._first_by_discriminant()
        wide_top = self.m >= 8 * _SMALL_PART or (self.caps is not None and 1 / self.caps.mean() >= 160)
        in_steps = self.n >= 16 * _SMALL_PART and self.d <= MOST_FEATURES and wide_top
        size = min(self.n // 8, self.choice.largest_part) if in_steps else 0
        thinned, share = self.choice.thinned(_SMALL_PART, size)
        part = _from_zero(thinned, 0.03)
        _WorkingSetSolver(thinned, 200, part).run()
        self.recorder.passes += share * part.recorder.passes
        self.incumbent.n_iter += part.n_iter
        self._advance(part.coef)
        return float(np.clip(1 - part.dual / max(self.incumbent.primal, 1e-300), 0.05, 1.0))

    def _first_by_discriminant(self) -> float:
        """Step 1 for few rows: the direction of Fisher's discriminant, which costs less than a step."""
        problem, positive, weights = self.problem, self.problem.positive, self.problem.weights
        sample = slice(None, None, max(1, self.n // _COVARIANCE_ROWS))
        if self.is_sparse or not 0 < _ROWS_A_FEATURE * self.d <= len(weights[sample]):
            return 1.0
        total = np.where(positive, weights[positive].sum(), -weights[~positive].sum())
        difference, X, share = problem.combine(weights / total), problem.X[sample], weights[sample]
        self.recorder.passes += 1 + len(X) / self.n
        share = share / share.sum()
        covariances = sandwich(X, share, share @ X)
        covariances[np.arange(self.d), np.arange(self.d)] += problem.alpha
        w = Cholesky(covariances).solve(difference)
        distance = float(difference @ w)
        if not 0 < distance < np.inf:
            return 1.0
        self._advance(w / distance)  # at which the mean scores of the classes differ by one
        return _GAP_OF_LARGEST if self.caps is None else _GAP_OF_MEAN

    def _advance(self, w: Floats) -> None:
        """Score all rows at w and move the best point along the segment to it."""
        best, self.newest_scores = self.incumbent.coef, self.problem.scores(w)
        self.recorder.passes += 1
        with np.errstate(over="ignore"):  # a step that went astray is no better point
            squares = (float(best @ best), float(best @ w), float(w @ w))
        self.share_of_newest, _ = self.incumbent.advance(w, self.newest_scores, squares)

    def _restricted(self, outcome: Outcome | None) -> Restricted:
        """Step 2: choose rows by the scores of the newest and the best point, and keep those that proved active."""
        choice, wish = self.choice, None
        if not self.takes_all:
            points = [self.newest_scores] + [self.incumbent.scores] * (self.share_of_newest < 0.9)
            near = None
            if not self.has_barrier and (outcome is not None or not choice.grows_with_top):
                near = self._near_positives(outcome)
            wish = Wish(points, self.size, _active_threshold_rows(outcome), near)
        chosen = choice.chosen(wish)
        self.recorder.passes += chosen.passes
        return chosen.restricted(self.problem.alpha, self.surrogate)

    def _near_positives(self, outcome: Outcome | None) -> NearPositives:
        """Positives that are active or nearly so at the newest or the best point, and those with a multiplier."""
        keep = np.zeros(0, np.intp)
        if outcome is not None:
            u = outcome.state.y[: outcome.problem.m]
            keep = outcome.problem.positives[u > 1e-6 * u.mean()]
        return NearPositives([self.incumbent.scores, self.newest_scores], self.surrogate.pieces.shift + 0.3, keep)

    def _first_state(self, restricted: Restricted, outcome: Outcome | None, gap: float, failures: int) -> State:
        """The last iterate on the new rows or, where that led nowhere, one at the best point, nearer or further in."""
        primal, n_products = self.incumbent.primal, restricted.n_products
        if outcome is not None and self.share_of_newest >= 0.9 and failures % 4 == 0:
            mu = max(outcome.mu, 0.1 * gap * primal / n_products)
            return carried_over(outcome.problem, outcome.state, restricted, mu)
        part = (0.1 if self.has_barrier else 10.0) * (1, 30, 1 / 30, 1000)[failures % 4]
        return restricted.centred(self.incumbent.coef, part * gap * primal / n_products)

    def _step(self, restricted: Restricted, state: State, tol: float) -> Outcome:
        """Step 3."""
        steps = min(_INNER_STEPS, self.max_iter - self.incumbent.n_iter)
        outcome = interior_point(restricted, state, tol, max_iter=steps, shrink=not self.takes_all)
        self.incumbent.n_iter += max(outcome.iterations, 1)
        self.recorder.passes += outcome.rows_visited / self.n
        return outcome

    def _certify(self, outcome: Outcome) -> None:
        """Steps 4 and 5."""
        bound = outcome.problem.lower_bound(outcome.state)
        self.recorder.passes += outcome.problem.rows.visited() / self.n
        restricted = outcome.problem
        self.incumbent.raise_bound(bound, self.choice.dual_point(restricted, *restricted.feasible(outcome.state)))
        del restricted.rows  # the next working set needs the room
        self._advance(outcome.state.extended[:-2])
        self.incumbent.record()


def _active_threshold_rows(outcome: Outcome | None) -> Rows:
    """Threshold rows whose multiplier is neither negligible nor at its cap."""
    if outcome is None:
        return np.zeros(0, np.intp)
    restricted, S = outcome.problem, outcome.state.S
    b: Floats = outcome.state.y[restricted.m :]
    negligible = 1e-3 * S / len(b)
    if restricted.caps is None:
        return restricted.threshold_rows[b > negligible]
    most = restricted.caps * S
    return restricted.threshold_rows[(b > np.minimum(negligible, 1e-3 * most)) & (b < (1 - 1e-4) * most)]
