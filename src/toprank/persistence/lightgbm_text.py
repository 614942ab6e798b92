"""The model text of LightGBM, read strictly: its own reader follows the numbers in it without a look at them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.saved_state import StateError, children_follow

_HEADER = {
    *("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective"),
    *("feature_names", "feature_infos", "monotone_constraints", "tree_sizes", "average_output"),
}
_INNER = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
_OF_INNER = (*_INNER, "internal_value", "internal_weight", "internal_count")
_OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_TREE = {"num_leaves", "num_cat", *_OF_INNER, *_OF_LEAVES, "cat_boundaries", "cat_threshold", "is_linear", "shrinkage"}
# Of a decision: the bit of categories, and all that the four bits may be.
_IS_CATEGORY, _DECISIONS = 1, 16


def check_lightgbm_text(text: str) -> None:
    """Raise a `StateError` if a text is not that of a model with one tree a step, whose walks end in its leaves."""
    head, separator, body = text.partition("\n\n")
    name, *lines = head.split("\n")
    if name != "tree" or not separator:
        raise StateError("is no model text of LightGBM")
    header = _entries(lines, _HEADER)
    n_features = int(header["max_feature_idx"]) + 1
    if header["num_class"] != "1" or header["num_tree_per_iteration"] != "1":
        raise StateError("has several trees a step, one for each class; only models of two classes are saved")
    if n_features < 1 or any(len(header[key].split(" ")) != n_features for key in ("feature_names", "feature_infos")):
        raise StateError(f"has not the names of its {n_features} features")
    start = 0
    content = body.encode()  # sizes are in bytes
    for number, size in enumerate(header["tree_sizes"].split()):
        block = content[start : start + int(size)].decode()
        if not block.startswith(f"Tree={number}\n") or block.count("Tree=") != 1 or int(size) <= 0:
            raise StateError(f"has no tree {number} where its size says")
        if "\nis_linear=1\n" in block:
            raise StateError("has linear models in its leaves, which are not saved; fit it with linear_tree=False")
        _check_tree(_entries(block.rstrip("\n").split("\n")[1:], _TREE), n_features, number)
        start += int(size)
    if not content[start:].startswith(b"end of trees\n"):
        raise StateError("has trees that it does not count")


def _entries(lines: list[str], known: set[str]) -> dict[str, str]:
    """Values by key, each of which is known and there once."""
    found: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition("=")
        if key not in known or key in found:
            raise StateError(f"has the line {line[:40]!r}, which is not known there or there twice")
        found[key] = value
    return found


def _check_tree(tree: dict[str, str], n_features: int, number: int) -> None:
    n_leaves, n_categorical = int(tree["num_leaves"]), int(tree["num_cat"])
    if tree.get("is_linear", "0") != "0":
        raise StateError(f"has a tree {number} with is_linear={tree['is_linear'][:20]}, where 0 is expected")
    sizes = {**dict.fromkeys(_OF_INNER, n_leaves - 1), **dict.fromkeys(_OF_LEAVES, n_leaves)}
    arrays = {key: _numbers(tree[key]) for key in sizes if key in tree}
    wrong = [key for key, values in arrays.items() if len(values) != sizes[key]]
    needed = {"leaf_value", *(_INNER if n_leaves > 1 else ())} - {"split_gain"}
    if n_leaves < 1 or wrong or not needed <= arrays.keys():
        raise StateError(f"has a tree {number} whose arrays are not of its {n_leaves} leaves")
    if n_leaves > 1:
        _check_nodes(arrays, n_features, n_leaves, number)
        _check_categories(tree, arrays, n_categorical, number)


def _check_nodes(arrays: dict[str, NDArray[Any]], n_features: int, n_leaves: int, number: int) -> None:
    """Children of a node are later nodes, or leaves, which have negative numbers from −1 on."""
    left, right = arrays["left_child"], arrays["right_child"]
    is_whole = all(np.array_equal(array, array.astype(np.int64)) for array in (left, right, arrays["split_feature"]))
    follows = all(children_follow(children >= 0, children, children, n_leaves - 1) for children in (left, right))
    in_range = min(left.min(), right.min()) >= -n_leaves
    features = arrays["split_feature"]
    if not (is_whole and follows and in_range and features.min() >= 0 and features.max() < n_features):
        raise StateError(f"has a tree {number} whose splits do not lead to its leaves by its features")


def _check_categories(tree: dict[str, str], arrays: dict[str, NDArray[Any]], n_sets: int, number: int) -> None:
    """A split by categories has the number of a set, whose bits are between two boundaries."""
    decisions = arrays["decision_type"].astype(np.int64)
    sets = arrays["threshold"][(decisions & _IS_CATEGORY) > 0]
    boundaries, words = _numbers(tree.get("cat_boundaries", "")), _numbers(tree.get("cat_threshold", ""))
    is_right = bool(np.all((decisions >= 0) & (decisions < _DECISIONS)))
    if n_sets:
        is_right &= len(boundaries) == n_sets + 1 and boundaries[0] == 0 and boundaries[-1] == len(words)
        is_right &= bool(np.all(np.diff(boundaries) >= 0))
    if not is_right or not np.all((sets >= 0) & (sets < n_sets)) or n_sets < 0:
        raise StateError(f"has a tree {number} whose sets of categories are not there")


def _numbers(text: str) -> NDArray[np.float64]:
    return np.array(text.split(), dtype=np.float64)
