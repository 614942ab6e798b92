"""Compiled loops: arrays only, cached, compiled on first use."""

from __future__ import annotations

from typing import Any

from toprank.compiled import compiled


@compiled(nogil=True)
def add_csr_products(indptr: Any, indices: Any, data: Any, rows: Any, columns: Any, out: Any) -> None:
    """Add the products of the given rows with other ones: ``out += X[rows] @ others.T``.

    `columns` are the arrays indptr, indices and data of the other rows by their columns. No matrix of the products is
    made on the way, which would take longer than the products.
    """
    starts, numbers, values = columns
    for a in range(len(rows)):
        for q in range(indptr[rows[a]], indptr[rows[a] + 1]):
            column, value = indices[q], data[q]
            for z in range(starts[column], starts[column + 1]):
                out[a, numbers[z]] += value * values[z]
