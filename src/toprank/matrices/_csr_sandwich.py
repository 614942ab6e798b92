"""Compiled loops: arrays only, cached, compiled on first use."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import compiled


@compiled(allocates=True, nogil=True)
def csr_sandwich(indptr: Any, indices: Any, data: Any, rows: Any, weights: Any, H: Any) -> None:
    """Add weightᵢ xᵢ xᵢᵀ for the given rows to the lower triangle of H.

    Column indices need not be sorted, and an entry that is stored in two parts counts as their sum.
    """
    longest = 0
    for i in rows:
        longest = max(longest, indptr[i + 1] - indptr[i])
    columns, values = np.empty(longest, np.int64), np.empty(longest)
    for i in rows:
        start = indptr[i]
        for a in range(indptr[i + 1] - start):
            column, value = np.int64(indices[start + a]), data[start + a]
            columns[a], values[a] = column, value
            weighted = weights[i] * value
            H[column, column] += weighted * value
            for b in range(a):
                other = columns[b]
                if other < column:
                    H[column, other] += weighted * values[b]
                elif other > column:
                    H[other, column] += weighted * values[b]
                else:
                    H[column, column] += 2 * weighted * values[b]
