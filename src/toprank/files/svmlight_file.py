"""Svmlight files: sparse rows without names."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from toprank.exceptions import Message
from toprank.files import _lines
from toprank.files._lines import Found
from toprank.files.content import Passage, content_size, is_pipe
from toprank.files.errors import TableError
from toprank.files.labels import Labels, label_reason, number_labels
from toprank.files.rows import Place
from toprank.files.text import TextFile, filled, number_reason

# So many features may be in a file with fewer entries.
_MANY_FEATURES = 1 << 24
_MARK = codecs.BOM_UTF8


class SvmlightFile(TextFile):
    """Rows ``label index:value ...``, as CSR; without `n_features` the file is read once for the largest index."""

    def __init__(
        self, path: str, labels: Labels, n_features: int | None, zero_based: bool, grows: bool = False
    ) -> None:
        if n_features is None and is_pipe(path):
            raise TableError.saying(
                "{path!r} is read once, which does not tell the largest index in time; pass {n_features=} for svmlight",
                path=path,
            )
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
            raise TableError.saying(
                "{path!r} has the index {largest} and {n_entries} entries in all; without {n_features=} the limit is "
                "{most} features, so give it, or number the features anew",
                path=self.path,
                largest=n_features - 1 + self.base,
                n_entries=n_entries,
                n_features=n_features,
                most=most,
            )
        return max(1, n_features)

    def _parse(self, content: bytes, n_lines: int, stops: bool) -> tuple[Any, Found, tuple[int, int, int, int]]:
        # a value takes four characters at least: a blank, an index, a colon, a digit
        n_values = min(content.count(b":"), len(content) // 4 + 1)
        data, indices, indptr = np.empty(n_values), np.empty(n_values, np.int32), np.empty(n_lines + 1, np.int32)
        values, arguments = (data, indices, indptr), (self.base, self.n_features, self.labels)
        found, counts = filled(_lines.parse_svmlight, content, stops, arguments, values, n_lines)
        for place, _, start, end in found.left[: counts[2]]:
            data[place] = float(content[start:end])
        n_rows = counts[0]
        used = int(indptr[n_rows])
        X = csr_array((data[:used], indices[:used], indptr[: n_rows + 1]), shape=(n_rows, self.n_features))
        return X, found, counts

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


@dataclass(frozen=True)
class SparseBatch:
    """Some rows of an svmlight file: a CSR array, labels 0 and 1, the number of the first row, the bytes read."""

    X: Any
    y: NDArray[np.int64]
    first_row: int
    position: int


class SvmlightTable:
    """Rows ``label index:value ...``; the features have no names."""

    names: tuple[str, ...] = ()

    def __init__(self, path: str, zero_based: bool = False) -> None:
        self.path = path
        self.zero_based = zero_based
        self.size = content_size(path)

    def batches(self, n_features: int | None = None, positive: float | None = None) -> Iterator[SparseBatch]:
        """Rows, some megabytes at a time; without `n_features` the file is read before for the largest index.

        Without `positive` labels are 1, and 0 or -1; otherwise all others are negative.
        """
        source = SvmlightFile(self.path, number_labels(positive), n_features, self.zero_based)
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
