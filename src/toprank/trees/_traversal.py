"""Compiled loops over plain trees: arrays only, cached, compiled on first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import compiled


@compiled(nogil=True)
def find_leaves(
    X: Any, roots: Any, feature: Any, threshold: Any, left: Any, right: Any, missing_left: Any, leaf: Any, numbers: Any
) -> None:
    """The number of the leaf that each row falls into, in each tree; a feature of −1 marks a leaf."""
    for t in range(len(roots)):
        for i in range(X.shape[0]):
            node = roots[t]
            while feature[node] >= 0:
                x = X[i, feature[node]]
                goes_left = missing_left[node] != 0 if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
            numbers[i, t] = leaf[node]


@compiled(nogil=True)
def add_leaf_values(
    X: Any, roots: Any, feature: Any, threshold: Any, left: Any, right: Any, missing_left: Any, value: Any, scores: Any
) -> None:
    """Add the values of the leaves that a row falls into, tree by tree; `value` has one for each node."""
    for t in range(len(roots)):
        for i in range(X.shape[0]):
            node = roots[t]
            while feature[node] >= 0:
                x = X[i, feature[node]]
                goes_left = missing_left[node] != 0 if np.isnan(x) else x <= threshold[node]
                node = left[node] if goes_left else right[node]
            scores[i] += value[node]
