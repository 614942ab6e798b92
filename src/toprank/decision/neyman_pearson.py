"""A threshold that keeps the false positive rate, with a stated confidence."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import reduce
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from toprank.base import clone_for_scores
from toprank.checks import is_count, require_choice, require_confidence, require_flag, require_share
from toprank.decision._labels import coding_of
from toprank.decision._rows import (
    PassesProbabilities,
    RoutesToSplitter,
    row_arguments,
    rows_with_weight,
    splits_of,
)
from toprank.decision._scores import RESPONSES, check_response_method, scores_of
from toprank.decision.order_statistics import ThresholdRule, threshold_rule
from toprank.exceptions import InputError, Message
from toprank.positive_class import warn_of_sorted_scorer
from toprank.saved_state import FLAG, Array, Items, Number, Part, Schema, count

Rows = NDArray[np.intp]
Splits = list[tuple[Rows, Rows]]


@dataclass(eq=False, repr=False)
class NeymanPearsonClassifier(RoutesToSplitter, PassesProbabilities):
    r"""Keep the false positive rate of any scorer below a bound, with a stated confidence.

    .. math:: \Pr\bigl(\mathrm{FPR} > \text{max\_fpr}\bigr) \le 1 - \text{confidence}

    A part of the negatives is held out from training. The threshold is the k-th smallest of their scores, with the
    smallest k for which the binomial tail :math:`\sum_{j \ge k} \binom nj (1 - \tau)^j \tau^{n-j}` is at most
    1 − confidence, and a row is positive if its score is *strictly* above it. The probability is over the draw of the
    held-out negatives. Nothing is assumed about the scorer or the distribution of scores, ties included, but that the
    held-out negatives and those to come are drawn independently from the same distribution. Where that drifts, no
    threshold set in the past keeps its promise: for rows in the order of time hold out the latest negatives by
    ``shuffle=False``, and set the threshold anew on fresh negatives with a `FrozenEstimator`.

    A random share of the negatives, or random folds of a vote, leave all positives in training: the guarantee does not
    need them.

    Parameters
    ----------
    estimator : estimator
        A classifier with `decision_function` or `predict_proba`, fitted to the rows that are not held out. A fitted one
        in a ``sklearn.frozen.FrozenEstimator`` is left as it is: then all negatives given to `fit` are held-out rows,
        and it must not have seen them.
    max_fpr : float, default=0.01
        The bound on the false positive rate, strictly between 0 and 1.
    confidence : float, default=0.95
        The probability with which it holds, strictly between 0 and 1.
    cv : float, int, splitter or iterable of splits, default=0.5
        How negatives are held out. A float: this share of them. An integer: each of so many folds of the negatives in
        turn. A splitter or splits: the negatives in the test part of each, each at most once, and only its train part
        is trained on. One split makes one model with the exact guarantee.
    shuffle : bool, default=True
        Whether a float or an integer `cv` holds negatives out at random. False is for rows in the order of time: a
        share are the last negatives, which are most like those to come, and the rows before them are trained on; folds
        are blocks of neighbours, and the rows outside are trained on.
    combine : {"unanimous", "refit"}, default="unanimous"
        What to make of several folds. "unanimous": each fold's model has its own threshold from its own held-out
        negatives, and a row is positive if all models say so. Its false positive rate is at most that of each
        model, so the guarantee is exact, on the safe side. "refit": one threshold from the held-out scores of all
        folds for a model fitted to all rows. It uses the data best and **has no guarantee**, as that model is not the
        one whose scores were held out; it is close where a fold more or less hardly changes the model. Random folds are
        then stratified.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Where scores come from; "auto" takes the first that there is.
    n_jobs : int, optional
        Number of folds to fit at the same time.
    random_state : int, RandomState or None, default=None
        Seed of the choice of held-out negatives, for a float or an integer `cv` with `shuffle`.
    {pos_label} An estimator inside that names one is enough.

    Attributes
    ----------
    threshold_ : float
        The threshold on the scores: the order statistic, raised by a few rounding errors so that a row equal to the one
        it came from stays below. For a unanimous vote zero, as the vote compares ``score - threshold`` of each model.
    estimator_ : estimator
        The fitted model; not there for a unanimous vote. It was given 0 and 1 for labels other than 0 and 1, -1 and 1,
        False and True.
    estimators_ : list of estimators
        The fitted models, one but for a unanimous vote.
    thresholds_ : ndarray of shape (n_models,)
        Their thresholds.
    n_calibration_ : int
        Number of held-out negatives of the threshold that the guarantee rests on: of a unanimous vote that with the
        smallest `violation_probability_`.
    rank_ : int
        The order statistic k among them, 1 for the smallest score.
    violation_probability_ : float
        The binomial tail, at most ``1 - confidence``: the probability that the rate exceeds `max_fpr`.
    fpr_bound_ : float
        What the rate does not exceed with the given confidence, at most `max_fpr`: with few negatives it is well below.
    guaranteed_ : bool
        Whether the guarantee is exact; False for ``combine="refit"`` with several folds.
    classes_ : ndarray of shape (2,)
        The labels; the second one is the positive class.
    n_features_in_ : int
        Number of features seen in `fit`, if the estimator says it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had names and the estimator keeps them.

    References
    ----------
    Tong, Feng and Li, Neyman-Pearson classification algorithms and NP receiver operating characteristics, Science
    Advances 4, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import NeymanPearsonClassifier, TauFPL
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(40_000, separation=3.0, random_state=0)
    >>> model = NeymanPearsonClassifier(TauFPL(tau=0.01), max_fpr=0.01, random_state=0).fit(X[:20_000], y[:20_000])
    >>> bool(np.mean(model.predict(X[20_000:])[y[20_000:] == 0]) <= 0.01)
    True
    >>> bool(model.violation_probability_ <= 0.05)
    True

    Too few negatives for the promise are refused:

    >>> model.fit(X[:500], y[:500])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    toprank.exceptions.InputError: max_fpr=0.01 with confidence=0.95 needs at least 299 held-out negatives, got 241; ...
    """

    saved_state: ClassVar[Schema] = PassesProbabilities._state(
        {
            "thresholds_": Array("f8", ("n_models",)),
            "estimators_": Items(Part(RESPONSES), "n_models"),
            "estimator_": Part(RESPONSES, optional=True),
            "threshold_": Number(),
            "n_calibration_": count(1),
            "rank_": count(1),
            "violation_probability_": Number(0, 1),
            "fpr_bound_": Number(0, 1),
            "guaranteed_": FLAG,
        },
        fitted="guaranteed_",
        relations={"a model": lambda known: bool(known["estimators_"])},
    )

    estimator: Any
    max_fpr: float = 0.01
    confidence: float = 0.95
    _: KW_ONLY
    cv: Any = 0.5
    shuffle: bool = True
    combine: str = "unanimous"
    response_method: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the model and set its threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, Dask array or dataframe} of shape (n_samples, n_features)
            Rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one. For a frozen estimator negatives are enough.
        **params : dict
            Arguments of the estimator's `fit`, such as `sample_weight`, and `groups` of the splitter; by metadata
            routing where that is enabled. Weights matter to training alone: the threshold counts each held-out negative
            once, as a row that counts twice is not two independent rows. A weight of 0 removes a row altogether.

        {fitted}
        """
        self._check_parameters()
        return self._learn(X, y, *self._route(params))

    def _fit(self, X: Any, y: NDArray[Any], params: dict[str, Any], *of_splitter: dict[str, Any]) -> None:
        kept = rows_with_weight(y, params)
        coding = coding_of(self, y)
        self.classes_ = np.asarray(coding.classes)
        negative = kept & (y != self.classes_[1])
        splits = self._splits(X, y, kept, negative, *of_splitter)
        fit = self._fit_pooled if self.combine == "refit" and len(splits) > 1 else self._fit_each
        fit(coding.told(clone_for_scores(self.estimator)), X, coding.codes(y), splits, params, int(negative.sum()))

    def _fit_blocks(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        """One model and its threshold; in blocks a share of the negatives is held out, or the model is frozen."""
        from toprank.decision._blocks import labelled_blocks, scores_in_blocks

        rows = labelled_blocks(self, X, y, params)
        self.classes_ = np.asarray(rows.coding.classes)
        negative = (rows.kept & ~rows.positive).stored()
        n, held_out = int(np.count_nonzero(negative)), negative
        model = rows.coding.told(clone_for_scores(self.estimator))
        if isinstance(self.estimator, FrozenEstimator):
            rule = self._rule(n, n)
        else:
            held_out, train = self._split_of_blocks(rows, negative)
            rule = self._rule(int(np.count_nonzero(held_out)), n)
            model = rows.fitted(model, train)
        scores = scores_in_blocks(scores_of(model, rows.X, self.response_method), held_out)
        self.estimators_, self.thresholds_ = [model], np.array([rule.threshold(scores)])
        self._describe(rule, guaranteed=True)

    def _split_of_blocks(self, rows: Any, negative: Any) -> tuple[Any, Any]:
        """Held-out negatives, and the rows to train on."""
        from toprank.decision._blocks import before, held_out_rows

        if not isinstance(self.cv, Real) or isinstance(self.cv, Integral):
            raise InputError.saying(
                "{cv=} is for rows in one memory; of a Dask array a share is held out, such as cv=0.5, or all "
                "negatives are, for a FrozenEstimator",
                cv=self.cv,
            )
        held_out, first = held_out_rows(negative, float(self.cv), self.shuffle, self.random_state)
        train = rows.kept & (~held_out if self.shuffle else before(rows.kept, first))
        if not (train & rows.positive).any() or not (train & ~rows.positive).any():
            raise self._one_class_left(int(np.count_nonzero(negative)), int(np.count_nonzero(rows.kept)))
        return held_out, train

    def _check_parameters(self) -> None:
        require_share("max_fpr", self.max_fpr)
        require_confidence(self.confidence)
        check_response_method(self.response_method)
        require_choice("combine", self.combine, ("unanimous", "refit"))
        require_flag("shuffle", self.shuffle)
        if isinstance(self.cv, Integral) and not is_count(self.cv, 2):
            raise InputError.of("cv", self.cv, "as a number of folds must be at least 2", "use a share such as 0.5")
        if isinstance(self.cv, Real) and not isinstance(self.cv, Integral):
            require_share("cv", self.cv)
        if get_tags(self.estimator).input_tags.pairwise and not isinstance(self.estimator, FrozenEstimator):
            raise ValueError(
                "an estimator with kernel='precomputed' cannot be trained on a part of the rows; fit it first and "
                "wrap it in sklearn.frozen.FrozenEstimator"
            )

    def _splits(
        self, X: Any, y: NDArray[Any], kept: NDArray[np.bool_], negative: NDArray[np.bool_], params: dict[str, Any]
    ) -> Splits:
        """Rows to train on and held-out negatives, once for each model; only rows that are kept."""
        rows, negatives = np.flatnonzero(kept), np.flatnonzero(negative)
        if isinstance(self.estimator, FrozenEstimator):
            return [(rows[:0], negatives)]
        if isinstance(self.cv, Real):
            splits = self._own_splits(rows, negatives)
            if any(len(np.unique(negative[train])) < 2 for train, _ in splits):
                raise self._one_class_left(len(negatives), len(rows))
            return splits
        pairs = splits_of(self.cv, X, y, classifier=True, **params)
        usable = [_usable(train, test, kept, negative) for train, test in pairs]
        for number, (train, _) in enumerate(usable):
            if len(np.unique(y[train])) < 2:
                raise ValueError(
                    f"split {number} of cv trains on rows of one class only, {y[train][:1].tolist()}; give splits with "
                    "both classes in their train part, or a share such as cv=0.5"
                )
        return usable

    def _one_class_left(self, n_negatives: int, n: int) -> InputError:
        there = f"there are {n_negatives} negatives and {n - n_negatives} positives"
        return InputError.saying(
            "{cv=} {leaves}; hold out fewer, for instance by cv=0.5, or give more rows",
            elsewhere="setting negatives aside for {max_fpr} {leaves}; give more rows",
            leaves=f"leaves only one class to train on, as it holds out all rows of the other: {there}",
            cv=self.cv,
        )

    def _own_splits(self, rows: Rows, negatives: Rows) -> Splits:
        """A share of the negatives, or folds of them."""
        n_held_out = int(np.ceil(self.cv * len(negatives)))
        if not self.shuffle:
            # with later positives and earlier negatives a model would learn the time
            if isinstance(self.cv, Integral):
                blocks = np.array_split(negatives, int(self.cv))
                return [(rows[(rows < block[0]) | (rows > block[-1])], block) for block in blocks]
            held_out = negatives[-n_held_out:]
            return [(rows[rows < held_out[0]], held_out)]
        random_state = check_random_state(self.random_state)
        shuffled = random_state.permutation(negatives)
        if not isinstance(self.cv, Integral):
            held_out = np.sort(shuffled[:n_held_out])
            return [(np.setdiff1d(rows, held_out), held_out)]
        folds = [np.sort(fold) for fold in np.array_split(shuffled, int(self.cv))]
        if self.combine != "refit":
            return [(np.setdiff1d(rows, fold), fold) for fold in folds]
        # Scores depend on the share of positives in training, so the models of the folds must have that of all rows.
        positives = np.array_split(random_state.permutation(np.setdiff1d(rows, negatives)), int(self.cv))
        left_out = [np.concatenate(pair) for pair in zip(folds, positives, strict=True)]
        return [(np.setdiff1d(rows, out), fold) for out, fold in zip(left_out, folds, strict=True)]

    def _fit_each(self, inner: Any, X: Any, y: Any, splits: Splits, params: dict[str, Any], n: int) -> None:
        """A model and a threshold for each split; a row is positive if it is above all of them."""
        rules = [self._rule(len(held_out), n) for _, held_out in splits]
        fits = self._fit_splits(inner, X, y, splits, params)
        self.estimators_ = [model for model, _ in fits]
        self.thresholds_ = np.array([rule.threshold(scores) for rule, (_, scores) in zip(rules, fits, strict=True)])
        self._describe(min(rules, key=lambda rule: rule.violation_probability), guaranteed=True)

    def _fit_pooled(self, inner: Any, X: Any, y: Any, splits: Splits, params: dict[str, Any], n: int) -> None:
        """One threshold from the held-out scores of all splits, for a model of all rows."""
        held_out = np.concatenate([rows for _, rows in splits])
        if len(np.unique(held_out)) < len(held_out):
            raise ValueError("combine='refit' needs splits that hold out each negative at most once; use folds")
        rule = self._rule(len(held_out), n)
        scores = np.concatenate([scores for _, scores in self._fit_splits(inner, X, y, splits, params)])
        self.estimators_ = [clone(inner).fit(X, y, **row_arguments(X, params))]
        self.thresholds_ = np.array([rule.threshold(scores)])
        self._describe(rule, guaranteed=False)

    def _rule(self, n_held_out: int, n_negatives: int) -> ThresholdRule:
        try:
            return threshold_rule(n_held_out, self.max_fpr, self.confidence)
        except ValueError as error:
            how: str = Message(
                ", and {cv=} holds out {n}", ", of which {n} are set aside for the threshold", cv=self.cv, n=n_held_out
            )
            how = "" if isinstance(self.estimator, FrozenEstimator) else how
            raise InputError.saying(
                "{error}. There are {n} negatives in all{how}.", error=error, n=n_negatives, how=how
            ) from None

    def _fit_splits(
        self, inner: Any, X: Any, y: Any, splits: Splits, params: dict[str, Any]
    ) -> list[tuple[Any, NDArray[Any]]]:
        """The fitted model of each split and the scores of its held-out negatives."""
        tasks = [(clone(inner), X, y, train, held_out, params, self.response_method) for train, held_out in splits]
        if len(tasks) == 1:  # a single fit, which an interrupt may keep
            return [_fit_and_score(*tasks[0])]
        return list(Parallel(n_jobs=self.n_jobs)(delayed(_fit_and_score)(*task) for task in tasks))

    def _describe(self, rule: ThresholdRule, *, guaranteed: bool) -> None:
        self.threshold_ = 0.0
        if len(self.estimators_) == 1:
            self.estimator_, self.threshold_ = self.estimators_[0], float(self.thresholds_[0])
        self.n_calibration_ = rule.n_negatives
        self.rank_ = rule.rank
        self.violation_probability_ = rule.violation_probability
        self.fpr_bound_ = rule.fpr_upper_bound
        self.guaranteed_ = guaranteed

    def decision_function(self, X: Any) -> Any:
        """Score minus threshold, of several models the smallest: above zero means positive. Of Dask a Dask array.

        {rows_and_scores}
        """
        check_is_fitted(self)
        warn_of_sorted_scorer(self.classes_)
        margins = [
            # in double precision, as a threshold rounded to single precision could fall below a tie
            scores_of(model, X, self.response_method).astype(np.float64) - threshold
            for model, threshold in zip(self.estimators_, self.thresholds_, strict=True)
        ]
        return reduce(np.minimum, margins)

    def _models(self) -> list[Any]:
        return list(getattr(self, "estimators_", []))


def _usable(train: Any, test: Any, kept: NDArray[np.bool_], negative: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """Rows of a split to train on and its held-out negatives, which must be new to the model and to each other."""
    numbers = np.arange(len(kept))  # a split may be given by numbers or by masks
    train, test = numbers[train], numbers[test]
    if len(np.intersect1d(train, test)):
        raise ValueError(
            "a split of cv has rows both in its train and its test part; the guarantee needs rows that were not "
            "trained on"
        )
    held_out = test[negative[test]]
    n_distinct = len(np.unique(held_out))
    if n_distinct < len(held_out):
        raise ValueError(
            f"a split of cv holds out {len(held_out)} negatives, of which only {n_distinct} are distinct rows; the "
            "guarantee counts independent rows, so hold out each at most once"
        )
    return train[kept[train]], held_out


def _fit_and_score(
    model: Any, X: Any, y: Any, train: Rows, held_out: Rows, params: dict[str, Any], response_method: str
) -> tuple[Any, NDArray[Any]]:
    """Fit to some rows, unless the model is frozen, and score others."""
    if not isinstance(model, FrozenEstimator):
        model.fit(_safe_indexing(X, train), y[train], **row_arguments(X, params, train))
    return model, scores_of(model, _safe_indexing(X, held_out), response_method)
