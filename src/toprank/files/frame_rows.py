"""Parquet and NumPy files of numbers as rows with their places."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import Message
from toprank.files._lines import IS_MISSING
from toprank.files.errors import TableError, shortened
from toprank.files.labels import Labels, label_reason, labels_in
from toprank.files.rows import MOST_BAD_LINES, BadLine, Block, Place, Rows
from toprank.files.source import DATE, NUMBER, TEXT, VERBATIM, TypedTable, chosen_features
from toprank.files.text import number_reason

_SAMPLE = 1 << 16


class FrameRows:
    """Columns of numbers, some ten thousand rows at a time; positions and lines are numbers of rows.

    The arguments are those of `CSVFile`, with an open Parquet or NumPy file.
    """

    unit = "row"
    is_begun, unended = True, False

    def __init__(
        self,
        table: TypedTable,
        labels: Labels,
        target: str,
        features: list[str] | None,
        fill_missing: float | None,
        ignore: Sequence[str] = (),
    ) -> None:
        self.path = table.path
        self.size = table.size
        self.labels = labels
        self.target = target
        self.fill_missing = fill_missing
        self._table = table
        self._features = self._usable_features(chosen_features(table.path, table.names, target, features, ignore))
        self.feature_names: list[str] | None = self._features
        self.n_features = len(self._features)
        if table.types[target] not in (NUMBER, TEXT, DATE):
            raise TableError(
                f"the target {target!r} of {self.path!r} has the type {table.types[target]}; labels are numbers or text"
            )

    def _usable_features(self, features: list[str]) -> list[str]:
        """The columns that are read; an error for those that cannot be."""
        for name in features:
            if name not in self._table.numbers:
                raise TableError.saying(
                    "the column {name!r} of {path!r} has the type {kind}, and a stream takes numbers; {remedy}",
                    name=name,
                    path=self.path,
                    kind=self._table.types[name],
                    remedy=Message(
                        "leave it out by {features=}, or encode it before",
                        elsewhere="leave it out by {ignore=}, or encode it before",
                        ignore=name,
                    ),
                )
        return features

    def _kinds(self) -> dict[str, str]:
        """How they are read."""
        return dict.fromkeys(self._features, NUMBER)

    def _values(self, frame: Any) -> Any:
        X = frame.select(self._features).to_numpy()
        return X if self.fill_missing is None else np.where(np.isnan(X), self.fill_missing, X)

    def _usable(self, X: Any) -> Any:
        """Which rows can be learned from."""
        return np.isfinite(X).all(axis=1)

    def _chosen(self, X: Any, good: NDArray[np.bool_]) -> Any:
        return np.ascontiguousarray(X[good])

    def start(self) -> Place:
        """The first row."""
        return Place(0, 0)

    def peek(self, stops: bool) -> Iterator[Block]:
        """Rows from the start."""
        return self.blocks(self.start(), stops)

    def passed(self, position: int) -> None:
        """Nothing: a part of the file is known by the whole."""

    def blocks(self, start: Place, stops: bool = False) -> Iterator[Block]:
        """All rows from a place on; with `stops` up to the batch with the first bad row."""
        kinds = {**self._kinds(), self.target: VERBATIM}
        for batch in self._table.batches(kinds, start.position):
            X, column, first = self._values(batch.frame), batch.frame[self.target], batch.first_row
            labels, known = labels_in(column, self.labels)
            good = known & self._usable(X)
            wrong = np.flatnonzero(~good)
            bad = [
                BadLine(first + i + 1, self._reason(X[i]) if known[i] else self._label_reason(column[i]))
                for i in wrong[:MOST_BAD_LINES].tolist()
            ]
            numbers = first + 1 + np.flatnonzero(good)
            skipped = np.diff(numbers, prepend=first) - 1
            rows = Rows(self._chosen(X, good), labels[good], numbers, numbers, skipped)
            yield Block(rows, bad, len(wrong), Place(batch.position, batch.position))
            if stops and bad:
                return

    def _label_reason(self, label: str | None) -> str:
        return label_reason("" if label is None else shortened(label.strip()), self.labels)

    def _reason(self, row: NDArray[np.float64]) -> str:
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        where = f"column {self._features[place]!r}"
        if np.isnan(row[place]):
            return number_reason(IS_MISSING, where, "", "")
        return f"{where} has {row[place]}, which is not finite"

    def identity(self, position: int) -> dict[str, Any]:
        """Size and a sum over the end of the file, which in Parquet describes all of its parts."""
        with open(self.path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(size - _SAMPLE, 0))
            return {"size": size, "end": hashlib.sha256(stream.read()).hexdigest(), "rows": self.size}
