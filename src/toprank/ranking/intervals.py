"""Confidence limits of the displays, and what they cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtri, stdtrit

from toprank.checks import require_confidence
from toprank.ranking.ranked_list import RankedList
from toprank.ranking.tie_runs import Floats


def clopper_pearson(successes: Floats, trials: Floats, confidence: float) -> tuple[Floats, Floats]:
    r"""Exact two-sided limits of a binomial proportion.

    .. math:: L = B^{-1}(\tfrac{\delta}{2};\, s,\, n - s + 1), \quad U = B^{-1}(1 - \tfrac{\delta}{2};\, s + 1,\, n - s)

    for s successes of n, where :math:`B^{-1}` is the quantile of the beta distribution and δ = 1 − confidence.

    For the precision of the k best rows: given the scores, the labels of these rows are independent with their own
    probabilities, and the limits cover the mean of these probabilities, which is the precision that new labels for the
    same scores would have on average. Unequal probabilities make the count less variable than a binomial one, so the
    coverage is no smaller. It holds for each k alone, not for all k at once. Weights count as repeated rows, so weights
    that are not counts give limits that are too narrow or too wide. Successes that are not whole, as those of a list
    that ends inside a tie run, use the same formula.
    """
    require_confidence(confidence)
    tail = (1 - confidence) / 2
    failures = np.maximum(trials - successes, 0.0)
    return one_sided_lower(successes, failures, 1 - tail), one_sided_upper(successes, failures, 1 - tail)


def one_sided_upper(successes: Floats, failures: Floats, confidence: float) -> Floats:
    """The exact upper limit of a proportion; 1 without a failure."""
    some = failures > 0
    return np.where(some, betaincinv(successes + 1, np.where(some, failures, 1.0), confidence), 1.0)


def one_sided_lower(successes: Floats, failures: Floats, confidence: float) -> Floats:
    """The exact lower limit of a proportion; 0 without a success."""
    return 1 - one_sided_upper(failures, successes, confidence)


@dataclass(frozen=True)
class Band:
    """A mean curve with limits on both sides."""

    x: Floats
    mean: Floats
    lower: Floats
    upper: Floats


def fold_band(x: Floats, values: Floats, test_over_train: float, confidence: float, highest: float = 1.0) -> Band:
    r"""Mean of the curves of K folds and a pointwise confidence band for it.

    .. math:: \bar y \pm t_{K-1}\, s\, \sqrt{\tfrac{1}{K} + \tfrac{n_\text{test}}{n_\text{train}}}

    the corrected resampled t interval of Nadeau and Bengio: training sets of different folds overlap, so the curves are
    not independent, and s/√K alone would be too narrow. It covers, approximately and for each x alone, the
    expected value for models trained on as many rows as in a fold. The limits are cut at 0 and at the `highest` value.
    """
    require_confidence(confidence)
    n_folds = len(values)
    mean = values.mean(axis=0)
    quantile = stdtrit(n_folds - 1, 0.5 + confidence / 2)
    half = quantile * values.std(axis=0, ddof=1) * np.sqrt(1 / n_folds + test_over_train)
    return Band(x, mean, np.maximum(mean - half, 0.0), np.minimum(mean + half, highest))


def delong(ranked: RankedList, confidence: float) -> tuple[float, float]:
    r"""Approximate limits of the area under the ROC curve.

    .. math:: A \pm z \sqrt{\mathrm{var}(V) / m + \mathrm{var}(U) / n}

    where V are the shares of the n negatives below each positive, and U those of the m positives above each negative,
    a tie counting one half. Cut at 0 and 1; nan with fewer than two rows of a class.
    """
    runs, m, n = ranked.runs, ranked.positives, ranked.negatives
    if min(m, n) < 2:
        return np.nan, np.nan
    below = (n - runs.false_positives + runs.negatives / 2) / n
    above = (runs.true_positives - runs.positives / 2) / m
    area = float(below @ runs.positives / m)
    variance = (below - area) ** 2 @ runs.positives / (m - 1) / m + (above - area) ** 2 @ runs.negatives / (n - 1) / n
    half = float(ndtri(0.5 + confidence / 2) * np.sqrt(variance))
    return max(area - half, 0.0), min(area + half, 1.0)


def share_limits(successes: float, trials: float, confidence: float) -> tuple[float, float]:
    """Exact limits of one proportion, see `clopper_pearson`."""
    lower, upper = clopper_pearson(np.array([successes]), np.array([trials]), confidence)
    return float(lower[0]), float(upper[0])
