"""Parts by score of a list whose rows are in blocks: every block sends each part its runs of equal scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats
from toprank.matrices.block_tasks import Piece, Pieces, fetched, on_each

# Runs of a part that is put together in one place, about, and of a block from one score that it names to the next.
PART, STEP = 2**21, 2**13


@dataclass(frozen=True)
class SortedRuns:
    """Columns of numbers beside scores, in falling order of the scores."""

    score: Floats
    columns: tuple[NDArray[Any], ...]

    def __getitem__(self, runs: slice) -> SortedRuns:
        return SortedRuns(self.score[runs], tuple(column[runs] for column in self.columns))

    def n_from(self, score: Any) -> Any:
        """How many runs have a score or a larger one."""
        return len(self.score) - np.searchsorted(self.score[::-1], score, side="left")

    def bounds(self, ends: Floats) -> NDArray[np.intp]:
        """Where parts begin that end with some scores, where the last one ends, and how many runs there are."""
        return np.concatenate([[0], self.n_from(ends), [len(self.score)]]).astype(np.intp)


def ends_of_parts(runs: Pieces, lowest: float | None = None) -> Floats:
    """The smallest scores of the parts, the best part first; below the last one there is nothing that is needed."""
    named = np.concatenate(fetched(on_each(_named, [runs], lowest)))
    values = np.unique(named)[::-1]
    n_parts = min(-(-len(named) * STEP // PART), len(values))
    ends = values[np.arange(1, n_parts + 1) * len(values) // n_parts - 1]
    return ends if lowest is None else np.append(ends[ends > lowest], lowest)


def slices_of_parts(runs: Pieces, ends: Floats) -> list[list[Piece]]:
    """Of each block its runs of each part."""
    highs = [np.inf, *ends[:-1].tolist()]
    return [on_each(_runs_between, [[block] * len(ends), highs, ends.tolist()]) for block in runs]


def together(parts: tuple[SortedRuns, ...]) -> SortedRuns:
    """The runs of a part from all blocks, not in order any more."""
    columns = zip(*(part.columns for part in parts), strict=True)
    return SortedRuns(np.concatenate([part.score for part in parts]), tuple(map(np.concatenate, columns)))


def _named(runs: SortedRuns, lowest: float | None) -> Floats:
    """Some scores, evenly spread, with the smallest one."""
    some = runs.score if lowest is None else runs.score[: runs.n_from(lowest)]
    return np.append(some[STEP - 1 :: STEP], some[-1:])


def _runs_between(runs: SortedRuns, above: float, lowest: float) -> SortedRuns:
    return runs[slice(int(runs.n_from(above)) if np.isfinite(above) else 0, int(runs.n_from(lowest)))]
