"""The rows of an ordinal metric in blocks: parts of the list by score, and how much of each level is below them.

Labels may be so many that the weight of each below each part would be as much as the rows. Where all are compared in
their order, they are then divided into bands: pairs of two bands are counted with bands for levels, and the rows of a
band are put together in one place, for the pairs in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats
from toprank.exceptions import InputError
from toprank.matrices.block_tasks import Piece, added_up, fetched, on_each, stored
from toprank.matrices.dask_columns import distinct
from toprank.ranking.block_parts import SortedRuns, ends_of_parts, slices_of_parts, together
from toprank.ranking.block_rows import as_floats, checked_columns, checked_labels, columns_beside
from toprank.ranking.level_rows import Found, LevelPart, LevelRows, LevelsOf
from toprank.ranking.tie_runs import check_weights, no_rows

# Labels beyond which they are divided into bands.
MOST_LEVELS = 10_000


@dataclass(frozen=True)
class BlockLevelRows(LevelRows):
    """Validated rows with positive weight in blocks."""

    parts: list[Piece]

    def over_parts(self, function: Callable[..., Found], *arguments: Any) -> list[Found]:
        """What a function makes of each part of the list, beside the part."""
        return fetched(on_each(function, [self.parts], *arguments))

    def over_bands(self, function: Callable[..., Found]) -> list[Found]:
        """What a function makes of each band, beside it."""
        return fetched(on_each(function, [self.bands]))


def block_level_rows(
    y_true: Any, y_score: Any, sample_weight: Any, levels_of: LevelsOf, known: bool, by_order: bool
) -> BlockLevelRows:
    """Validate the input of an ordinal metric, each block beside its rows; an error names the block."""
    columns = columns_beside(y_true, y_score, (sample_weight, "sample_weight"))
    found = distinct(columns[0], MOST_LEVELS + 1, checked_labels)
    if not len(found):
        raise no_rows()
    by_label = None
    if len(found) > MOST_LEVELS and not known:
        if not by_order or found.dtype.kind not in "fiu":
            raise InputError.saying(
                "y_true has more than {n:,} different labels: of Dask arrays these are numbers that "
                "graph='full' compares in their order, or levels that labels= lists; name them, or round the labels",
                n=MOST_LEVELS,
            )
        by_label = stored(on_each(_sorted_by_label, columns))
        ends = ends_of_parts(by_label)
        levels_of = partial(_bands_of, ends[::-1])
    levels, _ = levels_of(found, None)
    runs = stored(on_each(_sorted, columns, levels_of, levels))
    sums, largest = np.array(fetched(on_each(_sum_and_largest, [runs]))).T
    check_weights(float(sums.sum()), float(largest.max()))
    shift = -int(np.frexp(largest.max())[1])  # the scale cancels, but products could overflow
    bands = [] if by_label is None else on_each(_band, slices_of_parts(by_label, ends), shift)
    ends = ends_of_parts(runs)
    masses = np.asarray(added_up(on_each(_masses, [runs], ends, shift, len(levels))))
    below = np.cumsum(masses[::-1], axis=0)[::-1] - masses
    parts = on_each(_part, [*slices_of_parts(runs, ends), list(below)], shift)
    return BlockLevelRows(levels, masses.sum(axis=0), parts, bands)


def _sorted_by_label(labels: Any, scores: Any, weights: Any) -> SortedRuns:
    """The rows of a block that have a weight, in falling order of their labels."""
    labels, score, weight = checked_columns(labels, scores, weights)
    labels = as_floats(labels, "labels")
    order = np.argsort(labels)[::-1]
    order = order[weight[order] > 0]
    return SortedRuns(labels[order], (score[order].astype(np.float64), weight[order]))


def _bands_of(lowest: Floats, labels: NDArray[Any], bands: Any) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Numbers of the bands, and that of the band of each label; `lowest` are their smallest labels, rising."""
    return np.arange(len(lowest)), np.searchsorted(lowest, labels.astype(np.float64), side="right") - 1


def _band(*runs_and_shift: Any) -> LevelPart:
    """The rows of a band out of all blocks."""
    *runs, shift = runs_and_shift
    whole = together(tuple(runs))
    level, (score, weight) = np.unique(whole.score, return_inverse=True)[1], whole.columns
    order = np.argsort(score, kind="stable")
    return LevelPart(score[order], level[order], np.ldexp(weight[order], shift))


def _sorted(labels: Any, scores: Any, weights: Any, levels_of: LevelsOf, levels: NDArray[Any]) -> SortedRuns:
    """The rows of a block that have a weight, those of the same score and level added up."""
    labels, score, weight = checked_columns(labels, scores, weights)
    level, kept = levels_of(labels, levels)[1], weight > 0
    score, level, weight = score[kept].astype(np.float64), level[kept], weight[kept]
    order = np.lexsort((level, score))[::-1]
    score, level, weight = score[order], level[order], weight[order]
    differs = (score[1:] != score[:-1]) | (level[1:] != level[:-1])
    starts = np.flatnonzero(np.append(True, differs)) if len(score) else np.zeros(0, np.intp)
    sums = np.add.reduceat(weight, starts) if len(starts) else weight
    return SortedRuns(score[starts], (level[starts], sums))


def _sum_and_largest(runs: SortedRuns) -> tuple[float, float]:
    with np.errstate(over="ignore"):
        return float(runs.columns[1].sum()), float(runs.columns[1].max(initial=0.0))


def _masses(runs: SortedRuns, ends: Floats, shift: int, n_levels: int) -> Floats:
    """The weight of each level in each part."""
    bounds, (level, weight) = runs.bounds(ends), runs.columns
    part = np.repeat(np.arange(len(ends)), np.diff(bounds[:-1]))
    sums = np.bincount(part * n_levels + level, np.ldexp(weight, shift), len(ends) * n_levels)
    return np.asarray(sums, dtype=np.float64).reshape(len(ends), n_levels)


def _part(*runs_and_below: Any) -> LevelPart:
    """A part out of the runs of all blocks, after the rows below it."""
    *runs, below, shift = runs_and_below
    whole, there = together(tuple(runs)), np.flatnonzero(below)
    order = np.argsort(whole.score)
    level, weight = (column[order] for column in whole.columns)
    return LevelPart(
        np.append(np.full(len(there), -np.inf), whole.score[order]),
        np.append(there, level),
        np.append(below[there], np.ldexp(weight, shift)),
        len(there),
    )
