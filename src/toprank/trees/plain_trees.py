"""Trees as plain arrays: what forests and boosting of scikit-learn have grown, without their objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats
from toprank.matrices.leaves import number_type
from toprank.matrices.threads import in_parallel
from toprank.saved_state import Array, Known, Schema, children_follow
from toprank.trees._traversal import walk

# Rows that go through all trees at a time: they stay in the cache of a core.
_BLOCK_ROWS = 512
# A node: rows go to the second child where sign · x > split, so that those without a value go to the first one. A leaf
# is its own child.
_STEP = np.dtype([("split", "f4"), ("sign", "f4"), ("feature", "i4"), ("first", "i4"), ("second", "i4")])


@dataclass(frozen=True, eq=False)
class PlainTrees:
    """Nodes of all trees one after the other; a row goes left if its feature is at most the threshold.

    `roots` are the first nodes of the trees. `left` and `right` are numbers of nodes, `feature` is −1 at a leaf,
    `missing_left` says where a missing value goes, and `leaf` numbers the leaves within their tree. `cover` is the
    weight of the training rows that came through a node: the expectations of a tree, for reasons, need it.
    """

    saved_state: ClassVar[Schema] = Schema(
        {
            "roots": Array("i8", ("n_trees",), low=0),
            "feature": Array("i4", ("n_nodes",), low=-1),
            "threshold": Array("f8", ("n_nodes",), finite=False),
            "left": Array("i4", ("n_nodes",)),
            "right": Array("i4", ("n_nodes",)),
            "missing_left": Array("u1", ("n_nodes",)),
            "leaf": Array("i4", ("n_nodes",)),
            "n_leaves": Array("i8", ("n_trees",), low=1),
            "cover": Array("f4", ("n_nodes",), finite=False),
        },
        fitted=None,
        relations={
            "trees one after the other": lambda known: _are_in_order(known["roots"], len(known["leaf"])),
            "nodes that lead to leaves of their tree": lambda known: _lead_to_leaves(known),
            "one parent for each node but the roots": lambda known: _have_one_parent(known),
            "numbers for the leaves of each tree": lambda known: _are_numbered(known),
        },
    )

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    leaf: NDArray[np.int32]
    n_leaves: NDArray[np.int64]
    cover: NDArray[np.float32]

    @classmethod
    def of(cls, trees: Sequence[Any]) -> PlainTrees:
        """The trees of decision trees of scikit-learn, which read rows in single precision."""
        found = [tree.tree_ for tree in trees]
        sizes = np.array([tree.node_count for tree in found], dtype=np.int64)
        roots = np.cumsum(sizes) - sizes
        is_leaf = [tree.children_left < 0 for tree in found]
        return cls(
            roots,
            _joined([np.where(ends, -1, tree.feature) for tree, ends in zip(found, is_leaf, strict=True)], np.int32),
            _joined([tree.threshold for tree in found], np.float64),
            _joined([tree.children_left + root for tree, root in zip(found, roots, strict=True)], np.int32),
            _joined([tree.children_right + root for tree, root in zip(found, roots, strict=True)], np.int32),
            _joined([tree.missing_go_to_left for tree in found], np.uint8),
            _joined([np.cumsum(ends) - 1 for ends in is_leaf], np.int32),
            np.array([ends.sum() for ends in is_leaf], dtype=np.int64),
            _joined([tree.weighted_n_node_samples for tree in found], np.float32),
        )

    @classmethod
    def of_histograms(cls, trees: Sequence[NDArray[Any]]) -> PlainTrees:
        """The trees of gradient boosting on histograms, by their nodes, of which none splits by categories."""
        sizes = np.array([len(nodes) for nodes in trees], dtype=np.int64)
        roots = np.cumsum(sizes) - sizes
        nodes = np.concatenate(trees)
        ends, first = nodes["is_leaf"].astype(bool), np.repeat(roots, sizes)
        n_leaves = np.add.reduceat(ends, roots, dtype=np.int64)
        return cls(
            roots,
            np.where(ends, -1, nodes["feature_idx"]).astype(np.int32),
            nodes["num_threshold"].copy(),
            (nodes["left"] + first).astype(np.int32),
            (nodes["right"] + first).astype(np.int32),
            nodes["missing_go_to_left"].copy(),
            (np.cumsum(ends) - 1 - np.repeat(np.cumsum(n_leaves) - n_leaves, sizes)).astype(np.int32),
            n_leaves,
            nodes["count"].astype(np.float32),
        )

    @classmethod
    def joined(cls, parts: Sequence[PlainTrees]) -> PlainTrees:
        """The trees of several, one after the other."""
        firsts = np.cumsum([0, *(len(part.leaf) for part in parts)])[:-1]
        joined = {}
        for name in (each.name for each in fields(cls)):
            columns = [getattr(part, name) for part in parts]
            kind = columns[0].dtype
            if name in ("roots", "left", "right"):  # numbers of nodes
                columns = [column + kind.type(first) for column, first in zip(columns, firsts, strict=True)]
            joined[name] = _joined(columns, kind)
        return cls(**joined)

    def forget_steps(self) -> None:
        """Free what a walk reads, until the next one."""
        self.__dict__.pop("steps", None)

    @cached_property
    def steps(self) -> NDArray[Any]:
        """The nodes as a walk reads them, side by side: see `_STEP`."""
        steps, places = np.empty(len(self.leaf), _STEP), np.arange(len(self.leaf))
        is_inner = self.feature >= 0
        turned = is_inner & (self.missing_left == 0)
        split = at_most(self.threshold)
        before = np.nextafter(-split, np.float32(-np.inf))  # x ≤ s is the same as −x > the number before −s
        steps["feature"], steps["sign"] = self.feature, np.where(turned, -1, 1)
        steps["split"] = np.where(is_inner, np.where(turned, before, split), np.inf)
        steps["first"] = np.where(is_inner, np.where(turned, self.right, self.left), places)
        steps["second"] = np.where(is_inner, np.where(turned, self.left, self.right), places)
        return steps

    def leaf_numbers(self, X: NDArray[Any]) -> NDArray[Any]:
        """The leaf of each row in each tree, of shape (n_rows, n_trees), in blocks of rows on all cores."""
        numbers = np.empty((len(X), len(self.roots)), self._number_type)
        self._walk(X, self.leaf, numbers, np.empty(0), np.empty(0))
        return numbers

    @property
    def _number_type(self) -> Any:
        return number_type(int(self.n_leaves.max()) - 1)

    def _walk(self, X: NDArray[Any], leaf: NDArray[Any], numbers: NDArray[Any], value: Floats, scores: Floats) -> None:
        """The results of a walk that are asked for, see :func:`toprank.trees._traversal.walk`."""
        steps = self.steps

        def fill(block: slice) -> NDArray[Any]:
            ends = np.empty(len(X[block]), np.int64)
            walk(X[block], self.roots, steps, leaf, numbers[block], value, scores[block], ends)
            return ends

        in_parallel(fill, [slice(i, i + _BLOCK_ROWS) for i in range(0, len(X) or 1, _BLOCK_ROWS)])

    def node_values(self, leaf_values: Floats) -> Floats:
        """One value for each node, of values for the leaves of the first tree, the second, and so on."""
        sizes = np.diff(np.append(self.roots, len(self.leaf)))
        starts = np.repeat(np.cumsum(self.n_leaves) - self.n_leaves, sizes)
        return np.where(self.feature < 0, leaf_values[starts + np.maximum(self.leaf, 0)], 0.0)

    def scores(self, X: NDArray[Any], node_values: Floats) -> Floats:
        """The sum of the values of the leaves that each row falls into."""
        scores = np.zeros(len(X))
        self._walk(X, self.leaf[:0], np.empty((len(X), 0), self._number_type), node_values, scores)
        return scores


def at_most(thresholds: Floats) -> NDArray[np.float32]:
    """The largest numbers in single precision that are at most the thresholds: rows of that precision see the same."""
    rounded = thresholds.astype(np.float32)
    return np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)


def _are_in_order(roots: NDArray[Any], n_nodes: int) -> bool:
    return len(roots) > 0 and roots[0] == 0 and bool(np.all(np.diff(np.append(roots, n_nodes)) > 0))


def _tree_of_nodes(known: Known) -> NDArray[np.intp]:
    """The number of the tree of each node."""
    sizes = np.diff(np.append(known["roots"], len(known["leaf"])))
    return np.repeat(np.arange(len(sizes)), sizes)


def _lead_to_leaves(known: Known) -> bool:
    ends = np.append(known["roots"][1:], len(known["leaf"]))[_tree_of_nodes(known)]
    return children_follow(known["feature"] >= 0, known["left"], known["right"], ends)


def _have_one_parent(known: Known) -> bool:
    inner = known["feature"] >= 0
    expected = np.ones(len(inner), np.intp)
    expected[known["roots"]] = 0
    children = np.concatenate([known["left"][inner], known["right"][inner]])
    return np.array_equal(np.bincount(children, minlength=len(inner)), expected)


def _are_numbered(known: Known) -> bool:
    """Whether each tree has as many leaves as it says, with numbers below that."""
    ends, tree = known["feature"] < 0, _tree_of_nodes(known)
    numbers, n_leaves = known["leaf"][ends], known["n_leaves"]
    counted = np.bincount(tree[ends], minlength=len(n_leaves))
    return np.array_equal(counted, n_leaves) and bool(np.all((numbers >= 0) & (numbers < n_leaves[tree[ends]])))


def _joined(parts: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(parts, dtype=kind, casting="unsafe")
