"""The rows at the top of the list, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.report.numbers_as_text import cell, number

MOST_COLUMNS = 30


@dataclass(frozen=True)
class TopRow:
    """One row: place in the list, id, score, label, whether it is positive, other columns."""

    rank: int
    name: str
    score: str
    label: str
    positive: bool
    cells: list[str]


@dataclass(frozen=True)
class TopRows:
    """The best rows and the names of their other columns."""

    rows: list[TopRow]
    columns: list[str]
    n_columns: int
    id_name: str


def top_rows(
    scores: NDArray[Any],
    y: NDArray[Any],
    positive: NDArray[np.bool_],
    *,
    ids: Sequence[Any] | None,
    table: Any,
    most: int,
) -> TopRows:
    """The best rows, at most so many, those of equal score in the order in which they came.

    Rows are called by their `ids`, by default numbers from 0, and shown with the columns of a table of pandas or
    polars.
    """
    names = [] if table is None else [str(name) for name in table.columns]
    best = np.argsort(-scores, kind="stable")[:most]
    ids = None if ids is None else list(ids)
    columns = [_column(table, place, best) for place in range(min(len(names), MOST_COLUMNS))]
    rows = [
        TopRow(
            rank=place + 1,
            name=str(row) if ids is None else cell(ids[row]),
            score=number(float(scores[row]), 6),
            label=cell(y[row]),
            positive=bool(positive[row]),
            cells=[column[place] for column in columns],
        )
        for place, row in enumerate(best)
    ]
    return TopRows(rows, names[:MOST_COLUMNS], len(names), "Row" if ids is None else "Id")


def _column(table: Any, place: int, rows: NDArray[np.intp]) -> list[str]:
    """Some cells of a column of pandas or polars."""
    column = table.iloc[:, place].iloc[rows] if hasattr(table, "iloc") else table.to_series(place)[rows]
    return [cell(value) for value in column.to_list()]
