"""Ordered weighted pairwise classification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from toprank.arrays import Floats, Mask
from toprank.baselines._linear import WeightedBaseline
from toprank.baselines._risk import RiskValue, TwoClassRisk, counts_behind, descending, shared_by_ties, sums_before
from toprank.baselines.cutting_planes import Minimum
from toprank.exceptions import InputError

Cumulative = Callable[[Floats], Floats]
WEIGHTINGS: dict[str, Cumulative] = {
    "reciprocal": lambda places: digamma(places + 1.0) + np.euler_gamma,
    "uniform": lambda places: places,
}
"""Sums of the weights of so many negatives, which need not be a whole number of them."""


class OrderedPairRisk(TwoClassRisk):
    """For each positive the hinge losses with all negatives, weighted by their order from the largest loss down.

    The order is that of the scores of the negatives, the same for all positives.
    """

    def __init__(self, positive: Mask, weights: Floats, cumulative: Cumulative) -> None:
        super().__init__(positive, weights)
        self.cumulative = cumulative

    def __call__(self, scores: Floats) -> RiskValue:
        """The risk at the scores of all rows."""
        s, share = scores[self.positives], self.positive_share
        order = descending(scores[self.negatives])
        t, weights = scores[self.negatives][order], self.negative_weights[order]
        reached = self.cumulative(np.append(0.0, np.cumsum(weights)))
        of_places = np.diff(reached) / reached[-1]
        reach = np.searchsorted(-t, 1.0 - s, side="left")
        total = sums_before(reach, of_places)
        value = float(share @ (total * (1.0 - s) + sums_before(reach, of_places * t)))
        of_negatives = np.empty(len(t))
        of_negatives[order] = shared_by_ties(of_places * counts_behind(reach, share, len(t)), t, weights)
        return self.combined(value, -share * total, of_negatives)


@dataclass(eq=False, repr=False, kw_only=True)
class OWPC(WeightedBaseline):
    r"""Rank by the ordered weighted pairwise loss: for each positive, the highest negatives count most.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \sum_{k=1}^n b_k
              \max(0, 1 - w^\top x_i^+ + s^-_{[k]}), \qquad b_1 \ge b_2 \ge \dots \ge 0, \quad \sum_k b_k = 1

    where :math:`s^-_{[k]}` is the k-th largest score of the negatives. Equal weights make it `RankSVM`, a single one
    ``TopPush(surrogate="hinge")``. It is here for comparison with the literature.

    Parameters
    ----------
    weighting : {"reciprocal", "uniform"} or array-like, default="reciprocal"
        The weights b before they are scaled to a sum of 1: 1/k, 1, or numbers that do not rise; beyond their end they
        are zero.
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
    Usunier, Buffoni and Gallinari, Ranking with ordered weighted pairwise classification, ICML 2009.

    Examples
    --------
    >>> from toprank.baselines import OWPC
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> bool(OWPC(alpha=0.01).fit(X, y).dual_gap_ <= 1e-4)
    True
    """

    weighting: str | ArrayLike = "reciprocal"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._cumulative()

    def _cumulative(self) -> Cumulative:
        """The sums of the weights."""
        if isinstance(self.weighting, str) and self.weighting in WEIGHTINGS:
            return WEIGHTINGS[self.weighting]
        rule = "must be 'reciprocal', 'uniform' or finite numbers of at least 0 that do not rise, the first above 0"
        try:
            given = np.asarray(self.weighting, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError.of("weighting", self.weighting, rule) from None
        falls = given.ndim == 1 and given.size > 0 and given[0] > 0 and np.isfinite(given).all()
        if not (falls and np.all(given >= 0) and np.all(np.diff(given) <= 0)):
            raise InputError.of("weighting", self.weighting, rule)
        ends = np.append(0.0, np.cumsum(given))
        return lambda places: np.interp(places, np.arange(len(ends)), ends)

    def _minimum(self, X: Any, positive: Mask, weights: Floats) -> Minimum:
        risk = OrderedPairRisk(positive, weights, self._cumulative())
        return self._by_cutting_planes(X, risk)
