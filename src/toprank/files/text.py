"""Lines of text files as rows, with their places and the bad ones among them."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from toprank.exceptions import Message
from toprank.files import _lines
from toprank.files._lines import IS_INFINITE, IS_MISSING, Found
from toprank.files.content import SAMPLE, Content, Passage
from toprank.files.errors import shortened
from toprank.files.header import LONGEST_ROW
from toprank.files.labels import Labels
from toprank.files.rows import BadLine, BadLineError, Block, Place, Rows

_BLOCK = 4 << 20
_MOST_PEEKED = 64 << 20
# So many bad lines and so much text (or all there is) before the first row are not a few bad lines but another format.
_MANY_LINES = 1000
_MUCH_TEXT = 4 << 20


class TextFile:
    """Lines of a file in blocks, with their places; a subclass makes rows of them.

    A file that `grows` may still be written to: a last line without its end is then left for later.
    """

    unit = "line"
    n_features: int
    feature_names: list[str] | None = None

    def __init__(self, path: str, labels: Labels, grows: bool, encoding: str | None = None) -> None:
        self.path = path
        self.labels = labels
        self.grows = grows
        self.is_begun, self.unended = True, False
        self._content = Content(path, encoding)
        self.size = self._content.size
        self._read = Passage(0, b"")
        self._mark = (0, self._read)
        self._peeked: deque[tuple[Block, Passage]] = deque()
        self._coming: Iterator[Block] | None = None

    def start(self) -> Place:
        """Where the first row starts."""
        return Place(0, 0)

    @abstractmethod
    def _parse(self, content: bytes, n_lines: int, stops: bool) -> tuple[Any, Found, tuple[int, int, int, int]]:
        """The matrix of the rows in a block, what was found besides, and how many rows, bad lines, numbers, lines."""

    @abstractmethod
    def _reason(self, what: int, place: int, text: str) -> str:
        """What is wrong with a line, in words."""

    def blocks(self, start: Place, stops: bool = False) -> Iterator[Block]:
        """All rows from a place on; with `stops` up to the first bad line."""
        while self._peeked:
            block, self._read = self._peeked.popleft()
            yield block
        yield from self._coming or self._blocks(start, stops)

    def peek(self, stops: bool) -> Iterator[Block]:
        """Blocks from the start, which `blocks` gives again; of a pipe, those of its first part."""
        if not self._content.is_pipe:
            yield from self.blocks(self.start(), stops)
            return
        self._coming = self._blocks(self.start(), stops)
        for block in self._coming:
            self._peeked.append((block, self._read))
            yield block
            if block.end.position > _MOST_PEEKED:
                return

    def _blocks(self, start: Place, stops: bool) -> Iterator[Block]:
        barren = start == self.start()
        first_bad, n_barren = None, 0  # before the first row
        for content, (position, line) in self._contents(start):
            block = self._block(content, Place(position, line), stops)
            if barren:
                first_bad = first_bad or next(iter(block.bad), None)
                n_barren += int(block.rows.skipped[0]) if len(block.rows) else block.n_bad
                reached = block.rows.positions[0] if len(block.rows) else block.end.position
                if reached - start.position > _MUCH_TEXT:
                    self._refuse_other_format(first_bad, n_barren)
                barren = not len(block.rows)
            yield block
            if stops and block.bad:
                return
        if barren:
            self._refuse_other_format(first_bad, n_barren)

    def _block(self, content: bytes, start: Place, stops: bool) -> Block:
        """The rows of some whole lines."""
        position, line = start
        matrix, found, (n_rows, n_bad, _, n_lines) = self._parse(content, content.count(b"\n") + 1, stops)
        ends, lines = found.ends[:n_rows] + position, found.lines[:n_rows] + line
        rows = Rows(matrix, found.y[:n_rows], ends, lines, found.skipped[:n_rows])
        bad = [
            BadLine(line + int(number), self._reason(int(what), int(place), _shown(content, a, b)))
            for number, what, place, a, b in found.bad[:n_bad]
        ]
        return Block(rows, bad, n_bad, Place(position + len(content), line + n_lines))

    def _refuse_other_format(self, first_bad: BadLine | None, n_bad: int) -> None:
        if first_bad is not None and n_bad >= _MANY_LINES:
            raise BadLineError.of(self.path, self.unit, first_bad, f"and so are the {n_bad - 1} lines after it")

    def _contents(self, start: Place) -> Iterator[tuple[bytes, Place]]:
        """Whole lines, some megabytes at a time, and where they start."""
        position, line = start
        with self._content.opened(position) as (stream, before):
            if line and not before.endswith(b"\n"):
                line -= 1  # it had no end when it was read: the end that follows is not that of another line
            read = Passage(position - len(before), before)
            for content in self._whole_lines(stream, position):
                self._read = read = read.followed_by(content)
                yield content, Place(position, line)
                position, line = position + len(content), line + content.count(b"\n")
        self._content.close()

    def _whole_lines(self, stream: Any, position: int) -> Iterator[bytes]:
        """What a stream gives, cut after ends of lines; then the last line without its end, unless the file grows."""
        rest: list[bytes] = []
        n_rest = 0
        while new := stream.read(_BLOCK):
            cut = new.rfind(b"\n") + 1
            if cut:
                content = b"".join((*rest, new[:cut]))
                rest, n_rest, new = [], 0, new[cut:]
                position += len(content)
                yield content
            rest.append(new)
            n_rest += len(new)
            if n_rest > LONGEST_ROW:
                raise ValueError(
                    f"{self.path!r} has a line of more than {LONGEST_ROW >> 20} MB at byte {position}; check that "
                    "the format is right"
                )
        last = b"".join(rest)
        self.unended = self.grows and bool(last.strip())
        if last and not self.grows:
            yield last

    def passed(self, position: int) -> None:
        """Note that the last block is taken up to a position."""
        self._mark = position, self._read

    def identity(self, position: int) -> dict[str, Any]:
        """Sums over the first and the last bytes of the content that is read; what follows may have grown."""
        marked, read = self._mark
        if marked == position:
            last, whole = read.before(position), True
        else:
            with self._content.opened(position) as (stream, last):
                whole = not last or last.endswith(b"\n") or stream.peek(1)[:1] in (b"", b"\n", b"\r")
        first = self._content.first(min(position, SAMPLE))
        sums = [hashlib.sha256(part).hexdigest() for part in (first, last)]
        return {"read": len(first), "first": sums[0], "last": sums[1], "whole lines": whole}


def filled(
    kernel: Any, content: bytes, stops: bool, arguments: tuple[Any, ...], values: tuple[Any, ...], n_rows: int
) -> tuple[Found, tuple[int, int, int, int]]:
    """What a kernel finds in a text, with room for all numbers that are left to Python, and how much it is."""
    text, found = np.frombuffer(content, np.uint8), _lines.room(n_rows)
    counts = kernel(text, stops, *arguments, *values, found)
    if counts[2] > len(found.left):
        found = _lines.room(n_rows, counts[2])
        counts = kernel(text, stops, *arguments, *values, found)
    return found, counts


def _shown(content: bytes, start: int, end: int) -> str:
    """A part of a line for a message; it may be very long, and its beginning is enough."""
    return shortened(content[start : min(end, start + 200)].decode("utf-8", errors="replace"))


def number_reason(what: int, where: str, text: str, remedy: str) -> str:
    """What is wrong with a number, in words."""
    if what == IS_MISSING:
        return Message("{where} has no value; pass {fill_missing=} for a number to stand for it", where=where)
    if what == IS_INFINITE:
        return f"{where} has {text!r}, which is not finite"
    return Message("{where} has {text!r}, which is not a number; {remedy}", where=where, text=text, remedy=remedy)
