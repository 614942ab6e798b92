"""A threshold for a model that changes with every row: from the latest scores, given before learning from the row."""

from __future__ import annotations

import numpy as np

from toprank.arrays import Floats
from toprank.base import balanced_threshold
from toprank.online._rows import Scores


def latest(scores: Scores, label: int) -> Floats:
    """Scores of the later half of the rows of a class, no more than fit in the ring; the model was young before."""
    size, count = scores.recent.shape[1], int(scores.number[label])
    n = min(size, (count + 1) // 2)
    chosen: Floats = scores.recent[label, np.arange(count - n, count) % size]
    return chosen


def threshold(scores: Scores, max_fpr: float | None) -> float:
    """The threshold for a false positive rate, or for the least balanced error; 0 as long as a class is missing."""
    negatives, positives = latest(scores, 0), latest(scores, 1)
    if max_fpr is not None:
        return threshold_at(negatives, max_fpr) if negatives.size else 0.0
    if not (negatives.size and positives.size):
        return 0.0
    return balanced_threshold(np.concatenate([negatives, positives]), np.arange(-negatives.size, positives.size) >= 0)


def threshold_at(negatives: Floats, max_fpr: float) -> float:
    """The ⌈(1 − max_fpr)(n + 1)⌉-th smallest of n scores, or the largest if n is too small for that.

    If the next negative is exchangeable with these n, its score is above the threshold with probability max_fpr at
    most, provided that n + 1 ≥ 1/max_fpr.
    """
    n = negatives.size
    rank = int(np.ceil((1.0 - max_fpr) * (n + 1) * (1.0 - 1e-12)))
    return float(np.partition(negatives, min(max(rank, 1), n) - 1)[min(max(rank, 1), n) - 1])
