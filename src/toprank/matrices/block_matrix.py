"""A matrix in blocks of rows, which may be on several machines or on disk: read by passes over all blocks.

What is a number for each row stays beside its block, as a `BlockVector`; sums over rows and chosen rows are sent here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from toprank.arrays import Floats, Rows
from toprank.matrices.block_tasks import Counted, Piece, Pieces, added_up, fetched, on_each, shared, stored
from toprank.matrices.block_vector import BlockVector, applied, local_numbers, several
from toprank.matrices.dense_or_sparse import (
    matvec,
    rows_as_csr,
    sandwich,
    stacked,
    transpose_matvec,
    weighted_squares,
)
from toprank.matrices.own_storage import OwnStorage, ProductMatrix

N_ACTIVE = "weights that are not zero"
"""What the number of them is noted by beside weights of rows in blocks."""


@dataclass(frozen=True)
class BlockMatrix(ProductMatrix):
    """Rows of the blocks that are in use.

    `blocks` are arrays, sparse matrices or have a storage of their own, and `used` says which rows of each block are in
    use, or None for all.
    """

    blocks: Pieces
    used: Pieces
    lengths: tuple[int, ...]
    n_features: int
    nnz: int
    dtype: Any
    change: Callable[[Any], Any] | None = None
    """What is done with the entries of a block before anything else."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return sum(self.lengths), self.n_features

    def __abs__(self) -> BlockMatrix:
        return replace(self, change=abs)

    def __getitem__(self, rows: Any) -> Any:
        """The rows under a mask in pieces, in their blocks; or those of some numbers, in rising order, sent here."""
        if not isinstance(rows, BlockVector):
            return self.rows((slice(None), rows))[0]
        used, n = stored(rows.tasks(_under_mask, [self.used])), sum(rows.n_true)
        return replace(self, used=used, lengths=rows.n_true, nnz=self.nnz * n // max(1, len(self)))

    def mapped(self, feature_map: Any, room: float) -> BlockMatrix:
        """The features of all rows by a map, whose `shape` has their number.

        Those of the first blocks are kept beside them, as many as take so many bytes in all; those of the others are
        computed again for each pass.
        """
        n_features, n_blocks = int(feature_map.shape[1]), len(self.blocks)
        pieces = on_each(_features, [self.blocks, self.used, shared(feature_map, n_blocks)], self.dtype)
        sizes = np.cumsum(self.lengths) * n_features * np.dtype(self.dtype).itemsize
        n_kept = int(np.searchsorted(sizes, room, side="right"))
        pieces = [*stored(pieces[:n_kept]), *pieces[n_kept:]]
        return BlockMatrix(pieces, [None] * n_blocks, self.lengths, n_features, len(self) * n_features, self.dtype)

    def matvec(self, w: Floats) -> Any:
        """X w, in pieces."""
        pieces = on_each(_matvec, [self.blocks, self.used], self.change, w)
        return BlockVector.of(stored(pieces), self.lengths)

    def zero_scores(self) -> Any:
        """X w of w = 0, in pieces."""
        return BlockVector.of(stored(on_each(np.zeros, [self.lengths])), self.lengths)

    def stored_scores(self, coef: Any) -> BlockVector:
        """X w in the precision of the rows and of w, as a model gives it."""
        pieces = on_each(_plain_product, [self.blocks, self.used], self.change, coef)
        return BlockVector.of(stored(pieces), self.lengths, coef.dtype)

    def transpose_matvec(self, row_weights: Any) -> Floats:
        """Xᵀ r."""
        return self._sum(_transpose_matvec, row_weights)

    def transpose_matvec_of_two(self, one: BlockVector, other: BlockVector) -> tuple[Floats, Floats]:
        """Xᵀ r of two vectors, in one pass."""
        both = self._sum(_transpose_matvecs, applied(several, one, other))
        return both[0], both[1]

    def weighted_squares(self, row_weights: Any) -> Floats:
        """Σ weightᵢ xᵢ² of each column."""
        return self._sum(_weighted_squares, row_weights)

    def centred_sandwich(self, weights: Any, centre: Floats | None) -> Floats:
        """Lower triangle of Σ weightᵢ (xᵢ − centre)(xᵢ − centre)ᵀ; how many weights are not zero is noted there."""
        tasks = weights.tasks(_sandwich, [self.blocks, self.used], self.change, centre)
        found: _Sandwich = added_up(tasks)
        weights.note(N_ACTIVE, found.n_active)
        return found.matrix

    def thinned(self, weights: Any, n_rows: int) -> tuple[BlockMatrix, BlockVector]:
        """About so many of the rows that have a weight, evenly spread: those of all others are made zero."""
        counts = np.array(weights.n_true)
        columns = [(np.cumsum(counts) - counts).tolist()]
        return self, BlockVector.of(weights.tasks(_thinned, columns, max(1, counts.sum() // n_rows)), self.lengths)

    def sum_over_rows(self, function: Callable[..., Any], row_weights: Any, *common: Any) -> Any:
        """The sum of what a function makes of the rows of each block and their weights."""
        return self._sum(_of_entries, row_weights, function, *common)

    def _sum(self, function: Callable[..., Floats], row_weights: BlockVector, *common: Any) -> Floats:
        tasks = row_weights.tasks(function, [self.blocks, self.used], self.change, *common)
        return np.asarray(added_up(tasks, 2 * self.n_features), dtype=np.float64)

    def rows(self, *chosen: tuple[Any, Rows]) -> list[Any]:
        """Rows by their numbers, in rising order, among those of a role: a mask, or all by `slice(None)`; one pass."""
        tasks = [self._row_tasks(role, numbers) for role, numbers in chosen]
        parts = iter(fetched([task for some in tasks for task in some]))
        return [
            stacked([next(parts) for _ in some]) if some else np.zeros((0, self.n_features), self.dtype)
            for some in tasks
        ]

    def _row_tasks(self, role: Any, numbers: Rows) -> list[Piece]:
        lengths = self.lengths if isinstance(role, slice) else role.n_true
        places = local_numbers(numbers, np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp))
        blocks = [b for b, place in enumerate(places) if len(place)]
        columns = [[column[b] for b in blocks] for column in (self.blocks, self.used, places)]
        if isinstance(role, slice):
            return on_each(_rows, columns, self.change)
        tasks: list[Piece] = role.of_blocks(blocks).tasks(_rows_of_role, columns, self.change)
        return tasks


def entries(block: Any, used: Rows | None, change: Callable[[Any], Any] | None = None) -> Any:
    """The rows in use of a block, as an array, in CSR or in a storage of their own, of float32 or float64."""
    if isinstance(block, OwnStorage):
        X: Any = block
    else:
        X = csr_array(block) if issparse(block) else np.asarray(block)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    X = X if used is None else X[used]
    return X if change is None else change(X)


def _under_mask(mask: Any, used: Rows | None) -> Rows:
    return np.flatnonzero(mask) if used is None else used[mask]


def _features(block: Any, used: Rows | None, feature_map: Any, dtype: Any) -> Any:
    X = entries(block, used)
    return np.asarray(feature_map(X), dtype=dtype) if X.shape[0] else np.zeros((0, feature_map.shape[1]), dtype)


def _of_entries(row_weights: Floats, block: Any, used: Rows | None, change: Any, function: Any, *common: Any) -> Any:
    return function(entries(block, used, change), row_weights, *common)


def _matvec(block: Any, used: Rows | None, change: Any, w: Floats) -> Floats:
    return np.asarray(matvec(entries(block, used, change), w), dtype=np.float64)


def _plain_product(block: Any, used: Rows | None, change: Any, coef: Any) -> Any:
    return np.asarray(entries(block, used, change) @ coef)


def _transpose_matvec(row_weights: Floats, block: Any, used: Rows | None, change: Any) -> Floats:
    X, active = entries(block, used, change), np.flatnonzero(row_weights)
    if 4 * len(active) < len(row_weights):
        X, row_weights = X[active], row_weights[active]
    return np.asarray(transpose_matvec(X, row_weights), dtype=np.float64)


def _transpose_matvecs(both: tuple[Floats, Floats], block: Any, used: Rows | None, change: Any) -> Floats:
    X = entries(block, used, change)
    return np.array([_transpose_matvec(row_weights, X, None, None) for row_weights in both])


def _weighted_squares(row_weights: Floats, block: Any, used: Rows | None, change: Any) -> Floats:
    return np.asarray(weighted_squares(entries(block, used, change), row_weights), dtype=np.float64)


def _thinned(weights: Floats, first: int, step: int) -> Floats:
    weighted = weights != 0
    numbers = first + np.cumsum(weighted) - 1
    return np.where(weighted & (numbers % step == 0), weights, 0.0)


@dataclass(frozen=True)
class _Sandwich(Counted):
    matrix: Floats
    n_active: int

    def __add__(self, other: _Sandwich) -> _Sandwich:
        return _Sandwich(self.matrix + other.matrix, self.n_active + other.n_active)


def _sandwich(weights: Floats, block: Any, used: Rows | None, change: Any, centre: Floats | None) -> _Sandwich:
    return _Sandwich(sandwich(entries(block, used, change), weights, centre), int(np.count_nonzero(weights)))


def _rows(block: Any, used: Rows | None, numbers: Rows, change: Any) -> Any:
    return rows_as_csr(entries(block, used, change), numbers)


def _rows_of_role(role: Any, block: Any, used: Rows | None, numbers: Rows, change: Any) -> Any:
    return rows_as_csr(entries(block, used, change), np.flatnonzero(role)[numbers])
