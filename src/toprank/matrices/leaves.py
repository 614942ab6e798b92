r"""The matrix of leaves: which leaf each row falls into, in each tree of one or several ensembles.

Leaf k of tree t is a column, which is 1/√T for the rows in it, T the number of trees, and 0 for others. So every row
has norm 1, and the product of two rows is the share of the trees in which they meet. Stored is one small integer a tree
and row. Where only some trees count for a row, it has the entries of these alone, multiplied by T over their number;
stored are then the numbers of their columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from toprank.arrays import Floats, Mask, Rows
from toprank.matrices._leaf_loops import (
    add_leaf_sums,
    add_listed_sums,
    add_meetings,
    copy_lists,
    leaf_sandwich,
    leaf_scores,
    list_columns,
    listed_scores,
)
from toprank.matrices.own_storage import OwnStorage
from toprank.matrices.threads import in_parallel

# Entries of a part that is worth a thread.
_ENTRIES_OF_A_PART = 2_000_000
# Products of rows of a part.
_PRODUCTS_OF_A_PART = 500_000
# Columns whose sums stay in the first cache of a core.
_COLUMNS_OF_A_PART = 3000


def number_type(largest: int) -> Any:
    """The smallest type of unsigned integers that holds a number."""
    return next(kind for kind in (np.uint8, np.uint16, np.uint32) if largest <= np.iinfo(kind).max)


@dataclass(frozen=True, eq=False)
class ColumnLists:
    """The columns of the trees that count for each row: those of row i from `firsts[i]` to before `firsts[i + 1]`."""

    firsts: NDArray[np.int64]
    columns: NDArray[Any]

    @classmethod
    def of(cls, leaves: NDArray[Any], starts: NDArray[np.int64], used: Mask) -> Self:
        """The columns of leaf numbers within each tree, where `used` says so."""
        firsts = np.concatenate([[0], np.cumsum(used.sum(axis=1), dtype=np.int64)])
        columns = np.empty(int(firsts[-1]) + 1, np.int32 if starts[-1] <= np.iinfo(np.int32).max else np.int64)
        list_columns(leaves, used, starts, firsts, columns)
        return cls(firsts, columns[:-1])

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of columns of each row."""
        return np.diff(self.firsts)

    def by_column(self, n_columns: int) -> Any:
        """The rows of each column, as a CSC matrix has them."""
        ones = np.ones(len(self.columns), np.int8)
        return csr_array((ones, self.columns, self.firsts), shape=(len(self.firsts) - 1, n_columns)).tocsc()

    def __getitem__(self, rows: Any) -> Self:
        numbers = np.arange(len(self.firsts) - 1)[rows]
        firsts = np.concatenate([[0], np.cumsum(self.counts[numbers])])
        columns = np.empty(int(firsts[-1]), self.columns.dtype)
        copy_lists(self.firsts, self.columns, numbers, firsts, columns)
        return type(self)(firsts, columns)


@dataclass(frozen=True, eq=False)
class LeafMatrix(OwnStorage):
    """Leaf numbers as a matrix of 0 and 1/√T; see the module.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.matrices.leaves import LeafMatrix
    >>> X = LeafMatrix.of(np.array([[0, 1], [1, 1]]), n_leaves=[2, 3])
    >>> X.shape
    (2, 5)
    >>> X @ np.array([1.0, 2.0, 0.0, 4.0, 8.0]) * np.sqrt(2)
    array([5., 6.])
    """

    leaves: NDArray[Any]
    """Of shape (n_rows, n_trees): the number of the leaf within its tree. No columns where only some trees count."""
    starts: NDArray[np.int64]
    """Of shape (n_trees + 1,): the first column of each tree, and the number of columns of all."""
    listed: ColumnLists | None
    """The columns of the trees that count for each row; None: all trees count."""
    values: Floats
    """What the entries of a row are."""
    extra: Floats
    """Dense columns after those of the leaves."""

    @classmethod
    def of(cls, leaves: NDArray[Any], n_leaves: Any, used: NDArray[Any] | None = None) -> Self:
        """The matrix of leaf numbers within each tree; `used` says which rows count in which trees.

        A row that counts in no tree has no entries.
        """
        n, n_trees = leaves.shape
        starts = np.concatenate([[0], np.cumsum(n_leaves, dtype=np.int64)])
        leaves = np.ascontiguousarray(leaves, number_type(max(int(np.max(n_leaves, initial=1)) - 1, 0)))
        if used is None:
            return cls(leaves, starts, None, np.full(n, 1 / np.sqrt(max(n_trees, 1))), np.zeros((n, 0)))
        listed = ColumnLists.of(leaves, starts, np.ascontiguousarray(used, bool))
        values = np.sqrt(n_trees) / np.maximum(listed.counts, 1)
        return cls(leaves[:, :0], starts, listed, values, np.zeros((n, 0)))

    def with_extra(self, extra: NDArray[Any]) -> Self:
        """The same leaves with these dense columns after them, in place of earlier ones."""
        return replace(self, extra=np.ascontiguousarray(extra, np.float64))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.starts) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.values), int(self.starts[-1]) + self.extra.shape[1]

    @property
    def nnz(self) -> int:
        """Number of entries that a CSR matrix would store."""
        return (self.leaves.size if self.listed is None else len(self.listed.columns)) + self.extra.size

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        lists = 0 if self.listed is None else self.listed.firsts.nbytes + self.listed.columns.nbytes
        return lists + sum(part.nbytes for part in (self.leaves, self.starts, self.values, self.extra))

    def __sizeof__(self) -> int:
        """Bytes in memory, by which a cluster decides what it writes to disk."""
        return self.nbytes

    def __getitem__(self, rows: Any) -> Self:
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("leaves", "values", "extra")}
        return replace(self, listed=None if self.listed is None else self.listed[rows], **parts)

    def __abs__(self) -> Self:
        return replace(self, values=np.abs(self.values), extra=np.abs(self.extra))

    def sums(self, leaf_values: Floats) -> Floats:
        """The sum of the values of the leaves of each row, where all trees count."""
        return replace(self, values=np.ones(len(self))) @ leaf_values

    def matvec(self, w: Floats) -> Floats:
        """X w, in blocks of rows on all cores; each sum is over the trees in their order."""
        w, scores = np.ascontiguousarray(w, np.float64), np.zeros(len(self))

        def add(block: slice) -> Floats:
            part, values = scores[block], self.values[block]
            if self.listed is None:
                leaf_scores(self.leaves[block], self.starts, values, w, part)
            elif len(part):
                listed_scores(self.listed.firsts[block.start : block.stop + 1], self.listed.columns, values, w, part)
            for column, weight in enumerate(w[self.starts[-1] :]):
                part += self.extra[block, column] * weight
            return part

        step = max(1, _ENTRIES_OF_A_PART * max(len(self), 1) // max(self.nnz, 1))
        in_parallel(add, [slice(start, start + step) for start in range(0, len(self) or 1, step)])
        return scores

    def transpose_matvec(self, row_weights: Floats) -> Floats:
        """Xᵀ r, in blocks of trees on all cores; each sum is over the rows in their order."""
        return self._sums(self.values * row_weights, self.extra, row_weights)

    def weighted_squares(self, row_weights: Floats) -> Floats:
        """Σ weightᵢ xᵢ² of each column."""
        return self._sums(self.values**2 * row_weights, self.extra**2, row_weights)

    def _sums(self, on_leaves: Floats, extra: Floats, on_extra: Floats) -> Floats:
        sums = np.zeros(self.shape[1])
        if self.listed is None:
            self._add_leaf_sums(on_leaves, sums)
        else:
            add_listed_sums(self.listed.firsts, self.listed.columns, on_leaves, sums)
        for column in range(extra.shape[1]):
            sums[self.starts[-1] + column] = _sum_in_order(extra[:, column] * on_extra)
        return sums

    def _add_leaf_sums(self, row_weights: Floats, sums: Floats) -> None:
        """Tree by tree, as many at a time as stay in the cache."""
        n_trees = self.n_trees

        def add(trees: slice) -> Floats:
            add_leaf_sums(self.leaves, self.starts, row_weights, trees.start, min(trees.stop, n_trees), sums)
            return sums

        step = max(1, n_trees * _COLUMNS_OF_A_PART // max(int(self.starts[-1]), 1))
        blocks = [slice(start, start + step) for start in range(0, n_trees, step)]
        if self.leaves.size > 2 * _ENTRIES_OF_A_PART:
            in_parallel(add, blocks)
        else:
            for block in blocks:
                add(block)

    def sandwich(self, rows: Rows, weights: Floats) -> Floats:
        """Lower triangle of Σ weightᵢ xᵢ xᵢᵀ over some rows."""
        H = np.zeros((self.shape[1], self.shape[1]))
        lists = self._lists()
        leaf_sandwich(lists.firsts, lists.columns, self.values, self.extra, rows, weights, H)
        return H

    def _lists(self) -> ColumnLists:
        """The columns of each row, where all trees count too."""
        return self.listed or ColumnLists.of(self.leaves, self.starts, np.ones(self.leaves.shape, bool))

    def squared_norms(self) -> Floats:
        """Squared norm of each row."""
        counts = self.n_trees if self.listed is None else self.listed.counts
        return np.asarray(counts * self.values**2 + np.einsum("ij,ij->i", self.extra, self.extra))

    def products_between(self, rows_a: Rows, rows_b: Rows) -> Floats:
        """Inner products of some rows with others, by counting the trees in which two rows meet."""
        a, b = self[rows_a], self[rows_b]
        lists, others = a._lists(), b._lists().by_column(self.shape[1])
        products = np.zeros((len(a), len(b)))

        def fill(block: slice) -> Floats:
            part = products[block]
            firsts = lists.firsts[block.start : block.stop + 1]
            add_meetings(firsts, lists.columns, others.indptr, others.indices, part)
            part *= a.values[block, None]
            part *= b.values
            part += a.extra[block] @ b.extra.T
            return part

        step = max(1, _PRODUCTS_OF_A_PART // max(len(b), 1))
        in_parallel(fill, [slice(start, start + step) for start in range(0, len(a) or 1, step)])
        return products

    def scaled_columns(self, scale: Floats) -> Any:
        """X diag(scale): in this storage where all scales of leaves are the same, else as a CSR matrix."""
        n_leaves = int(self.starts[-1])
        if n_leaves and np.ptp(scale[:n_leaves]):
            return self.tocsr().multiply(scale).tocsr()
        factor = scale[0] if n_leaves else 1.0
        return replace(self, values=self.values * factor, extra=self.extra * scale[n_leaves:])

    def tocsr(self) -> csr_array:
        """The same matrix in CSR."""
        n, n_extra = len(self), self.extra.shape[1]
        lists = self._lists()
        after = np.repeat(lists.firsts[1:], n_extra)  # the extra columns of a row come after its leaves
        columns = np.insert(lists.columns, after, np.tile(self.starts[-1] + np.arange(n_extra), n))
        entries = np.insert(np.repeat(self.values, lists.counts), after, self.extra.ravel())
        firsts = lists.firsts + n_extra * np.arange(n + 1)
        kind = np.int32 if max(len(columns), self.shape[1]) <= np.iinfo(np.int32).max else np.int64
        return csr_array((entries, columns.astype(kind), firsts.astype(kind)), shape=self.shape)


def _sum_in_order(terms: Floats) -> float:
    """The sum from the first to the last, as a sparse matrix has it."""
    return float(np.cumsum(terms)[-1]) if len(terms) else 0.0
