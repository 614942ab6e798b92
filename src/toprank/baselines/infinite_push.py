"""The infinite push, and its sparse form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, eye_array, hstack, issparse, vstack

from toprank.arrays import Floats, Mask, Rows
from toprank.baselines._linear import WeightedBaseline
from toprank.baselines._risk import TwoClassRisk
from toprank.baselines.cutting_planes import Minimum
from toprank.baselines.svm_pauc import PartialAUCRisk
from toprank.checks import require_choice
from toprank.matrices.dense_or_sparse import matvec, transpose_matvec
from toprank.solvers.problem import Recorder, relative_gap

PENALTIES = ("l2", "l1")
# Negatives that join a linear program at a time, at most.
_JOINING = 50


class SparsePush(TwoClassRisk):
    r"""The infinite push with an L1 penalty, by linear programs with a growing part of the negatives.

    .. math:: \min_{w, t, \xi \ge 0} \alpha \|w\|_1 + \sum_i a_i \xi_i, \qquad
              \xi_i \ge 1 + t - w^\top x_i^+, \qquad t \ge w^\top x_j^-

    1. Solve the program with the negatives so far. Its multipliers y of the positives and p of the negatives, scaled so
       that :math:`\|\sum_i y_i x_i^+ - \sum_j p_j x_j^-\|_\infty \le \alpha`, are a point of the dual of the whole
       problem: Σy is a lower bound of its optimum.
    2. The objective of its w over all negatives is an upper bound. Stop when both agree.
    3. The negatives above t join, the highest first.
    """

    def __init__(self, X: Any, positive: Mask, weights: Floats, alpha: float, verbose: int) -> None:
        super().__init__(positive, weights)
        self.X, self.alpha, self.verbose = X, alpha, verbose

    def minimum(self, tol: float, max_iter: int) -> Minimum:
        """Steps 1 to 3."""
        recorder, w = Recorder(self.verbose), np.zeros(self.X.shape[1])
        scores = np.zeros(self.n_rows)
        chosen = self.negatives[:: max(1, len(self.negatives) // _JOINING)]
        best, primal, bound, n_iter = w, 1.0, 0.0, 0
        recorder.record(0, primal, bound)
        while n_iter < max_iter and relative_gap(primal, bound) > tol:
            n_iter += 1
            w, level, lower = self._program(chosen)
            scores = matvec(self.X, w)
            recorder.passes += 2
            value = self._objective(w, scores)
            if value < primal:
                best, primal = w, value
            bound = max(bound, lower)
            recorder.record(n_iter, primal, bound)
            above = np.setdiff1d(self.negatives[scores[self.negatives] > level], chosen)
            if not len(above):
                break
            joining = above[np.argsort(-scores[above], kind="stable")[:_JOINING]]
            chosen = np.append(chosen, joining)
        scores = matvec(self.X, best)
        return Minimum(best, scores, primal, bound, n_iter, relative_gap(primal, bound) <= tol, recorder.rows)

    def _objective(self, w: Floats, scores: Floats) -> float:
        losses = np.maximum(1.0 + scores[self.negatives].max() - scores[self.positives], 0.0)
        return float(self.alpha * np.abs(w).sum() + self.positive_share @ losses)

    def _program(self, chosen: Rows) -> tuple[Floats, float, float]:
        """The w and the t of the program with these negatives, and a lower bound of the whole problem."""
        n_columns, m, k = self.X.shape[1], len(self.positives), len(chosen)
        A, B = (_as_csr(self.X[rows]) for rows in (self.positives, chosen))
        upper = hstack([-A, A, csr_array(np.ones((m, 1))), -eye_array(m)])
        lower = hstack([B, -B, csr_array(-np.ones((k, 1))), csr_array((k, m))])
        costs = np.concatenate([np.full(2 * n_columns, self.alpha), [0.0], self.positive_share])
        limits = np.append(-np.ones(m), np.zeros(k))
        bounds = [(0, None)] * (2 * n_columns) + [(None, None)] + [(0, None)] * m
        found = linprog(costs, vstack([upper, lower]).tocsr(), limits, bounds=bounds, method="highs")
        if found.x is None:
            raise RuntimeError(f"the linear program of the infinite push has no solution: {found.message}")
        w = found.x[:n_columns] - found.x[n_columns : 2 * n_columns]
        return w, float(found.x[2 * n_columns]), self._bound(-found.ineqlin.marginals, chosen)

    def _bound(self, multipliers: Floats, chosen: Rows) -> float:
        m = len(self.positives)
        y, p = np.clip(multipliers[:m], 0.0, self.positive_share), np.maximum(multipliers[m:], 0.0)
        if not (y.any() and p.any()):
            return 0.0
        rows = np.zeros(self.n_rows)
        rows[self.positives], rows[chosen] = y, -p * (y.sum() / p.sum())
        slope = float(np.abs(transpose_matvec(self.X, rows)).max())
        return float(y.sum()) * min(1.0, self.alpha / max(slope, np.finfo(float).tiny))


def _as_csr(rows: Any) -> Any:
    return csr_array(rows, dtype=np.float64) if issparse(rows) else csr_array(np.asarray(rows, dtype=np.float64))


@dataclass(eq=False, repr=False, kw_only=True)
class InfinitePush(WeightedBaseline):
    r"""Push the highest negative down by the hinge loss, with an L2 or an L1 penalty: infinite push and L1SVIP.

    .. math:: \min_w \mathrm{penalty}(w) + \max_j \frac1m \sum_{i=1}^m \max(0, 1 - w^\top x_i^+ + w^\top x_j^-)

    with :math:`\frac\alpha2 \|w\|^2` or :math:`\alpha \|w\|_1`. The loss rises with the score of the negative, so its
    maximum is at the highest one: with the L2 penalty this is the problem of ``TopPush(surrogate="hinge")``, solved
    here without its dual. It is here for comparison with the literature; with the L1 penalty most coefficients are
    zero.

    Parameters
    ----------
    penalty : {"l2", "l1"}, default="l2"
        By cutting planes, or by linear programs with a growing part of the negatives (sparse support vector infinite
        push).
    alpha : float, default=0.1
        Weight of the penalty; the loss is 1 at w = 0.
    {linear_parameters}
    {pos_label}

    Attributes
    ----------
    {linear_attributes}
    {certificate}
    {classes}

    References
    ----------
    Agarwal, The infinite push: a new support vector ranking algorithm that directly optimizes accuracy at the absolute
    top of the list, SDM 2011.
    Rakotomamonjy, Sparse support vector infinite push, ICML 2012.

    Examples
    --------
    >>> from toprank.baselines import InfinitePush
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, separation=4.0, random_state=0)
    >>> dense = InfinitePush(alpha=0.05).fit(X, y)
    >>> sparse = InfinitePush(alpha=0.05, penalty="l1").fit(X, y)
    >>> bool(dense.dual_gap_ <= 1e-4 and sparse.dual_gap_ <= 1e-4)
    True
    >>> bool((sparse.coef_ == 0).sum() > (dense.coef_ == 0).sum())
    True
    """

    over: ClassVar[str] = "negatives"
    remedies = "lower alpha, or use another method: a single outlier can be the highest negative in every direction"

    penalty: str = "l2"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_choice("penalty", self.penalty, PENALTIES)

    def _minimum(self, X: Any, positive: Mask, weights: Floats) -> Minimum:
        if self.penalty == "l2":
            return self._by_cutting_planes(X, PartialAUCRisk(positive, weights, 0.0, None))
        problem = SparsePush(X, positive, weights, float(self.alpha), self.verbose)
        return problem.minimum(float(self.tol), int(self.max_iter))
