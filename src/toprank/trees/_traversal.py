"""Compiled loops over plain trees: arrays only, cached, compiled on first use.

`nodes` are those of `PlainTrees.steps`. A walk waits for each node before it knows the next one, so eight rows walk
down a tree side by side; a row that has come to its leaf stays there until the last one has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import compiled, part


@part()
def _next(nodes: Any, X: Any, i: int, node: int) -> Any:
    """The node after a node, for a row; without a branch, and the same one for a leaf."""
    step = nodes[node]
    is_second = X[i, step.feature if step.feature > 0 else 0] * step.sign > step.split  # never for a missing value
    return np.int64(step.second if is_second else step.first)


@part()
def _ends_of_eight(nodes: Any, X: Any, i: int, root: int) -> Any:
    """The nodes of the leaves of eight rows from row i on; a feature of −1 marks a leaf."""
    a = b = c = d = e = f = g = h = root
    while (nodes[a].feature & nodes[b].feature & nodes[c].feature & nodes[d].feature
           & nodes[e].feature & nodes[f].feature & nodes[g].feature & nodes[h].feature) >= 0:  # fmt: skip
        a, b = _next(nodes, X, i, a), _next(nodes, X, i + 1, b)
        c, d = _next(nodes, X, i + 2, c), _next(nodes, X, i + 3, d)
        e, f = _next(nodes, X, i + 4, e), _next(nodes, X, i + 5, f)
        g, h = _next(nodes, X, i + 6, g), _next(nodes, X, i + 7, h)
    return a, b, c, d, e, f, g, h


@part()
def _find_ends(nodes: Any, X: Any, root: int, ends: Any) -> None:
    """The node of the leaf that each row falls into, in one tree."""
    n = X.shape[0]
    n_of_eights = n - n % 8
    for i in range(0, n_of_eights, 8):
        (ends[i], ends[i + 1], ends[i + 2], ends[i + 3],
         ends[i + 4], ends[i + 5], ends[i + 6], ends[i + 7]) = _ends_of_eight(nodes, X, i, root)  # fmt: skip
    for i in range(n_of_eights, n):
        node = root
        while nodes[node].feature >= 0:
            node = _next(nodes, X, i, node)
        ends[i] = node


@compiled(nogil=True)
def walk(X: Any, roots: Any, nodes: Any, leaf: Any, numbers: Any, value: Any, scores: Any, ends: Any) -> None:
    """The number of the leaf that each row falls into, in each tree, and the sum of the values of these leaves.

    `leaf` and `value` have one for each node; where one of them is empty, that result is not asked for. `ends` is room
    for a number of each row. It is one loop for both results, as most of it is the walk.
    """
    for t in range(len(roots)):
        _find_ends(nodes, X, roots[t], ends)
        if len(leaf):
            for i in range(len(ends)):
                numbers[i, t] = leaf[ends[i]]
        if len(value):
            for i in range(len(ends)):
                scores[i] += value[ends[i]]
