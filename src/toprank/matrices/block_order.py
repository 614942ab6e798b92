"""The order of a vector in pieces: exact cuts after the largest ones, without all of them in one place.

Each block sorts its own. To find the cut after which a given amount of rows has passed, by number or by weight:

1. Each block names values at some places of the part that is still open, evenly spread, with the amount up to each.
2. From these it is known between which values the cut must be. Those in between are asked for: each block says how much
   it has above each of them. The cut is at one of the values, or between two that follow each other.
3. Steps 1 and 2 again for the part between, until few rows are open: they are fetched. Where the cut is at a value that
   many rows have, these are taken in the order of their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.matrices.block_tasks import Pieces, fetched, on_each, stored
from toprank.matrices.block_vector import BlockVector, applied, local_numbers

# Places that a block names, values that are asked for at once, and open rows that are fetched.
_PLACES, _ASKED, _FEW = 64, 256, 500
# Part of the amount that may be rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Sorted:
    """The values of a block in falling order, and their weights."""

    negated: Floats
    """The values with their sign turned, in rising order."""
    before: Floats | float
    """Weight of the first rows, of none of them to all of them; or the weight of each row, if that is the same."""

    def __len__(self) -> int:
        return len(self.negated)

    def amounts(self, places: Any, by_weight: bool) -> Any:
        """How much the first rows are: their number, or their weight."""
        if not by_weight:
            return np.asarray(places, dtype=np.float64)
        return self.before[places] if isinstance(self.before, np.ndarray) else self.before * np.asarray(places)

    def n_above(self, value: Any) -> Any:
        """How many are above a value."""
        return np.searchsorted(self.negated, -np.asarray(value), side="left")

    def n_from(self, value: Any) -> Any:
        """How many are equal to it or above."""
        return np.searchsorted(self.negated, -np.asarray(value), side="right")

    def open_rows(self, low: float | None, high: float | None) -> tuple[int, int]:
        """The places of the values between two, without these."""
        first = 0 if high is None else int(self.n_from(high))
        return first, len(self) if low is None else int(self.n_above(low))


@dataclass(frozen=True)
class Order:
    """The order of a vector, in pieces, by which cuts are found."""

    scores: BlockVector
    pieces: Pieces

    @classmethod
    def of(cls, scores: BlockVector, weights: BlockVector | None) -> Order:
        """Sort each block; without weights each row weighs 1."""
        both = applied(_sorted, scores, 1.0 if weights is None else weights)
        return cls(scores, stored(both.tasks(_itself)))

    def cut(self, target: float, *, by_weight: bool) -> Rows:
        """How many of each block are among the largest that together just reach the target."""
        lengths = np.array(self.scores.lengths, dtype=np.intp)
        if target <= 0:
            return np.zeros_like(lengths)
        low: float | None = None
        high: float | None = None
        ends = np.array([0.0, lengths.sum()])  # how many rows are before the open part, and up to its end
        before = 0.0
        while ends[1] - ends[0] > _FEW:
            views = fetched(on_each(_view, [self.pieces], low, high, by_weight))
            asked = _worth_asking(views, target - before)
            found = np.array(fetched(on_each(_amounts_at, [self.pieces], asked, by_weight)))
            n_above, n_from, strictly, inclusive = found.sum(axis=0)
            place = int(np.searchsorted(inclusive, target))  # the first value up to which the target is reached
            if place < len(asked) and strictly[place] < target:
                return self._among_equal(asked[place], found[:, 2:, place], target, by_weight)
            if place > 0:
                high, before, ends[0] = asked[place - 1], inclusive[place - 1], n_from[place - 1]
            if place < len(asked):
                low, ends[1] = asked[place], n_above[place]
        return self._among_open(low, high, target - before, by_weight)

    def _among_open(self, low: float | None, high: float | None, target: float, by_weight: bool) -> Rows:
        """The cut among few rows, which are fetched."""
        parts = fetched(on_each(_open_rows, [self.pieces], low, high, by_weight))
        values, amounts = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        blocks = np.repeat(np.arange(len(parts)), [len(part[1]) for part in parts])
        order = np.argsort(-values, kind="stable")
        taken = int(np.searchsorted(np.cumsum(amounts[order]), target)) + 1
        first = np.array([part[0] for part in parts], dtype=np.intp)
        return np.asarray(first + np.bincount(blocks[order[:taken]], minlength=len(parts)), dtype=np.intp)

    def _among_equal(self, value: float, above: Floats, target: float, by_weight: bool) -> Rows:
        """The cut among rows of equal value, in the order of their numbers."""
        reached = above[:, 0].sum() + np.cumsum(above[:, 1] - above[:, 0])
        block = min(int(np.searchsorted(reached, target)), len(reached) - 1)
        rest = target - (reached[block - 1] if block else above[:, 0].sum())
        rests = np.where(np.arange(len(reached)) < block, np.inf, -np.inf)
        rests[block] = rest
        return np.array(fetched(on_each(_n_of_equal, [self.pieces, rests.tolist()], value, by_weight)), dtype=np.intp)

    def first_beyond(self, weight: float) -> float:
        """The largest value up to which, it included, there is more than so much weight."""
        counts = self.cut(float(np.nextafter(weight, np.inf)), by_weight=True)
        return float(min(fetched(on_each(_last_of, [self.pieces, counts.tolist()]))))

    def top_mean(self) -> float:
        """The mean of the largest, whose weights have the sum 1; the last one counts in part."""
        counts = self.cut(1.0 - _ROUNDING, by_weight=True)
        parts = np.array(fetched(on_each(_first_sums, [self.pieces, counts.tolist()])))
        weight, weighted, smallest = parts[:, 0].sum(), parts[:, 1].sum(), parts[:, 2].min()
        return float(weighted + (1.0 - weight) * smallest)


def top_mean(scores: BlockVector, caps: BlockVector | None) -> float:
    """Maximum of p · scores over the simplex with upper bounds, as `toprank.formulations.thresholds.top_mean`."""
    return scores.max() if caps is None else Order.of(scores, caps).top_mean()


def next_to_cut(points: list[BlockVector], caps: BlockVector | None, size: int, keep: Rows) -> tuple[Rows, BlockVector]:
    """Rows next to the end of the top by rank at some points, and `keep`; and a mask of those above at all points.

    A row that is above at one point only is among the former.
    """
    lengths, columns = points[0].lengths, []
    for scores in points:
        order, n = Order.of(scores, caps), len(scores)
        first, last = np.zeros(len(lengths), np.intp), np.array(lengths)
        if caps is None:
            last = order.cut(min(size, n), by_weight=False)
        else:
            end = int(order.cut(1.0 - _ROUNDING, by_weight=True).sum())
            first = order.cut(max(0, end - size // 2), by_weight=False)
            last = order.cut(min(n, max(end + size // 2, end + 2)), by_weight=False)
        columns.append(list(zip(first.tolist(), last.tolist(), strict=True)))
    ends = list(zip(*columns, strict=True))
    kept = local_numbers(keep, points[0].offsets)
    chosen = stored(applied(_several, *points).tasks(_chosen, [ends, kept]))
    inside = fetched(on_each(_inside, [chosen]))
    offsets = points[0].offsets
    numbers = np.concatenate([part + offset for part, offset in zip(inside, offsets[:-1], strict=True)])
    return numbers, BlockVector.of(on_each(_above, [chosen]), lengths, np.bool_)


@dataclass(frozen=True)
class _View:
    """What a block says of parts of its open rows: the largest and the smallest value of each, and its amount."""

    starts: Floats
    ends: Floats
    amounts: Floats


def _worth_asking(views: list[_View], target: float) -> Floats:
    """Values in falling order among which the cut must be."""
    starts, ends, amounts = map(np.concatenate, zip(*((v.starts, v.ends, v.amounts) for v in views), strict=True))
    by_end, by_start = np.argsort(-ends, kind="stable"), np.argsort(-starts, kind="stable")
    # up to the smallest value of whole parts that reach the target, and not beyond the largest that may be before it
    surely = int(np.searchsorted(np.cumsum(amounts[by_end]), target))
    low = ends[by_end[min(surely, len(ends) - 1)]]
    perhaps = int(np.searchsorted(np.cumsum(amounts[by_start]), target))
    high = starts[by_start[min(perhaps, len(starts) - 1)]]
    values = np.unique(np.concatenate([starts, ends, [low, high]]))[::-1]
    values = values[(values >= low) & (values <= high)]
    asked: Floats = values[np.unique(np.linspace(0, len(values) - 1, _ASKED).astype(int))]
    return asked


def _sorted(scores: Floats, weights: Any) -> Sorted:
    if np.ndim(weights) == 0:
        return Sorted(np.sort(-scores), float(weights))
    if not len(weights) or weights.min() == weights.max():
        return Sorted(np.sort(-scores), float(weights[0]) if len(weights) else 1.0)
    order = np.argsort(-scores, kind="stable")
    return Sorted(-scores[order], np.concatenate([[0.0], np.cumsum(weights[order])]))


def _itself(value: Any) -> Any:
    return value


def _several(*pieces: Any) -> tuple[Any, ...]:
    return pieces


def _view(block: Sorted, low: float | None, high: float | None, by_weight: bool) -> _View:
    first, last = block.open_rows(low, high)
    places = np.unique(np.linspace(first, last, _PLACES + 1).astype(np.intp))
    starts, ends = -block.negated[places[:-1]], -block.negated[places[1:] - 1]
    return _View(starts, ends, np.diff(block.amounts(places, by_weight)))


def _amounts_at(block: Sorted, values: Floats, by_weight: bool) -> Floats:
    places = np.array([block.n_above(values), block.n_from(values)])
    return np.concatenate([places, block.amounts(places, by_weight)])


def _open_rows(block: Sorted, low: float | None, high: float | None, by_weight: bool) -> tuple[int, Floats, Floats]:
    first, last = block.open_rows(low, high)
    return first, -block.negated[first:last], np.diff(block.amounts(np.arange(first, last + 1), by_weight))


def _n_of_equal(block: Sorted, rest: float, value: float, by_weight: bool) -> int:
    first, last = int(block.n_above(value)), int(block.n_from(value))
    if np.isinf(rest):
        return last if rest > 0 else first
    amounts = block.amounts(np.arange(first, last + 1), by_weight)
    return first + min(int(np.searchsorted(amounts - amounts[0], rest)), last - first)


def _first_sums(block: Sorted, count: int) -> tuple[float, float, float]:
    values, weights = -block.negated[:count], np.diff(block.amounts(np.arange(count + 1), True))
    return float(weights.sum()), float(weights @ values), float(values[-1]) if count else np.inf


def _last_of(block: Sorted, count: int) -> float:
    return -float(block.negated[count - 1]) if count else np.inf


def _chosen(scores: tuple[Floats, ...], ends: tuple[tuple[int, int], ...], kept: Rows) -> tuple[Rows, Mask]:
    inside = np.zeros(len(scores[0]), dtype=bool)
    inside[kept] = True
    masks = []
    for values, (first, last) in zip(scores, ends, strict=True):
        order = np.argsort(-values, kind="stable")
        inside[order[first:last]] = True
        above = np.zeros(len(values), dtype=bool)
        above[order[:first]] = True
        masks.append(above)
    everywhere = np.logical_and.reduce(masks)
    inside |= np.logical_or.reduce(masks) & ~everywhere
    return np.flatnonzero(inside), everywhere & ~inside


def _inside(chosen: tuple[Rows, Mask]) -> Rows:
    return chosen[0]


def _above(chosen: tuple[Rows, Mask]) -> Mask:
    return chosen[1]
