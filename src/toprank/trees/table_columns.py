"""Rows of a table as trees read them: numbers in single precision, categories as codes, gaps as NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toprank.checks import is_missing
from toprank.exceptions import InputError
from toprank.saved_state import Kind, Schema, is_scalar


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
                known = {value for value in column.to_list() if not is_missing(value)}
                found[number] = tuple(sorted(known, key=lambda value: (str(value), type(value).__name__)))
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
        return np.array([np.nan if is_missing(v) else codes.get(v, np.nan) for v in column.to_list()], np.float32)


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
