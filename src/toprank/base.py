"""What every estimator shares: its constructor and docstring, its two classes, a guarded fit, checks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from toprank.arrays import Floats, Mask
from toprank.docstrings import fill_class
from toprank.exceptions import InputError
from toprank.log import verbose
from toprank.positive_class import POS_LABEL_TEXT, in_order, labels_text, warn_if_guessed

_METHOD_TEXTS = {
    "rows_and_scores": """Parameters
----------
X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
    Rows to score.

Returns
-------
ndarray of shape (n_samples,)
    Larger for more likely positives.""",
    "rows_to_classify": """Parameters
----------
X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
    Rows to classify.""",
    "fitted": """Returns
-------
self
    The fitted estimator.""",
}


class Estimator(BaseEstimator):
    """Base of all estimators.

    The parameters are the fields of a dataclass, which makes the constructor that scikit-learn wants; a family has some
    in common. Docstrings may name texts of the family, such as {threshold}, and of the methods of all.
    """

    shared_text: ClassVar[Mapping[str, str]] = {}
    """Texts by the names that stand for them."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        fill_class(cls, {**_METHOD_TEXTS, **cls.shared_text, "pos_label": POS_LABEL_TEXT})

    @classmethod
    @lru_cache
    def _get_param_names(cls) -> list[str]:
        """The names of the parameters; scikit-learn reads the signature for them each time that it is asked."""
        names: list[str] = super()._get_param_names()
        return names


class NoProbabilities:
    """In place of a method that gives probabilities: it is not there, and the error says what helps."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> Any:
        name, y = owner.__name__, "y"
        classes = getattr(model, "__dict__", {}).get("classes_", np.arange(2)).tolist()
        if classes != sorted(classes):  # CalibratedClassifierCV takes sorted classes only
            y = f"y == {classes[1]!r}"
        raise AttributeError(
            f"{name} has no {self.name}: its scores order rows and are no probabilities; for these fit "
            f"sklearn.calibration.CalibratedClassifierCV({name}(...)) to X and {y}"
        )


@dataclass(eq=False, repr=False, kw_only=True)
class BinaryClassifier(ClassifierMixin, Estimator, ABC):
    """Base of the classifiers of two classes: the decision is the sign of score minus threshold."""

    pos_label: Any = None

    classes_: NDArray[Any] = field(init=False)

    @abstractmethod
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score minus threshold."""

    def predict(self, X: Any) -> Any:
        """The positive class where the decision function is above zero; a Dask array where that is one.

        {rows_to_classify}

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of `classes_`.
        """
        return labels_of(self.decision_function(X) > 0, self.classes_)

    predict_proba = NoProbabilities()
    predict_log_proba = NoProbabilities()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def labels_of(positive: Any, classes: NDArray[Any]) -> Any:
    """The second of two classes where a row is positive, else the first; of a Dask array one too."""
    if hasattr(positive, "map_blocks"):
        return positive.map_blocks(labels_of, classes, dtype=classes.dtype, meta=classes[:0])
    return np.asarray(classes[positive.astype(np.intp)])


@contextmanager
def anew_or_unchanged(estimator: Any) -> Iterator[None]:
    """Fit an estimator without anything of earlier fits; leave it as it was if that fails or is interrupted.

    What a fit leaves are the attributes that end with an underscore, and the kernel that belongs to them.
    """
    before = dict(vars(estimator))
    for name in before:
        if name.endswith("_") or name == "_kernel":
            delattr(estimator, name)
    try:
        with verbose(getattr(estimator, "verbose", 0)):
            yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def clone_for_scores(estimator: Any) -> Any:
    """A clone of which only the scores are used: no part of it pays for a threshold that spends a budget."""
    copy = clone(estimator)
    for name, value in copy.get_params().items():
        if name.rsplit("__", 1)[-1] == "threshold" and isinstance(value, str) and value == "budget":
            copy.set_params(**{name: "trained"})
    return copy


def two_classes(
    labels: Any, owner: Any, pos_label: Any = None, *, remedy: str = "", counts: Any = None
) -> NDArray[Any]:
    """The two classes among some labels as [negative, positive]: here it is decided which one is positive.

    It is `pos_label`, else the last in sorted order, with a warning where that may not be meant. `counts` says how many
    rows each label stands for, where that is not one.
    """
    labels = np.asarray(labels)
    # whole numbers are classes, which scikit-learn takes long to see
    if labels.ndim != 1 or labels.dtype.kind not in "biu":
        check_classification_targets(labels)
    classes = np.unique(labels)
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {type_of_target(labels)}, with "
            f"{len(classes)} classes; reduce it with toprank.datasets.binarize(y, positive=...)."
        )
    if len(classes) < 2:
        raise ValueError(f"{_name(owner)} needs two classes, got only one class: {classes.tolist()}{remedy}")
    if pos_label is None:
        share = float(np.average(labels == classes[1], weights=counts))
        warn_if_guessed(classes, share, _name(owner))
    return in_order(classes, pos_label)


def _name(owner: Any) -> str:
    return owner if isinstance(owner, str) else type(owner).__name__


def is_positive(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are the second class; others than the two are refused."""
    positive = np.asarray(y == classes[1])
    unknown = ~(positive | np.asarray(y == classes[0]))
    if unknown.any():
        label = y[unknown].tolist()[0]
        raise ValueError(f"y has the label {label!r}, which is not one of the classes {labels_text(classes.tolist())}")
    return positive


def balanced_threshold(scores: Floats, positive: Mask, weights: Floats | None = None) -> float:
    """The threshold with the least sum of the error rates of both classes, half way to the next score above it.

    Of several the one with the longest way. Where all are worse than no positive at all, the largest score.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    order = np.argsort(scores)
    scores, total = scores[order], np.where(positive, weights[positive].sum(), -weights[~positive].sum())
    error = np.cumsum((weights / total)[order])  # of taking all scores up to this one as negative, minus one
    gap = np.diff(scores)
    cuts = np.flatnonzero(gap > 0)
    if not cuts.size or error[cuts].min() > 1e-12:
        return float(scores[-1])
    best = cuts[error[cuts] <= error[cuts].min() + 1e-12]
    cut = best[np.argmax(gap[best])]
    return float(scores[cut] + gap[cut] / 2)


def check_magnitude(X: Any) -> None:
    """Refuse features so large or small that the squares in a penalised objective lose all digits."""
    values = X.data if issparse(X) else X
    check_largest(float(max(values.max(), -values.min())) if values.size else 0.0)


def check_largest(largest: float) -> None:
    """The same of the largest absolute value."""
    if largest > 1e15 or 0 < largest < 1e-15:
        raise ValueError(
            f"the largest absolute value of X is {largest:.0e}, too far from 1 for the penalty to make sense; scale "
            "the features, for instance with sklearn.preprocessing.StandardScaler"
        )


def check_square(X: Any) -> None:
    """Refuse a precomputed kernel of other rows than the training rows with themselves."""
    n_rows, n_columns = X.shape
    if n_rows != n_columns:
        raise InputError.saying(
            "{kernel='precomputed'} needs the square matrix of all training rows, got {found}; pass the kernel of the "
            "training rows with themselves",
            found=f"{n_rows} rows and {n_columns} columns",
        )


def check_indices(X: Any) -> None:
    """Refuse sparse rows that point outside their arrays or columns, where compiled loops would read and write."""
    if issparse(X):
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"X is no valid sparse matrix of shape {X.shape}: {error}; build it anew") from error
