"""Decimal numbers out of bytes, to the nearest double.

A number is a whole number w of up to 19 digits times a power of ten. Where w ≤ 2⁵³ and the power is at most 10²² both
are doubles, and one product or quotient is the nearest double. Otherwise w is the sum of two doubles, the product or
quotient is computed to about 100 bits, and it is taken if all numbers within its error round to the same double. What
is left, numbers with more digits and very large or small ones, is for Python's `float`; their values here are near the
true ones, to some units of the last digit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import part
from toprank.files.spelling import MISSING_LABELS, MISSING_WORDS

NUMBER, MISSING, INFINITE, NO_NUMBER, LEFT = 0, 1, 2, 3, 4
_POWERS = 10.0 ** np.arange(23)
_MOST_DIGITS = 19
_LARGEST_POWER = 308  # from 1e308 on a number counts as infinite
_LARGEST_EXACT = np.uint64(2**53)
_SPLITTER = 2.0**27 + 1
_ERROR = 2.0**-95
# those that are no label come first
_WORDS = {word.encode(): MISSING for word in MISSING_WORDS} | {b"inf": INFINITE, b"infinity": INFINITE}
_N_LABEL_WORDS = len(MISSING_LABELS)
_WORD_TEXT = np.array([list(word.ljust(8, b"\0")) for word in _WORDS], np.uint8)
_WORD_LENGTH = np.array([len(word) for word in _WORDS])
_WORD_MEANING = np.array(list(_WORDS.values()))


@part()
def parse_number(text: Any, start: int, end: int) -> Any:
    """Value and status, one of the five above, of the characters from start to end, without blanks around them."""
    signed = start < end and (text[start] == 43 or text[start] == 45)  # + -
    sign = -1.0 if signed and text[start] == 45 else 1.0
    first = start + 1 if signed else start
    whole, digits, exponent, seen, point, i = np.uint64(0), 0, 0, False, False, first
    while i < end:
        c = text[i]
        if 48 <= c <= 57:  # 0 to 9
            seen = True
            if digits > 0 or c != 48:
                digits += 1
                if digits <= _MOST_DIGITS:
                    whole = whole * np.uint64(10) + np.uint64(c - 48)
            if point:
                exponent -= 1
        elif c == 46 and not point:  # .
            point = True
        else:
            break
        i += 1
    if not seen:
        meaning = _word_meaning(text, start, end, len(_WORD_LENGTH))
        if meaning == NO_NUMBER and signed:
            meaning = _word_meaning(text, first, end, len(_WORD_LENGTH))
            unsigned = meaning == MISSING and not _is_nan(text, first, end)  # a sign may stand before nan and inf only
            meaning = NO_NUMBER if unsigned else meaning
        return np.nan, meaning
    if i < end and (text[i] == 69 or text[i] == 101):  # E e
        power, i = _exponent(text, i + 1, end)
        exponent += power
    if i != end:
        return np.nan, NO_NUMBER
    if digits == 0:
        return sign * 0.0, NUMBER
    if digits + exponent > _LARGEST_POWER:
        return np.nan, INFINITE
    if digits > _MOST_DIGITS or abs(exponent) >= len(_POWERS):
        dropped = digits - _MOST_DIGITS if digits > _MOST_DIGITS else 0
        return sign * (np.float64(whole) * 10.0 ** float(exponent + dropped)), LEFT
    value, status = _scaled(whole, exponent)
    return sign * value, status


@part()
def is_decimal(text: Any, start: int, end: int, digits: Any, exponent: int, negative: bool) -> bool:
    """Whether a field is the number ± 0.d₁d₂… · 10^exponent, digit by digit; zero has no digits."""
    signed = start < end and (text[start] == 43 or text[start] == 45)
    minus = signed and text[start] == 45
    seen, same, point, n, place, i = False, True, False, 0, 0, start + signed
    while i < end and (48 <= text[i] <= 57 or (text[i] == 46 and not point)):
        if text[i] == 46:
            point = True
        else:
            seen = True
            if n > 0 or text[i] != 48:
                same = same and text[i] == (digits[n] if n < len(digits) else 48)
                n += 1
                place += not point
            elif point:
                place -= 1  # a zero after the point and before the first digit
        i += 1
    if seen and i < end and (text[i] == 69 or text[i] == 101):
        power, i = _exponent(text, i + 1, end)
        place += power
    if not (seen and same and i == end and n >= len(digits)):
        return False
    return len(digits) == 0 or (place == exponent and minus == negative)


@part()
def is_no_label(text: Any, start: int, end: int) -> Any:
    """Whether a field of a target is missing."""
    return _word_meaning(text, start, end, _N_LABEL_WORDS) == MISSING


@part()
def _is_nan(text: Any, start: int, end: int) -> bool:
    n, a = 110, 97
    return end - start == 3 and text[start] | 32 == n and text[start + 1] | 32 == a and text[start + 2] | 32 == n


@part()
def _word_meaning(text: Any, start: int, end: int, n_words: int) -> Any:
    """What a field without digits means, by the first words."""
    for row in range(n_words):
        if end - start == _WORD_LENGTH[row]:
            same = True
            for i in range(start, end):
                c = text[i]
                lower = c + 32 if 65 <= c <= 90 else c
                same = same and lower == _WORD_TEXT[row, i - start]
            if same:
                return _WORD_MEANING[row]
    return NO_NUMBER


@part()
def _exponent(text: Any, start: int, end: int) -> Any:
    """The power of ten after an e, and where it ends; -1 if there is none."""
    signed = start < end and (text[start] == 43 or text[start] == 45)
    sign = -1 if signed and text[start] == 45 else 1
    first = start + 1 if signed else start
    i, power = first, 0
    while i < end and 48 <= text[i] <= 57:
        power = power * 10 + (text[i] - 48)
        power = power if power < 100_000 else 100_000
        i += 1
    return sign * power, (i if i > first else -1)


@part()
def _scaled(whole: Any, exponent: int) -> Any:
    """The double nearest to whole · 10^exponent, and whether it was found."""
    power = _POWERS[abs(exponent)]
    high = np.float64(whole)
    if whole <= _LARGEST_EXACT:
        return (high / power if exponent < 0 else high * power), NUMBER
    if high >= 2.0**64:
        # rounded up to a number that is no unsigned integer
        return (high / power if exponent < 0 else high * power), LEFT
    rounded = np.uint64(high)
    low = np.float64(whole - rounded) if whole >= rounded else -np.float64(rounded - whole)
    if exponent < 0:
        first = high / power
        product, error = _product(first, power)
        second = ((high - product) - error + low) / power
    else:
        first, error = _product(high, power)
        second = error + low * power
    margin = _ERROR * first
    above, below = first + (second + margin), first + (second - margin)
    return above, (NUMBER if above == below else LEFT)


@part()
def _product(a: float, b: float) -> Any:
    """The rounded product of two doubles and its rounding error, exactly (Dekker, 1971)."""
    product = a * b
    scaled = _SPLITTER * a
    a_high = scaled - (scaled - a)
    scaled = _SPLITTER * b
    b_high = scaled - (scaled - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
