"""The time of each row: a column of dates, times or numbers, or the order of the rows; and which rows are the latest.

A number is a time in a unit of its own. Where a clock is needed it counts seconds, and milliseconds, microseconds or
nanoseconds since 1970 if it is too large for that; whole numbers such as 20241231 are dates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import Message
from toprank.files.errors import TableError, excerpt
from toprank.files.spelling import Spelling, polars

Floats = NDArray[np.float64]
_DATES = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S%.f", "T%H:%M", "T%H:%M:%S%.f", " %I:%M %p", " %I:%M:%S %p")
_ZONES = ("", "%#z")
_DAY = "%Y%m%d"
_FIRST_DAY, _LAST_DAY = 19000101, 22001231
# Seconds since 1970 reach 1e11 in the year 5138; larger numbers are of a smaller unit.
_LARGEST_OF_UNIT = {1.0: 1e11, 1e3: 1e14, 1e6: 1e17, 1e9: np.inf}


@dataclass(frozen=True)
class Times:
    """Times of rows, in seconds since 1970 or in a unit of their own; nan where a row has none.

    `name` is that of the column, None for the order of the rows; `has_clock` says whether they are dates or times.
    """

    values: Floats
    name: str | None = None
    has_clock: bool = False

    @classmethod
    def in_order(cls, n_rows: int) -> Self:
        """Rows in the order of time, without a time."""
        return cls(np.arange(n_rows, dtype=np.float64))

    @classmethod
    def of(cls, series: Any) -> Self:
        """The times of a column, which holds texts as in the file."""
        pl = polars()
        text = Spelling().text(series)
        if text.null_count() == len(text):
            raise TableError.saying("the column {name!r} has no times; name another one by {time}", name=series.name)
        numbers = text.cast(pl.Float64, strict=False)
        if numbers.null_count() == text.null_count():
            days = _days(numbers.drop_nulls().to_numpy(), text)
            values = numbers.fill_null(np.nan).to_numpy() if days is None else days
            return cls(values, series.name, days is not None)
        return cls(_seconds(text), series.name, True)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a time."""
        return np.isfinite(self.values)

    def __getitem__(self, rows: NDArray[Any]) -> Times:
        """The times of some rows."""
        return replace(self, values=self.values[rows])

    def seconds(self) -> Floats:
        """Seconds since 1970, or since some midnight."""
        if self.has_clock:
            return self.values
        largest = float(np.max(np.abs(self.values), initial=0.0))
        return self.values / next(unit for unit, most in _LARGEST_OF_UNIT.items() if largest < most)


def _days(numbers: Floats, text: Any) -> Floats | None:
    """Times of whole numbers such as 20241231, or None if they are others."""
    if not np.all((numbers >= _FIRST_DAY) & (numbers <= _LAST_DAY) & (numbers == np.floor(numbers))):
        return None
    days = _parsed(text.cast(polars().Float64).cast(polars().Int64).cast(polars().String), _DAY)
    return None if days is None else _as_seconds(days)


def _seconds(text: Any) -> Floats:
    """Times in one of the usual ways of writing; an error if there is none, or if two of them disagree."""
    readings: dict[str, Floats] = {}
    for date in _DATES:
        for clock in _CLOCKS:
            for zone in _ZONES if clock else ("",):
                if (parsed := _parsed(text, f"{date}{clock}{zone}")) is not None:
                    readings.setdefault(date, _as_seconds(parsed))
    if not readings:
        raise TableError.saying(
            "{found} is neither a number nor a date in one way of writing; write times as 2024-12-31 23:59:59, or name "
            "another column by {time}",
            found=f"column {text.name!r} with values such as {excerpt(str(_odd(text)))}",
        )
    first, *others = readings.values()
    if any(not np.array_equal(first, other, equal_nan=True) for other in others):
        raise TableError.saying(
            "{found} may have the day or the month first; write dates as 2024-12-31",
            found=f"column {text.name!r} with values such as {excerpt(str(text.drop_nulls()[0]))}",
        )
    return first


def _parsed(text: Any, form: str) -> Any:
    """All times by one format, or None if it is not that of all."""
    pl = polars()
    known = text.drop_nulls()
    kind = pl.Datetime("us", "UTC" if form.endswith("%#z") else None) if "%H" in form or "%I" in form else pl.Date
    if known.head(1).str.strptime(kind, form, strict=False).null_count():
        return None  # asked first, as there are many formats
    parsed = text.str.strptime(kind, form, strict=False)
    return parsed if parsed.null_count() == text.null_count() else None


def _odd(text: Any) -> Any:
    """The first value that is not written as the first one is, or the first one."""
    known = text.drop_nulls()
    shape = known.str.replace_all(r"\d", "0")
    other = known.filter(shape != shape[0])
    return other[0] if len(other) else known[0]


def _as_seconds(series: Any) -> Floats:
    pl = polars()
    micro = series.cast(pl.Datetime("us")).cast(pl.Int64).cast(pl.Float64).fill_null(np.nan).to_numpy()
    return np.asarray(micro / 1e6)


def latest_rows(times: Times, y: NDArray[np.int64], share: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from, in the order of time, and the rows after them, about so large a share, in the same order.

    Rows of one time stay together. Both parts need both classes.
    """
    order = np.argsort(times.values, kind="stable")
    if not share:
        return order, order[:0]
    values = times.values[order]
    cuts = np.flatnonzero(np.diff(values) > 0) + 1  # where a new time starts
    if not len(cuts):
        raise TableError(
            f"all rows have one time in the column {times.name!r}, so none are later than others; name another column"
        )
    cut = int(cuts[np.argmin(np.abs(cuts - (1 - share) * len(order)))])
    train, test = order[:cut], order[cut:]
    fewer, more = Message("fewer, by {holdout=0.1}"), Message("more, by {holdout=0.4}")
    for rows, which, remedy in ((train, "first", fewer), (test, "last", more)):
        if y[rows].min() == y[rows].max():
            one = "positives" if y[rows[0]] else "negatives"
            raise TableError.saying(
                "the {which} {n:,} rows by time are all {one}, and both classes are needed there; hold out {remedy}",
                which=which,
                n=len(rows),
                one=one,
                remedy=remedy,
            )
    return train, test


def blocks_of_time(times: Times, y: NDArray[np.int64], folds: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Each of so many blocks of neighbours in time to test with, and all other rows to learn from."""
    blocks = np.array_split(np.argsort(times.values, kind="stable"), folds)
    if any(y[block].min() == y[block].max() for block in blocks):
        raise TableError.saying(
            "one of {n} blocks in the order of time has rows of one class only; use fewer {folds}, or more rows",
            n=folds,
        )
    return [(np.concatenate(blocks[:i] + blocks[i + 1 :]), block) for i, block in enumerate(blocks)]
