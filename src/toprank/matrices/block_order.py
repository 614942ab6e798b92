"""The order of a vector in pieces, as far as one asks for it: what is among the largest, by number or by weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.arrays import Floats, Rows
from toprank.matrices.block_selection import Search, borders, find, within
from toprank.matrices.block_vector import BlockVector


@dataclass(frozen=True)
class Order:
    """The order of a vector whose rows have weights, each 1 if nothing is said."""

    scores: BlockVector
    weights: Any

    @classmethod
    def of(cls, scores: BlockVector, weights: BlockVector | None) -> Order:
        """The order of some scores."""
        return cls(scores, 1.0 if weights is None else weights)

    def cut(self, count: int) -> Rows:
        """How many of each block are among the largest; equal ones are taken in the order of their numbers."""
        if count <= 0:
            return np.zeros(len(self.scores.lengths), dtype=np.intp)
        (end,) = find([Search(self.scores, 1.0, count, by_weight=False)])
        (border,) = borders([self.scores], [end], [count])
        lines = [border.of_block(b) for b in range(len(self.scores.lengths))]
        return np.array(self.scores.on_blocks(_n_within, [lines]), dtype=np.intp)

    def first_beyond(self, weight: float) -> float:
        """The largest value up to which, it included, there is more than so much weight."""
        return find([Search(self.scores, self.weights, float(np.nextafter(weight, np.inf)))])[0].value


def _n_within(values: Floats, line: tuple[float, int]) -> int:
    return int(np.count_nonzero(within(values, line)))
