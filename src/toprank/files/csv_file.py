"""CSV files, read in blocks of bytes that end with a row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from toprank.files.column_kinds import found_kinds
from toprank.files.content import Content
from toprank.files.csv_block import BlockParser, count_of
from toprank.files.errors import TableError
from toprank.files.header import LONGEST_ROW, read_header
from toprank.files.source import TEXT, VERBATIM, Batch, batch_of, repeated
from toprank.files.spelling import Spelling

BLOCK = 8 << 20
_GUESS = 1 << 20
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
        self._parser = BlockParser(path, header)

    def kinds(self, as_text: Collection[str] = ()) -> dict[str, str]:
        """The kind of each column in the first rows."""
        if self._content.is_pipe:
            raise TableError(
                f"{self.path!r} is a pipe, which can be read once, and it is needed twice; save it in a file, and give "
                "that"
            )
        block, line, _, closed = next(self._blocks(_GUESS), (b"", 0, 0, True))
        if not self._parser.rows_of(block).strip():
            raise TableError(f"{self.path!r} cannot be used: {_NO_ROWS}")
        several = {*repeated(self.names)}
        unique = [name for name in self.names if name not in several]
        fields = self._parser.frame(block, line, closed, dict.fromkeys(unique, VERBATIM), self.spelling)
        open_columns = [name for name in unique if name not in as_text]
        found = found_kinds({name: self.spelling.text(fields[name]) for name in open_columns}, self.spelling)
        self.spelling, self.notes = replace(self.spelling, marks=found.marks), found.notes
        return {name: found.kinds.get(name, TEXT) for name in unique}

    def batches(self, kinds: Mapping[str, str]) -> Iterator[Batch]:
        """Rows with the named columns, some megabytes at a time."""
        row = 0
        for block, line, position, closed in self._blocks(self._block):
            frame = self._parser.frame(block, line, closed, kinds, self.spelling)
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
                    block = b"".join((self._parser.header, rest, memoryview(new)[:cut]))
                    position += len(block) - len(self._parser.header)
                    yield block, line, position, True
                    line += count_of(block, "\n") - 1
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
            yield self._parser.header + rest + b"\n", line, position + len(rest), not _quotes(rest, len(rest))

    def _places(self, block: bytes, line: int, n_rows: int) -> Callable[[int], str]:
        """Where a row of a block is, in words."""
        return lambda row: f"line {self._parser.line_of(block, row, line, n_rows)}"


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
