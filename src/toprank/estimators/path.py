"""Regularisation paths: one model for each penalty, each started from its neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from toprank.arrays import Floats, Rows
from toprank.base import clone_for_scores
from toprank.estimators._base import TopClassifier
from toprank.matrices.features import expansion_scores, in_blocks
from toprank.matrices.kernel import Kernel
from toprank.matrices.shared_values import shared_kernel_values


@dataclass(frozen=True)
class RegularizationPath:
    """Models along penalties, in the order in which the penalties were given.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        The penalties.
    coef : ndarray of shape (n_alphas, n_features)
        The directions; with a kernel coefficients of the rows `support`, with an approximation those of its features.
    intercept : ndarray of shape (n_alphas,)
        Minus the thresholds of the formulation, as by ``threshold="trained"``.
    objective, dual_gap, n_iter, passes : ndarray of shape (n_alphas,)
        Objective, relative duality gap, iterations and passes over the data of each fit.
    n_features_in : int
        Number of features of the rows.
    support, support_vectors : ndarray, optional
        With a kernel, numbers of the rows that any of the models is made of, and the rows, none of a precomputed one.
    kernel : Kernel, optional
        The kernel, if there is one.
    feature_map : optional
        What makes the features of an approximation.
    """

    alphas: Floats
    coef: NDArray[Any]
    intercept: NDArray[Any]
    objective: Floats
    dual_gap: Floats
    n_iter: NDArray[np.intp]
    passes: Floats
    n_features_in: int
    support: Rows | None = None
    support_vectors: Any = None
    kernel: Kernel | None = None
    feature_map: Any = None

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score minus threshold of every row under every model, of shape (n_samples, n_alphas)."""
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if X.shape[1] != self.n_features_in:
            raise ValueError(
                f"X has {X.shape[1]} features, but the models of the path were fitted to {self.n_features_in}; pass "
                "the same columns as in the fit"
            )
        return np.asarray(self._scores(X) + self.intercept)

    def _scores(self, X: Any) -> Any:
        """The values of a kernel or the features of a row are computed once for all models."""
        coefficients = self.coef.T
        if self.kernel is not None:
            terms = self.support if self.kernel.name == "precomputed" else self.support_vectors
            return expansion_scores(self.kernel, X, terms, coefficients)
        if self.feature_map is not None:
            return in_blocks(lambda block: self.feature_map(block) @ coefficients, X, len(coefficients))
        return X @ coefficients


def path(
    estimator: TopClassifier, X: Any, y: Any, *, alphas: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> RegularizationPath:
    """Fit an estimator for many penalties at little more than the cost of a few.

    The penalties are taken from the largest to the smallest and every fit starts from the last one. With a kernel all
    fits use the same kernel values, computed once as long as they fit into `cache_size`; features of an approximation
    are the same in all fits.

    Parameters
    ----------
    estimator : estimator of the top family
        Everything but `alpha` and `warm_start` is taken from it; it is not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Two classes.
    alphas : array-like, optional
        Penalties in any order; by default 1e-3, 1e-2, …, 1e3, the grid of the papers.
    sample_weight : array-like of shape (n_samples,), optional
        Weights.

    Returns
    -------
    RegularizationPath
        The models; its `decision_function` scores new rows under all of them at once.

    Examples
    --------
    Choose the penalty by the metric that matters, on rows that were not trained on:

    >>> import numpy as np
    >>> from toprank import TauFPL, path
    >>> from toprank.datasets import make_imbalanced
    >>> from toprank.metrics import tpr_at_fpr
    >>> X, y, _ = make_imbalanced(4000, separation=3.0, random_state=0)
    >>> models = path(TauFPL(tau=0.05), X[:2000], y[:2000])
    >>> scores = models.decision_function(X[2000:])
    >>> tpr = [tpr_at_fpr(y[2000:], column, max_fpr=0.05) for column in scores.T]
    >>> bool(models.alphas[np.argmax(tpr)] < 100)
    True

    With a kernel:

    >>> curved = path(TauFPL(tau=0.05, kernel="rbf"), X[:500], y[:500], alphas=[1e-2, 1e-3])
    >>> curved.decision_function(X[2000:]).shape, bool(curved.dual_gap.max() <= 1e-4)
    ((2000, 2), True)
    """
    if not isinstance(estimator, TopClassifier):
        raise ValueError(
            f"path is for the estimators of the top family, got {estimator!r}; use toprank.TopSearchCV or sklearn's "
            "GridSearchCV over alpha instead"
        )
    given = np.array(10.0 ** np.arange(-3, 4) if alphas is None else alphas, dtype=np.float64).ravel()
    if len(given) == 0 or not np.all((given > 0) & np.isfinite(given)):
        raise ValueError(f"alphas must be positive and finite numbers, at least one, got {given.tolist()}")
    model = clone_for_scores(estimator).set_params(warm_start=True)
    if not isinstance(seed := model.get_params().get("random_state", 0), Integral):  # all fits draw the same
        model.set_params(random_state=check_random_state(seed).randint(np.iinfo(np.int32).max))
    fits: list[dict[str, Any]] = [{} for _ in given]
    coefficients: list[Any] = [None for _ in given]
    rows = _SupportVectors()
    with shared_kernel_values():
        for place in np.argsort(-given, kind="stable"):
            model.set_params(alpha=float(given[place])).fit(X, y, sample_weight)
            if model.interrupted_:  # the others would follow
                raise KeyboardInterrupt
            if has_rows := hasattr(model, "dual_coef_"):
                rows.add(model)
            coefficients[place] = (model.support_, model.dual_coef_[0]) if has_rows else model.coef_[0]
            fits[place] = {
                "intercept": model.intercept_[0],
                "objective": model.objective_,
                "dual_gap": model.dual_gap_,
                "n_iter": model.n_iter_,
                "passes": model.history_["passes"][-1],
            }
    kept: dict[str, Any] = {name: np.array([fit[name] for fit in fits]) for name in fits[0]}
    kept |= {"n_features_in": model.n_features_in_, "feature_map": getattr(model, "feature_map_", None)}
    if not has_rows:
        return RegularizationPath(given, np.array(coefficients), **kept)
    support, vectors = rows.in_order()
    coef = np.zeros((len(given), len(support)), model.dual_coef_.dtype)
    for place, (numbers, values) in enumerate(coefficients):
        coef[place, np.searchsorted(support, numbers)] = values
    kept |= {"support": support, "support_vectors": vectors, "kernel": model._kernel}
    return RegularizationPath(given, coef, **kept)


class _SupportVectors:
    """The rows that any of several models is made of, each of them once."""

    def __init__(self) -> None:
        self._numbers: Rows = np.zeros(0, np.intp)
        self._vectors: list[Any] = []

    def add(self, model: Any) -> None:
        """Take the rows of a model that are new."""
        is_new = np.isin(model.support_, self._numbers, assume_unique=True, invert=True)
        self._numbers = np.concatenate([self._numbers, model.support_[is_new]])
        vectors = model.support_vectors_
        self._vectors.append(vectors[is_new] if model._kernel.name != "precomputed" else vectors)

    def in_order(self) -> tuple[Rows, Any]:
        """Numbers and rows by their numbers; of a precomputed kernel there are no rows."""
        order, vectors = np.argsort(self._numbers), self._vectors
        together = vstack(vectors, format="csr") if issparse(vectors[0]) else np.concatenate(vectors)
        return self._numbers[order], together[order] if together.shape[0] else together
