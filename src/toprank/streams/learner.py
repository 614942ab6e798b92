"""A model on its way through a stream: its steps, what it learns from a batch, and the names of its columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from toprank.files.rows import Batch, Rows, RowSource

CLASSES = np.array([0, 1])


class Learner:
    """The last step of a model, which learning changes, and the fitted steps before it."""

    def __init__(self, model: Any) -> None:
        last = model[-1] if isinstance(model, Pipeline) else model
        for method in ("partial_fit", "decision_function"):
            if not hasattr(last, method):
                raise TypeError(
                    f"{type(last).__name__} has no {method}, so it cannot learn from a stream; use a model of "
                    "toprank.online such as CBR"
                )
        self.model = model
        self.last = last
        self.is_named = _known(model, "feature_names_in_") is not None
        self.before = model[:-1] if isinstance(model, Pipeline) and len(model) > 1 else None
        for step in self.before or ():
            if step != "passthrough" and not _is_fitted(step):
                raise NotFittedError(
                    f"{type(step).__name__} is not fitted, and a stream fits only the last step of a pipeline; fit the "
                    "steps before it on a sample of the rows"
                )

    @property
    def n_features(self) -> int | None:
        """Number of features of a model that has learned, if it says so."""
        known: int | None = _known(self.model, "n_features_in_")
        return known

    def looked_at(self, part: Batch, source: RowSource) -> Batch:
        """A batch as it is learned from."""
        return part

    def keep_names(self, names: list[str] | None) -> None:
        """Note the columns that were learned from."""
        record_columns(self.model, names)

    def require_columns_of(self, source: RowSource) -> None:
        """Refuse a file with other columns than those that the model has learned from, or in another order."""
        names = _known(self.model, "feature_names_in_")
        if names is None or source.feature_names is None or list(names) == source.feature_names:
            return
        raise ValueError(
            f"the model has learned from other columns, or in another order, than those of {source.path!r}; pass "
            f"features={list(names)!r}"
        )

    def score_and_learn(self, rows: Rows) -> NDArray[Any] | None:
        """Scores before learning, None if nothing was learned before."""
        with _names_are_known() if self.is_named else nullcontext():
            X = rows.X if self.before is None else self.before.transform(rows.X)
            scores = self.last.decision_function(X) if _is_fitted(self.last) else None
            self.last.partial_fit(X, rows.y, classes=CLASSES)
        return scores


def record_columns(model: Any, names: list[str] | None) -> None:
    """Note on the first step of a model which columns it learned from, as scikit-learn does for a frame."""
    if names is not None and _known(model, "n_features_in_") in (len(names), None):
        with suppress(AttributeError):  # of a step that is a word, or finds its names itself
            _first_step(model).feature_names_in_ = np.array(names, dtype=object)


def forget_columns(model: Any) -> None:
    """Take such a note away, from a model that gets arrays without names."""
    getattr(_first_step(model), "__dict__", {}).pop("feature_names_in_", None)


def _first_step(model: Any) -> Any:
    while isinstance(model, Pipeline):
        model = model.steps[0][1]
    return model


def _known(model: Any, attribute: str) -> Any:
    """An attribute of the first step, None if it has none; one that failed to learn may have some that mean nothing."""
    step = _first_step(model)
    return getattr(step, attribute, None) if hasattr(step, "fit") and _is_fitted(step) else None


def _is_fitted(estimator: Any) -> bool:
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


@contextmanager
def _names_are_known() -> Iterator[None]:
    """No warnings that rows are without names: those of the file were compared with those of the model."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        yield
