"""Which order statistic of held-out negatives bounds the false positive rate, and how surely.

Let n scores of negatives be drawn independently, and let a new negative be a false alarm if its score is strictly above
the k-th smallest of them. Its false positive rate exceeds τ with a probability of at most

    P(Bin(n, τ) ≤ n − k) = Σ_{j ≥ k} C(n, j) (1 − τ)^j τ^{n−j},

with equality for scores without ties. Everything here is that sentence solved for one of its numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log1p
from sys import float_info
from typing import Any

import numpy as np
from scipy.special import betaincc, betaincinv

from toprank.checks import require_confidence, require_share
from toprank.exceptions import InputError, Message
from toprank.ranking.tie_runs import score_column

# A score that is computed once more may differ in its last bits, for instance in a batch of another size. A threshold
# that is a score is raised by so many units of rounding, so that rows equal to the one it came from stay below it.
_ROUNDINGS = 8


@dataclass(frozen=True)
class ThresholdRule:
    """The order statistic to take as threshold.

    Attributes
    ----------
    n_negatives : int
        Number n of held-out negatives.
    rank : int
        Number k of the order statistic, 1 for the smallest score.
    max_fpr : float
        The bound τ on the false positive rate.
    confidence : float
        The probability with which the bound shall hold.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.decision import threshold_rule
    >>> rule = threshold_rule(100, max_fpr=0.05, confidence=0.95)
    >>> scores = np.arange(1.0, 101.0)
    >>> rule.rank, bool(99 < rule.threshold(scores) < 99.1)
    (99, True)
    """

    n_negatives: int
    rank: int
    max_fpr: float
    confidence: float

    @property
    def violation_probability(self) -> float:
        """The probability that the bound does not hold: exact without ties, an upper bound with them."""
        return violation_probability(self.n_negatives, self.rank, self.max_fpr)

    @property
    def fpr_upper_bound(self) -> float:
        """The smallest rate that is not exceeded with the given confidence; at most `max_fpr`."""
        return fpr_upper_bound(self.n_negatives, self.rank, self.confidence)

    def threshold(self, scores: Any) -> float:
        """The threshold for the scores of the held-out negatives: the order statistic and a few rounding errors."""
        values = scores if hasattr(scores, "lengths") else score_column(scores, "scores")
        if len(values) != self.n_negatives:
            raise ValueError(f"the rule is for {self.n_negatives} scores, got {len(values)}")
        return raised_order_statistic(values, self.rank)


def raised_order_statistic(values: Any, rank: int) -> float:
    """The order statistic of some scores, 1 for the smallest, raised by a few rounding errors."""
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    if hasattr(values, "lengths"):  # of rows in blocks
        from toprank.matrices.block_statistics import kth_largest, median_size

        kth, middle = kth_largest(values, len(values) - rank + 1), median_size(values)
    else:
        kth, middle = float(np.partition(values, rank - 1)[rank - 1]), float(np.median(np.abs(values)))
    size = max(abs(kth), middle)
    # one more step: adding the margin rounds too
    return float(np.nextafter(kth + _ROUNDINGS * float(np.finfo(values.dtype).eps) * size, np.inf))


def threshold_rule(n_negatives: int, max_fpr: float, confidence: float) -> ThresholdRule:
    r"""The smallest order statistic that keeps the false positive rate.

    .. math:: k = \min \{\, k : \sum_{j \ge k} \tbinom nj (1 - \tau)^j \tau^{n-j} \le 1 - \text{confidence} \,\}

    Parameters
    ----------
    n_negatives : int
        Number of held-out negatives.
    max_fpr, confidence : float
        The bound τ, and the probability with which it shall hold; strictly between 0 and 1.

    Returns
    -------
    ThresholdRule
        The rank and what it guarantees.

    Raises
    ------
    ValueError
        If there are too few negatives; the message says how many are needed.

    Examples
    --------
    >>> from toprank.decision import threshold_rule
    >>> rule = threshold_rule(1000, max_fpr=0.01, confidence=0.95)
    >>> rule.rank, round(rule.violation_probability, 4), round(rule.fpr_upper_bound, 4)
    (996, 0.0287, 0.0091)
    """
    needed = negatives_needed(max_fpr, confidence)
    if n_negatives < needed:
        raise InputError(_too_few(n_negatives, needed, max_fpr, confidence))
    low, high = 0, n_negatives - 1  # the number of scores above the threshold; 0 is allowed
    while low < high:
        middle = (low + high + 1) // 2
        if _tail(middle, n_negatives, max_fpr) <= 1 - confidence:
            low = middle
        else:
            high = middle - 1
    return ThresholdRule(n_negatives, n_negatives - low, float(max_fpr), float(confidence))


def negatives_needed(max_fpr: float, confidence: float) -> int:
    r"""How many held-out negatives a guarantee takes at least.

    .. math:: \lceil \log(1 - \text{confidence}) / \log(1 - \tau) \rceil

    With so many the threshold is the highest of their scores, and on average a third of a budget of 1 % is used at 95 %
    confidence; with ten times as many 70 %, with a hundred times as many 90 %.

    Parameters
    ----------
    max_fpr, confidence : float
        The bound τ on the false positive rate, and the probability with which it shall hold; strictly between 0 and 1.

    Returns
    -------
    int
        At least 1.

    Examples
    --------
    >>> from toprank.decision import negatives_needed
    >>> negatives_needed(max_fpr=0.01, confidence=0.95), negatives_needed(max_fpr=0.001, confidence=0.95)
    (299, 2995)
    """
    require_share("max_fpr", max_fpr)
    require_confidence(confidence)
    quotient = Fraction(log1p(-confidence)) / Fraction(log1p(-max_fpr))  # as a float it could overflow
    # both numbers are rounded, but 0.7² ≤ 1 − 0.51 shall hold
    return ceil(quotient * (1 - Fraction(_ROUNDINGS * float_info.epsilon)))


def violation_probability(n_negatives: int, rank: int, max_fpr: float) -> float:
    r"""Probability that the false positive rate above an order statistic exceeds a bound.

    .. math:: \sum_{j \ge k} \tbinom nj (1 - \tau)^j \tau^{n-j}

    Parameters
    ----------
    n_negatives : int
        Number n of held-out negatives.
    rank : int
        Number k of the order statistic, from 1 for the smallest to n.
    max_fpr : float
        The bound τ, strictly between 0 and 1.

    Returns
    -------
    float
        Exact for scores without ties, else an upper bound.

    Examples
    --------
    >>> from toprank.decision import violation_probability
    >>> violation_probability(2, rank=2, max_fpr=0.5)  # both scores below the median
    0.25
    """
    require_share("max_fpr", max_fpr)
    _check_rank(n_negatives, rank)
    return _tail(n_negatives - rank, n_negatives, max_fpr)


def fpr_upper_bound(n_negatives: int, rank: int, confidence: float) -> float:
    """The rate that is not exceeded above an order statistic, with the given confidence.

    It is the bound for which `violation_probability` is ``1 - confidence``: the upper limit of Clopper and Pearson
    for ``n_negatives - rank`` false alarms among `n_negatives`.

    Parameters
    ----------
    n_negatives : int
        Number of held-out negatives.
    rank : int
        Number of the order statistic, from 1 for the smallest to `n_negatives`.
    confidence : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> from toprank.decision import fpr_upper_bound
    >>> round(fpr_upper_bound(300, rank=300, confidence=0.95), 4)  # the rule of three: about 3 / 300
    0.0099
    """
    require_confidence(confidence)
    _check_rank(n_negatives, rank)
    return float(betaincinv(n_negatives - rank + 1, rank, confidence))


def _tail(n_above: int, n: int, rate: float) -> float:
    """P(Bin(n, rate) ≤ n_above), by the incomplete beta function: 1 − rate would lose the digits of a small rate."""
    return float(betaincc(n_above + 1, n - n_above, rate))


def _check_rank(n_negatives: int, rank: int) -> None:
    if not 1 <= rank <= n_negatives:
        raise InputError.of("rank", rank, "must be between 1 and the number of negatives, {n}", n=n_negatives)


def _too_few(n: int, needed: int, max_fpr: float, confidence: float) -> Message:
    message = Message(
        "{max_fpr=:g} with {confidence=:g} needs at least {needed} held-out negatives, got {n}; {more}",
        more=Message("hold out more of them", elsewhere="give more rows"),
        max_fpr=max_fpr,
        confidence=confidence,
        needed=needed,
        n=n,
    )
    if n == 0:
        return message
    possible_rate = np.ceil(1e4 * (1 - (1 - confidence) ** (1 / n))) / 1e4
    possible_confidence = np.floor(1e4 * (1 - (1 - max_fpr) ** n)) / 1e4
    if possible_rate < 1:
        message = Message("{message}, raise {max_fpr} to {rate:g}", message=message, rate=possible_rate)
    if possible_confidence > 0:
        message = Message("{message}, or lower {confidence} to {c:g}", message=message, c=possible_confidence)
    return message
