"""Text files as sources of rows: comma-separated values and svmlight."""

from __future__ import annotations

import codecs
import csv
import hashlib
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from toprank.exceptions import InputError, Message
from toprank.streams import _lines
from toprank.streams._lines import IGNORED, TARGET, Found, Labels
from toprank.streams.columns import choose_columns
from toprank.streams.content import SAMPLE, Content, Passage
from toprank.streams.reasons import label_reason, number_reason, shown
from toprank.streams.rows import BadLine, BadLineError, Block, Place, Rows

_BLOCK = 4 << 20
_LONGEST_LINE = 256 << 20
# So many features may be in an svmlight file with fewer entries.
_MANY_FEATURES = 1 << 24
_MOST_PEEKED = 64 << 20
_MARK = codecs.BOM_UTF8
# So many bad lines and so much text (or all there is) before the first row are not a few bad lines but another format.
_MANY_LINES = 1000
_MUCH_TEXT = 4 << 20


class TextFile:
    """Lines of a file in blocks, with their places; a subclass makes rows of them.

    Parameters
    ----------
    path : str
        The file.
    labels : Labels
        Which labels are positive.
    grows : bool
        Whether the file may still be written to: a last line without its end is then left for later.
    """

    unit = "line"
    n_features: int
    feature_names: list[str] | None = None

    def __init__(self, path: str, labels: Labels, grows: bool) -> None:
        self.path = path
        self.labels = labels
        self.grows = grows
        self.is_begun, self.unended = True, False
        self._content = Content(path)
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
            BadLine(line + int(number), self._reason(int(what), int(place), shown(content, a, b)))
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
            if n_rest > _LONGEST_LINE:
                raise ValueError(
                    f"{self.path!r} has a line of more than {_LONGEST_LINE >> 20} MB at byte {position}; check that "
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


class SvmlightFile(TextFile):
    """Rows ``label index:value ...``, as CSR.

    Parameters
    ----------
    path : str
        The file.
    labels : Labels
        Which labels are positive.
    n_features : int or None
        Number of features; None: the file is read once for the largest index.
    zero_based : bool
        Whether the first feature has the index 0 instead of 1.
    grows : bool
        Whether a last line without its end is left for later.
    """

    def __init__(
        self, path: str, labels: Labels, n_features: int | None, zero_based: bool, grows: bool = False
    ) -> None:
        super().__init__(path, labels, grows)
        with self._content.opened() as (stream, _):
            start = stream.peek(len(_MARK))[: len(_MARK)]
        self.is_begun = not grows or len(start) == len(_MARK)
        self._mark_size = len(_MARK) if start == _MARK else 0
        self._mark = self._mark_size, Passage(0, start)
        self.base = 0 if zero_based else 1
        self.n_features = np.iinfo(np.int32).max
        self.n_features = self._largest_index() if n_features is None else int(n_features)

    def start(self) -> Place:
        """After the byte order mark, if there is one."""
        return Place(self._mark_size, 0)

    def _largest_index(self) -> int:
        n_features = n_entries = 0
        for block in self.blocks(self.start()):
            indices = block.rows.X.indices
            n_features, n_entries = max(n_features, 1 + int(indices.max(initial=-1))), n_entries + len(indices)
        most = max(_MANY_FEATURES, n_entries)
        if n_features > most:  # a model has some numbers for each of them, whether they occur or not
            raise InputError.saying(
                "{found}; without {n_features=} the limit is {most} features, so give it, or number the features anew",
                found=f"{self.path!r} has the index {n_features - 1 + self.base} and {n_entries} entries in all",
                n_features=n_features,
                most=most,
            )
        return max(1, n_features)

    def _parse(self, content: bytes, n_lines: int, stops: bool) -> tuple[Any, Found, tuple[int, int, int, int]]:
        # a value takes four characters at least: a blank, an index, a colon, a digit
        n_values = min(content.count(b":"), len(content) // 4 + 1)
        data, indices, indptr = np.empty(n_values), np.empty(n_values, np.int32), np.empty(n_lines + 1, np.int32)
        values, arguments = (data, indices, indptr), (self.base, self.n_features, self.labels)
        found, counts = _filled(_lines.parse_svmlight, content, stops, arguments, values, n_lines)
        for place, _, start, end in found.left[: counts[2]]:
            data[place] = float(content[start:end])
        n_rows = counts[0]
        used = int(indptr[n_rows])
        return (
            csr_array((data[:used], indices[:used], indptr[: n_rows + 1]), shape=(n_rows, self.n_features)),
            found,
            counts,
        )

    def _reason(self, what: int, place: int, text: str) -> str:
        if what == _lines.INDEX and place == 0:
            return Message("{text!r} has the index 0; pass {zero_based=True} if indices start at 0", text=text)
        return {
            _lines.LABEL: label_reason(text, self.labels),
            _lines.PAIR: f"{text!r} is not of the form index:value",
            _lines.INDEX: f"{text!r} has the index {place}, and there are {self.n_features} features; "
            "start a new model for more",
            _lines.ORDER: f"{text!r} does not have a larger index than the one before",
            _lines.IS_MISSING: f"feature {place} has no value; correct it, or leave the pair out",
        }.get(what) or number_reason(what, f"feature {place}", text, "correct it")


class CSVFile(TextFile):
    """Numbers between commas or another delimiter, after a line of names; as a dense array.

    Parameters
    ----------
    path : str
        The file.
    labels : Labels
        Which labels are positive.
    target : str
        Name of the column of labels.
    features : list of str or None
        Columns to learn from; None: all but the target.
    delimiter : str or None
        One character; None: the one of ``, ; tab |`` that the line of names has most of.
    fill_missing : float or None
        What stands for a missing value; None: a line with a missing value is bad.
    ignore : sequence of str
        Columns not to learn from, where `features` is None.
    grows : bool
        Whether a last line without its end is left for later.
    """

    def __init__(
        self,
        path: str,
        labels: Labels,
        target: str,
        features: list[str] | None,
        delimiter: str | None,
        fill_missing: float | None,
        ignore: Sequence[str] = (),
        grows: bool = False,
    ) -> None:
        super().__init__(path, labels, grows)
        with self._content.opened() as (stream, _):
            header = stream.readline(_LONGEST_LINE)
        self.is_begun = not grows or header.endswith(b"\n")
        self._header_size = len(header)
        self._mark = self._header_size, Passage(0, header)
        line = header.decode("utf-8-sig", errors="replace").rstrip("\r\n")
        self.delimiter = max(",;\t|", key=line.count) if delimiter is None else delimiter
        try:
            self.columns = [name.strip() for name in next(csv.reader([line], delimiter=self.delimiter), [])]
        except csv.Error as error:
            raise ValueError(
                f"the first line of {path!r} is no line of names ({error}); lines must end with \\n or \\r\\n"
            ) from None
        self.feature_names = choose_columns(path, self.columns, target, features, ignore)
        self.n_features = len(self.feature_names)
        slot_of = {name: slot for slot, name in enumerate(self.feature_names)} | {target: TARGET}
        self._slots = np.array([slot_of.get(name, IGNORED) for name in self.columns])
        self._fill = np.nan if fill_missing is None else float(fill_missing)

    def start(self) -> Place:
        """After the names."""
        return Place(self._header_size, 1)

    def _parse(self, content: bytes, n_lines: int, stops: bool) -> tuple[Any, Found, tuple[int, int, int, int]]:
        # a row takes as many characters as columns at least, of delimiters and its end
        most_rows = min(n_lines, len(content) // len(self._slots) + 1) + 1
        X = np.empty((most_rows, self.n_features))
        arguments = (ord(self.delimiter), self._slots, self.labels, self._fill)
        found, counts = _filled(_lines.parse_csv, content, stops, arguments, (X,), most_rows)
        for slot, row, start, end in found.left[: counts[2]]:
            X[row, slot] = float(content[start:end])
        return X[: counts[0]], found, counts

    def _reason(self, what: int, place: int, text: str) -> str:
        if what == _lines.FIELDS:
            return f"its number of fields is {place}, and that of the first line is {len(self.columns)}"
        name = self.columns[place]
        if what == _lines.QUOTE:
            return f"a quoted field, column {name!r}, is not closed in its line"
        if what == _lines.LABEL:
            return label_reason(text, self.labels)
        remedy = Message(
            "leave a column of text out by {features=}, or encode it before",
            elsewhere="leave a column of text out by {ignore=}, or encode it before",
            ignore=name,
        )
        return number_reason(what, f"column {name!r}", text, remedy)


def _filled(
    kernel: Any, content: bytes, stops: bool, arguments: tuple[Any, ...], values: tuple[Any, ...], n_rows: int
) -> tuple[Found, tuple[int, int, int, int]]:
    """What a kernel finds in a text, with room for all numbers that are left to Python, and how much it is."""
    text, found = np.frombuffer(content, np.uint8), _lines.room(n_rows)
    counts = kernel(text, stops, *arguments, *values, found)
    if counts[2] > len(found.left):
        found = _lines.room(n_rows, counts[2])
        counts = kernel(text, stops, *arguments, *values, found)
    return found, counts
