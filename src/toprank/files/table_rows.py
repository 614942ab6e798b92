"""Rows of tables with text, with their labels and places, for a model that knows its columns.

Columns are read as they stand in the file. What they hold is found in the first rows, which `first_table` gives, by the
rules of `toprank.files.column_reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.files import _lines
from toprank.files._lines import IGNORED, TARGET, Found
from toprank.files.column_kinds import found_kinds
from toprank.files.csv_block import BlockParser
from toprank.files.csv_rows import CSVFile
from toprank.files.errors import TableError
from toprank.files.frame_rows import FrameRows
from toprank.files.rows import Block, Place, Rows
from toprank.files.source import NUMBER, TEXT, VERBATIM, Batch, TypedTable, batch_of
from toprank.files.spelling import Spelling, polars
from toprank.files.text import filled


class CSVTableRows(CSVFile):
    """Lines of a CSV file whose columns are any: a frame of polars with the fields as text."""

    def __init__(self, path: str, *arguments: Any) -> None:
        super().__init__(path, *arguments)
        self.names = self.columns
        self._parser = BlockParser(path, self._header)
        self._labels_only = np.where(self._slots == TARGET, TARGET, IGNORED)
        self._line = 0

    def _block(self, content: bytes, start: Place, stops: bool) -> Block:
        self._line = start.line + 1
        return super()._block(content, start, stops)

    def _parse(self, content: bytes, n_lines: int, stops: bool) -> tuple[Any, Found, tuple[int, int, int, int]]:
        most_rows = min(n_lines, len(content) // len(self._slots) + 1) + 1
        arguments = (ord(self.delimiter), self._labels_only, self.labels, np.nan)
        found, counts = filled(_lines.parse_csv, content, stops, arguments, (np.empty((most_rows, 0)),), most_rows)
        n_rows, n_bad = counts[:2]
        return self._fields(_good_lines(content, found.ends[:n_rows], n_bad), n_rows), found, counts

    def _fields(self, lines: bytes, n_rows: int) -> Any:
        names: Any = self.feature_names
        if not n_rows:
            return polars().DataFrame(schema=dict.fromkeys(names, polars().String))
        kinds = dict.fromkeys(names, VERBATIM)
        frame = self._parser.frame(self._parser.header + lines, self._line, True, kinds, Spelling())
        if len(frame) != n_rows:
            raise TableError(f"the rows of {self.path!r} from line {self._line} on cannot be read; check their quotes")
        return frame

    def first_table(self, rows: Rows, spelling: Spelling) -> Any:
        """The first rows, as a table to look at."""
        return _FirstOfText(self.path, rows, spelling, self.unit)


def _good_lines(content: bytes, ends: NDArray[np.int64], n_bad: int) -> bytes:
    """The lines that end there, of a text with so many others."""
    if not len(ends):
        return b""
    good = content[: ends[-1]]
    if n_bad:
        good = b"".join(content[content.rfind(b"\n", 0, end - 1) + 1 : end] for end in ends.tolist())
    return good if good.endswith(b"\n") else good + b"\n"


class FrameTableRows(FrameRows):
    """Rows of a Parquet or NumPy file whose columns are any: a frame of polars."""

    def _usable_features(self, features: list[str]) -> list[str]:
        self.types = {name: self._table.types[name] for name in features}
        self.names = self._table.names
        return [name for name in features if self.types[name] in (NUMBER, TEXT)]

    def _kinds(self) -> dict[str, str]:
        return {name: NUMBER if self.types[name] == NUMBER else VERBATIM for name in self._features}

    def _values(self, frame: Any) -> Any:
        return frame.select(self._features)

    def _usable(self, X: Any) -> Any:
        return np.ones(len(X), bool)

    def _chosen(self, X: Any, good: NDArray[np.bool_]) -> Any:
        return X.filter(good)

    def first_table(self, rows: Rows, spelling: Spelling) -> Any:
        """The first rows, as a table to look at."""
        return _FirstOfTyped(self.path, rows, spelling, self.unit, self.types)


class _FirstOfText:
    """The first rows of a text file: a table in memory, as `toprank.files.source.Source` says."""

    def __init__(self, path: str, rows: Rows, spelling: Spelling, unit: str) -> None:
        self.path, self.names, self.size, self.spelling = path, list(rows.X.columns), len(rows), spelling
        self.notes: list[str] = []
        self._frame, self._where = rows.X, places(rows, unit)

    def kinds(self, as_text: Collection[str] = ()) -> dict[str, str]:
        """What the columns hold in these rows."""
        texts = {name: self.spelling.text(self._frame[name]) for name in self.names if name not in as_text}
        found = found_kinds(texts, self.spelling)
        self.spelling, self.notes = replace(self.spelling, marks=found.marks), found.notes
        return {name: found.kinds.get(name, TEXT) for name in self.names}

    def batches(self, kinds: Mapping[str, str]) -> Iterator[Batch]:
        """All rows at once."""
        yield batch_of(self._frame.select(list(kinds)), kinds, self.spelling, self._where, 0, self.size)


class _FirstOfTyped(TypedTable):
    """The first rows of a file that knows the types of its columns."""

    def __init__(self, path: str, rows: Rows, spelling: Spelling, unit: str, types: dict[str, str]) -> None:
        self.path, self.names, self.size, self.types = path, list(types), len(rows), types
        self.spelling = spelling
        self._frame, self._where = rows.X, places(rows, unit)

    def batches(self, kinds: Mapping[str, str], first_row: int = 0) -> Iterator[Batch]:
        """All rows at once."""
        yield batch_of(self._frame.select(list(kinds)), kinds, self.spelling, self._where, 0, self.size)


def places(rows: Rows, unit: str) -> Callable[[int], str]:
    """Where in the file a row is, in words."""
    return lambda row: f"{unit} {rows.lines[row]}"
