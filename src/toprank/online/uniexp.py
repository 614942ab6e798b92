"""Online ranking by a univariate exponential loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toprank.arrays import Floats
from toprank.compiled import compiled
from toprank.online._base import GradientRanker
from toprank.online._rows import SCALE, Rows, Scores, discount, record, scores_of, sparse_dot
from toprank.saved_state import Array, Schema


@dataclass(eq=False, repr=False, kw_only=True)
class UniExp(GradientRanker):
    r"""Online ranking by a univariate loss: exponential, with both classes weighted alike.

    .. math:: \frac{n_t}{2 n_{y,t}} \exp(-y\, w^\top x) + \frac\alpha2 \|w\|^2

    for a row x of class :math:`y = \pm 1`, where :math:`n_{y,t}` of the :math:`n_t` rows so far are of its class. Its
    minimiser over all functions ranks as well as that of the exponential loss over pairs. One gradient step a row, at
    the cost of its entries: the fastest of the online rankers, and a baseline for the others.

    Parameters
    ----------
    learning_rate : float, default=0.01
        Length of the step.
    alpha : float, default=1e-4
        Weight of the penalty; w is divided by 1 + learning_rate·alpha after each row.
    {threshold}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    A step may not raise m = y·wᵀx by more than max(1, 1 − m): the exponential of a row far on the wrong side would
    throw w away. There is no intercept: rows should have a mean near zero. A sample weight multiplies the loss of its
    row, and counts in the numbers of rows.

    References
    ----------
    Kotłowski, Dembczyński and Hüllermeier, Bipartite ranking through minimization of univariate loss, ICML 2011.

    Examples
    --------
    >>> from toprank import UniExp
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, separation=4.0, random_state=0)
    >>> bool(UniExp().fit(X, y).predict(X)[y == 1].mean() > 0.9)
    True
    """

    saved_state: ClassVar[Schema] = GradientRanker.saved_state.extended(
        {"base_": Array("f8", ("n_features_in_",)), "scale_": SCALE, "count_": Array("f8", (2,), low=0)}
    )

    def _start(self, n_features: int) -> None:
        self.base_ = np.zeros(n_features)
        self.scale_ = np.ones(1)
        self.count_ = np.zeros(2)

    def _learn(self, rows: Rows, scores: Scores) -> None:
        rate, alpha = float(self.learning_rate), float(self.alpha)
        learn_pointwise(rows, self.base_, self.scale_, self.count_, scores, rate, alpha)

    def _weights(self) -> Floats:
        return np.asarray(self.scale_[0] * self.base_)

    def _scores(self, X: Any) -> Floats:
        return np.asarray(self.scale_[0] * scores_of(X, self.base_))


@compiled(nogil=True)
def learn_pointwise(rows: Any, base: Any, scale: Any, count: Any, scores: Any, rate: Any, alpha: Any) -> None:
    """Learn from rows, one after the other; w = scale·base, so that the penalty costs one multiplication."""
    shrinkage = 1.0 / (1.0 + rate * alpha)
    for t in range(len(rows.positive)):
        start, stop = rows.indptr[t], rows.indptr[t + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        label = 1 if rows.positive[t] else 0
        score = scale[0] * sparse_dot(base, indices, values)
        record(scores.recent, scores.number, label, score)
        count[label] += rows.weights[t]
        sign = 2.0 * label - 1.0
        squared = 0.0
        for k in range(len(values)):
            squared += values[k] * values[k]
        if squared > 0.0:
            loss = rows.weights[t] * (count[0] + count[1]) / (2.0 * count[label]) * np.exp(-sign * score)
            step = min(rate * loss, max(1.0, 1.0 - sign * score) / squared)
            for k in range(len(indices)):
                base[indices[k]] += sign * step * values[k] / scale[0]
        discount(base, scale, shrinkage)
