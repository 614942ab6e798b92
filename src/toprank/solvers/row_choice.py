"""Rows of a problem by their scores, and the working sets that are made of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.thresholds import top_mean_value
from toprank.matrices.working_rows import WorkingRows

if TYPE_CHECKING:
    from toprank.solvers.problem import DualPoint, Problem
    from toprank.solvers.restricted import Restricted


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

    def next_to_threshold(self, points: list[Any], size: int, keep: Rows) -> tuple[Rows, Any]:
        """Threshold rows next to the end of the top by rank at some points, together with `keep`; and those above.

        A row that is above at one point only is among the former.
        """
        inside, above = self._next_to_threshold(points[0], size, keep)
        for scores in points[1:]:
            more, above_there = self._next_to_threshold(scores, size, keep)
            inside = np.unique(np.concatenate([inside, more, np.setxor1d(above, above_there)]))
            above = np.setdiff1d(above, inside)
        return inside, above

    def _next_to_threshold(self, scores: Floats, size: int, keep: Rows) -> tuple[Rows, Rows]:
        s = scores[self.problem.threshold_rows]
        if self.caps is None:
            size = min(size, len(s))
            largest = np.argpartition(s, len(s) - size)[len(s) - size :]
            return np.flatnonzero(_marked(len(s), largest, keep)), np.zeros(0, np.intp)
        order = np.argsort(-s, kind="stable")
        end = int(np.searchsorted(np.cumsum(self.caps[order]), 1.0 - 1e-12)) + 1
        first, last = max(0, end - size // 2), min(len(s), max(end + size // 2, end + 2))
        inside = _marked(len(s), order[first:last], keep)
        return np.flatnonzero(inside), np.flatnonzero(_marked(len(s), order[:first]) & ~inside)

    def near_positives(self, points: list[Any], reach: float, keep: Rows) -> Rows:
        """Positives that are less than `reach` above the threshold at one of some points, and `keep`."""
        problem, near = self.problem, False
        for scores in points:
            t = top_mean_value(scores[problem.threshold_rows], self.caps)
            near = (t - scores[problem.positives] > -reach) | near
        return np.union1d(np.flatnonzero(near), keep)

    def rows(self, positives: Rows, threshold_rows: Rows) -> WorkingRows:
        """A copy of positives and threshold rows."""
        problem = self.problem
        return WorkingRows.of(problem.X, problem.positives[positives], problem.threshold_rows[threshold_rows])

    def sum_above(self, above: Any) -> tuple[Floats, float, int]:
        """The sum of the rows above with their caps, that of the caps, and how many they are."""
        problem, caps = self.problem, self.caps
        if caps is None or not len(above):
            return np.zeros(problem.X.shape[1]), 0.0, 0
        g = np.asarray(problem.X[problem.threshold_rows[above]].T @ caps[above], dtype=np.float64)
        return g, float(caps[above].sum()), len(above)

    def listed(self, above: Any) -> Rows:
        """The numbers of the rows above, where they are known."""
        return np.asarray(above, dtype=np.intp)

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
