"""Trees of scikit-learn as plain arrays, and the schemas of the forests that hold them.

The compiled loops of scikit-learn follow the numbers of nodes and features of a tree without a look at them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.saved_state import (
    FEATURES,
    JOBS,
    LABEL_TYPES,
    Array,
    Chosen,
    Items,
    Kind,
    Known,
    Rule,
    Schema,
    children_follow,
    count,
)

_NODES = {
    "left_child": Array("i8", ("n_nodes",), low=-1),
    "right_child": Array("i8", ("n_nodes",), low=-1),
    "feature": Array("i8", ("n_nodes",), below="n_features"),
    "threshold": Array("f8", ("n_nodes",), finite=False),
    "impurity": Array("f8", ("n_nodes",), finite=False),
    "n_node_samples": Array("i8", ("n_nodes",)),
    "weighted_n_node_samples": Array("f8", ("n_nodes",), finite=False),
    "missing_go_to_left": Array("u1", ("n_nodes",)),
}


def _leads_to_leaves(known: Known) -> bool:
    left, right = known["left_child"], known["right_child"]
    inner = left >= 0
    splits = bool(np.all(known["feature"][inner] >= 0))
    return splits and len(left) > 0 and children_follow(inner, left, right, len(left))


TREE = Schema(
    {
        "n_features": count(1, 2**31),
        "n_classes": Array("i8", (1,), low=1),
        "max_depth": count(),
        **_NODES,
        "values": Array("f8", ("n_nodes", 1, lambda known: int(known["n_classes"][0])), finite=False, rowwise=True),
    },
    fitted=None,
    relations={"splits by its features, and nodes that lead to leaves": _leads_to_leaves},
)


def pack_tree(tree: Any) -> dict[str, Any]:
    """The arrays of a tree."""
    state = tree.__getstate__()
    nodes = {name: np.ascontiguousarray(state["nodes"][name]) for name in state["nodes"].dtype.names}
    sizes = {"n_features": int(tree.n_features), "max_depth": int(tree.max_depth)}
    return {**sizes, "n_classes": np.asarray(tree.n_classes, np.int64), **nodes, "values": state["values"]}


def unpack_tree(cls: type, state: dict[str, Any]) -> Any:
    """A tree of these arrays."""
    from sklearn.tree._tree import NODE_DTYPE

    nodes = np.zeros(len(state["feature"]), NODE_DTYPE)
    for name in NODE_DTYPE.names:  # an array that another version of scikit-learn does not have is a clear KeyError
        nodes[name] = state[name]
    tree = cls(state["n_features"], np.ascontiguousarray(state["n_classes"], np.intp), 1)
    tree.__setstate__(
        {"max_depth": state["max_depth"], "node_count": len(nodes), "nodes": nodes, "values": state["values"]}
    )
    return tree


def _compiled_tree(known: Known, value: Any) -> Rule:
    from sklearn.tree._tree import Tree

    return Kind((Tree,))


def _fitted_tree(known: Known, value: Any) -> Rule:
    from sklearn.tree import BaseDecisionTree

    return Kind((BaseDecisionTree,))


def _fits_its_tree(known: Known) -> bool:
    tree = known["tree_"]
    return bool(tree.n_features == known["n_features_in_"] and tree.n_classes[0] == known.get("n_classes_", 1))


def _fits_its_trees(known: Known) -> bool:
    """Whether the trees of a forest are fitted to its features and classes."""
    n_features, n_classes = known["n_features_in_"], known.get("n_classes_", 1)
    trees = [getattr(one, "tree_", None) for one in known["estimators_"]]
    return bool(trees) and all(
        tree is not None and tree.n_features == n_features and tree.n_classes[0] == n_classes for tree in trees
    )


_OF_A_TREE = {**FEATURES, "n_outputs_": count(1, 1), "max_features_": count(1), "tree_": Chosen(_compiled_tree)}
_OF_A_FOREST = {
    **FEATURES,
    "n_outputs_": count(1, 1),
    "_n_samples": count(1),
    "_n_samples_bootstrap": count(1, none=True, optional=True),
    "estimators_": Items(Chosen(_fitted_tree)),
}
_CLASSES = {"n_classes_": count(1), "classes_": Array(LABEL_TYPES, ("n_classes_",))}
_OWN_TREE = {"a tree of its features and classes": _fits_its_tree}
_OWN_TREES = {"trees of its features and classes": _fits_its_trees, **JOBS}


TREE_STATES: dict[str, Schema] = {
    f"{module}.{name}{kind}": Schema({**fields, **classes}, fitted, (), relations)
    for module, names, fields, fitted, relations in (
        ("tree", ("DecisionTree", "ExtraTree"), _OF_A_TREE, "tree_", _OWN_TREE),
        ("ensemble", ("ExtraTrees", "RandomForest"), _OF_A_FOREST, "estimators_", _OWN_TREES),
    )
    for name in names
    for kind, classes in (("Classifier", _CLASSES), ("Regressor", {}))
}
