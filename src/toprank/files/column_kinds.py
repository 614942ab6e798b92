"""What a column of text fields holds: numbers, with which marks, dates, or text.

A column is read plainly where that makes a number of every value. Otherwise commas may stand between thousands
(1,234.56) or before decimals (0,64), and the reading that makes the most numbers is taken, if they are nearly all
(`toprank.files.strays`). Values such as 1,234 may be both; then the other columns decide, as a file has one way to
write decimals. Without such help commas are between thousands if there are whole numbers without them too, and a
hundred values with them: rounded decimals would end in a zero, which is not written, in one value of ten, and decimals
of a fixed number of places would be written in whole numbers too. What is still open is text, or an exception in a
column of plain numbers, and a note names the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toprank.exceptions import Message, Parameter
from toprank.files.errors import excerpt
from toprank.files.source import DATE, NUMBER, TEXT, reading_errors
from toprank.files.spelling import COMMAS, PLAIN, POINTS, Marks, Spelling
from toprank.files.strays import nearly_all

_MANY = 100
_LEAST_WHOLE = 10
_GROUPED = r"^[+-]?[1-9]\d{0,2}(%s\d{3})+$"
_WHOLE, _SMALL = r"^[+-]?[1-9]\d*$", r"^[+-]?\d{1,3}$"
_DECIMAL_POINT = r"^[+-]?\d*\.\d*([eE][+-]?\d+)?$"


@dataclass
class Kinds:
    """Kinds of columns, the marks of those that are not written plainly, and what the user should know."""

    kinds: dict[str, str] = field(default_factory=dict)
    marks: dict[str, Marks] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def found_kinds(texts: Mapping[str, Any], spelling: Spelling) -> Kinds:
    """Kinds and marks of columns by their fields, which are strings without blanks around them and null for missing."""
    found = Kinds()
    known = {name: text.drop_nulls() for name, text in texts.items()}
    open_columns, decimals = [], {marks.decimal for marks in spelling.marks.values()}
    for name, values in known.items():
        readings = _readings(values, spelling)
        found.kinds[name] = NUMBER if readings else _without_numbers(values)
        if len(readings) > 1:
            open_columns.append(name)
        elif readings and readings[0] != PLAIN:
            found.marks[name] = readings[0]
            decimals.add(readings[0].decimal)
        elif readings and _has_decimal_point(values):
            decimals.add(PLAIN.decimal)
    for name in open_columns:
        marks = _decided(decimals, known[name])
        if marks is not None:
            found.marks[name] = marks
            continue
        plain = nearly_all(len(known[name]), len(spelling.numbers(known[name], PLAIN)[1]))
        found.kinds[name] = NUMBER if plain else TEXT
        found.notes.append(_ambiguous(name, known[name], plain))
    if spelling.given is None:
        _read_points(found, known, decimals)
    found.notes += [_code_note(name, values[0]) for name, values in known.items() if _are_codes(found, name, values)]
    return found


def _readings(values: Any, spelling: Spelling) -> list[Marks]:
    """The marks by which a column is one of numbers: none, one, or two that cannot be told apart by it alone."""
    given = spelling.given
    n_strays: dict[Marks, int] = {}
    for marks in (PLAIN, COMMAS, POINTS) if given is None else (given, PLAIN):
        n_strays[marks] = len(spelling.numbers(values, marks)[1])
        if n_strays[marks] == 0 and marks in (PLAIN, given):
            break
    least = min(n_strays.values())
    best = [marks for marks, count in n_strays.items() if count == least]
    if not nearly_all(len(values), least):
        return []
    return best[:1] if best[0] in (PLAIN, given) else best


def _without_numbers(values: Any) -> str:
    return DATE if is_date(values) else TEXT


def _decided(decimals: set[str], values: Any) -> Marks | None:
    """The marks of a column that may have commas for two reasons, by other columns or by its whole numbers."""
    if len(decimals) == 1:
        return COMMAS if decimals == {"."} else POINTS
    return COMMAS if _are_thousands(values, ",") else None


def _are_thousands(values: Any, mark: str) -> bool:
    """Whether a mark before exactly three digits is surely not that of decimals."""
    marked = values.filter(values.str.contains(mark, literal=True))
    whole = values.filter(values.str.contains(_WHOLE))
    enough = len(marked) >= _MANY and whole.n_unique() >= _LEAST_WHOLE
    return enough and bool(marked.str.contains(_GROUPED % f"\\{mark}").all() and whole.str.contains(_SMALL).all())


def _has_decimal_point(values: Any) -> bool:
    """Whether a column has decimals after a point, and not only what may be thousands."""
    pointed = values.str.contains(_DECIMAL_POINT)
    return bool(pointed.any()) and bool((pointed & ~values.str.contains(_GROUPED % r"\.")).any())


def _read_points(found: Kinds, known: Mapping[str, Any], decimals: set[str]) -> None:
    """Points of plain columns are between thousands in a file with decimal commas, or where they surely are."""
    for name, values in known.items():
        if found.kinds[name] != NUMBER or name in found.marks or _has_decimal_point(values):
            continue
        if decimals == {","}:  # also where there are none so far
            found.marks[name] = POINTS
        elif _are_thousands(values, "."):
            found.marks[name] = POINTS
            example = values.filter(values.str.contains(".", literal=True))[0]
            found.notes.append(
                Message(
                    "{found}; if points are before decimals, say so by {decimal='.'}",
                    found=f"column {name!r} has whole numbers and values such as {excerpt(example)}, in which the "
                    "point is taken as one between thousands",
                )
            )


def _ambiguous(name: str, values: Any, plain: bool) -> str:
    example = values.filter(values.str.contains(","))[0]
    return Message(
        "{found}; say which by {thousands=','} or {decimal=','}",
        found=f"column {name!r} has values such as {excerpt(example)}, in which the comma may be between thousands or "
        f"before decimals, so {'they count as missing' if plain else 'it is taken as text'}",
    )


def _are_codes(found: Kinds, name: str, values: Any) -> bool:
    """Whether numbers have first zeros that fill them up to one length, as those of postal codes do."""
    if found.kinds[name] != NUMBER or len(values) < _LEAST_WHOLE or name in found.marks:
        return False
    lengths = values.head(_MANY).str.len_chars()
    if lengths.min() != lengths.max() or lengths[0] < 2:
        return False
    return bool(values.str.contains(r"^0\d+$").any()) and bool(values.str.contains(r"^\d+$").all())


def _code_note(name: str, example: str) -> str:
    found = f"column {name!r} has values such as {excerpt(example)}, of one length and some with a zero first"
    types = Parameter("types", f"types={{{name!r}: 'category'}}", f"{name}=category")
    return Message("{found}; if they are codes, say so by {types}", found=found, types=types)


def is_date(series: Any) -> bool:
    """Whether all texts of a series are dates or times."""
    values = series.drop_nulls().head(1000)
    if not len(values):
        return False
    for convert in (values.str.to_date, values.str.to_datetime):
        try:
            if not convert(strict=False).has_nulls():
                return True
        except reading_errors():  # no format was found
            continue
    return False
