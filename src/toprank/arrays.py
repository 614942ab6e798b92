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
