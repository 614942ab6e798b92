"""The structural support vector machine of the partial area under the ROC curve."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.baselines._linear import WeightedBaseline
from toprank.baselines._risk import RiskValue, TwoClassRisk, counts_behind, descending, shared_by_ties, sums_before
from toprank.baselines.cutting_planes import Minimum
from toprank.exceptions import InputError


class PartialAUCRisk(TwoClassRisk):
    """The largest loss that a ranking of the positives among the highest negatives can have, by margins of pairs.

    Negatives take their places from the highest score down; positive i is put below the first r of them. Each of these
    costs its score minus that of the positive, and one more if it is within the range. So r is either the number of
    negatives before the range that are above the positive, or reaches into the range, as far as margins are below one.
    """

    def __init__(self, positive: Mask, weights: Floats, min_fpr: float, max_fpr: float | None) -> None:
        super().__init__(positive, weights)
        total = float(self.negative_weights.sum())
        self.low, self.high = min_fpr * total, None if max_fpr is None else max_fpr * total
        # so many of the highest negatives reach to the end of the range, whichever they are
        reach = 1 if self.high is None else int(np.ceil(self.high / self.negative_weights.min()))
        self.n_highest = min(max(reach, 1), len(self.negatives))

    def __call__(self, scores: Floats) -> RiskValue:
        """The risk at the scores of all rows."""
        s, share = scores[self.positives], self.positive_share
        order = self._highest(scores[self.negatives])
        t, weights = scores[self.negatives][order], self.negative_weights[order]
        before, within = self._masses(weights)
        size = within.sum()
        # a: among the negatives before the range; b: below all of these, and as many in the range as have a loss
        place = np.searchsorted(-t, -s, side="left")
        sum_a = sums_before(place, before * t) - s * sums_before(place, before)
        reach = np.searchsorted(-t, 1.0 - s, side="left")
        n_within = sums_before(reach, within)
        sum_b = before @ t - s * before.sum() + n_within * (1.0 - s) + sums_before(reach, within * t)
        into = sum_b >= sum_a
        of_positives = -share * np.where(into, before.sum() + n_within, sums_before(place, before))
        of_sorted = within * counts_behind(reach[into], share[into], len(t))
        of_sorted += before * (share[into].sum() + counts_behind(place[~into], share[~into], len(t)))
        of_negatives = np.zeros(len(self.negatives))
        of_negatives[order] = shared_by_ties(of_sorted, t, weights)
        value = float(share @ np.where(into, sum_b, sum_a))
        return self.combined(value / size, of_positives / size, of_negatives / size)

    def _highest(self, scores: Floats) -> Rows:
        """Places of the negatives that may be in the range or before it, the highest first, with all that tie."""
        least = np.partition(scores, len(scores) - self.n_highest)[len(scores) - self.n_highest]
        kept = np.flatnonzero(scores >= least)
        return np.asarray(kept[descending(scores[kept])])

    def _masses(self, weights: Floats) -> tuple[Floats, Floats]:
        """How much of each negative, in the order of the list, is before the range and within it."""
        if self.high is None:
            return np.zeros(len(weights)), np.append(1.0, np.zeros(len(weights) - 1))
        ends = np.append(0.0, np.cumsum(weights))
        return np.diff(np.minimum(ends, self.low)), np.diff(np.clip(ends, self.low, self.high))


@dataclass(eq=False, repr=False, kw_only=True)
class SVMpAUC(WeightedBaseline):
    r"""Maximise the area under the ROC curve between two false positive rates by a structural SVM, in its tight form.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \max_{Z, \pi} \frac{1}{m (k_2 - k_1)} \sum_{i=1}^m \sum_{k=1}^{k_2}
              \pi_{ik} \left( [k > k_1] - w^\top x_i^+ + w^\top z_k \right)

    where :math:`k_1` and :math:`k_2` are the numbers of negatives up to the two rates, n·min_fpr and n·max_fpr, and the
    maximum is over all lists Z of :math:`k_2` negatives and all ways π to put positive i below the first ones of them,
    :math:`\pi_{i1} \ge \pi_{i2} \ge \dots \in \{0, 1\}`. From a rate of zero on, it is the mean hinge loss over the
    pairs with the :math:`k_2` highest negatives; with the highest one alone, as in the TopPush paper, the problem is
    that of ``TopPush(surrogate="hinge")``. It is here for comparison with the literature.

    Parts of a negative count by their share, where n·min_fpr or n·max_fpr is no whole number.

    Parameters
    ----------
    min_fpr, max_fpr : float, default=0.0 and None
        The range of false positive rates, within 0 and 1. Without `max_fpr` it is the highest negative alone,
        β = 1/n.
    alpha : float, default=0.1
        Weight of the penalty ``alpha / 2 * ||w||²``; the loss is 1 at w = 0.
    {linear_parameters}
    {pos_label}

    Attributes
    ----------
    {linear_attributes}
    {certificate}
    {classes}

    References
    ----------
    Narasimhan and Agarwal, SVM-pAUC-tight: a new support vector method for optimizing partial AUC based on a tight
    convex upper bound, KDD 2013.

    Examples
    --------
    >>> from toprank.baselines import SVMpAUC
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> model = SVMpAUC(max_fpr=0.05, alpha=0.01).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    """

    remedies = "lower alpha, or raise max_fpr: a single outlier can be the highest negative in every direction"

    min_fpr: float = 0.0
    max_fpr: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        low: Any = self.min_fpr
        high: Any = self.max_fpr
        if not (isinstance(low, Real) and 0 <= float(low) < 1):
            raise InputError.of("min_fpr", low, "must be at least 0 and below 1", "use 0")
        if high is None and float(low) > 0:
            raise InputError.of("max_fpr", high, "must be given where {min_fpr} is above 0", "use 1")
        if high is not None and not (isinstance(high, Real) and float(low) < float(high) <= 1):
            raise InputError.of("max_fpr", high, "must be above {min_fpr} and at most 1", "use one such as 0.05")

    def _minimum(self, X: Any, positive: Mask, weights: Floats) -> Minimum:
        risk = PartialAUCRisk(positive, weights, float(self.min_fpr), self.max_fpr)
        return self._by_cutting_planes(X, risk)
