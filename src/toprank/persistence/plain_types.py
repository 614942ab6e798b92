"""Types of plain data that have a name in model files."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

# Booleans, integers, floats and complex numbers up to 8 bytes a part, byte strings and strings. No objects.
DTYPE = re.compile(r"\|b1|[|<>](?:[iu][1248]|f[248]|c8|c16)|\|S[0-9]{1,9}|[<>]U[0-9]{1,9}")
SPARSE_FORMATS = ("csr_array", "csr_matrix", "csc_array", "csc_matrix")

# Types as values: the dtype of an encoder, the dtype_include of a column selector.
TYPE_OF_NAME: dict[str, Any] = {
    **{kind.__name__: kind for kind in (bool, int, float, str, object)},
    **{
        f"numpy.{kind.__name__}": kind
        for kind in (
            *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
            *(np.float16, np.float32, np.float64, np.str_, np.object_),
            *(np.number, np.integer, np.floating),
        )
    },
}
NAME_OF_TYPE = {kind: name for name, kind in TYPE_OF_NAME.items()}
