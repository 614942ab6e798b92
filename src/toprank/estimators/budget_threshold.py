"""The threshold that spends the budget, set on scores of models that did not learn from the rows which they score.

The threshold of a formulation is a bound of a quantile, taken at scores that the fit itself has pushed down: the share
of training rows above it says little of the share of those to come. Steps:

1. The rows that the budget counts are dealt to folds, classes apart: rows in one memory by `RowFolds`, rows in blocks
   by `toprank.estimators.block_folds`.
2. A model of the rows outside a fold, started from the solution, scores all rows.
3. Two models have scores of two scales. A score of the one with so many rows above it, of those that both have learned
   from, is taken for the score of the other with as many above it; beyond the largest, for one as many standard
   deviations above.
4. The threshold is the smallest score with at most the share of the budget above it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.estimators.back_ends import BackEnd, Kept
from toprank.log import logger
from toprank.solvers.problem import Solution, without_noise

FOLDS = 5
# Share of a sum of weights that may be rounding.
ROUNDING = 1e-12
# Share of the range of scores, and of their mean distance in it, by which two may differ that a fit has made equal.
_TIED, _OF_DISTANCE = 1e-6, 1e-2


@dataclass(frozen=True)
class Scales:
    """The rows of a fold by the model without it; and by both models the rows that both have learned from.

    Of rows in blocks it has only some, and says how much weight is above these.
    """

    held_out: Floats
    held_out_weights: Floats
    of_part: Floats
    part_weights: Floats
    of_whole: Floats
    whole_weights: Floats
    ratio: float
    """Standard deviation of the scores of the whole, as a multiple of that of the part."""
    part_above: float = 0.0
    whole_above: float = 0.0
    held_out_above: float = 0.0
    held_out_below: float = 0.0


def out_of_fold_threshold(whole: BackEnd, solution: Solution, kept: Kept, share: float) -> float | None:
    """Steps 1 to 4; None where a class that the budget counts has fewer rows than there are folds."""
    # 1. The folds.
    folds = _folds_of(whole, kept)
    if not folds.are_filled:
        return None
    by_parts = []
    for number in range(FOLDS):
        # 2. The model of the other rows.
        by_parts.append(_scores_without(whole, solution, folds.left(number)))
        if whole.task.settings["verbose"]:
            logger().info("threshold: scored fold %d of %d by a model of the others", number + 1, FOLDS)
    # 3. and 4. One scale, and the share of the budget.
    return spending_threshold(folds.scales(by_parts, share), share)


def _folds_of(whole: BackEnd, kept: Kept) -> Any:
    if isinstance(kept.scores, np.ndarray):
        return RowFolds(whole, kept)
    from toprank.estimators.block_folds import BlockFolds

    return BlockFolds(whole.problem, kept.scores)


def spending_threshold(folds: Sequence[Scales], share: float) -> float:
    """Steps 3 and 4."""
    matched = [_matched(fold) for fold in folds]
    outside = [(np.inf, fold.held_out_above) for fold in folds] + [(-np.inf, fold.held_out_below) for fold in folds]
    values, weights = np.array([pair for pair in outside if pair[1] > 0]).reshape(-1, 2).T
    weights = np.concatenate([*(fold.held_out_weights for fold in folds), weights])
    return smallest_threshold(np.concatenate([*matched, values]), weights, share)


def smallest_threshold(scores: Any, weights: Any, share: float) -> float:
    """The smallest score that has at most a share of the weights above it; those of blocks know it themselves."""
    if not isinstance(scores, np.ndarray):
        return float(scores.first_beyond(weights, share * weights.sum() * (1 + ROUNDING)))
    order = np.argsort(-scores, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, share * reached[-1] * (1 + ROUNDING), side="right"))
    return float(scores[order[min(place, len(order) - 1)]])


class RowFolds:
    """Rows in one memory, dealt in the order of their values along a fixed direction.

    It is as good as at random, but the same for the same rows in whatever order. A whole number as weight counts as so
    many rows, so a weight of 2 equals a repeated row.
    """

    def __init__(self, whole: BackEnd, kept: Kept) -> None:
        problem = whole.problem
        self.weights, self.scores = problem.weights, kept.scores.astype(np.float64)
        self.in_folds, place = np.zeros((len(self.scores), FOLDS)), _places(whole.task.X)
        over_all, self.are_filled = problem.formulation.over == "all", True
        for members in map(np.flatnonzero, [~problem.positive, problem.positive][: 1 + over_all]):
            self.in_folds[members] = _dealt(place[members], problem.weights[members])
            self.are_filled &= bool(self.in_folds[members].any(axis=0).all())

    def left(self, number: int) -> Floats:
        """The weights of all rows without those of a fold."""
        of_fold = self.in_folds[:, number]
        return np.where(of_fold > 0, self.weights - of_fold, self.weights)

    def scales(self, by_parts: Sequence[Floats], share: float) -> list[Scales]:
        """All rows that the budget counts, fold by fold."""
        counted, found = self.in_folds.any(axis=1), []
        for number, of_part in enumerate(map(_tied, by_parts)):
            of_fold, left = self.in_folds[:, number], self.left(number)
            held_out, both = of_fold > 0, counted & (left > 0)
            weights = left[both]
            part, whole = (of_part[both], weights), (self.scores[both], weights)
            ratio = spread(*whole) / (spread(*part) or 1.0)
            found.append(Scales(of_part[held_out], of_fold[held_out], *part, *whole, ratio))
        return found


def _tied(scores: Floats) -> Floats:
    """Scores in which those that differ by no more than a fit leaves open are the same.

    Several rows lie at the threshold of a fit, and copies of them may be held out: which is higher says nothing.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    least = min(_TIED, _OF_DISTANCE / len(ordered)) * (ordered[-1] - ordered[0])
    is_first = np.concatenate([[True], np.diff(ordered) > least])
    tied = np.empty_like(scores)
    tied[order] = ordered[is_first][np.cumsum(is_first) - 1]
    return tied


def _places(X: Any) -> Floats:
    """Values of the rows along a direction that is always the same."""
    return np.asarray(X @ np.random.default_rng(0).standard_normal(X.shape[1]).astype(X.dtype), dtype=np.float64)


def _dealt(places: Floats, weights: Floats) -> Floats:
    """The weight of each row in each fold: rows are dealt in the order of their places, forth and back in turn.

    A row of a weight that is no whole number is in one fold, another may be in several.
    """
    order = np.argsort(places, kind="stable")
    units = np.where(weights == np.floor(weights), weights, 1.0)[order]
    ends = np.cumsum(units)
    folds, rounds = np.arange(FOLDS), 2 * FOLDS

    def dealt_before(place: Floats) -> Floats:
        within = (place % rounds)[:, None]
        return 2 * (place // rounds)[:, None] + (within > folds) + (within > rounds - 1 - folds)

    dealt = np.empty((len(places), FOLDS))
    dealt[order] = (dealt_before(ends) - dealt_before(ends - units)) * (weights[order] / units)[:, None]
    return dealt


def _scores_without(whole: BackEnd, solution: Solution, weights: Any) -> Any:
    """The scores of all rows by a model of those with a weight."""
    rows = np.flatnonzero(weights) if isinstance(weights, np.ndarray) else (weights > 0).stored()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of the kernel was said of the whole
        part = whole.part(rows, weights[rows])
        found, _ = part.solve(whole.start_of_part(solution, rows))
        if found.interrupted:
            raise KeyboardInterrupt
        return whole.scores_by(part, without_noise(part.problem, found)).astype(np.float64)


def _matched(fold: Scales) -> Floats:
    """Scores of the rows of a fold on the scale of the whole.

    The i-th largest of the one is the i-th largest of the other, and in between the scale is linear.
    """
    part_order, whole_order = np.argsort(fold.of_part, kind="stable"), np.argsort(-fold.of_whole, kind="stable")
    values, first = np.unique(fold.of_part[part_order], return_index=True)
    from_above = fold.part_above + np.cumsum(fold.part_weights[part_order][::-1])[::-1][first]
    reached = fold.whole_above + np.cumsum(fold.whole_weights[whole_order])
    places = np.searchsorted(reached, from_above * (1 - ROUNDING), side="left")
    images = fold.of_whole[whole_order[np.minimum(places, len(whole_order) - 1)]]
    beyond = np.maximum(fold.held_out - values[-1], 0.0)
    return np.asarray(np.interp(fold.held_out, values, images) + fold.ratio * beyond)


def spread(scores: Any, weights: Any) -> float:
    """Standard deviation of scores with weights, in one memory or in blocks."""
    total = float(weights.sum())
    mean = float(weights @ scores) / total
    return float(np.sqrt(float(weights @ (scores - mean) ** 2) / total))
