"""The choice of rows in blocks for a working set: one trip for the rows, and little that grows with their number.

Rows above the end of the top at all points enter by their sum, as in one memory. A row that is above at one of two
points only is in the working set in one memory; of blocks there may be as many as there are rows. Here such rows are
put together in a few groups by how far they are below at the other point, and a group enters as one row, their mean,
whose cap is the sum of theirs: that all rows of a group have the same part of their cap is a restriction of p, so the
lower bound is one, and the top is exact at both points.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from toprank.arrays import Floats, Mask, Rows
from toprank.matrices.block_matrix import entries
from toprank.matrices.block_selection import ROUNDING, Border, Search, borders, find, within
from toprank.matrices.block_tasks import Counted, combined_tasks, fetched, on_each
from toprank.matrices.block_vector import local_numbers
from toprank.matrices.dense_or_sparse import rows_as_csr, stacked
from toprank.matrices.working_rows import WorkingRows
from toprank.solvers.problem import Problem
from toprank.solvers.row_choice import Chosen, NearPositives, RowChoice, Wish, drawn

if TYPE_CHECKING:
    from toprank.solvers.block_problem import BlockProblem

# Rows of the random part that the first point is made of.
_LARGEST_PART = 10_000
# Groups of the rows that are above the end of the top at one of two points only, for each point.
_GROUPS = 8


class BlockRowChoice(RowChoice):
    """The choice among rows in blocks: what is chosen is sent here, and the rows above stay where they are."""

    problem: BlockProblem
    caps: Any
    grows_with_top = False
    largest_part = _LARGEST_PART

    def __init__(self, problem: Any, caps: Any) -> None:
        super().__init__(problem, None if caps is None else problem.caps)
        self._n_groups_so_far = 0
        self._held = _Held()

    def chosen(self, wish: Wish | None) -> Chosen:
        """The rows of a working set, or all rows: one pass over the data."""
        problem = self.problem
        windows = [] if wish is None else self._windows(wish)
        self._held = _Held() if wish is None else self._held.among(wish.keep)
        points = [] if wish is None else [problem.of_threshold(scores).pieces for scores in wish.points]
        near = None if wish is None else wish.near
        of_positives = [] if near is None else [problem.of_positives(scores).pieces for scores in near.points]
        columns = [
            problem.X.blocks,
            problem.X.used,
            problem.positive.pieces,
            problem.positive_share.pieces,
            [None] * len(problem.X.blocks) if self.caps is None else self.caps.pieces,
            _side_by_side(points, len(problem.X.blocks)),
            _side_by_side(of_positives, len(problem.X.blocks)),
            self._requests(wish, windows, near),
        ]
        above_all = problem.formulation.over == "all"
        pieces = on_each(_taken, columns, problem.X.change, above_all)
        rows, sums = on_each(_rows, [pieces]), combined_tasks(on_each(_sums, [pieces]), _added)
        *parts, total = fetched([*rows, *sums])
        return self._put_together(parts, total, hold=wish is not None)

    def _windows(self, wish: Wish) -> list[tuple[Border | None, Border, float]]:
        """For each point the first and the last row of its window, and the spread of the scores in it."""
        vectors = [self.problem.of_threshold(scores) for scores in wish.points]
        n, searches, counts = len(vectors[0]), [], []
        for scores, vector in zip(wish.points, vectors, strict=True):
            guess, ends = None, [min(wish.size, n)]
            if self.caps is not None:
                end = self.problem.end_of_top(scores)
                place, guess = end.n_up_to(1 - ROUNDING), end.guess
                ends = [max(0, place - wish.size // 2), min(n, max(place + wish.size // 2, place + 2))]
            searches += [Search(vector, 1.0, max(count, 1), by_weight=False, guess=guess) for count in ends]
            counts += ends
        found = find(searches)
        lines = borders([search.values for search in searches], found, counts)
        if self.caps is None:
            return [(None, line, 1.0) for line in lines]
        pairs = zip(lines[::2], lines[1::2], counts[::2], strict=True)
        return [(first if count else None, last, first.value - last.value) for first, last, count in pairs]

    def _requests(self, wish: Wish | None, windows: Any, near: NearPositives | None) -> list[_Request | None]:
        """What each block is asked for; None for all of its rows."""
        problem = self.problem
        n_blocks = len(problem.X.blocks)
        if wish is None:
            return [None] * n_blocks
        kept = local_numbers(wish.keep[wish.keep < len(problem.threshold_weights)], problem.threshold_weights.offsets)
        held = local_numbers(self._held.numbers, problem.threshold_weights.offsets)
        limits, kept_positives = None, [np.zeros(0, np.intp)] * n_blocks
        if near is not None:
            limits = [problem.threshold_at(scores) + near.reach for scores in near.points]
            kept_positives = local_numbers(near.keep, problem.positive_share.offsets)
        return [
            _Request(
                [(first and first.of_block(b), last.of_block(b), spread) for first, last, spread in windows],
                kept[b],
                held[b],
                limits,
                kept_positives[b],
            )
            for b in range(n_blocks)
        ]

    def _put_together(self, parts: list[_Rows], total: _Sums, hold: bool) -> Chosen:
        """The rows of all blocks and the groups, as one working set; the list is emptied, so that rows can go."""
        problem = self.problem
        of_positives, of_threshold = problem.positive_share.offsets, problem.threshold_weights.offsets
        positives = np.concatenate([part.positives + of_positives[b] for b, part in enumerate(parts)])
        numbers = np.concatenate([part.threshold_rows + of_threshold[b] for b, part in enumerate(parts)])
        rows, near = [part.of_positives for part in parts], [part.of_threshold for part in parts]
        caps = None if self.caps is None else np.concatenate([part.caps for part in parts])
        share = np.concatenate([part.share for part in parts])
        parts.clear()
        if hold:
            self._held = self._held.with_more(numbers, caps, near)
            numbers, caps, near = self._held.numbers, self._held.caps, [self._held.rows]
        rows += near
        if caps is not None:
            full = np.flatnonzero(total.caps_of_groups > 0)
            means = total.groups[full] / total.caps_of_groups[full][:, None]
            rows.append(csr_array(means) if any(map(issparse, rows)) else means)
            caps = np.concatenate([caps, total.caps_of_groups[full]])
            # a group has a number of its own, as it will not come again
            numbers = np.concatenate([numbers, of_threshold[-1] + self._n_groups_so_far + np.arange(len(full))])
            self._n_groups_so_far += len(full)
        working = WorkingRows.of_parts(rows, len(positives))
        return Chosen(positives, numbers, np.zeros(0, np.intp), share, caps, total.g, total.at_caps, working, 1.0)

    def dual_point(self, restricted: Any, y_inside: Floats, p_inside: Floats) -> None:
        """None: it would be a vector of all rows."""
        return

    def thinned(self, smallest: int, size: int) -> tuple[Problem, float]:
        """The same rows as in one memory, sent here."""
        problem, rng = self.problem, np.random.default_rng(0)
        requests, weights = [], []
        for role in (problem.positives, problem.negatives):
            of_class = problem.weights[role]
            wanted = max(smallest, size * len(of_class) // len(problem.positive))
            numbers = np.sort(drawn(rng, len(of_class), wanted))
            chosen = of_class[numbers]
            requests.append((role, numbers))
            weights.append(of_class.sum() / chosen.sum() * chosen)
        X, positive = stacked(problem.X.rows(*requests)), np.repeat([True, False], [len(part) for part in weights])
        thinned = Problem(X, positive, np.concatenate(weights), problem.formulation, problem.alpha)
        return thinned, len(positive) / len(problem.positive)


@dataclass(frozen=True)
class _Held:
    """Threshold rows of the last working set, as they were sent, in the order of their numbers: none is sent twice."""

    numbers: Rows = field(default_factory=lambda: np.zeros(0, np.intp))
    caps: Floats | None = None
    rows: Any = None

    def among(self, wanted: Rows) -> _Held:
        """Those of some numbers."""
        return self._taken(np.flatnonzero(np.isin(self.numbers, wanted)))

    def with_more(self, numbers: Rows, caps: Floats | None, rows: list[Any]) -> _Held:
        """These and others, whose matrices are those of several blocks."""
        if not len(self.numbers):
            return _Held(numbers, caps, stacked(rows))
        both = None if caps is None or self.caps is None else np.concatenate([self.caps, caps])
        together = _Held(np.concatenate([self.numbers, numbers]), both, stacked([self.rows, *rows]))
        return together._taken(np.argsort(together.numbers))

    def _taken(self, places: Rows) -> _Held:
        if not len(places):
            return _Held()
        return _Held(self.numbers[places], None if self.caps is None else self.caps[places], self.rows[places])


@dataclass(frozen=True)
class _Request:
    """What a block is asked for: windows at some points, rows to keep, and positives below some limits."""

    windows: list[tuple[tuple[float, int] | None, tuple[float, int], float]]
    keep: Rows
    held: Rows
    """Those of them that are not sent, as they are there."""
    limits: list[float] | None
    keep_positives: Rows


@dataclass(frozen=True)
class _Rows(Counted):
    """Rows of a block by their numbers in it, among their kind."""

    positives: Rows
    share: Floats
    of_positives: Any
    threshold_rows: Rows
    caps: Floats
    of_threshold: Any


@dataclass(frozen=True)
class _Sums(Counted):
    """Sums of the rows above and of groups with their caps, and of the caps."""

    g: Floats
    at_caps: float
    groups: Floats
    caps_of_groups: Floats


def _side_by_side(columns: list[Any], n_blocks: int) -> list[Any]:
    """The pieces of several vectors, block by block."""
    return [[column[b] for column in columns] for b in range(n_blocks)]


def _taken(
    block: Any,
    used: Rows | None,
    positive: Mask,
    share: Floats,
    caps: Floats | None,
    points: list[Floats],
    of_positives: list[Floats],
    request: _Request | None,
    change: Any,
    above_all: bool,
) -> tuple[_Rows, _Sums]:
    """The rows of a block that are asked for, and the sums of those above."""
    X, places = entries(block, used, change), np.flatnonzero(positive)
    rows = np.arange(len(positive)) if above_all else np.flatnonzero(~positive)
    inside, group = np.full(len(rows), True), np.full(len(rows), -1)
    chosen = np.full(len(places), True)
    if request is not None:
        inside, group = _windows_of(points, request)
        if request.limits is not None:
            chosen[:] = False
            for scores, limit in zip(of_positives, request.limits, strict=True):
                chosen |= scores < limit
            chosen[request.keep_positives] = True
        inside[request.held] = False
    numbers, positives = np.flatnonzero(inside), np.flatnonzero(chosen)
    found = _Rows(
        positives,
        share[positives],
        rows_as_csr(X, places[positives]),
        numbers,
        np.zeros(0) if caps is None else caps[numbers],
        rows_as_csr(X, rows[numbers]),
    )
    return found, _sums_of(X, rows, group, caps)


def _windows_of(points: list[Floats], request: _Request) -> tuple[Mask, Rows]:
    """The rows of the windows and those to keep; and the groups of the others: 0 are those above at all points."""
    inside = np.full(len(points[0]), False)
    inside[request.keep] = True
    above, below = [], []
    for scores, (first, last, spread) in zip(points, request.windows, strict=True):
        over = np.full(len(scores), False) if first is None else within(scores, first)
        inside |= within(scores, last) & ~over
        above.append(over)
        scale = spread if spread > 0 else 1.0
        below.append(lambda rows, s=scores, v=last[0], scale=scale: np.maximum(v - s[rows], 0.0) / scale)
    group = np.full(len(inside), -1)
    group[np.logical_and.reduce(above) & ~inside] = 0
    if len(points) == 2:
        for number in range(2):
            rows = np.flatnonzero(above[number] & ~above[1 - number] & ~inside)
            depth = np.minimum(np.log2(1 + below[1 - number](rows)), _GROUPS - 1).astype(np.intp)
            group[rows] = 1 + number * _GROUPS + depth
    return inside, group


def _sums_of(X: Any, rows: Rows, group: Rows, caps: Floats | None) -> _Sums:
    n_sums = 1 + 2 * _GROUPS
    sums, total = np.zeros((n_sums, X.shape[1])), np.zeros(n_sums)
    grouped = np.flatnonzero(group >= 0)
    if caps is not None and len(grouped):
        of_group, weights = group[grouped], caps[grouped]
        by_group = csr_array((weights, (of_group, np.arange(len(grouped)))), shape=(n_sums, len(grouped)))
        found = by_group @ rows_as_csr(X, rows[grouped])
        sums = np.asarray(found.toarray() if issparse(found) else found, dtype=np.float64)
        total = np.asarray(np.bincount(of_group, weights, n_sums), dtype=np.float64)
    return _Sums(sums[0], float(total[0]), sums[1:], total[1:])


def _rows(taken: tuple[_Rows, _Sums]) -> _Rows:
    return taken[0]


def _sums(taken: tuple[_Rows, _Sums]) -> _Sums:
    return taken[1]


def _added(one: _Sums, other: _Sums) -> _Sums:
    return _Sums(
        one.g + other.g,
        one.at_caps + other.at_caps,
        one.groups + other.groups,
        one.caps_of_groups + other.caps_of_groups,
    )
