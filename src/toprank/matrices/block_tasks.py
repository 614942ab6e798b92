"""Tasks on blocks of rows: what is done beside each block, and what is sent from there.

Dask runs them, on the cluster of the current client or in threads. A piece is what Dask has or will have of one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from operator import add
from typing import Any
from uuid import uuid4

import numpy as np
from scipy.sparse import issparse

from toprank.exceptions import InputError

Piece = Any
Pieces = Sequence[Piece]

# Pieces that are added up at a time, on their way to one sum.
_ADDED_AT_ONCE = 8
# Bytes of what is common to all tasks from which on it is sent once, not with each of them.
_SENT_ONCE = 1_000_000
# What is added to an error in a block.
_PLACE = "in block {} of the rows"


def on_each(function: Callable[..., Any], columns: Sequence[Pieces], *common: Any) -> list[Piece]:
    """Tasks that call a function with the pieces of each block, one of each column, and with what is common to all."""
    from dask import delayed

    key = f"toprank-{getattr(function, '__name__', 'task').strip('_')}-{uuid4().hex}"
    large = [k for k, value in enumerate(common) if isinstance(value, np.ndarray) and value.nbytes > _SENT_ONCE]
    once = [sent(common[k]) for k in large]
    common = tuple(None if k in large else value for k, value in enumerate(common))
    return [
        delayed(partial(_called, function, number, common, large), pure=False)(
            *once, *pieces, dask_key_name=f"{key}-{number}"
        )
        for number, pieces in enumerate(zip(*columns, strict=True))
    ]


class Counted:
    """What a task makes of a block. Dask counts bytes and chooses workers by its size: that of all that it holds."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(_size_of(value) for value in vars(self).values())


def _size_of(value: Any) -> int:
    from dask.sizeof import sizeof

    if issparse(value):  # of those Dask knows the older ones only
        return sum(_size_of(part) for part in (value.data, value.indices, value.indptr))
    return int(sizeof(value))


def sent(value: Any) -> Piece:
    """A value of this memory as a piece: all tasks that name it share one copy."""
    from dask import delayed

    return delayed(value, pure=False, traverse=False)


def shared(value: Any, n_blocks: int) -> list[Piece]:
    """The same kept beside each block, so that it is sent once and not for each pass."""
    return stored([sent(value)]) * n_blocks


def runs_on_cluster() -> bool:
    """Whether tasks go to the current client of a cluster, not to threads of this process."""
    from dask.base import get_scheduler

    return hasattr(getattr(get_scheduler(), "__self__", None), "scheduler_info")


def stored(pieces: Pieces) -> list[Piece]:
    """The same pieces, computed and kept where they are."""
    from dask import persist

    return list(persist(*pieces))


def fetched(pieces: Pieces) -> list[Any]:
    """What the pieces are, sent here."""
    from dask import compute

    return list(compute(*pieces))


def added_up(pieces: Pieces) -> Any:
    """The sum of arrays of the same shape; only the sum is sent here."""
    return combined(pieces, add)


def combined(pieces: Pieces, two: Callable[[Any, Any], Any]) -> Any:
    """What a function of two makes of all pieces, always in the same order; only the last result is sent here."""
    return fetched(combined_tasks(pieces, two))[0]


def combined_tasks(pieces: Pieces, two: Callable[[Any, Any], Any]) -> list[Piece]:
    """The same as one task."""
    from dask import delayed

    several, left = delayed(partial(reduce, two), pure=False), list(pieces)
    while len(left) > 1:
        left = [several(left[i : i + _ADDED_AT_ONCE]) for i in range(0, len(left), _ADDED_AT_ONCE)]
    return left


@contextmanager
def naming_failed(blocks: Pieces) -> Iterator[None]:
    """Where a block cannot be had, as its file is gone, say in the error which one it is: they are tried one by one."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, InputError) and not hasattr(error, "__notes__"):
            for number, block in enumerate(blocks):
                try:
                    fetched(on_each(np.shape, [[block]]))
                except Exception:
                    error.add_note(_PLACE.format(number))
                    break
        raise


def _called(
    function: Callable[..., Any], number: int, common: Sequence[Any], large: Sequence[int], *pieces: Any
) -> Any:
    """Call a function; an error says of which block it is. What is large of all that is common comes first."""
    of_all = dict(zip(large, pieces, strict=False))
    try:
        return function(*pieces[len(large) :], *(of_all.get(k, value) for k, value in enumerate(common)))
    except Exception as error:
        error.add_note(_PLACE.format(number))
        raise
