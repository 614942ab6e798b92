"""Rows of a problem by their scores, and the working sets that are made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.surrogates import Surrogate
from toprank.formulations.thresholds import top_mean
from toprank.matrices.working_rows import WorkingRows

if TYPE_CHECKING:
    from toprank.solvers.problem import DualPoint, Problem
    from toprank.solvers.restricted import Restricted


@dataclass(frozen=True)
class NearPositives:
    """Positives that are less than `reach` above the threshold at one of some points, and `keep`."""

    points: list[Any]
    reach: float
    keep: Rows


@dataclass(frozen=True)
class Wish:
    """Threshold rows next to the end of the top at some points, about so many, and `keep`; and which positives.

    Without a word on them it is all positives.
    """

    points: list[Any]
    size: int
    keep: Rows
    near: NearPositives | None


@dataclass(frozen=True)
class Chosen:
    """The rows of a working set: positives and threshold rows with their numbers, and the sum of the rows above."""

    positives: Rows
    threshold_rows: Rows
    above: Rows
    """Numbers of the rows above, where they are known."""
    share: Floats
    caps: Floats | None
    g: Floats
    at_caps: float
    rows: WorkingRows
    passes: float
    """Passes over the data that were made for them."""

    def restricted(self, alpha: float, surrogate: Surrogate) -> Restricted:
        """The problem on these rows."""
        from toprank.solvers.restricted import Restricted

        k0, numbers = 1.0 - self.at_caps, (self.positives, self.threshold_rows, self.above)
        return Restricted(self.rows, alpha, surrogate, self.share, self.caps, self.g, k0, *numbers)


class RowChoice:
    """The choice among rows in one memory; `caps` are those of the threshold rows.

    Positives and threshold rows have the numbers that they have among their kind.
    """

    grows_with_top = True
    """Whether a working set may have all rows of the top, however many they are."""
    largest_part = np.iinfo(np.intp).max
    """Number of rows of the largest random part."""

    def __init__(self, problem: Problem, caps: Floats | None) -> None:
        self.problem, self.caps = problem, caps

    def chosen(self, wish: Wish | None) -> Chosen:
        """The rows of a working set, or all rows."""
        problem, caps = self.problem, self.caps
        positives, inside = np.arange(len(problem.positives)), np.arange(len(problem.threshold_rows))
        above = np.zeros(0, np.intp)
        if wish is not None:
            inside, above = self.next_to_threshold(wish.points, wish.size, wish.keep)
            positives = positives if wish.near is None else self.near_positives(wish.near)
        g, at_caps = self._sum_above(above)
        rows = WorkingRows.of(problem.X, problem.positives[positives], problem.threshold_rows[inside])
        caps, share = None if caps is None else caps[inside], problem.positive_share[positives]
        return Chosen(positives, inside, above, share, caps, g, at_caps, rows, len(above) / len(problem.positive))

    def next_to_threshold(self, points: list[Any], size: int, keep: Rows) -> tuple[Rows, Any]:
        """Threshold rows next to the end of the top by rank at some points, together with `keep`; and those above.

        A row that is above at one point only is among the former.
        """
        inside, above = self._next_to_threshold(points[0], size, keep)
        for scores in points[1:]:
            more, above_there = self._next_to_threshold(scores, size, keep)
            inside |= more | (above ^ above_there)
            above &= ~inside
        return np.flatnonzero(inside), np.flatnonzero(above)

    def _next_to_threshold(self, scores: Floats, size: int, keep: Rows) -> tuple[Mask, Mask]:
        s = scores[self.problem.threshold_rows]
        if self.caps is None:
            size = min(size, len(s))
            largest = np.argpartition(s, len(s) - size)[len(s) - size :]
            return _marked(len(s), largest, keep), _marked(len(s))
        order = np.argsort(-s, kind="stable")
        end = int(np.searchsorted(np.cumsum(self.caps[order]), 1.0 - 1e-12)) + 1
        first, last = max(0, end - size // 2), min(len(s), max(end + size // 2, end + 2))
        inside = _marked(len(s), order[first:last], keep)
        return inside, _marked(len(s), order[:first]) & ~inside

    def near_positives(self, wanted: NearPositives) -> Rows:
        """Positives next to the threshold or above it."""
        problem, near = self.problem, np.zeros(len(self.problem.positives), dtype=bool)
        for scores in wanted.points:
            t = top_mean(scores[problem.threshold_rows], self.caps)[0]
            near |= t - scores[problem.positives] > -wanted.reach
        near[wanted.keep] = True
        return np.flatnonzero(near)

    def _sum_above(self, above: Rows) -> tuple[Floats, float]:
        """The sum of the rows above with their caps, and that of the caps."""
        problem, caps = self.problem, self.caps
        if caps is None or not len(above):
            return np.zeros(problem.X.shape[1]), 0.0
        g = np.asarray(problem.X[problem.threshold_rows[above]].T @ caps[above], dtype=np.float64)
        return g, float(caps[above].sum())

    def dual_point(self, restricted: Restricted, y_inside: Floats, p_inside: Floats) -> DualPoint | None:
        """The dual point of a working set; positives and threshold rows that were left out have zeros."""
        from toprank.solvers.problem import DualPoint

        y, p = np.zeros(len(self.problem.positives)), np.zeros(len(self.problem.threshold_rows))
        if self.caps is not None:
            p[restricted.above] = self.caps[restricted.above]
        y[restricted.positives], p[restricted.threshold_rows] = y_inside, p_inside
        return DualPoint(y, p)

    def thinned(self, smallest: int, size: int) -> tuple[Problem, float]:
        """The problem on a random part of each class, with weights raised so that the classes weigh the same.

        At least the smallest number of rows of each class is taken, where there are as many. Returns the part of the
        rows too.
        """
        problem, rng = self.problem, np.random.default_rng(0)
        rows, factors = [], []
        for members in (problem.positives, np.flatnonzero(~problem.positive)):
            chosen = members[drawn(rng, len(members), max(smallest, size * len(members) // len(problem.positive)))]
            rows.append(chosen)
            factors.append(np.full(len(chosen), problem.weights[members].sum() / problem.weights[chosen].sum()))
        taken = np.concatenate(rows)
        order = np.argsort(taken)
        taken, factor = taken[order], np.concatenate(factors)[order]
        thinned = replace(
            problem, X=problem.X[taken], positive=problem.positive[taken], weights=factor * problem.weights[taken]
        )
        return thinned, len(taken) / len(problem.positive)


def drawn(rng: np.random.Generator, n: int, wanted: int) -> Rows:
    """Numbers below n, as many as wanted or all."""
    return rng.choice(n, wanted, replace=False) if wanted < n else np.arange(n)


def _marked(n: int, *rows: Rows) -> Mask:
    """A mask of n rows that is true for the given ones."""
    mask = np.full(n, False)
    for some in rows:
        mask[some] = True
    return mask
