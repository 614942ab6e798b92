"""CSV files, read in blocks of bytes that end with a row."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from toprank.files.column_kinds import found_kinds
from toprank.files.content import Content
from toprank.files.errors import TableError
from toprank.files.header import LONGEST_ROW, long_fields, not_utf8, read_header
from toprank.files.source import NUMBER, TEXT, VERBATIM, Batch, batch_of, reading_errors, repeated
from toprank.files.spelling import PLAIN, Spelling, polars

BLOCK = 8 << 20
_GUESS = 1 << 20
_PART = 1 << 18
_SHOWN = 1 << 12
_NO_ROWS = "it has a line of names and no rows; give a file with rows"


class CSVTable:
    """A table of comma-separated values whose first line holds the names.

    A field may be in quotes and may then contain delimiters and line ends. Spaces around a field do not count, nor do
    blank lines. What a missing value and a number look like is in `spelling`, to which `kinds` adds what it finds. A
    pipe is read once, so the kinds of its columns must be known. `block` is how many bytes are read at once.
    """

    def __init__(
        self, path: str, delimiter: str | None = None, block: int = BLOCK, spelling: Spelling | None = None
    ) -> None:
        self.path = path
        self.spelling = spelling or Spelling()
        self.notes: list[str] = []
        self._block = block
        self._content = Content(path, self.spelling.encoding)
        self.size = self._content.size
        header = read_header(self._content, delimiter)
        self._start, self.names, self.delimiter = len(header.text), header.names, header.delimiter
        self._short_names = [f"c{i}" for i in range(len(self.names))]
        self._header = (self.delimiter.join(self._short_names) + "\n").encode()
        d = re.escape(self.delimiter.encode())
        self._quoted = re.compile(rb'(^|%s|\n) *("[^"]*(?:""[^"]*)*") *(?=%s|\r?\n|\Z)' % (d, d))

    def kinds(self, as_text: Collection[str] = ()) -> dict[str, str]:
        """The kind of each column in the first rows."""
        if self._content.is_pipe:
            raise TableError(
                f"{self.path!r} is a pipe, which can be read once, and it is needed twice; save it in a file, and give "
                "that"
            )
        block, line, _, closed = next(self._blocks(_GUESS), (b"", 0, 0, True))
        if not self._rows_of(block).strip():
            raise TableError(f"{self.path!r} cannot be used: {_NO_ROWS}")
        several = {*repeated(self.names)}
        unique = [name for name in self.names if name not in several]
        fields = self._parse(block, line, closed, dict.fromkeys(unique, VERBATIM))
        open_columns = [name for name in unique if name not in as_text]
        found = found_kinds({name: self.spelling.text(fields[name]) for name in open_columns}, self.spelling)
        self.spelling, self.notes = replace(self.spelling, marks=found.marks), found.notes
        return {name: found.kinds.get(name, TEXT) for name in unique}

    def batches(self, kinds: Mapping[str, str]) -> Iterator[Batch]:
        """Rows with the named columns, some megabytes at a time."""
        row = 0
        for block, line, position, closed in self._blocks(self._block):
            frame = self._parse(block, line, closed, kinds)
            if len(frame):
                yield batch_of(frame, kinds, self.spelling, self._places(block, line, len(frame)), row, position)
            row += len(frame)

    def _blocks(self, size: int) -> Iterator[tuple[bytes, int, int, bool]]:
        """Whole rows after a line of short names, the number of their first line, their end, if quotes are closed."""
        position, line, rest = self._start, 2, b""
        with self._content.opened(self._start) as (stream, _):
            while new := _filled(stream, size):
                cut = new.rfind(b"\n") + 1
                if _quotes(rest, len(rest)) != _quotes(new, cut):
                    # the last line end is between quotes: go back to one that is not
                    rest, new = b"", rest + new
                    cut = _end_of_last_row(new)
                if cut:
                    block = b"".join((self._header, rest, memoryview(new)[:cut]))
                    position += len(block) - len(self._header)
                    yield block, line, position, True
                    line += _count(block, "\n") - 1
                    rest = new[cut:]
                    continue
                rest += new
                if len(rest) > LONGEST_ROW:
                    raise TableError(
                        f"{self.path!r} has a row of more than {LONGEST_ROW >> 20} MB at line {line}; "
                        "perhaps a quote is not closed there"
                    )
        self._content.close()
        if rest:
            # with its end, as polars takes no notice of a delimiter at the end of all
            yield self._header + rest + b"\n", line, position + len(rest), not _quotes(rest, len(rest))

    def _rows_of(self, block: bytes) -> bytes:
        return block[len(self._header) :]

    def _parse(self, block: bytes, line: int, closed: bool, kinds: Mapping[str, str]) -> Any:
        """A frame of a block; the fast way where polars takes it as it is, else a careful one.

        After a quote that is not closed polars would lose rows.
        """
        pl = polars()
        if b'" ' in block or b' "' in block:  # blanks around a quoted field do not count
            block = self._quoted.sub(rb"\1\2", block)
        place_of = {i: name for i, name in enumerate(self.names) if name in kinds}
        last = self._short_names[-1]  # it shows short lines
        dtypes = {self._short_names[i]: self._dtype(name, kinds[name]) for i, name in place_of.items()}
        dtypes.setdefault(last, pl.String)
        texts = dict.fromkeys(dtypes, pl.String)
        frame = self._read(block, dtypes)
        if frame is None:  # a number with spaces around it, a missing word, something else
            frame = self._read(block, texts)
        if frame is None or not closed or not self._is_regular(block, frame, frame[last]):
            checked, n_rows = self._checked(self._rows_of(block), line)
            frame = self._read(checked, texts)
            frame = None if frame is None or len(frame) != n_rows else frame
        if frame is None:
            raise TableError(f"the rows of {self.path!r} from line {line} on cannot be read; check their quotes")
        return frame.rename({self._short_names[i]: name for i, name in place_of.items()}).select(list(kinds))

    def _dtype(self, name: str, kind: str) -> Any:
        """How polars reads a column."""
        return polars().Float64 if kind == NUMBER and self.spelling.marks_of(name) == PLAIN else polars().String

    def _read(self, block: bytes, dtypes: dict[str, Any]) -> Any:
        """A frame, or None if polars does not take the block."""
        pl = polars()
        wanted = [name for name in self._short_names if name in dtypes]
        try:
            return pl.read_csv(
                block,
                separator=self.delimiter,
                columns=None if b'"' in block else wanted,  # of some columns polars does not tell long lines
                schema={name: dtypes.get(name, pl.String) for name in self._short_names},
            ).select(wanted)
        except reading_errors():
            return None

    def _is_regular(self, block: bytes, frame: Any, last: Any) -> bool:
        """Whether all lines of a block have as many fields as there are names, by what polars made of it.

        A short line has no value in the last column, and where all columns were read polars has refused long lines;
        otherwise delimiters are counted. With quotes, which may hold some, that is left to the careful way.
        """
        none_is_short = not last.has_nulls()
        if b'"' in block or (none_is_short and frame.width == len(self.names)):
            return none_is_short
        per_line = len(self.names) - 1
        if _count(block, self.delimiter) != (len(frame) + 1) * per_line:
            return False
        if none_is_short:
            return True
        content = np.frombuffer(block, np.uint8)
        delimiters, ends = np.flatnonzero(content == ord(self.delimiter)), np.flatnonzero(content == ord("\n"))
        return bool(np.all(np.searchsorted(delimiters, ends) == per_line * np.arange(1, len(ends) + 1)))

    def _checked(self, content: bytes, line: int) -> tuple[bytes, int]:
        """A block without blank lines and its number of rows, after a look at each; the reason if one is wrong."""
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            wrong = content[error.start : error.start + _SHOWN]
            raise not_utf8(self.path, line + content.count(b"\n", 0, error.start), wrong) from None
        kept = io.StringIO()
        writer = csv.writer(kept, delimiter=self.delimiter, lineterminator="\n")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, strict=True)
        before = n_rows = 0  # lines before that of the row
        try:
            with long_fields():
                for fields in reader:
                    if not _is_blank(fields, len(self.names)):
                        if len(fields) != len(self.names):
                            raise self._other_length(line + before, len(fields))
                        writer.writerow(fields)
                        n_rows += 1
                    before = reader.line_num
        except csv.Error as error:
            raise TableError(f"line {line + before} of {self.path!r} is no CSV ({error}); correct its quotes") from None
        return self._header + kept.getvalue().encode(), n_rows

    def _other_length(self, line: int, length: int) -> TableError:
        return TableError(
            f"line {line} of {self.path!r} has {length} fields, and the line of names has {len(self.names)}; correct "
            f"the line, or quote fields that contain {self.delimiter!r}"
        )

    def _places(self, block: bytes, line: int, n_rows: int) -> Callable[[int], str]:
        """Where a row of a block is, in words."""
        return lambda row: f"line {self._line_of(block, row, line, n_rows)}"

    def _line_of(self, block: bytes, row: int, line: int, n_rows: int) -> int:
        """Number of the line in which a row of a block starts."""
        if b'"' not in block and _count(block, "\n") == n_rows + 1:  # no line is blank
            return line + row
        text = io.StringIO(self._rows_of(block).decode("utf-8", "replace"), newline="")
        reader = csv.reader(text, delimiter=self.delimiter)
        start = line
        with long_fields():
            for fields in reader:
                if not _is_blank(fields, len(self.names)):
                    if row == 0:
                        break
                    row -= 1
                start = line + reader.line_num
        return start


def _filled(stream: Any, size: int) -> bytes:
    """So many bytes, which a pipe gives little by little; fewer at the end."""
    parts, n_read = [], 0
    while n_read < size and (new := stream.read(size - n_read)):
        parts.append(new)
        n_read += len(new)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _quotes(content: bytes, end: int) -> int:
    """Whether the number of quotes is odd; most files have none, and that is found faster than counted."""
    return content.count(b'"', 0, end) % 2 if b'"' in content else 0


def _count(content: bytes, character: str) -> int:
    """How often a character occurs; by parts that stay in the cache, which is faster than by each occurrence."""
    codes = np.frombuffer(content, np.uint8)
    parts = range(0, len(codes), _PART)
    return sum(int(np.count_nonzero(codes[start : start + _PART] == ord(character))) for start in parts)


def _end_of_last_row(content: bytes) -> int:
    """Where the last whole row ends; a line end between quotes ends no row. 0 if there is none."""
    end = content.rfind(b"\n") + 1
    inside = content.count(b'"', 0, end) % 2
    while inside and end:
        # the row starts in the line of the last quote or before it
        start = content.rfind(b"\n", 0, content.rfind(b'"', 0, end)) + 1
        inside = (inside + content.count(b'"', start, end)) % 2
        end = start
    return end


def _is_blank(fields: list[str], n_names: int) -> bool:
    """Whether a line holds nothing; in a table of one column an empty line is a missing value."""
    return n_names > 1 and (not fields or (len(fields) == 1 and not fields[0].strip()))
