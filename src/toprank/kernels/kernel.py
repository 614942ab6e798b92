r"""Kernel functions of blocks of rows.

===========  =======================================
name         :math:`k(a, b)`
===========  =======================================
linear       :math:`a \cdot b`
poly         :math:`(\gamma\, a \cdot b + c_0)^\text{degree}`
rbf          :math:`\exp(-\gamma \|a - b\|^2)`
sigmoid      :math:`\tanh(\gamma\, a \cdot b + c_0)`
precomputed  the block is given
===========  =======================================

Every entry is a function of one inner product. For dense rows the Gaussian kernel puts the norms into two more columns,
:math:`-\gamma \|a - b\|^2 = (2\gamma a,\ -\gamma\|a\|^2,\ 1) \cdot (b,\ 1,\ -\gamma\|b\|^2)`, so that a block is one
matrix product, a minimum with zero and an exponential. Rows are centred first: distances stay, norms shrink, and with
them the rounding. In single precision the error of the exponent is a few units of 6e-8 times
:math:`\gamma (\|a\|^2 + \|b\|^2)`; where that product is large, the matrix product is done in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank.solvers.matrix import in_parallel, one_blas_thread

Floats = NDArray[np.float64]
NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")
# Entries of a tile: its product and its exponential stay in the cache of a core.
_TILE_ENTRIES = 1 << 17
# Largest γ‖a‖² of centred rows for which the product is done in single precision.
_SINGLE_PRECISION = 8.0
# Up to this number of sparse rows are made dense for the product with other sparse rows.
_FEW_SPARSE_ROWS = 8


@dataclass(frozen=True)
class Operand:
    """Rows as a kernel wants them: see `Kernel.prepare`."""

    values: Any
    """Rows, dense or CSR; for the Gaussian kernel centred, and if dense with two more columns, 1 and −γ‖b‖²."""
    exponents: Floats
    """−γ‖b‖² of each row, for the Gaussian kernel, else zeros."""
    centre: NDArray[Any] | None
    dtype: Any
    """Type of the kernel's values."""

    def take(self, rows: Any) -> Operand:
        """Some of the rows."""
        return replace(self, values=self.values[rows], exponents=self.exponents[rows])

    def __len__(self) -> int:
        return len(self.exponents)


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters as numbers; `Kernel.resolve` makes one from what a user gives."""

    name: str | Callable[[Any, Any], Any]
    gamma: float
    degree: float
    coef0: float

    @staticmethod
    def resolve(
        kernel: str | Callable[[Any, Any], Any],
        X: Any,
        gamma: Any = "scale",
        degree: Any = 3,
        coef0: Any = 0.0,
    ) -> Kernel:
        """Check the parameters, and compute γ from X as scikit-learn does.

        Parameters
        ----------
        kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
            A callable gets two blocks of rows and returns the matrix of their kernel values.
        X : {ndarray, CSR} of shape (n_samples, n_features)
            Rows to learn from.
        gamma : {"scale", "auto"} or float
            "scale" is 1 / (n_features · X.var()), "auto" is 1 / n_features.
        degree, coef0 : float
            Parameters of "poly" and "sigmoid".

        Returns
        -------
        Kernel
            With numbers for all parameters.
        """
        if not (callable(kernel) or kernel in NAMES):
            raise ValueError(f"kernel must be a callable or one of {', '.join(map(repr, NAMES))}, got {kernel!r}")
        if not (gamma in ("scale", "auto") if isinstance(gamma, str) else _is_number(gamma) and gamma >= 0):
            raise ValueError(f"gamma must be 'scale', 'auto' or a finite number >= 0, got {gamma!r}")
        if not (_is_number(degree) and degree >= 0):
            raise ValueError(f"degree must be a finite number >= 0, got {degree!r}; use a value such as 3")
        if not _is_number(coef0):
            raise ValueError(f"coef0 must be a finite number, got {coef0!r}; use a value such as 0.0")
        if kernel == "poly" and degree % 1:
            raise ValueError(f"degree={degree!r} takes roots of negative numbers; use a whole number such as 3")
        if isinstance(gamma, str):
            if kernel in ("poly", "rbf", "sigmoid"):
                variance = _variance(X) if gamma == "scale" else 1.0
                gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
            else:
                gamma = 1.0  # not used
        return Kernel(kernel, float(gamma), float(degree), float(coef0))

    def block(self, A: Any, B: Any) -> NDArray[Any]:
        """Kernel values of every row of A with every row of B; if precomputed, A is that block already."""
        if self.name == "precomputed":
            return np.asarray(A)
        dtype = np.result_type(_float_type(A), _float_type(B))
        right = self.prepare(B.astype(dtype, copy=False))
        return self.between(self.prepare(A.astype(dtype, copy=False), right.centre), right)

    def diagonal(self, A: Any) -> NDArray[Any]:
        """Kernel value of every row with itself; if precomputed, the diagonal of the square block A."""
        n, dtype = A.shape[0], _float_type(A)
        if self.name == "precomputed":
            return np.array(np.asarray(A).diagonal(), dtype=dtype)
        if self.name == "rbf":
            return np.ones(n, dtype=dtype)
        if callable(self.name):
            return np.array([self._call(A[i : i + 1], A[i : i + 1], dtype)[0, 0] for i in range(n)], dtype=dtype)
        return self._finish(_squared_norms(A).astype(dtype))

    def prepare(self, X: Any, centre: NDArray[Any] | None = None) -> Operand:
        """Do once for many blocks what depends on one side only; both sides of a block need the same centre."""
        dtype = _float_type(X)
        if self.name != "rbf":
            return Operand(X, np.zeros(X.shape[0]), None, dtype)
        if issparse(X):
            return Operand(X, -self.gamma * _squared_norms(X), None, dtype)
        if centre is None:
            centre = X.mean(axis=0, dtype=np.float64).astype(dtype) if len(X) else np.zeros(X.shape[1], dtype)
        values = np.empty((len(X), X.shape[1] + 2), dtype=dtype)
        np.subtract(X, centre, out=values[:, :-2])
        exponents = -self.gamma * _squared_norms(values[:, :-2])
        values[:, -2], values[:, -1] = 1.0, exponents
        return Operand(values, exponents, centre, dtype)

    def between(
        self, left: Operand, right: Operand, out: NDArray[Any] | None = None, *, parallel: bool = True
    ) -> NDArray[Any]:
        """Kernel values of prepared rows, in tiles on all cores or on this one.

        The tiles depend on the sizes only, so the result is the same for any number of cores.
        """
        if issparse(left.values) != issparse(right.values):
            raise ValueError("a kernel block needs both sides dense or both sparse; convert one of them")
        m, n = len(left), len(right)
        block = np.empty((m, n), dtype=np.result_type(left.dtype, right.dtype)) if out is None else out
        if callable(self.name):
            block[:] = self._call(left.values, right.values, block.dtype)
            return block
        along = 0 if m >= n else 1
        width = max(32, _TILE_ENTRIES // max(min(m, n), 1))
        tiles = [slice(start, min(start + width, max(m, n))) for start in range(0, max(m, n), width)]

        def fill(tile: slice) -> NDArray[Any]:
            if along == 0:
                self._tile(left.take(tile), right, block[tile])
            else:
                self._tile(left, right.take(tile), block[:, tile])
            return block

        if min(m, n) == 0:
            return block
        if parallel:
            on_all_cores(fill, tiles)
        else:
            for tile in tiles:
                fill(tile)
        return block

    def _tile(self, left: Operand, right: Operand, out: NDArray[Any]) -> None:
        if self.name != "rbf":
            _products(left.values, right.values, out)
            self._finish(out)
            return
        needs_double = out.dtype == np.float32 and self._is_far(left) and self._is_far(right)
        exponent = np.empty(out.shape) if needs_double else out
        if issparse(left.values):
            wide = np.float64 if needs_double else out.dtype
            _products(left.values.astype(wide, copy=False), right.values.astype(wide, copy=False), exponent)
            exponent *= 2 * self.gamma
            exponent += left.exponents[:, None].astype(exponent.dtype)
            exponent += right.exponents.astype(exponent.dtype)
        else:
            a, b = left.values, right.values
            if needs_double:
                a, b = a.astype(np.float64), b.astype(np.float64)
                b[:, -1] = right.exponents
            a = a * a.dtype.type(2 * self.gamma)
            a[:, -2], a[:, -1] = left.exponents, 1.0
            np.matmul(a, b.T, out=exponent)
        np.minimum(exponent, 0.0, out=exponent)
        np.exp(exponent, out=out, casting="same_kind")

    def _is_far(self, rows: Operand) -> bool:
        """Whether some row is so far from the centre that single precision would lose digits."""
        return bool(rows.exponents.min() < -_SINGLE_PRECISION)

    def _finish(self, products: NDArray[Any]) -> NDArray[Any]:
        """From inner products to kernel values, in place."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.name in ("poly", "sigmoid"):
                products *= self.gamma
                products += self.coef0
            if self.name == "sigmoid":
                np.tanh(products, out=products)
            if self.name == "poly":
                _raise_to(products, self.degree)
        if self.name == "poly" and not np.isfinite(products).all():
            raise ValueError(self.too_large(np.inf))
        return products

    def too_large(self, largest: float) -> str:
        """The message of an error about kernel values that are too large to compute with."""
        if self.name == "poly":
            remedy = f"scale the features, or lower gamma={self.gamma:g} or degree={self.degree:g}"
        else:
            remedy = "scale the features" if self.name == "linear" else "divide the kernel by a constant"
        return (
            f"kernel={self.name!r} has values of up to {largest:.0e} on these rows, too large to compute with; {remedy}"
        )

    def _call(self, A: Any, B: Any, dtype: Any) -> NDArray[Any]:
        assert callable(self.name)
        values = np.asarray(self.name(A, B))
        expected = (A.shape[0], B.shape[0])
        if values.shape != expected:
            raise ValueError(
                f"the kernel function returned an array of shape {values.shape} for {expected[0]} and {expected[1]} "
                f"rows; it must return one value for each pair, shape {expected}"
            )
        if np.issubdtype(values.dtype, np.number):
            with np.errstate(over="ignore"):
                values = values.astype(dtype, copy=False)
            if np.isfinite(values).all():
                return values
        raise ValueError(
            f"the kernel function returned values that are not finite numbers; check it on these rows of {dtype}"
        )


def on_all_cores(function: Callable[[slice], NDArray[Any]], tiles: list[slice]) -> list[NDArray[Any]]:
    """Call a function on tiles, several at a time, each with one thread of BLAS."""
    with one_blas_thread():
        return in_parallel(function, tiles)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and bool(np.isfinite(float(value)))


def _float_type(X: Any) -> Any:
    return np.dtype(np.float32) if X.dtype == np.float32 else np.dtype(np.float64)


def _variance(X: Any) -> float:
    """Variance of all entries, without a second copy of X."""
    size = X.shape[0] * X.shape[1]
    if issparse(X):
        X = _without_duplicates(X)
        mean = float(X.data.sum(dtype=np.float64)) / size
        zeros = size - X.nnz
        return float((np.square(X.data - mean, dtype=np.float64).sum() + zeros * mean**2) / size)
    mean = float(X.mean(dtype=np.float64))
    blocks = (X[i : i + 1024] for i in range(0, len(X), 1024))
    return float(sum(np.square(rows - mean, dtype=np.float64).sum() for rows in blocks) / size)


def _squared_norms(X: Any) -> Floats:
    """Squared norms of the rows in float64, without a second copy of X."""
    if issparse(X):
        squares = _without_duplicates(X).astype(np.float64).power(2)
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    blocks = (X[i : i + 1024].astype(np.float64) for i in range(0, len(X), 1024))
    return np.concatenate([np.einsum("ij,ij->i", rows, rows) for rows in blocks] or [np.zeros(0)])


def _without_duplicates(X: Any) -> Any:
    """A CSR matrix in which no entry is stored in two parts."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _products(A: Any, B: Any, out: NDArray[Any]) -> None:
    """Inner products of all rows of A with all rows of B."""
    if not issparse(A):
        np.matmul(A, B.T, out=out)
    elif A.shape[0] <= _FEW_SPARSE_ROWS:
        out[:] = (B @ A.toarray().T).T
    elif B.shape[0] <= _FEW_SPARSE_ROWS:
        out[:] = A @ B.toarray().T
    else:
        out[:] = (A @ B.T).toarray()


def _raise_to(values: NDArray[Any], degree: float) -> None:
    """Power in place; whole powers by multiplication, which is many times faster than the general function."""
    if degree % 1 or not 1 <= degree <= 16:
        np.power(values, degree, out=values)
        return
    base = values.copy()
    for bit in bin(int(degree))[3:]:
        np.multiply(values, values, out=values)
        if bit == "1":
            np.multiply(values, base, out=values)
