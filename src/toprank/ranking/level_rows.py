"""The rows of an ordinal metric: scores, levels and weights, in rising order of the scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats, is_dask
from toprank.ranking.tie_runs import label_column, scores_and_weights

Found = TypeVar("Found")
LevelsOf = Callable[[NDArray[Any], Any], tuple[NDArray[Any], NDArray[np.intp]]]
"""Gives the levels from worst to best, and the level number of each of some labels; the levels may be known."""


@dataclass(frozen=True)
class LevelPart:
    """Rows of a part of the list, in rising order of the score.

    The first `n_below` stand for all rows of a level that are below the part.
    """

    score: NDArray[Any]
    level: NDArray[np.intp]
    weight: Floats
    n_below: int = 0


@dataclass(frozen=True)
class LevelRows:
    """Validated rows with positive weight, which are a list in one or several parts."""

    levels: NDArray[Any]
    masses: Floats
    """The weight of all rows of each level."""
    parts: list[Any]
    bands: list[Any] = field(default_factory=list)
    """Where a level is a band of labels, the rows of each band, whose levels are the labels in it."""

    def over_bands(self, function: Callable[..., Found]) -> list[Found]:
        """What a function makes of each band."""
        return [function(band) for band in self.bands]

    def over_parts(self, function: Callable[..., Found], *arguments: Any) -> list[Found]:
        """What a function makes of each part of the list."""
        return [function(part, *arguments) for part in self.parts]


def level_rows(
    y_true: Any, y_score: Any, sample_weight: Any, levels_of: LevelsOf, known: bool = False, by_order: bool = False
) -> LevelRows:
    """Validate the input of an ordinal metric, of Dask arrays in blocks.

    `known` says that `levels_of` knows the levels without the labels, and `by_order` that all of them are compared in
    the order of the labels, so that bands of these may take their place where they are very many.
    """
    if is_dask(y_true) or is_dask(y_score):
        from toprank.ranking.block_levels import block_level_rows

        return block_level_rows(y_true, y_score, sample_weight, levels_of, known, by_order)
    y = label_column(y_true, "y_true")
    score, weight = scores_and_weights(y, y_score, sample_weight)
    if weight is None:
        weight = np.ones(len(score))
    weight = np.ldexp(weight, -np.frexp(weight.max())[1])  # the scale cancels, but products could overflow
    levels, level = levels_of(y, None)
    order = np.argsort(score)
    order = order[weight[order] > 0]
    part = LevelPart(score[order], level[order], weight[order])
    masses = np.bincount(part.level, part.weight, minlength=len(levels))
    return LevelRows(levels, np.asarray(masses, dtype=np.float64), [part])
