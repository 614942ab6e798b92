"""Where trees come from: for each kind of ensemble its leaf numbers and values, and which rows its trees have seen.

A source is found by the module of the model, so that no library is loaded to recognise its models.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from copy import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.utils.validation import validate_data

from toprank.arrays import Floats, Mask
from toprank.exceptions import InputError
from toprank.matrices.leaves import number_type
from toprank.trees.plain_trees import PlainTrees

KNOWN = (
    "ExtraTreesClassifier, RandomForestClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier or their "
    "regressors of scikit-learn, or a model of LightGBM, XGBoost or CatBoost"
)


class TreeSource(ABC):
    """A fitted ensemble of trees."""

    def __init__(self, model: Any) -> None:
        self.model = model

    n_leaves: NDArray[np.int64]
    """Number of leaves of each tree."""
    trees: PlainTrees | None = None
    """The trees as arrays, or None where they read rows in a way of their own."""
    reads_single_precision = False
    """Whether rows in double precision fall into the leaves of their values in single precision."""

    @abstractmethod
    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """The leaf of each row in each tree, numbered from 0 within the tree."""

    @abstractmethod
    def leaf_values(self) -> Floats:
        """What each leaf adds to the score of the model itself, tree by tree; a constant of the score is left out."""

    def forget_nodes(self) -> None:  # noqa: B027
        """Free what the model has of its trees and is kept here; for models that nobody else asks."""

    @property
    def is_bagged(self) -> bool:
        """Whether each tree was grown on rows drawn at random, so that others have not shaped it."""
        return False

    def seen(self, n_rows: int) -> Mask:
        """Which of the training rows helped to grow each tree."""
        return np.ones((n_rows, len(self.n_leaves)), bool)


class Forest(TreeSource):
    """Extra trees, random forests and gradient boosting of scikit-learn."""

    trees: PlainTrees
    reads_single_precision = True

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        trees = np.asarray(model.estimators_, dtype=object)
        if trees.ndim == 2 and trees.shape[1] > 1:
            raise _several_classes(model)
        self.trees = PlainTrees.of(trees.ravel().tolist())
        self.n_leaves = self.trees.n_leaves
        self.values: Floats | None = None

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """By our own loop; sparse rows by that of scikit-learn."""
        X = validate_data(
            self.model, X, accept_sparse="csr", dtype=np.float32, order="C", ensure_all_finite="allow-nan", reset=False
        )
        if not issparse(X):
            return self.trees.leaf_numbers(X)
        nodes = np.asarray(self.model.apply(X)).reshape(X.shape[0], -1).astype(np.int64)
        return np.asarray(self.trees.leaf[nodes + self.trees.roots])

    def forget_nodes(self) -> None:
        """Leave of the trees of scikit-learn, which take three times the memory of ours, the seeds of their rows."""
        self.values = self.leaf_values()
        self.model = copy(self.model)
        self.model.estimators_ = [SimpleNamespace(random_state=tree.random_state) for tree in self.model.estimators_]

    def leaf_values(self) -> Floats:
        """Shares of positives or means over the number of trees; steps of boosting times the learning rate."""
        if self.values is not None:
            return self.values
        trees = [tree.tree_ for tree in np.ravel(self.model.estimators_)]
        values = np.concatenate([tree.value[tree.children_left < 0, 0, :] for tree in trees])
        if values.shape[1] > 2:
            raise _several_classes(self.model)
        if values.shape[1] == 2:
            values = values[:, 1:] / values.sum(axis=1, keepdims=True)
        if not hasattr(self.model, "learning_rate"):
            return np.asarray(values[:, 0] / len(trees))
        if not isinstance(self.model.init_, DummyClassifier | DummyRegressor | str):
            raise InputError.saying(
                "the scores of {model} begin with those of another model, {init=}, and are no sum over leaves; fit it "
                "with {init=None}",
                model=type(self.model).__name__,
            )
        return np.asarray(values[:, 0] * self.model.learning_rate)

    @property
    def is_bagged(self) -> bool:
        """Whether rows are drawn with replacement."""
        return bool(getattr(self.model, "bootstrap", False))

    def seen(self, n_rows: int) -> Mask:
        """The rows that were drawn for each tree."""
        if not self.is_bagged:
            return super().seen(n_rows)
        drawn = np.zeros((n_rows, len(self.n_leaves)), bool)
        for tree, rows in enumerate(self.model._get_estimators_indices()):  # estimators_samples_ has all at a time
            drawn[rows, tree] = True
        return drawn


class Histograms(TreeSource):
    """Gradient boosting of scikit-learn on histograms: its predictors give the numbers of leaves in place of values."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if any(len(trees) > 1 for trees in model._predictors):
            raise _several_classes(model)
        self.predictors = [_numbering(trees[0]) for trees in model._predictors]
        self.n_leaves = np.array([int(tree.nodes["is_leaf"].sum()) for tree in self.predictors])
        if model.is_categorical_ is None:
            self.trees = PlainTrees.of_histograms([tree.nodes for tree in self.predictors])

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """Tree by tree."""
        X = self.model._preprocess_X(X, reset=False)
        known = self.model._bin_mapper.make_known_categories_bitsets()
        numbers = np.empty((len(X), len(self.predictors)), number_type(int(self.n_leaves.max())))
        for t, tree in enumerate(self.predictors):
            numbers[:, t] = tree.predict(X, *known, 1)
        return numbers

    def leaf_values(self) -> Floats:
        """The steps of boosting."""
        nodes = [trees[0].nodes for trees in self.model._predictors]
        return np.concatenate([of_tree["value"][of_tree["is_leaf"].astype(bool)] for of_tree in nodes])


def _numbering(predictor: Any) -> Any:
    """A copy of the predictor of a tree, whose leaves have their numbers as values."""
    nodes = predictor.nodes.copy()
    ends = nodes["is_leaf"].astype(bool)
    nodes["value"][ends] = np.arange(ends.sum())
    return type(predictor)(nodes, predictor.binned_left_cat_bitsets, predictor.raw_left_cat_bitsets)


class LightGBM(TreeSource):
    """Models and boosters of LightGBM."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        booster = getattr(model, "booster_", model)
        if booster.num_model_per_iteration() > 1:
            raise _several_classes(model)
        lines = booster.model_to_string(num_iteration=booster.best_iteration).splitlines()
        if "is_linear=1" in lines:
            raise InputError.saying(
                "the leaves of {model} have linear models in place of values; fit it with {linear_tree=False}",
                model=type(model).__name__,
            )
        self.values = [_numbers_of(line) for line in lines if line.startswith("leaf_value=")]
        self.n_leaves = np.array([len(of_tree) for of_tree in self.values])

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """The numbers that the model has for its leaves."""
        return np.asarray(self.model.predict(X, pred_leaf=True)).reshape(-1, len(self.n_leaves))

    def leaf_values(self) -> Floats:
        """As the model file has them."""
        return np.concatenate(self.values)


def _numbers_of(line: str) -> Floats:
    return np.array(line.split("=")[1].split(), dtype=np.float64)


class XGBoost(TreeSource):
    """Models and boosters of XGBoost; the leaves of a tree are numbered in the order of its nodes."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        booster = model.get_booster() if hasattr(model, "get_booster") else model
        content = json.loads(bytes(booster.save_raw("json")))["learner"]
        if int(content["learner_model_param"]["num_class"]) > 1:
            raise _several_classes(model)
        grown = content["gradient_booster"]
        if grown["name"] == "gblinear":
            raise InputError.of("trees", model, "must be ensembles of trees", "use {booster='gbtree'}")
        best = model.best_iteration if getattr(model, "early_stopping_rounds", None) else None
        trees = grown.get("gbtree", grown)["model"]["trees"][: None if best is None else best + 1]
        ends = [np.array(tree["left_children"]) < 0 for tree in trees]
        self.numbers = [np.cumsum(of_tree) - 1 for of_tree in ends]
        self.n_leaves = np.array([int(of_tree.sum()) for of_tree in ends])
        weights = grown.get("weight_drop", np.ones(len(trees)))
        conditions = [np.array(tree["split_conditions"], dtype=np.float64) for tree in trees]  # of a leaf its value
        parts = zip(weights[: len(trees)], conditions, ends, strict=True)
        self.values = np.concatenate([w * of_tree[end] for w, of_tree, end in parts])

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """From the numbers of the nodes."""
        nodes = self._nodes(X).astype(np.int64).reshape(-1, len(self.numbers))
        return np.stack([numbers[of_tree] for numbers, of_tree in zip(self.numbers, nodes.T, strict=True)], axis=1)

    def _nodes(self, X: Any) -> NDArray[Any]:
        if hasattr(self.model, "apply"):
            return np.asarray(self.model.apply(X))
        return np.asarray(self.model.predict(rows_of_xgboost(self.model, X), pred_leaf=True))

    def leaf_values(self) -> Floats:
        """As the model file has them, for dart with the weights of the trees."""
        return self.values


def rows_of_xgboost(model: Any, X: Any) -> Any:
    """Rows as boosters of XGBoost take them, by what a model or booster says of categories and missing values."""
    import xgboost

    types = (model.get_booster() if hasattr(model, "get_booster") else model).feature_types
    missing = getattr(model, "missing", np.nan)
    return xgboost.DMatrix(X, missing=missing, enable_categorical=any(kind == "c" for kind in types or ()))


class CatBoost(TreeSource):
    """Models of CatBoost."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if len(getattr(model, "classes_", ())) > 2:
            raise _several_classes(model)
        self.n_leaves = np.asarray(model.get_tree_leaf_counts(), dtype=np.int64)

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """The numbers that the model has for its leaves."""
        return np.asarray(self.model.calc_leaf_indexes(X))

    def leaf_values(self) -> Floats:
        """As the model has them."""
        return np.asarray(self.model.get_leaf_values(), dtype=np.float64)


# Module and attribute by which a fitted model is recognised, and its source.
_KINDS: tuple[tuple[str, str, type[TreeSource]], ...] = (
    ("sklearn.ensemble._forest", "estimators_", Forest),
    ("sklearn.ensemble._gb", "estimators_", Forest),
    ("sklearn.ensemble._hist_gradient_boosting.gradient_boosting", "_predictors", Histograms),
    ("lightgbm", "booster_", LightGBM),
    ("lightgbm", "model_to_string", LightGBM),
    ("xgboost", "get_booster", XGBoost),
    ("xgboost", "save_raw", XGBoost),
    ("catboost", "calc_leaf_indexes", CatBoost),
)


def source_of(model: Any) -> TreeSource:
    """The source of a fitted model, also of one whose class a user has derived."""
    check_has_trees(model)
    for attribute, kind in _kinds_of(model):
        if hasattr(model, attribute):
            return kind(model)
    raise InputError.of("trees", model, "must be fitted where it is frozen", "fit it first, or pass it unfrozen")


def check_has_trees(model: Any) -> None:
    """Refuse what is no ensemble of trees, fitted or not."""
    kinds = _kinds_of(model)
    if not kinds or not (hasattr(model, "fit") or any(hasattr(model, attribute) for attribute, _ in kinds)):
        raise InputError.of("trees", model, "must be ensembles of trees", "use {known}", known=KNOWN)


def _kinds_of(model: Any) -> list[tuple[str, type[TreeSource]]]:
    """What a model may be, by the modules of its class and of those that it is derived from."""
    return [
        (attribute, kind)
        for ancestor in type(model).__mro__
        for module, attribute, kind in _KINDS
        if f"{ancestor.__module__}.".startswith(f"{module}.")
    ]


def _several_classes(model: Any) -> InputError:
    return InputError.of("trees", model, "must have one tree a step, not one for each class", "fit it to two classes")
