"""The structural support vector machine of mean average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.baselines._linear import LinearBaseline
from toprank.baselines._risk import RiskValue, TwoClassRisk, descending, shared_by_ties
from toprank.baselines.cutting_planes import Minimum
from toprank.compiled import compiled


@compiled(nogil=True)
def find_starts(ends: Any, t: Any, harmonic: Any, starts: Any, values: Any) -> None:
    """The best place of each negative, every second one of a stride between those of the stride before.

    The positives k behind a place cost negative j the precision Σ k / ((k + j − 1)(k + j)); `ends` are the sums of
    their scores.
    """
    m, n = len(ends) - 1, len(t)
    stride = 1
    while 2 * stride <= n:
        stride *= 2
    while stride >= 1:
        for j in range(stride - 1, n, 2 * stride):
            low = starts[j - stride] if j >= stride else 0
            high = starts[j + stride] if j + stride < n else m
            value = -np.inf
            for place in range(low, max(high, low) + 1):  # rounding errors may put the ends the other way round
                lost = (j + 1) * (harmonic[m + j + 1] - harmonic[place + j + 1])
                lost -= j * (harmonic[m + j] - harmonic[place + j])
                total = lost / m + 2.0 / (m * n) * ((m - place) * t[j] - ends[place])
                if total > value:
                    value, starts[j] = total, place
            values[j] = value
        stride //= 2


class AveragePrecisionRisk(TwoClassRisk):
    """The largest value over all rankings of one minus average precision, plus the change in the sum over pairs.

    With both classes in the order of their scores, negative j above positive k costs k / ((k + j − 1)(k + j)) of
    precision over m, which is j / (k + j) − (j − 1) / (k + j − 1), and gains 2 (tⱼ − sₖ) / (mn). So negative j goes
    above the positives from the one on where the sum of both to the end is largest. That sum is a difference of
    harmonic numbers and of sums of scores, and the place where it is largest never moves up with j: of every other
    negative it is looked for between the places of its neighbours, O((m + n) log n) in all.
    """

    def __init__(self, positive: Mask, weights: Floats) -> None:
        super().__init__(positive, weights)
        n_rows = np.arange(1, self.n_rows + 1)
        self.harmonic = np.append(0.0, np.cumsum(1.0 / n_rows))

    def __call__(self, scores: Floats) -> RiskValue:
        """The risk at the scores of all rows."""
        m, n = len(self.positives), len(self.negatives)
        first, second = descending(scores[self.positives]), descending(scores[self.negatives])
        s, t = scores[self.positives][first], scores[self.negatives][second]
        start, values = self._starts(s, t)
        above = np.cumsum(np.bincount(start, minlength=m + 1), dtype=np.float64)[:m]  # negatives above each positive
        of_positives, of_negatives = np.empty(m), np.empty(n)
        of_positives[first] = shared_by_ties(np.asarray(above * (-2.0 / (m * n))), s, np.ones(m))
        of_negatives[second] = shared_by_ties(np.asarray((m - start) * (2.0 / (m * n))), t, np.ones(n))
        return self.combined(float(values.sum()), of_positives, of_negatives)

    def _starts(self, s: Floats, t: Floats) -> tuple[Rows, Floats]:
        """For each negative the number of positives above it, and the sum over those below it."""
        ends = np.append(np.cumsum(s[::-1])[::-1], 0.0)
        starts, values = np.zeros(len(t), np.intp), np.zeros(len(t))
        find_starts(ends, t, self.harmonic, starts, values)
        return starts, values


@dataclass(eq=False, repr=False, kw_only=True)
class SVMMAP(LinearBaseline):
    r"""Maximise average precision by a structural SVM.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \max_\pi \left( 1 - \mathrm{AP}(\pi) + \frac{1}{mn} \sum_{i=1}^m
              \sum_{j=1}^n (\pi_{ij} - 1) (w^\top x_i^+ - w^\top x_j^-) \right)

    over all rankings π, where :math:`\pi_{ij}` is 1 where positive i is above negative j, else −1. The ranking that
    violates most is found exactly, in O(N log N). It is here for comparison with the literature.

    Average precision counts positions, so there are no weights of rows.

    Parameters
    ----------
    alpha : float, default=0.001
        Weight of the penalty ``alpha / 2 * ||w||²``. The sum over pairs is a mean, so the C of the reference is
        1 / alpha, and values are smaller than those for a loss of each row.
    {linear_parameters}
    {pos_label}

    Attributes
    ----------
    {linear_attributes}
    {certificate}
    {classes}

    References
    ----------
    Yue, Finley, Radlinski and Joachims, A support vector method for optimizing average precision, SIGIR 2007.

    Examples
    --------
    >>> from sklearn.metrics import average_precision_score
    >>> from toprank.baselines import SVMMAP
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, random_state=0)
    >>> model = SVMMAP().fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    >>> bool(1 - average_precision_score(y, model.decision_function(X)) <= model.objective_)
    True
    """

    alpha: float = 1e-3

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to learn from; standardise them first. float32 stays float32.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.

        {fitted}
        """
        return self._fit_guarded(X, y, None)

    def _minimum(self, X: Any, positive: Mask, weights: Floats) -> Minimum:
        risk = AveragePrecisionRisk(positive, weights)
        return self._by_cutting_planes(X, risk)
