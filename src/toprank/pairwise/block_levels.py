"""Dask arrays as rows of several levels: what a ranker of preferences learns from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats
from toprank.base import check_largest
from toprank.exceptions import InputError
from toprank.matrices.block_input import GivenRows
from toprank.matrices.block_matrix import BlockMatrix
from toprank.matrices.block_vector import kept, sum_of
from toprank.matrices.dask_columns import distinct
from toprank.metrics.pairwise import levels_of
from toprank.pairwise.graph import MAX_LEVELS, Ints, Preferences, level_masses

LevelsAmong = Callable[[NDArray[Any]], tuple[NDArray[Any], Any, Floats]]
"""Gives the levels among some labels, from worst to best, the level of each, and the strengths of the preferences."""


@dataclass(frozen=True)
class BlockPreferences(Preferences):
    """Preferences between rows in blocks; levels and weights are in pieces."""

    level: Any
    weights: Any

    @property
    def masses(self) -> Floats:
        """The sum of the weights of each level."""
        return sum_of(level_masses, self.level, self.weights, len(self.strengths))


def rows_in_levels(
    ranker: Any, X: Any, y: Any, sample_weight: Any, levels_among: LevelsAmong
) -> tuple[BlockMatrix, BlockPreferences]:
    """Check the blocks, in one pass for the labels and one for all, and set `classes_` of the ranker."""
    given = GivenRows.of(ranker, X, y, sample_weight)
    # a block sends at most one label more than there may be levels
    labels = distinct(given.labels, MAX_LEVELS + 1)
    if not len(labels):
        raise InputError.saying("X has no rows")
    ranker.classes_, _, strengths = levels_among(labels)
    rows = given.checked(partial(_level_numbers, levels=ranker.classes_), np.int64)
    check_largest(rows.facts.largest)
    # the scale of the weights cancels, but products could overflow
    weights = kept(np.ldexp(rows.weights, -int(np.frexp(rows.facts.weights[1])[1])))
    return rows.X, BlockPreferences(rows.codes, strengths, weights, np.zeros((0, 2), np.int64), np.zeros(0))


def _level_numbers(labels: NDArray[Any], levels: NDArray[Any]) -> Ints:
    return np.ascontiguousarray(levels_of(labels, levels)[1], dtype=np.int64)
