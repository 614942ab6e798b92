"""Regularisation paths: one model for each penalty, each started from its neighbour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from toprank.arrays import Floats
from toprank.base import clone_for_scores
from toprank.estimators._base import TopClassifier
from toprank.estimators.back_ends import Linear


@dataclass(frozen=True)
class RegularizationPath:
    """Models along penalties, in the order in which the penalties were given.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        The penalties.
    coef : ndarray of shape (n_alphas, n_features)
        The directions.
    intercept : ndarray of shape (n_alphas,)
        Minus the thresholds of the formulation, as by ``threshold="trained"``.
    objective, dual_gap, n_iter, passes : ndarray of shape (n_alphas,)
        Objective, relative duality gap, iterations and passes over the data of each fit.
    """

    alphas: Floats
    coef: NDArray[Any]
    intercept: NDArray[Any]
    objective: Floats
    dual_gap: Floats
    n_iter: NDArray[np.intp]
    passes: Floats

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score minus threshold of every row under every model, of shape (n_samples, n_alphas)."""
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if X.shape[1] != self.coef.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} features, but the models of the path were fitted to {self.coef.shape[1]}; pass "
                "the same columns as in the fit"
            )
        return np.asarray(X @ self.coef.T + self.intercept)


def path(
    estimator: TopClassifier, X: Any, y: Any, *, alphas: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> RegularizationPath:
    """Fit an estimator for many penalties at little more than the cost of a few.

    The penalties are taken from the largest to the smallest and every fit starts from the last one.

    Parameters
    ----------
    estimator : estimator of the top family
        A linear one. Everything but `alpha` and `warm_start` is taken from it; it is not changed.
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
    """
    _check_linear(estimator)
    given = np.array(10.0 ** np.arange(-3, 4) if alphas is None else alphas, dtype=np.float64).ravel()
    if len(given) == 0 or not np.all((given > 0) & np.isfinite(given)):
        raise ValueError(f"alphas must be positive and finite numbers, at least one, got {given.tolist()}")
    model = clone_for_scores(estimator).set_params(warm_start=True)
    fits: list[dict[str, Any]] = [{} for _ in given]
    for place in np.argsort(-given, kind="stable"):
        model.set_params(alpha=float(given[place])).fit(X, y, sample_weight)
        if model.interrupted_:  # the others would follow
            raise KeyboardInterrupt
        fits[place] = {
            "coef": model.coef_[0],
            "intercept": model.intercept_[0],
            "objective": model.objective_,
            "dual_gap": model.dual_gap_,
            "n_iter": model.n_iter_,
            "passes": model.history_["passes"][-1],
        }
    return RegularizationPath(given, **{name: np.array([fit[name] for fit in fits]) for name in fits[0]})


def _check_linear(estimator: Any) -> None:
    """A path holds directions in the space of the features, which only linear models have."""
    remedy = "use toprank.TopSearchCV or sklearn's GridSearchCV over alpha instead"
    if not isinstance(estimator, TopClassifier):
        raise ValueError(f"path is for the estimators of the top family, got {estimator!r}; {remedy}")
    if Linear not in estimator._back_ends():
        kernel = f"kernel={estimator.kernel!r} and approximation={estimator.approximation!r}"
        raise ValueError(f"path is for linear models, got {kernel}; {remedy}")
