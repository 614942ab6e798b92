"""Compiled loops over leaf numbers: arrays only, cached, compiled on first use.

`leaves` has a row for each row of data and a column for each tree; the column of the matrix for leaf k of tree t is
``starts[t] + k``. Where not all trees count for a row, `columns` lists the columns of those that do: of row i from
``firsts[i]`` to before ``firsts[i + 1]``. `values` is what each entry of a row is.
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
        j = i + 1 if i + 1 < last else last
        k, m = j + 1 if j < last else last, j + 2 if j + 1 < last else last
        first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        for t in range(n_trees):
            start = starts[t]
            first += values[i] * w[start + np.int64(leaves[i, t])]
            second += values[j] * w[start + np.int64(leaves[j, t])]
            third += values[k] * w[start + np.int64(leaves[k, t])]
            fourth += values[m] * w[start + np.int64(leaves[m, t])]
        scores[i], scores[j], scores[k], scores[m] = first, second, third, fourth


@compiled(nogil=True)
def listed_scores(firsts: Any, columns: Any, values: Any, w: Any, scores: Any) -> None:
    """The same over the columns that are listed; as unsigned numbers they need no look whether they are negative."""
    for i in range(len(firsts) - 1):
        value, total = values[i], 0.0
        for column in columns[firsts[i] : firsts[i + 1]]:
            total += value * w[np.uint64(column)]
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
def add_listed_sums(firsts: Any, columns: Any, row_weights: Any, sums: Any) -> None:
    """Add the weight of each row to the columns that are listed for it."""
    for i in range(len(firsts) - 1):
        weight = row_weights[i]
        if weight != 0.0:
            for column in columns[firsts[i] : firsts[i + 1]]:
                sums[np.uint64(column)] += weight


@compiled(nogil=True)
def list_columns(leaves: Any, used: Any, starts: Any, firsts: Any, columns: Any) -> None:
    """List the columns of the trees that count, without a branch that depends on them; the last place is to spare."""
    n, n_trees = leaves.shape
    for i in range(n):
        k = firsts[i]
        for t in range(n_trees):
            columns[k] = starts[t] + np.int64(leaves[i, t])
            k += used[i, t]


@compiled(nogil=True)
def copy_lists(firsts: Any, columns: Any, rows: Any, new_firsts: Any, new_columns: Any) -> None:
    """The lists of some rows."""
    for i in range(len(rows)):
        first, new = firsts[rows[i]], new_firsts[i]
        for k in range(new_firsts[i + 1] - new):
            new_columns[new + k] = columns[first + k]


@compiled(nogil=True)
def leaf_sandwich(firsts: Any, columns: Any, values: Any, extra: Any, rows: Any, weights: Any, H: Any) -> None:
    """Add weightᵢ xᵢ xᵢᵀ for the given rows to the lower triangle of H; `extra` are the columns after the leaves."""
    n_extra = extra.shape[1]
    first_extra = H.shape[0] - n_extra
    for i in rows:
        of_row = columns[firsts[i] : firsts[i + 1]]
        of_leaves = weights[i] * values[i] * values[i]
        for a in range(len(of_row)):  # the columns rise
            for b in range(a + 1):
                H[of_row[a], of_row[b]] += of_leaves
        for e in range(n_extra):
            weighted = weights[i] * extra[i, e]
            for column in of_row:
                H[first_extra + e, column] += weighted * values[i]
            for f in range(e + 1):
                H[first_extra + e, first_extra + f] += weighted * extra[i, f]


@compiled(nogil=True)
def add_meetings(firsts: Any, columns: Any, firsts_of_columns: Any, rows: Any, counts: Any) -> None:
    """Count the columns that rows share with others, whose numbers are listed column by column."""
    for i in range(len(firsts) - 1):
        of_row = counts[i]
        for column in columns[firsts[i] : firsts[i + 1]]:
            for j in rows[firsts_of_columns[column] : firsts_of_columns[column + 1]]:
                of_row[np.uint64(j)] += 1.0
