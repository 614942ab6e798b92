"""The signed rows of a working set, and the linear algebra of the interior-point method on them.

B holds the positives with sign +1 and the threshold rows with sign −1. The extended variable is (w, t, ν): the
extended row of a positive is (x, −1, 0), that of a threshold row is (−x, 0, 1). Systems are solved where they are
smallest: in feature space by a (d + 2) Cholesky factor, in row space by the Gram matrix, or without any matrix by
conjugate gradients when rows are sparse and many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, get_index_dtype, issparse

from toprank.arrays import Floats, Mask, Rows
from toprank.matrices.dense_or_sparse import Cholesky, products_of_rows, rows_as_csr, sandwich, stacked

# Feature space is used up to this number of features.
MOST_FEATURES = 3000
# Sparse rows in row space: up to this number of rows their Gram matrix is formed at once.
FEW_ROWS = 500


class WorkingRows:
    """Rows of a working set: `n_positive` positives first, then threshold rows with their sign turned."""

    def __init__(self, B: Any, extended: Any, n_positive: int) -> None:
        sparse = issparse(B)
        self.B, self.extended, self.n_positive = B, extended, n_positive
        self.extended_T = extended.T.tocsr() if sparse else extended.T
        self.n, self.d = B.shape
        self.in_row_space = self.n < 0.8 * self.d or self.d > MOST_FEATURES
        self.gram: Floats | None = None
        self.cg_iterations = 0
        self._visited = 0
        if self.in_row_space and (self.n <= FEW_ROWS or not sparse):
            self._form_gram()

    @classmethod
    def of(cls, X: Any, positives: Rows, threshold_rows: Rows) -> WorkingRows:
        """Copy rows of the data, in float64."""
        return cls.of_parts([rows_as_csr(X, np.concatenate([positives, threshold_rows]))], len(positives))

    @classmethod
    def of_parts(cls, parts: list[Any], m: int) -> WorkingRows:
        """Rows in several matrices, of which the first m are the positives; the list is emptied.

        A dense part goes as soon as it is copied: of many rows there is one copy in memory, not two.
        """
        if any(map(issparse, parts)):
            signed = stacked(parts).astype(np.float64).tocsr()
            signed.data[signed.indptr[m] :] *= -1.0
            return cls(signed, _extended(signed, m), m)
        extended, start = np.zeros((sum(map(len, parts)), parts[0].shape[1] + 2)), 0
        while parts:
            part = parts.pop(0)
            extended[start : start + len(part), :-2] = part
            start += len(part)
        np.negative(extended[m:, :-2], out=extended[m:, :-2])
        extended[:m, -2], extended[m:, -1] = -1.0, 1.0
        return cls(extended[:, :-2], extended, m)

    def subset(self, kept: Mask) -> WorkingRows:
        """The rows under a mask."""
        rows = np.flatnonzero(kept)
        extended = self.extended[rows]
        B = self.B[rows] if issparse(extended) else extended[:, :-2]
        some = WorkingRows(B, extended, int(kept[: self.n_positive].sum()))
        some._visited += self._visited
        return some

    def apply(self, extended: Floats) -> Floats:
        """Product of the extended rows with (w, t, ν)."""
        self._visited += self.n
        return np.asarray(self.extended @ extended)

    def apply_transposed(self, y: Floats) -> Floats:
        """Product of the transposed extended rows with y."""
        self._visited += self.n
        return np.asarray(self.extended_T @ y)

    def products(self, w: Floats) -> Floats:
        """Product of the signed rows with w, or with each column of w."""
        self._visited += self.n
        return np.asarray(self.B @ w)

    def combine(self, y: Floats) -> Floats:
        """The sum of the signed rows with weights y, or one sum for each column of y."""
        self._visited += self.n
        return np.asarray((self.extended_T @ y)[: self.d])

    def feature_system(self, weights: Floats, alpha: float) -> Cholesky:
        """Factor of α I (on w) + Σ weight · (extended row)(extended row)ᵀ."""
        self._visited += self.n
        H = sandwich(self.extended, weights)
        H.reshape(-1)[: self.d * len(H) : len(H) + 1] += alpha
        return Cholesky(H)

    def row_system(self, weights: Floats, alpha: float, tolerance: float) -> Callable[[Floats], Floats]:
        """A function that solves (diag(1 / weights) + B Bᵀ / α) Z = R for several columns."""
        if self.gram is None and self._gram_pays():
            self._form_gram()
        if self.gram is None:
            return self._row_system_by_cg(weights, alpha, tolerance)
        root = np.sqrt(weights)
        system = self.gram * (root / alpha)[:, None]
        system *= root
        system[np.arange(self.n), np.arange(self.n)] += 1.0
        factor = Cholesky(system)
        return lambda R: root[:, None] * factor.solve(root[:, None] * R)

    def _row_system_by_cg(self, weights: Floats, alpha: float, tolerance: float) -> Callable[[Floats], Floats]:
        inverse = 1.0 / np.maximum(weights, 1e-200)
        squares = np.asarray(self.B.multiply(self.B).sum(axis=1)).ravel()
        scale = 1.0 / np.sqrt(inverse + squares / alpha)  # the scaled system has a unit diagonal
        inverse *= scale**2

        def product(V: Floats) -> Floats:
            return np.asarray(
                inverse[:, None] * V + scale[:, None] * self.products(self.combine((scale / alpha)[:, None] * V))
            )

        def solve(R: Floats) -> Floats:
            Z, iterations = conjugate_gradients(product, scale[:, None] * R, tolerance)
            self.cg_iterations += iterations
            return np.asarray(scale[:, None] * Z)

        return solve

    @property
    def solves_cheaply(self) -> bool:
        """Whether another right-hand side costs little once there is a factor: not with conjugate gradients."""
        return not self.in_row_space or self.gram is not None

    def visited(self) -> int:
        """How often a row was read since the last question."""
        count, self._visited = self._visited, 0
        return count

    def _gram_pays(self) -> bool:
        """Whether a factorisation is cheaper than the conjugate gradients since the last question (rough rates)."""
        spent = self.cg_iterations * (4e-9 * self.B.nnz + 6e-8 * self.n + 1.5e-8 * self.d)
        self.cg_iterations = 0
        return bool(self.n < 8000 and self.n**3 / 7.5e10 + 1e-8 * self.n**2 < spent)

    def _form_gram(self) -> None:
        self._visited += self.n
        self.gram = products_of_rows(self.B)


def _extended(signed: Any, n_positive: int) -> Any:
    """Sparse rows with two more columns: (x, −1, 0) for a positive, (−x, 0, 1) for a threshold row."""
    n, d = signed.shape
    is_positive = np.arange(n) < n_positive
    ends = signed.indptr[1:]
    data = np.insert(signed.data, ends, np.where(is_positive, -1.0, 1.0))
    indices = np.insert(signed.indices, ends, np.where(is_positive, d, d + 1))
    one_each = np.arange(n + 1, dtype=get_index_dtype((signed.indptr,), maxval=signed.nnz + n))
    return csr_array((data, indices, signed.indptr + one_each), shape=(n, d + 2))


def conjugate_gradients(
    product: Callable[[Floats], Floats], R: Floats, tolerance: float, max_iter: int = 300
) -> tuple[Floats, int]:
    """Solve a positive definite system for several columns at once; returns the solution and the iterations."""
    tiny = np.finfo(float).tiny
    Z, residual = np.zeros_like(R), R.copy()
    direction, squared = residual.copy(), np.einsum("ij,ij->j", R, R)
    stop = tolerance**2 * squared
    iteration = 0
    while iteration < max_iter:
        iteration += 1
        image = product(direction)
        step = squared / np.maximum(np.einsum("ij,ij->j", direction, image), tiny)
        Z += direction * step
        residual -= image * step
        following = np.einsum("ij,ij->j", residual, residual)
        if np.all(following <= stop):
            break
        direction *= following / np.maximum(squared, tiny)
        direction += residual
        squared = following
    return Z, iteration
