"""From the nodes of a model file to objects.

Only data are made: no function or class is looked up by a name of the file, except in the tables of
`toprank.persistence.allowed` and `toprank.persistence.plain_types`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.persistence.allowed import AllowedClasses, hides, later_parameters, of_today
from toprank.persistence.container import Container
from toprank.persistence.errors import ModelFileError
from toprank.persistence.plain_types import DTYPE, SPARSE_FORMATS, TYPE_OF_NAME
from toprank.persistence.validate import check_state, unpacked

_FLOATS = {name: float(name) for name in ("inf", "-inf", "nan")}
_MERSENNE_WORDS = 624
# Values for each byte of a file, where a node counts as often as it is referred to; and nodes within nodes.
_VALUES_A_BYTE = 8
_DEEPEST = 200


@dataclass
class _Extent:
    """How many values a node holds, how deep, and how many others refer to it."""

    values: int = 0
    depth: int = 0
    references: int = 0


class Decoder:
    """Makes the objects of a file's nodes, in their order; a node refers to earlier nodes only."""

    def __init__(self, container: Container, allowed: AllowedClasses) -> None:
        self._container = container
        self._allowed = allowed
        self._made: list[Any] = []
        self._extents: list[_Extent] = []
        self._owned: set[int] = set()
        self._open = _Extent()

    def make_all(self, nodes: Any) -> None:
        """Make the object of every node."""
        for node in _expect(nodes, list, "the table of nodes"):
            kind = _expect(_expect(node, dict, "a node").get("kind"), str, "the kind of a node")
            make = self._makers.get(kind)
            if make is None:
                raise ModelFileError(f"it has a node of the unknown kind {kind!r}")
            self._open = _Extent()
            self._made.append(make(self, node))
            self._extents.append(self._open)
        self._open = _Extent()
        if any(self._extents[number].references > 1 for number in self._owned):
            raise ModelFileError("it has an array that learning changes, and that two attributes refer to")
        self._container.require_end()

    def _count(self, values: int, depth: int = 0) -> None:
        """Count what a node holds before anyone walks through it: few bytes can refer to much, again and again."""
        extent, limit = self._open, _VALUES_A_BYTE * self._container.size
        extent.values, extent.depth = extent.values + values, max(extent.depth, depth + 1)
        if extent.values > limit:
            raise ModelFileError(
                f"it has a node that refers to {extent.values} values, itself or by others; the limit is {limit}, "
                f"{_VALUES_A_BYTE} for each of its {self._container.size} bytes"
            )
        if extent.depth > _DEEPEST:
            raise ModelFileError(f"it has nodes in nodes, {extent.depth} deep; the limit is {_DEEPEST}")

    def value(self, encoded: Any) -> Any:
        """The item that a JSON value stands for."""
        self._count(1)
        if not isinstance(encoded, dict | list):
            return encoded
        tagged: dict[str, Any] = encoded if isinstance(encoded, dict) else {}
        tag, content = next(iter(tagged.items()), (None, None))
        if tag == "node" and type(content) is int and 0 <= content < len(self._made):
            self._count(self._extents[content].values, self._extents[content].depth)
            self._extents[content].references += 1
            return self._made[content]
        if tag == "float" and isinstance(content, str) and content in _FLOATS:
            return _FLOATS[content]
        if tag == "type" and isinstance(content, str) and content in TYPE_OF_NAME:
            return TYPE_OF_NAME[content]
        if tag == "str" and isinstance(content, str):
            return np.str_(content)
        if tag == "dtype":
            return np.dtype(object) if content == "|O" else self._dtype(content)
        if tag == "numpy":
            dtype, raw = self._dtype(content), bytes.fromhex(_expect(tagged.get("hex"), str, "a number"))
            if len(raw) == dtype.itemsize:
                return np.frombuffer(raw, dtype)[0]
        if tag == "slice" and isinstance(content, list) and len(content) == 3:
            return slice(*(self.value(part) for part in content))
        raise ModelFileError(f"it has the value {str(encoded)[:80]}, which stands for nothing")

    def _values(self, node: Any) -> list[Any]:
        return [self.value(item) for item in _expect(node.get("items"), list, "the items of a node")]

    def _array(self, node: Any) -> NDArray[Any]:
        order = node.get("order")
        if order not in ("C", "F"):
            raise ModelFileError(f"it has an array of the order {order!r}")
        array = self._container.take(self._dtype(node.get("dtype")), self._full_shape(node), order)
        self._count(array.size)
        return array

    def _objects(self, node: Any) -> NDArray[Any]:
        items, shape = self._values(node), self._full_shape(node)
        if len(items) != prod(shape):
            raise ModelFileError(f"it has an array of the shape {shape} with {len(items)} items")
        array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            array[i] = item
        return array.reshape(shape)

    def _dict(self, node: Any) -> dict[Any, Any]:
        entries = _expect(node.get("items"), list, "the items of a dict")
        if not all(isinstance(entry, list) and len(entry) == 2 for entry in entries):
            raise ModelFileError("it has a dict whose items are not pairs")
        if any(isinstance(key, dict) and "node" in key for key, _ in entries):
            raise ModelFileError("it has a dict with a key that is neither a string nor a number")
        return {self.value(key): self.value(value) for key, value in entries}

    def _sparse(self, node: Any) -> Any:
        import scipy.sparse

        data, indices, indptr = (self.value(node.get(name)) for name in ("data", "indices", "indptr"))
        for array, kinds in ((data, "biufc"), (indices, "i"), (indptr, "i")):
            if type(array) is not np.ndarray or array.ndim != 1 or array.dtype.kind not in kinds:
                raise ModelFileError("it has a sparse matrix that is not made of three arrays with one axis")
        matrix = getattr(scipy.sparse, node["kind"])((data, indices, indptr), shape=_shape(node))
        matrix.check_format(full_check=True)
        if (matrix.indptr[1:] < matrix.indptr[:-1]).any():  # SciPy does not look where the last one is zero
            raise ModelFileError("it has a sparse matrix whose index pointer decreases")
        return matrix

    def _dtype(self, name: Any) -> np.dtype[Any]:
        if not isinstance(name, str) or not DTYPE.fullmatch(name) or not np.dtype(name).itemsize:
            raise ModelFileError(f"it has numbers of the type {str(name)[:80]!r}")
        if np.dtype(name).itemsize > self._container.size:
            raise ModelFileError(f"it has the type {name!r}, which is larger than its {self._container.size} bytes")
        return np.dtype(name)

    def _full_shape(self, node: Any) -> tuple[int, ...]:
        """The shape of an array; of an empty one too, it has no more lists in lists than the file has bytes."""
        shape = _shape(node)
        rows = prod(shape[: shape.index(0)]) if 0 in shape else 0
        if rows > self._container.size:
            raise ModelFileError(
                f"it has an array of the shape {shape}; the file has only {self._container.size} bytes"
            )
        return shape

    def _random_state(self, node: Any) -> np.random.RandomState:
        state = _expect(self.value(node.get("state")), dict, "a random state")
        words, position = state["state"]["key"], state["state"]["pos"]
        if words.shape != (_MERSENNE_WORDS,) or not 0 <= position <= _MERSENNE_WORDS:
            raise ModelFileError("it has a random state that is none")
        made = np.random.RandomState()
        made.set_state(state)
        return made

    def _generator(self, node: Any) -> np.random.Generator:
        bits = np.random.PCG64()
        bits.state = self.value(node.get("state"))
        return np.random.Generator(bits)

    def _object(self, node: Any) -> Any:
        name, state = of_today(node.get("class"), _expect(node.get("state"), dict, "the state of an object"))
        cls = self._allowed.class_of(name)
        packing = self._allowed.packing_of(cls)
        if packing is not None:
            packed = {key: self.value(value) for key, value in state.items()}
            return unpacked(cls, packing, packed, f"its {cls.__name__}")
        schema = self._allowed.schema_of(cls)
        for name in state:
            if name.startswith("__") or hides(cls, name, schema):
                raise ModelFileError(f"it has a {cls.__name__} with the attribute {name!r}, which would hide a method")
        made: Any = object.__new__(cls)
        made.__dict__.update({name: self.value(value) for name, value in state.items()})
        made.__dict__.update(later_parameters(cls, state))
        if schema is not None:
            check_state(made, schema, f"its {cls.__name__}")
            self._owned |= {state[name]["node"] for name in state if schema.owns(name)}
        return made

    _makers = {  # noqa: RUF012
        "array": _array,
        "objects": _objects,
        "list": _values,
        "tuple": lambda self, node: tuple(self._values(node)),
        "dict": _dict,
        "object": _object,
        "random_state": _random_state,
        "generator": _generator,
        **dict.fromkeys(SPARSE_FORMATS, _sparse),
    }


def _expect(item: Any, kind: type, what: str) -> Any:
    if type(item) is not kind:
        raise ModelFileError(f"{what} should be a {kind.__name__}, but is {str(item)[:80]!r}")
    return item


def _shape(node: Any) -> tuple[int, ...]:
    shape = _expect(node.get("shape"), list, "a shape")
    if not all(type(size) is int and 0 <= size < 2**62 for size in shape):
        raise ModelFileError(f"it has an array of the shape {str(shape)[:80]}")
    return tuple(shape)
