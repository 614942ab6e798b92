"""Metrics that discount a positive by its position in the list."""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.special import expi

from toprank.exceptions import InputError
from toprank.metrics._metric import Weights, metric
from toprank.ranking.tie_runs import Cut, Floats, TieRuns, rows_of

# Up to here the discounts of the positions are added one by one, beyond it by an integral.
_TABLE = 2**20


@metric
def ndcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: float | None = None,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    r"""Normalised discounted cumulative gain for binary relevance.

    .. math:: \mathrm{DCG} = \sum_{i \text{ positive}} \frac{1}{\log_2(1 + r_i)}

    with :math:`r_i` the position in the list, divided by the DCG of a list with all positives first.

    Ties: the expected value over random tie-breaking. A row of weight w takes w positions; a fraction of a
    position counts as that fraction of its discount.

    Parameters
    ----------
    {rows}
    k : float, optional
        Positions after the k-th count nothing, neither in the list nor in the ideal one.
    {weights_and_share}

    Examples
    --------
    >>> from toprank.metrics import ndcg_score
    >>> round(ndcg_score([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6]), 4)
    0.9197
    """
    if k is not None and not k > 0:
        raise InputError.of("k", k, "must be positive")
    rows = rows_of(y_true, y_score, sample_weight, pos_label, positives=True)
    return min(1.0, sum(rows.over_parts(_gain, k, down_to=None if k is None else Cut(k))))


def _gain(runs: TieRuns, k: float | None) -> float:
    """What a part of the list adds to the gain, divided by that of the ideal list."""
    n = runs.all_positives + runs.all_negatives
    longest = n if k is None else min(k, n)
    width = np.where(runs.end <= longest, runs.weight, np.maximum(longest - runs.start, 0.0))
    gain = _total_discount(runs.start, width) @ (runs.positives / runs.weight)
    ideal = _total_discount(np.zeros(1), np.array([min(runs.all_positives, longest)]))[0]
    return float(gain / ideal)


@metric
def bedroc_score(
    y_true: ArrayLike, y_score: ArrayLike, *, alpha: float = 20.0, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    r"""Boltzmann-enhanced discrimination of ROC: early recognition with an exponential discount.

    .. math:: \mathrm{BEDROC} = \frac{S - S_{\min}}{S_{\max} - S_{\min}}, \qquad
              S = \sum_{i \text{ positive}} e^{-\alpha r_i / n}

    with :math:`r_i` the position in the list and the extremes taken over all orders of it. With the default
    :math:`\alpha = 20` the best 8 % of the list make up 80 % of the largest S. For :math:`\alpha \to 0` the
    score becomes the area under the ROC curve.

    Ties: the expected value over random tie-breaking.

    Parameters
    ----------
    {rows}
    alpha : float, default=20.0
        Strength of the discount, positive.
    {weights_and_share}

    References
    ----------
    Truchon and Bayly, Evaluating virtual screening methods: good and bad metrics for the "early recognition"
    problem, Journal of Chemical Information and Modeling 47 (2007).

    Examples
    --------
    >>> from toprank.metrics import bedroc_score
    >>> round(bedroc_score([1, 0, 1, 0, 0, 0], [6, 5, 4, 3, 2, 1]), 4)
    0.9668
    """
    if not 0 < alpha < np.inf:
        raise InputError.of("alpha", alpha, "must be positive and finite")
    rows = rows_of(y_true, y_score, sample_weight, pos_label, positives=True, negatives=True)
    # below 1e-17 alpha makes no difference any more
    return min(1.0, sum(rows.over_parts(_early_recognition, max(float(alpha), 1e-17))))


def _early_recognition(runs: TieRuns, alpha: float) -> float:
    """What a part of the list adds to the score."""
    # the common factor of all sums, 1 / (exp(alpha / n) - 1), cancels
    positives, negatives = runs.all_positives, runs.all_negatives
    rate = alpha / (positives + negatives)
    return _above_smallest(runs, rate) / float(_lost(rate * positives) * _lost(rate * negatives))


def _lost(x: Any) -> Any:
    """1 − e⁻ˣ."""
    return -np.expm1(-x)


def _above_smallest(runs: TieRuns, rate: float) -> float:
    """S − S_min up to a constant factor, as a sum over the tie runs of terms that are not negative.

    With a = rate · positives and b = rate · negatives of a run and c = rate · negatives below it, a run that starts at
    x adds e^(−rate·x) · [(a·(1 − e⁻ᵇ) − b·e⁻ᵇ·(1 − e⁻ᵃ)) / (a + b) + e⁻ᵇ·(1 − e⁻ᵃ)·(1 − e⁻ᶜ)]. The first part, of the
    order within the run, is e⁻ᵇ·a·b times the divided difference of (eˣ − 1)/x between b and −a.
    """
    a, b, c = rate * runs.positives, rate * runs.negatives, rate * runs.negatives_after
    terms = np.exp(-b) * _lost(a) * _lost(c)
    mixed = (a > 0) & (b > 0)
    terms[mixed] += _within_run(a[mixed], b[mixed])
    return float(np.exp(-rate * runs.start) @ terms)


def _within_run(a: Floats, b: Floats) -> Floats:
    """The first part of the term of a run; by the series Σ hₖ(b, −a)/(k + 2)! where the difference would cancel.

    The hₖ are the complete homogeneous polynomials, hₖ(x, y) = x·hₖ₋₁(x, y) + yᵏ.
    """
    small = np.maximum(a, b) < 1
    x, y = np.where(small, b, 0.0), np.where(small, -a, 0.0)
    homogeneous, power, divided = np.ones(len(a)), np.ones(len(a)), np.full(len(a), 0.5)
    for k in range(1, 20):
        power = power * y
        homogeneous = homogeneous * x + power
        divided += homogeneous / factorial(k + 2)
    direct = (a * _lost(b) - b * np.exp(-b) * _lost(a)) / (a + b)
    return np.asarray(np.where(small, np.exp(-b) * a * b * divided, direct))


def _total_discount(start: Floats, width: Floats) -> Floats:
    """Discount 1 / log2(1 + r) of the positions r = 1, 2, … from `start` on, `width` of them; parts count in part.

    The mean discount times the width: far down the list the position of an end is rounded, the width is not.
    """
    end = start + width
    first, last = np.ceil(start), np.floor(end)
    inside = (first > last) | (start == end)  # a part of one position
    total = _whole_discounts(np.where(inside, 0.0, first), np.where(inside, 0.0, last))
    total += _part(first - start, first) + _part(end - last, last + 1)
    total *= np.divide(width, end - start, out=np.zeros(len(width)), where=~inside)
    return np.asarray(np.where(inside, _part(width, np.floor(start) + 1), total))


def _part(share: Floats, position: Floats) -> Floats:
    """A share of the discount of a position."""
    discount = np.zeros(len(share))
    some = share > 0
    discount[some] = share[some] / np.log2(1 + position[some])
    return discount


def _whole_discounts(first: Floats, last: Floats) -> Floats:
    """Sum of the discounts of the positions first + 1, …, last.

    Beyond a table the sum is the integral over [first + 1/2, last + 1/2], whose midpoint error is below 1e-13 of the
    sum, so memory does not grow with the weights.
    """
    size = int(min(np.max(last, initial=0.0), _TABLE))
    table = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, size + 2)))])
    total = table[np.minimum(last, size).astype(np.intp)] - table[np.minimum(first, size).astype(np.intp)]
    far = last > size
    if far.any():
        total[far] += np.log(2) * _logarithmic_integral(np.maximum(first[far], size) + 1.5, last[far] + 1.5)
    return np.asarray(total)


def _logarithmic_integral(low: Floats, high: Floats) -> Floats:
    """∫ dx / log x; by Gauss's quadrature, exact to 1e-14, where the difference of two integrals would cancel."""
    integral = np.zeros(len(low))
    narrow = high < 1.02 * low
    wide_low, wide_high = low[~narrow], high[~narrow]
    integral[~narrow] = expi(np.log(wide_high)) - expi(np.log(wide_low))
    middle, half = (low[narrow] + high[narrow]) / 2, (high[narrow] - low[narrow]) / 2
    for node, weight in zip(*leggauss(4), strict=True):
        integral[narrow] += weight * half / np.log(middle + node * half)
    return integral
