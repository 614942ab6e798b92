"""Checks of numbers that a caller gives."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any


def require_count(name: str, value: Any, least: int = 1) -> None:
    """Check that a parameter is a whole number, and not too small."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def require_number(name: str, value: Any, least: float) -> None:
    """Check that a parameter is a finite number, and not too small."""
    if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) < float("inf"):
        raise ValueError(f"{name} must be a finite number of at least {least:g}, got {value!r}.")


def require_share(name: str, value: Any) -> None:
    """Check that a parameter is a share."""
    if not (isinstance(value, Real) and 0 < float(value) < 1):
        raise ValueError(f"{name} must be strictly between 0 and 1, got {value!r}.")
