"""Support vector machine and logistic regression of scikit-learn with a cost of the positives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from toprank.base import BinaryClassifier, anew_or_unchanged, check_magnitude, is_positive, two_classes
from toprank.checks import require_choice, require_count, require_moderate, require_positive
from toprank.estimators._rows import rows_to_score, training_rows
from toprank.positive_class import warn_of_sorted_scorer
from toprank.saved_state import FEATURES, TWO_CLASSES, Array, Schema, count

LOSSES = ("hinge", "squared_hinge", "logistic")


@dataclass(eq=False, repr=False, kw_only=True)
class CostSensitive(BinaryClassifier):
    r"""Classify with a cost of the positives, by the linear models of scikit-learn.

    .. math:: \min_{w, b} \frac{\alpha}{2} \|w\|^2 + \frac{1}{\sum_i c_i} \sum_i c_i\, \ell(-y_i (w^\top x_i + b)),
              \qquad y_i = \pm 1

    where :math:`c_i` is the weight of the row, times `positive_cost` for a positive: scikit-learn's ``LinearSVC``,
    whose penalty has the offset b too, or ``LogisticRegression``; so the penalty and the cost can be searched by two
    numbers, whatever the labels are. It is here for comparison with the literature.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "logistic"}, default="squared_hinge"
        The loss ℓ: of the cost-sensitive SVM, plain or squared, or the logistic one.
    positive_cost : float, default=1.0
        The cost of a positive, where that of a negative is 1.
    alpha : float, default=0.001
        Weight of the penalty; the ``C`` of scikit-learn, with weights of sum 1, is 1 / alpha.
    tol : float, default=1e-4
        Tolerance of scikit-learn.
    max_iter : int, default=10000
        Limit of iterations.
    random_state : int, RandomState or None, default=None
        Seed of the solver of ``LinearSVC``.
    {pos_label}

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The direction w.
    intercept_ : ndarray of shape (1,)
        The offset b.
    n_iter_ : int
        Number of iterations.
    classes_ : ndarray of shape (2,)
        The labels; the second one is the positive class.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had names.

    Examples
    --------
    >>> from toprank.baselines import CostSensitive
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> plain, costly = (CostSensitive(positive_cost=cost).fit(X, y).predict(X).sum() for cost in (1, 20))
    >>> bool(plain < costly)
    True
    """

    saved_state: ClassVar[Schema] = Schema(
        {
            **FEATURES,
            "classes_": TWO_CLASSES,
            "coef_": Array("f", (1, "n_features_in_")),
            "intercept_": Array("f", (1,)),
            "n_iter_": count(),
        }
    )

    loss: str = "squared_hinge"
    positive_cost: float = 1.0
    alpha: float = 1e-3
    tol: float = 1e-4
    max_iter: int = 10_000
    random_state: Any = None

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to learn from; standardise them first.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 equals a repeated row, a weight of 0 a removed one.

        {fitted}
        """
        require_choice("loss", self.loss, LOSSES)
        require_positive("positive_cost", self.positive_cost, "use a value such as 1")
        require_moderate("alpha", self.alpha, "use a value such as 0.001")
        require_positive("tol", self.tol, "use a value such as 1e-4")
        require_count("max_iter", self.max_iter)
        with anew_or_unchanged(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        X, y = training_rows(self, X, y)
        self.classes_ = two_classes(y, self, self.pos_label)
        positive = is_positive(y, self.classes_)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not (weights[positive] > 0).any() or not (weights[~positive] > 0).any():
            raise ValueError("CostSensitive needs rows of both classes with a positive weight; only one class is left")
        check_magnitude(X)
        costs = weights * np.where(positive, float(self.positive_cost), 1.0)
        common: dict[str, Any] = {"C": 1 / float(self.alpha), "tol": self.tol, "max_iter": self.max_iter}
        if self.loss == "logistic":
            model: Any = LogisticRegression(**common)
        else:
            model = LinearSVC(loss=self.loss, dual="auto", random_state=self.random_state, **common)
        kept = weights > 0
        model.fit(X[kept], positive[kept].astype(int), (costs / costs.sum())[kept])
        self.coef_, self.intercept_ = model.coef_.astype(X.dtype), np.atleast_1d(model.intercept_).astype(X.dtype)
        self.n_iter_ = int(np.max(model.n_iter_))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score of rows, above zero for the positive class.

        {rows_and_scores}
        """
        check_is_fitted(self)
        warn_of_sorted_scorer(self.classes_)
        return np.asarray(rows_to_score(self, X) @ self.coef_[0] + self.intercept_[0])
