"""Hours, days, weeks and months of rows, and how many of them there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import InputError
from toprank.files.times import Floats, Times

WORDS = ("hour", "day", "week", "month")
_NUMPY_UNITS = {"hour": "h", "day": "D", "month": "M"}
_WEEK, _MONDAY = 7 * 86400.0, 4 * 86400.0  # 1970 began on a Thursday, and the Monday after it is the fifth of January
_HARDLY = 0.02  # the part of a period that may be without rows at its start or end, and it is whole still

Per = str | float


def check_per(per: Any) -> Per:
    """A period: a word, or a length in the unit of the times, which may be written as text."""
    if isinstance(per, str) and per in WORDS:
        return per
    try:
        length = float(per)
    except (TypeError, ValueError):
        length = np.nan
    if isinstance(per, bool) or not 0 < length < np.inf:
        raise InputError.of(
            "per",
            per,
            "must be one of {words}, or a length in the unit of the times",
            "use a word for dates and seconds",
            words=", ".join(map(repr, WORDS)),
        )
    return length


def per_words(per: Per) -> str:
    """A period after a number: "a day"."""
    if isinstance(per, str):
        return f"an {per}" if per == "hour" else f"a {per}"
    return f"per {per:g} of the time"


@dataclass(frozen=True)
class Periods:
    """The period of each row, in order from 0, with the start of each; and how many they are.

    Only periods with rows count. Of the first and the last the part counts that the rows reach over, unless all rows
    are at the start of their period, as dates are of their days. `whole` says which periods are not cut off so, by more
    than a fiftieth.
    """

    codes: NDArray[np.intp]
    starts: Floats
    whole: NDArray[np.bool_]
    number: float

    @classmethod
    def of(cls, times: Times, per: Per) -> Self:
        """The periods of rows that all have a time."""
        values, starts, ends = _bounds(times, per)
        begins, first_rows, codes = np.unique(starts, return_index=True, return_inverse=True)
        whole = np.ones(len(begins), dtype=bool)
        number = float(len(begins))
        if np.any(values > starts):
            length = float(ends[first_rows[0]] - begins[0]), float(ends[first_rows[-1]] - begins[-1])
            before = (values.min() - begins[0]) / length[0]
            after = 1 - (values.max() - begins[-1]) / length[1]
            number -= before + after
            whole[0] &= before <= _HARDLY
            whole[-1] &= after <= _HARDLY
        return cls(codes, begins, whole, max(number, np.finfo(np.float64).tiny))

    def counts(self, rows: NDArray[np.bool_]) -> list[int]:
        """How many of some rows, given by a mask, each period has."""
        counts: list[int] = np.bincount(self.codes[rows], minlength=len(self.starts)).tolist()
        return counts


def _bounds(times: Times, per: Per) -> tuple[Floats, Floats, Floats]:
    """Times in the unit of the period, and the start and the end of the period of each."""
    if not isinstance(per, str):
        if times.has_clock:
            raise InputError.of("per", per, "must be one of {words} for dates", words=", ".join(map(repr, WORDS)))
        starts = np.floor(times.values / per) * per
        return times.values, starts, starts + per
    if times.name is None:
        raise InputError.of("per", per, "needs times", "name their column by {time=}, or give a number of rows")
    seconds = times.seconds()
    if per == "week":
        starts = np.floor((seconds - _MONDAY) / _WEEK) * _WEEK + _MONDAY
        return seconds, starts, starts + _WEEK
    unit = f"M8[{_NUMPY_UNITS[per]}]"
    units = np.floor(seconds).astype("M8[s]").astype(unit)
    starts, ends = (moment.astype("M8[s]").astype(np.float64) for moment in (units, units + 1))
    return seconds, starts, ends
