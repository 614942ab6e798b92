"""Parquet files as sources of rows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.streams._lines import NUMERIC, TEXTUAL, Labels
from toprank.streams.rows import BadLine, Block, Place, Rows
from toprank.streams.text import choose_columns

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
    """

    unit = "row"

    def __init__(
        self, path: str, labels: Labels, target: str, features: list[str] | None, fill_missing: float | None
    ) -> None:
        self.path = path
        self.labels = labels
        self.target = target
        self.fill_missing = fill_missing
        polars = _polars()
        self._frame = polars.scan_parquet(path)
        try:
            schema = self._frame.collect_schema()
            self.size = int(self._frame.select(polars.len()).collect().item())
        except (polars.exceptions.PolarsError, OSError) as error:
            raise ValueError(f"{path!r} cannot be read as Parquet: {error}") from error
        self.feature_names: list[str] | None = choose_columns(path, list(schema), target, features)
        self._features = self.feature_names
        self.n_features = len(self._features)
        for name in self._features:
            if not (schema[name].is_numeric() or schema[name] == polars.Boolean):
                raise ValueError(
                    f"the column {name!r} of {path!r} has the type {schema[name]}, and a stream takes numbers; leave "
                    "it out by features=, or encode it before"
                )

    def start(self) -> Place:
        """The first row."""
        return Place(0, 0)

    def blocks(self, start: Place) -> Iterator[Block]:
        """All rows from a place on."""
        step = max(1, _BLOCK_VALUES // (self.n_features + 1))
        for first in range(start.position, self.size, step):
            frame = self._frame.slice(first, step).select([self.target, *self._features]).collect()
            X = frame.select(self._features).cast(_polars().Float64).to_numpy()
            labels, known = self._labels(frame[self.target])
            if self.fill_missing is not None:
                X = np.where(np.isnan(X), self.fill_missing, X)
            finite = np.isfinite(X)
            good = known & finite.all(axis=1)
            bad = [BadLine(first + int(i) + 1, self._reason(X[i], bool(known[i]))) for i in np.flatnonzero(~good)]
            numbers = first + 1 + np.flatnonzero(good)
            rows = Rows(np.ascontiguousarray(X[good]), labels[good], numbers, numbers)
            yield Block(rows, bad, Place(first + len(frame), first + len(frame)))

    def _labels(self, column: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """1 for positives, and which labels can be read."""
        known = ~column.is_null().to_numpy()
        if self.labels.mode == TEXTUAL:
            text = column.cast(_polars().String)
            positive = (text == self.labels.text.tobytes().decode()).fill_null(False).to_numpy()
            return positive.astype(np.int64), known
        try:
            values = column.cast(_polars().Float64).to_numpy()
        except _polars().exceptions.PolarsError as error:
            raise ValueError(
                f"the target {self.target!r} of {self.path!r} has the type {column.dtype}; name the positive label by "
                "positive="
            ) from error
        if self.labels.mode == NUMERIC:
            return (values == self.labels.number).astype(np.int64), known & ~np.isnan(values)
        return (values == 1).astype(np.int64), known & np.isin(values, (1.0, 0.0, -1.0))

    def _reason(self, row: NDArray[np.float64], known: bool) -> str:
        if not known:
            return f"the label, column {self.target!r}, is missing or none of 1, 0 and -1; name it by positive="
        place = int(np.flatnonzero(~np.isfinite(row))[0])
        name = self._features[place]
        if np.isnan(row[place]):
            return f"column {name!r} has no value; pass fill_missing= for a number to stand for it"
        return f"column {name!r} has {row[place]}, which is not finite"

    def identity(self, position: int) -> dict[str, Any]:
        """Size and a sum over the end of the file, which describes all of its parts."""
        with open(self.path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(size - _SAMPLE, 0))
            return {"size": size, "end": hashlib.sha256(stream.read()).hexdigest(), "rows": self.size}


def _polars() -> Any:
    try:
        import polars
    except ImportError as error:
        raise ImportError("a stream from Parquet needs polars; install it by pip install 'toprank[cli]'") from error
    return polars
