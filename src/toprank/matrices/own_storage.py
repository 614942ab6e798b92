"""Matrices that are neither arrays nor CSR: the operations by which solvers read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np

from toprank.arrays import Floats, Rows


class ProductMatrix(ABC):
    """A matrix that is read by its products; sums are in double precision always."""

    __array_ufunc__ = None
    dtype = np.dtype(np.float64)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""

    @abstractmethod
    def __abs__(self) -> Self:
        """The absolute values."""

    @abstractmethod
    def matvec(self, w: Floats) -> Floats:
        """X w."""

    @abstractmethod
    def transpose_matvec(self, row_weights: Floats) -> Floats:
        """Xᵀ r."""

    @abstractmethod
    def weighted_squares(self, row_weights: Floats) -> Floats:
        """Σ weightᵢ xᵢ² of each column."""

    @abstractmethod
    def centred_sandwich(self, weights: Floats, centre: Floats | None) -> Floats:
        """Lower triangle of Σ weightᵢ (xᵢ − centre)(xᵢ − centre)ᵀ."""

    def zero_scores(self) -> Any:
        """X w of w = 0, which takes no pass."""
        return np.zeros(len(self))

    def thinned(self, weights: Any, n_rows: int) -> tuple[Self, Any]:
        """About so many of the rows that have a weight, evenly spread, with their weights; here all of them."""
        return self, weights

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, w: Floats) -> Floats:
        return self.matvec(w)

    @property
    def T(self) -> Transposed:  # noqa: N802  (as arrays have it)
        """The transposed matrix, for products with a vector only."""
        return Transposed(self)

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """Itself: sums are in double precision always."""
        return self


class OwnStorage(ProductMatrix):
    """A matrix of float64 with a storage of its own: the functions of `dense_or_sparse` and the solvers take it as X.

    What only some solvers need, such as the rows of a small working set, they read from `tocsr`.
    """

    @property
    @abstractmethod
    def nnz(self) -> int:
        """Number of entries that a CSR matrix would store."""

    @abstractmethod
    def __getitem__(self, rows: Any) -> Self:
        """Some of the rows: by a slice, by their numbers, or under a mask."""

    @abstractmethod
    def sandwich(self, rows: Rows, weights: Floats) -> Floats:
        """Lower triangle of Σ weightᵢ xᵢ xᵢᵀ over some rows."""

    @abstractmethod
    def squared_norms(self) -> Floats:
        """Squared norm of each row."""

    @abstractmethod
    def products_between(self, rows_a: Rows, rows_b: Rows) -> Floats:
        """Inner products of some rows with others."""

    @abstractmethod
    def scaled_columns(self, scale: Floats) -> Any:
        """X diag(scale), in this storage or as a CSR matrix."""

    @abstractmethod
    def tocsr(self) -> Any:
        """The same matrix in CSR."""

    def centred_sandwich(self, weights: Floats, centre: Floats | None) -> Floats:
        """From the product about zero: rows minus a centre would have no storage of this kind."""
        return about_centre(self.sandwich(np.flatnonzero(weights), weights), self, weights, centre)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} is a matrix that only the linear estimators of toprank read; use its tocsr() for "
            "others, or LeafFeatures(output='csr')"
        )


def about_centre(H: Floats, X: Any, weights: Floats, centre: Floats | None) -> Floats:
    """A product Σ weightᵢ xᵢ xᵢᵀ, which is changed, as that of the rows minus a centre."""
    if centre is not None and weights.any():
        mean = np.asarray(X.T @ weights, dtype=np.float64)
        H -= np.outer(mean, centre) + np.outer(centre, mean) - weights.sum() * np.outer(centre, centre)
    return H


@dataclass(frozen=True)
class Transposed:
    """The transpose of a matrix with a storage of its own."""

    original: ProductMatrix

    def __matmul__(self, row_weights: Floats) -> Floats:
        return self.original.transpose_matvec(row_weights)
