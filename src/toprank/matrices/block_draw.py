"""Rows in blocks drawn at random: what a row gets depends on the seed and on its number, and not on the blocks."""

from __future__ import annotations

import numpy as np

from toprank.arrays import Floats, Rows
from toprank.matrices.block_statistics import kth_largest
from toprank.matrices.block_tasks import on_each
from toprank.matrices.block_vector import BlockVector


def row_numbers(like: BlockVector) -> BlockVector:
    """The numbers of the rows of a vector."""
    return BlockVector.of(on_each(_numbers, _places(like)), like.lengths)


def random_numbers(like: BlockVector, seed: int) -> BlockVector:
    """A number in [0, 1) for each row of a vector."""
    return BlockVector.of(on_each(random_of_places, _places(like), seed), like.lengths)


def draw_rows(weights: BlockVector, size: int, random_state: np.random.RandomState) -> Rows:
    """Numbers of so many rows, drawn one by one with chances in proportion to their weights, in rising order.

    As in one memory by exponential waiting times, of which the first ones are taken.
    """
    uniform = random_numbers(weights, int(random_state.randint(2**31)))
    early: BlockVector = (np.log1p(-uniform) / (weights / weights.max())).stored()  # minus the waiting times
    return np.flatnonzero(early >= kth_largest(early, size))[:size]


def drawn(candidates: BlockVector, n: int, keys: BlockVector) -> BlockVector:
    """Those n of some rows, under a mask, whose keys are the largest; all where there are no more."""
    if n >= np.count_nonzero(candidates):
        return candidates
    chosen: BlockVector = candidates & (keys >= (kth_largest(keys[candidates], n) if n > 0 else np.inf))
    return chosen.stored()


def random_of_places(first: int, length: int, seed: int) -> Floats:
    """Numbers that look random, of a seed and of the places of some rows in a row (the mixing of splitmix64)."""
    with np.errstate(over="ignore"):
        numbers = np.arange(first, first + length).astype(np.uint64)
        mixed = (numbers + np.uint64(1 + (seed << 32))) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _places(like: BlockVector) -> list[list[int]]:
    return [like.offsets[:-1].tolist(), list(like.lengths)]


def _numbers(first: int, length: int) -> Floats:
    return np.arange(first, first + length, dtype=np.float64)
