"""What the online rankers share: validation, classes, the threshold, predictions."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from toprank.arrays import Floats, Mask
from toprank.base import BinaryClassifier, anew_or_unchanged, check_indices, is_positive, two_classes
from toprank.checks import require_count, require_positive, require_share
from toprank.exceptions import InputError
from toprank.online._documentation import SHARED_TEXT
from toprank.online._rows import Rows, Scores, scores_of
from toprank.online.threshold import threshold
from toprank.positive_class import warn_of_sorted_scorer
from toprank.saved_state import FEATURES, LARGEST_COUNT, TWO_CLASSES, Array, Rule, Schema, Table, count

# Squares of sums of features, and features times factors of steps, have to stay far from the largest number.
_LARGEST_VALUE = 1e50
_LARGEST_STATE = 2**31


def started_with(**rules: Rule) -> Table:
    """The rule for the parameters that a model started with."""
    return Table({"threshold_window": count(1), **rules})


@dataclass(eq=False, repr=False, kw_only=True)
class OnlineRanker(BinaryClassifier):
    """Base of the online rankers: a subclass makes its state and learns from a batch of rows."""

    shared_text = SHARED_TEXT

    # Parameters that give the state its shape or its meaning: they stay what they were at the start.
    _lasting: ClassVar[tuple[str, ...]] = ("threshold_window",)

    saved_state: ClassVar[Schema] = Schema(
        {
            **FEATURES,
            "classes_": TWO_CLASSES,
            "started_with_": started_with(),
            "recent_scores_": Array("f8", (2, lambda known: known["started_with_"]["threshold_window"]), rowwise=True),
            "n_scores_": Array("i8", (2,), low=0, high=LARGEST_COUNT),
        },
        relations={
            "the parameters that it started with": lambda known: all(
                known[name] == value for name, value in known["started_with_"].items()
            )
        },
        learns=True,
    )

    max_fpr: float | None = None
    threshold_window: int = 1000

    weights_: Floats = field(init=False)

    @abstractmethod
    def _start(self, n_features: int) -> None:
        """Set the state of a model that has seen nothing."""

    @abstractmethod
    def _learn(self, rows: Rows, scores: Scores) -> None:
        """Learn from rows one after the other, and record the score that each had before."""

    def _keep(self, state: Any, prefix: str = "") -> None:
        """Set the arrays of a state of the compiled loops, a named tuple, as attributes."""
        for name, array in state._asdict().items():
            setattr(self, f"{prefix}{name}_", array)

    def _state(self, kind: Any, prefix: str = "") -> Any:
        """The state of that kind, of the attributes."""
        return kind(*[getattr(self, f"{prefix}{name}_") for name in kind._fields])

    def _check_parameters(self) -> None:
        if self.max_fpr is not None:
            require_share("max_fpr", self.max_fpr)
        require_count("threshold_window", self.threshold_window)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Start anew and learn from the rows in one pass, in the order in which they come.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to learn from; scale them first. Shuffle rows that are sorted in any way.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.
        sample_weight : array-like of shape (n_samples,), optional
            Weights as for `partial_fit`.

        {fitted}
        """
        with anew_or_unchanged(self):
            return self._update(X, y, None, sample_weight, need_both=True)

    def partial_fit(
        self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows. How a stream is cut into calls makes no difference, not even in the last bit.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to learn from, in the order in which they came.
        y : array-like of shape (n_samples,)
            Their labels.
        classes : array-like of shape (2,), optional
            The two classes, in any order: `pos_label` says which one is positive. Needed in the first call, unless
            both are in its y.
        sample_weight : array-like of shape (n_samples,), optional
            A weight multiplies the loss of the row, and the row counts that many times in the statistics of its class.
            A row of weight 0 is left out. A weight of 2 is one step with twice the loss, not two steps.

        Returns
        -------
        self
            The estimator.
        """
        return self._update(X, y, classes, sample_weight, need_both=False)

    def _update(self, X: Any, y: Any, classes: Any, sample_weight: Any, *, need_both: bool) -> Self:
        first = not hasattr(self, "classes_")
        self._check_parameters()
        if not first:
            self._check_lasting()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=first)
        check_indices(X)
        known = self._classes(y, classes, need_both=need_both)
        positive = is_positive(y, known)
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=not need_both
            )
            require_factor("sample_weight", weights.max(initial=0.0))
        kept = weights > 0
        if need_both and len(np.unique(positive[kept])) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of both classes with a positive weight; use partial_fit with "
                f"classes={known.tolist()} where one of them may come later"
            )
        rows = _as_rows(X, positive, weights, kept)
        if first:
            self._start(X.shape[1])
            self.recent_scores_ = np.zeros((2, int(self.threshold_window)))
            self.n_scores_ = np.zeros(2, np.int64)
            self.started_with_ = {name: getattr(self, name) for name in self._lasting}
            self.classes_ = known
        self._learn(rows, Scores(self.recent_scores_, self.n_scores_))
        return self

    def _check_lasting(self) -> None:
        for name, value in self.started_with_.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} was {value!r} when this model started, and is {getattr(self, name)!r} now, which its "
                    "state does not allow; set it back, or start anew by fit"
                )

    def _classes(self, y: NDArray[Any], classes: Any, *, need_both: bool) -> NDArray[Any]:
        """The two classes, the positive one last: those known, or those given, or those of y."""
        known = getattr(self, "classes_", None)
        if known is None:
            remedy = "" if need_both or classes is not None else "; name both by classes= in the first call"
            return two_classes(y if classes is None else classes, self, self.pos_label, remedy=remedy)
        negative, positive = known.tolist()
        if self.pos_label is not None and self.pos_label != positive:
            raise InputError.of(
                "pos_label",
                self.pos_label,
                "must stay what it was when this model started, {positive!r}",
                "set it back, or start anew by fit",
                positive=positive,
            )
        found = known.tolist() if classes is None else np.unique(np.asarray(classes)).tolist()
        if found not in ([negative, positive], [positive, negative]):
            raise ValueError(
                f"classes={found} is not the same as in the first call, {known.tolist()}; leave it out, or start with "
                "a new estimator"
            )
        return np.asarray(known)

    def _weights(self) -> Floats:
        """The direction w, where it is not stored as such."""
        return self.weights_

    @property
    def coef_(self) -> Floats:
        """A copy of the direction w, of shape (1, n_features)."""
        check_is_fitted(self, "classes_")
        return np.array(self._weights())[None, :]

    @property
    def threshold_(self) -> float:
        """Scores above it are predicted positive."""
        check_is_fitted(self, "classes_")
        return threshold(Scores(self.recent_scores_, self.n_scores_), self.max_fpr)

    @property
    def intercept_(self) -> Floats:
        """−threshold_, of shape (1,)."""
        return np.array([-self.threshold_])

    @property
    def n_samples_seen_(self) -> int:
        """Number of rows learned from, without those of weight zero."""
        check_is_fitted(self, "classes_")
        return int(self.n_scores_.sum())

    def decision_function(self, X: Any) -> Floats:
        """Score minus threshold: above zero means positive.

        {rows_and_scores}
        """
        check_is_fitted(self, "classes_")
        warn_of_sorted_scorer(self.classes_)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        check_indices(X)
        return np.asarray(self._scores(X) - self.threshold_, dtype=np.float64)

    def _scores(self, X: Any) -> Floats:
        """Scores of validated rows."""
        return scores_of(X, self._weights())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")


@dataclass(eq=False, repr=False, kw_only=True)
class GradientRanker(OnlineRanker):
    """Base of the online rankers that take steps of a given length along the gradient of a penalised loss."""

    learning_rate: float = 0.01
    alpha: float = 1e-4

    def _check_parameters(self) -> None:
        super()._check_parameters()
        require_positive("learning_rate", self.learning_rate, f"use a value such as {type(self).learning_rate}")
        alpha: Any = self.alpha
        if not (isinstance(alpha, Real) and 0 <= float(alpha) < np.inf):
            raise ValueError(f"alpha must be at least 0 and finite, got {alpha!r}; use a value such as 1e-4")
        for name in ("learning_rate", "alpha"):
            require_factor(name, getattr(self, name))


def require_factor(name: str, value: Any) -> None:
    """Check that a factor of steps is not so large that what it multiplies overflows."""
    if float(value) > _LARGEST_VALUE:
        raise ValueError(f"{name} must be at most {_LARGEST_VALUE:.0e}, got {float(value):.3g}; use a smaller one")


def require_room(what: str, n_numbers: int, remedy: str) -> None:
    """Refuse a state of so many numbers that no one would want it in memory."""
    size = 8 * n_numbers
    if size > _LARGEST_STATE:
        raise ValueError(
            f"{what} would take {size / 2**30:.3g} GB, more than the {_LARGEST_STATE // 2**30} GB allowed; {remedy}"
        )


def seed_of(random_state: Any) -> int:
    """A number for the compiled generator."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _as_rows(X: Any, positive: Mask, weights: Floats, kept: Mask) -> Rows:
    """The rows of positive weight in canonical CSR form, float64, without zeros."""
    X = csr_array(X, dtype=np.float64)
    largest = float(max(X.data.max(initial=0.0), -X.data.min(initial=0.0)))
    if largest > _LARGEST_VALUE:
        raise ValueError(
            f"the largest absolute value of X is {largest:.0e}, and squares of such numbers overflow; scale the "
            "features, for instance with sklearn.preprocessing.StandardScaler"
        )
    if not kept.all():
        X, positive, weights = X[kept], positive[kept], weights[kept]
    if not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return Rows(X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data, positive, weights)
