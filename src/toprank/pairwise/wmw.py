"""The pairwise ranker."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from toprank.arrays import Mask
from toprank.checks import require_choice, require_count, require_positive
from toprank.exceptions import InputError
from toprank.matrices.block_tasks import naming_failed
from toprank.matrices.threads import one_blas_thread
from toprank.pairwise.block_levels import BlockPreferences, rows_in_levels
from toprank.pairwise.graph import Preferences
from toprank.pairwise.pair_sums import check_summation
from toprank.pairwise.preference_ranker import FOUND_STATE, KERNEL_FORM_STATE, LEVELS_STATE, KernelRanker
from toprank.saved_state import Number, Schema

SOLVERS = ("newton-cg", "ncg")


@dataclass(eq=False, repr=False, kw_only=True)
class WMWRanker(KernelRanker):
    r"""Rank ordinal data by the generalised Wilcoxon-Mann-Whitney statistic.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 - \frac1P \sum_{i \succ j} p_{ij} \log \sigma(w^\top x_i - w^\top x_j),
              \qquad P = \sum_{i \succ j} p_{ij}

    over all pairs of rows of which one is preferred. Use it when labels have an order (ratings, grades, relevance), or
    when all you have are comparisons of pairs. The loss, over log 2, bounds the share of pairs in the wrong order. All
    pairs count the same wherever they are in the list: for the top of a list of two classes take `TopPush` and its kin
    instead.

    Pairs are never enumerated: value, gradient and Hessian cost O(n) per evaluation, to machine precision, besides the
    products with X.

    X may be a Dask array, dense or of sparse blocks, or a Dask dataframe, with levels as y: rows and scores stay with
    the blocks, and the optimum is the same. A kernel, pairs and other summations than "exact" need one memory.

    Parameters
    ----------
    alpha : float, default=0.001
        Weight of the penalty ``alpha / 2 * ||w||²`` against the *mean* loss over pairs, so its scale does not depend on
        the number of rows. The λ of the RankNCG paper, which adds the losses up, is alpha·P.
    {graph}
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        With a kernel the score is Σ aᵢ k(x, xᵢ), and ‖w‖² is aᵀKa; a function gets two blocks of rows. (The paper's
        (43) penalises ‖a‖² instead: that is the linear ranker on the columns of the kernel matrix as features.)
    {kernel_parameters}
    solver : {"newton-cg", "ncg"}, default="newton-cg"
        Newton's method with conjugate gradients, or the nonlinear conjugate gradients of the paper.
    summation : {"exact", "erfc", "direct"}, default="exact"
        How sums over pairs are taken; see `toprank.pairwise.pair_sum`. "erfc", the approximation of the paper, needs
        ``solver="ncg"`` and steers it by approximate gradients; it ends near the optimum, at a distance that
        `suboptimality_` bounds.
    eps : float, default=1e-6
        Accuracy of the erfc series.
    tol : float, default=1e-6
        Stop, but not before the first step, when the bound on the suboptimality ‖∇f‖² / (2·alpha) is at most `tol`
        times the objective. For "erfc" the approximate gradient counts.
    max_iter : int, optional
        Limit of iterations; by default 100 for "newton-cg" and 10000 for "ncg".
    random_state : int, RandomState or None, default=None
        Seed of the choice of rows for a kernel; nothing else is random.
    verbose : int, default=0
        With 1, log the progress to the logger "toprank".
    {better_label}

    Attributes
    ----------
    {kernel_form}
    objective_ : float
        The value that was minimised.
    gradient_norm_ : float
        Norm of its gradient, by exact sums whatever `summation` is.
    suboptimality_ : float
        ``gradient_norm_**2 / (2 * alpha)``: no model has an objective lower by more than this.
    n_iter_ : int
        Number of iterations.
    history_ : dict of ndarray
        One entry an iteration: ``iteration``, ``passes`` over the data, ``seconds``, ``objective``, ``gradient_norm``,
        ``suboptimality``; the latter two by the sums that were used.
    {levels}

    References
    ----------
    Raykar, Duraiswami and Krishnapuram, A fast algorithm for learning a ranking function from large-scale data sets,
    IEEE TPAMI 30, 2008.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank.datasets import make_randnet
    >>> from toprank.pairwise import WMWRanker
    >>> X, y, _ = make_randnet(2000, random_state=0)
    >>> model = make_pipeline(StandardScaler(), WMWRanker()).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.9)
    True
    >>> bool(model[-1].suboptimality_ <= 1e-6 * model[-1].objective_)
    True

    Preferences between single rows need no labels:

    >>> WMWRanker().fit([[0.0, 1.0], [2.0, 1.0], [1.0, 1.0]], pairs=[[1, 0], [1, 2]]).coef_.round(1)
    array([[4.7, 0. ]])
    """

    saved_state: ClassVar[Schema] = Schema(
        {
            **LEVELS_STATE,
            **KERNEL_FORM_STATE,
            **FOUND_STATE,
            "gradient_norm_": Number(0),
            "suboptimality_": Number(0),
        },
        fitted="objective_",
    )

    alpha: float = 1e-3
    solver: str = "newton-cg"
    summation: str = "exact"
    eps: float = 1e-6
    tol: float = 1e-6
    max_iter: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("alpha", self.alpha, "use a value such as 0.001")
        require_positive("tol", self.tol, "use a value such as 1e-6")
        check_summation(self.summation, self.eps)
        require_choice("solver", self.solver, SOLVERS)
        if self.summation == "erfc" and self.solver != "ncg":
            raise ValueError(
                f"summation='erfc' has no second derivatives for solver={self.solver!r}; use solver='ncg' or "
                "summation='exact'"
            )
        if self.max_iter is not None:
            require_count("max_iter", self.max_iter)

    def _fit_blocks(self, X: Any, y: Any, sample_weight: Any, pairs: Any, pair_weight: Any) -> None:
        self._check_for_blocks(pairs, pair_weight)
        matrix, preferences = rows_in_levels(self, X, y, sample_weight, self._levels_among)
        self._require_some(preferences)
        with one_blas_thread(), naming_failed(matrix.blocks):
            self._fit_rows(matrix, preferences, np.zeros(0, np.bool_))  # no model of blocks names rows

    def _check_for_blocks(self, pairs: Any, pair_weight: Any) -> None:
        """Refuse what needs all rows in one memory."""
        if pairs is not None or pair_weight is not None:
            raise InputError.saying(
                "pairs= are of rows in one memory, and X is of Dask; give levels as y, or gather X by X.compute()"
            )
        if self.kernel != "linear":
            raise InputError.of(
                "kernel",
                self.kernel,
                "must be 'linear' for rows of Dask",
                "map the blocks to features first, or gather X by X.compute()",
            )
        if self.summation != "exact":
            raise InputError.of("summation", self.summation, "must be 'exact' for rows of Dask", "leave it out")

    def _loss(self, preferences: Preferences) -> Any:
        """The loss of some preferences, whose rows are in one memory or in blocks."""
        if isinstance(preferences, BlockPreferences):
            from toprank.pairwise.block_objective import BlockPairLoss  # imports numba

            return BlockPairLoss(preferences)
        from toprank.pairwise.objective import PairLoss  # imports numba

        return PairLoss(preferences, self.summation, self.eps)

    def _fit_rows(self, X: Any, preferences: Preferences, kept: Mask) -> None:
        from toprank.pairwise.solvers import Problem, solve_ncg, solve_newton_cg

        features, to_dual = self._features(X, kept, preferences.weights)
        loss = self._loss(preferences)
        problem = Problem(features, loss, float(self.alpha), self.verbose)
        limit = {} if self.max_iter is None else {"max_iter": self.max_iter}
        solution = (solve_newton_cg if self.solver == "newton-cg" else solve_ncg)(problem, tol=self.tol, **limit)
        point = solution.point
        self.n_iter_ = solution.n_iter
        self.history_ = {name: np.asarray(values) for name, values in problem.recorder.rows.items()}
        if self.summation == "erfc":
            exact = type(loss)(preferences)
            point = Problem(features, exact, problem.alpha).point(point.w, exact(point.loss.scores))
        self.objective_ = point.objective
        self.gradient_norm_ = float(np.linalg.norm(point.gradient))
        self.suboptimality_ = point.suboptimality(problem.alpha)
        self._keep_direction(point.w, to_dual, X.dtype)
        if not solution.converged:
            warnings.warn(
                f"WMWRanker stopped after {solution.n_iter} iterations, where the objective may be "
                f"{self.suboptimality_ / abs(self.objective_):.1e} of itself above the optimum, tol={self.tol:g}; "
                "increase max_iter or tol, or standardise the features",
                ConvergenceWarning,
                stacklevel=4,
            )
