"""Dask arrays and dataframes on their way in: columns in pieces, one piece beside each block of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np

from toprank.arrays import is_dask
from toprank.exceptions import InputError
from toprank.matrices.block_tasks import Piece, fetched, on_each


def is_frame(X: Any) -> bool:
    """Whether what Dask has is a dataframe."""
    return hasattr(X, "columns") and hasattr(X, "to_dask_array")


def numbers_of_frame(X: Any) -> Any:
    """A Dask array of the numbers of a dataframe, of float32 if all columns are."""
    words = [name for name, dtype in X.dtypes.items() if getattr(dtype, "kind", "O") not in "fiub"]
    if words:
        raise InputError.saying(
            "X has columns that are no numbers: {names}; encode them first, or leave them out",
            names=", ".join(map(repr, words[:5])) + (", …" if len(words) > 5 else ""),
        )
    dtypes = {np.dtype(getattr(dtype, "numpy_dtype", dtype)) for dtype in X.dtypes}
    dtype = np.float32 if dtypes == {np.dtype(np.float32)} else np.float64
    # to_dask_array of a dataframe that was made of delayed parts loses them
    pieces = on_each(_numbers, [blocks_of(X)], dtype)
    return array_of(pieces, lengths_of(X), np.zeros((0, len(X.columns)), dtype))


def lengths_of(X: Any) -> tuple[float, ...]:
    """The lengths of the blocks of a Dask array; NaN where they are unknown, as in dataframes."""
    return tuple(X.chunks[0]) if hasattr(X, "chunks") else (np.nan,) * int(X.npartitions)


def blocks_of(X: Any) -> list[Piece]:
    """The blocks of a Dask array whose blocks have all columns, or the partitions of a dataframe."""
    if hasattr(X, "simplify"):  # all that Dask does to a dataframe would put partitions of one column together
        return list(X.simplify().to_delayed(optimize_graph=False))
    return list(np.ravel(np.array(X.to_delayed(), dtype=object)))


def array_of(pieces: Sequence[Piece], lengths: Sequence[float], meta: Any) -> Any:
    """A Dask array of its blocks, which may be empty or of unknown length; `meta` is such an array without rows.

    Dask's own `concatenate` leaves empty blocks out.
    """
    from dask.array import Array
    from dask.highlevelgraph import HighLevelGraph

    name, n_columns = f"toprank-rows-{uuid4().hex}", meta.shape[1:]
    tasks = {(name, i, *(0 for _ in n_columns)): (_itself, piece.key) for i, piece in enumerate(pieces)}
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=list(pieces))
    return Array(graph, name, (tuple(lengths), *((n,) for n in n_columns)), meta=meta)


def column_of(pieces: Sequence[Piece], lengths: Sequence[float], dtype: Any) -> Any:
    """A Dask array of one dimension, of its pieces."""
    return array_of(pieces, lengths, np.zeros(0, dtype))


def row_by_row(function: Callable[..., Any], X: Any, *arguments: Any, dtype: Any) -> Any:
    """A Dask array of the number that a function gives for each row of a Dask array or dataframe, block by block.

    An argument may be a piece. Dask's own `map_blocks` puts blocks side by side first, which sparse ones may not bear.
    """
    whole = X.rechunk({1: -1}) if not is_frame(X) and X.numblocks[1] > 1 else X
    blocks = blocks_of(whole)
    pieces = on_each(function, [blocks, *([argument] * len(blocks) for argument in arguments)])
    return column_of(pieces, lengths_of(whole), dtype)


def beside(lengths: Sequence[float], values: Any, name: str, whole: str = "X") -> list[Piece]:
    """Pieces of a column beside blocks of some lengths; `name` and `whole` are what errors call the two."""
    unknown = bool(np.isnan(lengths).any())
    if not is_dask(values):
        values = _as_dask(np.asarray(values), lengths, name, whole)
    elif getattr(values, "ndim", 1) == 2 and values.shape[1] == 1:
        values = values[values.columns[0]] if is_frame(values) else values[:, 0]
    found = lengths_of(values)
    known = not unknown and not np.isnan(found).any()
    if values.ndim != 1 or (known and sum(found) != sum(lengths)) or (not known and len(found) != len(lengths)):
        raise InputError.saying(
            "{name} has {dimensions}{rows} in {n} blocks, {whole} has {others} in {blocks}; both need the same rows",
            name=name,
            whole=whole,
            dimensions="" if values.ndim == 1 else f"{values.ndim} dimensions and ",
            rows=_number_of(found),
            n=len(found),
            others=_number_of(lengths),
            blocks=len(lengths),
        )
    return blocks_of(values.rechunk((tuple(lengths),)) if known and found != tuple(lengths) else values)


def distinct(pieces: Sequence[Piece], most: int | None = None, column: Callable[[Any], Any] = np.asarray) -> Any:
    """The different values of a column in pieces, which `column` makes arrays; of each piece at most so many."""
    found = [values for values in fetched(on_each(_distinct, [pieces], column, most)) if len(values)]
    return np.unique(np.concatenate(found)) if found else np.zeros(0)


def _distinct(piece: Any, column: Callable[[Any], Any], most: int | None) -> Any:
    return np.unique(column(piece))[:most]


def _numbers(partition: Any, dtype: Any) -> Any:
    return partition.to_numpy(dtype=dtype, na_value=np.nan)


def _itself(value: Any) -> Any:
    return value


def _as_dask(values: Any, lengths: Sequence[float], name: str, whole: str) -> Any:
    """A column of this memory in blocks."""
    from dask import array

    if np.isnan(lengths).any() or len(values) != sum(lengths):
        raise InputError.saying(
            "{name} has {n:,} rows, {whole} has {rows}; both need the same, and a Dask {whole} of unknown length "
            "needs a Dask {name}",
            name=name,
            whole=whole,
            n=len(values),
            rows=_number_of(lengths),
        )
    return array.from_array(values, chunks=(tuple(lengths), *values.shape[1:]))


def _number_of(lengths: Sequence[float]) -> str:
    return "an unknown number of rows" if np.isnan(lengths).any() else f"{int(sum(lengths)):,} rows"
