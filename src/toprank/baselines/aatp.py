"""Accuracy at the top, by a problem for each row that may be at the quantile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toprank.arrays import Floats, Mask
from toprank.baselines._linear import LinearBaseline, WeightedBaseline
from toprank.baselines._risk import RiskValue, TwoClassRisk
from toprank.baselines.cutting_planes import Minimum, solve_cutting_planes
from toprank.checks import require_count, require_share
from toprank.estimators.back_ends import ERRORS
from toprank.formulations.thresholds import Quantile
from toprank.matrices.dense_or_sparse import transpose_matvec
from toprank.saved_state import Kind, Schema, count
from toprank.solvers.problem import Recorder


class CandidateRisk(TwoClassRisk):
    """The hinge loss of both classes, where the threshold is the score of one row."""

    def __init__(self, positive: Mask, weights: Floats, candidate: int) -> None:
        super().__init__(positive, weights)
        self.candidate = candidate
        self.negative_share = self.negative_weights / self.negative_weights.sum()

    def __call__(self, scores: Floats) -> RiskValue:
        """The risk at the scores of all rows."""
        below = 1.0 + scores[self.candidate] - scores[self.positives]
        above = 1.0 + scores[self.negatives] - scores[self.candidate]
        value = float(self.positive_share @ np.maximum(below, 0.0) + self.negative_share @ np.maximum(above, 0.0))
        of_positives, of_negatives = -self.positive_share * (below > 0), self.negative_share * (above > 0)
        found = self.combined(value, of_positives, of_negatives)
        found.gradient[self.candidate] -= of_positives.sum() + of_negatives.sum()
        return found


@dataclass(frozen=True)
class CandidateSearch:
    """The problems of the candidates, and which row is at the quantile of some scores."""

    X: Any
    positive: Mask
    weights: Floats
    alpha: float
    quantile: Quantile
    limits: dict[str, Any]

    def at_quantile(self, scores: Floats) -> int:
        """The number of the row at the quantile."""
        return int(np.argmax(self.quantile.evaluate(scores, self.weights)[1]))

    def solve(self, candidate: int) -> Minimum:
        """The minimum of the problem of a candidate, whatever its place in the list is there."""
        risk = CandidateRisk(self.positive, self.weights, candidate)
        return solve_cutting_planes(self.X, risk, self.alpha, **self.limits)

    def objective(self, found: Minimum) -> float:
        """The objective with the quantile itself."""
        risk = CandidateRisk(self.positive, self.weights, self.at_quantile(found.scores))
        return 0.5 * self.alpha * float(found.w @ found.w) + risk(found.scores).value

    def first(self) -> int:
        """The row at the quantile in the direction from the mean of the negatives to that of the positives."""
        shares = np.where(self.positive, self.weights, 0.0) / self.weights[self.positive].sum()
        shares -= np.where(self.positive, 0.0, self.weights) / self.weights[~self.positive].sum()
        return self.at_quantile(np.asarray(self.X @ transpose_matvec(self.X, shares), dtype=np.float64))

    def next(self, best: Minimum, last: Minimum, solved: set[int]) -> int:
        """The row at the quantile of the last solution, else the unsolved one nearest to that of the best."""
        candidate = self.at_quantile(last.scores)
        if candidate not in solved:
            return candidate
        distance = np.abs(best.scores - best.scores[self.at_quantile(best.scores)])
        distance[list(solved)] = np.inf
        return int(np.argmin(distance))


@dataclass(eq=False, repr=False, kw_only=True)
class AATP(WeightedBaseline):
    r"""Separate the rows at the top τ-quantile of all scores, by a convex problem for each row that may be there.

    .. math:: w_k = \arg\min_w \frac{\alpha}{2} \|w\|^2 + \frac1m \sum_{i=1}^m \max(0, 1 + w^\top x_k - w^\top x_i^+)
              + \frac1n \sum_{j=1}^n \max(0, 1 + w^\top x_j^- - w^\top x_k)

    Of all :math:`w_k` the one is taken with the least objective where the threshold is its own quantile, in place of
    the score of row k. That the row is at the quantile is left out of the problems, as in the reference; so the least
    of their minima is a lower bound of the objective with the quantile, which is that of ``Grill(surrogate="hinge")``.
    It is here for comparison with the literature; prefer `PatMat`.

    With more rows than `max_candidates` only a part of the problems is solved: it goes on with the row that is at the
    quantile of the last solution, or else next to that of the best one. `search_` says so.

    Parameters
    ----------
    tau : float, default=0.05
        Share of all rows at the top, strictly between 0 and 1.
    max_candidates : int, default=200
        Largest number of problems to solve.
    alpha : float, default=0.1
        Weight of the penalty ``alpha / 2 * ||w||²``; the loss is 2 at w = 0.
    {linear_parameters}
    {pos_label}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The direction w, with a kernel that in the space of its features.
    feature_map_ : callable
        With a kernel: the features of a block of rows.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    threshold_ : float
        The top τ-quantile of the scores of the training rows; `predict` takes rows above it.
    search_ : {"all", "part"}
        Whether the problems of all rows were solved.
    candidate_ : int
        Number of the row, of those with a weight, whose problem gave the direction.
    objective_ : float
        The objective with the quantile.
    dual_objective_ : float
        A lower bound of it over all directions, which need not be attained, as the problem is not convex; 0 where only
        a part of the problems was solved.
    dual_gap_ : float
        ``(objective_ - dual_objective_) / objective_``.
    n_iter_ : int
        Number of problems that were solved.
    history_ : dict of ndarray
        One entry a problem: ``iteration``, ``passes`` over the data, ``seconds``, ``primal``, ``dual``, ``gap``.
    {classes}

    References
    ----------
    Boyd, Cortes, Mohri and Radovanovic, Accuracy at the top, NIPS 2012.
    Mácha, General framework for classification at the top, dissertation, CTU in Prague, 2021, (3.11) and (3.14).

    Examples
    --------
    >>> from toprank.baselines import AATP
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, random_state=0)
    >>> model = AATP(tau=0.05, max_candidates=5).fit(X, y)
    >>> model.search_, model.n_iter_
    ('part', 5)
    """

    over: ClassVar[str] = "all"
    saved_state: ClassVar[Schema] = LinearBaseline.saved_state.extended(
        {"search_": Kind((str,), ("all", "part")), "candidate_": count()}
    )

    tau: float = 0.05
    max_candidates: int = 200

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_share("tau", self.tau)
        require_count("max_candidates", self.max_candidates)

    def _minimum(self, X: Any, positive: Mask, weights: Floats) -> Minimum:
        limits = {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        search = CandidateSearch(X, positive, weights, float(self.alpha), Quantile(float(self.tau)), limits)
        n_rows, recorder = len(positive), Recorder(self.verbose)
        self.search_ = "all" if n_rows <= self.max_candidates else "part"
        candidate, solved, minima = search.first(), set[int](), []
        best, least, bound = None, np.inf, np.inf
        while len(solved) < min(n_rows, int(self.max_candidates)):
            found = search.solve(candidate)
            minima.append(found)
            value = search.objective(found)
            if best is None or value < least:
                best, least, self.candidate_ = found, value, candidate
            bound = min(bound, found.bound)
            solved.add(candidate)
            recorder.passes += found.history["passes"][-1]
            recorder.record(len(solved), least, bound if len(solved) == n_rows else 0.0)
            if len(solved) < n_rows:
                candidate = search.next(best, found, solved)
        assert best is not None
        converged = all(one.converged for one in minima)
        bound = bound if self.search_ == "all" else 0.0
        return Minimum(best.w, best.scores, least, bound, len(solved), converged, recorder.rows)

    def _threshold_of(self, scores: Floats, positive: Mask, weights: Floats) -> float:
        """The quantile, raised by some rounding errors: the row that is at it is then never above."""
        rounding = ERRORS * float(np.finfo(self.coef_.dtype).eps) * float(np.abs(scores).max())
        return Quantile(float(self.tau)).value(scores, weights) + rounding

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # predict selects a share of the rows, whatever that of the positives is
        tags.classifier_tags.poor_score = True
        return tags
