"""Products of the rows of a data matrix with each other: the linear kernel, never formed as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from toprank.arrays import Floats, Rows
from toprank.matrices.dense_or_sparse import matvec, transpose_matvec
from toprank.matrices.own_storage import OwnStorage
from toprank.matrices.threads import in_parallel

# Columns of a sparse matrix that are multiplied as dense ones, and the entries that such a column has at least.
_DENSE_COLUMNS = 1000
_DENSE_SHARE = 0.1
# Rows whose products are formed at once.
_FEW_ROWS = 1000
# Rows of a block of sparse rows that is multiplied on one core.
_BLOCK_ROWS = 512


class RowProducts:
    """X Xᵀ on demand.

    In sparse text a few hundred columns hold most of the entries, and the cost of a sparse product grows with the
    square of the entries of a column. Those columns are multiplied by BLAS, the others by a compiled loop.
    """

    def __init__(self, X: Any) -> None:
        self.X, self.n, self.dtype = X, int(X.shape[0]), np.dtype(np.float64)
        self.remembered: dict[str, Any] = {}
        if not issparse(X):
            own = isinstance(X, OwnStorage)
            self.diagonal: Floats = X.squared_norms() if own else np.einsum("ij,ij->i", X, X, dtype=np.float64)
            return
        self.diagonal = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        entries = np.bincount(X.indices, minlength=X.shape[1])
        most = np.argsort(-entries, kind="stable")[:_DENSE_COLUMNS]
        frequent = most[entries[most] > _DENSE_SHARE * self.n]
        rare = np.ones(X.shape[1])
        rare[frequent] = 0.0
        self.frequent = X[:, np.sort(frequent)].tocsr()
        self.rare = X.copy()
        self.rare.data = self.rare.data * rare[X.indices]
        self.rare.eliminate_zeros()

    @property
    def full(self) -> Floats | None:
        """All products, for so few rows that they cost nothing."""
        return self.between(np.arange(self.n), np.arange(self.n)) if self.n <= _FEW_ROWS else None

    def between(self, rows_a: Rows, rows_b: Rows, out: Floats | None = None) -> Floats:
        """Products of some rows with others, in float64, in an array that may be given."""
        total = np.empty((len(rows_a), len(rows_b))) if out is None else out
        if isinstance(self.X, OwnStorage):
            total[:] = self.X.products_between(rows_a, rows_b)
            return total
        if not issparse(self.X):
            return np.matmul(self.X[rows_a].astype(np.float64), self.X[rows_b].astype(np.float64).T, out=total)
        from toprank.matrices._csr_products import add_csr_products  # imports numba

        rare, right = self.rare, self.frequent[rows_b].astype(np.float64).toarray().T
        by_column = rare[rows_b].T.tocsr()
        columns = by_column.indptr, by_column.indices, by_column.data

        def fill(block: slice) -> Floats:
            chosen, part = rows_a[block], total[block]
            np.matmul(self.frequent[chosen].astype(np.float64).toarray(), right, out=part)
            add_csr_products(rare.indptr, rare.indices, rare.data, chosen, columns, part)
            return part

        in_parallel(fill, [slice(i, i + _BLOCK_ROWS) for i in range(0, max(len(rows_a), 1), _BLOCK_ROWS)])
        return total

    def product(self, c: Floats) -> Floats:
        """Scores of all rows for w = Xᵀc: two passes over the data."""
        return matvec(self.X, transpose_matvec(self.X, c))
