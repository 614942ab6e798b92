"""Rows on their way from a file to a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack

from toprank.exceptions import Message
from toprank.files.spelling import polars

MOST_BAD_LINES = 100
"""Bad lines that are kept with their reasons: of a block, and of a run."""
# So many of several blocks, at most, until the batch is full that they belong to.
_MOST_WAITING = 1000


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
        text = "{unit} {line} of {path!r} is bad: {reason}; {remedy}"
        error = BadLineError(Message(text, unit=unit, line=bad.line, path=path, reason=bad.reason, remedy=remedy))
        error.line, error.reason = bad
        return error


@dataclass(frozen=True)
class Rows:
    """Rows in the order of the file, each with the place where it ends and the bad lines since the row before it."""

    X: Any
    y: NDArray[np.int64]
    positions: NDArray[np.int64]
    lines: NDArray[np.int64]
    skipped: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.y)

    def part(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        chosen = slice(start, stop)
        return Rows(self.X[chosen], self.y[chosen], self.positions[chosen], self.lines[chosen], self.skipped[chosen])

    @staticmethod
    def joined(parts: list[Rows]) -> Rows:
        """The rows of all parts, in their order."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*((part.y, part.positions, part.lines, part.skipped) for part in parts), strict=True)
        return Rows(_stacked([part.X for part in parts]), *map(np.concatenate, columns))

    def without(self, wrong: NDArray[np.bool_]) -> Rows:
        """The rows but for some, which count as bad lines before the next one."""
        before = np.cumsum(self.skipped + wrong)[~wrong]
        X = self.X.filter(~wrong) if hasattr(self.X, "filter") else self.X[~wrong]
        kept = (self.y[~wrong], self.positions[~wrong], self.lines[~wrong])
        return Rows(X, *kept, np.diff(before, prepend=0))

    @property
    def end(self) -> Place:
        """Where the last row ends."""
        return Place(int(self.positions[-1]), int(self.lines[-1]))


def _stacked(parts: list[Any]) -> Any:
    """One matrix, or frame of polars, of several."""
    if issparse(parts[0]):
        return vstack(parts, format="csr")
    return polars().concat(parts) if hasattr(parts[0], "columns") else np.vstack(parts)


class Block(NamedTuple):
    """What one read of a file gave: rows, the first bad lines among them and the number of all, and where it ended."""

    rows: Rows
    bad: list[BadLine]
    n_bad: int
    end: Place


class RowSource(Protocol):
    """A file of rows."""

    path: str
    n_features: int
    feature_names: list[str] | None
    unit: str
    """What a bad line is called: "line" or "row"."""

    @property
    def size(self) -> int | None:
        """Position at which the file ends, if that is known."""

    is_begun: bool
    """Whether all is there that precedes the rows; names of a file that is being written may still be cut off."""
    unended: bool
    """Whether the last line had no end when it was reached, and was left for later."""

    def start(self) -> Place:
        """Where the first row starts."""

    def peek(self, stops: bool) -> Iterator[Block]:
        """Blocks from the start, which `blocks` gives again; of a pipe, those of its first part."""

    def blocks(self, start: Place, stops: bool = False) -> Iterator[Block]:
        """All rows from a place on; with `stops` up to the first bad line."""

    def passed(self, position: int) -> None:
        """Note that the last block is taken up to a position, whose identity may be asked for."""

    def identity(self, position: int) -> dict[str, Any]:
        """What tells the part of the file up to a position from that of another file."""


def stop_at(bad: BadLine, source: RowSource) -> BadLineError:
    """The error of a run that does not skip bad lines."""
    remedy = Message("correct it, or leave such lines out by {on_bad_line='skip'}")
    return BadLineError.of(source.path, source.unit, bad, remedy)


class Batch(NamedTuple):
    """Rows to learn from at once, the bad lines met before the last of them (the first, and how many), and its end."""

    rows: Rows | None
    bad: list[BadLine]
    n_bad: int
    end: Place


def batches(blocks: Iterator[Block], size: int) -> Iterator[Batch]:
    """Cut blocks into batches of exactly `size` rows, but for the last, whatever the sizes of the blocks.

    A bad line belongs to the batch in which the next row is: a run that stops at the end of a batch and goes on from
    there meets every bad line once.
    """
    waiting: list[Rows] = []
    n_waiting, skipped = 0, 0  # rows without a batch, bad lines after the last of them
    bad: deque[BadLine] = deque()
    end: Place | None = None
    for block in blocks:
        bad.extend(block.bad[: max(0, _MOST_WAITING - len(bad))])
        end, rows = block.end, block.rows
        if not len(rows):
            skipped += block.n_bad
            continue
        since = rows.skipped.copy()
        since[0] += skipped
        skipped = block.n_bad - int(rows.skipped.sum())
        waiting.append(replace(rows, skipped=since))
        n_waiting += len(rows)
        if n_waiting >= size:
            rows = Rows.joined(waiting)
            whole = n_waiting - n_waiting % size
            for start in range(0, whole, size):
                yield _batch(rows.part(start, start + size), bad)
            n_waiting -= whole
            waiting = [rows.part(whole, len(rows))] if n_waiting else []
    if end is not None:
        rest = Rows.joined(waiting) if waiting else None
        n_bad = skipped if rest is None else skipped + int(rest.skipped.sum())
        yield Batch(rest, list(bad), n_bad, end)


def _batch(rows: Rows, bad: deque[BadLine]) -> Batch:
    """A full batch, with the bad lines before its last row, which are taken off."""
    before = []
    while bad and bad[0].line < rows.end.line:
        before.append(bad.popleft())
    return Batch(rows, before, int(rows.skipped.sum()), rows.end)
