r"""The Gaussian kernel of prepared rows: by one matrix product, and by differences where that would lose digits.

For dense rows the norms are in two more columns,
:math:`-\gamma \|a - b\|^2 = (2\gamma a,\ -\gamma\|a\|^2,\ 1) \cdot (b,\ 1,\ -\gamma\|b\|^2)`, so that a block is one
matrix product, a minimum with zero and an exponential. Rows are centred first: distances stay, norms shrink, and with
them the rounding. The error of an exponent is a few units of the last digit of :math:`\gamma (\|a\|^2 + \|b\|^2)`:

- In single precision, where that product is large, the matrix product is done in double precision.
- In double precision, where it is very large, the entries that are not zero belong to rows that are close to each
  other, but far from the centre: few, as a rule. They are computed again from the differences of the rows as given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank.arrays import Floats
from toprank.matrices.operand import Operand, float_type, products, squared_norms, without_duplicates

# Largest γ‖a‖² of centred rows for which the product is done in single precision, and in double precision.
_SINGLE_PRECISION, _DOUBLE_PRECISION = 8.0, 1e3
# Rounding errors of an exponent, in units of γ(‖a‖² + ‖b‖²) times the machine precision; and what an error may be.
_ERRORS, _NO_ERROR = 8.0, 1e-12
# An entry of a smaller exponent is nothing beside the ones on the diagonal.
_NEGLIGIBLE = -50.0
# Sparse rows with at least this share of entries are made dense, to be centred; that takes no more memory.
_HALF_FULL = 0.5
# Numbers of the differences that are formed at a time.
_DIFFERENCES = 1 << 20


def prepare(X: Any, gamma: float, like: Operand | None) -> Operand:
    """Rows centred, with their norms; `like` is the other side of a block, which has the same centre or none."""
    dtype = float_type(X)
    if issparse(X):
        X = without_duplicates(X)
        is_dense = X.nnz >= _HALF_FULL * X.shape[0] * X.shape[1] if like is None else like.centre is not None
        if not is_dense:
            exponents = -gamma * squared_norms(X)
            return Operand(X, exponents, None, dtype, _if_far(X, exponents))
        X = X.toarray()
    if like is not None and like.centre is not None:
        centre = like.centre
    else:
        centre = X.mean(axis=0, dtype=np.float64).astype(dtype) if len(X) else np.zeros(X.shape[1], dtype)
    values = np.empty((len(X), X.shape[1] + 2), dtype=dtype)
    np.subtract(X, centre, out=values[:, :-2])
    exponents = -gamma * squared_norms(X, centre)
    values[:, -2], values[:, -1] = 1.0, exponents
    return Operand(values, exponents, centre, dtype, _if_far(X, exponents))


def _if_far(X: Any, exponents: Floats) -> Any:
    limit = _SINGLE_PRECISION if X.dtype == np.float32 else _DOUBLE_PRECISION
    return X if exponents.min(initial=0.0) < -limit else None


def fill(left: Operand, right: Operand, gamma: float, out: NDArray[Any]) -> None:
    """Kernel values of all rows on the left with all rows on the right."""
    nearest = -max(left.exponents.min(), right.exponents.min())  # of the side with the smaller largest norm
    needs_double = out.dtype == np.float32 and nearest > _SINGLE_PRECISION
    exponent = np.empty(out.shape) if needs_double else out
    if issparse(left.values):
        a, b = (x.values.astype(exponent.dtype, copy=False) for x in (left, right))
        products(a, b, exponent)
        exponent *= 2 * gamma
        exponent += left.exponents[:, None].astype(exponent.dtype)
        exponent += right.exponents.astype(exponent.dtype)
    else:
        a, b = (_in_double(x) if needs_double else x.values for x in (left, right))
        a = a * a.dtype.type(2 * gamma)
        a[:, -2], a[:, -1] = left.exponents, 1.0
        with np.errstate(invalid="ignore"):  # of one row, BLAS may read numbers beyond it and say so
            np.matmul(a, b.T, out=exponent)
    if exponent.dtype == np.float64 and nearest > _DOUBLE_PRECISION:
        _correct(exponent, left, right, gamma)
    np.minimum(exponent, 0.0, out=exponent)
    np.exp(exponent, out=out, casting="same_kind")


def _in_double(operand: Operand) -> Floats:
    """Single precision rows as `Operand.values` would be in double precision."""
    assert operand.centre is not None
    values = np.ones((len(operand), operand.values.shape[1]))
    np.subtract(operand.rows, operand.centre, out=values[:, :-2], dtype=np.float64)
    values[:, -1] = operand.exponents
    return values


def _correct(exponent: Floats, left: Operand, right: Operand, gamma: float) -> None:
    """Compute the exponents that count and whose digits are lost from differences of rows, in place."""
    error = (_ERRORS * np.finfo(np.float64).eps) * -(left.exponents[:, None] + right.exponents)
    lost = ~((exponent < _NEGLIGIBLE - error) | (error < _NO_ERROR))
    i, j = np.nonzero(lost)
    step = max(1, _DIFFERENCES // max(left.rows.shape[1], 1))
    for start in range(0, len(i), step):
        some = slice(start, start + step)
        difference = left.rows[i[some]].astype(np.float64) - right.rows[j[some]].astype(np.float64)
        exponent[i[some], j[some]] = -gamma * squared_norms(difference)
