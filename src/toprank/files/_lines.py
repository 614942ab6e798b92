"""Blocks of text lines to rows, compiled: comma-separated values and svmlight.

Both kernels fill arrays that the caller has made large enough for all rows and return how many there are: good rows,
bad lines, numbers that `parse_number` leaves to Python, and lines. All bad lines and all numbers that are left are
counted, and as many described as there is room for. A bad line leaves no trace among the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.compiled import compiled, part
from toprank.files._numbers import INFINITE, LEFT, MISSING, NUMBER, is_decimal, is_no_label, parse_number
from toprank.files.labels import DECIMAL, NUMERIC, TEXTUAL, TRUTH, ZERO_ONE
from toprank.files.rows import MOST_BAD_LINES

# What is wrong with a line.
FIELDS, QUOTE, IS_MISSING, IS_INFINITE, IS_NO_NUMBER, LABEL, INDEX, ORDER, PAIR = range(1, 10)
# What a column is for; from 0 on it is the number of a feature.
IGNORED, TARGET = -1, -2
# How far the value of a number that is left to Python may be from the true one, relative to it.
_NEAR = 1e-15
_TRUE, _FALSE = np.frombuffer(b"true", np.uint8), np.frombuffer(b"false", np.uint8)
# Numbers left to Python that there is room for at first.
_LEFT_ROOM = 1000


class Found(NamedTuple):
    """What the kernels fill: of each good row label, end, line and the number of bad lines since the row before it."""

    y: NDArray[np.int64]
    ends: NDArray[np.int64]
    lines: NDArray[np.int64]
    skipped: NDArray[np.int64]
    bad: NDArray[np.int64]
    """The first bad lines. Columns: line, what is wrong, column or index, start and end of the text."""
    left: NDArray[np.int64]
    """Columns: place of the number among the values, row, start and end of the text."""


def room(n_rows: int, n_left: int = _LEFT_ROOM) -> Found:
    """Arrays for so many rows and numbers left to Python."""
    y, ends, lines, skipped = (np.empty(n_rows, np.int64) for _ in range(4))
    bad, left = np.empty((MOST_BAD_LINES, 5), np.int64), np.empty((n_left, 4), np.int64)
    return Found(y, ends, lines, skipped, bad, left)


@compiled()
def parse_csv(text: Any, stops: bool, delimiter: int, slots: Any, labels: Any, fill: float, X: Any, found: Any) -> Any:
    """Rows of comma-separated values, with `stops` up to the first bad line.

    `slots` says what a column is for, `fill` replaces missing values unless nan.
    """
    n_rows, n_bad, n_left, line, start, skipped = 0, 0, 0, 0, 0, 0
    while start < len(text):
        end = _line_end(text, start)
        line += 1
        last, after = end, end + 1
        if last > start and text[last - 1] == 13:  # carriage return
            last -= 1
        if not _is_empty(text, start, last, delimiter):
            what, column, a, b, n_more = _csv_row(
                text, start, last, delimiter, slots, labels, fill, X, n_rows, found, n_left
            )
            if what == 0:
                _note_row(found, n_rows, _lesser(after, len(text)), line, skipped)
                n_rows, n_left, skipped = n_rows + 1, n_left + n_more, 0
            else:
                _note_bad(found.bad, n_bad, line, what, column, a, b)
                n_bad, skipped = n_bad + 1, skipped + 1
                if stops:
                    break
        start = after
    return n_rows, n_bad, n_left, line


@part()
def _csv_row(
    text: Any,
    start: int,
    end: int,
    delimiter: int,
    slots: Any,
    labels: Any,
    fill: float,
    X: Any,
    row: int,
    found: Any,
    n_left: int,
) -> Any:
    """Fill one row; what is wrong with it, in which column and where, and how many numbers were left.

    A wrong number of fields is told rather than the wrong fields that it leads to.
    """
    column, position, n_more = 0, start, 0
    what, where, first, last = 0, 0, 0, 0
    while position <= end:
        a, b, position, closed, quoted = _field(text, position, end, delimiter)
        if not closed:
            return QUOTE, _lesser(column, len(slots) - 1), a, b, 0
        slot = slots[column] if column < len(slots) else IGNORED
        wrong = 0
        if slot == TARGET:
            found.y[row] = _label(text, a, b, labels, quoted)
            wrong = LABEL if found.y[row] < 0 else 0
        elif slot != IGNORED:
            value, status = parse_number(text, a, b)
            if status == MISSING and not np.isnan(fill):
                value, status = fill, NUMBER
            X[row, slot] = value
            if status == LEFT:
                _note_left(found.left, n_left + n_more, slot, row, a, b)
                n_more += 1
            elif status != NUMBER:
                wrong = _wrong(status)
        if what == 0 and wrong != 0:
            what, where, first, last = wrong, column, a, b
        column += 1
    if column != len(slots):
        return FIELDS, column, start, end, 0
    return what, where, first, last, n_more


@compiled()
def parse_svmlight(
    text: Any, stops: bool, base: int, n_features: int, labels: Any, data: Any, indices: Any, indptr: Any, found: Any
) -> Any:
    """Rows ``label index:value ... # comment``, with `stops` up to the first bad line.

    Indices count from `base` and rise.
    """
    n_rows, n_bad, n_left, line, start, skipped = 0, 0, 0, 0, 0, 0
    indptr[0] = 0
    while start < len(text):
        end = _line_end(text, start)
        line += 1
        stop = start
        while stop < end and text[stop] != 35:  # #
            stop += 1
        first, last = _trim(text, start, stop)
        if first < last:
            what, place, a, b, n_values, n_more = _svmlight_row(
                text, first, last, base, n_features, labels, data, indices, indptr[n_rows], n_rows, found, n_left
            )
            if what == 0:
                _note_row(found, n_rows, _lesser(end + 1, len(text)), line, skipped)
                indptr[n_rows + 1] = indptr[n_rows] + n_values
                n_rows, n_left, skipped = n_rows + 1, n_left + n_more, 0
            else:
                _note_bad(found.bad, n_bad, line, what, place, a, b)
                n_bad, skipped = n_bad + 1, skipped + 1
                if stops:
                    break
        start = end + 1
    return n_rows, n_bad, n_left, line


@part()
def _svmlight_row(
    text: Any,
    start: int,
    end: int,
    base: int,
    n_features: int,
    labels: Any,
    data: Any,
    indices: Any,
    at: int,
    row: int,
    found: Any,
    n_left: int,
) -> Any:
    """Fill one row; what is wrong with it, at which index and where, and how many values and numbers left it has.

    An index above the number of features is told only of a row without other faults: that number may be the largest
    index of the rows without them.
    """
    a, b = start, _token_end(text, start, end)
    label = _label(text, a, b, labels, False)
    if label < 0:
        return LABEL, 0, a, b, 0, 0
    found.y[row] = label
    before, n_values, n_more = -1, 0, 0
    too_large, first, last = 0, 0, 0
    while True:
        a = b
        while a < end and _is_blank(text[a]):
            a += 1
        if a == end:
            return (INDEX if too_large else 0), too_large, first, last, n_values, n_more
        b = _token_end(text, a, end)
        index, colon = _index(text, a, b)
        if index == -2:  # qid:
            continue
        if index < 0:
            return PAIR, 0, a, b, 0, 0
        if index < base:
            return INDEX, index, a, b, 0, 0
        if index - base >= n_features and not too_large:
            too_large, first, last = index, a, b
        if index <= before:
            return ORDER, index, a, b, 0, 0
        value, status = parse_number(text, colon + 1, b)
        if status == LEFT:
            _note_left(found.left, n_left + n_more, at + n_values, row, colon + 1, b)
            n_more += 1
        elif status != NUMBER:
            return _wrong(status), index, colon + 1, b, 0, 0
        data[at + n_values], indices[at + n_values] = value, index - base
        before, n_values = index, n_values + 1


@part()
def _index(text: Any, start: int, end: int) -> Any:
    """The index before a colon, and where the colon is; -2 for a query number, -1 for anything else."""
    if (
        end - start > 4
        and text[start] == 113
        and text[start + 1] == 105
        and text[start + 2] == 100
        and text[start + 3] == 58
    ):
        return -2, start + 3
    i, index = start, 0
    while i < end and 48 <= text[i] <= 57:
        index = _lesser(index * 10 + (text[i] - 48), 2**40)
        i += 1
    return (index, i) if start < i < end and text[i] == 58 else (-1, i)


@part()
def _label(text: Any, start: int, end: int, labels: Any, quoted: bool) -> int:
    """1 for a positive, 0 for a negative, -1 for neither."""
    if labels.mode == TEXTUAL or labels.mode == TRUTH or labels.mode == DECIMAL:
        if labels.mode == TEXTUAL:
            same = _is_text(text, start, end, labels.text, quoted)
            if not same and _is_word(text, start, end, labels.small):
                return -1  # it is the positive label but for capital letters
        elif labels.mode == TRUTH:
            same = _is_word(text, start, end, labels.text)
        else:
            same = is_decimal(text, start, end, labels.digits, labels.exponent, labels.negative)
        return 1 if same else (-1 if is_no_label(text, start, end) else 0)
    value, status = parse_number(text, start, end)
    if status != NUMBER and status != LEFT:
        if labels.mode == ZERO_ONE and _is_word(text, start, end, _TRUE):
            return 1
        return 0 if labels.mode == ZERO_ONE and _is_word(text, start, end, _FALSE) else -1
    near = _NEAR if status == LEFT else 0.0
    if labels.mode == NUMERIC:
        return 1 if abs(value - labels.number) <= near * abs(labels.number) else 0
    return 1 if abs(value - 1) <= near else (0 if value == 0 or abs(value + 1) <= near else -1)


@part()
def _is_text(text: Any, start: int, end: int, wanted: Any, quoted: bool) -> bool:
    """Whether a field is this text; between quotes, two quotes stand for one."""
    i, j = start, 0
    while i < end and j < len(wanted) and text[i] == wanted[j]:
        i += 2 if quoted and text[i] == 34 else 1  # "
        j += 1
    return i >= end and j == len(wanted)


@part()
def _is_word(text: Any, start: int, end: int, word: Any) -> bool:
    """Whether a field is this word of small letters, in small or capital ones."""
    same = end - start == len(word)
    i = 0
    while same and i < len(word):
        c = text[start + i]
        same = (c + 32 if 65 <= c <= 90 else c) == word[i]
        i += 1
    return same


@part()
def _is_empty(text: Any, start: int, end: int, delimiter: int) -> bool:
    """Whether a line has nothing but blanks, which is no row."""
    while start < end and text[start] != delimiter and _is_blank(text[start]):
        start += 1
    return start == end


@part()
def _field(text: Any, start: int, end: int, delimiter: int) -> Any:
    """Start and end of a field without quotes and blanks, start of the next one, whether quotes are closed and used."""
    i = start
    while i < end and text[i] == 32:
        i += 1
    if i < end and text[i] == 34:  # "
        j = i + 1
        while j < end and not (text[j] == 34 and (j + 1 == end or text[j + 1] != 34)):
            j += 2 if text[j] == 34 else 1
        k = j + 1
        while k < end and text[k] == 32:
            k += 1
        a, b = _trim(text, i + 1, _lesser(j, end))
        return a, b, k + 1, j < end and (k == end or text[k] == delimiter), True
    j = i
    while j < end and text[j] != delimiter:
        j += 1
    a, b = _trim(text, i, j)
    return a, b, j + 1, True, False


@part()
def _lesser(a: int, b: int) -> int:
    """As `min`, which takes numba longer to compile."""
    return a if a < b else b


@part()
def _line_end(text: Any, start: int) -> int:
    i = start
    while i < len(text) and text[i] != 10:
        i += 1
    return i


@part()
def _token_end(text: Any, start: int, end: int) -> int:
    i = start
    while i < end and not _is_blank(text[i]):
        i += 1
    return i


@part()
def _trim(text: Any, start: int, end: int) -> Any:
    while start < end and _is_blank(text[start]):
        start += 1
    while end > start and _is_blank(text[end - 1]):
        end -= 1
    return start, end


@part()
def _is_blank(c: int) -> bool:
    return c == 32 or c == 9 or c == 13  # space, tabulator, carriage return


@part()
def _wrong(status: int) -> int:
    return IS_MISSING if status == MISSING else (IS_INFINITE if status == INFINITE else IS_NO_NUMBER)


@part()
def _note_row(found: Any, row: int, end: int, line: int, skipped: int) -> None:
    found.ends[row], found.lines[row], found.skipped[row] = end, line, skipped


@part()
def _note_bad(bad: Any, at: int, line: int, what: int, place: int, start: int, end: int) -> None:
    if at < len(bad):
        bad[at, 0], bad[at, 1], bad[at, 2], bad[at, 3], bad[at, 4] = line, what, place, start, end


@part()
def _note_left(left: Any, at: int, place: int, row: int, start: int, end: int) -> None:
    if at < len(left):
        left[at, 0], left[at, 1], left[at, 2], left[at, 3] = place, row, start, end
