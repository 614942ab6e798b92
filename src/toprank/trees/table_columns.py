"""Rows of a table as trees read them: numbers in single precision, categories as codes, gaps as NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toprank.checks import is_missing
from toprank.exceptions import InputError
from toprank.saved_state import Kind, Schema, is_scalar

# Rows from which on the distinct values of a column are looked for.
_MANY_ROWS = 1000


@dataclass(frozen=True, eq=False)
class TableColumns:
    """The categories of each column of a frame that holds text or categories, by the number of the column."""

    saved_state: ClassVar[Schema] = Schema(
        {"categories": Kind((dict,))},
        fitted=None,
        relations={"words and numbers as categories of its columns": lambda known: _are_plain(known["categories"])},
    )

    categories: dict[int, tuple[Any, ...]]

    @classmethod
    def of(cls, X: Any) -> TableColumns:
        """What the training rows have; an array has numbers only."""
        found = {}
        for number, column in enumerate(_columns(X)):
            if not _is_number(column):
                found[number] = _categories(column)
        return cls(found)

    def read(self, X: Any) -> Any:
        """The rows of a frame as an array of float32; others as they are.

        A category has the number of its place in the order of the words, one that was not in the training rows is
        missing.
        """
        columns = _columns(X)
        if not columns:
            return X
        read = np.empty((len(columns[0]), len(columns)), np.float32)
        for number, column in enumerate(columns):
            read[:, number] = self._codes(number, column) if number in self.categories else _numbers(column)
        return read

    def _codes(self, number: int, column: Any) -> NDArray[np.float32]:
        codes = {value: code for code, value in enumerate(self.categories[number])}
        places, values = _distinct(column)
        known = [np.nan if is_missing(value) else codes.get(value, np.nan) for value in values]
        return np.asarray(np.array(known, np.float32)[places])


def _are_plain(categories: dict[Any, Any]) -> bool:
    return all(
        type(number) is int and number >= 0 and type(values) is tuple and all(map(is_scalar, values))
        for number, values in categories.items()
    )


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas or polars."""
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_columns"))


def _columns(X: Any) -> list[Any]:
    """The columns of a frame, none of anything else."""
    if not is_frame(X):
        return []
    return [X.iloc[:, j] for j in range(X.shape[1])] if hasattr(X, "iloc") else list(X.get_columns())


def _categories(column: Any) -> tuple[Any, ...]:
    """The values of a column in the order of their words."""
    try:
        known = {value for value in _distinct(column)[1] if not is_missing(value)}
    except TypeError as error:  # no hash
        raise InputError.saying(
            "column {name!r} holds lists or other values that are no categories; make numbers or words of them",
            name=column.name,
        ) from error
    return tuple(sorted(known, key=lambda value: (str(value), type(value).__name__)))


def _distinct(column: Any) -> tuple[NDArray[Any], list[Any]]:
    """The place of each row in a list of values, and the list, which has equal values once where there are many rows.

    Pandas and polars find equal values; a few rows are read sooner than they have begun.
    """
    if len(column) >= _MANY_ROWS:
        if hasattr(column, "iloc"):
            places, values = column.factorize()
            return places, [*values.tolist(), None]  # a gap is at place −1
        if str(column.dtype).startswith(("String", "Categorical", "Enum")):
            words = column.cast(str)
            distinct = words.unique(maintain_order=True)
            return words.replace_strict(distinct, range(len(distinct))).to_numpy(), distinct.to_list()
    return np.arange(len(column)), column.to_list()


def _is_number(column: Any) -> bool:
    """Whether a column holds numbers or truth values; of dates nothing can be made here."""
    kind = getattr(column.dtype, "kind", None)
    if kind in ("M", "m") or (kind is None and column.dtype.is_temporal()):
        raise InputError.saying(
            "column {name!r} holds dates or times; make numbers of them, such as the day of the week or the days since "
            "an event",
            name=column.name,
        )
    return kind in set("biuf") if kind is not None else column.dtype.is_numeric() or str(column.dtype) == "Boolean"


def _numbers(column: Any) -> NDArray[np.float32]:
    """A column of numbers, in pandas or polars, with NaN in place of gaps."""
    try:
        if hasattr(column, "iloc"):
            return np.asarray(column.to_numpy(dtype=np.float32, na_value=np.nan))
        return np.asarray(column.cast(float).to_numpy(), dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InputError.saying(
            "column {name!r} held numbers in the training rows and now holds {kind}; pass it as numbers",
            name=column.name,
            kind=str(column.dtype),
        ) from error
