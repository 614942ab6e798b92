"""The classes that a model file may name: toprank's own, some of scikit-learn, and what the caller trusts.

A file holds only names out of these tables and the one of `sklearn_state`. Which module a name belongs to is written
there, never read from a file.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable
from dataclasses import fields, is_dataclass
from functools import cached_property, lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Any

from toprank import HOMES as _PUBLIC
from toprank.persistence.errors import ModelFileError
from toprank.persistence.validate import schema_of
from toprank.saved_state import Schema

if TYPE_CHECKING:
    from toprank.persistence.packed import Packing

# Public estimators are named by the package alone, so a file outlives a move of their module.
_TOPRANK = {
    f"toprank.{name}": f"toprank.{home}"
    for name, home in _PUBLIC.items()
    if name[0].isupper()
    and home.startswith(("baselines.", "blending.", "estimators.", "pairwise.", "decision.", "online.", "trees."))
}
# What estimators keep in their attributes: the name in files, which outlives a move as well, and the module of today.
_TOPRANK_PARTS = {
    "kernels.kernel.Kernel": "matrices.kernel",
    "kernels.features.FourierFeatures": "matrices.features",
    "kernels.features.NystroemFeatures": "matrices.features",
    "solvers.problem.DualPoint": "solvers.problem",
    "solvers.problem.Solution": "solvers.problem",
    "tables.model.TableModel": "files.model",
    "trees.plain_trees.PlainTrees": "trees.plain_trees",
    "trees.table_columns.TableColumns": "trees.table_columns",
}
# What is read from files of earlier versions only: the name and attributes there, and those of today.
_EARLIER_PARTS = {
    "toprank.solvers.apg.DualPoint": ("toprank.solvers.problem.DualPoint", {"alpha": "y", "beta": "p"}),
    "toprank.solvers.pair_ascent.Multipliers": ("toprank.solvers.problem.DualPoint", {"u": "y", "b": "p"}),
}
# Parameters that came after the first files were written: where a file has none, its object has the default.
_LATER_PARAMETERS = ("amount", "pos_label", "reading", "sample_rows", "shuffle", "threshold", "time")
_HOMES = _TOPRANK | {f"toprank.{name}": f"toprank.{module}" for name, module in _TOPRANK_PARTS.items()}
_NAMES = {f"{home}.{name.rpartition('.')[2]}": name for name, home in _HOMES.items()}
# What only another fit with warm_start=True needs; it grows with the training data.
_WARM_START_STATE = frozenset({"_solution"})


class AllowedClasses:
    """Names of classes and back, for one call of `save` or `load`, with classes that the caller trusts."""

    def __init__(self, trusted: Iterable[type] = ()) -> None:
        self._trusted: dict[str, type] = {}
        for cls in trusted:
            if not isinstance(cls, type):
                raise TypeError(f"trusted must hold classes, got {cls!r}; pass the class itself, such as MyScaler")
            self._trusted[f"{cls.__module__}.{cls.__qualname__}"] = cls

    def name_of(self, cls: type) -> str | None:
        """The name of a class in a file, or None if the class is not allowed."""
        own = f"{cls.__module__}.{cls.__qualname__}"
        if self._trusted.get(own) is cls:
            return own
        public = f"{cls.__module__.partition('.')[0]}.{cls.__name__}"
        names = (public, _NAMES.get(own, own))
        return next((name for name in names if _home_of(name) and self.class_of(name) is cls), None)

    def class_of(self, name: Any) -> type:
        """The class of a name in a file."""
        if isinstance(name, str) and name in self._trusted:
            return self._trusted[name]
        home = _home_of(name)
        if home is None:
            raise ModelFileError(
                f"it names the class {name!r}, which is not one of those that toprank loads; if you know the class "
                "and trust the file, pass it by trusted=[...], else save the model again without it"
            )
        try:
            module = importlib.import_module(home)
        except ImportError as error:
            package = home.partition(".")[0]
            raise ModelFileError(
                f"it holds a model of {package}, which is not installed ({error}); install it by pip install {package}"
            ) from error
        cls: type = getattr(module, name.rpartition(".")[2])
        return cls

    def packing_of(self, cls: type) -> Packing | None:
        """How objects of a class become plain data, None where these are their attributes."""
        name = self.name_of(cls)
        if name is None or name in self._trusted or name.startswith("toprank."):
            return None
        from toprank.persistence.packed import PACKINGS

        return PACKINGS.get(name)

    def schema_of(self, cls: type) -> Schema | None:
        """What the attributes of a class must be; None where the caller trusts a class that does not say it."""
        return schema_of(cls, trusted=cls in self._trusted.values())


def _home_of(name: Any) -> str | None:
    """The module of a name in a file; None if it is not in the tables."""
    if not isinstance(name, str):
        return None
    if name in _HOMES or name.startswith("toprank."):
        return _HOMES.get(name)
    from toprank.persistence.booster_state import BOOSTER_STATES
    from toprank.persistence.packed import PACKINGS
    from toprank.persistence.sklearn_state import SKLEARN_HOMES

    if name in PACKINGS:
        return PACKINGS[name].home
    return name.partition(".")[0] if name in BOOSTER_STATES else SKLEARN_HOMES.get(name)


def of_today(name: Any, state: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The class and the attributes that an object of a file has today, by their names."""
    if not isinstance(name, str) or name not in _EARLIER_PARTS:
        return name, state
    today, attributes = _EARLIER_PARTS[name]
    return today, {attributes.get(attribute, attribute): value for attribute, value in state.items()}


def later_parameters(cls: type, state: Collection[str]) -> dict[str, Any]:
    """Parameters that a class did not have when an earlier version wrote the file, with their defaults."""
    if not cls.__module__.startswith("toprank.") or not hasattr(cls, "get_params"):
        return {}
    return {name: default for name, default in _later_defaults(cls).items() if name not in state}


@lru_cache
def _later_defaults(cls: type) -> dict[str, Any]:
    parameters = signature(cls).parameters
    return {name: parameters[name].default for name in _LATER_PARAMETERS if name in parameters}


def state_of(item: Any) -> dict[str, Any]:
    """The attributes to save: all, but for what follows from them, and a warm start's memory where none is wanted."""
    cls: type = type(item)
    state: dict[str, Any] = vars(item)
    if not cls.__module__.startswith("toprank."):
        return state
    left_out = _WARM_START_STATE if not state.get("warm_start", True) else frozenset()
    return {
        name: value
        for name, value in state.items()
        if name not in left_out and not isinstance(getattr(cls, name, None), cached_property)
    }


def hides(cls: type, name: str, schema: Schema | None) -> bool:
    """Whether an attribute of this name would hide a method or property of the class, or, unless declared, anything.

    These are callables and all that makes something else of itself when it is looked up, such as scikit-learn's methods
    that are there only if a step has them. A cached property keeps its value under its own name and hides nothing.
    """
    if name in _field_names(cls):  # a default
        return False
    found = [vars(base)[name] for base in cls.__mro__ if name in vars(base)]
    if schema is not None and found and name not in schema.fields:
        return not all(isinstance(attribute, cached_property) for attribute in found)
    return any(
        callable(attribute) or (hasattr(attribute, "__get__") and not isinstance(attribute, cached_property))
        for attribute in found
    )


@lru_cache
def _field_names(cls: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(cls)) if is_dataclass(cls) else frozenset()
