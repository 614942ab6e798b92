"""What all files of tables offer: names, a guess at the kind of each column, and batches of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from toprank.files import polars_package
from toprank.files.errors import NotANumberError, TableError, excerpt, listed, no_rows

NUMBER, TEXT, DATE = "number", "text", "date"
"""Kinds of columns in a file; any other kind is the name of a type that is not used."""
VERBATIM = "verbatim"
"""How an identifier is read: as text, and exactly as it stands in the file."""
MISSING_WORDS = ("", "na", "nan", "null")
"""Fields that stand for a missing value, in small or capital letters."""
BLOCK_VALUES = 2_000_000
"""Values in a batch of a typed table."""


def polars() -> Any:
    """The package, or an error that says how to get it."""
    return polars_package.polars("tables need")


def reading_errors() -> tuple[type[BaseException], ...]:
    """What polars raises for content that it cannot read; a panic of its native code is no Exception."""
    exceptions = polars().exceptions
    return exceptions.PolarsError, exceptions.PanicException, OSError, ValueError


@dataclass(frozen=True)
class Batch:
    """Some rows of a file, the number of the first, from 0, and how far it is read, in the unit of the source's `size`.

    In the frame of polars numbers are doubles with nan for missing, and texts are strings with null.
    """

    frame: Any
    first_row: int
    position: int


class Source(Protocol):
    """A file with rows and named columns."""

    path: str
    names: list[str]
    size: int

    def kinds(self, as_text: Collection[str] = ()) -> dict[str, str]:
        """The kind of each column, of text files by the first rows only; those of `as_text` are text anyway."""

    def batches(self, kinds: Mapping[str, str]) -> Iterator[Batch]:
        """Rows of the file with the named columns, each `NUMBER`, `TEXT` or `VERBATIM`."""


class TypedTable:
    """A file that knows the types of its columns and where its rows are; positions are numbers of rows."""

    path: str
    names: list[str]
    size: int
    types: dict[str, str]
    numbers: frozenset[str]
    """Columns of numbers, or of true and false."""

    def kinds(self, as_text: Collection[str] = ()) -> dict[str, str]:
        """The kind of each column by its type."""
        if not self.size:
            raise no_rows(self.path)
        return self.types | dict.fromkeys((name for name in self.names if name in as_text), TEXT)

    @abstractmethod
    def batches(self, kinds: Mapping[str, str], first_row: int = 0) -> Iterator[Batch]:
        """Rows with the named columns from one on, some `BLOCK_VALUES` values at a time."""


def require_columns(source: Source, names: Collection[str], remedy: str) -> None:
    """Check that columns are there, each once."""
    times = Counter(source.names)
    for name in names:
        if times[name] != 1:
            has = f"has {times[name]} columns" if times[name] else "has no column"
            raise TableError(f"{source.path!r} {has} {name!r}; {remedy}, its columns are {listed(source.names)}")


def chosen_features(
    path: str, columns: list[str], target: str, features: list[str] | None, ignore: Collection[str]
) -> list[str]:
    """The columns that a stream learns from: those of `features`, or all with a name of their own but a few."""
    times = Counter(columns)
    left_out = {target, *ignore}
    every = [name for name in columns if times[name] == 1 and name not in left_out]
    chosen = every if features is None else features
    for name in (target, *ignore, *chosen):
        if times[name] != 1:
            has = "no column" if not times[name] else "several columns"
            raise TableError(f"{path!r} has {has} {name!r}; its columns are {listed(columns)}")
    if ignore and not chosen:
        raise TableError.saying(
            "no column of {path!r} is left to learn from; leave out fewer columns by {ignore=}", path=path
        )
    if target in chosen or not chosen or len(set(chosen)) < len(chosen):
        raise TableError(
            f"features must name columns other than the target {target!r}, each once, got {listed(chosen)}"
        )
    return list(chosen)


def repeated(names: Collection[str]) -> list[str]:
    """Names that occur several times, sorted."""
    return sorted(name for name, times in Counter(names).items() if times > 1)


def as_text(series: Any) -> Any:
    """A series as strings without spaces around them; missing words become null."""
    return known_text(series.cast(polars().String).str.strip_chars())


def known_text(text: Any, but: str | None = None) -> Any:
    """A series without its missing words, which become null; `but` is none of them."""
    pl = polars()
    known = ~pl.first().str.to_lowercase().is_in(MISSING_WORDS)
    if but is not None:  # a comparison more is felt in large files
        known = known | (pl.first() == pl.lit(but))
    return text.to_frame().select(pl.when(known).then(pl.first())).to_series()


def as_number(series: Any) -> tuple[Any, int | None]:
    """A series as doubles with nan for missing, and the place of the first value that is no number."""
    pl = polars()
    dtype = series.dtype
    if dtype.is_temporal() or dtype.is_nested() or dtype == pl.Binary:
        return series, 0 if len(series) else None
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        series = series.cast(pl.String)
    number = series.cast(pl.Float64, strict=False)
    wrong = None
    if number.null_count() > series.null_count():  # a missing word, spaces, or no number
        text = as_text(series)
        number = text.cast(pl.Float64, strict=False)
        no_number = number.is_null() & text.is_not_null()
        wrong = no_number.arg_max() if no_number.any() else None
    return number.fill_null(float("nan")) if number.null_count() else number, wrong


def converted(frame: Any, kinds: Mapping[str, str], where: Callable[[int], str]) -> Any:
    """A frame with numbers as doubles and texts as strings; `where` tells, for an error, where in the file a row is."""
    pl = polars()
    done: dict[str, Any] = {}
    wrong: dict[str, int] = {}
    for name, kind in kinds.items():
        if kind == NUMBER:
            done[name], place = as_number(frame[name])
            if place is not None:
                wrong[name] = place
        else:
            done[name] = frame[name].cast(pl.String) if kind == VERBATIM else as_text(frame[name])
    if wrong:
        name, place = next(iter(wrong.items()))
        raise NotANumberError(
            f"{where(place)} has {excerpt(str(frame[name][place]))} in the column {name!r}, which is not a number; "
            "correct it, or leave it empty if it is missing",
            list(wrong),
        )
    return pl.DataFrame(done)


def numbered(path: str, first_row: int) -> Callable[[int], str]:
    """Where a row of a batch is in its file, in words."""
    return lambda row: f"row {first_row + row + 1} of {path!r}"
