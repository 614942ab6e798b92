"""A graph of ONNX in the making: nodes, constants, pieces of other graphs."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Old enough for runtimes of the last years; pieces of skl2onnx need newer operations.
_OPSET, _IR_VERSION = 13, 8
ML = "ai.onnx.ml"
"""The domain of encoders and trees."""


def onnx_package() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("to_onnx needs onnx; install it by pip install 'toprank[onnx]'") from error
    return onnx


class Graph:
    """Nodes and constants in the order of their making, after inputs whose names no other result may have."""

    def __init__(self, inputs: Sequence[str], input_type: str) -> None:
        self.onnx = onnx_package()
        self.input_type = input_type
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self._opsets = {"": _OPSET}
        self._prefix = "toprank:"
        while any(name.startswith(self._prefix) for name in inputs):
            self._prefix += ":"

    def input(self, name: str, width: int, *, is_text: bool = False) -> str:
        """An input of shape (n, width); the name of its values, which are texts or doubles."""
        types = self.onnx.TensorProto
        kind = types.STRING if is_text else {"float32": types.FLOAT, "float64": types.DOUBLE}[self.input_type]
        self.inputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["n", width]))
        return name if is_text else self.add("Cast", name, to=types.DOUBLE)

    def constant(self, value: Any) -> str:
        """The name of an array of doubles, whole numbers, truths or texts."""
        array = np.asarray(value)
        if array.dtype.kind in "UO":
            array = array.astype(object)
        elif array.dtype.kind != "b" and array.dtype != np.int64:
            array = np.ascontiguousarray(array, dtype=np.float64)
        name = f"{self._prefix}constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array.reshape(np.shape(value)), name))
        return name

    def tensor(self, value: Any) -> Any:
        """An array as an attribute of a node."""
        return self.onnx.numpy_helper.from_array(np.asarray(value), "")

    def add(self, operation: str, *inputs: Any, domain: str = "", version: int = 0, **attributes: Any) -> str:
        """Apply an operation to results, given by name, and to numbers; the name of its last result.

        `version` is the least one of the domain that has the operation.
        """
        self.require(domain, version)
        names = [item if isinstance(item, str) else self.constant(item) for item in inputs]
        results = [f"{self._prefix}{operation.lower()}{len(self.nodes)}"]
        if operation == "TopK":
            results.insert(0, f"{results[0]}.values")
        self.nodes.append(self.onnx.helper.make_node(operation, names, results, domain=domain, **attributes))
        return results[-1]

    def require(self, domain: str, version: int) -> None:
        """Take at least this version of a domain."""
        self._opsets[domain] = max(self._opsets.get(domain, 0), version)

    def join(self, piece: Any, rows: str) -> list[str]:
        """Add another model of one input, which gets the results `rows`; the names of its outputs."""
        prefix = f"{self._prefix}{len(self.nodes)}:"
        graph = self.onnx.compose.add_prefix(piece, prefix).graph
        for one in piece.opset_import:
            self.require(one.domain, one.version)
        self.nodes.append(self.onnx.helper.make_node("Identity", [rows], [graph.input[0].name]))
        self.nodes += graph.node
        self.constants += graph.initializer
        return [output.name for output in graph.output]

    def model(self, outputs: Mapping[str, tuple[str, Any]], metadata: Mapping[str, str]) -> Any:
        """The finished model; `outputs` has results and their types by the names that they get."""
        helper = self.onnx.helper
        nodes = [*self.nodes, *(helper.make_node("Identity", [found], [name]) for name, (found, _) in outputs.items())]
        nodes, read = _needed(nodes, set(outputs))
        infos = [helper.make_tensor_value_info(name, kind, ["n"]) for name, (_, kind) in outputs.items()]
        inputs = [one for one in self.inputs if one.name in read]
        constants = [one for one in self.constants if one.name in read]
        model = helper.make_model(
            helper.make_graph(nodes, "toprank", inputs, infos, constants),
            opset_imports=[helper.make_opsetid(*one) for one in self._opsets.items()],
            ir_version=_IR_VERSION,
            producer_name="toprank",
            producer_version=importlib.metadata.version("toprank"),
        )
        helper.set_model_props(model, dict(metadata))
        self.onnx.checker.check_model(model)
        return model


def _needed(nodes: list[Any], wanted: set[str]) -> tuple[list[Any], set[str]]:
    """The nodes that some results need, in their order, and all that these read."""
    kept = []
    for node in reversed(nodes):
        if wanted & {*node.output}:
            kept.append(node)
            wanted |= {*node.input}
    return kept[::-1], wanted
