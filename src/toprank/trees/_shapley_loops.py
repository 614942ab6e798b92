"""Compiled loops of the Shapley values of trees: arrays only, cached, compiled on first use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats
from toprank.compiled import compiled, part

# Rows that go through a tree together.
GROUP = 16


@compiled(nogil=True)
def find_paths(
    root: Any, feature: Any, left: Any, right: Any, cover: Any, depth: Any, same: Any, share: Any, room: Any
) -> Any:
    """How each node of a tree is reached; returns the most edges on a path, and the most different features.

    Arrays of the tree start at its root. The edge into a node asks the feature of its parent. `same` is the depth of
    the last edge above it that asks the same feature, 0 if there is none, and `share` the product of the shares of the
    training rows that go along the edges of the path that ask this feature. `room` are four rows of zeros, one longer
    than the nodes.
    """
    deepest, most_features = 0, 0
    for node in range(len(feature)):  # a node comes after its parent
        if depth[node] > deepest:
            deepest = depth[node]
        if feature[node] < 0:
            continue
        for child in (left[node] - root, right[node] - root):
            depth[child] = depth[node] + 1
            share[child] = cover[child] / cover[node]
    path, new = room[0], room[1]  # nodes, and the number of different features, down to a depth
    _set_depth_first_order(root, feature, left, right, room[2], room[3])
    for place in range(len(feature)):
        node = room[2, place]
        d = depth[node]
        path[d] = node
        if d == 0:
            continue
        asked = feature[path[d - 1]]
        above = d - 1
        while above > 0 and feature[path[above - 1]] != asked:
            above -= 1
        same[node] = above
        new[d] = new[d - 1] + (above == 0)
        if new[d] > most_features:
            most_features = new[d]
        if above > 0:
            share[node] *= share[path[above]]
    return deepest, most_features


@part()
def _set_depth_first_order(root: Any, feature: Any, left: Any, right: Any, order: Any, waiting: Any) -> None:
    """The nodes of a tree, each after its parent, subtree by subtree."""
    waiting[0], n_waiting = 0, 1
    for place in range(len(feature)):
        n_waiting -= 1
        node = waiting[n_waiting]
        order[place] = node
        if feature[node] >= 0:
            waiting[n_waiting], waiting[n_waiting + 1] = right[node] - root, left[node] - root
            n_waiting += 2


class Room(NamedTuple):
    """What `add_shapley_values` works with, by depth but for the last two; see there."""

    product: Floats
    below: Floats
    takes: Floats
    inverse: Floats
    slope: Floats
    path: NDArray[np.int64]
    stage: NDArray[np.int64]
    x: NDArray[Any]
    added: Floats

    @classmethod
    def of(cls, deepest: int, points: Floats, X: NDArray[Any]) -> Room:
        """Room for paths of so many edges."""
        n, n_points = deepest + 1, len(points)
        # (o - z) / (t o + (1 - t) z) of rows that take the edges, less the -1 / (1 - t) of those that do not
        slope = np.zeros((n, n_points)) + 1.0 / (1.0 - points)
        product, below = np.ones((n, n_points, GROUP)), np.zeros((n, n_points, GROUP))
        takes, inverse = np.ones((n, GROUP)), np.ones((n, n_points))
        path, stage = np.zeros((2, n), np.int64)
        x, added = np.empty((X.shape[1], GROUP), X.dtype), np.empty(GROUP)
        return cls(product, below, takes, inverse, slope, path, stage, x, added)


@compiled(nogil=True)
def add_shapley_values(
    X: Any, root: Any, feature: Any, threshold: Any, left: Any, right: Any, missing_left: Any, value: Any,
    same: Any, share: Any, points: Any, weights: Any, room: Any, found: Any,
) -> None:  # fmt: skip
    """Add the Shapley values of one tree to `found`, a row for each row and a column for each feature.

    1. Rows go through the tree in groups, along all paths. Arrays by depth hold what belongs to the path to a node.
    2. Down an edge: which rows take it and all above that ask the same feature (`takes`), and for each point t of the
       integral the product of the factors t o + (1 - t) z (`product`), in which that of the edge replaces the one of
       the last edge with this feature.
    3. At a leaf: value times product, the weight of the point included (`below`).
    4. Up an edge: `below` of all leaves under it, times (o - z) over its factor, is added to its feature; what the edge
       above with the same feature will add for these leaves is taken away.
    """
    n_points = len(points)
    product, below, takes, inverse, slope, path, stage, x, added = room
    for first in range(0, X.shape[0], GROUP):
        for b in range(GROUP):
            i = first + b if first + b < X.shape[0] else X.shape[0] - 1
            for column in range(X.shape[1]):
                x[column, b] = X[i, column]
        d = 0
        stage[0] = 0
        while stage[0] < 2 or d > 0:
            node = path[d]
            if feature[node] >= 0 and stage[d] < 2:
                goes_left = stage[d] == 0
                stage[d] += 1
                d += 1
                child = (left[node] if goes_left else right[node]) - root
                path[d], stage[d] = child, 0
                above = same[child]
                for b in range(GROUP):
                    value_there = x[feature[node], b]
                    is_left = missing_left[node] != 0 if np.isnan(value_there) else value_there <= threshold[node]
                    takes[d, b] = takes[above, b] if is_left == goes_left else 0.0
                _go_down(d, above, share[child], share[path[above]], points, takes, inverse, slope, product, below)
                continue
            if feature[node] < 0:
                for q in range(n_points):
                    for b in range(GROUP):
                        below[d, q, b] = value[node] * weights[q] * product[d, q, b]
            for b in range(GROUP):
                added[b] = 0.0
            above = same[node]
            for q in range(n_points):
                for b in range(GROUP):
                    below[d - 1, q, b] += below[d, q, b]
                    added[b] += below[d, q, b] * (takes[d, b] * slope[d, q] - takes[above, b] * slope[above, q])
            d -= 1
            for b in range(GROUP):
                if first + b < X.shape[0]:
                    found[first + b, feature[path[d]]] += added[b]


@part()
def _go_down(
    d: Any, above: Any, share: Any, share_above: Any, points: Any,
    takes: Any, inverse: Any, slope: Any, product: Any, below: Any,
) -> None:  # fmt: skip
    """Step 2 at depth d for an edge with a share z; `above` is the depth of the last edge with this feature."""
    neither = share / share_above
    for q in range(len(points)):
        no = (1.0 - points[q]) * share
        yes = points[q] + no
        both, only_above = yes * inverse[above, q], no * inverse[above, q]
        inverse[d, q] = 1.0 / yes
        slope[d, q] = (1.0 - share) / yes + 1.0 / (1.0 - points[q])
        for b in range(GROUP):
            factor = takes[d, b] * both + (takes[above, b] - takes[d, b]) * only_above + (1 - takes[above, b]) * neither
            product[d, q, b] = product[d - 1, q, b] * factor
            below[d, q, b] = 0.0
