"""Which rows of a file are held out of a fit, and whether a file is the one of a fit."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from toprank.files.content import is_pipe

_BLOCK = 1 << 20


def sum_of(path: str) -> str | None:
    """The SHA-256 sum of a file; None of a pipe, which cannot be read again."""
    if is_pipe(path):
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def sum_of_labels(y: NDArray[np.int64]) -> str:
    """The SHA-256 sum of labels 0 and 1, to tell whether others are asked for than those of a fit."""
    return hashlib.sha256(y.astype(np.uint8).tobytes()).hexdigest()


def held_out_rows(y: NDArray[np.int64], share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from and rows to test with, the same for the same labels, share and seed.

    Both classes are in both parts; a class of one row stays whole in the first.
    """
    random = np.random.default_rng(seed)
    held = []
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        count = min(round(share * len(rows)), len(rows) - 1)
        held.append(random.permutation(rows)[: max(count, 0)])
    if any(len(rows) == 0 for rows in held):
        return np.arange(len(y)), np.zeros(0, np.intp)
    test = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(y)), test), test
