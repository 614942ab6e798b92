"""What all files of tables offer: names, a guess at the kind of each column, and batches of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np

from toprank.files.content import is_pipe
from toprank.files.errors import TableError, listed, no_rows
from toprank.files.spelling import Spelling, polars
from toprank.files.strays import Strays, Tally, strays_of

NUMBER, TEXT, DATE = "number", "text", "date"
"""Kinds of columns in a file; any other kind is the name of a type that is not used."""
VERBATIM = "verbatim"
"""How an identifier is read: as text, and exactly as it stands in the file."""
TRUTH = "truth"
"""How a column of true and false is read for a model: as 1 and 0."""
_TRUE, _FALSE = ("true", "1", "1.0"), ("false", "0", "0.0")
BLOCK_VALUES = 2_000_000
"""Values in a batch of a typed table."""


def reading_errors() -> tuple[type[BaseException], ...]:
    """What polars raises for content that it cannot read; a panic of its native code is no Exception."""
    exceptions = polars().exceptions
    return exceptions.PolarsError, exceptions.PanicException, OSError, ValueError


@dataclass(frozen=True)
class Batch:
    """Some rows of a file, the number of the first, from 0, and how far it is read, in the unit of the source's `size`.

    In the frame of polars numbers are doubles with nan for missing, and texts are strings with null. `n_known` has the
    number of values that are not missing of each column of numbers, and `strays` those that are no numbers, which are
    nan in the frame. `where` tells where in the file a row of the frame is.
    """

    frame: Any
    first_row: int
    position: int
    n_known: Mapping[str, int] = field(default_factory=dict)
    strays: Mapping[str, Strays] = field(default_factory=dict)
    where: Callable[[int], str] = lambda row: f"row {row + 1:,}"


class Source(Protocol):
    """A file with rows and named columns."""

    path: str
    names: list[str]
    size: int
    spelling: Spelling
    notes: list[str]
    """What the user should know of how it is read."""

    def kinds(self, as_text: Collection[str] = ()) -> dict[str, str]:
        """The kind of each column, of text files by the first rows only; those of `as_text` are text anyway."""

    def batches(self, kinds: Mapping[str, str]) -> Iterator[Batch]:
        """Rows of the file with the named columns, each `NUMBER`, `TRUTH`, `TEXT` or `VERBATIM`."""


class TypedTable:
    """A file that knows the types of its columns and where its rows are; positions are numbers of rows."""

    path: str
    names: list[str]
    size: int
    types: dict[str, str]
    numbers: frozenset[str]
    """Columns of numbers, or of true and false."""
    spelling = Spelling()
    notes: tuple[str, ...] = ()
    has_blocks = False
    """Whether any rows are read without those before them."""

    def kinds(self, as_text: Collection[str] = ()) -> dict[str, str]:
        """The kind of each column by its type."""
        if not self.size:
            raise no_rows(self.path)
        return self.types | dict.fromkeys((name for name in self.names if name in as_text), TEXT)

    @abstractmethod
    def batches(self, kinds: Mapping[str, str], first_row: int = 0) -> Iterator[Batch]:
        """Rows with the named columns from one on, some `BLOCK_VALUES` values at a time."""

    def block(self, kinds: Mapping[str, str], first: int, count: int) -> Batch:
        """Some rows with the named columns; only of a table that `has_blocks`."""
        raise NotImplementedError


def require_columns(source: Source, names: Collection[str], remedy: str) -> None:
    """Check that columns are there, each once."""
    times = Counter(source.names)
    for name in names:
        if times[name] != 1:
            has = f"has {times[name]} columns" if times[name] else "has no column"
            meant = "" if times[name] else did_you_mean(name, source.names)
            raise TableError(f"{source.path!r} {has} {name!r}{meant}; {remedy}, its columns are {listed(source.names)}")


def did_you_mean(name: str, names: Collection[str]) -> str:
    """A question that names what is most like a name that does not exist; nothing if nothing is."""
    small = {other.lower(): other for other in names}
    near = get_close_matches(name.lower(), small, n=1, cutoff=0.7)
    return f" (did you mean {small[near[0]]!r}?)" if near else ""


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
            meant = "" if times[name] else did_you_mean(name, columns)
            raise TableError(f"{path!r} has {has} {name!r}{meant}; its columns are {listed(columns)}")
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


def batch_of(
    frame: Any, kinds: Mapping[str, str], spelling: Spelling, where: Callable[[int], str], first_row: int, position: int
) -> Batch:
    """A batch of a frame as it was read; `where` tells where in the file a row is."""
    done: dict[str, Any] = {}
    n_known: dict[str, int] = {}
    strays: dict[str, Strays] = {}
    for name, kind in kinds.items():
        if kind in (NUMBER, TRUTH):
            done[name], places = spelling.numbers(truth_as_number(frame[name]) if kind == TRUTH else frame[name])
            n_known[name] = len(frame) - int(np.isnan(done[name].to_numpy()).sum()) + len(places)
            if len(places):
                strays[name] = strays_of(frame[name], places, n_known[name], where)
        else:
            done[name] = frame[name].cast(polars().String) if kind == VERBATIM else spelling.text(frame[name])
    return Batch(polars().DataFrame(done), first_row, position, n_known, strays, where)


def truth_as_number(series: Any) -> Any:
    """Texts true and false as 1 and 0; all else as it is."""
    if series.dtype != polars().String:
        return series
    small = series.str.strip_chars().str.to_lowercase()
    mapping = {**dict.fromkeys(_TRUE, "1"), **dict.fromkeys(_FALSE, "0")}
    return small.replace(mapping).alias(series.name)


def place_of(source: Source, column: str, row: int) -> str:
    """Where in a file a row is, by reading a column once more, for an error; of a pipe its number."""
    if not is_pipe(source.path):
        for batch in source.batches({column: VERBATIM}):
            if row < batch.first_row + len(batch.frame):
                return batch.where(row - batch.first_row)
    return f"row {row + 1}"


def read_all(
    source: Source, kinds: Mapping[str, str], advance: Callable[[int], Any] = lambda position: None
) -> tuple[Any, Tally]:
    """A frame of all rows of these columns, and the strays in it."""
    pieces, tally = [], Tally()
    for batch in source.batches(kinds):
        pieces.append(batch.frame)
        tally.add(batch.n_known, batch.strays)
        advance(batch.position)
    if not pieces:
        raise no_rows(source.path)
    return polars().concat(pieces), tally


def numbered(first_row: int) -> Callable[[int], str]:
    """Where a row of a batch is in its file, in words."""
    return lambda row: f"row {first_row + row + 1:,}"
