"""The structural support vector machine of mean average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from toprank.arrays import Floats, Mask
from toprank.baselines._linear import LinearBaseline
from toprank.baselines._risk import RiskValue, TwoClassRisk, descending, shared_by_ties
from toprank.baselines.cutting_planes import Minimum

# Entries of a block of pairs.
_BLOCK_ENTRIES = 1_000_000


class AveragePrecisionRisk(TwoClassRisk):
    """The largest value over all rankings of one minus average precision, plus the change in the sum over pairs.

    With both classes in the order of their scores, negative j above positive i costs i / ((i + j − 1)(i + j)) of
    precision over m, and gains 2 (sⱼ − sᵢ) / (mn). So negative j goes above the positives from the one on where the
    sum of both is largest; as that moves down with j, these choices make a ranking.
    """

    def __call__(self, scores: Floats) -> RiskValue:
        """The risk at the scores of all rows."""
        m, n = len(self.positives), len(self.negatives)
        first, second = descending(scores[self.positives]), descending(scores[self.negatives])
        s, t = scores[self.positives][first], scores[self.negatives][second]
        value, start = 0.0, np.empty(n, np.intp)
        step = max(1, _BLOCK_ENTRIES // m)
        i = np.arange(1, m + 1)
        for block in (slice(k, min(k + step, n)) for k in range(0, n, step)):
            j = np.arange(block.start + 1, block.stop + 1)[:, None]
            gains = i / ((i + j - 1.0) * (i + j) * m) - 2.0 / (m * n) * (s - t[block, None])
            sums = np.cumsum(gains[:, ::-1], axis=1)[:, ::-1]
            start[block] = np.argmax(sums, axis=1)
            best = sums[np.arange(len(j)), start[block]]
            start[block][best <= 0] = m
            value += float(np.maximum(best, 0.0).sum())
        above: Floats = np.cumsum(np.bincount(start, minlength=m + 1), dtype=np.float64)[
            :m
        ]  # negatives above each positive
        of_positives, of_negatives = np.empty(m), np.empty(n)
        of_positives[first] = shared_by_ties(np.asarray(above * (-2.0 / (m * n))), s, np.ones(m))
        of_negatives[second] = shared_by_ties(np.asarray((m - start) * (2.0 / (m * n))), t, np.ones(n))
        return self.combined(value, of_positives, of_negatives)


@dataclass(eq=False, repr=False, kw_only=True)
class SVMMAP(LinearBaseline):
    r"""Maximise average precision by a structural SVM.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \max_\pi \left( 1 - \mathrm{AP}(\pi) + \frac{1}{mn} \sum_{i=1}^m
              \sum_{j=1}^n (\pi_{ij} - 1) (w^\top x_i^+ - w^\top x_j^-) \right)

    over all rankings π, where :math:`\pi_{ij}` is 1 where positive i is above negative j, else −1. The ranking that
    violates most is found exactly, in O(mn) a search. It is here for comparison with the literature.

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
