r"""The pair method: ascent of the dual on a growing working set, for few features too many, or none at all.

It needs of the data only products of rows, so it serves kernels and wide sparse data alike. It is made for
piecewise quadratic surrogates with the mean of the k largest scores, and for the quadratic one with its quantile.

1. A first point: equal multipliers for (some of) the positives, and the threshold's gradient at their mean.
2. Working set: the positives and the threshold rows that score highest.
3. Moves of two multipliers with the largest gain to second order, on the working set, until its own gap is small
   (`toprank.solvers._pair_ascent`). Products of rows are kept up to `cache_size`; the rest is computed again.
4. The multipliers, zero elsewhere, are feasible for the whole problem: a lower bound. One product scores all rows; the
   best point on the segment from the best so far is the new best.
5. Stop when the relative gap is at most `tol`; otherwise add the rows that are above the threshold or below their
   margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toprank.formulations.certificates import dual_value
from toprank.formulations.surrogates import PiecewiseQuadratic
from toprank.formulations.thresholds import SurrogateQuantile, TopMean, top_mean
from toprank.solvers._pair_ascent import BOUND_NORM, COST, DELTA, MASS, OPTIMAL, ROW_MISSING, TOTAL, ascend
from toprank.solvers.matrix import Cholesky
from toprank.solvers.problem import Problem, Recorder, Solution, WeightedRows, best_on_segment, relative_gap
from toprank.solvers.row_products import RowProducts

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

# Positives whose mean is the first direction.
_FIRST_POSITIVES = 500
# Rows of a class that enter the working set at a time.
_ROWS_AT_ONCE = 1000
# Rounds without progress that end the run.
_FAILURES = 5
# Megabytes for the products of the rows of a linear problem.
_LINEAR_CACHE = 1000.0


class Products(Protocol):
    """Products of the rows of the data: a kernel matrix that need not be in memory."""

    n: int
    dtype: Any
    diagonal: NDArray[Any]

    @property
    def full(self) -> NDArray[Any] | None:
        """All products, where they are kept as a whole."""

    def between(self, rows_a: Rows, rows_b: Rows) -> NDArray[Any]:
        """Products of some rows with others."""

    def product(self, c: Floats) -> Floats:
        """Scores of all rows for w = Σ c x."""


def solve_pairs(
    problem: WeightedRows,
    products: Products,
    *,
    cache_size: float,
    tol: float = 1e-4,
    max_iter: int = 10_000_000,
    verbose: int = 0,
    start: Solution | None = None,
) -> Solution:
    """Maximise the dual to a relative gap of `tol`; the solution's `coef` are the weights c of the rows, w = Σ c x.

    `cache_size` is in megabytes, `max_iter` counts moves. A `start` is used if it is of this method and these rows.
    """
    return _PairSolver(problem, products, cache_size, tol, max_iter, Recorder(verbose)).run(start)


def solve_linear_pairs(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000_000,
    verbose: int = 0,
    start: Solution | None = None,
) -> Solution:
    """The pair method for rows and a direction w."""
    products = RowProducts(problem.X)
    solution = solve_pairs(
        problem, products, cache_size=_LINEAR_CACHE, tol=tol, max_iter=max_iter, verbose=verbose, start=start
    )
    return replace(solution, coef=problem.combine(solution.coef))


@dataclass
class Multipliers:
    """The dual point at which the pair method ended, for a warm start."""

    u: Floats
    b: Floats


class _WorkingSet:
    """Rows in play, in the order in which they came, and their products as far as memory allows."""

    def __init__(self, products: Products, cache_size: float) -> None:
        self.products = products
        self.most_bytes = cache_size * 2**19  # while the set grows, the old products and the new ones are both there
        self.numbers = np.zeros(0, np.intp)
        self.index_of = np.full(products.n, -1)
        self.rows = np.empty((0, 0), products.dtype)
        self.place = np.zeros(0, np.intp)
        self.next_place = 0
        if (full := products.full) is not None:
            self.rows, self.numbers = full, np.arange(products.n)
            self.index_of, self.place = np.arange(products.n), np.arange(products.n)

    def add(self, new: Rows) -> None:
        """Append rows."""
        new = np.unique(new[self.index_of[new] < 0])
        if not len(new):
            return
        old, size = len(self.numbers), len(self.numbers) + len(new)
        self.index_of[new] = np.arange(old, size)
        self.numbers = np.concatenate([self.numbers, new])
        slots = int(min(size, max(8, self.most_bytes // (size * self.rows.itemsize))))
        rows = np.empty((slots, size), self.rows.dtype)
        place = np.full(size, -1)
        kept = np.flatnonzero(self.place >= 0)[:slots]
        place[kept] = np.arange(len(kept))
        # in order where all are there, and then without a copy in between
        rows[: len(kept), :old] = self.rows if len(kept) == old else self.rows[self.place[kept]]
        rows[: len(kept), old:] = self.products.between(self.numbers[kept], new)
        more = np.arange(old, size)[: slots - len(kept)]
        place[more] = np.arange(len(kept), len(kept) + len(more))
        if len(kept) == old:  # the matrix is symmetric
            rows[old : old + len(more), :old] = rows[:old, old : old + len(more)].T
            rows[old : old + len(more), old:] = self.products.between(self.numbers[more], new)
        else:
            rows[len(kept) : len(kept) + len(more)] = self.products.between(self.numbers[more], self.numbers)
        self.rows, self.place, self.next_place = rows, place, 0

    def fetch(self, index: int) -> None:
        """Compute the products of a row in place of another's, in turn."""
        self.place[self.place == self.next_place] = -1
        self.rows[self.next_place] = self.products.between(self.numbers[index : index + 1], self.numbers)[0]
        self.place[index] = self.next_place
        self.next_place = (self.next_place + 1) % len(self.rows)


class _PairSolver:
    """What is known so far, and the choice of rows."""

    def __init__(
        self,
        problem: WeightedRows,
        products: Products,
        cache_size: float,
        tol: float,
        max_iter: int,
        recorder: Recorder,
    ) -> None:
        self.problem, self.products = problem, products
        self.tol, self.max_iter, self.recorder = tol, max_iter, recorder
        surrogate, threshold = problem.formulation.surrogate, problem.formulation.threshold
        assert isinstance(surrogate, PiecewiseQuadratic)
        self.surrogate = surrogate
        self.m, self.n_threshold = len(problem.positives), len(problem.threshold_rows)
        self.top = problem.positive_share * surrogate.max_slope
        self.d, self.e, self.tau = np.zeros(self.n_threshold), 0.0, 0.0
        self.is_quantile = isinstance(threshold, SurrogateQuantile)
        self.caps = np.full(self.n_threshold, np.inf)
        if isinstance(threshold, SurrogateQuantile):
            share, beta = problem.threshold_share, threshold.beta
            self.e, self.tau = surrogate.shift / beta, threshold.tau
            self.d = surrogate.width / (share * beta**2)
        elif isinstance(threshold, TopMean) and (caps := threshold.caps(problem.threshold_weights)) is not None:
            self.caps = caps
        self.u, self.b, self.delta = np.zeros(self.m), np.zeros(self.n_threshold), 1.0
        self.working = _WorkingSet(products, cache_size)
        self.c, self.scores = np.zeros(products.n), np.zeros(products.n)
        self.primal, self.dual = problem.formulation.evaluate(self.scores, problem.positive, problem.weights)[0], 0.0
        self.n_iter = 0

    def run(self, start: Solution | None) -> Solution:
        """Steps 1 to 5."""
        newest = self._first_point(start)
        gap, failures, inner_tol = 1.0, 0, 0.3
        while True:
            grown = self._add_rows(newest)
            if grown:
                self.recorder.passes += len(self.working.numbers) / self.products.n
            inner_tol = min(inner_tol, max(0.1 * gap, 0.3 * self.tol) if not failures else 0.1 * inner_tol)
            self._ascend(inner_tol)
            newest = self._advance()
            previous, gap = gap, relative_gap(self.primal, self.dual)
            self.recorder.record(self.n_iter, self.primal, self.dual)
            failures = failures + 1 if gap > 0.9 * previous and not grown else 0
            if gap <= self.tol or failures >= _FAILURES or self.n_iter >= self.max_iter:
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
        )

    def _first_point(self, start: Solution | None) -> Floats:
        """Step 1; returns the scores."""
        problem = self.problem
        last = None if start is None else start.state
        if isinstance(last, Multipliers) and len(last.u) == self.m and len(last.b) == self.n_threshold:
            self.u, self.b = np.minimum(last.u, self.top), last.b.copy()
        if self.u.any() and self.b.any():
            self._make_feasible()
        else:
            chosen = np.arange(0, self.m, max(1, self.m // _FIRST_POSITIVES))
            self.u[chosen] = 0.5 * np.minimum(self.top, problem.positive_share)[chosen]
            scores = np.zeros(self.products.n)  # at which the dual of a surrogate quantile is positive
            if not self.is_quantile:
                scores[problem.positives] = self.u
                scores = self.products.product(scores)
            _, p = problem.formulation.threshold.evaluate(scores[problem.threshold_rows], problem.threshold_weights)
            self.b = self.u.sum() * p
        self._set_delta()
        weights = self._row_weights()
        scores = self.products.product(weights)
        _, scale = self._dual_value(float(weights @ scores))
        self.u, self.b, self.delta = scale * self.u, scale * self.b, scale * self.delta
        self.recorder.passes += 2 if self.is_quantile else 4
        return np.asarray(scores * (scale / problem.alpha))

    def _set_delta(self) -> None:
        """The best δ for the current b."""
        if self.is_quantile:
            self.delta = float(np.sqrt(0.5 * self.d @ self.b**2 / self.tau))

    def _row_weights(self) -> Floats:
        weights = np.zeros(self.products.n)
        weights[self.problem.positives] = self.u
        weights[self.problem.threshold_rows] -= self.b
        return weights

    def threshold_conjugate(self, u: Floats, b: Floats, d: Floats, delta: float) -> float:
        """t*(b / S): zero for a mean of the largest scores."""
        if not self.is_quantile:
            return 0.0
        return (delta * self.tau + 0.5 * float(d @ b**2) / delta) / float(u.sum()) - self.e

    def _dual_value(self, squared_norm: float) -> tuple[float, float]:
        conjugate = self.threshold_conjugate(self.u, self.b, self.d, self.delta)
        share, alpha = self.problem.positive_share, self.problem.alpha
        return dual_value(self.surrogate, share, self.u, squared_norm, alpha, conjugate)

    def _add_rows(self, scores: Floats) -> bool:
        """Steps 2 and 5: rows with a multiplier, and those that want one by their scores; whether any is new."""
        problem, working = self.problem, self.working
        size = len(working.numbers)
        working.add(np.flatnonzero(self._row_weights()))
        threshold, share = problem.formulation.threshold, problem.threshold_share
        s = scores[problem.threshold_rows]
        inside = working.index_of[problem.threshold_rows] >= 0
        if isinstance(threshold, SurrogateQuantile):
            t = threshold.solve(s, share)
            level = t - self.e
        else:
            caps = self.caps[inside] if np.isfinite(self.caps[0]) else None
            t, p = top_mean(s[inside], caps)
            level = float(s[inside][p > 0].min())
        margin = t - scores[problem.positives] + self.surrogate.shift
        for rows, excess in ((problem.positives, margin), (problem.threshold_rows, s - level)):
            outside = np.flatnonzero(working.index_of[rows] < 0)
            wanted = int(np.count_nonzero(excess[outside] > 0))
            if wanted or size == 0:
                taken = min(max(2 * wanted, _ROWS_AT_ONCE // 10), _ROWS_AT_ONCE, len(outside))
                order = np.argsort(-excess[outside], kind="stable")
                working.add(rows[outside[order[:taken]]])
        return len(working.numbers) > size

    def _ascend(self, tol: float) -> None:
        """Step 3."""
        play = _Play(self)
        spent = 0.0
        while True:
            steps = min(max(100, min(play.size // 8, 1000)), self.max_iter - self.n_iter)
            done, optimal = play.ascend(steps)
            self.n_iter += done
            spent += 10.0 * done * play.size
            if optimal or play.gap() <= tol or self.n_iter >= self.max_iter:
                break
            if play.newton_cost() <= spent:
                play.newton_step()
                spent = 0.0
        self.u[play.in_play[0]], self.b[play.in_play[1]], self.delta = play.u, play.b, play.delta

    def _advance(self) -> Floats:
        """Step 4; returns the newest scores."""
        problem = self.problem
        self._make_feasible()
        c = self._row_weights() / problem.alpha
        scores = self.products.product(c)
        self.recorder.passes += 2  # one for w, one for the scores
        bb = float(c @ scores)
        bound, _ = self._dual_value(bb * problem.alpha**2)
        self.dual = max(self.dual, bound)

        def objective(squared: float, s: Floats) -> float:
            return 0.5 * problem.alpha * squared + problem.formulation.evaluate(s, problem.positive, problem.weights)[0]

        squares = (float(self.c @ self.scores), float(self.c @ scores), bb)
        share, value = best_on_segment(objective, squares, self.scores, scores)
        if value <= self.primal:
            self.c = (1 - share) * self.c + share * c
            self.scores = (1 - share) * self.scores + share * scores
            self.primal = value
        return scores

    def _make_feasible(self) -> None:
        """Against rounding: equal sums, and no multiplier above its bound."""
        p = self.b / self.b.sum()
        if not self.is_quantile and np.isfinite(self.caps[0]):
            p = np.minimum(p, self.caps)
            spare = np.where(p > 0, self.caps - p, 0.0)
            p += spare * ((1 - p.sum()) / max(float(spare.sum()), np.finfo(float).tiny))
        self.b = float(self.u.sum()) * p
        self._set_delta()


class _Play:
    """The dual on the working set: copies of the multipliers in play, and what a move needs."""

    def __init__(self, solver: _PairSolver) -> None:
        problem, self.working = solver.problem, solver.working
        self.solver, self.alpha, self.surrogate = solver, problem.alpha, solver.surrogate
        classes = problem.positives, problem.threshold_rows
        index_of = self.working.index_of
        self.in_play = tuple(np.flatnonzero(index_of[rows] >= 0) for rows in classes)
        self.positives, self.thresholds = (index_of[r[i]] for r, i in zip(classes, self.in_play, strict=True))
        of_positives, of_thresholds = self.in_play
        self.share, self.top, self.u = (x[of_positives] for x in (problem.positive_share, solver.top, solver.u))
        self.caps, self.d, self.b = (x[of_thresholds] for x in (solver.caps, solver.d, solver.b))
        self.threshold_share = problem.threshold_share[of_thresholds]
        self.diagonal = np.asarray(solver.products.diagonal[self.working.numbers], dtype=np.float64)
        self.size = len(self.working.numbers)
        self.scalars = np.zeros(5)
        self.scalars[DELTA] = solver.delta
        self._refresh()

    @property
    def delta(self) -> float:
        """δ of the surrogate quantile."""
        return float(self.scalars[DELTA])

    def _refresh(self) -> None:
        """Everything that follows from the multipliers, without the rounding of the updates."""
        weights = np.zeros(self.size)
        weights[self.positives] = self.u
        weights[self.thresholds] -= self.b
        self.scores = self._combination(weights / self.alpha)
        self.bound = self.b >= (1 - 1e-12) * self.caps * self.u.sum()
        on_rows = np.zeros(self.size)
        on_rows[self.thresholds] = np.where(self.bound, self.caps, 0.0)
        self.bound_row = self._combination(on_rows)
        self.scalars[MASS], self.scalars[BOUND_NORM] = on_rows.sum(), on_rows @ self.bound_row

    def _combination(self, weights: Floats) -> Floats:
        """Products of all rows of the working set with a weighted sum of them."""
        working = self.working
        if not weights.any():
            return np.zeros(len(weights))
        if len(working.rows) == len(weights):
            return np.asarray(weights @ working.rows, dtype=np.float64)
        full = np.zeros(len(working.index_of))
        full[working.numbers] = weights
        return working.products.product(full)[working.numbers]

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
        return done, optimal

    def _worth_a_look(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        g = self.surrogate.shift - self.scores[self.positives] - self.surrogate.width * self.u / self.share
        h = self.scores[self.thresholds] + self.solver.e - self.d * self.b / self.delta
        low_u, high_u = g[self.u > 0].min(initial=np.inf), g[self.u < self.top].max(initial=-np.inf)
        low_b, high_b = h[self.b > 0].min(initial=np.inf), h.max()
        spread_u, spread_b = max(high_u - low_u, 0.0), max(high_b - low_b, 0.0)
        look_u = ((self.u > 0) | (g > low_u - spread_u)) & ((self.u < self.top) | (g < high_u + spread_u))
        return look_u, (self.b > 0) | (h > low_b - spread_b)

    def _ascend(self, look_u: NDArray[np.bool_], look_b: NDArray[np.bool_], steps: int) -> tuple[int, bool]:
        working, solver, surrogate = self.working, self.solver, self.surrogate
        positives, share, top, u = (x[look_u] for x in (self.positives, self.share, self.top, self.u))
        thresholds, caps, d, b, bound = (x[look_b] for x in (self.thresholds, self.caps, self.d, self.b, self.bound))
        left, code = steps, ROW_MISSING
        while left > 0 and code == ROW_MISSING:
            code, missing, done = ascend(
                working.rows, working.place, self.diagonal, self.alpha, positives, share, top, surrogate.shift,
                surrogate.width, thresholds, caps, solver.e, d, solver.tau, u, b, self.scores, bound, self.bound_row,
                self.scalars, 1e-15, left,
            )  # fmt: skip
            left -= done
            if code == ROW_MISSING:
                working.fetch(missing)
        self.u[look_u], self.b[look_b], self.bound[look_b] = u, b, bound
        return steps - left, code == OPTIMAL

    def gap(self) -> float:
        """The relative gap of the problem on the working set."""
        s = self.scores[self.thresholds]
        threshold = self.solver.problem.formulation.threshold
        if isinstance(threshold, SurrogateQuantile):
            t = threshold.solve(s, self.threshold_share)
        else:
            t = top_mean(s, self.caps if np.isfinite(self.caps[0]) else None)[0]
        on_positives = self.scores[self.positives]
        squared = float(self.u @ on_positives - self.b @ s)
        primal = 0.5 * squared + float(self.share @ self.surrogate.value(t - on_positives))
        conjugate = self.solver.threshold_conjugate(self.u, self.b, self.d, self.delta)
        dual, _ = dual_value(self.surrogate, self.share, self.u, squared * self.alpha, self.alpha, conjugate)
        return relative_gap(primal, dual)

    def _free(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return (self.u > 0) & (self.u < self.top), (self.b > 0) & ~self.bound

    def newton_cost(self) -> float:
        """Cost of a Newton step in the time of an operation of a move; infinite where products are missing."""
        free = sum(int(mask.sum()) for mask in self._free())
        return free**3 / 30 if len(self.working.rows) == self.size else np.inf

    def newton_step(self) -> None:
        """Maximise over all multipliers that are strictly between their bounds, as far as these allow, with δ fixed."""
        free_u, free_b = self._free()
        m = int(free_u.sum())
        rows = np.concatenate([self.positives[free_u], self.thresholds[free_b]])
        Q = self.working.rows[rows][:, rows].astype(np.float64)
        g = self.bound_row[rows]
        rest, norm = 1.0 - self.scalars[MASS], self.scalars[BOUND_NORM]
        Q[:m, m:] = g[m:] - Q[:m, m:]
        Q[m:, :m] = Q[:m, m:].T
        Q[:m, :m] += norm - g[:m] - g[:m, None]
        Q /= self.alpha
        bend = np.concatenate([self.surrogate.width / self.share[free_u], self.d[free_b] / self.delta])
        Q[np.arange(len(rows)), np.arange(len(rows))] += bend
        s = self.scores[rows]
        bound_slope = float(self.caps[self.bound] @ (self.scores[self.thresholds[self.bound]] + self.solver.e))
        slopes = np.concatenate([
            self.surrogate.shift - s[:m] - self.surrogate.width * self.u[free_u] / self.share[free_u] + bound_slope,
            s[m:] + self.solver.e - self.d[free_b] * self.b[free_b] / self.delta,
        ])  # fmt: skip
        balance = np.concatenate([np.full(m, rest), np.full(len(rows) - m, -1.0)])
        factor = Cholesky(Q)
        direction = factor.solve(slopes)
        if len(rows) > m or rest > 1e-12:
            across = factor.solve(balance)
            direction -= across * (float(balance @ direction) / float(balance @ across))
        rise, curvature = float(slopes @ direction), float(direction @ (Q @ direction))
        if not (rise > 0 and curvature > 0):
            return
        du, db, dS = direction[:m], direction[m:], float(direction[:m].sum())
        step = rise / curvature
        room = self.caps[free_b] * self.u.sum() - self.b[free_b]
        for left, speed in (
            (self.u[free_u], -du), (self.top[free_u] - self.u[free_u], du), (self.b[free_b], -db),
            (room, db - (self.caps[free_b] * dS if np.isfinite(self.caps[0]) else 0.0)),
        ):  # fmt: skip
            closing = speed > 0
            step = min(step, float(np.min(left[closing] / speed[closing], initial=np.inf)))
        self.u[free_u] = np.clip(self.u[free_u] + step * du, 0.0, self.top[free_u])
        self.b[free_b] = np.maximum(self.b[free_b] + step * db, 0.0)
        self.b[self.bound] = self.caps[self.bound] * self.u.sum()
        tiny = 1e-14 * float(self.u.sum())
        self.u[self.u < tiny * self.share], self.b[self.b < tiny / len(self.b)] = 0.0, 0.0
        if self.d[0] > 0:
            self.scalars[DELTA] = np.sqrt(0.5 * float(self.d @ self.b**2) / self.solver.tau)
        self._refresh()
