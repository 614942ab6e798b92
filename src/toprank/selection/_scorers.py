"""Scorers by name, and the one that suits an estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import get_scorer as sklearn_scorer
from sklearn.metrics import get_scorer_names as sklearn_scorer_names

from toprank.base import clone_for_scores
from toprank.decision._labels import Coding
from toprank.inspection import budget_of
from toprank.metrics import get_scorer, get_scorer_names
from toprank.metrics.scorers import names_labels, unknown_metric
from toprank.positive_class import in_order


def named_scorer(metric: Any) -> tuple[str, Any]:
    """Name and scorer of a name, a tuple of a name and its parameters, or a scorer."""
    if isinstance(metric, str):
        own, theirs = get_scorer_names(), sklearn_scorer_names()
        if metric.removesuffix("_score") in own:
            return metric, get_scorer(metric)
        if metric not in theirs:
            raise unknown_metric(metric, sorted({*own, *theirs}))
        return metric, sklearn_scorer(metric)
    if isinstance(metric, tuple) and len(metric) == 2 and isinstance(metric[1], Mapping):
        name, parameters = metric
        label = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        return f"{name}({label})", get_scorer(name, **parameters)
    if callable(metric):
        return getattr(metric, "__name__", str(metric)), metric
    raise ValueError(
        f"a metric must be a name, a tuple of a name and a dict of parameters, or a scorer, got {metric!r}; for "
        "instance ('tpr_at_fpr', {'max_fpr': 0.01})"
    )


def clone_for(scorers: Iterable[Any], estimator: Any) -> Any:
    """A clone to be scored; its parts set no threshold by a budget where all scorers read scores and no prediction."""
    return clone_for_scores(estimator) if all(map(_reads_scores, scorers)) else clone(estimator)


def _reads_scores(scorer: Any) -> bool:
    """Whether a scorer of scikit-learn prefers scores to predictions; of other functions nothing is known."""
    response = getattr(scorer, "_response_method", "predict")
    return bool((response if isinstance(response, str) else response[0]) != "predict")


def default_scorer(model: Any, y: NDArray[Any]) -> Any:
    """What the estimator was made for, measured on held-out rows: its own share or number of rows is the budget.

    Labels are as the estimator gets them.
    """
    from toprank.pairwise.preference_ranker import PreferenceRanker

    labels, budget = np.unique(y), budget_of(model)
    if isinstance(model, PreferenceRanker):
        levels = model.labels if model.labels is not None else in_order(labels, model.pos_label)
        return get_scorer("wmw", graph=model.graph, labels=levels)
    if budget is None:
        raise ValueError(
            f"there is no default scoring for {type(model).__name__}; give scoring=, for instance "
            "('tpr_at_fpr', {'max_fpr': 0.01})"
        )
    if budget.k is not None:
        return get_scorer("tpr_at_fpr", max_fpr=min(1.0, float(budget.k) / np.sum(y == labels[0])))
    if budget.share is None:
        return get_scorer("positives_at_top")
    if budget.over == "negatives":
        return get_scorer("tpr_at_fpr", max_fpr=float(budget.share))
    return get_scorer("precision_at_quantile", tau=float(budget.share))


def scored(scorer: Any, model: Any, X: Any, y: NDArray[Any], coding: Coding, **params: Any) -> float:
    """The score of a model that was fitted to codes; a scorer that speaks of labels gets labels."""
    if names_labels(scorer):
        return float(scorer(coding.with_labels(model), X, y, **params))
    return float(scorer(model, X, coding.codes(y), **params))
