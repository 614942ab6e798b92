"""Columns of a table of scores that say what raises a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.explanation.reasons import reasons
from toprank.files.spelling import polars

# Where a table of scores holds the rows that were scored; no column of a file has this name.
_ROWS = "\0rows"


def reason_names(count: int) -> list[str]:
    """Names of the columns."""
    return [f"reason_{number + 1}" for number in range(count)]


def empty_reasons(count: int, n_rows: int) -> dict[str, Any]:
    """Columns to be filled in."""
    pl = polars()
    return {name: pl.Series(name, [None] * n_rows, pl.String) for name in reason_names(count)}


def with_rows(frame: Any, rows: Any) -> Any:
    """A table of scores with the rows that were scored, which stay with them whatever is sorted or left out."""
    return frame.with_columns(rows.to_struct(_ROWS))


def with_reasons(frame: Any, model: Any, count: int, *, all_rows: bool) -> Any:
    """A table of scores with the reasons of all rows, or of those above the threshold, in place of the rows."""
    chosen = np.flatnonzero(np.full(len(frame), all_rows) | (frame["decision"].to_numpy() == 1))
    texts = np.full((len(frame), count), None, dtype=object)
    found = reasons(model, frame[_ROWS][chosen].struct.unnest(), count) if len(chosen) else []
    for row, of_row in zip(chosen, found, strict=True):
        texts[row, : len(of_row)] = [str(reason) for reason in of_row]
    pl = polars()
    columns = [pl.Series(name, texts[:, i].tolist(), pl.String) for i, name in enumerate(reason_names(count))]
    return frame.drop(_ROWS).with_columns(columns)
