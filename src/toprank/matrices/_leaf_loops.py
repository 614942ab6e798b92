"""Compiled loops over leaf numbers: arrays only, cached, compiled on first use.

`leaves` has a row for each row of data and a column for each tree; the column of the matrix for leaf k of tree t is
``starts[t] + k``. `mask` has a bit for each tree, those of a byte from the lowest on; no columns mean that all trees
count. `values` is what each entry of a row is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import compiled


@compiled(nogil=True)
def leaf_scores(leaves: Any, starts: Any, values: Any, w: Any, scores: Any) -> None:
    """The sum of value · w[column] over the trees of a row, tree by tree.

    The sums of four rows go on side by side: one alone would wait for each of its additions.
    """
    n, n_trees = leaves.shape
    last = n - 1
    for i in range(0, n, 4):
        j, k, m = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for t in range(n_trees):
            start = starts[t]
            first += values[i] * w[start + np.int64(leaves[i, t])]
            second += values[j] * w[start + np.int64(leaves[j, t])]
            third += values[k] * w[start + np.int64(leaves[k, t])]
            fourth += values[m] * w[start + np.int64(leaves[m, t])]
        scores[i], scores[j], scores[k], scores[m] = first, second, third, fourth


@compiled(nogil=True)
def masked_leaf_scores(leaves: Any, mask: Any, starts: Any, values: Any, w: Any, scores: Any) -> None:
    """The same over the trees that count; their columns are listed first, without a branch that depends on the mask."""
    n, n_trees = leaves.shape
    columns = np.empty(n_trees, np.int64)
    for i in range(n):
        used = 0
        for t in range(n_trees):
            columns[used] = starts[t] + np.int64(leaves[i, t])
            used += (mask[i, t >> 3] >> (t & 7)) & 1
        total = 0.0
        for a in range(used):
            total += values[i] * w[columns[a]]
        scores[i] = total


@compiled(nogil=True)
def add_leaf_sums(leaves: Any, starts: Any, row_weights: Any, first: int, last: int, sums: Any) -> None:
    """Add the weight of each row to the columns of its leaves in the trees from `first` to before `last`."""
    for i in range(leaves.shape[0]):
        weight = row_weights[i]
        if weight != 0.0:
            for t in range(first, last):
                sums[starts[t] + np.int64(leaves[i, t])] += weight


@compiled(nogil=True)
def add_masked_leaf_sums(
    leaves: Any, mask: Any, starts: Any, row_weights: Any, first: int, last: int, sums: Any
) -> None:
    """The same for the trees that count."""
    columns = np.empty(last - first, np.int64)
    for i in range(leaves.shape[0]):
        weight = row_weights[i]
        if weight != 0.0:
            used = 0
            for t in range(first, last):
                columns[used] = starts[t] + np.int64(leaves[i, t])
                used += (mask[i, t >> 3] >> (t & 7)) & 1
            for a in range(used):
                sums[columns[a]] += weight


@compiled(nogil=True)
def leaf_sandwich(
    leaves: Any, mask: Any, starts: Any, values: Any, extra: Any, rows: Any, weights: Any, H: Any
) -> None:
    """Add weightᵢ xᵢ xᵢᵀ for the given rows to the lower triangle of H; `extra` are the columns after the leaves."""
    n_trees, n_extra = leaves.shape[1], extra.shape[1]
    first_extra = H.shape[0] - n_extra
    masked = mask.shape[1] > 0
    columns, entries = np.empty(n_trees + n_extra, np.int64), np.empty(n_trees + n_extra)
    for i in rows:
        used = 0
        for t in range(n_trees):
            if not masked or (mask[i, t >> 3] >> (t & 7)) & 1:
                columns[used], entries[used] = starts[t] + np.int64(leaves[i, t]), values[i]
                used += 1
        for e in range(n_extra):
            columns[used], entries[used] = first_extra + e, extra[i, e]
            used += 1
        for a in range(used):  # the columns rise
            weighted = weights[i] * entries[a]
            for b in range(a + 1):
                H[columns[a], columns[b]] += weighted * entries[b]


@compiled(nogil=True)
def add_meetings(leaves_a: Any, leaves_b: Any, first: int, last: int, counts: Any) -> None:
    """Add the number of the trees from `first` to before `last`, less than 2¹⁶, in which two rows share a leaf."""
    for i in range(leaves_a.shape[0]):
        of_a = leaves_a[i, first:last]
        for j in range(leaves_b.shape[0]):
            of_b = leaves_b[j, first:last]
            together = np.uint16(0)  # as narrow as the leaf numbers, so that many are compared at a time
            for t in range(len(of_a)):
                together = np.uint16(together + np.uint16(of_a[t] == of_b[t]))
            counts[i, j] += together


@compiled(nogil=True)
def count_bits(mask: Any, counts: Any) -> None:
    """Number of bits that are set in each row."""
    for i in range(mask.shape[0]):
        total = 0
        for byte in mask[i]:
            while byte:
                byte &= byte - 1
                total += 1
        counts[i] = total
