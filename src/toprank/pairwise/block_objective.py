"""The loss over pairs of rows in blocks: boxes on all blocks agree, and only what is known of boxes is sent.

Moments of boxes are sums over rows, so each block takes those of its rows, and they are added up on the way. How boxes
act on each other is worked out here, and the polynomials of the boxes go to the blocks, which evaluate them at their
rows. Scores, and what else is a number for each row, stay where they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.exceptions import InputError
from toprank.matrices.block_tasks import combined
from toprank.matrices.block_vector import BlockVector, applied, sum_of
from toprank.pairwise.block_levels import BlockPreferences
from toprank.pairwise.boxes import Boxes
from toprank.pairwise.objective import LossPoint, PairLoss
from toprank.pairwise.pair_sums import boxes_between

_WIDTH = 1.0
# Boxes up to which empty ones are not left out, as a number of points that in one memory would allow them.
_POINTS = 512 * 32
# Largest number of boxes of all levels together, each of which takes 128 bytes in every message.
MAX_CELLS = 200_000


class BlockPairLoss(PairLoss):
    """The loss of preferences between rows in blocks, by exact sums."""

    def __init__(self, preferences: BlockPreferences) -> None:
        super().__init__(preferences)

    def __call__(self, scores: BlockVector) -> LossPoint:
        """The loss at the scores of all rows."""
        scores = scores.stored()
        sums, smallest, largest = np.array(scores.on_blocks(_sum_and_ends)).T
        mean = float(sums.sum() / len(scores))
        centred, n_levels = scores - mean, len(self.preferences.strengths)
        # a difference is rounded to the nearest number, so that the smallest score stays the smallest
        boxes = BlockBoxes.between(float(smallest.min()) - mean, float(largest.max()) - mean, centred, n_levels)
        return LossPoint(self, centred, boxes)


def _sum_and_ends(scores: Floats) -> tuple[float, float, float]:
    return float(scores.sum()), float(scores.min(initial=np.inf)), float(scores.max(initial=-np.inf))


class BlockBoxes(Boxes):
    """The boxes that points in blocks lie in."""

    @classmethod
    def between(cls, smallest: float, largest: float, points: BlockVector, n_levels: int) -> BlockBoxes:
        """Boxes of all points; where there would be many, the empty ones are left out."""
        positions = boxes_between(smallest, largest, _WIDTH, _POINTS)
        if positions is None:
            # a block sends at most one box more than there may be
            positions = combined(points.tasks(_occupied, (), MAX_CELLS + 1), np.union1d)
        if n_levels * len(positions) > MAX_CELLS:
            raise InputError.saying(
                "the scores lie in {n_boxes:,} intervals of length one, with {n_levels:,} levels too many for rows in "
                "blocks; standardise the features, take a larger {alpha} or fewer levels",
                n_boxes=len(positions),
                n_levels=n_levels,
            )
        return cls(_WIDTH, positions, ())

    def moments(self, points: Any, weights: Any, which: int = 0, rows: Any = None, n_rows: int = 1) -> Floats:
        """Moments of the boxes under weights of the points, added up over the blocks."""
        return sum_of(_moments, points, weights, rows, self.positions, n_rows)

    def values(self, points: Any, polynomials: Floats, which: int = 0, rows: Any = None) -> Any:
        """The polynomials of the boxes at the points, in pieces."""
        return applied(_values, points, rows, self.positions, polynomials)


def _occupied(points: Floats, most: int) -> Floats:
    return np.unique(np.floor(points / _WIDTH))[:most]


def _moments(points: Floats, weights: Floats, rows: Any, positions: Floats, n_rows: int) -> Floats:
    return Boxes.at(_WIDTH, positions, points).moments(points, weights, 0, rows, n_rows)


def _values(points: Floats, rows: Any, positions: Floats, polynomials: Floats) -> Floats:
    return Boxes.at(_WIDTH, positions, points).values(points, polynomials, 0, rows)
