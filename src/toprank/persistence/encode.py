"""From objects to the nodes of a model file; see docs/reference/model-format.md."""

from __future__ import annotations

import math
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.persistence.allowed import AllowedClasses, state_of
from toprank.persistence.container import is_fortran
from toprank.persistence.errors import ModelFileError
from toprank.persistence.plain_types import DTYPE, NAME_OF_TYPE, SPARSE_FORMATS
from toprank.persistence.validate import check_state


class Encoder:
    """Makes nodes of an object and all that it refers to, children first, each object once."""

    def __init__(self, allowed: AllowedClasses) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.arrays: list[NDArray[Any]] = []
        self.classes: set[str] = set()
        self._allowed = allowed
        self._number: dict[int, int] = {}
        self._kept: list[Any] = []  # so that the id of a passing object is not given to another one
        self._open: set[int] = set()

    def value(self, item: Any, path: str, *, owned: bool = False) -> Any:
        """The JSON value that stands for an item; `path` says where the item is, for errors.

        An item that is `owned` is not shared: it gets a node of its own.
        """
        kind = type(item)
        if item is None or kind in (bool, int, str):
            return item
        if kind is float:
            return item if math.isfinite(item) else {"float": repr(item)}
        if kind is np.str_:
            return {"str": str(item)}
        if isinstance(item, np.generic):
            return {"numpy": _dtype_name(item.dtype, path), "hex": item.tobytes().hex()}
        if isinstance(item, np.dtype):
            return {"dtype": _dtype_name(item, path, objects=True)}
        if isinstance(item, type) and item in NAME_OF_TYPE:
            return {"type": NAME_OF_TYPE[item]}
        if kind is slice:
            parts = zip(("start", "stop", "step"), (item.start, item.stop, item.step), strict=True)
            return {"slice": [self.value(part, f"{path}.{name}") for name, part in parts]}
        return {"node": self._node(item, path, owned)}

    def _node(self, item: Any, path: str, owned: bool) -> int:
        if id(item) in self._number and not owned:
            return self._number[id(item)]
        if id(item) in self._open:
            raise ModelFileError(f"{path} refers back to an object that holds it; files hold no circles, remove it")
        self._open.add(id(item))
        node = self._make(item, path)
        self._open.remove(id(item))
        number = len(self.nodes)
        if not owned:
            self._number[id(item)] = number
        self._kept.append(item)
        self.nodes.append(node)
        if node["kind"] == "array":
            self.arrays.append(np.asarray(item))
        return number

    def _make(self, item: Any, path: str) -> dict[str, Any]:
        kind = type(item)
        if kind in (np.ndarray, np.memmap):
            return self._array(item, path)
        if _is_index(item):  # names of columns that scikit-learn keeps; nothing there needs more than their array
            return self._array(item.to_numpy(dtype=object), path)
        if kind in (list, tuple):
            return {"kind": kind.__name__, "items": self._values(item, path)}
        if kind in (dict, OrderedDict, defaultdict):
            return {"kind": "dict", "items": [self._entry(key, value, path) for key, value in item.items()]}
        if kind is np.random.RandomState:
            state = item.get_state(legacy=False)
            if state["bit_generator"] == "MT19937":
                return {"kind": "random_state", "state": self.value(state, path)}
        if kind is np.random.Generator and type(item.bit_generator) is np.random.PCG64:
            return {"kind": "generator", "state": self.value(item.bit_generator.state, path)}
        if kind.__module__.startswith("scipy.sparse.") and kind.__name__ in SPARSE_FORMATS:
            parts = {name: self.value(getattr(item, name), f"{path}.{name}") for name in ("data", "indices", "indptr")}
            return {"kind": kind.__name__, "shape": [int(size) for size in item.shape], **parts}
        return self._object(item, path)

    def _array(self, array: NDArray[Any], path: str) -> dict[str, Any]:
        shape = list(array.shape)
        if array.dtype.kind == "O":
            return {"kind": "objects", "shape": shape, "items": self._values(array.ravel().tolist(), path)}
        order = "F" if is_fortran(array) else "C"
        return {"kind": "array", "dtype": _dtype_name(array.dtype, path), "shape": shape, "order": order}

    def _values(self, items: Iterable[Any], path: str) -> list[Any]:
        return [self.value(item, f"{path}[{i}]") for i, item in enumerate(items)]

    def _entry(self, key: Any, value: Any, path: str) -> list[Any]:
        encoded = self.value(key, f"{path} key {key!r}")
        if isinstance(encoded, dict) and "node" in encoded:
            raise ModelFileError(f"{path} has the key {key!r}; keys must be strings, numbers or None")
        return [encoded, self.value(value, f"{path}[{key!r}]")]

    def _object(self, item: Any, path: str) -> dict[str, Any]:
        name = self._allowed.name_of(type(item))
        packing = None if name is None else self._allowed.packing_of(type(item))
        if name is None or not (packing or hasattr(item, "__dict__")):
            raise ModelFileError(_refusal(item, path))
        self.classes.add(name)
        if packing is not None:
            packed = packing.pack(item).items()
            return {"kind": "object", "class": name, "state": {k: self.value(v, f"{path}.{k}") for k, v in packed}}
        schema = self._allowed.schema_of(type(item))
        state = {
            key: self.value(value, f"{path}.{key}", owned=schema is not None and schema.owns(key))
            for key, value in state_of(item).items()
        }
        if schema is not None:
            check_state(item, schema, path)
        return {"kind": "object", "class": name, "state": state}


def _is_index(item: Any) -> bool:
    """Whether an item is an index of pandas, which is there if it was imported."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(item, pandas.Index)


def _dtype_name(dtype: np.dtype[Any], path: str, *, objects: bool = False) -> str:
    if (objects and dtype.kind == "O") or (DTYPE.fullmatch(dtype.str) and dtype.itemsize):
        return dtype.str
    raise ModelFileError(
        f"{path} has the type {dtype}, which a model file does not hold; convert it to booleans, integers, floats of "
        "up to 8 bytes, strings or objects"
    )


def _refusal(item: Any, path: str) -> str:
    """Why an item is not saved, and what helps."""
    cls = type(item)
    what = f"{path} is {_shown(item)}"
    if hasattr(item, "best_estimator_"):
        return f"{what}; a search is not saved, but its result is: save {path}.best_estimator_"
    if callable(item) and not hasattr(item, "get_params"):
        return (
            f"{what}, and a model file holds no code; use a kernel, function or option that has a name, or take it "
            "off before saving and set it again after loading"
        )
    return (
        f"{what} of the class {cls.__module__}.{cls.__qualname__}, which is not one of those that toprank saves; use a "
        "building block of the list in docs/reference/model-format.md, or, for a class of yours whose attributes are "
        "plain data, pass trusted=[...] to save and to load"
    )


def _shown(item: Any) -> str:
    if hasattr(item, "__qualname__"):
        return f"the {'class' if isinstance(item, type) else 'function'} {item.__module__}.{item.__qualname__}"
    if isinstance(item, np.ufunc):  # NumPy's own have a module only since 2.1
        return f"the function numpy.{item.__name__}"
    text = " ".join(repr(item).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
