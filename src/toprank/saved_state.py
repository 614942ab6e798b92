"""What the attributes of a saved object must be: a small schema that each class declares as `saved_state`.

Compiled loops trust their arrays, so a loaded state is checked against its schema before anything uses it:

>>> import numpy as np
>>> from toprank.saved_state import Array, Schema, count
>>> schema = Schema({"n_features_in_": count(1), "weights_": Array("f8", ("n_features_in_",))}, fitted="weights_")
>>> schema.check({"n_features_in_": 3, "weights_": np.zeros(2)})
Traceback (most recent call last):
    ...
toprank.saved_state.StateError: weights_ has the shape (2,), where (3,) is expected
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Known = Mapping[str, Any]
Size = int | str | Callable[[Known], int] | None
"""A number, an attribute or a size that its first use sets, a function of the attributes so far, or None for any."""
LARGEST_COUNT = 2**62


class StateError(ValueError):
    """An attribute is not what the schema of its class says."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What one attribute must be; this one takes anything.

    An `optional` attribute may be missing; `none` says that it may be None; and `when`, from the attributes so far,
    whether the rule applies: if not, the attribute plays no part.
    """

    optional: bool = False
    none: bool = False
    when: Callable[[Known], bool] | None = None

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """Raise a `StateError`, which goes on after the name of the attribute, if the value is not right."""


@dataclass(frozen=True)
class Array(Rule):
    """An array, in the byte order of the machine; bounds are numbers or sizes."""

    dtype: str  # types such as "f8", or kinds such as "f" for any float, separated by spaces
    shape: tuple[Size, ...]
    low: Any = None
    high: Any = None
    below: Any = None  # what all values are less than
    finite: bool = True  # nan and infinity are refused
    rowwise: bool = False  # it must be stored row after row, as compiled loops want it
    sparse: bool = False  # it may be a sparse matrix instead

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """Type, shape and values."""
        if type(value) is not np.ndarray and not (self.sparse and hasattr(value, "indptr")):
            raise StateError(f"is {_shown(value)}, where an array is expected")
        if not (value.dtype.isnative and {value.dtype.kind, value.dtype.str[1:]} & set(self.dtype.split())):
            raise StateError(f"has the type {value.dtype.str}, where {self.dtype} is expected")
        if len(value.shape) != len(self.shape):
            raise StateError(f"has the shape {value.shape}, where {len(self.shape)} axes are expected")
        expected = tuple(_size(size, length, known) for size, length in zip(self.shape, value.shape, strict=True))
        if value.shape != expected:
            raise StateError(f"has the shape {value.shape}, where {expected} is expected")
        if self.rowwise and not value.flags.c_contiguous:
            raise StateError("is not stored row after row")
        self._check_values(value if type(value) is np.ndarray else value.data, known)

    def _check_values(self, values: NDArray[Any], known: Known) -> None:
        if values.dtype.kind == "O" and not all(map(is_scalar, values.flat)):
            raise StateError("has items that are neither words nor numbers")
        if values.dtype.kind not in "iuf" or not values.size:
            return
        least, most = values.min(), values.max()
        if self.finite and not (math.isfinite(least) and math.isfinite(most)):
            raise StateError(f"has the value {most if math.isfinite(least) else least}, where finite ones are expected")
        _check_range(least, most, self.low, self.high, known)
        if self.below is not None and not most < _limit(self.below, known):
            raise StateError(f"has the value {most}, where less than {_limit(self.below, known)} is expected")


@dataclass(frozen=True)
class Number(Rule):
    """A number, by default a finite one; `whole`: an integer."""

    low: Any = None
    high: Any = None
    finite: bool = True
    whole: bool = False

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """Type and range."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            raise StateError(f"is {_shown(value)}, where a {'whole ' if self.whole else ''}number is expected")
        if self.finite and not math.isfinite(value):
            raise StateError(f"has the value {value}, where a finite one is expected")
        _check_range(value, value, self.low, self.high, known)


def count(low: Any = 0, high: Any = LARGEST_COUNT, **options: Any) -> Number:
    """The rule for a whole number of things."""
    return Number(low, high, whole=True, **options)


@dataclass(frozen=True)
class Kind(Rule):
    """An item of one of some types; a word may have to be one of some."""

    types: tuple[type, ...]
    among: Collection[str] | None = None

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """Type and word."""
        if not isinstance(value, self.types):
            raise StateError(f"is {_shown(value)}, where {' or '.join(one.__name__ for one in self.types)} is expected")
        if self.among is not None and value not in self.among:
            raise StateError(f"is {_shown(value)}, where one of {', '.join(map(repr, self.among))} is expected")


@dataclass(frozen=True)
class Part(Rule):
    """An object with at least one of some methods or attributes, or a word that may stand for it."""

    has: tuple[str, ...]
    words: tuple[str, ...] = ()

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """An object, not a class."""
        if isinstance(value, str) and value in self.words:
            return
        if isinstance(value, type) or not any(hasattr(value, name) for name in self.has):
            raise StateError(f"is {_shown(value)}, where an object with {' or '.join(self.has)} is expected")


@dataclass(frozen=True)
class Items(Rule):
    """Items of one rule, in a list or in an array of objects."""

    each: Rule
    length: Size = None
    kind: type[Any] = list

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """Type, length and items."""
        if type(value) is not self.kind or getattr(value, "ndim", 1) != 1:
            raise StateError(f"is {_shown(value)}, where a {self.kind.__name__} is expected")
        expected = _size(self.length, len(value), known)
        if len(value) != expected:
            raise StateError(f"has {len(value)} items, where {expected} are expected")
        for i, item in enumerate(value):
            _check_one(f"[{i}]", self.each, item, known)


@dataclass(frozen=True)
class Record(Rule):
    """A tuple or list with one rule for each place."""

    places: tuple[Rule, ...]

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """Type, length and items."""
        if type(value) not in (tuple, list) or len(value) != len(self.places):
            raise StateError(f"is {_shown(value)}, where {len(self.places)} items are expected")
        for i, (rule, item) in enumerate(zip(self.places, value, strict=True)):
            _check_one(f"[{i}]", rule, item, known)


@dataclass(frozen=True)
class Table(Rule):
    """A dict with words as keys: rules by key, and one for the values of all other keys."""

    named: Mapping[str, Rule] = field(default_factory=dict)
    others: Rule = Rule()

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """Type, keys and values."""
        if type(value) is not dict or not all(isinstance(key, str) for key in value):
            raise StateError(f"is {_shown(value)}, where a dict with words as keys is expected")
        for key in self.named:
            if key not in value and not self.named[key].optional:
                raise StateError(f"has no entry {key!r}")
        for key, item in value.items():
            _check_one(f"[{key!r:.40}]", self.named.get(key, self.others), item, known)


@dataclass(frozen=True)
class Chosen(Rule):
    """The rule that a function chooses from the attributes so far and the value."""

    choose: Callable[[Known, Any], Rule]

    def check(self, value: Any, known: dict[str, Any]) -> None:
        """By the rule that is chosen."""
        self.choose(known, value).check(value, known)


WORD = Kind((str,))
FLAG = Kind((bool, np.bool_))
N_FEATURES = count(1, 2**53)
NAMES = Array("O U", ("n_features_in_",), optional=True)
LABEL_TYPES = "b i u f U S O"
TWO_CLASSES = Array(LABEL_TYPES, (2,))
HISTORY = Table(others=Array("i f", ("n_recorded",), finite=False))
FEATURES = {"n_features_in_": N_FEATURES, "feature_names_in_": NAMES}
# Work in parallel starts as many processes as it is told to.
_MOST_JOBS = 256
JOBS = {f"at most {_MOST_JOBS} jobs": lambda known: known["n_jobs"] is None or abs(known["n_jobs"]) <= _MOST_JOBS}


@dataclass(frozen=True)
class Schema:
    """The attributes of a class."""

    fields: Mapping[str, Rule]
    """Rules in the order of the checks: a size or a bound may refer to attributes before it, and to parameters."""
    fitted: str | None = "classes_"
    """The attribute that an object has once it is fitted; None: all attributes are always there."""
    before: Collection[str] = tuple(FEATURES)
    """Fields that may be there, besides parameters, without the one of `fitted`."""
    relations: Mapping[str, Callable[[Known], bool]] = field(default_factory=dict)
    """Functions of all attributes that must be true, by what they say."""
    learns: bool = False
    """Whether learning changes the arrays in place, but for the labels: then no two attributes may be one array."""

    def extended(
        self, fields: Mapping[str, Rule], relations: Mapping[str, Callable[[Known], bool]] | None = None
    ) -> Schema:
        """The schema of a subclass: with further fields and relations."""
        relations = {**self.relations, **(relations or {})}
        return replace(self, fields={**self.fields, **fields}, relations=relations)

    def owns(self, name: str) -> bool:
        """Whether an attribute is an array that learning changes."""
        return self.learns and isinstance(self.fields.get(name), Array) and name not in (*FEATURES, self.fitted)

    def is_fitted(self, attributes: Known) -> bool:
        """Whether an object with these attributes is fitted."""
        return self.fitted is None or self.fitted in attributes

    def check(self, attributes: Known) -> None:
        """Raise a `StateError` that names the first attribute that is not right."""
        whole = self.is_fitted(attributes)
        known = {name: value for name, value in attributes.items() if name not in self.fields}
        for name, rule in self.fields.items():
            if rule.when is not None and whole and not rule.when(known):
                continue
            if name in attributes:
                if not whole and name not in self.before:
                    raise StateError(f"has {name} without {self.fitted}: it is fitted in part; fit it again")
                _check_one(name, rule, attributes[name], known)
                known[name] = attributes[name]
            elif whole and not rule.optional:
                raise StateError(f"has no {name}")
        for text, holds in self.relations.items():
            if whole and not holds(known):
                raise StateError(f"does not have {text}")


def children_follow(
    inner: NDArray[np.bool_], left: NDArray[Any], right: NDArray[Any], ends: NDArray[Any] | int
) -> bool:
    """Whether both children of the inner nodes of trees come after them and before the end: then every walk ends."""
    first, second = np.minimum(left, right), np.maximum(left, right)
    return bool(np.all(~inner | ((first > np.arange(len(inner))) & (second < ends))))


def _check_one(name: str, rule: Rule, value: Any, known: dict[str, Any]) -> None:
    """Check one value; the error starts with its name."""
    if value is None and rule.none:
        return
    try:
        rule.check(value, known)
    except StateError as error:
        raise StateError(f"{name}{'' if str(error).startswith('[') else ' '}{error}") from None


def _size(size: Size, found: int, known: dict[str, Any]) -> int:
    if size is None:
        return found
    if isinstance(size, str) and size not in known:
        known[size] = found
    return int(_limit(size, known))


def _limit(bound: Any, known: Known) -> Any:
    if isinstance(bound, str):
        return known[bound]
    return bound(known) if callable(bound) else bound


def _check_range(least: Any, most: Any, low: Any, high: Any, known: Known) -> None:
    if low is not None and least < _limit(low, known):
        raise StateError(f"has the value {least}, where at least {_limit(low, known)} is expected")
    if high is not None and most > _limit(high, known):
        raise StateError(f"has the value {most}, where at most {_limit(high, known)} is expected")


def is_scalar(item: Any) -> bool:
    """Whether an item is a word, a number, a truth value or None."""
    return item is None or isinstance(item, str | bytes | bool | int | float | np.generic)


def _shown(value: Any) -> str:
    if is_scalar(value):
        return f"{value!r:.60}"
    shape = getattr(value, "shape", None)
    return f"a {type(value).__name__}{'' if shape is None else f' of shape {shape}'}"
