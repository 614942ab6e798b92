"""All rows of a table whose columns are not known yet, and what its columns turn out to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from toprank.exceptions import InputError, Parameter
from toprank.files.column_kinds import found_kinds
from toprank.files.columns import CATEGORY, IGNORE, TYPES
from toprank.files.errors import TableError
from toprank.files.source import NUMBER, TEXT, VERBATIM, TypedTable, read_all
from toprank.files.spelling import COMMAS, POINTS
from toprank.files.strays import Strays, Tally, strays_of

_SAMPLE = 1000
_MOSTLY = 0.9
_DIGITS = r"^[+-]?[.,]?\d"


@dataclass
class FoundColumns:
    """A frame, the kind of each column of its file, strays among numbers, and what the user should know."""

    frame: Any
    kinds: dict[str, str]
    strays: dict[str, Strays] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def types_of(
    types: Mapping[str, str] | None, categorical: Collection[str] = (), ignore: Collection[str] = ()
) -> dict[str, str]:
    """What the user says of columns, in one dict: `categorical` and `ignore` are short ways to name two types."""
    said = dict(types or {})
    for name, kind in said.items():
        if kind not in TYPES:
            raise InputError.saying(
                "{given} is none of the types of a column; use 'number', 'category' or 'ignore'",
                given=Parameter("types", f"types={{{name!r}: {kind!r}}}", f"{name}={kind}"),
            )
    for names, kind in ((categorical, CATEGORY), (ignore, IGNORE)):
        for name in names:
            if said.setdefault(name, kind) != kind:
                raise TableError(f"the column {name!r} is named as {said[name]!r} and as {kind!r}; name it once")
    return said


def read_columns(
    source: Any, special: Mapping[str, str], types: Mapping[str, str], advance: Callable[[int], Any]
) -> FoundColumns:
    """Read all rows; `special` columns are read as that says, and those of `types` are what these say.

    What a column holds is first guessed by the first rows, and then decided by all.
    """
    categories = {name for name, kind in types.items() if kind == CATEGORY}
    guessed = source.kinds({*categories, *(name for name, kind in special.items() if kind == VERBATIM)})
    kinds = {name: kind for name, kind in guessed.items() if name not in special and types.get(name) != IGNORE}
    forced = {name for name, kind in types.items() if kind == NUMBER}
    kinds.update(dict.fromkeys(forced, NUMBER))
    wanted = {name: kind for name, kind in kinds.items() if kind in (NUMBER, TEXT)}
    frame, tally = read_all(source, {**wanted, **special}, advance)
    found = FoundColumns(frame, kinds, notes=[*source.notes])
    _refuse_text(tally, forced)
    open_names = kinds.keys() - forced
    text = [name for name in tally.columns() if name in open_names and _may_be_text(tally, name)]
    if text:
        found.frame = frame.with_columns(read_all(source, dict.fromkeys(text, TEXT))[0])
        kinds.update(dict.fromkeys(text, TEXT))
    found.strays = {name: strays for name, strays in tally.columns().items() if name not in text}
    if not isinstance(source, TypedTable):
        _settle(source, found, categories)
    return found


def _may_be_text(tally: Tally, name: str) -> bool:
    """Whether a column is not one of numbers, or one with other marks than those of the first rows."""
    patterns = [re.compile(marks.pattern()) for marks in (COMMAS, POINTS)]
    marked = any(pattern.match(value) for value in tally.columns()[name].counts for pattern in patterns)
    return marked or name in tally.too_many()


def _refuse_text(tally: Tally, forced: Collection[str]) -> None:
    """Refuse columns without any number that are said to hold numbers."""
    for name, strays in tally.columns().items():
        if name in forced and strays.total == strays.n_known:
            raise TableError.saying(
                "{given}, and none of its values is a number: {told}; name another type",
                given=Parameter("types", f"types={{{name!r}: 'number'}}", f"{name}=number"),
                told=strays.told(),
            )


def _settle(source: Any, found: FoundColumns, categories: Collection[str]) -> None:
    """Make numbers of columns that looked like text in the first rows only."""
    doubtful = {name: found.frame[name] for name in _doubtful(found) if name not in categories}
    if not doubtful:
        return
    whole = found_kinds(doubtful, source.spelling)
    source.spelling = replace(source.spelling, marks={**source.spelling.marks, **whole.marks})
    found.notes += [note for note in whole.notes if note not in found.notes]
    for name, text in doubtful.items():
        if whole.kinds[name] != NUMBER:
            continue
        numbers, places = source.spelling.numbers(text)
        found.kinds[name] = NUMBER
        found.frame = found.frame.with_columns(numbers)
        if len(places):
            n_known = len(text) - text.null_count()
            found.strays[name] = strays_of(text, places, n_known, lambda row: f"row {row + 1:,}")


def _doubtful(found: FoundColumns) -> Iterator[str]:
    """Columns of text most of whose first values look like numbers."""
    for name, kind in found.kinds.items():
        if kind == TEXT:
            known = found.frame[name].drop_nulls().head(_SAMPLE)
            if len(known) and int(known.str.contains(_DIGITS).sum()) >= _MOSTLY * len(known):
                yield name
