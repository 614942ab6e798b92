"""Forests with new leaf values as models of LightGBM and XGBoost, for the serving that is there already.

Scores of these models, before any link function, are those of `TopForest.decision_function`: the intercept is in the
leaves of the first tree.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import issparse

from toprank.arrays import Floats
from toprank.exceptions import InputError
from toprank.trees.forest_rows import columns_of_categories
from toprank.trees.plain_trees import PlainTrees, at_most
from toprank.trees.sources import LightGBM, XGBoost, rows_of_xgboost, source_of

# Decisions of LightGBM: by a number, with a way for missing values; and the bit that sends them left.
_BY_NUMBER, _MISSING_LEFT = 8, 2
# Scores from which boosting of XGBoost starts at nothing, by a part of the name of its objective; else 0.
_STARTS = {"logi": 0.5, "poisson": 1.0, "gamma": 1.0, "tweedie": 1.0}


def as_lightgbm(forest: Any) -> Any:
    """A fitted `TopForest` as a booster of LightGBM."""
    if forest.trees_ is None:
        return _lightgbm_with(_one_source(forest, LightGBM, "LightGBM"), _values_by_tree(forest))
    if forest._columns.categories:
        raise InputError.saying(
            "columns {columns} hold categories, of which LightGBM would get codes; use toprank.to_onnx, which takes "
            "them as they are",
            columns=columns_of_categories(forest),
        )
    names = getattr(forest, "feature_names_in_", [f"Column_{j}" for j in range(forest.n_features_in_)])
    return _lightgbm_of(forest.trees_, _values_by_tree(forest), list(names))


def as_xgboost(forest: Any) -> Any:
    """A fitted `TopForest` on trees of XGBoost as a booster of XGBoost."""
    return _xgboost_with(_one_source(forest, XGBoost, "XGBoost"), _values_by_tree(forest))


def contributions_by_library(forest: Any, X: Any) -> tuple[Floats, float]:
    """Shapley values of features and the mean score, as the library says them that the trees are of."""
    kind = _kind_of_source(forest)
    if X.shape[0] == 0:
        raise InputError.saying("there are no rows to explain; pass one at least")
    if kind is LightGBM:
        found = as_lightgbm(forest).predict(X, pred_contrib=True)
    elif kind is XGBoost:
        booster = as_xgboost(forest)
        found = booster.predict(rows_of_xgboost(forest.sources_[0], X), pred_contribs=True)
    else:
        raise InputError.of(
            "trees", forest.trees, "must be forests of scikit-learn, or one model of LightGBM or XGBoost, of which it "
            "is known how many rows go each way", "use one of these, or {trees=None}",
        )  # fmt: skip
    found = np.asarray(found.toarray() if issparse(found) else found, dtype=np.float64)
    return found[:, :-1], float(found[0, -1])


def ways_out(forest: Any) -> str:
    """How other software gets a forest, for messages; empty if there is no way."""
    if forest.trees_ is not None:
        return "toprank.to_onnx"
    kind = _kind_of_source(forest)
    return "its to_lightgbm()" if kind is LightGBM else "its to_xgboost()" if kind is XGBoost else ""


def _kind_of_source(forest: Any) -> type | None:
    """What the trees are of, if it is one model."""
    return type(source_of(forest.sources_[0])) if len(forest.sources_) == 1 else None


def _one_source(forest: Any, kind: type, library: str) -> Any:
    """The one model that the trees are of."""
    if _kind_of_source(forest) is kind:
        return forest.sources_[0]
    way = ways_out(forest)
    raise InputError.saying(
        "the trees are not those of one model of {library}; fit with {trees} as one frozen model of {library}{or_so}",
        library=library,
        or_so=f", or use {way}" if way else "",
    )


def _values_by_tree(forest: Any) -> list[Floats]:
    """The values of the leaves of each tree, with the intercept in the first one."""
    first, *others = np.split(forest.leaf_values_, np.cumsum(forest.n_leaves_)[:-1])
    return [first + forest.intercept_[0], *others]


def _lightgbm_with(model: Any, values: list[Floats]) -> Any:
    """A copy of a booster of LightGBM, up to its best iteration, with these values in the leaves of its trees."""
    import lightgbm

    source = getattr(model, "booster_", model)
    booster = lightgbm.Booster(model_str=source.model_to_string(num_iteration=source.best_iteration))
    for tree, of_tree in enumerate(values):
        for leaf, value in enumerate(of_tree.tolist()):
            booster.set_leaf_output(tree, leaf, value)
    return booster


def _xgboost_with(model: Any, values: list[Floats]) -> Any:
    """A copy of a booster of XGBoost, up to its best iteration, with these values in the leaves of its trees."""
    import xgboost

    source = model.get_booster() if hasattr(model, "get_booster") else model
    if getattr(model, "early_stopping_rounds", None):
        source = source[: model.best_iteration + 1]
    content = json.loads(bytes(source.save_raw("json")))
    learner = content["learner"]
    grown = learner["gradient_booster"]
    if "weight_drop" in grown:
        grown["weight_drop"] = [1.0] * len(values)
    for tree, of_tree in zip(grown.get("gbtree", grown)["model"]["trees"], values, strict=True):
        leaves = np.flatnonzero(np.array(tree["left_children"]) < 0).tolist()
        for leaf, value in zip(leaves, of_tree.tolist(), strict=True):
            tree["split_conditions"][leaf] = tree["base_weights"][leaf] = value
    start = next((start for part, start in _STARTS.items() if part in learner["objective"]["name"]), 0.0)
    parameters = learner["learner_model_param"]
    parameters["base_score"] = f"[{start:E}]" if parameters["base_score"].startswith("[") else f"{start:E}"
    booster = xgboost.Booster()
    booster.load_model(bytearray(json.dumps(content).encode()))
    return booster


def _lightgbm_of(trees: PlainTrees, values: list[Floats], names: list[str]) -> Any:
    """Plain trees, which read rows in single precision, as a booster of LightGBM."""
    import lightgbm

    blocks = [
        _tree_text(number, trees, slice(*nodes), values[number])
        for number, nodes in enumerate(pairwise([*trees.roots.tolist(), len(trees.leaf)]))
    ]
    header = {
        **{"version": "v4", "num_class": 1, "num_tree_per_iteration": 1, "label_index": 0},
        **{"max_feature_idx": len(names) - 1, "feature_names": " ".join("_".join(name.split()) for name in names)},
        **{"feature_infos": " ".join(["none"] * len(names)), "tree_sizes": " ".join(str(len(one)) for one in blocks)},
    }
    lines = "\n".join(f"{key}={value}" for key, value in header.items())
    return lightgbm.Booster(model_str=f"tree\n{lines}\n\n{''.join(blocks)}end of trees\n")


def _tree_text(number: int, trees: PlainTrees, nodes: slice, values: Floats) -> str:
    """A tree in the text of LightGBM: inner nodes from 0 on, leaves from −1 downwards."""
    first, ends = nodes.start, trees.feature[nodes] < 0
    inner = ~ends
    leaves = np.argsort(trees.leaf[nodes][ends])
    place = np.where(ends, -1 - trees.leaf[nodes], np.cumsum(inner) - 1)
    left, right = (place[children[nodes][inner] - first] for children in (trees.left, trees.right))
    cover = trees.cover[nodes]
    parts = {
        **{"num_leaves": len(values), "num_cat": 0, "split_feature": trees.feature[nodes][inner]},
        **{"split_gain": np.zeros(len(left)), "threshold": _of_doubles(trees.threshold[nodes][inner])},
        "decision_type": _BY_NUMBER + _MISSING_LEFT * trees.missing_left[nodes][inner].astype(np.int64),
        **{"left_child": left, "right_child": right, "leaf_value": values},
        **{"leaf_weight": cover[ends][leaves], "leaf_count": np.rint(cover[ends][leaves]).astype(np.int64)},
        **{"internal_value": np.zeros(len(left)), "internal_weight": cover[inner]},
        **{"internal_count": np.rint(cover[inner]).astype(np.int64), "is_linear": 0, "shrinkage": 1},
    }
    lines = [f"{key}={_text_of(value)}" for key, value in parts.items()]
    return "\n".join([f"Tree={number}", *lines, "", "", ""])


def _of_doubles(thresholds: Floats) -> Floats:
    """The largest numbers in double precision that are at most the thresholds once they are rounded to single."""
    below = at_most(thresholds)
    above = np.nextafter(below, np.float32(np.inf))
    middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
    rounded_down = middle.astype(np.float32) == below
    return np.where(np.isfinite(middle), np.where(rounded_down, middle, np.nextafter(middle, -np.inf)), thresholds)


def _text_of(values: Any) -> str:
    if not isinstance(values, np.ndarray):
        return str(values)
    return " ".join(f"{value:.17g}" if isinstance(value, float) else str(value) for value in values.tolist())
