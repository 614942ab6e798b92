"""Metrics that read one point or one part of the ROC or precision-recall curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.metrics._metric import Weights, metric
from toprank.ranking.tie_runs import ROUNDING, Cut, TieRuns, check_share, rows_of


@metric
def tpr_at_fpr(
    y_true: ArrayLike, y_score: ArrayLike, *, max_fpr: float, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    r"""Largest true positive rate that a threshold reaches with few enough false alarms.

    .. math:: \max_t \{\, \mathrm{TPR}(t) : \mathrm{FPR}(t) \le \text{max\_fpr} \,\}

    With ``max_fpr=0`` this is `positives_at_top`.

    Ties: pessimistic, by definition; a threshold takes all rows of a score or none, and nothing is interpolated.

    Parameters
    ----------
    {rows}
    max_fpr : float
        The false-alarm budget, in [0, 1].
    {weights_and_share}

    Examples
    --------
    >>> from toprank.metrics import tpr_at_fpr
    >>> tpr_at_fpr([1, 0, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], max_fpr=0.5)
    0.6666666666666666
    """
    max_fpr = check_share("max_fpr", max_fpr)
    rows = rows_of(y_true, y_score, sample_weight, pos_label, positives=True, negatives=True)
    runs = rows.runs_around(Cut(share=max_fpr, negatives=True))
    allowed = max_fpr * runs.false_positives[-1] * (1 + ROUNDING)
    n_runs = np.searchsorted(runs.false_positives, allowed, side="right")
    return float(runs.true_positives[n_runs - 1] / runs.true_positives[-1]) if n_runs else 0.0


@metric
def precision_at_recall(
    y_true: ArrayLike, y_score: ArrayLike, *, min_recall: float, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    r"""Largest precision that a threshold reaches while it finds enough of the positives.

    .. math:: \max_t \{\, \mathrm{precision}(t) : \mathrm{recall}(t) \ge \text{min\_recall} \,\}

    Ties: pessimistic, by definition; a threshold takes all rows of a score or none, and nothing is interpolated.

    Parameters
    ----------
    {rows}
    min_recall : float
        Share of the positives to find, in [0, 1]; some row is always taken.
    {weights_and_share}

    Examples
    --------
    >>> from toprank.metrics import precision_at_recall
    >>> precision_at_recall([1, 0, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], min_recall=0.5)
    0.6666666666666666
    """
    min_recall = check_share("min_recall", min_recall)
    rows = rows_of(y_true, y_score, sample_weight, pos_label, positives=True)
    return max(rows.over_parts(_largest_precision, min_recall))


def _largest_precision(runs: TieRuns, min_recall: float) -> float:
    """The largest precision at the end of a run of a part of the list; zero if none finds enough."""
    wanted = min_recall * runs.all_positives * (1 - ROUNDING)
    first = np.searchsorted(runs.true_positives, wanted, side="left")
    return float(np.max(runs.true_positives[first:] / runs.end[first:], initial=0.0))


@metric
def partial_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    max_fpr: float = 1.0,
    min_tpr: float = 0.0,
    standardized: bool = True,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    r"""Area under the part of the ROC curve with few false alarms and, if asked, many positives found.

    .. math:: A = \int_0^{\text{max\_fpr}} \max(\mathrm{TPR}(u) - \text{min\_tpr},\, 0)\, du

    One-way with ``min_tpr=0``, two-way otherwise. Standardised (McClish), :math:`A` is mapped to 0.5 for chance,
    the diagonal, and 1 for a perfect order: :math:`\frac12 (1 + (A - A_0) / (A_1 - A_0))` with
    :math:`A_0 = \frac12 \max(\text{max\_fpr} - \text{min\_tpr}, 0)^2` and
    :math:`A_1 = \text{max\_fpr}\,(1 - \text{min\_tpr})`.

    Ties: a run of equal scores is a straight line of the curve, as in `sklearn.metrics.roc_auc_score`, with
    which the one-way score agrees.

    Parameters
    ----------
    {rows}
    max_fpr : float, default=1.0
        Right end of the area, in (0, 1].
    min_tpr : float, default=0.0
        Lower end of the area, in [0, 1).
    standardized : bool, default=True
        Whether to return the standardised score or the raw area.
    {weights}

    Returns
    -------
    float
        Raw: in [0, max_fpr · (1 − min_tpr)]. Standardised: at most 1.

    Examples
    --------
    >>> from toprank.metrics import partial_auc_score
    >>> y, score = [1, 0, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    >>> round(partial_auc_score(y, score, max_fpr=0.5, standardized=False), 4)
    0.2222
    >>> round(partial_auc_score(y, score, max_fpr=0.5), 4)
    0.6296
    """
    max_fpr = check_share("max_fpr", max_fpr, low_open=True)
    min_tpr = check_share("min_tpr", min_tpr)
    if min_tpr == 1:
        raise ValueError("min_tpr=1 leaves no area above it; use a value below 1")
    rows = rows_of(y_true, y_score, sample_weight, pos_label, positives=True, negatives=True)
    right_end = None if max_fpr == 1 else Cut(share=max_fpr, negatives=True)
    largest = max_fpr * (1 - min_tpr)
    area = min(sum(rows.over_parts(_area, max_fpr, min_tpr, down_to=right_end)), largest)  # but for rounding
    if not standardized:
        return area
    chance = 0.5 * max(max_fpr - min_tpr, 0.0) ** 2
    return 0.5 * (1 + (area - chance) / (largest - chance))


def _area(runs: TieRuns, max_fpr: float, min_tpr: float) -> float:
    """Area under a part of the curve."""
    fpr = np.append(runs.before[1], runs.false_positives) / runs.all_negatives
    tpr = np.append(runs.before[0], runs.true_positives) / runs.all_positives
    if fpr[0] >= max_fpr:
        return 0.0
    fpr, tpr = _cut_right(fpr, tpr, max_fpr)
    if tpr[-1] <= min_tpr:
        return 0.0
    tpr, fpr = _cut_left(tpr, fpr, min_tpr)
    return float(np.trapezoid(tpr - min_tpr, fpr))


@metric
def roc_auc_score(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    r"""Area under the whole ROC curve: the probability that a positive is above a negative.

    .. math:: \mathrm{AUC} = \frac{1}{mn} \sum_{i=1}^m \sum_{j=1}^n ([s_i^+ > s_j^-] + \tfrac12 [s_i^+ = s_j^-])

    The value of `sklearn.metrics.roc_auc_score`, which has no `pos_label`: there the last label in sorted order is
    positive. So with a positive class that is not the last one, ``scoring="roc_auc"`` of scikit-learn's searches gives
    1 − AUC; ``scoring=toprank.metrics.get_scorer("roc_auc")`` gives the AUC.

    Ties: a tie counts one half.

    Parameters
    ----------
    {rows}
    {weights_and_share}

    Examples
    --------
    >>> from toprank.metrics import roc_auc_score
    >>> roc_auc_score(["fraud", "ok", "fraud", "ok"], [0.9, 0.5, 0.5, 0.1], pos_label="fraud")
    0.875
    """
    return partial_auc_score(y_true, y_score, standardized=False, sample_weight=sample_weight, pos_label=pos_label)


@metric
def optroc_accuracy(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: Weights = None, pos_label: Any = None
) -> float:
    r"""Accuracy at the optimal operating point of the ROC curve.

    .. math:: \max_t \frac{m\,\mathrm{TPR}(t) + n\,(1 - \mathrm{FPR}(t))}{m + n}

    the point that a line of slope :math:`n/m` touches first when it is moved down from the upper left corner. The
    thresholds that take every row or none are points of the curve too. The threshold is chosen on the data it is
    evaluated on, so the value is optimistic for small samples.

    Ties: a threshold takes all rows of a score or none.

    Parameters
    ----------
    {rows}
    {weights}

    Returns
    -------
    float
        In [0.5, 1]: no less than the share of the larger class.

    Examples
    --------
    >>> from toprank.metrics import optroc_accuracy
    >>> optroc_accuracy([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.1])
    0.8
    """
    return max(rows_of(y_true, y_score, sample_weight, pos_label).over_parts(_largest_accuracy))


def _largest_accuracy(runs: TieRuns) -> float:
    """The largest accuracy of a threshold at the end of a run of a part of the list, or of none."""
    gain = max(0.0, float(np.max(runs.true_positives - runs.false_positives)))
    return (gain + runs.all_negatives) / (runs.all_positives + runs.all_negatives)


def _cut_right(x: Any, y: Any, limit: float) -> tuple[Any, Any]:
    """Keep the part of the rising polygon (x, y) with x <= limit."""
    n_kept = np.searchsorted(x, limit, side="right")
    if n_kept == len(x):
        return x, y
    step = (limit - x[n_kept - 1]) / (x[n_kept] - x[n_kept - 1])
    height = y[n_kept - 1] + step * (y[n_kept] - y[n_kept - 1])
    return np.append(x[:n_kept], limit), np.append(y[:n_kept], height)


def _cut_left(x: Any, y: Any, limit: float) -> tuple[Any, Any]:
    """Keep the part of the rising polygon (x, y) with x >= limit, by turning it round."""
    right, turned = _cut_right(-x[::-1], -y[::-1], -limit)
    return -right[::-1], -turned[::-1]
