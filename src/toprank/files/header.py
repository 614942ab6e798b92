"""The line of names of a CSV file, for all who read one."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from toprank.files.content import Content, ending_of
from toprank.files.errors import TableError

LONGEST_ROW = 256 << 20
_LIMIT = Lock()
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_SPREADSHEET_STARTS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


@contextmanager
def long_fields() -> Iterator[None]:
    """Within it the csv module reads fields of any length; its limit is one for the whole process."""
    with _LIMIT:
        before = csv.field_size_limit(LONGEST_ROW)
        try:
            yield
        finally:
            csv.field_size_limit(before)


class Header(NamedTuple):
    """The bytes of the first line, the names in it, and the delimiter between them."""

    text: bytes
    names: list[str]
    delimiter: str


def read_header(content: Content, delimiter: str | None) -> Header:
    """The names of the columns, in UTF-8, perhaps in quotes; blanks around a name do not count.

    Without a delimiter it is the one of ``, ; tab |`` that the line has most of.
    """
    path = content.path
    if delimiter is not None and not (len(delimiter) == 1 and delimiter.isascii() and delimiter not in '"\r\n'):
        raise TableError.of("delimiter", delimiter, "must be one character such as ',' or ';'")
    with content.opened() as (stream, _):
        header = stream.readline(LONGEST_ROW)
    refuse_spreadsheet(path, header)
    if not header.strip():
        raise TableError(f"{path!r} {'is empty' if not header else 'starts with an empty line'}; the first "
                         "line of a CSV file holds the names of its columns")  # fmt: skip
    try:
        line = header.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise not_utf8(path, 1, header) from None
    delimiter = max(",;\t|", key=line.count) if delimiter is None else delimiter
    if line.count('"') % 2:
        raise TableError(f"{path!r} has a name in its first line whose quotes are not closed; close them")
    try:
        with long_fields():
            names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]
    except csv.Error as error:
        raise TableError(
            f"the first line of {path!r} is no line of names ({error}); lines must end with \\n or \\r\\n"
        ) from None
    return Header(header, names, delimiter)


def is_spreadsheet(path: str, content: bytes = b"") -> bool:
    """Whether a file is one of a spreadsheet program, by its name or by its first bytes."""
    return ending_of(path) in _SPREADSHEETS or content.startswith(_SPREADSHEET_STARTS)


def refuse_spreadsheet(path: str, content: bytes = b"") -> None:
    """Refuse such a file."""
    if is_spreadsheet(path, content):
        raise TableError(
            f"{path!r} is a spreadsheet; save its sheet as CSV (in UTF-8) there, or in Python by "
            "pandas.read_excel(...).to_csv(...), and give that"
        )


def not_utf8(path: str, line: int, content: bytes) -> TableError:
    """The error for bytes that are no text in UTF-8; of text it names the encoding that it probably has."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif b"\0" in content:
        return TableError(f"{path!r} is not a text file: line {line} has other bytes; give a file that is CSV")
    else:
        encoding = "cp1252" if any(0x80 <= byte <= 0x9F for byte in content) else "latin-1"
    return TableError.saying(
        "{path!r} is not a text file in UTF-8: line {line} has other bytes; if it is text of another program, pass "
        "{encoding=}, or convert it to UTF-8",
        path=path,
        line=line,
        encoding=encoding,
    )
