"""What the baselines of two classes share whose score is a direction: parameters, the walk of a fit, the threshold."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from toprank.arrays import Floats, Mask
from toprank.base import (
    BinaryClassifier,
    anew_or_unchanged,
    balanced_threshold,
    check_magnitude,
    is_positive,
    two_classes,
)
from toprank.baselines._certificate import (
    CERTIFICATE_STATE,
    CERTIFICATE_TEXT,
    keep_certificate,
    warn_unless_converged,
)
from toprank.baselines.cutting_planes import Minimum, solve_cutting_planes
from toprank.baselines.tangents import Risk
from toprank.checks import require_count, require_moderate, require_positive
from toprank.estimators._rows import rows_to_score, training_rows
from toprank.estimators.back_ends import KEPT, KEPT_RELATIONS, scores_of
from toprank.exceptions import DegenerateSolutionWarning, InputError, Message
from toprank.matrices.dense_or_sparse import without_offset
from toprank.matrices.features import NystroemFeatures
from toprank.matrices.kernel import Kernel
from toprank.matrices.threads import one_blas_thread
from toprank.positive_class import warn_of_sorted_scorer
from toprank.saved_state import FEATURES, TWO_CLASSES, Array, Number, Schema

_PARAMETERS = """\
kernel : {"linear", "rbf", "poly", "sigmoid"} or callable, default="linear"
    With a kernel the model is linear in Nyström features, as many as `n_components`; with as many as rows they are
    exact.
gamma : {"scale", "auto"} or float, default="scale"
    Parameter of the kernel; "scale" is ``1 / (n_features * X.var())``, where rows count by their weights, "auto" is
    ``1 / n_features``.
degree, coef0 : float, default=3 and 0.0
    Parameters of "poly" and "sigmoid".
n_components : int, default=500
    Number of features of a kernel, at most.
tol : float, default=1e-4
    Stop when the objective is within a share of `tol` of a lower bound.
max_iter : int, default=1000
    Limit of iterations.
random_state : int, RandomState or None, default=None
    Seed of the rows that the features of a kernel are made of.
verbose : int, default=0
    With 1, log the progress to the logger "toprank"."""

_ATTRIBUTES = """\
coef_ : ndarray of shape (1, n_features)
    The direction w, with a kernel that in the space of its features.
feature_map_ : callable
    With a kernel: the features of a block of rows. The certificate is that of the problem with these features.
intercept_ : ndarray of shape (1,)
    Minus the threshold.
threshold_ : float
    The threshold on the scores that `predict` uses: the one with the least sum of the error rates of both classes on
    the training rows. The method itself only ranks."""

_CLASSES = """\
classes_ : ndarray of shape (2,)
    The labels; the second one is the positive class.
n_features_in_ : int
    Number of features seen in `fit`.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X had names."""


# Weights in between are taken as they are.
_SMALL, _LARGE = 1e-100, 1e100


@dataclass(eq=False, repr=False, kw_only=True)
class LinearBaseline(BinaryClassifier):
    """Base of the baselines that minimise a penalised risk of linear scores."""

    shared_text: ClassVar[Mapping[str, str]] = {
        **CERTIFICATE_TEXT,
        "linear_parameters": _PARAMETERS,
        "linear_attributes": _ATTRIBUTES,
        "classes": _CLASSES,
    }

    remedies: ClassVar[str] = "lower alpha, or scale the features"
    """What helps when w = 0 is optimal."""

    saved_state: ClassVar[Schema] = Schema(
        {
            **FEATURES,
            "classes_": TWO_CLASSES,
            "feature_map_": KEPT["feature_map_"],
            "coef_": KEPT["coef_"],
            "threshold_": Number(),
            "intercept_": Array("f", (1,)),
            **CERTIFICATE_STATE,
        },
        relations=KEPT_RELATIONS,
    )

    alpha: float = 0.1
    kernel: str | Callable[[Any, Any], Any] = "linear"
    gamma: str | float = "scale"
    degree: float = 3
    coef0: float = 0.0
    n_components: int = 500
    tol: float = 1e-4
    max_iter: int = 1000
    random_state: Any = None
    verbose: int = 0

    @abstractmethod
    def _minimum(self, X: Any, positive: Mask, weights: Floats) -> Minimum:
        """Minimise the objective over rows of positive weight."""

    def _by_cutting_planes(self, X: Any, risk: Risk) -> Minimum:
        limits: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter), "verbose": self.verbose}
        return solve_cutting_planes(X, risk, float(self.alpha), **limits)

    def _check_parameters(self) -> None:
        require_moderate("alpha", self.alpha, "use a value such as 0.1")
        require_positive("tol", self.tol, "use a value such as 1e-4")
        require_count("max_iter", self.max_iter)
        require_count("n_components", self.n_components)
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise InputError.of(
                "kernel", self.kernel, "must be one that takes rows", "use 'rbf', 'poly', 'sigmoid' or a function"
            )

    def _fit_guarded(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Self:
        """Fit anew, or leave the model as it was."""
        self._check_parameters()
        with anew_or_unchanged(self):
            found = self._fit(X, y, sample_weight)
        if not self.coef_.any():
            message = Message("w = 0 is the best that was found, and ranks nothing: {remedies}", remedies=self.remedies)
            warnings.warn(message, DegenerateSolutionWarning, stacklevel=3)
        else:
            warn_unless_converged(self, found, stacklevel=4)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> Minimum:
        X, y = training_rows(self, X, y)
        self.classes_ = two_classes(y, self, self.pos_label)
        positive = is_positive(y, self.classes_)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not _SMALL <= weights.max() <= _LARGE:
            weights = np.ldexp(weights, -np.frexp(weights.max())[1])  # the scale cancels, but sums could overflow
        kept = weights > 0
        if not kept.all():
            X, positive, weights = X[kept], positive[kept], weights[kept]
        if positive.all() or not positive.any():
            raise ValueError(
                f"{type(self).__name__} needs rows of both classes with a positive weight; only one class is left: "
                f"{self.classes_.tolist()[int(positive.any())]!r}"
            )
        check_magnitude(X)
        with one_blas_thread():
            features = self._features(X, weights)
            found = self._minimum(without_offset(features), positive, weights)
            self.coef_ = found.w.astype(X.dtype)[None, :]
            scores = np.asarray(features @ self.coef_[0], dtype=np.float64)
        self.threshold_ = self._threshold_of(scores, positive, weights)
        self.intercept_ = np.array([-self.threshold_], dtype=X.dtype)
        keep_certificate(self, found)
        return found

    def _threshold_of(self, scores: Floats, positive: Mask, weights: Floats) -> float:
        """The threshold of `predict`, of the scores of the training rows."""
        return balanced_threshold(scores, positive, weights)

    def _features(self, X: Any, weights: Floats) -> Any:
        """The rows themselves, or the features of the kernel."""
        if isinstance(self.kernel, str) and self.kernel == "linear":
            return X
        kernel = Kernel.resolve(self.kernel, X, self.gamma, self.degree, self.coef0, weights)
        size, random_state = min(int(self.n_components), X.shape[0]), check_random_state(self.random_state)
        self.feature_map_ = NystroemFeatures.fit(kernel, X, size, random_state, weights)
        return self.feature_map_(X)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score minus threshold.

        {rows_and_scores}
        """
        check_is_fitted(self)
        warn_of_sorted_scorer(self.classes_)
        return np.asarray(scores_of(self, rows_to_score(self, X)) + self.intercept_[0])


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedBaseline(LinearBaseline):
    """With weights of the rows."""

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to learn from; standardise them first. float32 stays float32.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 equals a repeated row, a weight of 0 a removed one.

        {fitted}
        """
        return self._fit_guarded(X, y, sample_weight)
