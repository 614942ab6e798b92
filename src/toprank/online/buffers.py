"""Buffers: some rows of each class, which stand for all that were seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats
from toprank.compiled import part
from toprank.online._rows import random_share

FIFO, RESERVOIR = 0, 1
POLICIES = {"fifo": FIFO, "reservoir": RESERVOIR}


class Buffers(NamedTuple):
    """Sparse rows in slots; the first axis is the class, 0 for negative and 1 for positive.

    A slot holds `length` columns and values; its capacity is the longest row seen so far. `seen` is the weight of all
    rows of the class so far, each discounted by the forgetting factor once for each row that came after it.
    """

    indices: NDArray[np.int32]
    values: Floats
    length: NDArray[np.int64]
    size: NDArray[np.int64]
    inserted: NDArray[np.int64]
    seen: Floats
    random: NDArray[np.uint64]


def empty_buffers(size: tuple[int, int], seed: int) -> Buffers:
    """Buffers of so many slots for the negative and the positive class."""
    slots = max(size)
    return Buffers(
        indices=np.zeros((2, slots, 0), np.int32),
        values=np.zeros((2, slots, 0)),
        length=np.zeros((2, slots), np.int64),
        size=np.array(size, np.int64),
        inserted=np.zeros(2, np.int64),
        seen=np.zeros(2),
        random=np.array([seed], np.uint64),
    )


def with_capacity(buffers: Buffers, capacity: int) -> Buffers:
    """The same buffers, with slots that hold rows of `capacity` entries."""
    missing = capacity - buffers.indices.shape[2]
    if missing <= 0:
        return buffers
    widths = ((0, 0), (0, 0), (0, missing))
    return buffers._replace(indices=np.pad(buffers.indices, widths), values=np.pad(buffers.values, widths))


@part()
def filled(inserted: Any, size: Any, label: Any) -> Any:
    """Number of slots in use."""
    return inserted[label] if inserted[label] < size[label] else size[label]


@part()
def insert(buffers: Any, policy: Any, label: Any, indices: Any, values: Any, weight: Any) -> Any:
    """Offer a row that has been counted to the buffer of its class; return its slot, or −1 if it was not taken.

    A full FIFO buffer gives up its oldest row. A full reservoir takes the row with probability M·weight / seen and
    gives up a random one; with weights of one and nothing discounted, each of the rows seen is then in the buffer with
    probability M / seen (Vitter 1985). With discounting old rows fade out.
    """
    size = buffers.size[label]
    slot = buffers.inserted[label] % size
    if buffers.inserted[label] >= size and policy == RESERVOIR:
        if random_share(buffers.random) * buffers.seen[label] >= size * weight:
            return -1
        slot = np.int64(random_share(buffers.random) * size)
    for k in range(len(indices)):
        buffers.indices[label, slot, k] = indices[k]
        buffers.values[label, slot, k] = values[k]
    buffers.length[label, slot] = len(indices)
    buffers.inserted[label] += 1
    return slot
