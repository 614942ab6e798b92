"""Tasks on blocks of rows: what is done beside each block, and what is sent from there.

Dask runs them, on the cluster of the current client or in threads. A piece is what Dask has or will have of one block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial, reduce
from operator import add
from typing import Any
from uuid import uuid4

import numpy as np
from scipy.sparse import issparse

from toprank.exceptions import InputError
from toprank.matrices.threads import at_most_threads, n_cores

Piece = Any
Pieces = Sequence[Piece]

# Pieces that are added up at a time, on their way to one sum.
_ADDED_AT_ONCE = 8
# Bytes of what is common to all tasks from which on it is sent once, not with each of them.
_SENT_ONCE = 1_000_000
# Bytes that are sent at once, where one more task to put them together would cost more.
_SENT_AT_ONCE = 20_000
# What is added to an error in a block.
_PLACE = "in block {} of the rows"


def on_each(
    function: Callable[..., Any], columns: Sequence[Pieces], *common: Any, at: Sequence[Sequence[str]] | None = None
) -> list[Piece]:
    """Tasks that call a function with the pieces of each block, one of each column, and with what is common to all.

    A task has one thread, for which a worker was asked; in this process fewer blocks than cores share the cores. `at`
    are the workers at which a task should run, as long as one of them lives.
    """
    from dask import annotate, delayed

    key = f"toprank-{getattr(function, '__name__', 'task').strip('_')}-{uuid4().hex}"
    large = [k for k, value in enumerate(common) if isinstance(value, np.ndarray) and value.nbytes > _SENT_ONCE]
    once = [sent(common[k]) for k in large]
    common = tuple(None if k in large else value for k, value in enumerate(common))
    blocks = list(zip(*columns, strict=True))
    n_threads = 1 if runs_on_cluster() else max(1, n_cores() // max(1, len(blocks)))
    tasks = []
    for number, pieces in enumerate(blocks):
        task = delayed(partial(_called, function, number, common, large, n_threads), pure=False)
        with annotate(workers=list(at[number]), allow_other_workers=True) if at and at[number] else nullcontext():
            tasks.append(task(*once, *pieces, dask_key_name=f"{key}-{number}"))
    return tasks


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
    return _client() is not None


def _client() -> Any:
    from dask.base import get_scheduler

    client = getattr(get_scheduler(), "__self__", None)
    return client if hasattr(client, "scheduler_info") else None


def places_of(pieces: Pieces) -> list[tuple[str, ...]]:
    """The workers that have each piece; none where it is not computed, or in this process."""
    if (client := _client()) is None:
        return [()] * len(pieces)
    held = client.sync(client.scheduler.who_has, keys=[piece.key for piece in pieces])
    return [tuple(held.get(piece.key, ())) for piece in pieces]


def stored(pieces: Pieces) -> list[Piece]:
    """The same pieces, computed and kept where they are."""
    from dask import persist

    return list(persist(*pieces))


def fetched(pieces: Pieces) -> list[Any]:
    """What the pieces are, sent here."""
    from dask import compute

    return list(compute(*pieces))


def added_up(pieces: Pieces, n_numbers: float = np.inf) -> Any:
    """The sum of arrays of the same shape, of about so many numbers each; only the sum is sent here, or a few."""
    return combined(pieces, add, n_numbers)


def combined(pieces: Pieces, two: Callable[[Any, Any], Any], n_numbers: float = np.inf) -> Any:
    """What a function of two makes of all pieces, always in the same order.

    Only the last result is sent here, unless it is one task that would put together what is little anyway.
    """
    if len(pieces) <= _ADDED_AT_ONCE and 8 * n_numbers * len(pieces) <= _SENT_AT_ONCE:
        return reduce(two, fetched(pieces))
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
    function: Callable[..., Any],
    number: int,
    common: Sequence[Any],
    large: Sequence[int],
    n_threads: int,
    *pieces: Any,
) -> Any:
    """Call a function; an error says of which block it is. What is large of all that is common comes first."""
    of_all = dict(zip(large, pieces, strict=False))
    try:
        with at_most_threads(n_threads):
            return function(*pieces[len(large) :], *(of_all.get(k, value) for k, value in enumerate(common)))
    except Exception as error:
        error.add_note(_PLACE.format(number))
        raise
