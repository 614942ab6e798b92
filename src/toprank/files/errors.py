"""What may be wrong with a table."""

from __future__ import annotations

from toprank.exceptions import InputError


class TableError(InputError):
    """A file is no table, or not the one that is needed."""


class NotANumberError(TableError):
    """A column of numbers holds something else; `columns` names all such columns that were found."""

    def __init__(self, message: str, columns: list[str] | None = None) -> None:
        super().__init__(message)
        self.columns = columns or []


def listed(names: list[str], most: int = 12) -> str:
    """Names for a message: the first ones, and how many there are."""
    return ", ".join(map(repr, names[:most])) + (f", … ({len(names)} in all)" if len(names) > most else "")


def shortened(text: str, most: int = 40) -> str:
    """A text for a message, not too long."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def excerpt(text: str) -> str:
    """A value for a message, not too long and in one line."""
    return repr(shortened(text))


def no_rows(path: str) -> TableError:
    """The error for a file without rows."""
    return TableError(f"{path!r} has no rows; give a file with rows")
