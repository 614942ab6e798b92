"""The JSON of a model of XGBoost: what its compiled walks follow is checked before it gets there."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.saved_state import StateError

_LARGEST_FEATURES = 2**20
_ARRAYS = (
    *("left_children", "right_children", "parents", "split_indices", "split_conditions", "split_type"),
    *("default_left", "base_weights", "loss_changes", "sum_hessian"),
)


def check_xgboost_json(content: Any) -> None:
    """Raise a `StateError` if a model is not one of trees, one a step, whose walks end in their leaves."""
    learner = content["learner"]
    booster, sizes = learner["gradient_booster"], learner["learner_model_param"]
    if booster["name"] != "gbtree":
        raise StateError(f"is a booster {str(booster['name'])[:20]!r}, of which none is saved; use booster='gbtree'")
    n_features = int(sizes["num_feature"])
    if int(sizes["num_class"]) > 1 or int(sizes.get("num_target", 1)) != 1:
        raise StateError("has several trees a step, one for each class; only models of two classes are saved")
    if not 0 < n_features <= _LARGEST_FEATURES:
        raise StateError(f"has {n_features} features, where up to {_LARGEST_FEATURES} are expected")
    model = booster["model"]
    if any(part["values"] for part in model.get("cats", {}).get("enc", ())):
        raise StateError("has the categories of a frame, which are not saved; fit it to codes of the categories")
    trees, steps = model["trees"], model.get("iteration_indptr", [0])
    counts = (len(trees), int(model["gbtree_model_param"]["num_trees"]), len(model["tree_info"]))
    if len(set(counts)) > 1 or any(model["tree_info"]) or np.any(np.diff(steps) < 0) or steps[0] != 0:
        raise StateError(f"has {len(trees)} trees, where {counts[1]} are expected")
    if len(steps) > 1 and steps[-1] != len(trees):
        raise StateError(f"has {len(trees)} trees, where {steps[-1]} are expected")
    for number, tree in enumerate(trees):
        _check_tree(tree, n_features, number)


def _check_tree(tree: Any, n_features: int, number: int) -> None:
    arrays = {name: np.array(tree[name], dtype=np.float64) for name in _ARRAYS}
    parameters, n_nodes = tree["tree_param"], len(tree["left_children"])
    left, right = (arrays[name].astype(np.int64) for name in ("left_children", "right_children"))
    if arrays["split_type"].any() or tree.get("categories"):
        raise StateError("splits by categories, which are not saved; fit it to numbers")
    children = np.concatenate([left[left >= 0], right[left >= 0]])
    is_right = (
        int(parameters["num_nodes"]) == n_nodes > 0
        and int(parameters["size_leaf_vector"]) <= 1
        and {len(array) for array in arrays.values()} == {n_nodes}
        and int(parameters["num_feature"]) <= n_features
        and bool(np.all((arrays["split_indices"] >= 0) & (arrays["split_indices"] < n_features)))
        and bool(np.all((left >= -1) & (right >= -1)))
        # no node has two parents and the root none: so a walk from the root cannot come back
        and bool(np.all((children > 0) & (children < n_nodes)))
        and len(np.unique(children)) == len(children)
    )
    if not is_right:
        raise StateError(f"has a tree {number} whose splits do not lead to its leaves by its features")
