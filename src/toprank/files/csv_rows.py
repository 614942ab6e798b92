"""CSV files of numbers as rows with their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toprank.exceptions import Message
from toprank.files import _lines
from toprank.files._lines import IGNORED, TARGET, Found
from toprank.files.content import Passage
from toprank.files.header import read_header
from toprank.files.labels import Labels, label_reason
from toprank.files.rows import Place
from toprank.files.source import chosen_features
from toprank.files.text import TextFile, filled, number_reason


class CSVFile(TextFile):
    """Numbers between commas or another delimiter, after a line of names; as a dense array.

    Without `features` all columns are learned from but `target` and `ignore`; without `fill_missing` a line with a
    missing value is bad.
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
        encoding: str | None = None,
    ) -> None:
        super().__init__(path, labels, grows, encoding)
        header = read_header(self._content, delimiter)
        self._header = header
        self.is_begun = not grows or header.text.endswith(b"\n")
        self._header_size = len(header.text)
        self._mark = self._header_size, Passage(0, header.text)
        self.delimiter, self.columns = header.delimiter, header.names
        self.feature_names = chosen_features(path, self.columns, target, features, ignore)
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
        found, counts = filled(_lines.parse_csv, content, stops, arguments, (X,), most_rows)
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
