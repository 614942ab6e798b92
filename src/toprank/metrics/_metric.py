"""What makes a function a metric: it can be a scorer, and its docstring names the texts that all have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from numpy.typing import ArrayLike

from toprank.docstrings import documented
from toprank.ranking.texts import ROWS_TEXTS

Weights = ArrayLike | None
Metric = TypeVar("Metric", bound=Callable[..., float])

METRICS: dict[str, Callable[..., float]] = {}
"""All metrics, by the names that `get_scorer` knows."""

_TEXTS = ROWS_TEXTS | {
    "rows": ROWS_TEXTS["rows"].replace("array-like", "array-like or Dask array"),
    "weights_and_share": f"""{ROWS_TEXTS["weights"]}

Returns
-------
float
    In [0, 1].""",
}


def metric(function: Metric) -> Metric:
    """Decorate a metric."""
    METRICS[function.__name__.removesuffix("_score")] = function
    return documented(_TEXTS)(function)
