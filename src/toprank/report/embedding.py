"""A ranked list as a few short strings, from which the page counts exactly at every budget.

A list is a sequence of tie runs, and most of them are a single negative. Between two other runs only false positives
grow, one by one, so it is enough to store how many single negatives come before each other run and what that run holds.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.ranking.ranked_list import RankedList

# Of so many of the best distinct scores each is stored, so that thresholds are exact; of the others so many in all.
EXACT_SCORES = 100_000
OTHER_SCORES = 2_000
# The page unfolds two counts of 4 bytes for each distinct score.
MOST_ROWS = 20_000_000


def embed(ranked: RankedList) -> dict[str, Any]:
    """What the page needs to count in a list of rows of weight 1: the runs, the scores, and the number of runs.

    ``runs`` are numbers in groups of 7 bits, see `encode_runs`; ``scores`` those of the runs 0, 1, …, ``exact`` − 1,
    then of each ``step``-th, then of the last one, little-endian and ``bytes`` wide; both in base64.
    """
    if ranked.total > MOST_ROWS:
        raise ValueError(
            f"the report is made for at most {MOST_ROWS} rows, got {ranked.total:.0f}; give a random sample of the rows"
        )
    stored, step = stored_runs(len(ranked.scores))
    kind = "<f4" if ranked.scores.dtype == np.float32 else "<f8"
    return {
        "runs": _text(encode_runs(ranked.runs.positives, ranked.runs.negatives)),
        "n_runs": len(ranked.scores),
        "scores": _text(ranked.scores[stored].astype(kind)),
        "bytes": int(kind[-1]),
        "exact": min(EXACT_SCORES, len(ranked.scores)),
        "step": step,
    }


def stored_runs(n_runs: int) -> tuple[NDArray[np.intp], int]:
    """Numbers of the runs whose score is stored, and the step of those after the exact ones."""
    step = max(1, -(-(n_runs - EXACT_SCORES) // OTHER_SCORES))
    later = np.arange(EXACT_SCORES, n_runs, step)
    if n_runs > EXACT_SCORES and later[-1] != n_runs - 1:
        later = np.append(later, n_runs - 1)
    return np.concatenate([np.arange(min(EXACT_SCORES, n_runs)), later]), step


def encode_runs(positives: NDArray[Any], negatives: NDArray[Any]) -> NDArray[np.uint8]:
    """The counts of all runs as bytes.

    For each run that is not a single negative: 2g + 1 if it is a single positive, else 2g, its positives and its
    negatives, where g single negatives come right before it. At the end the number of single negatives that are left.
    """
    events = np.flatnonzero((positives != 0) | (negatives != 1))
    gaps = np.diff(events, prepend=-1) - 1
    single = (positives[events] == 1) & (negatives[events] == 0)
    numbers = np.column_stack([2 * gaps + single, positives[events], negatives[events]]).astype(np.int64)
    told = np.column_stack([np.ones_like(single), ~single, ~single])
    left = len(positives) - 1 - (events[-1] if len(events) else -1)
    return _seven_bits(np.append(numbers[told], left))


def _seven_bits(numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Each number in groups of 7 bits, the lowest first; the highest bit of a byte says that another one follows."""
    groups = numbers[:, None] >> (7 * np.arange(5))
    groups[:, 1:][groups[:, 1:] == 0] = -1  # nothing is left of the number
    follows = np.column_stack([groups[:, 1:] >= 0, np.zeros(len(numbers), dtype=bool)])
    return np.asarray(((groups & 127) | (follows << 7))[groups >= 0], dtype=np.uint8)


def embed_positives(ranked: RankedList, scores: NDArray[Any]) -> str:
    """The number of the run that each positive is in, 4 bytes little-endian, in base64: who is in two lists at once."""
    runs = len(ranked.scores) - 1 - np.searchsorted(ranked.scores[::-1], scores)
    return _text(runs.astype("<u4"))


def _text(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")
