"""Blocks of CSV as frames of text and numbers, for all who read it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from toprank.files.errors import TableError
from toprank.files.header import Header, long_fields, not_utf8
from toprank.files.source import NUMBER, reading_errors
from toprank.files.spelling import PLAIN, Spelling, polars

_PART = 1 << 18
_SHOWN = 1 << 12


class BlockParser:
    """Makes frames of whole rows of a file with these names and this delimiter.

    A field may be in quotes. Spaces around a field do not count, nor do blank lines.
    """

    def __init__(self, path: str, found: Header) -> None:
        self.path, self.names, self.delimiter = path, found.names, found.delimiter
        self._short_names = [f"c{i}" for i in range(len(self.names))]
        self.header = (self.delimiter.join(self._short_names) + "\n").encode()
        """The line of short names that a block starts with."""
        d = re.escape(self.delimiter.encode())
        self._quoted = re.compile(rb'(^|%s|\n) *("[^"]*(?:""[^"]*)*") *(?=%s|\r?\n|\Z)' % (d, d))

    def rows_of(self, block: bytes) -> bytes:
        """A block without its line of names."""
        return block[len(self.header) :]

    def frame(self, block: bytes, line: int, closed: bool, kinds: Mapping[str, str], spelling: Spelling) -> Any:
        """A frame of a block, which starts with `header`; the fast way where polars takes it so, else a careful one.

        After a quote that is not closed polars would lose rows.
        """
        pl = polars()
        if b'" ' in block or b' "' in block:  # blanks around a quoted field do not count
            block = self._quoted.sub(rb"\1\2", block)
        place_of = {i: name for i, name in enumerate(self.names) if name in kinds}
        last = self._short_names[-1]  # it shows short lines
        dtypes = {self._short_names[i]: _dtype(name, kinds[name], spelling) for i, name in place_of.items()}
        dtypes.setdefault(last, pl.String)
        texts = dict.fromkeys(dtypes, pl.String)
        frame = self._read(block, dtypes)
        if frame is None:  # a number with spaces around it, a missing word, something else
            frame = self._read(block, texts)
        if frame is None or not closed or not self._is_regular(block, frame, frame[last]):
            checked, n_rows = self._checked(self.rows_of(block), line)
            frame = self._read(checked, texts)
            frame = None if frame is None or len(frame) != n_rows else frame
        if frame is None:
            raise TableError(f"the rows of {self.path!r} from line {line} on cannot be read; check their quotes")
        return frame.rename({self._short_names[i]: name for i, name in place_of.items()}).select(list(kinds))

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
        if count_of(block, self.delimiter) != (len(frame) + 1) * per_line:
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
        return self.header + kept.getvalue().encode(), n_rows

    def _other_length(self, line: int, length: int) -> TableError:
        return TableError(
            f"line {line} of {self.path!r} has {length} fields, and the line of names has {len(self.names)}; correct "
            f"the line, or quote fields that contain {self.delimiter!r}"
        )

    def line_of(self, block: bytes, row: int, line: int, n_rows: int) -> int:
        """Number of the line in which a row of a block starts."""
        if b'"' not in block and count_of(block, "\n") == n_rows + 1:  # no line is blank
            return line + row
        text = io.StringIO(self.rows_of(block).decode("utf-8", "replace"), newline="")
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


def _dtype(name: str, kind: str, spelling: Spelling) -> Any:
    """How polars reads a column."""
    return polars().Float64 if kind == NUMBER and spelling.marks_of(name) == PLAIN else polars().String


def count_of(content: bytes, character: str) -> int:
    """How often a character occurs; by parts that stay in the cache, which is faster than by each occurrence."""
    codes = np.frombuffer(content, np.uint8)
    parts = range(0, len(codes), _PART)
    return sum(int(np.count_nonzero(codes[start : start + _PART] == ord(character))) for start in parts)


def _is_blank(fields: list[str], n_names: int) -> bool:
    """Whether a line holds nothing; in a table of one column an empty line is a missing value."""
    return n_names > 1 and (not fields or (len(fields) == 1 and not fields[0].strip()))
