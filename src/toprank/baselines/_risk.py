"""Risks of the scores of two classes: their values, and slopes that do not depend on the order of rows that tie."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toprank.arrays import Floats, Mask, Rows


class RiskValue(NamedTuple):
    """A risk at given scores, and a subgradient by the scores of all rows."""

    value: float
    gradient: Floats


class TwoClassRisk:
    """Base of the risks: rows of two classes, with weights of sum one in each."""

    def __init__(self, positive: Mask, weights: Floats) -> None:
        self.positives, self.negatives = np.flatnonzero(positive), np.flatnonzero(~positive)
        self.n_rows = len(positive)
        self.positive_share = weights[self.positives] / weights[self.positives].sum()
        self.negative_weights = weights[self.negatives]

    def combined(self, value: float, of_positives: Floats, of_negatives: Floats) -> RiskValue:
        """The risk with slopes of the rows of each class, in the order of their numbers."""
        slopes = np.zeros(self.n_rows)
        slopes[self.positives], slopes[self.negatives] = of_positives, of_negatives
        return RiskValue(value, slopes)


def descending(scores: Floats) -> Rows:
    """Places of the scores from the largest to the smallest."""
    return np.argsort(-scores, kind="stable")


def shared_by_ties(slopes: Floats, scores: Floats, weights: Floats) -> Floats:
    """Slopes of sorted scores, shared by weight among rows of the same score: the mean over all orders of them."""
    first = np.flatnonzero(np.append(True, np.diff(scores) != 0))
    run = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(scores))))
    return np.asarray(np.add.reduceat(slopes, first)[run] * weights / np.add.reduceat(weights, first)[run])


def sums_before(places: Rows, terms: Floats) -> Floats:
    """Sums of the terms before each place."""
    return np.append(0.0, np.cumsum(terms))[places]


def counts_behind(places: Rows, weights: Floats, n: int) -> Floats:
    """For each of n terms the weights of those whose place is behind it."""
    ends = np.bincount(places, weights, n + 1)
    return np.asarray(ends.sum() - np.cumsum(ends)[:n], dtype=np.float64)
