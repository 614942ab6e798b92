"""Linear and kernel models as ONNX graphs."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.base import Estimator

# Old enough for runtimes of the last years.
_OPSET, _IR_VERSION = 13, 8
_INPUT_TYPES = ("float32", "float64")


def to_onnx(model: Any, *, input_type: str = "float32") -> Any:
    """Export a fitted model to ONNX.

    The graph takes `X` of shape (n, n_features) and gives `score` of shape (n,), the `decision_function`: above zero
    means positive. It computes in double precision, whatever the type of its input.

    Parameters
    ----------
    model : estimator
        A fitted linear or kernel model of toprank, online models included, but for precomputed and callable kernels;
        or a pipeline of `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `RobustScaler` and such a model.
    input_type : {"float32", "float64"}, default="float32"
        Type of the numbers in `X`.

    Returns
    -------
    onnx.ModelProto
        ``to_onnx(model).SerializeToString()`` are the bytes of an .onnx file.

    Raises
    ------
    TypeError
        If the model, or a step of the pipeline, has no export.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import PatMatNP, to_onnx
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, random_state=0)
    >>> model = make_pipeline(StandardScaler(), PatMatNP()).fit(X, y)
    >>> try:
    ...     names = [output.name for output in to_onnx(model).graph.output]
    ... except ImportError:  # needs pip install 'toprank[onnx]'
    ...     names = ["score"]
    >>> names
    ['score']
    """
    if input_type not in _INPUT_TYPES:
        raise ValueError(f"input_type must be 'float32' or 'float64', got {input_type!r}")
    graph = _Graph()
    *before, last = _steps(model)
    rows = graph.add("Cast", "X", to=graph.onnx.TensorProto.DOUBLE)
    for step in before:
        rows = _scale(graph, step, rows)
    score = _score(graph, last, rows)
    n_features = getattr(model, "n_features_in_", getattr(last, "n_features_in_", 0))
    return graph.model(score, int(n_features), input_type)


class _Graph:
    """Nodes and constants in the order of their making."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("to_onnx needs onnx; install it by pip install 'toprank[onnx]'") from error
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """The name of an array of doubles, or of whole numbers."""
        array = np.asarray(value)
        array = array if array.dtype == np.int64 else np.ascontiguousarray(array, dtype=np.float64)
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array.reshape(np.shape(value)), name))
        return name

    def add(self, operation: str, *inputs: Any, **attributes: Any) -> str:
        """Apply an operation to results, given by name, and to numbers; the name of the result."""
        names = [item if isinstance(item, str) else self.constant(item) for item in inputs]
        result = f"{operation.lower()}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, names, [result], **attributes))
        return result

    def model(self, score: str, n_features: int, input_type: str) -> Any:
        """The finished model."""
        helper, types = self.onnx.helper, self.onnx.TensorProto
        self.nodes.append(helper.make_node("Identity", [score], ["score"]))
        kind = types.FLOAT if input_type == "float32" else types.DOUBLE
        inputs = [helper.make_tensor_value_info("X", kind, ["n", n_features])]
        outputs = [helper.make_tensor_value_info("score", types.DOUBLE, ["n"])]
        graph = helper.make_graph(self.nodes, "toprank", inputs, outputs, self.constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", _OPSET)],
            ir_version=_IR_VERSION,
            producer_name="toprank",
            producer_version=importlib.metadata.version("toprank"),
        )
        self.onnx.checker.check_model(model)
        return model


def _steps(model: Any) -> list[Any]:
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    steps = [step for step in steps if step is not None and step != "passthrough"]
    for step in steps:
        check_is_fitted(step)
    return steps


def _scale(graph: _Graph, step: Any, rows: str) -> str:
    """(x − shift) · factor."""
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    shift: Any = None
    if type(step) is StandardScaler:
        shift, factor = (step.mean_ if step.with_mean else None), (1 / step.scale_ if step.with_std else None)
    elif type(step) is RobustScaler:
        shift, factor = (
            (step.center_ if step.with_centering else None),
            (1 / step.scale_ if step.with_scaling else None),
        )
    elif type(step) is MaxAbsScaler:
        factor = 1 / step.scale_
    elif type(step) is MinMaxScaler and not step.clip:
        shift, factor = -step.min_ / step.scale_, step.scale_
    else:
        raise TypeError(
            f"{type(step).__name__} has no ONNX export here; use StandardScaler, RobustScaler, MaxAbsScaler or "
            "MinMaxScaler without clipping, or export the other steps with skl2onnx"
        )
    rows = rows if shift is None else graph.add("Sub", rows, shift)
    return rows if factor is None else graph.add("Mul", rows, factor)


def _score(graph: _Graph, model: Any, rows: str) -> str:
    if not (isinstance(model, Estimator) and (hasattr(model, "coef_") or hasattr(model, "dual_coef_"))):
        raise TypeError(
            f"{type(model).__name__} has no ONNX export here; it is there for the linear and kernel models of toprank, "
            "alone or after a scaler"
        )
    score = _without_threshold(graph, model, rows)
    intercept = getattr(model, "intercept_", None)  # a WMWRanker has none
    return score if intercept is None else graph.add("Add", score, np.float64(intercept[0]))


def _without_threshold(graph: _Graph, model: Any, rows: str) -> str:
    features = getattr(model, "feature_map_", None)
    if hasattr(model, "dual_coef_"):
        vectors = model.components_ if hasattr(model, "components_") else model.support_vectors_
        return _expansion(graph, model._kernel, vectors, model.dual_coef_.ravel(), rows)
    if features is None:
        return graph.add("MatMul", rows, model.coef_[0])
    if hasattr(features, "normalisation"):
        coefficients = features.normalisation @ model.coef_[0].astype(np.float64)
        return _expansion(graph, features.kernel, features.components, coefficients, rows)
    # cos x = sin(x + π/2): many runtimes have no cosine in double precision
    offsets = features.sampler.random_offset_ + np.pi / 2
    waves = graph.add("Sin", graph.add("Add", graph.add("MatMul", rows, features.sampler.random_weights_), offsets))
    return graph.add("MatMul", waves, np.sqrt(2 / model.coef_.shape[1]) * model.coef_[0].astype(np.float64))


def _expansion(graph: _Graph, kernel: Any, vectors: Any, coefficients: NDArray[Any], rows: str) -> str:
    """Σ cᵢ k(x, zᵢ) in double precision."""
    if callable(kernel.name) or kernel.name == "precomputed":
        what = "a function" if callable(kernel.name) else "precomputed"
        raise TypeError(f"the kernel is {what}, which has no ONNX export; use 'linear', 'rbf', 'poly' or 'sigmoid'")
    Z = np.asarray(vectors.toarray() if hasattr(vectors, "toarray") else vectors, dtype=np.float64)
    if not len(Z):  # w = 0; runtimes do not agree on products with no columns
        return graph.add("MatMul", rows, np.zeros(Z.shape[1]))
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
    return graph.add("MatMul", values, coefficients)


def _gaussian(graph: _Graph, Z: NDArray[np.float64], gamma: float, rows: str) -> str:
    """exp(−γ(‖x‖² − 2 x·z + ‖z‖²)), with rows centred first, as norms then cancel less."""
    centre = Z.mean(axis=0)
    Z = Z - centre
    rows = graph.add("Sub", rows, centre)
    squares = graph.add("ReduceSum", graph.add("Mul", rows, rows), np.array([1]), keepdims=1)
    products = graph.add("MatMul", rows, -2 * Z.T)
    distances = graph.add("Add", graph.add("Add", products, squares), np.square(Z).sum(axis=1))
    return graph.add("Exp", graph.add("Mul", graph.add("Max", distances, np.float64(0)), np.float64(-gamma)))
