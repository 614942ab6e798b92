"""How a file spells what is missing, and how it writes its numbers: one rule for all who read one.

A field is missing if it is one of `MISSING_WORDS`, in small or capital letters, or a word that the user names. A target
knows fewer of them, as ``-``, ``?`` and ``none`` may be labels. Numbers are written with a decimal point and without
marks between thousands, unless the `Marks` of their column say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from toprank.exceptions import InputError
from toprank.files import polars_package

MISSING_LABELS = ("", "na", "nan", "null")
"""Fields of a target that are no label; and all that meant missing in models that do not say what does."""
MISSING_WORDS = (
    *MISSING_LABELS,
    *("none", "nil", "n/a", "n.a.", "<na>", "(null)", "\\n", "missing", "?", "-", "--", "---", "."),
    *("#n/a", "#na", "#null!", "#num!", "#value!", "#div/0!", "#ref!", "#name?"),
)
"""Fields that stand for a missing value, in small letters; the last ones are what spreadsheets write."""


class Marks(NamedTuple):
    """What stands before the decimals of a number, and between its thousands."""

    decimal: str = "."
    thousands: str = ""

    def pattern(self) -> str:
        """A regular expression for numbers that are written so."""
        decimal, thousands = re.escape(self.decimal), re.escape(self.thousands)
        grouped = rf"\d{{1,3}}({thousands}\d{{3}})+|" if thousands else ""
        return rf"^[+-]?(({grouped}\d+)({decimal}\d*)?|{decimal}\d+)([eE][+-]?\d+)?$"


def polars() -> Any:
    """The package, or an error that says how to get it."""
    return polars_package.polars("tables need")


PLAIN, COMMAS, POINTS = Marks(), Marks(".", ","), Marks(",", ".")


@dataclass(frozen=True)
class Spelling:
    """What a file writes for missing values and numbers.

    `marks` are those of the columns of numbers that are not written plainly; `given` are those that the user names.
    `encoding` is that of the text, None for UTF-8.
    """

    missing: tuple[str, ...] = MISSING_WORDS
    marks: Mapping[str, Marks] = field(default_factory=dict)
    given: Marks | None = None
    encoding: str | None = None

    @classmethod
    def of(
        cls, missing: Collection[str], decimal: str | None, thousands: str | None, encoding: str | None = None
    ) -> Self:
        """What the user says, after a look at whether it can be."""
        if isinstance(missing, str):
            missing = (missing,)
        words = (*MISSING_WORDS, *(str(word).strip().lower() for word in missing))
        return cls(tuple(dict.fromkeys(words)), {}, _given_marks(decimal, thousands), encoding)

    @classmethod
    def of_model(cls, reading: Mapping[str, Any] | None) -> Self:
        """What a model file knows; one of an earlier version knows nothing, and fewer words were known then."""
        if reading is None:
            return cls(MISSING_LABELS)
        marks = {name: Marks(*pair) for name, pair in reading["marks"].items()}
        return cls(tuple(reading["missing"]), marks, None, reading["encoding"])

    def record(self, names: Collection[str]) -> dict[str, Any]:
        """What a model file holds, of these columns."""
        marks = {name: list(self.marks_of(name)) for name in names if self.marks_of(name) != PLAIN}
        return {"missing": list(self.missing), "marks": marks, "encoding": self.encoding}

    def marks_of(self, name: str) -> Marks:
        """Those of a column."""
        return self.marks.get(name, PLAIN)

    def missing_numbers(self) -> list[float]:
        """Numbers that stand for a missing value, such as -999."""
        return [float(word) for word in self.missing[len(MISSING_WORDS) :] if re.match(PLAIN.pattern(), word)]

    def text(self, series: Any) -> Any:
        """A series as strings without spaces around them; what is missing becomes null."""
        pl = polars()
        return known_text(series.cast(pl.String).str.strip_chars(), self.missing)

    def numbers(self, series: Any, marks: Marks | None = None) -> tuple[Any, Any]:
        """A series as doubles with nan for missing, and the places of all values that are no numbers.

        Marks are by default those of the column that the series is named after.
        """
        pl = polars()
        dtype, marks = series.dtype, self.marks_of(series.name) if marks is None else marks
        places = pl.Series([], dtype=pl.UInt32)
        if dtype.is_temporal() or dtype.is_nested() or dtype == pl.Binary:
            return pl.Series(series.name, [float("nan")] * len(series), pl.Float64), series.is_not_null().arg_true()
        is_text = not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null))
        series = series.cast(pl.String) if is_text else series
        number = series.cast(pl.Float64, strict=False) if marks == PLAIN or not is_text else _nothing(series)
        if number.null_count() > series.null_count():  # a missing word, spaces, marks, or no number
            left = (number.is_null() & series.is_not_null()).arg_true()
            text = series.gather(left).str.strip_chars()
            values = _with_marks(text, marks)
            places = left.filter(values.is_null() & known_text(text, self.missing).is_not_null())
            number = number.scatter(left, values)
        number = number.fill_null(float("nan")) if number.null_count() else number
        for missing in self.missing_numbers():
            number = number.set(number == missing, float("nan"))
        return number, places


def known_text(text: Any, missing: Collection[str], but: str | None = None) -> Any:
    """A series without its missing words, which become null; `but` is none of them."""
    pl = polars()
    known = ~pl.first().str.to_lowercase().is_in(list(missing))
    if but is not None:  # a comparison more is felt in large files
        known = known | (pl.first() == pl.lit(but))
    return text.to_frame().select(pl.when(known).then(pl.first())).to_series()


def _with_marks(text: Any, marks: Marks) -> Any:
    """Texts as doubles; null for what is no number by these marks."""
    pl = polars()
    if marks != PLAIN:
        plain = pl.first()
        if marks.thousands:
            plain = plain.str.replace_all(marks.thousands, "", literal=True)
        plain = plain.str.replace(marks.decimal, ".", literal=True)
        written = pl.first().str.contains(marks.pattern())
        text = text.to_frame().select(pl.when(written).then(plain)).to_series()
    return text.cast(pl.Float64, strict=False)


def _nothing(series: Any) -> Any:
    pl = polars()
    return pl.Series(series.name, [None], dtype=pl.Float64).new_from_index(0, len(series))


def _given_marks(decimal: str | None, thousands: str | None) -> Marks | None:
    """The marks that a user means; of two that belong together one is enough."""
    if decimal is None and thousands is None:
        return None
    for name, mark in (("decimal", decimal), ("thousands", thousands)):
        if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in '+-"\r\n'):
            raise InputError.of(name, mark, "must be one character such as ',' or '.'")
    if decimal is None:
        decimal = "," if thousands == "." else "."
    if thousands is None:
        thousands = "." if decimal == "," else ""
    if decimal == thousands:
        raise InputError.of("thousands", thousands, "must be another character than {decimal}", "leave one of them out")
    return Marks(decimal, thousands)
