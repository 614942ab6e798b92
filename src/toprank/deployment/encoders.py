"""Encoders of categories, which are texts or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._missing import is_scalar_nan

from toprank.deployment.graph import Graph
from toprank.deployment.rows import MISSING, Column, Rows, looked_up

Floats = NDArray[np.float64]


def is_missing(value: Any) -> bool:
    """Whether a category, or a text, is the missing one."""
    return value is None or bool(is_scalar_nan(value))


def is_text(categories: NDArray[Any]) -> bool:
    """Whether a column of these categories is text; otherwise it is numbers."""
    known = [value for value in categories.tolist() if not is_missing(value)]
    texts = [isinstance(value, str) for value in known]
    if any(texts) and not all(texts):
        raise TypeError(
            "a column has texts and numbers as categories, which has no ONNX export; turn all of them to text first"
        )
    return any(texts)


def one_hot(graph: Graph, encoder: Any, rows: Rows) -> Rows:
    """A column of 0 and 1 for each category, but for those that are dropped or joined."""
    parts = []
    for j, column in enumerate(rows.columns()):
        place, n_places, rest = _places(encoder, j)
        indicators = np.zeros((len(place), n_places))
        indicators[np.flatnonzero(place >= 0), place[place >= 0]] = 1.0
        unknown = np.zeros(n_places)
        if rest is not None and rest >= 0:
            unknown[rest] = 1.0
        if encoder.handle_unknown == "error":
            unknown[:] = np.nan
        known = _is_category(graph, column, encoder.categories_[j])
        parts.append(Rows.of_matrix(graph, _chosen(graph, known, indicators, unknown), n_places))
    return Rows.side_by_side(graph, parts)


def _places(encoder: Any, j: int) -> tuple[NDArray[np.int64], int, int | None]:
    """The output of each category, -1 for a dropped one; how many there are, and that of infrequent ones, if any."""
    categories = encoder.categories_[j]
    place, rest = _grouped(encoder, j), None
    if len(np.unique(place)) < len(categories) or _has_infrequent(encoder, j):
        rest = int(place.max())
    n_places = int(place.max()) + 1
    dropped = None if encoder.drop_idx_ is None else encoder._drop_idx_after_grouping[j]
    if dropped is not None:
        shifted = np.arange(n_places) - (np.arange(n_places) > dropped)
        shifted[dropped] = -1
        place, n_places = shifted[place], n_places - 1
        rest = None if rest is None else int(shifted[rest])
    may_join = encoder.handle_unknown in ("infrequent_if_exist", "warn")
    return place, n_places, rest if may_join else None


def _has_infrequent(encoder: Any, j: int) -> bool:
    return bool(encoder._infrequent_enabled) and encoder._default_to_infrequent_mappings[j] is not None


def _grouped(encoder: Any, j: int, *, without_missing: bool = False) -> NDArray[np.int64]:
    """The number of each category after infrequent ones are joined."""
    if _has_infrequent(encoder, j):
        return np.asarray(encoder._default_to_infrequent_mappings[j], dtype=np.int64)
    n_missing = sum(map(is_scalar_nan, encoder.categories_[j].tolist())) if without_missing else 0
    return np.arange(len(encoder.categories_[j]) - n_missing)


def ordinal(graph: Graph, encoder: Any, rows: Rows) -> Rows:
    """The number of each category; to scikit-learn nan is a missing one here, and None one like any other."""
    parts = []
    unknown = encoder.unknown_value if encoder.handle_unknown == "use_encoded_value" else np.nan
    for j, column in enumerate(rows.columns()):
        categories = encoder.categories_[j]
        numbers = np.full(len(categories), float(encoder.encoded_missing_value))
        has_number = [not is_scalar_nan(value) for value in categories.tolist()]
        numbers[has_number] = _grouped(encoder, j, without_missing=True)
        known = _is_category(graph, column, categories)
        number = _chosen(graph, known, numbers[:, None], np.array([unknown], dtype=np.float64))
        parts.append(Rows.of_matrix(graph, number, 1))
    return Rows.side_by_side(graph, parts)


def coded(graph: Graph, column: Column, categories: Sequence[Any]) -> str:
    """The place of each value among categories, nan for one that is missing or not known."""
    known = np.array([*categories, None], dtype=object)[:-1]
    if not column.is_text:
        numbers = np.arange(len(known), dtype=np.float64)[:, None]
        return _chosen(graph, _is_category(graph, column, known), numbers, np.array([np.nan]))
    places = looked_up(graph, column, _numbers_of_texts(column, known) or {"": -1}, -1)
    return graph.add("Where", graph.add("Less", places, np.float64(0)), np.float64(np.nan), places)


def _is_category(graph: Graph, column: Column, categories: NDArray[Any]) -> str:
    """Which category each row has: 0 and 1 of shape (n, n_categories)."""
    double = graph.onnx.TensorProto.DOUBLE
    if column.is_text:
        numbers = looked_up(graph, column, _numbers_of_texts(column, categories), -1)
        same = graph.add("Equal", numbers, np.arange(len(categories), dtype=np.float64)[None])
        return graph.add("Cast", same, to=double)
    values = np.array([np.nan if is_missing(value) else float(value) for value in categories.tolist()])
    if graph.input_type == "float32" and not np.array_equal(values, values.astype(np.float32), equal_nan=True):
        raise TypeError(
            "a column of numbers is used as categories that single precision does not tell apart from others; use "
            "input_type='float64'"
        )
    same = graph.add("Equal", column.result, values[None])
    if np.isnan(values).any():
        is_nan = graph.add("And", graph.add("IsNaN", column.result), np.isnan(values)[None])
        same = graph.add("Or", same, is_nan)
    return graph.add("Cast", same, to=double)


def _numbers_of_texts(column: Column, categories: NDArray[Any]) -> dict[str, int]:
    """The number of the category of each text that stands for one."""
    values = categories.tolist()
    texts = {value: number for number, value in enumerate(values) if not is_missing(value)}
    of_missing = [number for number, value in enumerate(values) if is_missing(value)]
    if len(of_missing) > 1 or (of_missing and MISSING not in column.spellings.values()):
        raise TypeError(
            "a column of text has None in its training rows, which scikit-learn tells apart from nan (an imputer of "
            "nan leaves None) and a graph of ONNX does not; write nan in place of None: frame.fillna(np.nan)"
        )
    missing = of_missing[0] if of_missing else None
    for spelling, meant in column.spellings.items():
        number = missing if meant is MISSING else texts.get(meant)
        if spelling in texts and number not in (None, texts[spelling]):
            raise TypeError(
                f"the text {spelling!r} is a category, and also how a graph of ONNX writes a missing one; replace one "
                "of them in the training data by another text"
            )
        if number is not None:
            texts[spelling] = number
    return texts


def _chosen(graph: Graph, known: str, values: Floats, unknown: Floats) -> str:
    """Of each row the values of its category, or those of an unknown one; each may be nan."""
    result = graph.add("MatMul", known, np.nan_to_num(values))
    is_nan = np.isnan(values)
    if is_nan.any():
        marks = graph.add("MatMul", known, is_nan.astype(np.float64))
        result = graph.add("Where", graph.add("Greater", marks, np.float64(0)), np.float64(np.nan), result)
    if unknown.any():  # nan counts
        found = graph.add("ReduceSum", known, np.array([1]), keepdims=1)
        result = graph.add("Where", graph.add("Greater", found, np.float64(0)), result, unknown[None])
    return result
