"""The rows at the top of the list, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.report.numbers_as_text import cell, count, number

MOST_COLUMNS = 30


@dataclass(frozen=True)
class TopRow:
    """One row: place in the list, id, score, places in other lists, label, whether it is positive, reasons, cells."""

    rank: int
    name: str
    score: str
    places: list[str]
    label: str
    positive: bool
    reasons: list[str]
    cells: list[str]


@dataclass(frozen=True)
class TopRows:
    """The best rows, the names of their other columns, those of other lists, and whether there are reasons."""

    rows: list[TopRow]
    columns: list[str]
    n_columns: int
    id_name: str
    others: list[str]
    has_reasons: bool


def top_rows(
    scores: NDArray[Any],
    labels: Sequence[Any],
    positive: NDArray[np.bool_],
    *,
    ids: Sequence[Any] | None,
    table: Any,
    most: int,
    others: Mapping[str, NDArray[Any]] | None = None,
    reasons: Sequence[Sequence[Any]] | None = None,
) -> TopRows:
    """The best rows, at most so many, those of equal score in the order in which they came.

    Rows are called by their `ids`, by default numbers from 0, and shown with the columns of a table of pandas or
    polars, with their places in the lists of `others`, the last one of equal scores, and with the `reasons` of each of
    the best, if there are such.
    """
    names = [] if table is None else [str(name) for name in table.columns]
    best = best_rows(scores, most)
    ids = None if ids is None else list(ids)
    places = [_places(other, best) for other in (others or {}).values()]
    columns = [_column(table, place, best) for place in range(min(len(names), MOST_COLUMNS))]
    rows = [
        TopRow(
            rank=place + 1,
            name=str(row) if ids is None else cell(ids[row]),
            score=number(float(scores[row]), 6),
            places=[column[place] for column in places],
            label=cell(labels[row]),
            positive=bool(positive[row]),
            reasons=[] if reasons is None else [str(reason) for reason in reasons[place]],
            cells=[column[place] for column in columns],
        )
        for place, row in enumerate(best.tolist())
    ]
    id_name = "Row" if ids is None else "Id"
    return TopRows(rows, names[:MOST_COLUMNS], len(names), id_name, list(others or ()), reasons is not None)


def best_rows(scores: NDArray[Any], most: int) -> NDArray[np.intp]:
    """The rows with the largest scores, those of equal score in the order in which they came."""
    return np.argsort(-scores, kind="stable")[:most]


def _places(scores: NDArray[Any], rows: NDArray[np.intp]) -> list[str]:
    """The place of some rows in the list of these scores."""
    rising = np.sort(scores)
    return [count(len(scores) - below) for below in np.searchsorted(rising, scores[rows], side="left")]


def _column(table: Any, place: int, rows: NDArray[np.intp]) -> list[str]:
    """Some cells of a column of pandas or polars."""
    column = table.iloc[:, place].iloc[rows] if hasattr(table, "iloc") else table.to_series(place)[rows]
    return [cell(value) for value in column.to_list()]
