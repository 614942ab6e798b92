"""Numbers as people read them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

LONGEST_TEXT = 120
# A percent sign after a space at which no line is broken.
UNIT = "\u00a0%"


def count(value: float) -> str:
    """A number of rows; an expected number, of a list that ends inside a tie, has two decimals."""
    return f"{value:,.0f}" if abs(value - round(value)) < 1e-9 else f"{value:,.2f}"


def percent(share: float) -> str:
    """A share in percent with three digits or so; tiny ones keep their digits."""
    if not np.isfinite(share):
        return "–"
    value = 100 * share
    if value in (0, 100):
        return f"{value:.0f}{UNIT}"
    if 99.95 <= value < 100:
        return f"{min(value, 99.999):.3f}{UNIT}"
    return f"{value:.1f}{UNIT}" if value >= 10 else f"{_plain(value)}{UNIT}"


def round_percent(share: float) -> str:
    """A round share in percent, such as a level or a tick."""
    return f"{float(f'{100 * share:.6g}') + 0.0:g}{UNIT}"


def limits(lower: float, upper: float) -> str:
    """A confidence interval of a share."""
    return f"{percent(lower)} – {percent(upper)}"


def number(value: float, digits: int = 4) -> str:
    """A number with a few digits."""
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    if 1e4 <= abs(value) < 1e15 and value == round(value):
        return f"{value:,.0f}".replace("-", "−")
    digits_of, _, exponent = f"{value:.{digits}g}".partition("e")
    return digits_of.replace("-", "−") + (f"·10{superscript(int(exponent))}" if exponent else "")


def signed(value: float, decimals: int = 0) -> str:
    """A difference with its sign; one that rounds to zero has none."""
    if np.isnan(value):
        return "–"
    text = f"{value:+,.{decimals}f}"
    return text[1:] if not text.strip("+-0.") else text.replace("-", "−")


def superscript(exponent: int) -> str:
    """An exponent as it is written above the line."""
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def cell(value: Any) -> str:
    """A value of a table or a parameter as short text, whatever it is."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # missing values of pandas
        return "–"
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_ | Integral):
        value = float(value)
        large = 1e5 <= abs(value) < 1e15
        text = "–" if np.isnan(value) else f"{value:.0f}" if large else f"{value:.5g}"
    else:
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _plain(value: float) -> str:
    """Three digits, never in exponent form for what a reader may meet."""
    if value < 1e-6:
        return f"{value:.2g}"
    return np.format_float_positional(value, precision=3, unique=False, fractional=False, trim="-")
