"""Rows as a kernel wants them, and what every kernel takes from them: norms and inner products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank.arrays import Floats
from toprank.matrices.own_storage import OwnStorage

# Up to this number of sparse rows are made dense for the product with other sparse rows.
_FEW_SPARSE_ROWS = 8
# Rows whose norms are computed at a time.
_BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Operand:
    """Rows prepared for many blocks: see `Kernel.prepare`."""

    values: Any
    """Rows, dense or CSR; for the Gaussian kernel centred, and if dense with two more columns, 1 and −γ‖b‖²."""
    exponents: Floats
    """−γ‖b‖² of each row, for the Gaussian kernel, else zeros."""
    centre: NDArray[Any] | None
    dtype: Any
    """Type of the kernel's values."""
    rows: Any = None
    """The rows as they were given, where some are so far from the centre that differences of rows are needed."""

    def take(self, rows: Any) -> Operand:
        """Some of the rows."""
        given = None if self.rows is None else self.rows[rows]
        return replace(self, values=self.values[rows], exponents=self.exponents[rows], rows=given)

    def __len__(self) -> int:
        return len(self.exponents)


def float_type(X: Any) -> Any:
    """float32 for float32, else float64."""
    return np.dtype(np.float32) if X.dtype == np.float32 else np.dtype(np.float64)


def squared_norms(X: Any, centre: NDArray[Any] | None = None) -> Floats:
    """Squared norms of the rows, or of their differences from a centre, in float64 without a second copy of X."""
    if isinstance(X, OwnStorage):
        return X.squared_norms()
    if issparse(X):
        squares = without_duplicates(X).astype(np.float64).power(2)
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    blocks = (X[i : i + _BLOCK_ROWS].astype(np.float64, order="C") for i in range(0, len(X), _BLOCK_ROWS))
    shifted = blocks if centre is None else (rows - centre for rows in blocks)
    return np.concatenate([np.einsum("ij,ij->i", rows, rows) for rows in shifted] or [np.zeros(0)])


def without_duplicates(X: Any) -> Any:
    """A CSR matrix in which no entry is stored in two parts."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def products(A: Any, B: Any, out: NDArray[Any]) -> None:
    """Inner products of all rows of A with all rows of B."""
    if not issparse(A):
        np.matmul(A, B.T, out=out)
    elif A.shape[0] <= _FEW_SPARSE_ROWS:
        out[:] = (B @ A.toarray().T).T
    elif B.shape[0] <= _FEW_SPARSE_ROWS:
        out[:] = A @ B.toarray().T
    else:
        out[:] = (A @ B.T).toarray()
