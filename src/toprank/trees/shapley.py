r"""Shapley values of a sum of trees: how much each feature adds to the score of a row.

A feature that is not known goes both ways at a split, by the shares of the training rows there. With the features S
known, the leaf l, reached by edges that ask the features of a set F, has the weight

.. math:: \prod_{j \in F \cap S} o_j \prod_{j \in F \setminus S} z_j

with :math:`o_j` 1 if the row takes all edges that ask j, else 0, and :math:`z_j` the product of the shares on them. The
Shapley values of this game are known as path-dependent TreeSHAP (Lundberg et al., From local explanations to global
understanding with explainable AI for trees, Nature Machine Intelligence 2, 2020). By Owen's integral (Multilinear
extensions of games, Management Science 18, 1972) the share of feature j in the value v of the leaf is

.. math:: v \int_0^1 (o_j - z_j) \prod_{k \in F \setminus j} (t\, o_k + (1 - t)\, z_k)\, dt

The integrand is a polynomial of degree |F| - 1, so that Gauss and Legendre's rule with ⌈|F| / 2⌉ points is exact, and
its factors are sums of positive numbers, so that no digits are lost. One pass over the nodes carries the products down
and the sums over leaves up: a row costs a number of operations like (nodes of all trees) · (features on a path) / 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats
from toprank.matrices.threads import in_parallel
from toprank.trees._shapley_loops import Room, add_shapley_values, find_paths
from toprank.trees.plain_trees import PlainTrees

# Trees that are done at a time; their sums are added in order, so that the result does not depend on the cores.
_TREES_AT_A_TIME = 10


def shapley_values(trees: PlainTrees, node_values: Floats, X: NDArray[Any]) -> tuple[Floats, float]:
    """What each feature adds to the sum of the leaf values of each row, and the mean of the sum over training rows."""
    ends = np.append(trees.roots, len(trees.leaf))[1:]
    spans = [slice(start, end) for start, end in zip(trees.roots.tolist(), ends.tolist(), strict=True)]

    def of_trees(block: slice) -> Floats:
        found = np.zeros(X.shape)
        for span in spans[block]:
            _add_tree(trees, span, node_values[span], X, found)
        return found

    blocks = [slice(start, start + _TREES_AT_A_TIME) for start in range(0, len(spans), _TREES_AT_A_TIME)]
    found = np.sum(in_parallel(of_trees, blocks), axis=0)
    return found, sum(float(trees.cover[span] @ node_values[span]) / float(trees.cover[span.start]) for span in spans)


def _add_tree(trees: PlainTrees, span: slice, value: Floats, X: NDArray[Any], found: Floats) -> None:
    """Add the values of one tree, whose nodes are those of the span."""
    feature, left, right = trees.feature[span], trees.left[span], trees.right[span]
    of_leaves = value[feature < 0]
    if of_leaves.min() == of_leaves.max():  # no split matters
        return
    n_nodes, cover = len(feature), trees.cover[span].astype(np.float64)
    depth, same, share = np.zeros(n_nodes, np.int32), np.zeros(n_nodes, np.int32), np.ones(n_nodes)
    room = np.zeros((4, n_nodes + 1), np.int64)
    deepest, n_features = find_paths(span.start, feature, left, right, cover, depth, same, share, room)
    points, weights = np.polynomial.legendre.leggauss((n_features + 1) // 2)
    points, weights = (points + 1) / 2, weights / 2
    add_shapley_values(
        X, span.start, feature, trees.threshold[span], left, right, trees.missing_left[span], value,
        same, share, points, weights, Room.of(deepest, points, X), found,
    )  # fmt: skip
