"""Parquet files as sources of rows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank import polars_package
from toprank.exceptions import InputError, Message
from toprank.streams._lines import NUMERIC, TEXTUAL, Labels
from toprank.streams._numbers import MISSING_WORDS
from toprank.streams.columns import choose_columns
from toprank.streams.reasons import excerpt, label_reason
from toprank.streams.rows import MOST_BAD_LINES, BadLine, Block, Place, Rows

_BLOCK_VALUES = 2_000_000
_SAMPLE = 1 << 16


class ParquetFile:
    """Columns of numbers, read some ten thousand rows at a time; positions and lines are numbers of rows.

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
    fill_missing : float or None
        What stands for a missing value; None: a row with a missing value is bad.
    ignore : sequence of str
        Columns not to learn from, where `features` is None.
    """

    unit = "row"
    is_begun, unended = True, False

    def __init__(
        self,
        path: str,
        labels: Labels,
        target: str,
        features: list[str] | None,
        fill_missing: float | None,
        ignore: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.labels = labels
        self.target = target
        self.fill_missing = fill_missing
        polars = _polars()
        self._frame = polars.scan_parquet(path, glob=False)
        try:
            schema = self._frame.collect_schema()
            self.size = int(self._frame.select(polars.len()).collect().item())
        except (polars.exceptions.PolarsError, OSError) as error:
            raise ValueError(f"{path!r} cannot be read as Parquet: {error}") from error
        self.feature_names: list[str] | None = choose_columns(path, list(schema), target, features, ignore)
        self._features = self.feature_names
        self.n_features = len(self._features)
        if schema[target].is_nested():
            raise ValueError(
                f"the target {target!r} of {path!r} has the type {schema[target]}; labels are numbers or text"
            )
        for name in self._features:
            if not (schema[name].is_numeric() or schema[name] == polars.Boolean):
                raise InputError.saying(
                    "{found}; leave it out by {features=}, or encode it before",
                    elsewhere="{found}; leave it out by {ignore=}, or encode it before",
                    found=f"the column {name!r} of {path!r} has the type {schema[name]}, and a stream takes numbers",
                    ignore=name,
                )

    def start(self) -> Place:
        """The first row."""
        return Place(0, 0)

    def peek(self, stops: bool) -> Iterator[Block]:
        """Rows from the start."""
        return self.blocks(self.start(), stops)

    def passed(self, position: int) -> None:
        """Nothing: a part of the file is known by the whole."""

    def blocks(self, start: Place, stops: bool = False) -> Iterator[Block]:
        """All rows from a place on; with `stops` up to the slice with the first bad row."""
        step = max(1, _BLOCK_VALUES // (self.n_features + 1))
        for first in range(start.position, self.size, step):
            frame = self._frame.slice(first, step).select([self.target, *self._features]).collect()
            X = frame.select(self._features).cast(_polars().Float64).to_numpy()
            column = frame[self.target]
            labels, known = self._labels(column)
            if self.fill_missing is not None:
                X = np.where(np.isnan(X), self.fill_missing, X)
            finite = np.isfinite(X)
            good = known & finite.all(axis=1)
            wrong = np.flatnonzero(~good)
            bad = [
                BadLine(first + i + 1, self._reason(X[i]) if known[i] else self._label_reason(column[i]))
                for i in wrong[:MOST_BAD_LINES].tolist()
            ]
            numbers = first + 1 + np.flatnonzero(good)
            skipped = np.diff(numbers, prepend=first) - 1
            rows = Rows(np.ascontiguousarray(X[good]), labels[good], numbers, numbers, skipped)
            yield Block(rows, bad, len(wrong), Place(first + len(frame), first + len(frame)))
            if stops and bad:
                return

    def _labels(self, column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """1 for positives, and which labels can be read."""
        pl = _polars()
        text_mode = self.labels.mode == TEXTUAL
        if text_mode or not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
            column = column.cast(pl.String, strict=False).str.strip_chars()
        if text_mode:
            positive = (column == self.labels.text.tobytes().decode()).fill_null(False)
            missing = column.is_null() | column.str.to_lowercase().is_in(MISSING_WORDS)
            return positive.to_numpy().astype(np.int64), (positive | ~missing).to_numpy()
        values = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        if self.labels.mode == NUMERIC:
            return (values == self.labels.number).astype(np.int64), np.isfinite(values)
        return (values == 1).astype(np.int64), np.isin(values, (1.0, 0.0, -1.0))

    def _label_reason(self, label: Any) -> str:
        return label_reason("" if label is None else excerpt(str(label).strip()), self.labels)

    def _reason(self, row: NDArray[np.float64]) -> str:
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        name = self._features[place]
        if np.isnan(row[place]):
            return Message("column {name!r} has no value; pass {fill_missing=} for a number to stand for it", name=name)
        return f"column {name!r} has {row[place]}, which is not finite"

    def identity(self, position: int) -> dict[str, Any]:
        """Size and a sum over the end of the file, which describes all of its parts."""
        with open(self.path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(size - _SAMPLE, 0))
            return {"size": size, "end": hashlib.sha256(stream.read()).hexdigest(), "rows": self.size}


def _polars() -> Any:
    return polars_package.polars("a stream from Parquet needs")
