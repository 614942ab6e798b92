"""What wraps another estimator: labels, and row-wise arguments on their way to it and to a splitter."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted

from toprank.arrays import is_dask
from toprank.base import BinaryClassifier, anew_or_unchanged
from toprank.positive_class import warn_of_sorted_scorer
from toprank.ranking.tie_runs import label_column, require_present
from toprank.saved_state import FEATURES, TWO_CLASSES, Part, Rule, Schema


class WrapsClassifier(MetaEstimatorMixin, BinaryClassifier):
    """Base of what decides by the scores of another `estimator`, and takes the rows that it takes."""

    estimator: Any

    @abstractmethod
    def _models(self) -> list[Any]:
        """The fitted models; none before `fit`."""

    @abstractmethod
    def _fit(self, X: Any, y: NDArray[Any], params: dict[str, Any], *of_splitter: dict[str, Any]) -> None:
        """Learn from checked rows in memory."""

    @abstractmethod
    def _fit_blocks(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        """Learn from rows of Dask."""

    def _learn(self, X: Any, y: Any, params: dict[str, Any], *of_splitter: dict[str, Any]) -> Self:
        """The walk of every fit, with arguments of the estimator's fit and of the splitter."""
        in_blocks = is_dask(X)
        if not in_blocks:
            X, y = check_rows(X, y, type(self).__name__)
        with anew_or_unchanged(self):
            if in_blocks:
                self._fit_blocks(X, y, params)
            else:
                self._fit(X, y, params, *of_splitter)
            take_names(self, self._models()[0])
        return self

    def _routed(self, params: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the estimator's fit."""
        return dict(process_routing(self, "fit", **params).estimator.fit) if _routing_enabled() else params

    @staticmethod
    def _state(fields: dict[str, Rule], fitted: str, **options: Any) -> Schema:
        """The schema of a subclass: these fields after those of all."""
        features = {name: replace(rule, optional=True) for name, rule in FEATURES.items()}
        common = {**features, "estimator": Part(("fit",)), "classes_": TWO_CLASSES}
        return Schema({**common, **fields}, fitted, before=("estimator",), **options)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator).input_tags
        # as many rows are positive as a budget says; accuracy over all rows is not the aim
        tags.classifier_tags.poor_score = True
        for name in ("sparse", "allow_nan", "string", "categorical"):
            setattr(tags.input_tags, name, getattr(inner, name))
        return tags


def _gives_probabilities(self: Any) -> bool:
    _ = next(iter(self._models()), self.estimator).predict_proba  # the error of an estimator of ours says what helps
    return True


class PassesProbabilities(WrapsClassifier):
    """Base of what decides by a threshold, and leaves the probabilities of the wrapped estimator as they are."""

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of the wrapped estimator, of several models their mean; the threshold plays no part.

        {rows_to_classify}

        Returns
        -------
        ndarray of shape (n_samples, 2)
            One column for each of `classes_`.
        """
        check_is_fitted(self)
        warn_of_sorted_scorer(self.classes_)
        return np.asarray(np.mean([model.predict_proba(X) for model in self._models()], axis=0))


class RoutesToSplitter:
    """Mixin of what wraps an `estimator` and splits rows by `cv`."""

    estimator: Any
    cv: Any

    def _route(self, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments of the estimator's fit and of the splitter."""
        if _routing_enabled():
            routed = process_routing(self, "fit", **params)
            return dict(routed.estimator.fit), dict(routed.splitter.split) if "splitter" in routed else {}
        given = {name: value for name, value in params.items() if value is not None}
        splitter = {name: given.pop(name) for name in ("groups",) if name in given}
        return given, splitter

    def get_metadata_routing(self) -> MetadataRouter:
        """How arguments of `fit` reach the estimator and the splitter.

        Returns
        -------
        MetadataRouter
            The routing of this object.
        """
        router = MetadataRouter(owner=self)
        router.add(estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        if hasattr(self.cv, "split"):
            router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        return router


def check_rows(X: Any, y: Any, owner: str) -> tuple[Any, NDArray[Any]]:
    """X that can be indexed and y as a vector; what is in X is the business of the wrapped estimator."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None; give the labels as y")
    y = label_column(y, "y", warn=True)
    if y.dtype.kind == "O":
        require_present(y, "y", "drop such rows")
    assert_all_finite(y, input_name="y")
    X, y = indexable(X, y)
    return X, y


def splits_of(cv: Any, X: Any, y: NDArray[Any], *, classifier: bool, **params: Any) -> list[Any]:
    """Pairs of train and test rows of a splitter, a number of folds or an iterable; at least one."""
    splits = list(check_cv(cv, y, classifier=classifier).split(X, y, **params))
    if not splits:
        raise ValueError("cv has no splits; give at least one pair of train and test rows, or a number of folds")
    return splits


def row_arguments(X: Any, params: dict[str, Any], rows: NDArray[np.intp] | None = None) -> dict[str, Any]:
    """Arguments of fit, those with an entry for each row of X restricted to `rows`."""
    given = {name: value for name, value in params.items() if value is not None}
    return dict(_check_method_params(X, given, rows))


def rows_with_weight(y: NDArray[Any], params: dict[str, Any]) -> NDArray[np.bool_]:
    """Which rows no weight of zero removes; each class must keep some."""
    kept = np.ones(len(y), dtype=bool)
    for name, value in params.items():
        if name.rsplit("__", 1)[-1] == "sample_weight" and np.ndim(value) == 1 and len(value) == len(y):
            kept &= np.asarray(value) != 0
    if len(np.unique(y[kept])) < len(np.unique(y)):
        raise ValueError(
            f"without the rows whose sample_weight is 0 a class is missing: {np.unique(y[kept]).tolist()} is left of "
            f"{np.unique(y).tolist()}; every class needs rows with a positive weight"
        )
    return kept


def take_names(wrapper: Any, model: Any) -> None:
    """Give a wrapper the number and the names of the features of its fitted model, if that has them."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(wrapper, name, getattr(model, name))
