"""Compiled loops: arrays only, cached, compiled on first use."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def csr_sandwich(indptr: Any, indices: Any, data: Any, rows: Any, weights: Any, H: Any) -> None:
    """Add weightᵢ xᵢ xᵢᵀ for the given rows to the lower triangle of H.

    Column indices need not be sorted, and an entry that is stored in two parts counts as their sum.
    """
    for i in rows:
        for a in range(indptr[i], indptr[i + 1]):
            column = indices[a]
            value = weights[i] * data[a]
            H[column, column] += value * data[a]
            for b in range(indptr[i], a):
                other = indices[b]
                if other < column:
                    H[column, other] += value * data[b]
                elif other > column:
                    H[other, column] += value * data[b]
                else:
                    H[column, column] += 2 * value * data[b]
