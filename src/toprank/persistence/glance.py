"""What a model file says of its model, without making it: that would load scikit-learn, which takes seconds."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from toprank.persistence.container import read_container
from toprank.persistence.errors import ModelFileError
from toprank.persistence.model_file import warn_of_versions

_ABOUT = {"class": str, "steps": list, "parameters": dict, "certificate": float | int | None}


def glance(path: str | os.PathLike[str], root: str, attributes: Collection[str]) -> dict[str, Any] | None:
    """The header of a model file: "about", "versions", and "state", with plain attributes of its outermost object.

    These are given if that object is of the class `root`, and are else empty. The result is None for a file that only
    a load can tell about, or refuse: one of an earlier version, or one that is not right.
    """
    try:
        header = read_container(path).header
        if not isinstance(header, dict) or header.get("kind") != "model":
            return None
        about, versions = header.get("about"), header.get("versions")
        if not isinstance(about, dict) or not isinstance(versions, dict):
            return None
        if not all(isinstance(about.get(name), kind) for name, kind in _ABOUT.items()):
            return None
        nodes = header["nodes"]
        outermost = nodes[header["root"]["node"]]
        state = outermost["state"] if outermost["class"] == root else {}
        reader = _PlainReader(nodes)
        known = {name: reader.value(state[name]) for name in attributes if name in state}
    except (ModelFileError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    warn_of_versions(header, os.fspath(path))
    return {"about": about, "versions": versions, "state": known}


class _PlainReader:
    """Makes plain data of nodes, each at most so often that a file cannot ask for more than it has values."""

    def __init__(self, nodes: list[Any]) -> None:
        self._nodes = nodes
        self._left = 2 * sum(len(node.get("items", ())) + 1 for node in nodes)

    def value(self, encoded: Any) -> Any:
        """The item that a JSON value stands for; an error if that is not plain."""
        self._left -= 1
        if self._left < 0:
            raise ModelFileError("nodes are referred to more often than a model does")
        if not isinstance(encoded, dict):
            if isinstance(encoded, list):
                raise ModelFileError("a list stands for nothing")
            return encoded
        if "float" in encoded:
            return float(encoded["float"])
        node = self._nodes[encoded["node"]]
        if node["kind"] == "dict":
            return {self._key(key): self.value(item) for key, item in node["items"]}
        if node["kind"] in ("list", "tuple"):
            return [self.value(item) for item in node["items"]]
        raise ModelFileError(f"a {node['kind']} is not plain")

    def _key(self, key: Any) -> str:
        if not isinstance(key, str):
            raise ModelFileError("a key is no word")
        return key
