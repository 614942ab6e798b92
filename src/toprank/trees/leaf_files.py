"""Leaves of rows in blocks, kept between the passes of a head: by the cluster, or in files where one process works.

Leaves take more room than many a table that they are of. A cluster writes to disk what is too much for its workers; the
threads of one process have no such thing, so they find the leaves in files, of which a pass reads a block at a time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from toprank.matrices.block_tasks import Pieces, on_each, runs_on_cluster, stored
from toprank.matrices.leaves import LeafMatrix


def kept(matrices: Pieces, folder: str) -> Pieces:
    """Pieces, each a `LeafMatrix` in which all trees count or an array, computed once; `folder` is for files."""
    if runs_on_cluster():
        return stored(matrices)
    paths = [str(Path(folder) / str(number)) for number in range(len(matrices))]
    return on_each(_read, [stored(on_each(_written, [matrices, paths])), paths])


def _written(matrix: Any, path: str) -> Any:
    """What is left in memory when the leaves are in a file: nothing of the rows but their extra columns and values."""
    if not isinstance(matrix, LeafMatrix):
        return matrix
    np.save(f"{path}.npy", matrix.leaves)
    return replace(matrix, leaves=matrix.leaves[:0])


def _read(matrix: Any, path: str) -> Any:
    """The same with its leaves, which are read when they are asked for."""
    if not isinstance(matrix, LeafMatrix):
        return matrix
    # copied on writing, which nobody does: compiled loops take arrays that could be written to
    leaves = np.load(f"{path}.npy", mmap_mode="c") if len(matrix) else matrix.leaves
    return replace(matrix, leaves=np.asarray(leaves))
