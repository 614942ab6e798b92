"""What the rankers of preferences share: levels, graphs and pairs, and scores by a direction or by a kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from toprank.arrays import Floats, Mask, is_dask
from toprank.base import Estimator, anew_or_unchanged, check_indices, check_magnitude, check_square
from toprank.checks import require_count
from toprank.matrices.dask_columns import beside, distinct, lengths_of
from toprank.matrices.dense_or_sparse import without_offset
from toprank.matrices.features import draw_rows, expansion_scores, inverse_root, kernel_columns
from toprank.matrices.kernel import Kernel
from toprank.matrices.threads import one_blas_thread
from toprank.metrics.pairwise import Graph, levels_of, ordered_levels, wmw_score
from toprank.pairwise.graph import Preferences, check_pairs, strength_matrix
from toprank.saved_state import FEATURES, HISTORY, LABEL_TYPES, Array, Chosen, Kind, Known, Number, Rule, count

_ROWS_AND_SCORES = """Parameters
----------
X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
    Rows to score; for a precomputed kernel: the kernel of these rows with all training rows.

Returns
-------
ndarray of shape (n_samples,)
    Scores, larger for better."""

_GRAPH = """\
graph : {"full", "chain"} or list of edges, default="full"
    Which levels are preferred to which. "full": every level to every lower one. "chain": to the next lower one.
    Edges: tuples ``(better, worse)`` or ``(better, worse, strength)`` of labels; levels without edge are left out.
labels : array-like, optional
    The levels from worst to best; by default the sorted labels of y, of words with a `PositiveClassWarning`."""

_KERNEL = """\
gamma : {"scale", "auto"} or float, default="scale"
    Parameter of the kernel; "scale" is ``1 / (n_features * X.var())``, where rows count by their weights, "auto" is
    ``1 / n_features``.
degree, coef0 : float, default=3 and 0.0
    Parameters of "poly" and "sigmoid".
n_components : int, default=1000
    Up to so many rows the kernel form is exact. With more, the xᵢ are this many rows drawn at random (Nyström)."""

_LEVEL_LABEL = """\
pos_label : label, optional
    Of two levels the better one, instead of `labels`."""

_KERNEL_FORM = """\
coef_ : ndarray of shape (1, n_features)
    The direction w, for the linear kernel.
dual_coef_ : ndarray of shape (n_components,)
    The coefficients a, for any other kernel.
components_ : ndarray or sparse matrix of shape (n_components, n_features)
    The rows xᵢ of the kernel form, or their numbers for a precomputed kernel.
kernel_form_ : {"linear", "exact", "nystroem"}
    Whether the kernel form is exact or on drawn rows."""

_LEVELS = """\
classes_ : ndarray of shape (n_levels,)
    The levels from worst to best; None if only pairs were given.
n_features_in_ : int
    Number of features seen in `fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X had names."""


@dataclass(eq=False, repr=False, kw_only=True)
class PreferenceRanker(Estimator, ABC):
    """Base of the rankers that learn which rows are preferred to which: from levels with a graph, or from pairs."""

    shared_text: ClassVar[Mapping[str, str]] = {
        "rows_and_scores": _ROWS_AND_SCORES,
        "graph": _GRAPH,
        "kernel_parameters": _KERNEL,
        "better_label": _LEVEL_LABEL,
        "kernel_form": _KERNEL_FORM,
        "levels": _LEVELS,
    }

    graph: Graph = "full"
    labels: ArrayLike | None = None
    verbose: int = 0
    pos_label: Any = None

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense."""

    @abstractmethod
    def _fit_rows(self, X: Any, preferences: Preferences, kept: Mask) -> None:
        """Learn from rows of positive weight, which are those of the user where `kept`."""

    @abstractmethod
    def decision_function(self, X: Any) -> Any:
        """Scores of rows."""

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
            matrix of the rows. `WMWRanker` takes Dask arrays and dataframes in place, others gather them.
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
                f"{type(self).__name__} requires y to be passed, but the target y is None; give ordinal labels as y, "
                "or pairs="
            )
        with anew_or_unchanged(self):
            (self._fit_blocks if is_dask(X) else self._fit)(X, y, sample_weight, pairs, pair_weight)
        return self

    def predict(self, X: Any) -> Any:
        """The same as `decision_function`: a ranker predicts scores, not levels.

        {rows_and_scores}
        """
        return self.decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """The generalised Wilcoxon-Mann-Whitney statistic under the graph of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, Dask array} of shape (n_samples, n_features)
            Rows to score.
        y : array-like or Dask array of shape (n_samples,)
            Their levels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Share of the preferred pairs in the right order, see `toprank.metrics.wmw_score`.
        """
        scores = self.decision_function(X)
        found = distinct(beside(lengths_of(y), y, "y")) if is_dask(y) else y
        known = self.classes_ is not None and np.isin(found, self.classes_).all()
        labels = self.classes_ if known else self.labels
        return wmw_score(y, scores, graph=self.graph, labels=labels, sample_weight=sample_weight)

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

    def _fit_blocks(self, X: Any, y: Any, sample_weight: Any, pairs: Any, pair_weight: Any) -> None:
        """Learn from Dask arrays: here they are gathered in one memory."""
        self._fit(X, y, sample_weight, pairs, pair_weight)

    def _validate(self, X: Any, y: Any) -> tuple[Any, NDArray[Any] | None]:
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
        if y is None:
            X = validate_data(self, X, **options)
        else:
            X, y = validate_data(self, X, y, **options)
        check_indices(X)
        if get_tags(self).input_tags.pairwise:
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
            self.classes_, level, strengths = self._levels_among(y)
        pair_weights = pair_weights * weights[pairs].prod(axis=1)
        used = pair_weights > 0
        new_number = np.cumsum(kept) - 1
        level = np.ascontiguousarray(level[kept], dtype=np.int64)
        preferences = Preferences(level, strengths, weights[kept], new_number[pairs[used]], pair_weights[used])
        self._require_some(preferences)
        return preferences, kept

    def _levels_among(self, y: NDArray[Any]) -> tuple[NDArray[Any], Any, Floats]:
        """The levels from worst to best, the level of each label, and the strengths of the preferences."""
        levels, level = levels_of(y, ordered_levels(y, self.labels, self.pos_label, self.graph, type(self).__name__))
        return levels, level, strength_matrix(self.graph, levels)

    def _require_some(self, preferences: Preferences) -> None:
        if not preferences.total > 0:
            raise ValueError(
                "no row is preferred to another: y needs rows of positive weight in two levels that an edge of the "
                f"graph joins, but has only one class or none of them; levels: {self.classes_}"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        return tags


def _is_expansion(known: Known) -> bool:
    return bool(known["kernel_form_"] != "linear")


def _components(known: Known, value: Any) -> Rule:
    if known["kernel"] == "precomputed":
        return Array("i", ("n_chosen",), low=0, below="n_features_in_")
    return Array("f", ("n_chosen", "n_features_in_"), sparse=True)


LEVELS_STATE: dict[str, Rule] = {**FEATURES, "classes_": Array(LABEL_TYPES, (None,), none=True)}
"""Rules for what every ranker of preferences has."""
KERNEL_FORM_STATE: dict[str, Rule] = {
    "kernel_form_": Kind((str,), ("linear", "exact", "nystroem")),
    "coef_": Array("f", (1, "n_features_in_"), when=lambda known: known["kernel_form_"] == "linear"),
    "_kernel": Kind((Kernel,), when=_is_expansion),
    "components_": Chosen(_components, when=_is_expansion),
    "dual_coef_": Array("f", ("n_chosen",), when=_is_expansion),
}
"""Rules for what a model with a direction or a kernel keeps."""
FOUND_STATE: dict[str, Rule] = {"objective_": Number(), "n_iter_": count(), "history_": HISTORY}
"""Rules for what is known of a minimum."""


@dataclass(eq=False, repr=False, kw_only=True)
class KernelRanker(PreferenceRanker):
    """Base of the rankers of preferences whose score is a direction, or a sum of kernel values."""

    kernel: str | Callable[[Any, Any], Any] = "linear"
    gamma: str | float = "scale"
    degree: float = 3
    coef0: float = 0.0
    n_components: int = 1000
    random_state: Any = None

    def _check_parameters(self) -> None:
        require_count("n_components", self.n_components)

    def decision_function(self, X: Any) -> Any:
        """Score rows: larger is better. Only differences of scores have a meaning.

        Of a Dask array or dataframe it is a Dask array, not yet computed.

        {rows_and_scores}
        """
        check_is_fitted(self)
        if is_dask(X):
            from toprank.matrices.block_input import lazy_scores

            return lazy_scores(self, X, (self.coef_ if self.kernel_form_ == "linear" else self.dual_coef_).dtype)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if self.kernel_form_ == "linear":
            return np.asarray(X @ self.coef_[0])
        scores = expansion_scores(self._kernel, X, self.components_, self.dual_coef_)
        return scores.astype(self.dual_coef_.dtype, copy=False)

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

    def _keep_direction(self, w: Floats, to_dual: NDArray[Any] | None, dtype: Any) -> None:
        """Keep coefficients of the matrix that `_features` made."""
        if to_dual is None:
            self.coef_ = w.astype(dtype)[None, :]
        else:
            self.dual_coef_ = (to_dual @ w).astype(dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
