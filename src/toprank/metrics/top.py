"""Metrics of a list that is cut after the best rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.exceptions import InputError
from toprank.metrics._metric import Weights, metric
from toprank.ranking.tie_runs import ROUNDING, Cut, TieRuns, check_share, rounding_errors, rows_of, sums_before

Average = Literal["micro", "macro"]


@metric
def positives_at_top(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    r"""Share of the positives that are scored above the highest negative.

    .. math:: \frac{1}{m} \sum_{i=1}^{m} [\, s_i^+ > \max_j s_j^- \,]

    the quantity that TopPush maximises. O(n), no sort.

    Ties: pessimistic, by definition; a positive with the score of the highest negative does not count.

    Parameters
    ----------
    {rows}
    {weights_and_share}

    Examples
    --------
    >>> from toprank.metrics import positives_at_top
    >>> positives_at_top([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.7, 0.1])
    0.6666666666666666
    """
    rows = rows_of(y_true, y_score, sample_weight, pos_label, positives=True, negatives=True)
    above = rows.positive & (rows.score > rows.score[~rows.positive].max())
    return min(1.0, float(rows.weight[above].sum() / rows.weight[rows.positive].sum()))


@metric
def precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: float,
    groups: ArrayLike | None = None,
    average: Average = "micro",
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Share of positives among the k best-scored rows.

    With `groups`, among the k best of each group: the precision of a team that can look at k alerts a day.

    Ties: the expected value over random tie-breaking; of a tie run that position k cuts, each row is taken with
    the same probability. k is counted in weight and need not be an integer.

    Parameters
    ----------
    {rows}
    k : float
        Length of the list, in (0, n]. A group of fewer than k rows is taken whole.
    groups : array-like of shape (n,), optional
        Group of each row, for instance the day.
    average : {"micro", "macro"}, default="micro"
        With `groups`: all rows taken in one pot, or the mean over the groups.
    {weights_and_share}

    Examples
    --------
    Of two rows with score 0.5, one fits into the best three:

    >>> from toprank.metrics import precision_at_k
    >>> precision_at_k([1, 0, 1, 0, 0], [0.9, 0.7, 0.5, 0.5, 0.1], k=3)
    0.5

    One alert a day, on two days:

    >>> precision_at_k([1, 0, 0, 0], [0.9, 0.8, 0.7, 0.6], k=1, groups=["Mo", "Mo", "Tu", "Tu"])
    0.5
    """
    rows = rows_of(y_true, y_score, sample_weight, pos_label, groups)
    top = _top_of_groups(rows, k)
    return _averaged(top.found, top.taken, average)


@metric
def recall_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: float,
    groups: ArrayLike | None = None,
    average: Average = "micro",
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    """Share of all positives that are among the k best-scored rows.

    With `groups`, among the k best of each group: what a team that can look at k alerts a day catches.

    Ties: the expected value over random tie-breaking, as in `precision_at_k`.

    Parameters
    ----------
    {rows}
    k : float
        Length of the list, in (0, n]. A group of fewer than k rows is taken whole.
    groups : array-like of shape (n,), optional
        Group of each row, for instance the day.
    average : {"micro", "macro"}, default="micro"
        With `groups`: all positives in one pot, or the mean over the groups that have a positive.
    {weights_and_share}

    Examples
    --------
    >>> from toprank.metrics import recall_at_k
    >>> recall_at_k([1, 0, 1, 1, 0], [0.9, 0.7, 0.6, 0.5, 0.1], k=3)
    0.6666666666666666
    """
    rows = rows_of(y_true, y_score, sample_weight, pos_label, groups, positives=True)
    top = _top_of_groups(rows, k)
    return _averaged(top.found, top.positives, average)


@metric
def precision_at_quantile(
    y_true: ArrayLike, y_score: ArrayLike, *, tau: float, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    r"""Share of positives among the best :math:`\tau` of the rows ("accuracy at the top").

    The list has length :math:`k = \tau n`, which need not be an integer: the last row counts in part.

    Ties: the expected value over random tie-breaking, as in `precision_at_k`.

    Parameters
    ----------
    {rows}
    tau : float
        Share of the rows, in (0, 1].
    {weights_and_share}

    Examples
    --------
    >>> from toprank.metrics import precision_at_quantile
    >>> precision_at_quantile([1, 0, 1, 0, 0, 0, 0, 0], [8, 7, 6, 5, 4, 3, 2, 1], tau=0.25)
    0.5
    """
    rows = rows_of(y_true, y_score, sample_weight, pos_label)
    top = _top_of_groups(rows, share=check_share("tau", tau, low_open=True))
    return _averaged(top.found, top.taken, "micro")


@metric
def enrichment_factor(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    fraction: float = 0.01,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    r"""How many times richer in positives the best `fraction` of the list is than the whole.

    .. math:: \mathrm{EF}_\chi = \frac{\text{precision among the best } \chi n \text{ rows}}{m / n}

    1 for a random order, at most :math:`\min(1/\chi,\, n/m)`. The usual figure of virtual screening.

    Ties: the expected value over random tie-breaking, as in `precision_at_k`; :math:`\chi n` need not be an integer.

    Parameters
    ----------
    {rows}
    fraction : float, default=0.01
        Share of the list, in (0, 1].
    {weights}

    Returns
    -------
    float
        Non-negative.

    Examples
    --------
    >>> from toprank.metrics import enrichment_factor
    >>> enrichment_factor([1, 1, 0, 0, 0, 0, 0, 0], [8, 7, 6, 5, 4, 3, 2, 1], fraction=0.25)
    4.0
    """
    rows = rows_of(y_true, y_score, sample_weight, pos_label, positives=True)
    top = _top_of_groups(rows, share=check_share("fraction", fraction, low_open=True))
    return float(top.found[0] / top.taken[0] / (top.positives[0] / top.size[0]))


class _Top(NamedTuple):
    """Per group: expected weight of positives among the k best, weight taken, weight of all positives and of all."""

    found: NDArray[Any]
    taken: NDArray[Any]
    positives: NDArray[Any]
    size: NDArray[Any]


def _top_of_groups(rows: Any, k: float = 1.0, share: float | None = None) -> _Top:
    """The k best of each group, or without groups the best share."""
    if not k > 0:
        raise InputError.of("k", k, "must be positive")
    if rows.group is None:
        return _top_of_runs(rows.runs_around(Cut(k, share)), k, share)
    tops = rows.over_groups(_top_of_runs, k, None, True)
    return _Top(*map(np.concatenate, zip(*tops, strict=True)))


def _top_of_runs(runs: TieRuns, k: float, share: float | None, grouped: bool = False) -> _Top:
    size = np.bincount(runs.group, weights=runs.weight)
    starts = np.searchsorted(runs.group, np.arange(len(size)))
    before = sums_before(runs.weight, starts)
    error = sums_before(rounding_errors(before, runs.weight), starts)  # small weights after large ones count, too
    rest = 0.0
    if share == 1:
        k = np.inf
    elif share is not None:
        exact = Fraction(share) * sum(map(Fraction, (before[-1], error[-1], runs.weight[-1])))
        k, rest = float(exact), float(exact - Fraction(float(exact)))
    elif not grouped and k > size[0] * (1 + ROUNDING):
        text = "{k=:g} is longer than the list, which has {n:g} rows (sum of weights); use k <= {n:g}"
        raise InputError.saying(text, k=k, n=size[0])
    taken = np.clip(((k - before) + (rest - error)) / runs.weight, 0.0, 1.0)
    # sums of the same shape: rounding leaves what was found no larger than what was taken
    return _Top(
        found=np.bincount(runs.group, weights=taken * runs.positives),
        taken=np.bincount(runs.group, weights=taken * runs.weight),
        positives=np.bincount(runs.group, weights=runs.positives),
        size=size,
    )


def _averaged(part: NDArray[Any], whole: NDArray[Any], average: Average) -> float:
    if average == "micro":
        return float(part.sum() / whole.sum())
    if average == "macro":
        return float(np.mean(part[whole > 0] / whole[whole > 0]))
    raise ValueError(f"average must be 'micro' or 'macro', got {average!r}")
