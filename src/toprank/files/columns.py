"""Which columns of a table a model uses, and how.

========  ==================================================  ====================================================
kind      column                                              in the model
========  ==================================================  ====================================================
number    numbers                                             missing: the median, and a column that says so; scaled
truth     true and false                                      1 and 0, then as a number
category  other text, and columns that are named categorical  a column of 0 and 1 for each of at most 100 values
========  ==================================================  ====================================================

Left out are dates, columns without any value or with one value only, and text of which most values differ.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank.exceptions import Message, Parameter
from toprank.files.errors import TableError, excerpt
from toprank.files.source import DATE, NUMBER, TEXT, TRUTH, batch_of
from toprank.files.spelling import Spelling, polars
from toprank.files.strays import Strays, Tally, stray_notes

CATEGORY, IGNORE = "category", "ignore"
TYPES = (NUMBER, CATEGORY, IGNORE)
"""What a user may say of a column."""
MISSING = "(missing)"
"""The category of missing values."""
MOST_CATEGORIES = 100
_FEW_VALUES = 20
# The variance of larger numbers is not finite, that of smaller ones is zero.
LARGEST, _SMALLEST = 1e150, 1e-150


@dataclass
class Columns:
    """The columns of a model: kinds of those used, in the order of the table, why others are not; notes.

    `strays` has the values that are no numbers in columns of numbers.
    """

    used: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    strays: dict[str, Strays] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    """What the columns of the file hold, also those that are not used."""


def choose_columns(
    frame: Any, kinds: Mapping[str, str], categorical: Collection[str] = (), left_out: Mapping[str, str] | None = None
) -> Columns:
    """Decide on every column, as `judged_columns` does; there must be one to learn from."""
    columns = judged_columns(frame, kinds, categorical, left_out)
    if not columns.used:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in list(columns.left_out.items())[:3])
        raise TableError(f"there is no column to learn from ({reasons or 'the table has none besides the target'})")
    return columns


def judged_columns(
    frame: Any, kinds: Mapping[str, str], categorical: Collection[str] = (), left_out: Mapping[str, str] | None = None
) -> Columns:
    """Decide on every column of a file that is neither target nor identifier; `left_out` says why others are not used.

    `frame` has numbers as doubles with nan for missing and text as strings with null. `kinds` has all columns in the
    order of the file, also those not in the frame. Columns of `categorical` are categories whatever they look like.
    """
    columns, categorical = Columns(left_out=dict(left_out or {})), {*categorical}
    for name, kind in kinds.items():
        if kind in (NUMBER, TEXT):
            role, reason = _role(frame[name], kind, name in categorical)
            if kind == NUMBER and not reason and looks_like_number_of_row(frame[name]):
                columns.notes.append(
                    Message(
                        "{found}; if it is an identifier, name it by {id_column=}, or leave it out by {ignored}",
                        found=f"column {name!r} has another whole number in every row",
                        id_column=name,
                        ignored=_ignored(name),
                    )
                )
        elif kind == DATE:
            role, reason = "", "dates are not used; turn them into numbers, such as the hour or the weekday"
        else:
            role, reason = "", f"values of the type {kind} are not used"
        if reason:
            columns.left_out[name] = reason
        else:
            columns.used[name] = role
    return columns


def _role(series: Any, kind: str, categorical: bool) -> tuple[str, str]:
    """How a column is used, or why it is not."""
    known = _numbers_of(series) if kind == NUMBER else series.drop_nulls()
    if not len(known):
        return "", "it has no values"
    if len(known) == len(series) and known.min() == known.max():
        return "", f"it has the value {excerpt(str(known[0]))} in every row"
    if kind == NUMBER:
        _check_size(series, known)
        return NUMBER, ""
    distinct = known.n_unique()
    if not categorical and set(known.unique().str.to_lowercase()) <= {"true", "false"}:
        return TRUTH, ""
    if not categorical and distinct > max(_FEW_VALUES, len(known) // 2):
        return "", f"it is text with {distinct} different values in {len(known)} rows"
    return CATEGORY, ""


def _numbers_of(series: Any) -> Any:
    """A column of numbers without missing ones; it is asked first, as in wide tables each step of polars is felt."""
    return series.drop_nans() if np.isnan(series.to_numpy()).any() else series


def _check_size(series: Any, known: Any) -> None:
    largest = float(np.abs(known.to_numpy()).max())
    if largest > LARGEST:
        row = int(np.flatnonzero(~(np.abs(series.fill_nan(0.0).to_numpy()) <= LARGEST))[0])
        value = series[row]
        how = "not finite" if np.isinf(value) else "too large"
        raise TableError.saying(
            "{found}; correct it, leave the field empty, or leave the column out by {ignored}",
            found=f"column {series.name!r} has the value {value:g} in row {row + 1}, which is {how}",
            ignored=_ignored(series.name),
        )
    if 0 < largest < _SMALLEST:
        raise TableError.saying(
            "{found}; write it in another unit, or leave it out by {ignored}",
            found=f"column {series.name!r} has no value larger than {largest:g}, which is too small to be scaled",
            ignored=_ignored(series.name),
        )


def _ignored(name: str) -> Parameter:
    """How a column is left out, for a message."""
    return Parameter("ignore", f"ignore=[{name!r}]", name)


def looks_like_number_of_row(series: Any) -> bool:
    """Whether a column has a different whole number in every row."""
    values = series.to_numpy()
    whole = len(values) > _FEW_VALUES and bool(np.all(values == np.floor(values)))
    return whole and bool(series.n_unique() == len(values))


def prepared(frame: Any, used: Mapping[str, str], spelling: Spelling | None = None, tally: Tally | None = None) -> Any:
    """The used columns alone, as the preprocessing takes them: doubles with nan, strings without null.

    `frame` is of polars or pandas, or anything that polars can read, with at least these columns. Strays among numbers
    are added to `tally`; without one a warning tells exceptions, and more of them are an error.
    """
    own = Tally() if tally is None else tally
    spelling = spelling or Spelling()
    frame = _as_polars(frame, used)
    there = {*frame.columns}
    absent = [name for name in used if name not in there]
    if absent:
        raise TableError(f"the table has no column {absent[0]!r}, which the model needs")
    kinds = {name: TEXT if kind == CATEGORY else kind for name, kind in used.items()}
    batch = batch_of(frame, kinds, spelling, lambda row: f"row {row + 1}", 0, len(frame))
    own.add(batch.n_known, batch.strays)
    if tally is None:
        own.refuse_too_many()
        for note in stray_notes(own.columns(), learns=False):
            warnings.warn(note, UserWarning, stacklevel=4)
    return with_missing_category(batch.frame, used)


def with_missing_category(frame: Any, used: Mapping[str, str]) -> Any:
    """A frame in which missing is a category too."""
    pl = polars()
    return frame.with_columns(pl.col(name).fill_null(MISSING) for name, kind in used.items() if kind == CATEGORY)


def _as_polars(frame: Any, used: Mapping[str, str]) -> Any:
    """A frame of polars; of a pandas frame the used columns only."""
    pl, pandas = polars(), sys.modules.get("pandas")
    if pandas is None or not isinstance(frame, pandas.DataFrame):
        return frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
    times = Counter(frame.columns)
    several = [name for name in used if times[name] > 1]
    if several:
        raise TableError(f"the table has {times[several[0]]} columns {several[0]!r}; keep one of them")
    return pl.DataFrame({name: _from_pandas(name, frame[name]) for name in used if times[name]})


def _from_pandas(name: str, series: Any) -> Any:
    """A column of pandas; polars would need pyarrow for all but numbers."""
    pl, kind = polars(), series.dtype.kind
    if isinstance(series.dtype, np.dtype) and kind in "biuf":
        return pl.Series(name, series.to_numpy(np.float64) if kind == "f" else series.to_numpy())
    values = [None if missing else value for value, missing in zip(series.tolist(), series.isna(), strict=True)]
    return pl.Series(name, values, strict=False)
