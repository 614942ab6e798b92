"""The target of a file: which rows are positive, and which have no label.

A label is a number, or a text without the blanks around it. Numbers are compared as numbers, digit by digit, so 1 and
1.0 are the same; true and false in small and capital letters alike; other texts as they stand. A text that differs from
the positive label in capital letters only is refused: it would be negative, which is hardly meant. A missing word is no
label, unless it is the very word that is named as positive.
"""

from __future__ import annotations

import difflib
from collections import Counter
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import Message
from toprank.files.errors import TableError, excerpt
from toprank.files.spelling import MISSING_LABELS, known_text, polars

_USUAL = ({"0", "1"}, {"-1", "1"}, {"false", "true"})
# Longer numbers are written with an exponent.
_LONGEST = 20
# How a label is read: as one of 1, 0, -1, true, false; as a double; as a number with all of its digits; as one of true
# and false; as a text.
ZERO_ONE, NUMERIC, DECIMAL, TRUTH, TEXTUAL = range(5)
_NONE = np.zeros(0, np.uint8)


class Labels(NamedTuple):
    """Which labels are positive, in a form that compiled functions take; all others are negative.

    A decimal number is 0.d₁d₂… · 10^exponent; its digits are characters, of which neither the first nor the last is 0.
    """

    mode: int
    number: float = 0.0
    text: NDArray[np.uint8] = _NONE
    digits: NDArray[np.uint8] = _NONE
    exponent: int = 0
    negative: bool = False
    small: NDArray[np.uint8] = _NONE
    """A text in small letters."""


def is_finite_number(value: Any) -> bool:
    """Whether a value is a number other than nan and infinity."""
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


def number_labels(positive: float | None) -> Labels:
    """Labels that are numbers; None: 1 against 0 and -1."""
    return Labels(ZERO_ONE) if positive is None else Labels(NUMERIC, float(positive))


def labels_of(positive: Any, *, numbers_only: bool) -> Labels:
    """Labels of which a number or a text is positive; None: 1 against 0 and -1, or true against false."""
    if positive is None or is_finite_number(positive):
        return number_labels(None if positive is None else float(positive))
    if numbers_only or not isinstance(positive, str) or not positive.strip():
        or_text = "" if numbers_only else " or a text"
        raise TableError.of(
            "positive", positive, "must be a finite number{or_text}", "leave it out for labels 1 and 0", or_text=or_text
        )
    text = _canonical(positive.strip())
    number = _decimal(text)
    if number is None:
        return Labels(TRUTH if text in ("true", "false") else TEXTUAL, text=_bytes(text), small=_bytes(_small(text)))
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    exponent = number.adjusted() + 1 if digits else 0
    return Labels(DECIMAL, 0.0, _bytes(text), _bytes(digits), exponent, bool(digits) and number < 0)


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray(text.encode()), np.uint8)


def labels_in(series: Any, labels: Labels) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """1 for positives and 0 for all others, and which rows have a label that can be read; of texts as in the file."""
    pl = polars()
    text = series.str.strip_chars()
    if labels.mode in (ZERO_ONE, NUMERIC):
        if labels.mode == ZERO_ONE:
            text = text.str.to_lowercase().replace({"true": "1", "false": "0"})
        values = text.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        if labels.mode == NUMERIC:
            return (values == labels.number).astype(np.int64), np.isfinite(values)
        return (values == 1).astype(np.int64), np.isin(values, (1.0, 0.0, -1.0))
    wanted, found = labels.text.tobytes().decode(), text.drop_nulls().unique().to_list()
    positive = text.is_in([one for one in found if _canonical(one) == wanted]).fill_null(False)
    named = known_text(text, MISSING_LABELS).is_not_null()
    known = positive | (named & ~text.is_in(_alike(wanted, found)).fill_null(False))
    return positive.to_numpy().astype(np.int64), known.to_numpy()


def label_reason(text: str, labels: Labels) -> str:
    """What is wrong with a label, in words."""
    if text.lower() in MISSING_LABELS:
        return "the label is missing"
    if labels.mode == ZERO_ONE:
        return Message("the label {text!r} is none of 1, 0 and -1; name the positive label by {positive=}", text=text)
    wanted = labels.text.tobytes().decode()
    if _alike(wanted, [text]):
        return Message(
            "the label {text!r} is {wanted!r} but for capital letters; name it by {positive=}, or write both alike",
            text=text,
            wanted=wanted,
            positive=text,
        )
    return Message("the label {text!r} is not a number; pass {positive=} as text if labels are text", text=text)


def positive_rows(series: Any, positive: str | None) -> tuple[NDArray[np.int64], NDArray[np.bool_], str]:
    """Labels as 1 for positives and 0 for all others, which rows have a label, and the positive label.

    The series holds texts as in the file. Labels 0 and 1, -1 and 1, or false and true need no `positive`.
    """
    series = known_text(series.str.strip_chars(), MISSING_LABELS, None if positive is None else positive.strip())
    known = series.is_not_null().to_numpy()
    texts = [str(label) for label in series.drop_nulls().unique().sort()]
    if not texts:
        raise TableError.saying("the target {name!r} has no values; name another column by {target}", name=series.name)
    canonical = {text: _canonical(text) for text in texts}
    labels = sorted(set(canonical.values()))
    if positive is None:
        counts: Counter[str] = Counter()
        for text, n in series.drop_nulls().value_counts().iter_rows():
            counts[canonical[text]] += n
        positive = _usual_positive(counts, series.name)
    wanted = _canonical(positive.strip())
    _require_label(wanted, labels, series.name)
    chosen = [text for text, label in canonical.items() if label == wanted]
    y = series.is_in(chosen).fill_null(False).to_numpy().astype(np.int64)
    return y, known, positive


def _require_label(wanted: str, labels: list[str], name: str) -> None:
    """Refuse a positive label that no row has, and one that some rows write with other capital letters."""
    alike = _alike(wanted, labels)
    if wanted not in labels:
        close = alike or difflib.get_close_matches(wanted, labels, n=1)
        there = Message("the labels in the column {name!r} are {labels}", name=name, labels=_shown(labels))
        if close:
            raise TableError.saying(
                "no row has the label {wanted!r}; {there}; did you mean {positive=}?",
                wanted=wanted,
                there=there,
                positive=close[0],
            )
        raise TableError.saying("no row has the label {wanted!r}; {there}", wanted=wanted, there=there)
    if alike:
        raise TableError.saying(
            "{positive=} would make rows with the label {other!r} negative, which differs in capital letters only; the "
            "labels in the column {name!r} are {labels}: write those of one class alike",
            positive=wanted,
            other=alike[0],
            name=name,
            labels=_shown(labels),
        )


def _alike(wanted: str, labels: list[str]) -> list[str]:
    """The labels that differ from a text in capital letters only."""
    return [one for one in labels if _canonical(one) != wanted and _small(one) == _small(wanted)]


def _small(text: str) -> str:
    """A text with its letters from A to Z in small, as compiled functions compare it."""
    return "".join(chr(ord(char) + 32) if "A" <= char <= "Z" else char for char in text)


def _canonical(text: str) -> str:
    """Numbers in one way of writing, with all of their digits; true and false in small letters."""
    number = _decimal(text)
    if number is None:
        return text.lower() if text.lower() in ("true", "false") else text
    if not number:
        return "0"
    exact = Context(prec=len(number.as_tuple().digits), Emax=MAX_EMAX, Emin=MIN_EMIN)
    number = number.normalize(exact)
    return format(number, "f") if abs(number.adjusted()) < _LONGEST else str(number)


def _decimal(text: str) -> Decimal | None:
    """A text as a finite number, None if it is none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and "_" not in text else None  # 1_0 is a name


def _usual_positive(counts: Counter[str], name: str) -> str:
    """The positive one of usual labels; of others the error proposes the one of the fewest rows."""
    labels = sorted(counts)
    if set(labels) in _USUAL:
        return "true" if "true" in labels else "1"
    if len(labels) == 1:
        raise TableError.saying(
            "the target {name!r} has one value only, {label}; rows of both classes are needed, or name another column "
            "by {target}",
            name=name,
            label=excerpt(labels[0]),
        )
    rarest = min(reversed(labels), key=counts.__getitem__)
    raise TableError.saying(
        "the labels in {name!r} are {labels}; say which one is positive, for instance {positive=}",
        name=name,
        labels=_shown(labels),
        positive=rarest if len(rarest) < 30 else "LABEL",
    )


def _shown(labels: list[str], most: int = 6) -> str:
    return ", ".join(map(excerpt, labels[:most])) + (f", … ({len(labels)} in all)" if len(labels) > most else "")
