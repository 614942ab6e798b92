"""The end of the top of a vector in pieces: exact, without all numbers in one place and with few round trips.

How far down a vector must one go until a given amount of rows has passed, by number or by weight?

1. Each block says how much it has between values at which the end is expected, around a guess or over the whole range;
   the blocks' tables are added up on their way.
2. The end is in one of the parts. If all values in it are equal, the end is there; if few rows are in it, these are
   fetched and put in order; otherwise the part is divided again.

Several questions are asked together: a round trip takes the next step of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.matrices.block_tasks import Counted, combined, fetched
from toprank.matrices.block_vector import BlockVector, applied, several

# Values at which a part is divided, and the number of rows of a part that are fetched.
_EDGES, _FEW = 48, 200
# Powers of four by which values around a guess are away from it, as parts of its spread.
_AROUND = 4.0 ** np.arange(-10, 11)
# Part of the amount that may be rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class End:
    """The value at which the top ends, how much is above it, and how many rows have it."""

    value: float
    n_above: int
    weight_above: float
    sum_above: float
    """Sum of the values above, times their weights."""
    n_equal: int
    weight_equal: float

    @property
    def guess(self) -> tuple[float, float]:
        """Where the end of a similar vector may be, and about how far from there."""
        mean = self.sum_above / self.weight_above if self.weight_above > 0 else self.value
        return self.value, max(abs(mean - self.value), 1e-3 * abs(self.value), 1e-300)

    def n_up_to(self, weight: float) -> int:
        """About how many rows have so much weight, the larger values first."""
        each = self.weight_equal / self.n_equal
        return self.n_above + min(max(int(np.ceil((weight - self.weight_above) / each - 1e-9)), 1), self.n_equal)


@dataclass
class Search:
    """The search for the end of one top."""

    values: BlockVector
    weights: Any
    """Weights of the rows, or 1.0."""
    target: float
    by_weight: bool = True
    guess: tuple[float, float] | None = None
    above: Floats = field(default_factory=lambda: np.zeros(3))
    """Number, weight and weighted sum of the rows above the part that is still open."""
    asked: Any = None
    """Parts between which rows are counted, or the two values between which rows are fetched."""
    end: End | None = None

    def __post_init__(self) -> None:
        if self.guess is None:
            self.asked = _Parts(np.array([-np.inf]))
        else:
            centre, away = self.guess[0], self.guess[1] * _AROUND
            # most rows are far below the end: they are not looked at
            near = away[away <= self.guess[1]]
            self.asked = _Parts(np.concatenate([centre - near[::-1], [centre], centre + away]), may_be_below=True)

    def learn(self, answer: Any) -> None:
        """Take the next step by what all blocks said."""
        if isinstance(answer, Table):
            self._narrow(answer)
        else:
            self._finish(*answer)

    def _narrow(self, table: Table) -> None:
        amounts = table.amounts[:, ::-1]  # from the largest values downwards
        known = np.cumsum(amounts, axis=1)
        reached = self.above[int(self.by_weight)] + known[int(self.by_weight)]
        part = int(np.searchsorted(reached, self.target))
        some_below = self.asked.may_be_below and self.above[0] + known[0, -1] < len(self.values)
        if part == len(reached) and some_below:  # the guess was too high
            self.above = self.above + known[:, -1]
            self.asked = _Parts(np.array([-np.inf]), float(np.nextafter(self.asked.edges[0], -np.inf)))
            return
        occupied = np.flatnonzero(amounts[0])
        part = min(part, int(occupied[-1]))  # rounding of the last weights
        inside, lowest, highest = amounts[:, part], table.lowest[::-1][part], table.highest[::-1][part]
        above = self.above + known[:, part] - inside
        if lowest == highest:
            self.end = _end(float(lowest), above, inside[0], inside[1])
            return
        self.above = above
        if inside[0] <= _FEW:
            self.asked = (float(lowest), float(highest))
        else:
            self.asked = _Parts(np.linspace(lowest, highest, _EDGES), float(highest))

    def _finish(self, values: Floats, weights: Floats) -> None:
        order = np.argsort(-values, kind="stable")
        values, weights = values[order], weights[order]
        amounts = weights if self.by_weight else np.ones(len(values))
        place = int(np.searchsorted(self.above[int(self.by_weight)] + np.cumsum(amounts), self.target))
        value = values[min(place, len(values) - 1)]
        above, equal = values > value, values == value
        more = np.array([above.sum(), weights[above].sum(), weights[above] @ values[above]])
        self.end = _end(float(value), self.above + more, equal.sum(), weights[equal].sum())


def find(searches: Sequence[Search]) -> list[End]:
    """Bring some searches of vectors with the same blocks to their ends."""
    while asking := [search for search in searches if search.end is None]:
        questions = tuple(search.asked for search in asking)
        columns = [column for search in asking for column in (search.values, search.weights)]
        answers = combined(applied(several, *columns).tasks(_answers, [], questions), _merged, 5 * _EDGES * len(asking))
        for search, answer in zip(asking, answers, strict=True):
            search.learn(answer)
    return [search.end for search in searches if search.end is not None]


def top_mean(end: End) -> float:
    """The mean of the largest, whose weights have the sum 1; the last one counts in part."""
    return end.sum_above + (1.0 - end.weight_above) * end.value


@dataclass(frozen=True)
class Border:
    """The largest rows, up to a number: those above a value, and of each block some of the rows that have it."""

    value: float
    n_of_equal: tuple[int, ...]

    def of_block(self, block: int) -> tuple[float, int]:
        """What a block needs."""
        return self.value, self.n_of_equal[block]


def borders(vectors: Sequence[BlockVector], ends: Sequence[End], counts: Sequence[int]) -> list[Border]:
    """Up to given numbers of the largest; rows of equal value are taken in the order of their numbers."""
    lengths = vectors[0].lengths
    everyone = [end.n_above + end.n_equal <= count for end, count in zip(ends, counts, strict=True)]
    equal = np.array([lengths] * len(ends))
    if not all(everyone):
        of_values = applied(several, *vectors).tasks(_n_equal, [], tuple(end.value for end in ends))
        equal = np.array(fetched(of_values)).T
    found = []
    for end, count, of_blocks, takes_all in zip(ends, counts, equal, everyone, strict=True):
        before = np.concatenate([[0], np.cumsum(of_blocks)[:-1]])
        taken = of_blocks if takes_all else np.clip(count - end.n_above - before, 0, of_blocks)
        found.append(Border(end.value, tuple(int(n) for n in taken)))
    return found


def within(values: Floats, border: tuple[float, int]) -> Mask:
    """Which rows of a block are above a border."""
    value, n_of_equal = border
    chosen: Mask = values > value
    if n_of_equal:
        chosen[np.flatnonzero(values == value)[:n_of_equal]] = True
    return chosen


@dataclass(frozen=True)
class _Parts:
    """Values between which rows are counted, up to the largest that is of interest."""

    edges: Floats
    most: float = np.inf
    may_be_below: bool = False
    """Whether the end may be below all of them."""


@dataclass(frozen=True)
class Table(Counted):
    """Numbers, weights and weighted sums of the rows between some values, and the smallest and largest of each part."""

    amounts: Floats
    lowest: Floats
    highest: Floats

    def __add__(self, other: Table) -> Table:
        lowest, highest = np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest)
        return Table(self.amounts + other.amounts, lowest, highest)


def _end(value: float, above: Floats, n_equal: Any, weight_equal: Any) -> End:
    return End(value, int(above[0]), float(above[1]), float(above[2]), int(n_equal), float(weight_equal))


def _answers(columns: tuple[Any, ...], questions: tuple[Any, ...]) -> list[Any]:
    pairs = zip(columns[::2], columns[1::2], questions, strict=True)
    return [
        table_of(values, weights, asked.edges, asked.most)
        if isinstance(asked, _Parts)
        else _rows_between(values, weights, *asked)
        for values, weights, asked in pairs
    ]


def _merged(some: list[Any], others: list[Any]) -> list[Any]:
    return [
        one + other if isinstance(one, Table) else tuple(np.concatenate(pair) for pair in zip(one, other, strict=True))
        for one, other in zip(some, others, strict=True)
    ]


def table_of(values: Floats, weights: Any, edges: Floats, most: float) -> Table:
    """What is from each edge up to the next, and from the last one up to `most`."""
    lowest, highest, amounts = np.full(len(edges), np.inf), np.full(len(edges), -np.inf), np.zeros((3, len(edges)))
    is_open = edges[0] == -np.inf  # then most rows are in the lowest part: they are not looked up
    if len(edges) > is_open:
        is_large = values >= edges[int(is_open)]
        large = np.flatnonzero(is_large if most == np.inf else is_large & (values <= most))
        of_large = values[large]
        each = weights[large] if np.ndim(weights) else np.full(len(large), weights)
        parts = np.searchsorted(edges, of_large, side="right") - 1
        np.minimum.at(lowest, parts, of_large)
        np.maximum.at(highest, parts, of_large)
        amounts[:] = [np.bincount(parts, w, len(edges)) for w in (None, each, each * of_large)]
    first = np.flatnonzero(values < edges[1] if len(edges) > 1 else values <= most) if is_open else ()
    if len(first):
        in_first = values[first]
        each = weights[first] if np.ndim(weights) else np.full(len(in_first), weights)
        lowest[0], highest[0] = in_first.min(), in_first.max()
        amounts[:, 0] = len(in_first), each.sum(), each @ in_first
    return Table(amounts, lowest, highest)


def _rows_between(values: Floats, weights: Any, low: float, high: float) -> tuple[Floats, Floats]:
    rows: Rows = np.flatnonzero((values >= low) & (values <= high))
    return values[rows], weights[rows] if np.ndim(weights) else np.full(len(rows), weights)


def _n_equal(columns: tuple[Any, ...], wanted: tuple[float, ...]) -> list[int]:
    return [int(np.count_nonzero(values == value)) for values, value in zip(columns, wanted, strict=True)]
