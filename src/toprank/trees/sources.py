"""Where trees come from: for each kind of ensemble its leaf numbers, and which rows its trees have seen.

A source is found by the module of the model, so that no library is loaded to recognise its models.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from toprank.arrays import Mask
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

    @abstractmethod
    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """The leaf of each row in each tree, numbered from 0 within the tree."""

    @property
    def is_bagged(self) -> bool:
        """Whether each tree was grown on rows drawn at random, so that others have not shaped it."""
        return False

    def seen(self, n_rows: int) -> Mask:
        """Which of the training rows helped to grow each tree."""
        return np.ones((n_rows, len(self.n_leaves)), bool)


class Forest(TreeSource):
    """Extra trees, random forests and gradient boosting of scikit-learn."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        trees = np.asarray(model.estimators_, dtype=object)
        if trees.ndim == 2 and trees.shape[1] > 1:
            raise _several_classes(model)
        self.trees = PlainTrees.of(trees.ravel().tolist())
        self.n_leaves = self.trees.n_leaves

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """By our own loop; sparse rows by that of scikit-learn."""
        X = validate_data(
            self.model, X, accept_sparse="csr", dtype=np.float32, order="C", ensure_all_finite="allow-nan", reset=False
        )
        if not issparse(X):
            return self.trees.leaf_numbers(X)
        nodes = np.asarray(self.model.apply(X)).reshape(X.shape[0], -1).astype(np.int64)
        return np.asarray(self.trees.leaf[nodes + self.trees.roots])

    @property
    def is_bagged(self) -> bool:
        """Whether rows are drawn with replacement."""
        return bool(getattr(self.model, "bootstrap", False))

    def seen(self, n_rows: int) -> Mask:
        """The rows that were drawn for each tree."""
        if not self.is_bagged:
            return super().seen(n_rows)
        drawn = np.zeros((n_rows, len(self.n_leaves)), bool)
        for tree, rows in enumerate(self.model.estimators_samples_):
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

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """Tree by tree."""
        X = self.model._preprocess_X(X, reset=False)
        known = self.model._bin_mapper.make_known_categories_bitsets()
        numbers = np.empty((len(X), len(self.predictors)), number_type(int(self.n_leaves.max())))
        for t, tree in enumerate(self.predictors):
            numbers[:, t] = tree.predict(X, *known, 1)
        return numbers


def _numbering(predictor: Any) -> Any:
    """A copy of the predictor of a tree, whose leaves have their numbers as values."""
    nodes = predictor.nodes.copy()
    ends = nodes["is_leaf"].astype(bool)
    nodes["value"][ends] = np.arange(ends.sum())
    return type(predictor)(nodes, predictor.binned_left_cat_bitsets, predictor.raw_left_cat_bitsets)


class LightGBM(TreeSource):
    """Models of LightGBM."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        booster = model.booster_
        if booster.num_model_per_iteration() > 1:
            raise _several_classes(model)
        lines = booster.model_to_string(num_iteration=booster.best_iteration).splitlines()
        self.n_leaves = np.array([int(line.split("=")[1]) for line in lines if line.startswith("num_leaves=")])

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """The numbers that the model has for its leaves."""
        return np.asarray(self.model.predict(X, pred_leaf=True)).reshape(-1, len(self.n_leaves))


class XGBoost(TreeSource):
    """Models of XGBoost."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        content = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
        if int(content["learner_model_param"]["num_class"]) > 1:
            raise _several_classes(model)
        best = getattr(model, "best_iteration", None) if model.early_stopping_rounds else None
        trees = content["gradient_booster"]["model"]["trees"][: None if best is None else best + 1]
        ends = [np.array(tree["left_children"]) < 0 for tree in trees]
        self.numbers = [np.cumsum(of_tree) - 1 for of_tree in ends]
        self.n_leaves = np.array([int(of_tree.sum()) for of_tree in ends])

    def leaf_numbers(self, X: Any) -> NDArray[Any]:
        """From the numbers of the nodes."""
        nodes = np.asarray(self.model.apply(X)).astype(np.int64).reshape(-1, len(self.numbers))
        return np.stack([numbers[of_tree] for numbers, of_tree in zip(self.numbers, nodes.T, strict=True)], axis=1)


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


# Module and attribute by which a fitted model is recognised, and its source.
_KINDS: tuple[tuple[str, str, type[TreeSource]], ...] = (
    ("sklearn.ensemble._forest", "estimators_", Forest),
    ("sklearn.ensemble._gb", "estimators_", Forest),
    ("sklearn.ensemble._hist_gradient_boosting.gradient_boosting", "_predictors", Histograms),
    ("lightgbm", "booster_", LightGBM),
    ("xgboost", "get_booster", XGBoost),
    ("catboost", "calc_leaf_indexes", CatBoost),
)


def source_of(model: Any) -> TreeSource:
    """The source of a fitted model, also of one whose class a user has derived."""
    for ancestor in type(model).__mro__:
        for module, attribute, kind in _KINDS:
            if f"{ancestor.__module__}.".startswith(f"{module}.") and hasattr(model, attribute):
                return kind(model)
    raise InputError.of("trees", model, "must be ensembles of trees", "use {known}", known=KNOWN)


def _several_classes(model: Any) -> InputError:
    return InputError.of("trees", model, "must have one tree a step, not one for each class", "fit it to two classes")
