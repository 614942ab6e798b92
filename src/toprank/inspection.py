"""What is in a model: wrappers, preparation of the rows, the estimators that score them, what these know of themselves.

Nothing else looks into pipelines, searches, decision rules and frozen estimators.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from toprank.base import Estimator
from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier, TopKClassifier
from toprank.plain_data import plain

# Rules that keep the one estimator that they fitted.
_ONE_INSIDE = (AlertShareClassifier, TopKClassifier, FixedThresholdClassifier, TunedThresholdClassifierCV)


@dataclass(frozen=True)
class Part:
    """An estimator that gives scores, and the steps that prepare rows for it."""

    preparation: tuple[Any, ...]
    estimator: Any

    @property
    def steps(self) -> list[Any]:
        """The steps of the preparation one by one."""
        return [step for line in self.preparation for _, step in line.steps]

    def prepare(self, X: Any) -> Any:
        """Rows as the estimator gets them."""
        for step in self.preparation:
            X = step.transform(X)
        return X

    def names(self, given: list[str]) -> list[str] | None:
        """Names of the columns that the estimator gets, or None where a step cannot say."""
        names: Any = given
        for step in self.preparation:
            try:
                names = step.get_feature_names_out(names)
            except (AttributeError, ValueError, TypeError):
                return None
        return [str(name) for name in names]


@dataclass(frozen=True)
class Anatomy:
    """The objects from the outermost one inwards, and the parts that score; several for a vote."""

    levels: list[Any]
    parts: list[Part]

    @property
    def name(self) -> str:
        """The class that scores and those around it, preparation left out."""
        shown = [type(level).__name__ for level in self.levels if not _is_plumbing(level)]
        return " › ".join(shown)

    @property
    def gap(self) -> float | None:
        """The largest certificate of the parts, None if one of them has none."""
        return certificate_of(self.levels[0])

    def find(self, kind: type) -> Any:
        """The first level of a kind, or None."""
        return next((level for level in self.levels if isinstance(level, kind)), None)


def anatomy(model: Any) -> Anatomy:
    """Look into pipelines, searches, decision rules and frozen estimators.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import TauFPL
    >>> found = anatomy(make_pipeline(StandardScaler(), TauFPL()))
    >>> found.name, [type(step).__name__ for step in found.parts[0].preparation]
    ('TauFPL', ['Pipeline'])
    """
    levels: list[Any] = []
    parts: list[Part] = []
    _descend(model, (), levels, parts)
    return Anatomy(levels, parts)


def _descend(model: Any, preparation: tuple[Any, ...], levels: list[Any], parts: list[Part]) -> None:
    levels.append(model)
    if isinstance(model, FrozenEstimator):
        _descend(model.estimator, preparation, levels, parts)
    elif hasattr(model, "steps"):
        before = (model[:-1],) if len(model.steps) > 1 else ()
        _descend(model.steps[-1][1], (*preparation, *before), levels, parts)
    elif isinstance(model, NeymanPearsonClassifier) and hasattr(model, "estimators_"):
        first, *others = model.estimators_
        _descend(first, preparation, levels, parts)
        for other in others:
            _descend(other, preparation, [], parts)
    elif isinstance(model, _ONE_INSIDE) and hasattr(model, "estimator_"):
        _descend(model.estimator_, preparation, levels, parts)
    elif hasattr(model, "best_estimator_"):
        _descend(model.best_estimator_, preparation, levels, parts)
    else:
        parts.append(Part(preparation, model))


def reads_tables(model: Any) -> bool:
    """Whether a model reads tables by itself, and gives their rows to the estimator in it."""
    return hasattr(model, "rows") and hasattr(model, "estimator_")


def last_step(model: Any) -> Any:
    """The last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def model_name(model: Any) -> str:
    """Name of the class of a model, of the last step of a pipeline."""
    return type(last_step(model)).__name__


def scorer_of(model: Any) -> Any:
    """The estimator that scores, inside thresholds, searches and pipelines; the first one of a vote."""
    return anatomy(model).parts[0].estimator


def certificate_of(model: Any) -> float | None:
    """The relative bound on the suboptimality: `dual_gap_` or that of `WMWRanker`, None if there is none."""
    if hasattr(model, "dual_gap_"):
        return float(model.dual_gap_) if isfinite(model.dual_gap_) else None
    if hasattr(model, "suboptimality_"):
        return float(model.suboptimality_ / model.objective_)
    inside = _inside(model)
    gaps = [gap for gap in map(certificate_of, inside) if gap is not None]
    return max(gaps) if inside and len(gaps) == len(inside) else None


def about(model: Any) -> dict[str, Any]:
    """What a file says of its model without making it, in plain data: "class", "steps", "parameters", "certificate".

    A model that knows its columns is described by the estimator in it.
    """
    model = getattr(model, "inner", model)
    first = anatomy(model).parts[0]
    parameters = {name: value for name, value in model.get_params().items() if not hasattr(value, "get_params")}
    said: dict[str, Any] = plain(
        {
            "class": type(model).__name__,
            "steps": [type(step).__name__ for step in (*first.steps, first.estimator)],
            "parameters": {name: value for name, value in parameters.items() if not name.endswith("steps")},
            "certificate": certificate_of(model),
        }
    )
    return said


def _inside(model: Any) -> list[Any]:
    """The fitted models that another one, of whatever package, is made of."""
    if hasattr(model, "steps"):
        return [last_step(model)]
    for name in ("best_estimator_", "estimator_"):
        if hasattr(model, name):
            return [getattr(model, name)]
    several = getattr(model, "estimators_", None)
    return several if isinstance(several, list) else []


@dataclass(frozen=True)
class Budget:
    """The top of a list: a share, or a number k, of the negatives or of all rows; without both the very first rows."""

    over: str
    share: float | None
    k: float | None


def budget_of(estimator: Any) -> Budget | None:
    """The top of the list that an estimator was made for, None if it was made for no top."""
    if not isinstance(estimator, Estimator) or not hasattr(estimator, "over"):
        return None
    return Budget(estimator.over, getattr(estimator, "tau", None), getattr(estimator, "k", None))


def was_interrupted(model: Any) -> bool:
    """Whether Ctrl-C ended the fit of an estimator that scores, so that it is the best one so far."""
    return any(getattr(part.estimator, "interrupted_", False) for part in anatomy(model).parts)


def linear_coefficients(estimator: Any) -> NDArray[np.float64] | None:
    """The weight of each feature in the score, None if the score is not linear in the features."""
    coefficients = getattr(estimator, "coef_", None)
    if coefficients is None or hasattr(estimator, "feature_map_") or getattr(estimator, "kernel", "linear") != "linear":
        return None
    coefficients = np.asarray(coefficients.toarray() if issparse(coefficients) else coefficients, dtype=np.float64)
    return np.asarray(coefficients.ravel()) if coefficients.size == coefficients.shape[-1] else None


def column_names(X: Any) -> list[str]:
    """Names of the columns of a table, else x0, x1, …, as scikit-learn calls them."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    return [f"x{number}" for number in range(X.shape[1])]


def _is_plumbing(level: Any) -> bool:
    return isinstance(level, FrozenEstimator) or hasattr(level, "steps")
