"""Methods that the papers compare with, as estimators: right and certified, so that a comparison is fair."""

from typing import Any

import toprank

__all__ = [name for name, home in toprank.HOMES.items() if home.startswith("baselines.")]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(toprank, name)
    raise AttributeError(f"module 'toprank.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
