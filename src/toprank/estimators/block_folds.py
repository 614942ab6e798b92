"""Folds of rows in blocks, and the few of their rows that decide on the threshold which spends a budget.

Rows are dealt by their numbers: five rows of a class that follow each other are in five folds, at random. So blocks do
not matter, and a class of five rows fills all folds.

What `toprank.estimators.budget_threshold` makes of the scores of all rows, it makes here of those near the threshold:

1. Each block says how much it has between some values, of each fold, on the scales of both models; the tables are added
   up on their way.
2. Each part of the scale of a fold has a lowest and a highest image on the scale of the whole. The threshold of the
   lowest ones and that of the highest ones are bounds of the threshold.
3. What is above the one or below the other at all events enters by its weight alone. The rest is divided again, or, if
   that are few rows, fetched; equal values count as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.estimators.budget_threshold import FOLDS, ROUNDING, Scales, smallest_threshold, spread
from toprank.matrices.block_draw import random_of_places
from toprank.matrices.block_selection import Table, table_of
from toprank.matrices.block_tasks import combined, fetched, on_each, stored
from toprank.matrices.block_vector import BlockVector, applied
from toprank.solvers.block_problem import BlockProblem

# Values at which a window is divided, and the number of rows of all windows that are fetched.
_EDGES, _FEW = 64, 5000
# Divisions after which the values of a window are equal but for rounding.
_MOST_ROUNDS = 40

Window = tuple[float, float]


class BlockFolds:
    """Folds of the rows of a problem, which have given scores by the model of all rows."""

    def __init__(self, problem: Any, scores: BlockVector) -> None:
        self.problem: BlockProblem = problem
        self.of_whole = scores.astype(np.float64)[problem.threshold_rows].stored()
        over_all, positive = problem.formulation.over == "all", problem.positive
        first_positive = np.concatenate([[0], np.cumsum(positive.n_true)])[:-1]
        columns = [positive.pieces, (positive.offsets[:-1] - first_positive).tolist(), first_positive.tolist()]
        self.numbers = BlockVector.of(stored(on_each(_dealt, columns, over_all)), positive.lengths, np.int8)
        sizes = sum(positive.n_true), len(positive) - sum(positive.n_true)
        self.are_filled = min(sizes if over_all else sizes[1:]) >= FOLDS

    def left(self, number: int) -> Any:
        """The weights of all rows without those of a fold."""
        return np.where(self.numbers == number, 0.0, self.problem.weights)

    def scales(self, by_parts: Sequence[BlockVector], share: float) -> list[Scales]:
        """The rows next to the threshold, fold by fold."""
        rows, weights = self.problem.threshold_rows, self.problem.threshold_weights
        numbers, parts = self.numbers[rows].stored(), [scores[rows].stored() for scores in by_parts]
        columns = [weights.pieces, numbers.pieces, self.of_whole.pieces, _side_by_side(parts)]
        ratios = []
        for number, of_part in enumerate(parts):
            left = applied(_left, weights, numbers, number).stored()
            ratios.append(spread(self.of_whole, left) / (spread(of_part, left) or 1.0))
        return near_threshold(columns, ratios, share)


def near_threshold(columns: Sequence[Sequence[Any]], ratios: Sequence[float], share: float) -> list[Scales]:
    """Steps 1 to 3; columns are pieces: weights, numbers of folds, scores by the whole, and lists of those by parts."""
    folds, low, high = [_Narrowing() for _ in ratios], -np.inf, np.inf
    for _ in range(_MOST_ROUNDS):
        questions = tuple(fold.question() for fold in folds)
        for fold, tables in zip(folds, combined(on_each(_tables, columns, questions), _added), strict=True):
            fold.learn(*tables)
        low = max(low, smallest_threshold(*_joined([fold.bounds()[0] for fold in folds], folds), share))
        high = min(high, smallest_threshold(*_joined([fold.bounds()[1] for fold in folds], folds), share))
        windows = _windows(folds)
        for fold in folds:
            fold.narrow(low, high)
        if sum(fold.n_rows for fold in folds) <= _FEW or _windows(folds) == windows:
            break
    parts = fetched(on_each(_distinct, columns, _windows(folds)))
    return [
        fold.scales([part[number] for part in parts], ratio)
        for number, (fold, ratio) in enumerate(zip(folds, ratios, strict=True))
    ]


@dataclass
class _Narrowing:
    """Of one fold, the windows on the scales of both models in which rows matter, and the weights outside of them."""

    part: Window = (-np.inf, np.inf)
    whole: Window = (-np.inf, np.inf)
    part_above: float = 0.0
    whole_above: float = 0.0
    held_out_above: float = 0.0
    part_below: float = 0.0
    held_out_below: float = 0.0
    n_rows: int = 0

    def question(self) -> tuple[Any, Any]:
        """Values between which the rows of both windows are counted, and the largest of each."""
        return _edges(self.part), _edges(self.whole)

    def learn(self, left: Table, held_out: Table, whole: Table) -> None:
        """Take in what all blocks have between the values: rows left and held out by the part, rows left by the whole.

        `down_to` is the weight from above down to each part of the window, and at last that above it; `places` are
        those of the whole, from above, to which it goes.
        """
        self.left, self.held_out, self.of_whole = left, held_out, whole
        amounts = np.append(left.amounts[1], self.part_above)
        self.down_to = np.cumsum(amounts[::-1])[::-1]
        self.reached = np.cumsum(np.concatenate([[self.whole_above], whole.amounts[1][::-1]]))
        self.places = np.searchsorted(self.reached, self.down_to * (1 - ROUNDING), side="left")
        used = np.where(left.amounts[1] > 0, np.arange(len(left.amounts[1])), -1)
        self.next_below = np.concatenate([[-1], np.maximum.accumulate(used)[:-1]])

    def bounds(self) -> tuple[Floats, Floats]:
        """Step 2: the lowest and the highest image of the rows of each part.

        A row is between the rows left next to it, of which those below may be as low as the next part with such.
        """
        lowest = np.concatenate([[self.whole[1]], self.of_whole.lowest[::-1], [-np.inf]])
        highest = np.concatenate([[np.inf], self.of_whole.highest[::-1], [self.whole[0]]])
        low = np.where(self.next_below >= 0, lowest[self.places[self.next_below]], -np.inf)
        if self.part_below == 0:  # below all rows left, the image is that of the lowest
            low = np.where(self.next_below >= 0, low, lowest[self.places[0]])
        high = np.where(self.down_to[1:] > 0, highest[self.places[1:]], np.inf)
        return low, high

    def narrow(self, low: float, high: float) -> None:
        """Step 3: keep the parts whose images may be between the bounds, and one with rows left to each side."""
        lowest, highest = self.bounds()
        kept = np.flatnonzero((highest >= low) & (lowest <= high))
        if not len(kept):
            kept = np.array([len(lowest) - 1 if highest[-1] < low else 0])
        first, last = max(int(self.next_below[kept[0]]), 0), int(kept[-1])
        above = np.flatnonzero(self.left.amounts[1][last + 1 :])
        last = last + 1 + int(above[0]) if len(above) else len(lowest) - 1
        self.part_above = float(self.down_to[last + 1])
        self.part_below += float(self.left.amounts[1][:first].sum())
        self.held_out_above += float(self.held_out.amounts[1][last + 1 :].sum())
        self.held_out_below += float(self.held_out.amounts[1][:first].sum())
        self.part, n_of_part = _window(self.left, slice(first, last + 1))
        self.n_rows = n_of_part + self._narrow_whole(int(self.places[last + 1]), int(self.places[first]))

    def _narrow_whole(self, highest: int, lowest: int) -> int:
        """Keep the places of the whole from the highest to the lowest image; returns how many rows these are."""
        n = len(self.of_whole.lowest)
        highest, lowest = np.clip([highest, lowest], 1, n).tolist()
        self.whole_above = float(self.reached[highest - 1])
        self.whole, n_rows = _window(self.of_whole, slice(n - lowest, n - highest + 1))
        return n_rows

    def scales(self, blocks: Sequence[Any], ratio: float) -> Scales:
        """The fold by the distinct values in its windows, of all blocks."""
        values, left, held_out, of_whole, weights = map(np.concatenate, zip(*blocks, strict=True))
        rows = values[held_out > 0], held_out[held_out > 0], values[left > 0], left[left > 0]
        whole = of_whole[weights > 0], weights[weights > 0]
        outside = self.part_above, self.whole_above, self.held_out_above, self.held_out_below
        return Scales(*rows, *whole, ratio, *outside)


def _edges(window: Window) -> tuple[Floats, float]:
    """Values that divide a window, and its largest one."""
    low, high = window
    if np.isinf(low):
        return np.array([-np.inf]), np.inf
    return (np.linspace(low, high, _EDGES) if low < high else np.array([low, np.nextafter(low, np.inf)])), high


def _windows(folds: Sequence[_Narrowing]) -> tuple[tuple[Window, Window], ...]:
    return tuple((fold.part, fold.whole) for fold in folds)


def _window(table: Table, parts: slice) -> tuple[Window, int]:
    """The smallest and the largest value in some parts of a table, and the number of rows there."""
    window = float(table.lowest[parts].min()), float(table.highest[parts].max())
    return window, int(table.amounts[0][parts].sum())


def _joined(values: Sequence[Floats], folds: Sequence[_Narrowing]) -> tuple[Floats, Floats]:
    """Values of the parts of all folds with the weights of the rows held out, and those outside of the windows."""
    weights = [fold.held_out.amounts[1] for fold in folds]
    outside = [[fold.held_out_above for fold in folds], [fold.held_out_below for fold in folds]]
    ends = np.repeat([np.inf, -np.inf], len(folds))
    scores, weight = np.concatenate([*values, ends]), np.concatenate([*weights, *outside])
    return scores[weight > 0], weight[weight > 0]


def _dealt(positive: Mask, first_negative: int, first_positive: int, over_all: bool) -> Any:
    """The fold of each row; -1 of a row that the budget does not count."""
    folds = np.full(len(positive), -1, np.int8)
    classes = [(~positive, first_negative), (positive, first_positive)][: 1 + over_all]
    for seed, (members, first) in enumerate(classes):
        n, start = int(np.count_nonzero(members)), first // FOLDS * FOLDS
        groups = -(-(first + n - start) // FOLDS)
        order = np.argsort(random_of_places(start, groups * FOLDS, seed).reshape(groups, FOLDS), axis=1)
        folds[members] = order.ravel()[first - start :][:n]
    return folds


def _side_by_side(vectors: Sequence[BlockVector]) -> list[Any]:
    pieces = [vector.pieces for vector in vectors]
    return [list(of_block) for of_block in zip(*pieces, strict=True)]


def _left(weights: Floats, numbers: Rows, number: int) -> Floats:
    return np.where(numbers == number, 0.0, weights)


def _tables(weights: Floats, numbers: Rows, of_whole: Floats, of_parts: list[Floats], questions: Any) -> list[Any]:
    """Step 1, in one block: for each fold what is left and held out by the part, and what is left by the whole."""
    found = []
    for number, (of_part, (part, whole)) in enumerate(zip(of_parts, questions, strict=True)):
        left = _left(weights, numbers, number)
        of_fold = [table_of(of_part, some, *part) for some in (left, weights - left)]
        found.append([*of_fold, table_of(of_whole, left, *whole)])
    return found


def _added(some: list[Any], others: list[Any]) -> list[Any]:
    return [[one + other for one, other in zip(*pair, strict=True)] for pair in zip(some, others, strict=True)]


def _distinct(weights: Floats, numbers: Rows, of_whole: Floats, of_parts: list[Floats], windows: Any) -> list[Any]:
    """In one block, for each fold the distinct values in both windows and their weights, left and held out."""
    found = []
    for number, (of_part, (part, whole)) in enumerate(zip(of_parts, windows, strict=True)):
        left = _left(weights, numbers, number)
        by_part, by_whole = _runs(of_part, part, left, weights - left), _runs(of_whole, whole, left)
        found.append((*by_part, *by_whole))
    return found


def _runs(values: Floats, window: Window, *weights: Floats) -> list[Any]:
    rows = np.flatnonzero((values >= window[0]) & (values <= window[1]))
    distinct, inverse = np.unique(values[rows], return_inverse=True)
    return [distinct, *(np.bincount(inverse, some[rows], len(distinct)) for some in weights)]
