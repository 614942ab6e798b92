"""Svmlight files, by the reader of streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.tables.errors import TableError
from toprank.text_files import content_size


@dataclass(frozen=True)
class SparseBatch:
    """Some rows of an svmlight file: a CSR array, labels 0 and 1, the number of the first row, the bytes read."""

    X: Any
    y: NDArray[np.int64]
    first_row: int
    position: int


class SvmlightTable:
    """Rows ``label index:value ...``; the features have no names.

    Parameters
    ----------
    path : str
        The file.
    zero_based : bool
        Whether the first feature has the index 0 instead of 1.
    """

    names: tuple[str, ...] = ()

    def __init__(self, path: str, zero_based: bool = False) -> None:
        self.path = path
        self.zero_based = zero_based
        self.size = content_size(path)

    def batches(self, n_features: int | None = None, positive: float | None = None) -> Iterator[SparseBatch]:
        """Rows, some megabytes at a time.

        Parameters
        ----------
        n_features : int, optional
            Number of features; by default the file is read once for the largest index.
        positive : float, optional
            The positive label; all others are negative. By default labels are 1, and 0 or -1.
        """
        from toprank.streams.open import open_source

        source = open_source(self.path, None, positive, None, "svmlight", None, n_features, self.zero_based, None)
        row = 0
        for block in source.blocks(source.start()):
            if block.bad:
                line, reason = block.bad[0]
                remedy = "" if ";" in reason else "; correct the line"
                text = "line {line} of {path!r} is bad: {reason}{remedy}"
                raise TableError.saying(text, line=line, path=self.path, reason=reason, remedy=remedy)
            if len(block.rows):
                yield SparseBatch(block.rows.X, block.rows.y, row, block.end.position)
            row += len(block.rows)
        if row == 0:
            raise TableError(f"{self.path!r} has no rows; give a file with lines such as '1 3:0.5 7:2'")
