"""The few operations that the solvers need of a matrix, dense, CSR or with a storage of its own.

Dense products are BLAS calls on blocks of rows, several at a time; the sparse sandwich product is a compiled loop over
the rows that take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.sparse import csr_array, issparse, vstack

from toprank.arrays import Floats, Rows
from toprank.matrices.own_storage import OwnStorage, ProductMatrix, about_centre
from toprank.matrices.threads import in_parallel

# Entries of a block of rows: a few megabytes.
_BLOCK_ENTRIES = 2_000_000
# Rows of a block of which some may have no weight.
_BLOCK_ROWS = 256
# Entries that are converted to float64 at a time.
_CONVERTED_ENTRIES = 1 << 16
# A sparse matrix of at most so many entries, zeros included, is made dense for its sandwich product.
_FEW_ENTRIES = 100_000
# Products of two entries of a row that make a part of a sparse sandwich product worth a thread.
_PAIRS_OF_A_PART = 4e6

# Steps of the power method, of two passes each.
_POWER_STEPS = 2


def sandwich(X: Any, weights: Floats, centre: Floats | None = None) -> Floats:
    """Lower triangle of Σ weightᵢ (xᵢ − centre)(xᵢ − centre)ᵀ in float64; rows of weight zero cost nothing.

    The dense product subtracts the centre first, which loses no digits in columns that hardly vary.
    """
    if isinstance(X, ProductMatrix):
        return X.centred_sandwich(weights, centre)
    active = np.flatnonzero(weights)
    n_features = X.shape[1]
    if issparse(X) and _cheaper_dense(X):
        X = X.toarray()
    if not isinstance(X, np.ndarray):
        return about_centre(_csr_sandwich(X, active, weights), X, weights, centre)
    everything = len(active) == len(weights)

    def product(block: slice) -> Floats:
        rows = block if everything else active[block]
        root = np.sqrt(weights[rows])[:, None]
        Z = X[rows] * root if centre is None else X[rows] - centre
        if centre is not None:
            Z *= root  # in place: a copy of so many rows costs as much as it
        return np.asarray(Z.T @ Z, dtype=np.float64)

    return _sum_over_blocks(product, len(active), n_features, np.zeros((n_features, n_features)))


def _cheaper_dense(X: Any) -> bool:
    """Whether BLAS on a dense copy is worth it: few zeros, or so few rows that loading compiled code would be felt."""
    entries = X.shape[0] * X.shape[1]
    return bool(entries <= _FEW_ENTRIES or (entries <= _BLOCK_ENTRIES and X.nnz > 0.2 * entries))


def _csr_sandwich(X: Any, active: Rows, weights: Floats) -> Floats:
    """The sum over the active rows in parts, whose number does not depend on the cores."""
    from toprank.matrices._csr_sandwich import csr_sandwich  # imports numba, which dense data do not need

    n_features = X.shape[1]
    pairs = 0.5 * len(active) * (X.nnz / X.shape[0]) ** 2
    n_parts = 1 + int(min(7, pairs / max(_PAIRS_OF_A_PART, 8 * n_features**2)))
    step = max(1, -(-len(active) // n_parts))

    def product(rows: slice) -> Floats:
        H = np.zeros((n_features, n_features))
        csr_sandwich(X.indptr, X.indices, X.data, active[rows], weights, H)
        return H

    first, *others = in_parallel(product, [slice(start, start + step) for start in range(0, len(active) or 1, step)])
    for part in others:
        first += part
    return first


def matvec(X: Any, w: Floats) -> Floats:
    """X w, with sums in float64; a large dense X is multiplied in blocks of rows, on all cores."""
    if isinstance(X, ProductMatrix):
        return X.matvec(w)
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ w)
    blocks = _blocks(len(X), X.shape[1])
    return np.concatenate(in_parallel(lambda block: np.concatenate([Z @ w for _, Z in _in_double(X, block)]), blocks))


def transpose_matvec(X: Any, row_weights: Floats) -> Floats:
    """Xᵀ r, likewise."""
    if not isinstance(X, np.ndarray):
        return np.asarray(X.T @ row_weights)

    def product(block: slice) -> Floats:
        return sum((Z.T @ row_weights[rows] for rows, Z in _in_double(X, block)), np.zeros(X.shape[1]))

    return _sum_over_blocks(product, len(X), X.shape[1], np.zeros(X.shape[1]))


def weighted_sum(X: NDArray[Any], row_weights: Floats) -> Floats:
    """Xᵀ r for a dense X, where many weights may be zero: of blocks with few others only their rows are read."""
    total = np.zeros(X.shape[1])
    for start in range(0, len(X), _BLOCK_ROWS):
        weights = row_weights[start : start + _BLOCK_ROWS]
        some = np.flatnonzero(weights)
        if 3 * len(some) > len(weights):
            total += weights @ X[start : start + len(weights)]
        elif len(some):
            total += weights[some] @ X[start + some]
    return total


def weighted_squares(X: Any, row_weights: Floats) -> Floats:
    """Σ weightᵢ xᵢ² of each column."""
    if isinstance(X, ProductMatrix):
        return X.weighted_squares(row_weights)
    squares = X.multiply(X) if issparse(X) else np.square(X)
    return np.asarray(squares.T @ row_weights)


def zero_scores(X: Any) -> Any:
    """X w of w = 0, which takes no pass."""
    return X.zero_scores() if isinstance(X, ProductMatrix) else np.zeros(X.shape[0])


def thinned(X: Any, weights: Any, n_rows: int) -> tuple[Any, Any]:
    """About so many of the rows that have a weight, evenly spread, with their weights."""
    if isinstance(X, ProductMatrix):
        return X.thinned(weights, n_rows)
    rows = np.flatnonzero(weights)
    rows = rows[:: max(1, len(rows) // n_rows)]
    return (X if len(rows) == X.shape[0] else X[rows]), weights[rows]


def _in_double(X: NDArray[Any], block: slice) -> Iterator[tuple[slice, Floats]]:
    """A block of rows as float64: as it is, or a few rows at a time that stay in the cache of a core.

    Sums of products in float32 would be no bounds of anything where the rows are far from the origin.
    """
    if X.dtype == np.float64:
        yield block, X[block]
        return
    step = max(1, _CONVERTED_ENTRIES // max(X.shape[1], 1))
    for start in range(block.start, max(block.stop, block.start + 1), step):
        rows = slice(start, min(start + step, block.stop))
        yield rows, X[rows].astype(np.float64)


def products_of_rows(X: Any) -> NDArray[Any]:
    """All products of two rows, X Xᵀ, as an array."""
    if isinstance(X, OwnStorage):
        return X.products_between(np.arange(len(X)), np.arange(len(X)))
    products = X @ X.T
    return np.asarray(products.toarray() if issparse(products) else products)


def largest_eigenvalue(X: Any) -> float:
    """A lower bound of the largest eigenvalue of XᵀX, mostly within a factor of two: four passes."""
    v = np.random.default_rng(0).standard_normal(X.shape[1])
    for _ in range(_POWER_STEPS):
        scores = matvec(X, v)
        v = transpose_matvec(X, scores / max(float(np.linalg.norm(scores)), np.finfo(float).tiny))
    return float(v @ v)


def scaled_columns(X: Any, scale: Floats) -> Any:
    """X diag(scale) in float64, for an X that is not dense."""
    return X.scaled_columns(scale) if isinstance(X, OwnStorage) else X.astype(np.float64).multiply(scale).tocsr()


def column_squares(X: Any) -> Floats:
    """Σ xᵢ² of each column of an X that is not dense, in float64."""
    if isinstance(X, OwnStorage):
        return X.weighted_squares(np.ones(len(X)))
    return np.asarray(np.bincount(X.indices, weights=X.data.astype(np.float64) ** 2, minlength=1), dtype=np.float64)


def rows_as_csr(X: Any, rows: Rows) -> Any:
    """Some rows: of a dense X an array, of others a CSR matrix."""
    taken = X[rows]
    return taken.tocsr() if isinstance(taken, OwnStorage) else taken


def stacked(parts: Sequence[Any]) -> Any:
    """Rows of several matrices, dense or in CSR, as one; those without rows may be dense among sparse ones."""
    sparse = [part for part in parts if issparse(part)]
    if not sparse:
        return np.concatenate(parts)
    return sparse[0] if len(sparse) == 1 else csr_array(vstack(sparse, format="csr"))


def without_offset(X: Any) -> Any:
    """Dense X minus its column means, where a column hardly varies beside its mean, else X itself.

    A threshold shifts with the scores, so the direction is the same; differences of scores keep their digits.
    """
    if not isinstance(X, np.ndarray):
        return X
    sample = X[:: max(1, len(X) // 1000)]
    mean, spread = sample.mean(axis=0, dtype=np.float64), sample.std(axis=0, dtype=np.float64)
    if not np.any((np.abs(mean) > 1e3 * spread) & (spread > 0)):
        return X
    return X - mean.astype(X.dtype)


def _blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Blocks of rows whose size depends on the number of columns only: sums are the same for any number of cores."""
    step = max(256, _BLOCK_ENTRIES // max(n_columns, 1))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)] or [slice(0, 0)]


def _sum_over_blocks(product: Callable[[slice], Floats], n_rows: int, n_columns: int, total: Floats) -> Floats:
    """Add up the products of the blocks, always in the same order."""
    blocks = _blocks(n_rows, n_columns)
    for start in range(0, len(blocks), 8):  # a few at a time, so that few products are in memory
        for part in in_parallel(product, blocks[start : start + 8]):
            total += part
    return total


# Routines of both precisions, and the first guard against singularity.
_IN_DOUBLE = lapack.dpotrf, lapack.dpotrs, lapack.dtrtrs, blas.dtrsm, 1e-14
_IN_SINGLE = lapack.spotrf, lapack.spotrs, lapack.strtrs, blas.strsm, 1e-6


class Cholesky:
    """Factor of a positive semidefinite matrix, of which the lower triangle is read, guarded against singularity.

    The matrix is scaled to a unit diagonal first. If it is not numerically positive definite, a growing multiple of the
    identity is added: a solver with a line search then takes a safe, slightly shorter step. With `in_place` both
    triangles are given, and overwritten, which saves two copies; then a matrix of single precision has such a factor.
    """

    def __init__(self, H: Floats, *, in_place: bool = False) -> None:
        routines = _IN_SINGLE if in_place and H.dtype == np.float32 else _IN_DOUBLE
        self._potrf, self._potrs, self._trtrs, self._trsm, self._least_guard = routines
        diagonal = H.diagonal()
        self.scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        if in_place:
            self._factorise_in_place(H)
            return
        scaled = H * self.scale * self.scale[:, None]
        guard = 0.0
        while True:
            matrix = scaled if guard == 0 else scaled + guard * np.eye(len(H))
            self.factor, failed = self._potrf(matrix, lower=1)
            if not failed:
                break
            guard = max(self._least_guard, 100 * guard)

    def _factorise_in_place(self, H: Floats) -> None:
        """Of a matrix by rows the lower triangle survives: LAPACK reads it by columns, and writes to the upper one."""
        H *= self.scale
        H *= self.scale[:, None]
        guard = 0.0
        while True:
            self.factor, failed = self._potrf(H.T, lower=1, clean=0, overwrite_a=1)
            if not failed:
                break
            guard = max(self._least_guard, 100 * guard)
            below = np.tril(H, -1)
            np.add(below, below.T, out=H)
            np.fill_diagonal(H, 1.0 + guard)

    def solve(self, right: Floats) -> Floats:
        """Solve for one right-hand side, or for several as columns."""
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        solution, _ = self._potrs(self.factor, scale * right, lower=1)
        return np.asarray(scale * solution)

    def half_solve(self, right: Floats) -> Floats:
        """L⁻¹ times some columns, where the matrix is L Lᵀ: half of the work of `solve`."""
        half, _ = self._trtrs(self.factor, self.scale[:, None] * right, lower=1)
        return np.asarray(half)

    def half_solve_rows(self, right: Floats, out: Floats) -> None:
        """The same of columns that are given as rows, and as rows of a contiguous array: without a copy."""
        np.multiply(right, self.scale, out=out)
        self._trsm(1.0, self.factor, out.T, lower=1, overwrite_b=1)

    def back_solve(self, half: Floats) -> Floats:
        """The other half of the work: L⁻ᵀ times a vector."""
        solution, _ = self._trtrs(self.factor, half, lower=1, trans=1)
        return np.asarray(self.scale * solution)
