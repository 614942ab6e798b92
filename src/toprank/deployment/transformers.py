"""What prepares rows for a model, in double precision; what is not here is asked of skl2onnx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from toprank.deployment.encoders import is_missing, is_text, one_hot, ordinal
from toprank.deployment.foreign import transformed_by_skl2onnx
from toprank.deployment.graph import Graph
from toprank.deployment.rows import MISSING, Column, Rows, looked_up


def transformed(graph: Graph, step: Any, rows: Rows) -> Rows:
    """Rows after a fitted transformer."""
    if _does_nothing(step):
        return rows
    if isinstance(step, FrozenEstimator):
        return transformed(graph, step.estimator, rows)
    if isinstance(step, Pipeline):
        for _, one in step.steps:
            rows = transformed(graph, one, rows)
        return rows
    if isinstance(step, FeatureUnion):
        return _side_by_side(graph, [(name, one, rows) for name, one in step.transformer_list], step)
    if isinstance(step, ColumnTransformer):
        return _side_by_side(graph, [(name, one, rows.take(places)) for name, one, places in _parts(step)], step)
    own = _TRANSFORMERS.get(type(step))
    return transformed_by_skl2onnx(graph, step, rows) if own is None else own(graph, step, rows)


def text_places(step: Any) -> set[int]:
    """The places of the columns that a step takes as texts."""
    if isinstance(step, FrozenEstimator):
        return text_places(step.estimator)
    if isinstance(step, Pipeline):
        first = next((one for _, one in step.steps if not _does_nothing(one)), None)
        return text_places(first)
    if isinstance(step, FeatureUnion):
        return {place for _, one in step.transformer_list for place in text_places(one)}
    if isinstance(step, ColumnTransformer):
        return {places[place] for _, one, places in _parts(step) for place in text_places(one)}
    if isinstance(step, OneHotEncoder | OrdinalEncoder):
        return {place for place, categories in enumerate(step.categories_) if is_text(categories)}
    if isinstance(step, SimpleImputer) and is_text(step.statistics_):
        return {*range(len(step.statistics_))}
    return set()


def _does_nothing(step: Any) -> bool:
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return True
    return isinstance(step, FunctionTransformer) and step.func is None


def _is_dropped(step: Any) -> bool:
    return isinstance(step, str) and step == "drop"


def _parts(step: ColumnTransformer) -> Iterator[tuple[str, Any, list[int]]]:
    """Names, transformers and the places of their columns."""
    for name, one, columns in step.transformers_:
        places = [int(place) for place in step._transformer_to_input_indices[name]]
        if _is_dropped(one) or not places:
            continue
        if isinstance(columns, str | int) and not _does_nothing(one):
            raise TypeError(
                f"the step {name!r} ({type(one).__name__}) of the ColumnTransformer takes a single column as a list, "
                "which has no ONNX export"
            )
        yield name, one, places


def _side_by_side(graph: Graph, parts: list[tuple[str, Any, Rows]], step: Any) -> Rows:
    weights = step.transformer_weights or {}
    done = []
    for name, one, rows in parts:
        part = rows.take([]) if _is_dropped(one) else transformed(graph, one, rows)
        if name in weights:
            part = Rows.of_matrix(graph, graph.add("Mul", part.matrix(), np.float64(weights[name])), part.width)
        done.append(part)
    return Rows.side_by_side(graph, done)


def _scaled(graph: Graph, rows: Rows, shift: Any, factor: Any) -> Rows:
    """(x − shift) · factor; None stands for nothing."""
    matrix = rows.matrix()
    matrix = matrix if shift is None else graph.add("Sub", matrix, shift)
    matrix = matrix if factor is None else graph.add("Mul", matrix, factor)
    return Rows.of_matrix(graph, matrix, rows.width)


def _standard(graph: Graph, step: StandardScaler, rows: Rows) -> Rows:
    return _scaled(graph, rows, step.mean_ if step.with_mean else None, 1 / step.scale_ if step.with_std else None)


def _robust(graph: Graph, step: RobustScaler, rows: Rows) -> Rows:
    shift = step.center_ if step.with_centering else None
    return _scaled(graph, rows, shift, 1 / step.scale_ if step.with_scaling else None)


def _largest(graph: Graph, step: MaxAbsScaler, rows: Rows) -> Rows:
    return _clipped(graph, step, _scaled(graph, rows, None, 1 / step.scale_), (-1.0, 1.0))


def _range(graph: Graph, step: MinMaxScaler, rows: Rows) -> Rows:
    scaled = _scaled(graph, rows, -step.min_ / step.scale_, step.scale_)
    return _clipped(graph, step, scaled, step.feature_range)


def _clipped(graph: Graph, step: Any, rows: Rows, limits: tuple[float, float]) -> Rows:
    if not step.clip:
        return rows
    low, high = (np.float64(limit) for limit in limits)
    return Rows.of_matrix(graph, graph.add("Clip", rows.matrix(), low, high), rows.width)


def _monomials(graph: Graph, step: PolynomialFeatures, rows: Rows) -> Rows:
    """Products of columns, each the product of as many as the degree, of which some are 1."""
    n = graph.add("Slice", graph.add("Shape", rows.matrix()), np.array([0]), np.array([1]))
    ones = graph.add("Expand", np.array([[1.0]]), graph.add("Concat", n, np.array([1]), axis=0))
    factors = graph.add("Concat", rows.matrix(), ones, axis=1)
    powers = step.powers_
    degree = int(powers.sum(axis=1).max())
    places = np.full((len(powers), degree), rows.width)
    for number, power in enumerate(powers):
        chosen = np.repeat(np.arange(rows.width), power)
        places[number, : len(chosen)] = chosen
    products = [graph.add("Gather", factors, places[:, j], axis=1) for j in range(degree)]
    result = products[0]
    for other in products[1:]:
        result = graph.add("Mul", result, other)
    return Rows.of_matrix(graph, result, len(powers))


def _binned(graph: Graph, step: KBinsDiscretizer, rows: Rows) -> Rows:
    """The number of the bin, or a column of 0 and 1 for each bin."""
    parts = []
    for column, edges in zip(rows.columns(), step.bin_edges_, strict=True):
        above = graph.add("GreaterOrEqual", column.result, edges[1:-1][None])
        above = graph.add("Cast", above, to=graph.onnx.TensorProto.DOUBLE)
        bins, width = graph.add("ReduceSum", above, np.array([1]), keepdims=1), 1
        if step.encode != "ordinal":
            width = len(edges) - 1
            same = graph.add("Equal", bins, np.arange(width, dtype=np.float64)[None])
            bins = graph.add("Cast", same, to=graph.onnx.TensorProto.DOUBLE)
        parts.append(Rows.of_matrix(graph, bins, width))
    return Rows.side_by_side(graph, parts)


def _imputed(graph: Graph, step: SimpleImputer, rows: Rows) -> Rows:
    """Missing values replaced, and columns that say where, if the imputer adds them."""
    values = step.statistics_
    kept = [j for j, value in enumerate(values.tolist()) if step.keep_empty_features or not is_missing(value)]
    if is_text(values):
        columns = rows.columns()
        filled = Rows(graph, [_filled_text(step, columns[j], values[j]) for j in kept])
    else:
        missing = _is_missing_number(graph, step, rows.matrix())
        where = graph.add("Where", missing, np.nan_to_num(values.astype(np.float64)), rows.matrix())
        filled = Rows.of_matrix(graph, where, rows.width).take(kept)
    if not step.add_indicator:
        return filled
    marked = [int(j) for j in step.indicator_.features_]
    if is_text(values):
        marks = Rows(graph, [_missing_text(graph, step, rows.columns()[j]) for j in marked])
    else:
        marks = Rows.of_matrix(graph, graph.add("Cast", missing, to=graph.onnx.TensorProto.DOUBLE), rows.width)
        marks = marks.take(marked) if marked else Rows(graph, [])
    return Rows.side_by_side(graph, [filled, marks])


def _is_missing_number(graph: Graph, step: SimpleImputer, matrix: str) -> str:
    if is_missing(step.missing_values):
        return graph.add("IsNaN", matrix)
    return graph.add("Equal", matrix, np.float64(step.missing_values))


def _missing_spellings(step: SimpleImputer, column: Column) -> list[str]:
    """The texts that an imputer replaces."""
    if is_missing(step.missing_values):
        return [text for text, meant in column.spellings.items() if meant is MISSING]
    return [str(step.missing_values)]


def _filled_text(step: SimpleImputer, column: Column, value: Any) -> Column:
    filled = dict.fromkeys(_missing_spellings(step, column), value)
    return Column(column.result, column.is_text, {**column.spellings, **filled})


def _missing_text(graph: Graph, step: SimpleImputer, column: Column) -> Column:
    return Column(looked_up(graph, column, dict.fromkeys(_missing_spellings(step, column), 1), 0))


_TRANSFORMERS: dict[type, Callable[[Graph, Any, Rows], Rows]] = {
    StandardScaler: _standard,
    RobustScaler: _robust,
    MaxAbsScaler: _largest,
    MinMaxScaler: _range,
    PolynomialFeatures: _monomials,
    KBinsDiscretizer: _binned,
    SimpleImputer: _imputed,
    OneHotEncoder: one_hot,
    OrdinalEncoder: ordinal,
}
