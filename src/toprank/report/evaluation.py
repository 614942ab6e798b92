"""Held-out rows with one or several scores, of a model or of whatever made them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier, TopKClassifier
from toprank.exceptions import InputError
from toprank.inspection import Anatomy, anatomy, budget_of, reads_tables
from toprank.plots._display import scores_of
from toprank.ranking.ranked_list import OperatingPoint, RankedList
from toprank.ranking.tie_runs import positive_rows, score_column
from toprank.report.numbers_as_text import cell

MOST_LISTS = 6
# The name of scores that came without one.
UNNAMED = "score"


@dataclass(frozen=True)
class ScoredList:
    """The scores of the rows under a name, and the list that they make."""

    name: str
    scores: NDArray[Any]
    ranked: RankedList

    def point(self, k: int | None, max_fpr: float | None) -> OperatingPoint:
        """What a budget takes."""
        point = self.ranked.operating_point(k=k, max_fpr=max_fpr)
        assert point is not None
        return point


@dataclass(frozen=True)
class FittedModel:
    """A model, the rows as it takes them, and what its own threshold takes, if it has one.

    A model that reads tables by itself is looked into: `model` is the estimator in it. Both are also there as the user
    gave them, `given` and `table`.
    """

    model: Any
    parts: Anatomy
    X: Any
    own: OperatingPoint | None
    given: Any
    table: Any


@dataclass(frozen=True)
class Evaluation:
    """Held-out rows with labels and the lists that are to be judged; the model, if there is one, made the first."""

    lists: list[ScoredList]
    y: NDArray[Any]
    labels: Any
    positive: NDArray[np.bool_]
    pos_label: Any
    fitted: FittedModel | None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: NDArray[Any],
        pos_label: Any = None,
        scores: Any = None,
        labels: Sequence[Any] | None = None,
    ) -> Self:
        """Score the rows, if there is a model, and sort them by each score."""
        columns = _named(scores)
        threshold = parts = None
        given, table = model, X
        if model is not None:
            if reads_tables(model):
                model, X = model.estimator_, model.rows(X)
            parts = anatomy(model)
            made, pos_label, threshold = scores_of(model, X, pos_label, y)
            name = type(parts.parts[0].estimator).__name__ if columns else "model"
            if name in columns:
                raise InputError.saying(
                    "{scores} has the name {name!r}, which is that of the model; choose another name", name=name
                )
            columns = {name: made, **columns}
        lists = [_ranked(name, column, y, pos_label) for name, column in columns.items()]
        fitted = None
        if parts is not None:
            own = None if parts.find(TopKClassifier) else lists[0].ranked.operating_point(threshold=threshold)
            fitted = FittedModel(model, parts, X, own, given, table)
        return cls(lists, y, y if labels is None else labels, positive_rows(y, pos_label), pos_label, fitted)

    @property
    def ranked(self) -> RankedList:
        """The first list."""
        return self.lists[0].ranked

    @property
    def several(self) -> bool:
        """Whether lists are compared."""
        return len(self.lists) > 1

    @property
    def positive_label(self) -> str:
        """The label of the positives, as the user writes it."""
        return cell(self.labels[int(np.argmax(self.positive))])

    def default_budget(self) -> tuple[int | None, float | None]:
        """Number of alerts or false positive rate that the model was made for, else as many alerts as positives."""
        positives, total = int(self.ranked.positives), int(self.ranked.total)
        if self.fitted is None:
            return positives, None
        rule = self.fitted.parts.find(NeymanPearsonClassifier)
        if rule is not None:
            return None, float(rule.max_fpr)
        top = self.fitted.parts.find(TopKClassifier)
        if top is not None:
            return min(max(1, int(top.k if top.share is None else top.share * total)), total), None
        own = self.fitted.own
        if self.fitted.parts.find(AlertShareClassifier) is not None and own is not None and own.alerts:
            return int(own.alerts), None
        budget = budget_of(self.fitted.parts.parts[0].estimator)
        if budget is None or budget.share is None:
            return positives, None
        if budget.over == "negatives":
            return None, float(budget.share)
        return max(1, round(budget.share * total)), None


def _named(scores: Any) -> dict[str, ArrayLike]:
    """Scores by their names: of a mapping or a table, or one column alone."""
    if scores is None:
        return {}
    if isinstance(scores, Mapping):
        columns = {str(name): column for name, column in scores.items()}
    elif hasattr(scores, "columns"):
        columns = {str(name): scores[name] for name in scores.columns}
    else:
        columns = {UNNAMED: scores}
    if not 1 <= len(columns) <= MOST_LISTS:
        raise InputError.of("scores", list(columns), "must have one to {most} columns", most=MOST_LISTS)
    return columns


def _ranked(name: str, column: ArrayLike, y: NDArray[Any], pos_label: Any) -> ScoredList:
    scores = score_column(column, f"the score {name!r}" if name != UNNAMED else "scores")
    if len(scores) != len(y):
        raise InputError.saying(
            "there are {n} labels and {found} scores in {name!r}; give one score for each label",
            n=len(y),
            found=len(scores),
            name=name,
        )
    ranked = RankedList.from_predictions(y, scores, pos_label=pos_label)
    ranked.require(positives=True, negatives=True)
    return ScoredList(name, scores, ranked)
