"""Forests and boosted trees in double precision, as scikit-learn and LightGBM compute them.

Scores of a forest take few values, and a threshold is one of them: in single precision whole ties would fall on the
other side of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier
from sklearn.utils import get_tags

from toprank.deployment.encoders import coded, is_text
from toprank.deployment.graph import ML, Graph
from toprank.deployment.rows import Rows
from toprank.trees.boosters import ways_out
from toprank.trees.forest import TopForest

_LESS_OR_EQUAL, _SUM = 0, 1


@dataclass(frozen=True)
class Tree:
    """A tree by its nodes, of which the first is the root; `left` is -1 for leaves, `value` is theirs.

    A row goes left if its feature is at most the threshold, and where it is missing as `missing_left` says.
    """

    feature: NDArray[Any]
    threshold: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    missing_left: NDArray[Any]
    value: NDArray[Any]


@dataclass(frozen=True)
class Forest:
    """The sum of trees over `divisor`, plus `base`.

    `slopes` has the methods of the model: None for that which gives the sum itself, else a is in 1 / (1 + exp(-a sum)).
    `of_single` says that rows are rounded to single precision first. Where `takes_missing` is false, a row with a gap
    has no score.
    """

    trees: list[Tree]
    slopes: dict[str, float | None]
    base: float = 0.0
    divisor: float = 1.0
    of_single: bool = False
    takes_missing: bool = True


def forest_of(model: Any) -> Forest | None:
    """The trees of a fitted model for two classes, None if it is no forest."""
    kind = type(model)
    if isinstance(model, TopForest):
        return _top_forest(model)
    if kind in (DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier, ExtraTreesClassifier):
        return _votes(model)
    if kind is GradientBoostingClassifier:
        return _gradient_boosting(model)
    if kind is HistGradientBoostingClassifier:
        return _histogram_boosting(model)
    if kind.__module__.startswith("lightgbm.") and kind.__name__ == "LGBMClassifier":
        return _lightgbm(model)
    return None


def _top_forest(model: TopForest) -> Forest:
    if model.trees_ is None:
        names = ", ".join(sorted({type(one).__name__ for one in model.sources_}))
        way = f"take {ways_out(model)} and a converter for that, or " if ways_out(model) else ""
        raise TypeError(
            f"TopForest on trees of {names}, which read rows in a way of their own, has no ONNX export here; {way}let "
            "it grow its own trees"
        )
    trees = model.trees_
    values = trees.node_values(model.leaf_values_)
    parts = []
    for first, last in pairwise([*trees.roots.tolist(), len(values)]):
        feature, threshold, left, right, missing_left, value = (
            array[first:last]
            for array in (trees.feature, trees.threshold, trees.left, trees.right, trees.missing_left, values)
        )
        left = np.where(feature < 0, -1, left - first)
        parts.append(Tree(feature, threshold, left, right - first, missing_left, value))
    return Forest(parts, {"decision_function": None}, base=float(model.intercept_[0]), of_single=True)


def text_places_of_forest(model: Any) -> set[int]:
    """The places of the columns that a `TopForest` takes as texts."""
    categories = model._columns.categories if isinstance(model, TopForest) else {}
    return {place for place, known in categories.items() if not known or is_text(np.array([*known, None], object))}


def forest_rows(graph: Graph, model: Any, rows: Rows) -> str:
    """The rows of a forest as a matrix: of a `TopForest`, the places of categories in their order."""
    categories = model._columns.categories if isinstance(model, TopForest) else {}
    if not categories:
        return rows.matrix()
    parts = []
    for place, column in enumerate(rows.columns()):
        number = coded(graph, column, categories[place]) if place in categories else column.result
        parts.append(Rows.of_matrix(graph, number, 1))
    return Rows.side_by_side(graph, parts).matrix()


def _of_sklearn(tree: Any, value: NDArray[Any]) -> Tree:
    parts = tree.children_left, tree.children_right, tree.missing_go_to_left
    return Tree(tree.feature, tree.threshold, *parts, value)


def _votes(model: Any) -> Forest:
    trees = [one.tree_ for one in getattr(model, "estimators_", [model])]
    return Forest(
        [_of_sklearn(tree, tree.value[:, 0, 1]) for tree in trees],
        {"predict_proba": None},
        divisor=len(trees),
        of_single=True,
        takes_missing=get_tags(model).input_tags.allow_nan,
    )


def _gradient_boosting(model: Any) -> Forest:
    if not (model.init is None or model.init == "zero"):
        raise TypeError("GradientBoostingClassifier with init= has no ONNX export here; use init=None")
    base = float(model._raw_predict_init(np.zeros((1, model.n_features_in_)))[0, 0])
    trees = [one.tree_ for one in model.estimators_[:, 0]]
    return Forest(
        [_of_sklearn(tree, model.learning_rate * tree.value[:, 0, 0]) for tree in trees],
        {"decision_function": None, "predict_proba": 1.0 if model.loss == "log_loss" else 2.0},
        base=base,
        of_single=True,
        takes_missing=False,
    )


def _histogram_boosting(model: Any) -> Forest:
    if model.is_categorical_ is not None:
        raise TypeError(
            "HistGradientBoostingClassifier with categorical features has no ONNX export here; encode them by a "
            "OneHotEncoder before it"
        )
    trees = []
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        leaf = nodes["is_leaf"].astype(bool)
        left = np.where(leaf, -1, nodes["left"].astype(np.int64))
        ways = left, nodes["right"].astype(np.int64), nodes["missing_go_to_left"]
        trees.append(Tree(nodes["feature_idx"], nodes["num_threshold"], *ways, nodes["value"]))
    base = float(model._baseline_prediction.ravel()[0])
    return Forest(trees, {"decision_function": None, "predict_proba": 1.0}, base=base)


def _lightgbm(model: Any) -> Forest:
    content = model.booster_.dump_model()
    name, *options = content.get("objective", "").split() or ["a function"]
    slopes = [float(one.removeprefix("sigmoid:")) for one in options if one.startswith("sigmoid:")]
    if name not in ("binary", "a function") or len(model.classes_) != 2:
        raise TypeError(f"LGBMClassifier with objective={name!r} has no ONNX export here; use objective='binary'")
    if model.booster_.params.get("linear_tree") or content["average_output"]:
        raise TypeError(
            "LGBMClassifier with linear_tree=True or boosting_type='rf' has no ONNX export here; leave it out"
        )
    best = model.best_iteration_ or len(content["tree_info"])
    trees = [_lightgbm_tree(one["tree_structure"]) for one in content["tree_info"][:best]]
    # of an objective that is a function there are no probabilities, and LightGBM gives raw scores in their place
    return Forest(trees, {"decision_function": None, "predict_proba": slopes[0] if slopes else None})


@dataclass
class _Nodes:
    """Nodes of a tree in the order in which they are met."""

    rows: list[list[float]] = field(default_factory=list)

    def add(self, node: dict[str, Any]) -> int:
        place = len(self.rows)
        self.rows.append([0, 0.0, -1, -1, 0, node.get("leaf_value", 0.0)])
        if "leaf_value" in node:
            return place
        if node["decision_type"] != "<=" or node["missing_type"] == "Zero":
            raise TypeError(
                "LGBMClassifier with categorical features or zero_as_missing=True has no ONNX export here; encode the "
                "former by a OneHotEncoder before it, and leave the latter out"
            )
        # without a way of its own a missing value counts as 0
        is_left = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0
        self.rows[place][:2] = [node["split_feature"], node["threshold"]]
        self.rows[place][2:5] = [self.add(node["left_child"]), self.add(node["right_child"]), is_left]
        return place


def _lightgbm_tree(structure: dict[str, Any]) -> Tree:
    nodes = _Nodes()
    nodes.add(structure)
    feature, threshold, left, right, missing_left, value = np.array(nodes.rows, dtype=np.float64).T
    places = feature.astype(np.int64), left.astype(np.int64), right.astype(np.int64)
    return Tree(places[0], threshold, places[1], places[2], missing_left, value)


def forest_scores(graph: Graph, forest: Forest, rows: str, method: str) -> str:
    """Scores of shape (n,) by one of the methods."""
    types = graph.onnx.TensorProto
    double = rows
    if forest.of_single:
        rows = graph.add("Cast", graph.add("Cast", rows, to=types.FLOAT), to=types.DOUBLE)
    score = graph.add("Squeeze", _summed(graph, forest.trees, rows), np.array([1]))
    score = graph.add("Div", score, np.float64(forest.divisor)) if forest.divisor != 1 else score
    score = graph.add("Add", score, np.float64(forest.base)) if forest.base else score
    slope = forest.slopes[method]
    score = score if slope is None else graph.add("Sigmoid", graph.add("Mul", score, np.float64(slope)))
    if not forest.takes_missing:
        nothing = graph.add("ReduceSum", graph.add("Mul", double, np.float64(0)), np.array([1]), keepdims=0)
        score = graph.add("Add", score, nothing)
    return score


def _summed(graph: Graph, trees: list[Tree], rows: str) -> str:
    """The sum of trees, of shape (n, 1)."""
    ways = ("truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    columns: dict[str, list[Any]] = {name: [] for name in ("featureids", "splits", "missing", *ways)}
    roots: list[int] = []
    leaves: list[float] = []
    for tree in trees:
        roots.append(len(columns["splits"]))
        _append(columns, leaves, tree)
    n_nodes = len(columns["splits"])
    return graph.add(
        "TreeEnsemble",
        rows,
        domain=ML,
        version=5,
        n_targets=1,
        aggregate_function=_SUM,
        post_transform=0,
        tree_roots=roots,
        nodes_splits=graph.tensor(np.array(columns.pop("splits"), dtype=np.float64)),
        nodes_missing_value_tracks_true=columns.pop("missing"),
        nodes_modes=graph.tensor(np.full(n_nodes, _LESS_OR_EQUAL, dtype=np.uint8)),
        leaf_targetids=[0] * len(leaves),
        leaf_weights=graph.tensor(np.array(leaves, dtype=np.float64)),
        **{f"nodes_{name}": values for name, values in columns.items()},
    )


def _append(columns: dict[str, list[Any]], leaves: list[float], tree: Tree) -> None:
    """Add the nodes of a tree to those of all.

    Where both ways of a root have the same number, be it that of a leaf and of a node, onnxruntime before 1.24 takes it
    for a leaf and gives wrong scores. So a tree of one leaf gets two, and of other trees leaves may be moved by one.
    """
    if len(tree.left) == 1:
        tree = _of_two_leaves(float(tree.value[0]))
    is_leaf = tree.left < 0
    first, first_leaf = len(columns["splits"]), len(leaves)
    place = np.where(is_leaf, first_leaf + np.cumsum(is_leaf) - 1, first + np.cumsum(~is_leaf) - 1)
    if place[tree.left[0]] == place[tree.right[0]]:
        leaves.append(0.0)  # which no way leads to
        place[is_leaf] += 1
    inner = np.flatnonzero(~is_leaf)
    leaves += tree.value[is_leaf].tolist()
    columns["featureids"] += np.maximum(tree.feature[inner], 0).tolist()
    columns["splits"] += tree.threshold[inner].tolist()
    columns["missing"] += np.asarray(tree.missing_left)[inner].astype(int).tolist()
    for way, children in (("true", tree.left[inner]), ("false", tree.right[inner])):
        columns[f"{way}nodeids"] += place[children].tolist()
        columns[f"{way}leafs"] += is_leaf[children].astype(int).tolist()


def _of_two_leaves(value: float) -> Tree:
    """A tree of one value."""
    is_root, zeros = np.array([True, False, False]), np.zeros(3, np.int64)
    left, right = np.where(is_root, 1, -1), np.where(is_root, 2, -1)
    return Tree(zeros, zeros, left, right, zeros, np.full(3, value))
