"""The state of an object against the schema of its class, when it is saved and before anyone uses it when loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from toprank.persistence.errors import ModelFileError
from toprank.saved_state import Kind, Schema, StateError, Table

if TYPE_CHECKING:
    from toprank.persistence.packed import Packing

# What `set_output` leaves on any transformer.
_OUTPUT = Schema(
    {"_sklearn_output_config": Table(others=Kind((str,), ("default", "pandas", "polars"), none=True), optional=True)},
    fitted=None,
)


def schema_of(cls: type, *, trusted: bool) -> Schema | None:
    """The schema of a class: its own, or the one for a class of scikit-learn; None for a class of the caller."""
    schema: Schema | None = getattr(cls, "saved_state", None)
    if schema is not None or trusted:
        return schema
    from toprank.persistence.booster_state import BOOSTER_STATES
    from toprank.persistence.sklearn_state import SKLEARN_STATES

    of_booster = BOOSTER_STATES.get(f"{cls.__module__.partition('.')[0]}.{cls.__name__}")
    if of_booster is not None:
        return of_booster
    if not cls.__module__.startswith("sklearn.") or cls.__name__ not in SKLEARN_STATES:
        raise ModelFileError(
            f"{cls.__module__}.{cls.__qualname__} does not say what its attributes must be, so no file of it could be "
            "checked; declare them as its saved_state, see toprank.saved_state"
        )
    return SKLEARN_STATES[cls.__name__]


def check_state(item: Any, schema: Schema, where: str) -> None:
    """Raise a `ModelFileError` if an object is not what its class makes; its parts were checked before.

    Parameters of a fitted object are checked as its `fit` does it: what is unfitted will be checked by that.
    """
    attributes = vars(item)
    with _saying(where):
        schema.check(attributes)
        _OUTPUT.check(attributes)
        if hasattr(type(item), "get_params"):
            missing = [name for name in item.get_params(deep=False) if name not in attributes]
            if missing:
                raise StateError(f"has no {missing[0]}")
        if schema.is_fitted(attributes):
            _check_parameters(item)


def unpacked(cls: type, packing: Packing, state: dict[str, Any], where: str) -> Any:
    """The object of packed data, which are checked before."""
    with _saying(where):
        packing.schema.check(state)
        return packing.unpack(cls, state)


@contextmanager
def _saying(where: str) -> Iterator[None]:
    """Make a `ModelFileError` of any error: of a state made up to harm, the checks themselves may fail in many ways."""
    try:
        yield
    except ModelFileError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ModelFileError(f"{where} {' '.join(str(error).split())[:300]}") from error


def _check_parameters(item: Any) -> None:
    if hasattr(type(item), "_parameter_constraints"):  # of scikit-learn
        item._validate_params()
    if hasattr(type(item), "_check_parameters"):
        item._check_parameters()
