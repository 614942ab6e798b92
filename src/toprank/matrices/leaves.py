r"""The matrix of leaves: which leaf each row falls into, in each tree of one or several ensembles.

Leaf k of tree t is a column, which is 1/√T for the rows in it, T the number of trees, and 0 for others. So every row
has norm 1, and the product of two rows is the share of the trees in which they meet. Stored is one small integer a tree
and row. With a mask of trees, a row has the entries of these trees alone, multiplied by T over their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from toprank.arrays import Floats, Rows
from toprank.matrices._leaf_loops import (
    add_leaf_sums,
    add_masked_leaf_sums,
    add_meetings,
    count_bits,
    leaf_sandwich,
    leaf_scores,
    masked_leaf_scores,
)
from toprank.matrices.dense_or_sparse import in_parallel, n_cores
from toprank.matrices.own_storage import OwnStorage

# Entries of a part that is worth a thread.
_ENTRIES_OF_A_PART = 500_000
# Columns whose sums stay in the first cache of a core.
_COLUMNS_OF_A_PART = 3000
# Trees whose meetings are counted in 16 bits.
_COUNTED_TREES = 2**16 - 1


def number_type(largest: int) -> Any:
    """The smallest type of unsigned integers that holds a number."""
    return next(kind for kind in (np.uint8, np.uint16, np.uint32) if largest <= np.iinfo(kind).max)


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
    """Of shape (n_rows, n_trees): the number of the leaf within its tree."""
    starts: NDArray[np.int64]
    """Of shape (n_trees + 1,): the first column of each tree, and the number of columns of all."""
    mask: NDArray[np.uint8]
    """A bit for each row and tree that counts, as `numpy.packbits` makes them with little-endian order; or no columns:
    all trees count."""
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
        empty = np.zeros((n, 0), np.uint8)
        whole = cls(leaves, starts, empty, np.full(n, 1 / np.sqrt(max(n_trees, 1))), np.zeros((n, 0)))
        return whole if used is None else whole.masked(np.packbits(used, axis=1, bitorder="little"))

    def masked(self, mask: NDArray[np.uint8]) -> Self:
        """The same leaves under another mask; one without columns counts all trees."""
        n_trees = self.n_trees
        if not mask.shape[1]:
            return replace(self, mask=mask, values=np.full(len(self), 1 / np.sqrt(max(n_trees, 1))))
        counts = np.empty(len(self), np.int64)
        count_bits(mask, counts)
        return replace(self, mask=mask, values=np.sqrt(n_trees) / np.maximum(counts, 1))

    def with_extra(self, extra: NDArray[Any]) -> Self:
        """The same leaves with these dense columns after them, in place of earlier ones."""
        return replace(self, extra=np.ascontiguousarray(extra, np.float64))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return int(self.leaves.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.leaves), int(self.starts[-1]) + self.extra.shape[1]

    @property
    def nnz(self) -> int:
        """Number of entries that a CSR matrix would store."""
        return int(self._counts().sum()) + self.extra.size

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(part.nbytes for part in (self.leaves, self.starts, self.mask, self.values, self.extra))

    def _counts(self) -> NDArray[np.int64]:
        """Number of the trees that count, of each row."""
        if not self.mask.shape[1]:
            return np.full(len(self), self.n_trees)
        counts = np.empty(len(self), np.int64)
        count_bits(self.mask, counts)
        return counts

    def __getitem__(self, rows: Any) -> Self:
        parts = {name: getattr(self, name)[rows] for name in ("leaves", "mask", "values", "extra")}
        return replace(self, **parts)

    def __abs__(self) -> Self:
        return replace(self, values=np.abs(self.values), extra=np.abs(self.extra))

    def sums(self, leaf_values: Floats) -> Floats:
        """The sum of the values of the leaves of each row, where all trees count."""
        return replace(self, values=np.ones(len(self))) @ leaf_values

    def matvec(self, w: Floats) -> Floats:
        """X w, in blocks of rows on all cores; each sum is over the trees in their order."""
        w, scores = np.ascontiguousarray(w, np.float64), np.zeros(len(self))

        def add(block: slice) -> Floats:
            part, leaves, values = scores[block], self.leaves[block], self.values[block]
            if self.mask.shape[1]:
                masked_leaf_scores(leaves, self.mask[block], self.starts, values, w, part)
            else:
                leaf_scores(leaves, self.starts, values, w, part)
            for column, weight in enumerate(w[self.starts[-1] :]):
                part += self.extra[block, column] * weight
            return part

        step = max(1, _ENTRIES_OF_A_PART // max(self.n_trees, 1))
        in_parallel(add, [slice(start, start + step) for start in range(0, len(self) or 1, step)])
        return scores

    def transpose_matvec(self, row_weights: Floats) -> Floats:
        """Xᵀ r, in blocks of trees on all cores; each sum is over the rows in their order."""
        return self._sums(self.values * row_weights, self.extra, row_weights)

    def weighted_squares(self, row_weights: Floats) -> Floats:
        """Σ weightᵢ xᵢ² of each column."""
        return self._sums(self.values**2 * row_weights, self.extra**2, row_weights)

    def _sums(self, on_leaves: Floats, extra: Floats, on_extra: Floats) -> Floats:
        sums, n_trees = np.zeros(self.shape[1]), self.n_trees

        def add(trees: slice) -> Floats:
            first, last = trees.start, min(trees.stop, n_trees)
            if self.mask.shape[1]:
                add_masked_leaf_sums(self.leaves, self.mask, self.starts, on_leaves, first, last, sums)
            else:
                add_leaf_sums(self.leaves, self.starts, on_leaves, first, last, sums)
            return sums

        # of few entries a row, one pass for each core is quicker than many passes within the cache
        in_cache = max(1, n_trees * _COLUMNS_OF_A_PART // max(int(self.starts[-1]), 1))
        step = max(1, -(-n_trees // n_cores())) if self.mask.shape[1] else in_cache
        blocks = [slice(start, start + step) for start in range(0, n_trees, step)]
        if self.leaves.size > 2 * _ENTRIES_OF_A_PART:
            in_parallel(add, blocks)
        else:
            for block in blocks:
                add(block)
        for column in range(extra.shape[1]):
            sums[self.starts[-1] + column] = _sum_in_order(extra[:, column] * on_extra)
        return sums

    def sandwich(self, rows: Rows, weights: Floats) -> Floats:
        """Lower triangle of Σ weightᵢ xᵢ xᵢᵀ over some rows."""
        H = np.zeros((self.shape[1], self.shape[1]))
        leaf_sandwich(self.leaves, self.mask, self.starts, self.values, self.extra, rows, weights, H)
        return H

    def squared_norms(self) -> Floats:
        """Squared norm of each row."""
        return np.asarray(self._counts() * self.values**2 + np.einsum("ij,ij->i", self.extra, self.extra))

    def products_between(self, rows_a: Rows, rows_b: Rows) -> Floats:
        """Inner products of some rows with others, by counting the trees in which two rows meet."""
        a, b = self[rows_a], self[rows_b]
        products = np.zeros((len(a), len(b)))
        leaves_a, leaves_b = a._alone_where_unused(1), b._alone_where_unused(2)

        def fill(block: slice) -> Floats:
            part = products[block]
            for first in range(0, self.n_trees, _COUNTED_TREES):
                add_meetings(leaves_a[block], leaves_b, first, min(first + _COUNTED_TREES, self.n_trees), part)
            part *= a.values[block, None]
            part *= b.values
            part += a.extra[block] @ b.extra.T
            return part

        step = max(1, _ENTRIES_OF_A_PART // max(len(b), 1))
        in_parallel(fill, [slice(start, start + step) for start in range(0, len(a) or 1, step)])
        return products

    def _alone_where_unused(self, offset: int) -> NDArray[Any]:
        """The leaf numbers, and beyond all of them, by `offset`, where a tree does not count."""
        if not self.mask.shape[1]:
            return self.leaves
        largest = int(np.diff(self.starts).max(initial=1)) - 1
        used = np.unpackbits(self.mask, axis=1, count=self.n_trees, bitorder="little").view(bool)
        kind = number_type(largest + 2)
        return np.where(used, self.leaves.astype(kind), kind(largest + offset))

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
        columns = np.hstack([self.leaves + self.starts[:-1], np.tile(self.starts[-1] + np.arange(n_extra), (n, 1))])
        entries = np.hstack([np.broadcast_to(self.values[:, None], self.leaves.shape), self.extra])
        used = np.ones(columns.shape, bool)
        if self.mask.shape[1]:
            used[:, : self.n_trees] = np.unpackbits(self.mask, axis=1, count=self.n_trees, bitorder="little")
        indptr = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        kind = np.int32 if max(columns.size, self.shape[1]) <= np.iinfo(np.int32).max else np.int64
        return csr_array((entries[used], columns[used].astype(kind), indptr.astype(kind)), shape=self.shape)


def _sum_in_order(terms: Floats) -> float:
    """The sum from the first to the last, as a sparse matrix has it."""
    return float(np.cumsum(terms)[-1]) if len(terms) else 0.0
