"""Values in a column of numbers that are none: when they are exceptions, and what is said of them.

A column is one of numbers if at most one of a hundred of its values is something else. A single exception is allowed
from ten values on, as in a short file one value is more than one of a hundred. Exceptions count as missing. Codes such
as A1 among numbers are met more often than that; a code that is rarer is named in the note, with the way to keep it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toprank.exceptions import Message, Parameter
from toprank.files.errors import NotANumberError, excerpt
from toprank.files.spelling import polars
from toprank.files.value_counts import ValueCounts

_ONE_OF = 100
_LEAST = 10
_SHOWN = 3


def nearly_all(n_known: int, n_strays: int) -> bool:
    """Whether so few of the values of a column, missing ones aside, are no numbers that they are exceptions."""
    return n_strays <= max(n_known // _ONE_OF, n_known >= _LEAST)


@dataclass(frozen=True)
class Strays:
    """The values of a column that are no numbers: how often each occurs, and where the first is."""

    counts: Mapping[str, int]
    first: str
    n_known: int
    """How many values are not missing, numbers and others."""
    n_other: int = 0
    """How many strays are not in `counts`, as there are too many different ones."""

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.counts.values()) + self.n_other

    def are_exceptions(self) -> bool:
        """Whether the column is one of numbers all the same."""
        return nearly_all(self.n_known, self.total)

    def told(self) -> str:
        """Values and counts for a message, the first of them with its place."""
        shown = [f"{excerpt(value)} ({count:,})" for value, count in list(self.counts.items())[:_SHOWN]]
        shown[0] = f"{shown[0][:-1]}, {'first ' if self.total > 1 else ''}in {self.first})"
        more = len(self.counts) - _SHOWN
        at_least = "more than " if self.n_other else ""
        return ", ".join(shown) + (f" and {at_least}{more:,} more" if more > 0 else "")


def strays_of(series: Any, places: Any, n_known: int, where: Callable[[int], str]) -> Strays:
    """Those at some places of a series; `where` says where in the file a row is."""
    values = series.gather(places).cast(polars().String).str.strip_chars().to_list()
    return Strays(Counter(values), where(int(places[0])), n_known)


class Tally:
    """The strays of a file by column, batch after batch."""

    def __init__(self) -> None:
        self._counts: dict[str, ValueCounts] = {}
        self._first: dict[str, str] = {}
        self._n_known: Counter[str] = Counter()

    def add(self, n_known: Mapping[str, int], strays: Mapping[str, Strays]) -> None:
        """What another batch has in each column: values that are not missing, and strays."""
        self._n_known.update(n_known)
        for name, new in strays.items():
            self._counts.setdefault(name, ValueCounts()).add(new.counts)
            self._first.setdefault(name, new.first)

    def columns(self) -> dict[str, Strays]:
        """Columns with strays."""
        return {
            name: Strays(values.counts, self._first[name], self._n_known[name], values.n_other)
            for name, values in self._counts.items()
        }

    def record(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        counts = {name: values.record() for name, values in self._counts.items()}
        return {"strays": counts, "first": dict(self._first), "n_known": dict(self._n_known)}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._counts = {name: ValueCounts(**values) for name, values in record["strays"].items()}
        self._first, self._n_known = dict(record["first"]), Counter(record["n_known"])

    def too_many(self) -> list[str]:
        """Columns that are not numbers, as these are no exceptions."""
        return [name for name, strays in self.columns().items() if not strays.are_exceptions()]

    def refuse_too_many(self) -> None:
        """An error for a file whose columns are not those of its model."""
        for name in self.too_many():
            strays = self.columns()[name]
            raise NotANumberError(
                f"{strays.total:,} of the {strays.n_known:,} values of the column {name!r}, which the model takes as "
                f"numbers, are none: {strays.told()}; correct them, or leave them empty if they are missing",
                self.too_many(),
            )


def changed_notes(columns: Mapping[str, Strays], n_rows: int) -> Iterator[str]:
    """A line for each column that looked like one of numbers in so many first rows, and is none in all of them."""
    for name, strays in columns.items():
        types = Parameter("types", f"types={{{name!r}: 'category'}}", f"{name}=category")
        found = (
            f"column {name!r} holds numbers in the first {n_rows:,} rows, but {strays.total:,} of its "
            f"{strays.n_known:,} values are none: {strays.told()}, which count as missing"
        )
        yield Message("{found}; if it holds text, start anew with {types}", found=found, types=types)


def stray_notes(columns: Mapping[str, Strays], *, learns: bool) -> Iterator[str]:
    """A line for each column with exceptions; where one `learns`, with the way to take it as it is."""
    for name, strays in columns.items():
        found = f"column {name!r} is a number but for {strays.told()}, which {_count_as(strays.total)}"
        if learns:
            types = Parameter("types", f"types={{{name!r}: 'category'}}", f"{name}=category")
            yield Message("{found}; if it holds codes, say so by {types}", found=found, types=types)
        else:
            yield found


def _count_as(count: int) -> str:
    return "counts as missing" if count == 1 else "count as missing"
