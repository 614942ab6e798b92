"""A blend of models for the top of the list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, _safe_indexing, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from toprank.arrays import Floats, Mask
from toprank.base import BinaryClassifier, anew_or_unchanged, clone_for_scores, is_positive
from toprank.blending.alarm_scale import alarm_scale, on_scale
from toprank.blending.held_out import fit_and_score, stratified_folds
from toprank.checks import require_positive, require_share
from toprank.decision._labels import Coding
from toprank.decision._rows import check_rows, splits_of, take_names
from toprank.decision._scores import RESPONSES, scores_of
from toprank.estimators.budget_threshold import smallest_threshold
from toprank.estimators.top import PatMatNP
from toprank.exceptions import InputError
from toprank.metrics.roc import tpr_at_fpr
from toprank.positive_class import warn_of_sorted_scorer
from toprank.saved_state import FEATURES, TWO_CLASSES, WORD, Array, Items, Number, Part, Record, Schema, Table

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
# The mean of the models is a column of its own, so much larger than the others that its weight is hardly penalised.
_FREE = 1000.0
# Penalties to choose from; under the first one the blend is the plain mean.
ALPHAS = (1e4, 1e3, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.1)
# False positive rates, in units of tau, over which the share of positives found is averaged to choose.
_RATES = (0.2, 0.5, 1.0, 2.0, 5.0)
_FOLDS = 10


@dataclass(eq=False, repr=False)
class TopBlend(_BaseComposition, BinaryClassifier):
    r"""Blend the scores of several models by weights that are trained for the top of the list.

    .. math:: \min_{a, v} \frac\alpha2 \|v\|^2 + F(a \bar z + Z v), \qquad \sum_k v_k = 0

    Z holds the scores of the models on rows that they have not seen, each on the scale of its own false alarms, and
    :math:`\bar z` is their mean; F is the loss of a convex method of the family, `PatMatNP` by default. The penalty
    pulls the weights :math:`w_k = a / m + v_k` of the m models towards equal ones: with a large alpha the blend is the
    plain mean, which is hard to beat with few positives, with a small one the weights are free. Like
    `sklearn.ensemble.StackingClassifier`, but for the top, and never without the plain mean among the candidates.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and models: classifiers with `decision_function` or `predict_proba`. A fitted one in a
        ``sklearn.frozen.FrozenEstimator`` is left as it is: the rows given to `fit` must be new to it.
    tau : float, default=0.01
        False positive rate to train for, strictly between 0 and 1.
    alpha : "auto" or float, default="auto"
        Penalty. "auto" takes the one of nine, from the plain mean to nearly free weights, that finds most positives
        at false positive rates around `tau`, by cross-validation of the head alone: no model is fitted again.
    head : estimator, optional
        A convex linear method of the family that sets the weights; by default ``PatMatNP(tau=tau, beta=1.0)``.
    cv : int, splitter or iterable of splits, default=5
        How rows are held out from the models. Each row must be in exactly one test part.
    n_jobs : int, optional
        Number of models to fit at the same time.
    random_state : int, RandomState or None, default=None
        Seed of the folds.
    pos_label : label, optional
        The positive class; by default the last in sorted order, with a warning where that may not be meant.

    Attributes
    ----------
    estimators_ : list of estimators
        The models, fitted to all rows.
    named_estimators_ : Bunch
        The same by name.
    weights_ : ndarray of shape (n_estimators,)
        Their weights w, of sum a.
    threshold_ : float
        The score that the share `tau` of the held-out negatives exceeds.
    alpha_ : float
        The penalty used.
    selection_ : dict of ndarray
        For ``alpha="auto"``: each ``alpha`` and the mean share of positives ``found``; the first one is the plain mean.
    head_ : estimator
        The fitted head, with its certificate.
    dual_gap_ : float
        The certificate of the head.
    scales_ : list of ndarray of shape (2, n_knots)
        The scale of each model.
    classes_ : ndarray of shape (2,)
        The labels; the second one is the positive class.
    n_features_in_ : int
        Number of features, if the models say it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had names and the models keep them.

    Examples
    --------
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from toprank.blending import TopBlend
    >>> from toprank.datasets import make_imbalanced
    >>> from toprank.metrics import tpr_at_fpr
    >>> X, y, _ = make_imbalanced(3000, separation=3.0, random_state=0)
    >>> models = [("line", LogisticRegression()), ("trees", ExtraTreesClassifier(50, random_state=0))]
    >>> blend = TopBlend(models, tau=0.02, random_state=0).fit(X[:2000], y[:2000])
    >>> bool(tpr_at_fpr(y[2000:], blend.decision_function(X[2000:]), max_fpr=0.02) > 0.4)
    True
    >>> blend.weights_.shape, bool(blend.dual_gap_ <= 1e-4)
    ((2,), True)
    """

    saved_state: ClassVar[Schema] = Schema(
        {
            **FEATURES,
            "estimators": Items(Record((WORD, Part(("fit",))))),
            "classes_": TWO_CLASSES,
            "estimators_": Items(Part(RESPONSES), "n_models"),
            "scales_": Items(Array("f8", (2, None)), "n_models"),
            "weights_": Array("f8", ("n_models",)),
            "threshold_": Number(),
            "alpha_": Number(0),
            "head_": Part(("decision_function",)),
            "selection_": Table(others=Array("f8", ("n_candidates",))),
        },
        fitted="classes_",
        before=("estimators",),
    )

    estimators: Sequence[tuple[str, Any]]
    _: KW_ONLY
    tau: float = 0.01
    alpha: str | float = "auto"
    head: Any = None
    cv: Any = 5
    n_jobs: int | None = None
    random_state: Any = None
    pos_label: Any = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, those of the models by their names.

        Parameters
        ----------
        deep : bool, default=True
            Whether to give those of the models too.

        Returns
        -------
        dict
            Values by name.
        """
        return dict(self._get_params("estimators", deep=deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; a model is replaced by its name.

        Parameters
        ----------
        **params : dict
            Values by name.

        Returns
        -------
        self
            The estimator.
        """
        self._set_params("estimators", **params)
        return self

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the models, and the weights to their scores of rows that they have not seen.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows, as the models take them.
        y : array-like of shape (n_samples,)
            Two classes.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 equals a repeated row to the head and to models that take it so, a weight of 0 a removed one.

        {fitted}
        """
        self._check_parameters()
        X, y = check_rows(X, y, type(self).__name__)
        with anew_or_unchanged(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: NDArray[Any], sample_weight: ArrayLike | None) -> None:
        coding = Coding.of(y, self, [model for _, model in self.estimators], self.pos_label)
        self.classes_ = np.asarray(coding.classes)
        positive = is_positive(y, self.classes_)
        self._check_frozen()
        weights = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        kept = weights > 0
        if len(np.unique(positive[kept])) < 2:
            raise ValueError("without the rows whose sample_weight is 0 one class is missing; both need some weight")
        splits = self._splits(X, positive, kept)
        if not kept.all():
            X, positive, weights = _safe_indexing(X, np.flatnonzero(kept)), positive[kept], weights[kept]
        models = [coding.told(model) for _, model in self.estimators]
        held_out = self._fit_models(models, X, positive, None if sample_weight is None else weights, splits)
        self.scales_ = [alarm_scale(scores, positive, weights) for scores in held_out]
        levels = np.column_stack([on_scale(*pair) for pair in zip(held_out, self.scales_, strict=True)])
        self.selection_ = self._select(levels, positive, weights)
        self.alpha_ = _best(self.selection_) if self.alpha == "auto" else float(self.alpha)
        self.head_ = self._fitted_head(self.alpha_, levels, positive, weights)
        self.weights_ = _weights_of(self.head_)
        self.threshold_ = smallest_threshold((levels @ self.weights_)[~positive], weights[~positive], self.tau)
        take_names(self, self.estimators_[0])

    def _fit_models(
        self, models: list[Any], X: Any, positive: Mask, weights: Floats | None, splits: list[Split]
    ) -> list[Floats]:
        """Fit the models, and give the scores of each row by models that have not seen it."""
        y = positive.astype(np.int64)
        everything = (np.arange(len(y)), None)
        tasks = [
            (number, split)
            for number, model in enumerate(models)
            for split in ([everything] if isinstance(model, FrozenEstimator) else [*splits, everything])
        ]
        done = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_and_score)(models[number], X, y, weights, split) for number, split in tasks
        )
        held_out = [np.empty(len(y)) for _ in models]
        self.estimators_ = []
        for (number, (_, test)), (model, scores) in zip(tasks, done, strict=True):
            if test is None:
                self.estimators_.append(model)
            else:
                held_out[number][test] = scores
        for number, model in enumerate(models):
            if isinstance(model, FrozenEstimator):
                held_out[number] = scores_of(self.estimators_[number], X).astype(np.float64)
        return held_out

    def _splits(self, X: Any, positive: Mask, kept: Mask) -> list[Split]:
        """Rows to fit the models to and rows to score, among those that are kept, by their numbers there."""
        if all(isinstance(model, FrozenEstimator) for _, model in self.estimators):
            return []
        cv = (
            stratified_folds(positive[kept], int(self.cv), self.random_state)
            if isinstance(self.cv, Integral)
            else self.cv
        )
        splits = splits_of(cv, X, positive, classifier=True)
        times = np.bincount(np.concatenate([test for _, test in splits]), minlength=len(positive))
        if not np.all(times == 1):
            row = int(np.flatnonzero(times != 1)[0])
            raise InputError.saying(
                "{cv} has row {row} in {n} test parts, where each row must be in one; use a number of folds such as 5",
                row=row,
                n=int(times[row]),
            )
        number = np.cumsum(kept) - 1
        return [(number[train[kept[train]]], number[test[kept[test]]]) for train, test in splits]

    def _select(self, levels: Floats, positive: Mask, weights: Floats) -> dict[str, Floats]:
        """For each penalty the mean share of positives found, by scores of heads that have not seen the rows."""
        if self.alpha != "auto":
            return {}
        folds = list(stratified_folds(positive, _FOLDS, self.random_state).split(levels, positive))
        rates = [min(rate * self.tau, 1.0) for rate in _RATES]
        found = []
        for alpha in ALPHAS:
            scores = np.empty(len(positive))
            for train, test in folds:
                head = self._fitted_head(alpha, levels[train], positive[train], weights[train])
                scores[test] = head.decision_function(_columns(levels[test]))
            shares = [tpr_at_fpr(positive, scores, max_fpr=rate, sample_weight=weights) for rate in rates]
            found.append(float(np.mean(shares)))
        return {"alpha": np.array(ALPHAS), "found": np.array(found)}

    def _fitted_head(self, alpha: float, levels: Floats, positive: Mask, weights: Floats) -> Any:
        head = clone_for_scores(PatMatNP(tau=self.tau, beta=1.0) if self.head is None else self.head)
        return head.set_params(alpha=alpha, pos_label=True).fit(_columns(levels), positive, sample_weight=weights)

    def _check_parameters(self) -> None:
        require_share("tau", self.tau)
        if self.alpha != "auto":
            require_positive("alpha", self.alpha, "use 'auto', or a value such as 30.0")
        pairs = self.estimators if isinstance(self.estimators, Sequence) else ()
        if not pairs or not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise InputError.of(
                "estimators", self.estimators, "must be pairs of a name and a classifier",
                "use such as [('forest', TopForest())]",
            )  # fmt: skip
        self._validate_names([name for name, _ in self.estimators])
        for name, model in self.estimators:
            if not any(hasattr(model, method) for method in RESPONSES):
                raise InputError.saying(
                    "the model {name} in {estimators} has neither decision_function nor predict_proba, so its rows "
                    "have no scores; use a classifier with one of them",
                    name=repr(name),
                )
        if self.head is not None and not (hasattr(self.head, "alpha") and getattr(self.head, "kernel", "") == "linear"):
            raise InputError.of("head", self.head, "must be a linear method of the family", "use one such as TauFPL()")

    def _check_frozen(self) -> None:
        """Refuse a model of the user that scores another class."""
        for name, model in self.estimators:
            if isinstance(model, FrozenEstimator) and model.classes_[-1] != self.classes_[1]:
                raise InputError.of(
                    "pos_label",
                    self.classes_.tolist()[1],
                    "must be the class that the frozen model {name!r} scores, {scored!r}",
                    "fit that one to labels of which the second in sorted order is positive, such as 0 and 1",
                    name=name,
                    scored=np.asarray(model.classes_).tolist()[-1],
                )

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted models by name."""
        check_is_fitted(self)
        return Bunch(**dict(zip([name for name, _ in self.estimators], self.estimators_, strict=True)))

    @property
    def dual_gap_(self) -> float:
        """The certificate of the head."""
        check_is_fitted(self)
        return float(self.head_.dual_gap_)

    def levels(self, X: Any) -> Floats:
        """Scores of the models, each on the scale of its own false alarms.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            Minus the logarithm of the share of held-out negatives that a model has above the row.
        """
        check_is_fitted(self)
        pairs = zip(self.estimators_, self.scales_, strict=True)
        return np.column_stack([on_scale(scores_of(model, X).astype(np.float64), scale) for model, scale in pairs])

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score minus threshold: above zero means positive.

        {rows_and_scores}
        """
        levels = self.levels(X)
        warn_of_sorted_scorer(self.classes_)
        return np.asarray(levels @ self.weights_ - self.threshold_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        inner = [get_tags(model).input_tags for _, model in self.estimators]
        for name in ("sparse", "allow_nan", "string", "categorical"):
            setattr(tags.input_tags, name, all(getattr(one, name) for one in inner))
        return tags


def _columns(levels: Floats) -> Floats:
    """What the head learns on: the mean, hardly penalised, and the differences from it."""
    mean = levels.mean(axis=1, keepdims=True)
    return np.hstack([_FREE * mean, levels - mean])


def _weights_of(head: Any) -> Floats:
    """The weights of the models, from those of the columns."""
    first, *others = np.asarray(head.coef_[0], dtype=np.float64)
    return np.asarray(others - np.mean(others) + _FREE * first / len(others))


def _best(selection: dict[str, Floats]) -> float:
    """The penalty that finds most; of several the largest."""
    return float(selection["alpha"][np.argmax(selection["found"])])
