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

Every entry is a function of one inner product, or of a distance: `toprank.matrices.gaussian`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank.arrays import Floats
from toprank.exceptions import InputError
from toprank.matrices import gaussian
from toprank.matrices.operand import Operand, float_type, products, squared_norms, without_duplicates
from toprank.matrices.threads import on_all_cores
from toprank.saved_state import Kind, Number, Schema

NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")
# Entries of a tile: its product and its exponential stay in the cache of a core.
_TILE_ENTRIES = 1 << 17
# A deviation that is a smaller share of the mean is rounding.
_CONSTANT = 1e-15


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters as numbers; `Kernel.resolve` makes one from what a user gives."""

    saved_state: ClassVar[Schema] = Schema(
        {"name": Kind((str,), NAMES), "gamma": Number(0), "degree": Number(0), "coef0": Number()}, fitted=None
    )

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
        weights: Floats | None = None,
    ) -> Kernel:
        """Check the parameters, and compute γ from X as scikit-learn does, but with the weights of the rows.

        "scale" is 1 / (n_features · X.var()), where a weight of 2 equals a repeated row, "auto" is 1 / n_features.
        """
        if not (callable(kernel) or kernel in NAMES):
            names = ", ".join(map(repr, NAMES))
            raise InputError.of("kernel", kernel, "must be a callable or one of {names}", names=names)
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
                variance = _variance(X, weights) if gamma == "scale" else 1.0
                gamma = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
            else:
                gamma = 1.0  # not used
        return Kernel(kernel, float(gamma), float(degree), float(coef0))

    def block(self, A: Any, B: Any) -> NDArray[Any]:
        """Kernel values of every row of A with every row of B; if precomputed, A is that block already."""
        if self.name == "precomputed":
            return np.asarray(A)
        if issparse(A) != issparse(B):
            raise ValueError("a kernel block needs both sides dense or both sparse; convert one of them")
        dtype = np.result_type(float_type(A), float_type(B))
        right = self.prepare(B.astype(dtype, copy=False))
        return self.between(self.prepare(A.astype(dtype, copy=False), right), right)

    def diagonal(self, A: Any) -> NDArray[Any]:
        """Kernel value of every row with itself; if precomputed, the diagonal of the square block A."""
        n, dtype = A.shape[0], float_type(A)
        if self.name == "precomputed":
            return np.array(np.asarray(A).diagonal(), dtype=dtype)
        if self.name == "rbf":
            return np.ones(n, dtype=dtype)
        if callable(self.name):
            return np.array([self._call(A[i : i + 1], A[i : i + 1], dtype)[0, 0] for i in range(n)], dtype=dtype)
        return self._finish(squared_norms(A).astype(dtype))

    def prepare(self, X: Any, like: Operand | None = None) -> Operand:
        """Do once for many blocks what depends on one side only; `like` is the other side, if it is known."""
        if self.name == "rbf":
            return gaussian.prepare(X, self.gamma, like)
        return Operand(X, np.zeros(X.shape[0]), None, float_type(X))

    def between(
        self, left: Operand, right: Operand, out: NDArray[Any] | None = None, *, parallel: bool = True
    ) -> NDArray[Any]:
        """Kernel values of prepared rows, in tiles on all cores or on this one.

        The tiles depend on the sizes only, so the result is the same for any number of cores.
        """
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
        if self.name == "rbf":
            gaussian.fill(left, right, self.gamma, out)
            return
        products(left.values, right.values, out)
        self._finish(out)

    def _finish(self, values: NDArray[Any]) -> NDArray[Any]:
        """From inner products to kernel values, in place."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.name in ("poly", "sigmoid"):
                values *= self.gamma
                values += self.coef0
            if self.name == "sigmoid":
                np.tanh(values, out=values)
            if self.name == "poly":
                _raise_to(values, self.degree)
        if self.name == "poly" and not np.isfinite(values).all():
            raise self.too_large(np.inf)
        return values

    def too_large(self, largest: float) -> InputError:
        """The error about kernel values that are too large to compute with."""
        if self.name == "poly":
            remedy = f"scale the features, or lower gamma={self.gamma:g} or degree={self.degree:g}"
        else:
            remedy = "scale the features" if self.name == "linear" else "divide the kernel by a constant"
        found = f"has values of up to {largest:.0e} on these rows, too large to compute with; {remedy}"
        return InputError.saying("{kernel=} {found}", kernel=self.name, found=found)

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


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and bool(np.isfinite(float(value)))


def _variance(X: Any, weights: Any) -> float:
    """Weighted variance of all entries, without a second copy of X; zero if it is only rounding."""
    n, d = X.shape
    weights = np.ones(n) if weights is None else weights / weights.max()
    size = float(weights.sum()) * d
    mean = _over_rows(_sum_of_entries, X, weights) / size
    squares = _over_rows(_squares_about, X, weights, mean)
    return squares / size if squares > size * (_CONSTANT * mean) ** 2 else 0.0


def _over_rows(function: Callable[..., float], X: Any, weights: Any, *common: float) -> float:
    """What a function makes of all rows; rows in blocks add up what it makes of each block."""
    in_one_place = isinstance(weights, np.ndarray)
    return float(function(X, weights, *common) if in_one_place else X.sum_over_rows(function, weights, *common))


def _sum_of_entries(X: Any, weights: Floats) -> float:
    if issparse(X):
        of_entries, entries = _entries(X, weights)
        return float((of_entries * entries).sum())
    return float(sum((some * rows).sum() for some, rows in _in_pieces(X, weights)))


def _squares_about(X: Any, weights: Floats, mean: float) -> float:
    """Σ weight (x − mean)² of all entries, stored or not."""
    if issparse(X):
        of_entries, entries = _entries(X, weights)
        n_unstored = max(float(weights.sum() * X.shape[1]) - float(of_entries.sum()), 0.0)
        return float((of_entries * (entries - mean) ** 2).sum()) + n_unstored * mean * mean
    return float(sum((some * np.square(rows - np.float64(mean))).sum() for some, rows in _in_pieces(X, weights)))


def _entries(X: Any, weights: Floats) -> tuple[Floats, Floats]:
    """The stored entries of a CSR matrix and the weights of their rows."""
    X = without_duplicates(X)
    return np.repeat(weights, np.diff(X.indptr)), X.data.astype(np.float64)


def _in_pieces(X: Any, weights: Floats) -> list[tuple[Floats, Any]]:
    return [(weights[i : i + 1024, None], X[i : i + 1024]) for i in range(0, len(weights), 1024)]


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
