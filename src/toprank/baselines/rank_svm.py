"""The support vector machine of all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from toprank.arrays import Mask
from toprank.baselines._certificate import (
    CERTIFICATE_STATE,
    CERTIFICATE_TEXT,
    keep_certificate,
    warn_unless_converged,
)
from toprank.baselines.cutting_planes import Minimum, solve_cutting_planes
from toprank.baselines.hinge_pairs import HingePairLoss
from toprank.baselines.smoothed_pairs import SmoothedNewton, is_suited
from toprank.checks import require_choice, require_count, require_moderate, require_positive
from toprank.pairwise.graph import Preferences
from toprank.pairwise.preference_ranker import KERNEL_FORM_STATE, LEVELS_STATE, KernelRanker
from toprank.pairwise.solvers import Problem, solve_newton_cg
from toprank.saved_state import Schema
from toprank.solvers.problem import relative_gap

LOSSES = ("hinge", "squared_hinge")


@dataclass(eq=False, repr=False, kw_only=True)
class RankSVM(KernelRanker):
    r"""Rank by the hinge loss over all preferred pairs: SVM-rank, or ranking SVM.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 + \frac1P \sum_{i \succ j} p_{ij}
              \max(0, 1 - w^\top x_i + w^\top x_j)^q, \qquad P = \sum_{i \succ j} p_{ij}

    with q = 1 or 2. For two classes the loss bounds one minus the area under the ROC curve: all pairs count the same
    wherever they are in the list. It is here for comparison with the literature; for the top of a list take `TopPush`
    and its kin, for all pairs `WMWRanker`, which is smooth and faster.

    Pairs are never enumerated: an evaluation sorts the scores of each level, O(n log n) for two.

    Parameters
    ----------
    alpha : float, default=0.001
        Weight of the penalty ``alpha / 2 * ||w||²`` against the *mean* loss over pairs; ``C = 1 / (alpha * P)`` of the
        form that adds the losses up.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Plain (q = 1), solved by cutting planes as in the first reference, or squared (q = 2), by Newton's method as in
        the second. A plain one that needs many planes goes on by Newton's method with its kink smoothed, less and less.
    {graph}
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        With a kernel the score is Σ aᵢ k(x, xᵢ), and ‖w‖² is aᵀKa; a function gets two blocks of rows.
    {kernel_parameters}
    tol : float, default=1e-4
        Stop when the objective is within a share of `tol` of a lower bound.
    max_iter : int, default=1000
        Limit of iterations.
    random_state : int, RandomState or None, default=None
        Seed of the choice of rows for a kernel; nothing else is random.
    verbose : int, default=0
        With 1, log the progress to the logger "toprank".
    {better_label}

    Attributes
    ----------
    {kernel_form}
    {certificate}
    {levels}

    References
    ----------
    Joachims, Training linear SVMs in linear time, KDD 2006.
    Chapelle and Keerthi, Efficient algorithms for ranking with SVMs, Information Retrieval 13, 2010.

    Examples
    --------
    >>> from toprank.baselines import RankSVM
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> model = RankSVM(alpha=0.01).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    shared_text: ClassVar[Mapping[str, str]] = {**KernelRanker.shared_text, **CERTIFICATE_TEXT}

    saved_state: ClassVar[Schema] = Schema(
        {**LEVELS_STATE, **KERNEL_FORM_STATE, **CERTIFICATE_STATE}, fitted="objective_"
    )

    alpha: float = 1e-3
    loss: str = "hinge"
    tol: float = 1e-4
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_moderate("alpha", self.alpha, "use a value such as 0.001")
        require_choice("loss", self.loss, LOSSES)
        require_positive("tol", self.tol, "use a value such as 1e-4")
        require_count("max_iter", self.max_iter)

    def _fit_rows(self, X: Any, preferences: Preferences, kept: Mask) -> None:
        features, to_dual = self._features(X, kept, preferences.weights)
        found = self._minimum(features, HingePairLoss(preferences, squared=self.loss == "squared_hinge"))
        self._keep_direction(found.w, to_dual, X.dtype)
        keep_certificate(self, found)
        warn_unless_converged(self, found)

    def _minimum(self, features: Any, loss: HingePairLoss) -> Minimum:
        """By cutting planes, or by Newton's method, whose bound is then that of strong convexity."""
        limits: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter)}
        if not loss.squared:
            faster = None
            if is_suited(features.shape[1], loss.preferences):
                faster = SmoothedNewton(features, loss.preferences, float(self.alpha), **limits)
            return solve_cutting_planes(
                features, loss, float(self.alpha), verbose=self.verbose, faster=faster, **limits
            )
        problem = Problem(features, loss, float(self.alpha), self.verbose)
        solution = solve_newton_cg(problem, **limits)
        point, rows = solution.point, problem.recorder.rows
        history = {name: rows[name] for name in ("iteration", "passes", "seconds")}
        history["primal"] = rows["objective"]
        pairs = zip(rows["objective"], rows["suboptimality"], strict=True)
        history["dual"] = [max(value - excess, 0.0) for value, excess in pairs]
        history["gap"] = [relative_gap(*both) for both in zip(history["primal"], history["dual"], strict=True)]
        bound = history["dual"][-1]
        return Minimum(point.w, point.loss.scores, point.objective, bound, solution.n_iter, solution.converged, history)
