"""Every column of a table with its type, its missing values, and what is done with it: plain data for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from toprank.files.column_reading import FoundColumns, read_columns
from toprank.files.columns import CATEGORY, MOST_CATEGORIES, Columns, judged_columns
from toprank.files.source import NUMBER, TRUTH, repeated
from toprank.files.spelling import PLAIN, Spelling
from toprank.files.strays import Strays, stray_notes

_TYPES = {TRUTH: "true/false"}


def column_list(
    names: list[str],
    frame: Any,
    columns: Columns,
    kinds: Mapping[str, str],
    spelling: Spelling,
    roles: Mapping[str, str] | None = None,
    *,
    as_it_is: bool = False,
    scale: bool = True,
    fill: float | None = None,
) -> list[dict[str, Any]]:
    """A record of each column in the order of the file: "name", "type", "missing" (None where not counted), "done".

    `roles` says of columns that are not learned from what they are for. Of a model that takes columns as they are,
    that is said in place of the preparation; `scale` and `fill` are those of `table_pipeline`.
    """
    number = "as it is" if as_it_is or not scale else "scaled"
    gap = "the median, and a column that says so" if fill is None else f"{fill:g}"
    treated = _Treatment(number, "as a value of its own" if as_it_is else gap, as_it_is)
    roles, listed = roles or {}, []
    there = {*frame.columns}
    for name in dict.fromkeys(names):
        kind = columns.used.get(name) or kinds.get(name, "")
        series = frame[name] if name in there else None
        if name in roles and name not in columns.used:
            done = roles[name]
        elif name in columns.used:
            done = _done(name, series, kind, spelling, columns.strays.get(name), treated)
        else:
            done = f"left out: {columns.left_out.get(name, 'it is ignored')}"
        missing = None if series is None else _n_missing(series)
        listed.append({"name": name, "type": _TYPES.get(kind, kind or "-"), "missing": missing, "done": done})
    return listed


def list_columns(source: Any, advance: Callable[[int], Any] = lambda position: None) -> tuple[int, Any, list[str]]:
    """How many rows a table has, the list of its columns, and what the user should know of them."""
    found: FoundColumns = read_columns(source, {}, {}, advance)
    left_out = dict.fromkeys(repeated(source.names), "several columns have this name")
    columns = judged_columns(found.frame, found.kinds, (), left_out)
    columns.strays = found.strays
    listed = column_list(source.names, found.frame, columns, found.kinds, source.spelling)
    return len(found.frame), listed, [*found.notes, *stray_notes(found.strays, learns=True), *columns.notes]


def _n_missing(series: Any) -> int:
    return int(np.isnan(series.to_numpy()).sum()) if series.dtype.is_float() else int(series.null_count())


class _Treatment(NamedTuple):
    """What is done with numbers, with gaps in them, and whether categories are taken as they are."""

    number: str
    gap: str
    as_it_is: bool


def _done(name: str, series: Any, kind: str, spelling: Spelling, strays: Strays | None, treated: _Treatment) -> str:
    """What is done with a column that is learned from."""
    if kind == CATEGORY:
        n_values = series.n_unique()
        if treated.as_it_is:
            return f"{n_values:,} values as they are"
        if n_values > MOST_CATEGORIES:
            return f"the {MOST_CATEGORIES - 1} most frequent of {n_values:,} values, and one for the others, as 0 and 1"
        return f"{n_values:,} values as columns of 0 and 1"
    parts = ["true is 1, false is 0" if kind == TRUTH else treated.number]
    marks = spelling.marks_of(name) if kind == NUMBER else PLAIN
    if marks != PLAIN:
        between = f", {marks.thousands!r} between thousands" if marks.thousands else ""
        parts.append(f"{marks.decimal!r} before decimals{between}")
    if strays is not None:
        parts.append(f"as missing: {strays.told()}")
    if _n_missing(series):
        parts.append(f"missing: {treated.gap}")
    return "; ".join(parts)
