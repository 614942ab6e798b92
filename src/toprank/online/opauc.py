"""One-pass AUC optimisation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from toprank.arrays import Floats
from toprank.checks import require_count
from toprank.online._base import GradientRanker, require_room, seed_of, started_with
from toprank.online._low_rank import LowRank, learn_low_rank
from toprank.online._rows import RANDOM, SCALE, Rows, Scores
from toprank.online._statistics import STATISTICS, Statistics, learn_statistics, statistics_of_no_rows
from toprank.saved_state import LARGEST_COUNT, Array, Known, Schema, count


def _is_exact(known: Known) -> bool:
    return known["started_with_"]["rank"] is None


def _has_rank(known: Known) -> bool:
    return not _is_exact(known)


def _rank(known: Known) -> int:
    return int(known["started_with_"]["rank"])


def _width(known: Known) -> int:
    return 2 * (_rank(known) + 1)


@dataclass(eq=False, repr=False, kw_only=True)
class OPAUC(GradientRanker):
    r"""One-pass AUC optimisation: the square loss over all pairs seen, from means and covariances.

    For a new row :math:`x` of class :math:`y = \pm 1`, with the mean c and the covariance S of the other class so far,
    a gradient step on

    .. math:: \frac12 \operatorname{mean}_{x'} (1 - y\, w^\top (x - x'))^2 + \frac\alpha2 \|w\|^2, \quad
              \nabla = (w^\top (x - c) - y)(x - c) + S w + \alpha w.

    No row is kept, and all rows count. The covariances of both classes are 2d² numbers and a row costs O(d²), for
    sparse rows too; with `rank` they are replaced by random projections, and a row costs O(rank·entries + rank²),
    whatever d is.

    Parameters
    ----------
    learning_rate : float, default=0.01
        Length of the step. It is bounded by 1 / (2α + ‖x − c‖² + tr S), the inverse of a bound of the curvature:
        longer steps would diverge.
    alpha : float, default=1e-4
        Weight of the penalty.
    rank : int, optional
        Rank τ of the approximation of the covariances, such as 50. None is exact.
    {threshold}
    random_state : int, RandomState or None, default=None
        Seed of the projections.

    Attributes
    ----------
    {attributes}

    Notes
    -----
    Rows that come before the first one of the other class are counted, without a step. The projections are by random
    signs, Z = Σⱼ (xⱼ − c)rⱼᵀ/√τ with S ≈ ZZᵀ/n, and c is subtracted as it is now, not as it was when the row came; the
    paper draws normal numbers. A sample weight multiplies the step of its row, and the row counts that many times in
    mean and covariance.

    References
    ----------
    Gao, Jin, Zhu and Zhou, One-pass AUC optimization, ICML 2013.

    Examples
    --------
    >>> from toprank import OPAUC
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, separation=4.0, random_state=0)
    >>> bool(OPAUC().fit(X, y).predict(X)[y == 1].mean() > 0.9)
    True
    >>> bool(OPAUC(rank=5, random_state=0).fit(X, y).predict(X)[y == 1].mean() > 0.9)
    True
    """

    _lasting = (*GradientRanker._lasting, "rank")

    saved_state: ClassVar[Schema] = GradientRanker.saved_state.extended(
        {"started_with_": started_with(rank=count(1, none=True))}
        | {name: replace(rule, when=_is_exact) for name, rule in STATISTICS.items()}
        | {
            "squares_": Array("f8", (0,), when=_is_exact),
            "base_": Array("f8", ("n_features_in_",), when=_has_rank),
            "scale_": replace(SCALE, when=_has_rank),
            "basis_": Array("f8", ("n_features_in_", _width), rowwise=True, when=_has_rank),
            "p_": Array("f8", (_width,), when=_has_rank),
            "products_": Array("f8", (_width,), when=_has_rank),
            "gram_": Array("f8", (_width, _width), rowwise=True, when=_has_rank),
            "total_": Array("f8", (2,), low=0),
            "rho_": Array("f8", (2, _rank), rowwise=True, when=_has_rank),
            "random_": replace(RANDOM, when=_has_rank),
            "time_": Array("i8", (1,), low=0, high=LARGEST_COUNT, when=_has_rank),
        }
    )

    rank: int | None = None
    random_state: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.rank is not None:
            require_count("rank", self.rank)

    def _start(self, n_features: int) -> None:
        if self.rank is None:
            self._keep(statistics_of_no_rows(n_features, 0, "use rank=50, or CBR(covariance='diag')"))
            return
        width = int(self.rank) + 1
        require_room(f"{2 * width} numbers for each of {n_features} features", 2 * width * n_features, "lower rank")
        self._keep(
            LowRank(
                base=np.zeros(n_features),
                scale=np.ones(1),
                basis=np.zeros((n_features, 2 * width)),
                p=np.zeros(2 * width),
                products=np.zeros(2 * width),
                gram=np.zeros((2 * width, 2 * width)),
                total=np.zeros(2),
                rho=np.zeros((2, width - 1)),
                random=np.array([seed_of(self.random_state)], np.uint64),
                time=np.zeros(1, np.int64),
            )
        )

    def _learn(self, rows: Rows, scores: Scores) -> None:
        rate, alpha = float(self.learning_rate), float(self.alpha)
        if self.rank is None:
            room = np.zeros((2, self.n_features_in_))
            learn_statistics(rows, self._state(Statistics), scores, rate, alpha, 0.0, room)
        else:
            learn_low_rank(rows, self._state(LowRank), scores, rate, alpha, np.zeros((2, len(self.p_))))

    def _weights(self) -> Floats:
        if self.rank is None:
            return self.weights_
        return np.asarray(self.scale_[0] * self.base_ + self.basis_ @ self.p_)

    def _scores(self, X: Any) -> Floats:
        if self.rank is None:
            return super()._scores(X)
        return np.asarray(self.scale_[0] * (X @ self.base_) + (X @ self.basis_) @ self.p_)
