"""Rankers that learn from a stream, one row at a time."""

from typing import Any

import toprank

__all__ = [name for name, home in toprank.HOMES.items() if home.startswith("online.")]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(toprank, name)
    raise AttributeError(f"module 'toprank.online' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
