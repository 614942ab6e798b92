"""Scorers for model selection in scikit-learn."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

import numpy as np
from sklearn.metrics._scorer import _Scorer

from toprank.arrays import is_dask
from toprank.exceptions import InputError
from toprank.metrics._metric import METRICS
from toprank.positive_class import warn_if_not_asked

# What a scorer is given at scoring time, by metadata routing, and not when it is made.
_ROUTED = {"y_true", "y_score", "sample_weight", "groups"}


class PositiveClassScorer(_Scorer):
    """A scorer that asks the fitted model which class is positive, unless its parameters name labels.

    Of a model that takes no `pos_label` of its own, such as those of scikit-learn, this is a guess for labels such as
    words, and a warning says so.
    """

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float:
        classes, labels = getattr(estimator, "classes_", None), y_true if is_dask(y_true) else np.asarray(y_true)
        if classes is not None and not names_labels(self) and _are_among(labels, classes):
            if len(classes) == 2:
                warn_if_not_asked(estimator, labels, "the scorer of {}")
                y_true = labels == classes[1]
            elif "labels" in inspect.signature(self._score_func).parameters:
                kwargs["labels"] = classes
        return float(super()._score(method_caller, estimator, X, y_true, **kwargs))


def _are_among(labels: Any, classes: Any) -> bool:
    """Whether labels are all known; of blocks only different ones are sent, and no more than decide it."""
    if is_dask(labels):
        from toprank.ranking.block_rows import different_labels

        labels = different_labels(labels, len(classes) + 1)
    return bool(np.isin(labels, classes).all())


def names_labels(scorer: Any) -> bool:
    """Whether a scorer speaks of labels as the user calls them: one that was given some, or a function of the user."""
    parameters = getattr(scorer, "_kwargs", None)
    if parameters is None:
        return True
    named = any(parameters.get(name) is not None for name in ("pos_label", "labels"))
    return named or not isinstance(parameters.get("graph", ""), str)


def positive_of(scorer: Any) -> Any:
    """The positive class that a scorer was given, None if none."""
    return (getattr(scorer, "_kwargs", None) or {}).get("pos_label")


def get_scorer(name: str, **parameters: Any) -> Any:
    """Make a scikit-learn scorer of a metric of this package.

    Which class is positive the scorer asks the fitted model, ``classes_[1]``, unless `pos_label` is given. So it is
    right wherever estimators of toprank have a `pos_label`. Scorers of scikit-learn such as ``"roc_auc"`` do not ask;
    they take the last label in sorted order, or 1: use ``get_scorer("roc_auc")``.

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
        raise unknown_metric(name, get_scorer_names())
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
    return PositiveClassScorer(metric, 1, parameters, response if metric is METRICS["wmw"] else response[:2])


def unknown_metric(name: str, names: list[str]) -> InputError:
    """The error for a name that is none of some, with the one that is probably meant."""
    close = difflib.get_close_matches(name.lower().replace("-", "_").replace("@", "_at_"), names, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return InputError.saying(
        "there is no metric {name!r}; {meant}choose from {names}", name=name, meant=meant, names=", ".join(names)
    )


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
