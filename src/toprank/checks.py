"""Checks of parameters: errors that name the parameter, its value, and what would be right."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import InputError


def is_missing(value: Any) -> bool:
    """Whether a value is None or not equal to itself, as NaN; whether pandas.NA is, is itself NA."""
    itself = value == value
    return value is None or not isinstance(itself, bool | np.bool_) or not itself


def missing_values(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which values are nan, None, NaT or the NA of pandas."""
    if values.dtype.kind in "fcmM":
        return np.asarray(np.isnan(values))
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values], dtype=bool)
    return np.zeros(values.shape, dtype=bool)


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number, and no truth value, of at least `least`."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def require_count(name: str, value: Any, least: int = 1) -> None:
    """Check that a parameter is a whole number, and not too small."""
    if not is_count(value, least):
        raise InputError.of(name, value, "must be a whole number of at least {least}", least=least)


def require_number(name: str, value: Any, least: float) -> None:
    """Check that a parameter is a finite number, and not too small."""
    if isinstance(value, bool) or not (isinstance(value, Real) and least <= float(value) < math.inf):
        raise InputError.of(name, value, "must be a finite number of at least {least:g}", least=least)


def require_share(name: str, value: Any, remedy: str = "use a share such as 0.05") -> None:
    """Check that a parameter is a share."""
    if not (isinstance(value, Real) and 0 < float(value) < 1):
        raise InputError.of(name, value, "must be strictly between 0 and 1", remedy)


def require_confidence(value: Any) -> None:
    """Check the parameter `confidence`."""
    require_share("confidence", value, "use one such as 0.95")


def require_positive(name: str, value: Any, remedy: str) -> None:
    """Check that a parameter is positive and finite."""
    if not (isinstance(value, Real) and 0 < float(value) < math.inf):
        raise InputError.of(name, value, "must be positive and finite", remedy)


def require_moderate(name: str, value: Any, remedy: str) -> None:
    """Check that a parameter is positive and neither so large nor so small that products with it lose all digits."""
    require_positive(name, value, remedy)
    if not 1e-40 <= float(value) <= 1e40:
        raise InputError.of(name, value, "must be between 1e-40 and 1e+40", remedy)


def require_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Check that a parameter is one of some words."""
    if not (isinstance(value, str) and value in choices):
        raise InputError.of(name, value, "must be one of {choices}", choices=", ".join(map(repr, choices)))


def require_flag(name: str, value: Any) -> None:
    """Check that a parameter is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError.of(name, value, "must be True or False")
