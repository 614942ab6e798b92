"""Parquet files, read in slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from toprank.files.errors import TableError
from toprank.files.source import (
    BLOCK_VALUES,
    DATE,
    NUMBER,
    TEXT,
    Batch,
    TypedTable,
    batch_of,
    numbered,
    reading_errors,
)
from toprank.files.spelling import polars


class ParquetTable(TypedTable):
    """A Parquet file."""

    has_blocks = True

    def __init__(self, path: str) -> None:
        pl = polars()
        self.path = path
        with self._readable():
            self._frame = pl.scan_parquet(path, glob=False)
            self._schema = self._frame.collect_schema()
            self.size = int(self._frame.select(pl.len()).collect().item())
        self.names = list(self._schema)
        self.types = {name: _kind(dtype) for name, dtype in self._schema.items()}
        self.numbers = frozenset(
            name for name, dtype in self._schema.items() if self.types[name] == NUMBER or dtype == pl.Boolean
        )

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Errors of polars as those of a table."""
        try:
            yield
        except TableError:
            raise
        except reading_errors() as error:
            panicked = isinstance(error, polars().exceptions.PanicException)  # with words for those who know its code
            reason = "it is damaged" if panicked else next(iter(str(error).splitlines()), type(error).__name__)
            raise TableError(
                f"{self.path!r} cannot be read as Parquet ({reason[:200]}); give a Parquet file that is complete"
            ) from None

    def batches(self, kinds: Mapping[str, str], first_row: int = 0) -> Iterator[Batch]:
        """Rows with the named columns from one on, some two million values at a time."""
        step = max(1, BLOCK_VALUES // max(1, len(kinds)))
        for first in range(first_row, self.size, step):
            yield self.block(kinds, first, step)

    def block(self, kinds: Mapping[str, str], first: int, count: int) -> Batch:
        """Some rows with the named columns."""
        with self._readable():
            frame = self._frame.slice(first, count).select(list(kinds)).collect()
            batch = batch_of(frame, kinds, self.spelling, numbered(first), first, first + len(frame))
        if len(frame) != min(count, self.size - first):
            raise TableError(
                f"{self.path!r} says that it has {self.size} rows, and rows after {batch.position} are missing; "
                "give a Parquet file that is complete"
            )
        return batch


def _kind(dtype: Any) -> str:
    pl = polars()
    if dtype.is_numeric() or dtype == pl.Null:
        return NUMBER
    if dtype.is_temporal():
        return DATE
    if dtype in (pl.String, pl.Boolean, pl.Categorical, pl.Enum):
        return TEXT
    return str(dtype)
