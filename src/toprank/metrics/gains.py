"""Metrics that discount a positive by its position in the list."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expi

from toprank.ranking.tie_runs import Floats, TieRuns, as_rows, tie_runs

# Up to here the discounts of the positions are added one by one, beyond it by an integral.
_TABLE = 2**20


def ndcg_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: float | None = None,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    r"""Normalised discounted cumulative gain for binary relevance.

    .. math:: \mathrm{DCG} = \sum_{i \text{ positive}} \frac{1}{\log_2(1 + r_i)}

    with :math:`r_i` the position in the list, divided by the DCG of a list with all positives first.

    Ties: the expected value over random tie-breaking. A row of weight w takes w positions; a fraction of a
    position counts as that fraction of its discount.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_score : array-like of shape (n,)
        Scores, larger for more likely positives.
    k : float, optional
        Positions after the k-th count nothing, neither in the list nor in the ideal one.
    sample_weight : array-like of shape (n,), optional
        Weights; 2 equals a repeated row and 0 a removed one.
    pos_label : label, optional
        The positive class; by default 1, for labels {0, 1} or {-1, 1}.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> from toprank.metrics import ndcg_score
    >>> round(ndcg_score([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6]), 4)
    0.9197
    """
    if k is not None and not k > 0:
        raise ValueError(f"k must be positive, got {k!r}")
    rows = as_rows(y_true, y_score, sample_weight, pos_label)
    rows.require(positives=True)
    runs = tie_runs(rows)
    longest = runs.end[-1] if k is None else min(k, runs.end[-1])
    edges = np.concatenate([[0.0], np.minimum(runs.end, longest)])
    gain = _total_discount(edges)
    ideal = _total_discount(np.array([min(runs.true_positives[-1], longest)]))[0]
    return float(np.diff(gain) @ (runs.positives / runs.weight) / ideal)


def bedroc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    alpha: float = 20.0,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
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
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_score : array-like of shape (n,)
        Scores, larger for more likely positives.
    alpha : float, default=20.0
        Strength of the discount, positive.
    sample_weight : array-like of shape (n,), optional
        Weights; 2 equals a repeated row and 0 a removed one.
    pos_label : label, optional
        The positive class; by default 1, for labels {0, 1} or {-1, 1}.

    Returns
    -------
    float
        In [0, 1].

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
        raise ValueError(f"alpha must be positive and finite, got {alpha!r}")
    rows = as_rows(y_true, y_score, sample_weight, pos_label)
    rows.require(positives=True, negatives=True)
    runs = tie_runs(rows)
    # The common factor of all three sums, 1 / (exp(alpha / n) - 1), cancels.
    rate = alpha / runs.end[-1]
    positives, negatives = runs.true_positives[-1], runs.false_positives[-1]
    largest = -np.expm1(-rate * positives)
    smallest = np.exp(-rate * negatives) * largest
    spread = -np.expm1(-rate * negatives) * largest
    return float((_boltzmann_sum(runs, rate) - smallest) / spread)


def _boltzmann_sum(runs: TieRuns, rate: float) -> float:
    """Sum over positives of the mean of exp(-rate · position) in their tie run, up to a constant factor."""
    run_sums = np.exp(-rate * runs.start) * -np.expm1(-rate * runs.weight)
    return float(run_sums @ (runs.positives / runs.weight))


def _total_discount(position: Floats) -> Floats:
    """Sum of 1 / log2(1 + r) over the positions r = 1, 2, … up to `position`, linear in between.

    Beyond the table the sum is the integral over [R + 1/2, r + 1/2], whose midpoint error is below 1e-13 of the
    sum, so memory does not grow with the weights.
    """
    size = int(min(np.ceil(position.max()), _TABLE))
    table = np.concatenate([[0.0], np.cumsum(1 / np.log2(np.arange(2, size + 2)))])
    total: Floats = np.interp(position, np.arange(size + 1), table)
    far = position > size
    if far.any():
        total[far] += np.log(2) * (expi(np.log(position[far] + 1.5)) - expi(np.log(size + 1.5)))
    return total
