"""Learning for people who act only on the top of a list.

The package loads its parts on first use, so ``import toprank`` is cheap:

>>> import toprank
>>> toprank.metrics.positives_at_top([1, 1, 0], [0.9, 0.2, 0.4])
0.5
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from toprank import datasets, metrics

__version__ = "0.1.0.dev0"

__all__ = ["datasets", "metrics"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"toprank.{name}")
    raise AttributeError(f"module 'toprank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
