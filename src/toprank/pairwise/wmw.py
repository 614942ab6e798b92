"""The pairwise ranker."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from toprank.arrays import Floats, Mask
from toprank.base import Estimator, anew_or_unchanged, check_indices, check_magnitude, check_square
from toprank.checks import require_choice, require_count, require_positive
from toprank.matrices.dense_or_sparse import one_blas_thread, without_offset
from toprank.matrices.features import draw_rows, expansion_scores, inverse_root, kernel_columns
from toprank.matrices.kernel import Kernel
from toprank.metrics.pairwise import Graph, levels_of, ordered_levels, wmw_score
from toprank.pairwise.graph import Preferences, check_pairs, strength_matrix
from toprank.pairwise.pair_sums import check_summation
from toprank.saved_state import FEATURES, HISTORY, LABEL_TYPES, Array, Chosen, Kind, Known, Number, Rule, Schema, count

SOLVERS = ("newton-cg", "ncg")
_ROWS_AND_SCORES = """Parameters
----------
X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
    Rows to score; for a precomputed kernel: the kernel of these rows with all training rows.

Returns
-------
ndarray of shape (n_samples,)
    Scores, larger for better."""


def _is_expansion(known: Known) -> bool:
    return bool(known["kernel_form_"] != "linear")


def _components(known: Known, value: Any) -> Rule:
    if known["kernel"] == "precomputed":
        return Array("i", ("n_chosen",), low=0, below="n_features_in_")
    return Array("f", ("n_chosen", "n_features_in_"), sparse=True)


@dataclass(eq=False, repr=False, kw_only=True)
class WMWRanker(Estimator):
    r"""Rank ordinal data by the generalised Wilcoxon-Mann-Whitney statistic.

    .. math:: \min_w \frac{\alpha}{2} \|w\|^2 - \frac1P \sum_{i \succ j} p_{ij} \log \sigma(w^\top x_i - w^\top x_j),
              \qquad P = \sum_{i \succ j} p_{ij}

    over all pairs of rows of which one is preferred. Use it when labels have an order (ratings, grades, relevance), or
    when all you have are comparisons of pairs. The loss, over log 2, bounds the share of pairs in the wrong order. All
    pairs count the same wherever they are in the list: for the top of a list of two classes take `TopPush` and its kin
    instead.

    Pairs are never enumerated: value, gradient and Hessian cost O(n) per evaluation, to machine precision, besides the
    products with X.

    Parameters
    ----------
    alpha : float, default=0.001
        Weight of the penalty ``alpha / 2 * ||w||²`` against the *mean* loss over pairs, so its scale does not depend on
        the number of rows. The λ of the RankNCG paper, which adds the losses up, is alpha·P.
    graph : {"full", "chain"} or list of edges, default="full"
        Which levels are preferred to which. "full": every level to every lower one. "chain": to the next lower one.
        Edges: tuples ``(better, worse)`` or ``(better, worse, strength)`` of labels; levels without edge are left out.
    labels : array-like, optional
        The levels from worst to best; by default the sorted labels of y, of words with a `PositiveClassWarning`.
    kernel : {"linear", "rbf", "poly", "sigmoid", "precomputed"} or callable, default="linear"
        With a kernel the score is Σ aᵢ k(x, xᵢ), and ‖w‖² is aᵀKa; a function gets two blocks of rows. (The paper's
        (43) penalises ‖a‖² instead: that is the linear ranker on the columns of the kernel matrix as features.)
    gamma : {"scale", "auto"} or float, default="scale"
        Parameter of the kernel; "scale" is ``1 / (n_features * X.var())``, where rows count by their weights, "auto" is
        ``1 / n_features``.
    degree, coef0 : float, default=3 and 0.0
        Parameters of "poly" and "sigmoid".
    n_components : int, default=1000
        Up to so many rows the kernel form is exact. With more, the xᵢ are this many rows drawn at random (Nyström).
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
    pos_label : label, optional
        Of two levels the better one, instead of `labels`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The direction w, for the linear kernel.
    dual_coef_ : ndarray of shape (n_components,)
        The coefficients a, for any other kernel.
    components_ : ndarray or sparse matrix of shape (n_components, n_features)
        The rows xᵢ of the kernel form, or their numbers for a precomputed kernel.
    kernel_form_ : {"linear", "exact", "nystroem"}
        Whether the kernel form is exact or on drawn rows.
    classes_ : ndarray of shape (n_levels,)
        The levels from worst to best; None if only pairs were given.
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
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had names.

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

    shared_text: ClassVar[Mapping[str, str]] = {"rows_and_scores": _ROWS_AND_SCORES}

    saved_state: ClassVar[Schema] = Schema(
        {
            **FEATURES,
            "classes_": Array(LABEL_TYPES, (None,), none=True),
            "kernel_form_": Kind((str,), ("linear", "exact", "nystroem")),
            "coef_": Array("f", (1, "n_features_in_"), when=lambda known: known["kernel_form_"] == "linear"),
            "_kernel": Kind((Kernel,), when=_is_expansion),
            "components_": Chosen(_components, when=_is_expansion),
            "dual_coef_": Array("f", ("n_chosen",), when=_is_expansion),
            "objective_": Number(),
            "gradient_norm_": Number(0),
            "suboptimality_": Number(0),
            "n_iter_": count(),
            "history_": HISTORY,
        },
        fitted="objective_",
    )

    alpha: float = 1e-3
    graph: Graph = "full"
    labels: ArrayLike | None = None
    kernel: str | Callable[[Any, Any], Any] = "linear"
    gamma: str | float = "scale"
    degree: float = 3
    coef0: float = 0.0
    n_components: int = 1000
    solver: str = "newton-cg"
    summation: str = "exact"
    eps: float = 1e-6
    tol: float = 1e-6
    max_iter: int | None = None
    random_state: Any = None
    verbose: int = 0
    pos_label: Any = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to levels, to pairs, or to both.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to learn from; standardise them first. float32 stays float32. For a precomputed kernel: the kernel
            matrix of the rows.
        y : array-like of shape (n_samples,), optional
            Ordinal labels, larger for better unless `labels` says otherwise; None if only pairs are given.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 equals a repeated row, a weight of 0 a removed one. A pair weighs the product of the weights
            of its rows.
        pairs : array-like of shape (n_pairs, 2), optional
            Explicit preferences: the number of the better row and that of the worse one.
        pair_weight : array-like of shape (n_pairs,), optional
            Their weights, by default 1, as for the pairs that an edge of the graph makes.

        {fitted}
        """
        self._check_parameters()
        if y is None and pairs is None:
            raise ValueError(
                "WMWRanker requires y to be passed, but the target y is None; give ordinal labels as y, or pairs="
            )
        with anew_or_unchanged(self):
            self._fit(X, y, sample_weight, pairs, pair_weight)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score rows: larger is better. Only differences of scores have a meaning.

        {rows_and_scores}
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self.kernel_form_ == "linear":
            return np.asarray(X @ self.coef_[0])
        scores = expansion_scores(self._kernel, X, self.components_, self.dual_coef_)
        return scores.astype(self.dual_coef_.dtype, copy=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """The same as `decision_function`: a ranker predicts scores, not levels.

        {rows_and_scores}
        """
        return self.decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The generalised Wilcoxon-Mann-Whitney statistic under the graph of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to score.
        y : array-like of shape (n_samples,)
            Their levels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Share of the preferred pairs in the right order, see `toprank.metrics.wmw_score`.
        """
        scores = self.decision_function(X)
        known = self.classes_ is not None and np.isin(y, self.classes_).all()
        labels = self.classes_ if known else self.labels
        return wmw_score(y, scores, graph=self.graph, labels=labels, sample_weight=sample_weight)

    def _check_parameters(self) -> None:
        require_positive("alpha", self.alpha, "use a value such as 0.001")
        require_positive("tol", self.tol, "use a value such as 1e-6")
        check_summation(self.summation, self.eps)
        require_choice("solver", self.solver, SOLVERS)
        if self.summation == "erfc" and self.solver != "ncg":
            raise ValueError(
                f"summation='erfc' has no second derivatives for solver={self.solver!r}; use solver='ncg' or "
                "summation='exact'"
            )
        require_count("n_components", self.n_components)
        if self.max_iter is not None:
            require_count("max_iter", self.max_iter)

    def _fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, pairs: ArrayLike | None, pair_weight: ArrayLike | None
    ) -> None:
        X, y = self._validate(X, y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weights = np.ldexp(weights, -np.frexp(weights.max())[1])  # the scale cancels, but products could overflow
        preferences, kept = self._preferences(y, weights, *check_pairs(pairs, pair_weight, X.shape[0]))
        check_magnitude(X)
        with one_blas_thread():
            self._fit_rows(X if kept.all() else X[kept], preferences, kept)

    def _validate(self, X: Any, y: Any) -> tuple[Any, NDArray[Any] | None]:
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        if y is None:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, y, **options)
        check_indices(X)
        if self.kernel == "precomputed":
            check_square(X)
        return X, y

    def _preferences(
        self, y: NDArray[Any] | None, weights: Floats, pairs: NDArray[np.int64], pair_weights: Any
    ) -> tuple[Preferences, Mask]:
        """The preferences between the rows of positive weight, and which rows these are."""
        kept = weights > 0
        if y is None:
            self.classes_, level, strengths = None, np.zeros(len(weights), np.int64), np.zeros((1, 1))
        else:
            labels = ordered_levels(y, self.labels, self.pos_label, self.graph, type(self).__name__)
            self.classes_, level = levels_of(y, labels)
            strengths = strength_matrix(self.graph, self.classes_)
        pair_weights = pair_weights * weights[pairs].prod(axis=1)
        used = pair_weights > 0
        new_number = np.cumsum(kept) - 1
        level = np.ascontiguousarray(level[kept], dtype=np.int64)
        preferences = Preferences(level, strengths, weights[kept], new_number[pairs[used]], pair_weights[used])
        if not preferences.total > 0:
            raise ValueError(
                "no row is preferred to another: y needs rows of positive weight in two levels that an edge of the "
                f"graph joins, but has only one class or none of them; levels: {self.classes_}"
            )
        return preferences, kept

    def _fit_rows(self, X: Any, preferences: Preferences, kept: Mask) -> None:
        from toprank.pairwise.objective import PairLoss  # imports numba
        from toprank.pairwise.solvers import Problem, solve_ncg, solve_newton_cg

        features, to_dual = self._features(X, kept, preferences.weights)
        loss = PairLoss(preferences, self.summation, self.eps)
        problem = Problem(features, loss, float(self.alpha), self.verbose)
        limit = {} if self.max_iter is None else {"max_iter": self.max_iter}
        solution = (solve_newton_cg if self.solver == "newton-cg" else solve_ncg)(problem, tol=self.tol, **limit)
        point = solution.point
        self.n_iter_ = solution.n_iter
        self.history_ = {name: np.asarray(values) for name, values in problem.recorder.rows.items()}
        if self.summation == "erfc":
            exact = PairLoss(preferences)
            point = Problem(features, exact, problem.alpha).point(point.w, exact(point.loss.scores))
        self.objective_ = point.objective
        self.gradient_norm_ = float(np.linalg.norm(point.gradient))
        self.suboptimality_ = point.suboptimality(problem.alpha)
        if to_dual is None:
            self.coef_ = point.w.astype(X.dtype)[None, :]
        else:
            self.dual_coef_ = (to_dual @ point.w).astype(X.dtype)
        if not solution.converged:
            warnings.warn(
                f"WMWRanker stopped after {solution.n_iter} iterations, where the objective may be "
                f"{self.suboptimality_ / abs(self.objective_):.1e} of itself above the optimum, tol={self.tol:g}; "
                "increase max_iter or tol, or standardise the features",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _features(self, X: Any, kept: Mask, weights: Floats) -> tuple[Any, NDArray[Any] | None]:
        """The matrix to learn on, and for a kernel the matrix from its coefficients to those of the kernel form.

        With the kernel matrix K of the components and its eigenvectors U and eigenvalues Λ, the features are
        k(x, components) U Λ^(−1/2): their products are those of the kernel, exactly if the components are all rows.
        """
        if self.kernel == "linear":
            self.kernel_form_ = "linear"
            return without_offset(X), None
        self._kernel = Kernel.resolve(self.kernel, X, self.gamma, self.degree, self.coef0, weights)
        n_rows = X.shape[0]
        self.kernel_form_ = "exact" if n_rows <= self.n_components else "nystroem"
        chosen = np.arange(n_rows)
        if self.kernel_form_ == "nystroem":
            chosen = draw_rows(weights, int(self.n_components), check_random_state(self.random_state))
        self.components_ = np.flatnonzero(kept)[chosen] if self.kernel == "precomputed" else X[chosen]
        columns = kernel_columns(self._kernel, X, self.components_)
        to_dual = inverse_root(columns[chosen])
        return (columns @ to_dual).astype(X.dtype, copy=False), to_dual

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
