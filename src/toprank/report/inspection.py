"""What a fitted model is made of: wrappers, preparation of the rows, and the estimators that score them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from toprank.decision import NeymanPearsonClassifier, TopKClassifier
from toprank.selection._certificate import certificate_of


@dataclass(frozen=True)
class Part:
    """An estimator that gives scores, and the steps that prepare rows for it."""

    preparation: tuple[Any, ...]
    estimator: Any

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
        gaps = [
            certificate_of(part.estimator)
            for part in self.parts
            if hasattr(part.estimator, "dual_gap_") or hasattr(part.estimator, "suboptimality_")
        ]
        known = [gap for gap in gaps if gap is not None]
        return max(known) if len(known) == len(self.parts) else None

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
    elif isinstance(model, NeymanPearsonClassifier):
        first, *others = model.estimators_
        _descend(first, preparation, levels, parts)
        for other in others:
            _descend(other, preparation, [], parts)
    elif isinstance(model, TopKClassifier | FixedThresholdClassifier | TunedThresholdClassifierCV):
        _descend(model.estimator_, preparation, levels, parts)
    elif hasattr(model, "best_estimator_"):
        _descend(model.best_estimator_, preparation, levels, parts)
    else:
        parts.append(Part(preparation, model))


def _is_plumbing(level: Any) -> bool:
    return isinstance(level, FrozenEstimator) or hasattr(level, "steps")
