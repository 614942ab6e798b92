"""Names of the types of arrays that are used everywhere, and the one kind that is not in one place."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
"""Numbers of rows."""


def is_dask(X: Any) -> bool:
    """Whether X is an array or a dataframe of Dask, without importing it."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def numbers_of(*asked: tuple[Any, ...]) -> list[float]:
    """What functions make of vectors, as of `(np.dot, share, losses)`; vectors in blocks are asked for all at once.

    The functions are `np.sum`, `np.dot`, `np.max` and `np.count_nonzero`.
    """
    for _, *vectors in asked:
        for vector in vectors:
            if hasattr(vector, "numbers_of"):
                found: list[float] = vector.numbers_of(asked)
                return found
    return [float(function(*vectors)) for function, *vectors in asked]
