"""The p-norm push."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from toprank.arrays import Floats, Mask
from toprank.baselines._linear import WeightedBaseline
from toprank.baselines._risk import RiskValue, TwoClassRisk
from toprank.baselines.cutting_planes import Minimum
from toprank.baselines.hinge_pairs import ActivePairs
from toprank.checks import require_choice
from toprank.exceptions import InputError


class PairSums(NamedTuple):
    """Sums over the positives, at each negative, of the loss and of its slope; and the slope sums over the negatives.

    `over_negatives` takes weights of the negatives, and gives the sums at each positive.
    """

    losses: Floats
    slopes: Floats
    over_negatives: Callable[[Floats], Floats]


def _sorted_sums(s: Floats, t: Floats, share: Floats, squared: bool) -> PairSums:
    """Of the hinge and of its square, by sorting."""
    m, n = len(s), len(t)
    pairs = ActivePairs.at(np.append(s, t), np.arange(m), np.arange(m, m + n), share, np.ones(n))
    order = pairs.worse - m
    scores = np.append(s, t)

    def in_order(values: Floats) -> Floats:
        given = np.empty(n)
        given[order] = values
        return given

    counts, sums = in_order(pairs.over_better()), in_order(pairs.over_better(scores))
    rest = (1.0 + t) * counts - sums
    if not squared:
        return PairSums(rest, counts, lambda c: pairs.over_worse(np.append(np.zeros(m), c)))
    squares = (1.0 + t) * (rest - sums) + in_order(pairs.over_better(scores**2))

    def over_negatives(c: Floats) -> Floats:
        of_weights, of_scores = (pairs.over_worse(np.append(np.zeros(m), values)) for values in (c, c * t))
        return 2 * ((1.0 - s) * of_weights + of_scores)

    return PairSums(squares, 2 * rest, over_negatives)


def _hinge_sums(s: Floats, t: Floats, share: Floats) -> PairSums:
    return _sorted_sums(s, t, share, squared=False)


def _quadratic_sums(s: Floats, t: Floats, share: Floats) -> PairSums:
    return _sorted_sums(s, t, share, squared=True)


def _logistic_sums(s: Floats, t: Floats, share: Floats) -> PairSums:
    """By sums over all pairs in linear time."""
    from toprank.pairwise.boxes import exact_sum  # imports numba

    def over_negatives(c: Floats) -> Floats:
        return exact_sum(s, t, c, "reversed_sigmoid") / log(2)

    losses = -exact_sum(-t, -s, share, "log_sigmoid") / log(2)
    return PairSums(losses, exact_sum(t, s, share, "sigmoid") / log(2), over_negatives)


def _exponential_sums(s: Floats, t: Floats, share: Floats) -> PairSums:
    """Products of sums over each class."""
    with np.errstate(over="ignore"):
        losses = np.exp(t) * float(share @ np.exp(-s))
        return PairSums(losses, losses, lambda c: np.exp(-s) * float(c @ np.exp(t)))


SUMS: dict[str, Callable[[Floats, Floats, Floats], PairSums]] = {
    "exponential": _exponential_sums,
    "logistic": _logistic_sums,
    "hinge": _hinge_sums,
    "quadratic": _quadratic_sums,
}


class PNormRisk(TwoClassRisk):
    """The p-norm, over the negatives, of the mean loss of the positives below them."""

    def __init__(self, positive: Mask, weights: Floats, surrogate: str, p: float) -> None:
        super().__init__(positive, weights)
        self.sums, self.p = SUMS[surrogate], p
        self.negative_share = self.negative_weights / self.negative_weights.sum()

    def __call__(self, scores: Floats) -> RiskValue:
        """The risk at the scores of all rows."""
        centre = scores.mean()  # only differences count
        s, t = scores[self.positives] - centre, scores[self.negatives] - centre
        losses, slopes, over_negatives = self.sums(s, t, self.positive_share)
        largest = float(losses.max())
        if not 0 < largest < np.inf:
            return RiskValue(largest, np.zeros(self.n_rows))
        relative = np.maximum(losses, 0.0) / largest
        norm = float(self.negative_share @ relative**self.p) ** (1 / self.p)
        by_loss = self.negative_share * (relative / norm) ** (self.p - 1)
        return self.combined(largest * norm, -self.positive_share * over_negatives(by_loss), by_loss * slopes)


@dataclass(eq=False, repr=False, kw_only=True)
class PNormPush(WeightedBaseline):
    r"""Push the negatives down, the highest ones most: the p-norm push.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \left( \frac1n \sum_{j=1}^n \left( \frac1m \sum_{i=1}^m
              \ell(w^\top x_j^- - w^\top x_i^+) \right)^p \right)^{1/p}

    With p = 1 all pairs count the same. As p grows the sum over the negatives becomes a maximum, and the problem that
    of `TopPush` with the same surrogate: no model of either is better than the other one by more than a factor of
    :math:`n^{1/p}`. The reference takes the sum itself, not its root, which has the same minimum for some other
    penalty. It is here for comparison with the literature.

    Pairs are never enumerated: an evaluation costs O(n), or O(n log n) for the two losses with a kink.

    Parameters
    ----------
    p : float, default=4
        The norm, at least 1.
    surrogate : {"exponential", "logistic", "hinge", "quadratic"}, default="exponential"
        The loss ℓ of `TopPush`; the reference has the exponential one.
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
    Rudin, The p-norm push: a simple convex ranking algorithm that concentrates at the top of the list, JMLR 10, 2009.

    Examples
    --------
    >>> from toprank import TopPush
    >>> from toprank.baselines import PNormPush
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, separation=4.0, random_state=0)
    >>> limit = TopPush(surrogate="exponential").fit(X, y).objective_
    >>> [bool(PNormPush(p=p).fit(X, y).objective_ <= limit * 1.0001) for p in (1, 4, 64)]
    [True, True, True]
    >>> bool(PNormPush(p=1000, tol=1e-3).fit(X, y).objective_ > 0.99 * limit)
    True
    """

    p: float = 4.0
    surrogate: str = "exponential"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("surrogate", self.surrogate, SUMS)
        p: Any = self.p
        if isinstance(p, bool) or not (isinstance(p, Real) and 1 <= float(p) < np.inf):
            raise InputError.of("p", p, "must be a finite number of at least 1", "use TopPush for an infinite one")

    def _minimum(self, X: Any, positive: Mask, weights: Floats) -> Minimum:
        risk = PNormRisk(positive, weights, self.surrogate, float(self.p))
        return self._by_cutting_planes(X, risk)
