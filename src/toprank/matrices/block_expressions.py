"""Expressions of vectors in pieces, and their values for one block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Rows that are computed at a time where they do not depend on each other: what is computed of them on the way stays in
# the cache, and asks for no new pages of memory, which workers of Dask give back each time.
PORTION = 4096
# Functions of the numbers of a row, beside those that NumPy calls universal.
ROW_BY_ROW = (np.where, np.clip, np.zeros_like, np.full_like, np.ones_like)


@dataclass(frozen=True)
class Leaf:
    """The place of a stored vector among those of an expression."""

    number: int


@dataclass(frozen=True)
class Call:
    """A function of expressions and of numbers that are the same for all blocks."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def evaluate(expression: Any, leaves: Sequence[Any]) -> Any:
    """The value of an expression for one block: what is computed row by row, a portion of the rows at a time."""
    if not _is_row_by_row(expression):
        return _called(expression, leaves, evaluate)
    values: list[Any] = []
    expression = _row_by_row_part(expression, leaves, values)
    shapes = {np.shape(value) for value in values}
    n = shapes.pop()[0] if len(shapes) == 1 and np.ndim(values[0]) == 1 else 0
    if n <= PORTION:
        return _at_once(expression, values)
    found = np.empty(n, _at_once(expression, [value[:0] for value in values]).dtype)
    for start in range(0, n, PORTION):
        rows = slice(start, start + PORTION)
        found[rows] = _at_once(expression, [value[rows] for value in values])
    return found


def _called(expression: Any, leaves: Sequence[Any], inner: Callable[[Any, Sequence[Any]], Any]) -> Any:
    """The value of an expression whose arguments are made by a function."""
    if isinstance(expression, Leaf):
        return leaves[expression.number]
    if isinstance(expression, Call):
        return expression.function(*(inner(argument, leaves) for argument in expression.arguments))
    return expression


def _at_once(expression: Any, leaves: Sequence[Any]) -> Any:
    return _called(expression, leaves, _at_once)


def _is_row_by_row(expression: Any) -> bool:
    if not isinstance(expression, Call):
        return False
    function = expression.function
    return isinstance(function, np.ufunc) or function in ROW_BY_ROW or function is as_type


def _row_by_row_part(expression: Any, leaves: Sequence[Any], values: list[Any]) -> Any:
    """The operations at the top that are row by row, with what they start from as leaves; its values are appended."""
    if _is_row_by_row(expression):
        return Call(expression.function, tuple(_row_by_row_part(x, leaves, values) for x in expression.arguments))
    if not isinstance(expression, Leaf | Call):
        return expression
    values.append(evaluate(expression, leaves))
    return Leaf(len(values) - 1)


def renumbered(expression: Any, places: Sequence[Leaf]) -> Any:
    """The same with other leaves."""
    if isinstance(expression, Leaf):
        return places[expression.number]
    if isinstance(expression, Call):
        return Call(expression.function, tuple(renumbered(x, places) for x in expression.arguments))
    return expression


def as_type(values: Any, dtype: Any) -> Any:
    """Numbers in another precision."""
    return values.astype(dtype)
