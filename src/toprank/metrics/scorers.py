"""Scorers for model selection in scikit-learn."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

from sklearn.metrics import make_scorer

from toprank.metrics._metric import METRICS

# What a scorer is given at scoring time, by metadata routing, and not when it is made.
_ROUTED = {"y_true", "y_score", "sample_weight", "groups"}


def get_scorer(name: str, **parameters: Any) -> Any:
    """Make a scikit-learn scorer of a metric of this package.

    The scorer reads `decision_function`, or `predict_proba` where there is none; for "wmw" also `predict`, so that
    regressors can be scored. Weights, and `groups` for "precision_at_k" and "recall_at_k", reach it by metadata
    routing: ``get_scorer(...).set_score_request(sample_weight=True)``.

    Parameters
    ----------
    name : str
        Name of the metric, with or without the ending "_score"; see `get_scorer_names`.
    **parameters
        Parameters of the metric, for instance ``max_fpr=0.01`` or ``pos_label="spam"``.

    Returns
    -------
    callable
        A scorer, ``scorer(estimator, X, y)``, larger is better.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank.metrics import get_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = GridSearchCV(
    ...     make_pipeline(StandardScaler(), LogisticRegression()),
    ...     {"logisticregression__C": [0.01, 1.0]},
    ...     scoring=get_scorer("tpr_at_fpr", max_fpr=0.01),
    ... ).fit(X, y)
    >>> bool(search.best_score_ > 0.8)
    True
    """
    metric = METRICS.get(name.removesuffix("_score"))
    if metric is None:
        close = difflib.get_close_matches(name, get_scorer_names(), n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"there is no metric {name!r}; {hint}choose from {', '.join(get_scorer_names())}")
    signature = inspect.signature(metric).parameters
    accepted = [parameter for parameter in signature if parameter not in _ROUTED]
    for parameter in parameters:
        if parameter in _ROUTED and parameter in signature:
            raise ValueError(
                f"{parameter} belongs to the rows that are scored: give it by metadata routing, "
                f"get_scorer({name!r}, ...).set_score_request({parameter}=True)"
            )
        if parameter not in accepted:
            raise ValueError(f"{name} has no parameter {parameter!r}; it takes {', '.join(accepted)}")
    for parameter in accepted:
        if signature[parameter].default is inspect.Parameter.empty and parameter not in parameters:
            raise ValueError(f"{name} needs {parameter}=, for instance get_scorer({name!r}, {parameter}=...)")
    response = ("decision_function", "predict_proba", "predict")
    return make_scorer(metric, response_method=response if metric is METRICS["wmw"] else response[:2], **parameters)


def get_scorer_names() -> list[str]:
    """Names that `get_scorer` knows.

    Returns
    -------
    list of str
        In alphabetical order.

    Examples
    --------
    >>> from toprank.metrics import get_scorer_names
    >>> get_scorer_names()[:3]
    ['bedroc', 'enrichment_factor', 'ndcg']
    """
    return sorted(METRICS)
