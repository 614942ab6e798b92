"""Rows on their way from a file to a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack


class Place(NamedTuple):
    """How far a file is read: position in bytes (of Parquet in rows), and number of lines up to there."""

    position: int
    line: int


class BadLine(NamedTuple):
    """A line that is no row: its number, counted from 1 with the header, and what is wrong with it."""

    line: int
    reason: str


class BadLineError(ValueError):
    """A line of a stream is no row; `line` is its number and `reason` what is wrong."""

    line: int = 0
    reason: str = ""

    @staticmethod
    def of(path: str, unit: str, bad: BadLine, remedy: str) -> BadLineError:
        """The error for a line of a file."""
        error = BadLineError(f"{unit} {bad.line} of {path!r} is bad: {bad.reason}; {remedy}")
        error.line, error.reason = bad
        return error


@dataclass(frozen=True)
class Rows:
    """Rows in the order of the file, each with the place where it ends."""

    X: Any
    y: NDArray[np.int64]
    positions: NDArray[np.int64]
    lines: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)

    def part(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        chosen = slice(start, stop)
        return Rows(self.X[chosen], self.y[chosen], self.positions[chosen], self.lines[chosen])

    def followed_by(self, other: Rows) -> Rows:
        """These rows and then those."""
        X = vstack([self.X, other.X], format="csr") if issparse(self.X) else np.vstack([self.X, other.X])
        joined = (
            np.concatenate(pair)
            for pair in ((self.y, other.y), (self.positions, other.positions), (self.lines, other.lines))
        )
        return Rows(X, *joined)

    @property
    def end(self) -> Place:
        """Where the last row ends."""
        return Place(int(self.positions[-1]), int(self.lines[-1]))


class Block(NamedTuple):
    """What one read of a file gave: rows, bad lines among them, and where it ended."""

    rows: Rows
    bad: list[BadLine]
    end: Place


class Source(Protocol):
    """A file of rows."""

    path: str
    n_features: int
    feature_names: list[str] | None
    unit: str
    """What a bad line is called: "line" or "row"."""

    @property
    def size(self) -> int | None:
        """Position at which the file ends, if that is known."""

    def start(self) -> Place:
        """Where the first row starts."""

    def blocks(self, start: Place) -> Iterator[Block]:
        """All rows from a place on."""

    def identity(self, position: int) -> dict[str, Any]:
        """What tells the part of the file up to a position from that of another file."""


def stop_at(bad: BadLine, source: Source) -> BadLineError:
    """The error of a run that does not skip bad lines."""
    remedy = "correct it, or leave such lines out by on_bad_line='skip'"
    return BadLineError.of(source.path, source.unit, bad, remedy)


class Batch(NamedTuple):
    """Rows to learn from at once, the bad lines met before the last of them, and where it ends."""

    rows: Rows | None
    bad: list[BadLine]
    end: Place


def batches(blocks: Iterator[Block], size: int) -> Iterator[Batch]:
    """Cut blocks into batches of exactly `size` rows, but for the last, whatever the sizes of the blocks.

    A bad line belongs to the batch in which the next row is: a run that stops at the end of a batch and goes on from
    there meets every bad line once.
    """
    waiting: Rows | None = None
    bad: deque[BadLine] = deque()
    end: Place | None = None
    for block in blocks:
        rows = block.rows if waiting is None or not len(waiting) else waiting.followed_by(block.rows)
        bad.extend(block.bad)
        end = block.end
        whole = len(rows) - len(rows) % size
        for start in range(0, whole, size):
            batch = rows.part(start, start + size)
            before = []
            while bad and bad[0].line < batch.end.line:
                before.append(bad.popleft())
            yield Batch(batch, before, batch.end)
        waiting = rows.part(whole, len(rows))
    if end is not None:
        yield Batch(waiting if waiting is not None and len(waiting) else None, list(bad), end)
