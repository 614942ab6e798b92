"""Labels on their way into wrapped estimators: 0 and 1, whatever the user calls the two classes.

So any classifier of scikit-learn can be inside, with its scorers, and the second class is the positive one everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator

from toprank.base import is_positive, two_classes
from toprank.exceptions import InputError
from toprank.positive_class import are_usual


@dataclass(frozen=True)
class Coding:
    """The two classes of the user, [negative, positive], and how estimators inside get them.

    Labels that are usual already, such as -1 and 1, stay as they are, and so do all where there are no two classes.
    """

    classes: NDArray[Any] | None = None

    @classmethod
    def of(cls, y: NDArray[Any], owner: Any, estimators: Iterable[Any], pos_label: Any, counts: Any = None) -> Self:
        """The coding of labels; the positive one is that which is named, here or by an estimator inside."""
        named = [pos_label, *(label for one in estimators for label in named_inside(one))]
        return cls(two_classes(y, owner, agreed(named), counts=counts))

    @property
    def as_given(self) -> bool:
        """Whether labels stay as they are."""
        return self.classes is None or are_usual(self.classes.tolist())

    def codes(self, y: NDArray[Any]) -> NDArray[Any]:
        """Labels as an estimator inside gets them."""
        return y if self.classes is None or self.as_given else is_positive(y, self.classes).astype(np.int64)

    def told(self, estimator: Any) -> Any:
        """A clone whose parameters name the labels that it gets, with 1 as the positive one, so it need not warn."""
        estimator = clone(estimator)
        if self.classes is None:
            return estimator
        labels = self.classes.tolist()
        code = dict(zip(labels, labels if self.as_given else [0, 1], strict=True))
        changed: dict[str, Any] = {}
        for name, value in estimator.get_params().items():
            kind = name.rsplit("__", 1)[-1]
            if kind == "pos_label":
                changed[name] = 1
            elif kind == "class_weight" and isinstance(value, Mapping):
                changed[name] = {code.get(label, label): weight for label, weight in value.items()}
            elif kind == "labels" and value is not None:
                changed[name] = [code.get(label, label) for label in np.asarray(value).tolist()]
            elif kind == "graph" and not isinstance(value, str):
                changed[name] = [(*(code.get(label, label) for label in edge[:2]), *edge[2:]) for edge in value]
        if changed:
            estimator.set_params(**changed)
        return estimator

    def with_labels(self, model: Any) -> Any:
        """A model that was fitted to codes, as if it had been fitted to the labels."""
        return model if self.as_given else Relabelled(model, self.classes)


class Relabelled:
    """A fitted classifier that calls its two classes by other labels; in all else it is the model."""

    def __init__(self, model: Any, classes: Any) -> None:
        self._model = model
        self.classes_ = np.asarray(classes)

    def predict(self, X: Any) -> NDArray[Any]:
        """The prediction by its new label; a ranker predicts no labels."""
        predicted = np.asarray(self._model.predict(X))
        if not is_classifier(self._model):
            return predicted
        return np.asarray(self.classes_[(predicted == self._model.classes_[1]).astype(np.intp)])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


def named_inside(estimator: Any) -> list[Any]:
    """The positive classes that an estimator and those inside it were given."""
    if not hasattr(estimator, "get_params"):
        return []
    parameters = estimator.get_params().items()
    return [value for name, value in parameters if name.rsplit("__", 1)[-1] == "pos_label" and value is not None]


def agreed(named: Iterable[Any]) -> Any:
    """The one positive class that is named, None if there is none."""
    different = list(dict.fromkeys(label for label in named if label is not None))
    if len(different) > 1:
        raise InputError.of(
            "pos_label",
            different[0],
            "is not the same everywhere: elsewhere it is {other!r}",
            "name one positive class",
            other=different[1],
        )
    return different[0] if different else None


def coding_of(wrapper: Any, y: NDArray[Any], counts: Any = None) -> Coding:
    """The coding of a wrapper; a frozen estimator keeps its own classes, which must be those that are asked for.

    `counts` says how many rows each label stands for, where that is not one.
    """
    inner = wrapper.estimator
    if not isinstance(inner, FrozenEstimator) or not hasattr(inner, "classes_"):
        return Coding.of(y, wrapper, [inner], wrapper.pos_label, counts)
    classes = two_classes(inner.classes_, wrapper, np.asarray(inner.classes_)[-1])
    if wrapper.pos_label is not None and wrapper.pos_label != classes[1]:
        raise InputError.of(
            "pos_label",
            wrapper.pos_label,
            "must be the class that the frozen estimator scores, {scored!r}",
            "fit that one to labels of which the second in sorted order is positive, such as 0 and 1",
            scored=classes.tolist()[1],
        )
    is_positive(y, classes)  # refuses other labels
    return Coding(classes)
