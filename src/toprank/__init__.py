"""Learning for people who act only on the top of a list.

The package loads its parts on first use, so ``import toprank`` is cheap:

>>> import toprank
>>> toprank.metrics.positives_at_top([1, 1, 0], [0.9, 0.2, 0.4])
0.5
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toprank import datasets, metrics, pairwise
    from toprank.estimators.path import path
    from toprank.estimators.top import Grill, GrillNP, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
    from toprank.exceptions import DegenerateSolutionWarning
    from toprank.pairwise.wmw import WMWRanker

__version__ = "0.1.0.dev0"

__all__ = [
    "DegenerateSolutionWarning",
    "Grill",
    "GrillNP",
    "PatMat",
    "PatMatNP",
    "TauFPL",
    "TopMeanK",
    "TopPush",
    "TopPushK",
    "WMWRanker",
    "datasets",
    "metrics",
    "pairwise",
    "path",
]

_HOME = {
    "DegenerateSolutionWarning": "exceptions",
    "WMWRanker": "pairwise.wmw",
    "path": "estimators.path",
    **dict.fromkeys(
        ["Grill", "GrillNP", "PatMat", "PatMatNP", "TauFPL", "TopMeanK", "TopPush", "TopPushK"], "estimators.top"
    ),
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"toprank.{_HOME[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"toprank.{name}")
    raise AttributeError(f"module 'toprank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
