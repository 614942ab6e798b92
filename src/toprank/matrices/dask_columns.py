"""Dask arrays and dataframes on their way in: columns in pieces, one piece beside each block of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.arrays import is_dask
from toprank.exceptions import InputError
from toprank.matrices.block_tasks import Piece


def as_dask_array(values: Any) -> Any:
    """A Dask array, of a dataframe or a series of Dask too."""
    return values if hasattr(values, "rechunk") else values.to_dask_array()


def blocks_of(array: Any) -> list[Piece]:
    """The blocks of a Dask array of one dimension, or of one whose blocks have all columns."""
    return list(array.to_delayed().ravel())


def beside(rows: Any, values: Any, name: str, whole: str = "X") -> list[Piece]:
    """Pieces of a column beside the blocks of a Dask array; `name` and `whole` are what errors call the two."""
    from dask import array

    chunks = rows.chunks[0]
    if not is_dask(values):
        values = np.asarray(values)
        if np.isnan(chunks).any() or len(values) != sum(chunks):
            raise InputError.saying(
                "{name} has {n:,} rows and {whole} has {rows}; both need the same, and a Dask {whole} of unknown "
                "length needs a Dask {name}",
                name=name,
                whole=whole,
                n=len(values),
                rows="an unknown number" if np.isnan(chunks).any() else f"{sum(chunks):,}",
            )
        values = array.from_array(values, chunks=(chunks, *values.shape[1:]))
    values = as_dask_array(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    known = not np.isnan(chunks).any() and not np.isnan(values.chunks[0]).any()
    if (
        values.ndim != 1
        or (known and sum(values.chunks[0]) != sum(chunks))
        or (not known and values.numblocks[0] != rows.numblocks[0])
    ):
        raise InputError.saying(
            "{name} has the shape {shape} in {n} blocks, {whole} has {rows} in {blocks}; both need the same rows",
            name=name,
            whole=whole,
            shape=values.shape,
            n=values.numblocks[0],
            rows=rows.shape,
            blocks=rows.numblocks[0],
        )
    return blocks_of(values.rechunk((chunks,)) if known and values.chunks[0] != chunks else values)
