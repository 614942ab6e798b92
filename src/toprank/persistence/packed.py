"""Objects whose state is not in their attributes but in compiled code: what a file holds of them instead.

Each is packed as plain data, which is checked against a schema before any of it is handed to the code of a library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toprank.persistence.booster_state import (
    LIGHTGBM,
    XGBOOST,
    pack_lightgbm,
    pack_xgboost,
    unpack_lightgbm,
    unpack_xgboost,
)
from toprank.persistence.tree_state import TREE, pack_tree, unpack_tree
from toprank.saved_state import Schema


@dataclass(frozen=True)
class Packing:
    """The module of a class, and how its objects become plain data by name and are made of it again."""

    home: str
    schema: Schema
    pack: Callable[[Any], dict[str, Any]]
    unpack: Callable[[type, dict[str, Any]], Any]


# By the names that files have for the classes.
PACKINGS: dict[str, Packing] = {
    "sklearn.Tree": Packing("sklearn.tree._tree", TREE, pack_tree, unpack_tree),
    "lightgbm.Booster": Packing("lightgbm", LIGHTGBM, pack_lightgbm, unpack_lightgbm),
    "xgboost.Booster": Packing("xgboost", XGBOOST, pack_xgboost, unpack_xgboost),
}
