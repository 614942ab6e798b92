"""Scores of models: linear ones and kernels of toprank, forests, and what skl2onnx knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC, NuSVC

from toprank.base import Estimator
from toprank.decision._scores import RESPONSES
from toprank.deployment.foreign import scored_by_skl2onnx
from toprank.deployment.graph import Graph
from toprank.deployment.rows import Rows
from toprank.deployment.trees import forest_of, forest_rows, forest_scores
from toprank.matrices.kernel import Kernel


def scored(graph: Graph, model: Any, rows: Rows, method: str) -> str:
    """Scores of a model that decides by itself, of shape (n,); `method` is one of `RESPONSES`."""
    if isinstance(model, Estimator) and (hasattr(model, "coef_") or hasattr(model, "dual_coef_")):
        return _own(graph, model, rows.matrix())
    if type(model) in (SVC, NuSVC) and method == "decision_function":
        return _support_vectors(graph, model, rows.matrix())
    forest = forest_of(model)
    if forest is not None:
        return forest_scores(graph, forest, forest_rows(graph, model, rows), method)
    return scored_by_skl2onnx(graph, model, rows, method)


def method_of(model: Any, response_method: str = "auto") -> str:
    """Where the scores of a model come from: the first of `RESPONSES` that it has, or the one asked for."""
    wanted = RESPONSES if response_method == "auto" else (response_method,)
    found = next((name for name in wanted if hasattr(model, name)), None)
    if found is None:
        raise TypeError(f"{type(model).__name__} has no ONNX export here: it has no {' and no '.join(wanted)}")
    return found


def _own(graph: Graph, model: Any, rows: str) -> str:
    score = _without_threshold(graph, model, rows)
    intercept = getattr(model, "intercept_", None)  # a WMWRanker has none
    return score if intercept is None else graph.add("Add", score, np.float64(intercept[0]))


def _support_vectors(graph: Graph, model: Any, rows: str) -> str:
    """Scores of a support vector machine; skl2onnx has them in single precision only."""
    kernel = Kernel(model.kernel, model._gamma, model.degree, model.coef0)
    coefficients = np.asarray(_dense(model.dual_coef_)).ravel()
    score = _expansion(graph, kernel, model.support_vectors_, coefficients, rows)
    return graph.add("Add", score, np.float64(model.intercept_[0]))


def _dense(values: Any) -> Any:
    return values.toarray() if hasattr(values, "toarray") else values


def _without_threshold(graph: Graph, model: Any, rows: str) -> str:
    features = getattr(model, "feature_map_", None)
    if hasattr(model, "dual_coef_"):
        vectors = model.components_ if hasattr(model, "components_") else model.support_vectors_
        return _expansion(graph, model._kernel, vectors, model.dual_coef_.ravel(), rows)
    if features is None:
        return _product(graph, rows, model.coef_[0])
    if hasattr(features, "normalisation"):
        coefficients = features.normalisation @ model.coef_[0].astype(np.float64)
        return _expansion(graph, features.kernel, features.components, coefficients, rows)
    # cos x = sin(x + π/2): many runtimes have no cosine in double precision
    offsets = features.sampler.random_offset_ + np.pi / 2
    waves = graph.add("Sin", graph.add("Add", graph.add("MatMul", rows, features.sampler.random_weights_), offsets))
    return _product(graph, waves, np.sqrt(2 / model.coef_.shape[1]) * model.coef_[0].astype(np.float64))


def _product(graph: Graph, rows: str, coefficients: NDArray[Any]) -> str:
    """A number for each row; through a matrix, as with a vector runtimes refuse no rows."""
    return graph.add("Squeeze", graph.add("MatMul", rows, coefficients[:, None]), np.array([1]))


def _expansion(graph: Graph, kernel: Any, vectors: Any, coefficients: NDArray[Any], rows: str) -> str:
    """Σ cᵢ k(x, zᵢ) in double precision."""
    if callable(kernel.name) or kernel.name == "precomputed":
        what = "a function" if callable(kernel.name) else "precomputed"
        raise TypeError(f"the kernel is {what}, which has no ONNX export; use 'linear', 'rbf', 'poly' or 'sigmoid'")
    Z = np.asarray(_dense(vectors), dtype=np.float64)
    if not len(Z):  # w = 0; runtimes do not agree on products with no columns
        return _product(graph, rows, np.zeros(Z.shape[1]))
    if kernel.name == "rbf":
        values = _gaussian(graph, Z, kernel.gamma, rows)
    else:
        # γ goes into the constants: some runtimes join a product with a number after it, in single precision
        scaled = Z.T if kernel.name == "linear" else kernel.gamma * Z.T
        values = graph.add("MatMul", rows, scaled)
        if kernel.name != "linear":
            values = graph.add("Add", values, np.float64(kernel.coef0))
        if kernel.name == "poly":
            values = graph.add("Pow", values, np.float64(kernel.degree))
        if kernel.name == "sigmoid":
            values = graph.add("Tanh", values)
    return _product(graph, values, coefficients)


def _gaussian(graph: Graph, Z: NDArray[np.float64], gamma: float, rows: str) -> str:
    """exp(−γ(‖x‖² − 2 x·z + ‖z‖²)), with rows centred first, as norms then cancel less."""
    centre = Z.mean(axis=0)
    Z = Z - centre
    rows = graph.add("Sub", rows, centre)
    squares = graph.add("ReduceSum", graph.add("Mul", rows, rows), np.array([1]), keepdims=1)
    products = graph.add("MatMul", rows, -2 * Z.T)
    distances = graph.add("Add", graph.add("Add", products, squares), np.square(Z).sum(axis=1))
    return graph.add("Exp", graph.add("Mul", graph.add("Max", distances, np.float64(0)), np.float64(-gamma)))
