"""Kernel values that fits of the same rows and kernel share: the matrix, and its columns at rows that they score."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank.arrays import Rows
from toprank.matrices.dense_or_sparse import transpose_matvec
from toprank.matrices.features import expansion_scores
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.matrices.threads import one_blas_thread


@dataclass
class _Shared:
    """The matrix of the first fit, and the columns of the first rows that were scored."""

    gram: Gram | None = None
    columns: _Columns | None = None


_shared: ContextVar[_Shared | None] = ContextVar("_shared", default=None)


@contextmanager
def shared_kernel_values() -> Iterator[None]:
    """Fits inside that have the same rows and the same kernel compute its values once: those of the first fit.

    So do their scores of other rows, as long as these values fit into as much memory as the matrix may have.
    """
    token = _shared.set(_Shared())
    try:
        yield
    finally:
        _shared.reset(token)


def kernel_matrix(kernel: Kernel, X: Any, cache_size_mb: float) -> Gram:
    """The kernel matrix of X: the shared one if it is that, else a new one."""
    shared = _shared.get()
    if shared and shared.gram and shared.gram.is_of(kernel, X, cache_size_mb):
        return shared.gram
    gram = Gram(kernel, X, cache_size_mb)
    if shared and not shared.gram and not gram.is_precomputed:
        shared.gram = gram
    return gram


def scores_by_kernel(kernel: Kernel, X: Any, numbers: Rows, terms: Any, coefficients: NDArray[Any]) -> NDArray[Any]:
    """Σ cᵢ k(x, zᵢ) for each row x, by values that are shared where they can be.

    `numbers` are those of the training rows zᵢ; where the kernel is precomputed, they are all that there is of them.
    """
    scores = _shared_scores(kernel, X, numbers, terms, coefficients)
    if scores is not None:
        return scores
    return expansion_scores(kernel, X, numbers if kernel.name == "precomputed" else terms, coefficients)


def _shared_scores(
    kernel: Kernel, X: Any, numbers: Rows, terms: Any, coefficients: NDArray[Any]
) -> NDArray[Any] | None:
    shared = _shared.get()
    if not shared or not shared.gram or kernel != shared.gram.kernel or callable(kernel.name):
        return None
    if issparse(X) or issparse(terms):
        return None
    if len(X) * shared.gram.n * X.dtype.itemsize > shared.gram.cache_size_mb * 2**20:
        return None
    if not shared.columns:
        shared.columns = _Columns(kernel, X, shared.gram.n)
    return shared.columns.scores(X, numbers, terms, coefficients)


class _Columns:
    """Kernel values of rows X with training rows, one row for each of the latter that had a coefficient so far."""

    def __init__(self, kernel: Kernel, X: NDArray[Any], most: int) -> None:
        self._kernel, self._X, self._operand = kernel, X, kernel.prepare(X)
        self._place, self._n_filled = np.full(0, -1), 0
        # Memory that nothing was written to takes no room.
        self._values, self._terms = np.empty((most, len(X)), X.dtype), np.empty((most, X.shape[1]), X.dtype)

    def scores(self, X: NDArray[Any], numbers: Rows, terms: Any, coefficients: NDArray[Any]) -> NDArray[Any] | None:
        """The scores, or None if these are other rows, or other training rows of the same numbers."""
        if terms.dtype != X.dtype or X.dtype != self._X.dtype or not np.array_equal(X, self._X):
            return None
        if len(numbers) and (most := int(numbers.max())) >= len(self._place):
            self._place = np.concatenate([self._place, np.full(most + 1 - len(self._place), -1)])
        missing = np.flatnonzero(self._place[numbers] < 0)
        end = self._n_filled + len(missing)
        if end > len(self._values):
            return None
        if len(missing):
            new = slice(self._n_filled, end)
            left = self._kernel.prepare(terms[missing], self._operand)
            self._kernel.between(left, self._operand, self._values[new])
            self._terms[new] = terms[missing]
            self._place[numbers[missing]], self._n_filled = np.arange(new.start, end), end
        places = self._place[numbers]
        if not np.array_equal(self._terms[places], terms):
            return None
        weights = np.zeros(end)
        weights[places] = coefficients
        with one_blas_thread():
            scores = transpose_matvec(self._values[:end], weights)
        return scores.astype(np.result_type(X.dtype, coefficients.dtype))
