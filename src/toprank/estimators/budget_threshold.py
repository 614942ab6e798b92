"""The threshold that spends the budget, set on scores of models that did not learn from the rows which they score.

The threshold of a formulation is a bound of a quantile, taken at scores that the fit itself has pushed down: the share
of training rows above it says little of the share of those to come. Steps:

1. The rows that the budget counts are dealt to folds, classes apart, in the order of their values along a fixed
   direction: as good as at random, but the same for the same rows in whatever order. A whole number as weight counts
   as so many rows, so a weight of 2 equals a repeated row.
2. A model of the rows outside a fold, started from the solution, scores the fold.
3. Two models have scores of two scales. A score of the one with so many rows above it, of those that both have learned
   from, is taken for the score of the other with as many above it; beyond the largest, for one as many standard
   deviations above.
4. The threshold is the smallest score with at most the share of the budget above it.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.estimators.back_ends import BackEnd, Kept
from toprank.log import logger
from toprank.solvers.problem import Solution, without_noise

_FOLDS = 5
# Share of a sum of weights that may be rounding.
_ROUNDING = 1e-12


def out_of_fold_threshold(whole: BackEnd, solution: Solution, kept: Kept, share: float) -> float | None:
    """Steps 1 to 4; None where a class that the budget counts has fewer rows than there are folds."""
    problem, scores = whole.problem, kept.scores.astype(np.float64)
    # 1. The folds.
    in_folds, place = np.zeros((len(scores), _FOLDS)), _places(whole.task.X)
    over_all = problem.formulation.over == "all"
    for members in map(np.flatnonzero, [~problem.positive, problem.positive][: 1 + over_all]):
        in_folds[members] = _dealt(place[members], problem.weights[members])
        if not in_folds[members].any(axis=0).all():
            return None
    counted = in_folds.any(axis=1)
    matched, weights = [], []
    for fold, of_fold in enumerate(in_folds.T):
        # 2. The model of the other rows.
        left = np.where(of_fold > 0, problem.weights - of_fold, problem.weights)
        newest = _scores_without(whole, solution, left)
        if whole.task.settings["verbose"]:
            logger().info("threshold: scored fold %d of %d by a model of the others", fold + 1, _FOLDS)
        # 3. The scale of the model itself.
        both, held_out = counted & (left > 0), of_fold > 0
        matched.append(_matched(newest[held_out], newest[both], scores[both], left[both]))
        weights.append(of_fold[held_out])
    # 4. The share of the budget.
    return smallest_threshold(np.concatenate(matched), np.concatenate(weights), share)


def smallest_threshold(scores: Any, weights: Any, share: float) -> float:
    """The smallest score that has at most a share of the weights above it; those of blocks know it themselves."""
    if not isinstance(scores, np.ndarray):
        return float(scores.first_beyond(weights, share * weights.sum() * (1 + _ROUNDING)))
    order = np.argsort(-scores, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, share * reached[-1] * (1 + _ROUNDING), side="right"))
    return float(scores[order[min(place, len(order) - 1)]])


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
    folds, rounds = np.arange(_FOLDS), 2 * _FOLDS

    def dealt_before(place: Floats) -> Floats:
        within = (place % rounds)[:, None]
        return 2 * (place // rounds)[:, None] + (within > folds) + (within > rounds - 1 - folds)

    dealt = np.empty((len(places), _FOLDS))
    dealt[order] = (dealt_before(ends) - dealt_before(ends - units)) * (weights[order] / units)[:, None]
    return dealt


def _scores_without(whole: BackEnd, solution: Solution, weights: Floats) -> Floats:
    """The scores of all rows by a model of those with a weight."""
    rows = np.flatnonzero(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say of the kernel was said of the whole
        part = whole.part(rows, weights[rows])
        found, _ = part.solve(whole.start_of_part(solution, rows))
        if found.interrupted:
            raise KeyboardInterrupt
        return whole.scores_by(part.keep(without_noise(part.problem, found))).astype(np.float64)


def _matched(scores: Floats, of_part: Floats, of_whole: Floats, weights: Floats) -> Floats:
    """Scores of a model of a part on the scale of the whole; the others are those of the rows that both learned from.

    The i-th largest of the one is the i-th largest of the other, and in between the scale is linear.
    """
    part_order, whole_order = np.argsort(of_part, kind="stable"), np.argsort(-of_whole, kind="stable")
    values, first = np.unique(of_part[part_order], return_index=True)
    from_above = np.cumsum(weights[part_order][::-1])[::-1][first]
    places = np.searchsorted(np.cumsum(weights[whole_order]), from_above * (1 - _ROUNDING), side="left")
    images = of_whole[whole_order[np.minimum(places, len(whole_order) - 1)]]
    ratio = _spread(of_whole, weights) / (_spread(of_part, weights) or 1.0)
    return np.asarray(np.interp(scores, values, images) + ratio * np.maximum(scores - values[-1], 0.0))


def _spread(scores: Floats, weights: Floats) -> float:
    return float(np.sqrt(np.cov(scores, aweights=weights, ddof=0)))
