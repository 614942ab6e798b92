"""Tables of scores as bytes of a file: CSV, also compressed, or Parquet."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Iterator
from typing import Any

from toprank.files.content import compressed_for, ending_of, is_compressed
from toprank.files.errors import TableError
from toprank.files.formats import ENDINGS
from toprank.files.header import is_spreadsheet
from toprank.files.spelling import polars
from toprank.persistence.atomic import write_atomically

_FORMULA = "^[=+@＝＋－＠\\t\\r\\n-]"
_PLAIN_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_BLOCK = 1 << 20


def require_writable_name(path: str) -> None:
    """Refuse a name for a new file that says that it is neither CSV nor Parquet."""
    kind = ENDINGS.get(ending_of(path), "csv")
    if kind not in ("csv", "parquet") or is_spreadsheet(path) or (kind == "parquet" and is_compressed(path)):
        raise TableError(
            f"scores are written as CSV or Parquet, and {path!r} is the name of another format; use a name that ends "
            "in .csv, in .csv.gz to compress it, or in .parquet"
        )


def write_tables(frames: Iterator[Any], output: Any) -> None:
    """Write tables of the same columns as one, to a stream or to a file, which appears when it is complete."""
    if hasattr(output, "write"):
        for block in _as_csv(frames):
            output.write(block)
        output.flush()
        return
    path = os.fspath(output)
    is_parquet = ENDINGS.get(ending_of(path)) == "parquet"
    write_atomically(path, _as_parquet(frames) if is_parquet else compressed_for(path, _as_csv(frames)))


def without_formulas(frame: Any) -> Any:
    """A table in which ' stands before each text, also a name, that a spreadsheet would take for a formula."""
    pl = polars()
    text = pl.col(pl.String)
    formula = text.str.contains(_FORMULA) & ~text.str.contains(_PLAIN_NUMBER)
    names = {name: f"'{name}" for name in frame.columns if re.match(_FORMULA, name)}
    return frame.with_columns(pl.when(formula).then(pl.lit("'") + text).otherwise(text).name.keep()).rename(names)


def _as_csv(frames: Iterator[Any]) -> Iterator[bytes]:
    for number, frame in enumerate(frames):
        stream = io.BytesIO()
        frame.write_csv(stream, include_header=number == 0)
        yield stream.getvalue()


def _as_parquet(frames: Iterator[Any]) -> Iterator[bytes]:
    """Parts go to files of their own first, as all together may not fit in memory."""
    with tempfile.TemporaryDirectory() as folder:
        parts, whole = [], os.path.join(folder, "whole.parquet")
        for number, frame in enumerate(frames):
            parts.append(os.path.join(folder, f"{number}.parquet"))
            frame.write_parquet(parts[-1])
        polars().scan_parquet(parts).sink_parquet(whole)
        with open(whole, "rb") as stream:
            while block := stream.read(_BLOCK):
                yield block
