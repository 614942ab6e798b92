"""Adaptive online AUC maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from toprank.checks import require_positive
from toprank.online._base import GradientRanker
from toprank.online._rows import Rows, Scores
from toprank.online._statistics import STATISTICS, Statistics, learn_statistics, statistics_of_no_rows
from toprank.saved_state import Array, Schema


@dataclass(eq=False, repr=False, kw_only=True)
class AdaOAM(GradientRanker):
    r"""Adaptive online AUC maximisation: the gradients of `OPAUC` with a step of its own for each feature.

    .. math:: w_i \leftarrow w_i - \frac{\eta\, g_i}{\delta + \sqrt{\sum_{s \le t} g_{s,i}^2}}

    where g is the gradient of the square loss over all pairs of the new row with rows of the other class, and of the
    penalty; see `OPAUC`. Features that seldom matter take longer steps. It holds 2d² numbers and costs O(d²) a row, for
    sparse rows too.

    Parameters
    ----------
    learning_rate : float, default=0.1
        η.
    alpha : float, default=1e-4
        Weight of the penalty ``alpha / 2 * ||w||²``.
    delta : float, default=0.5
        Bounds the first steps.
    {threshold}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    The paper projects w on a ball of radius 1/√α after each step; that is left out, as adaptive steps do not diverge. A
    sample weight multiplies the gradient of its row, and the row counts that many times in mean and covariance.

    References
    ----------
    Ding, Zhao, Hoi and Ong, An adaptive gradient method for online AUC maximization, AAAI 2015.

    Examples
    --------
    >>> from toprank import AdaOAM
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, separation=4.0, random_state=0)
    >>> bool(AdaOAM().fit(X, y).predict(X)[y == 1].mean() > 0.9)
    True
    """

    saved_state: ClassVar[Schema] = GradientRanker.saved_state.extended(
        {**STATISTICS, "squares_": Array("f8", ("n_features_in_",), low=0)}
    )

    learning_rate: float = 0.1
    delta: float = 0.5

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("delta", self.delta, "use a value such as 0.5")

    def _start(self, n_features: int) -> None:
        remedy = "use OPAUC(rank=50), or CBR(covariance='diag')"
        self._keep(statistics_of_no_rows(n_features, n_features, remedy))

    def _learn(self, rows: Rows, scores: Scores) -> None:
        rate, alpha, delta = float(self.learning_rate), float(self.alpha), float(self.delta)
        room = np.zeros((2, self.n_features_in_))
        learn_statistics(rows, self._state(Statistics), scores, rate, alpha, delta, room)
