"""Names of the types of arrays that are used everywhere."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
"""Numbers of rows."""
