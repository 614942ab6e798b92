"""Paired tests of cross-validated scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student


def corrected_t_test(differences: ArrayLike, test_share: float) -> float:
    r"""p-value of the corrected resampled t-test of Nadeau and Bengio, two-sided.

    .. math:: t = \bar d \Big/ \sqrt{\bigl(\tfrac1J + \tfrac{n_{test}}{n_{train}}\bigr) s_d^2}, \qquad J - 1
              \text{ degrees of freedom}

    for the differences d of the scores of two models in J folds; 1 if all are zero. The scores are not independent, as
    the folds share most of their training rows; an ordinary t-test or Wilcoxon's takes them to be and finds too many
    differences. The second summand widens the variance for it.
    """
    differences = np.asarray(differences, dtype=np.float64)
    n = len(differences)
    if n < 2:
        raise ValueError(f"a paired test needs at least two folds, got {n}; use more folds or repeat them")
    mean, variance = differences.mean(), differences.var(ddof=1)
    if variance <= (1e-15 * np.abs(differences).max()) ** 2:
        return 0.0 if mean else 1.0
    statistic = mean / np.sqrt((1 / n + test_share) * variance)
    return float(2 * student.sf(abs(statistic), n - 1))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjust p-values so that all those below a level are right at once, with that error (Holm).

    The smallest is multiplied by their number, the next by one less, and so on, and none gets smaller than the one
    before it.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted
