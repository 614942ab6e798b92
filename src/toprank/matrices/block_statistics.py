"""Order statistics of a vector in pieces, by exact cuts."""

from __future__ import annotations

import numpy as np

from toprank.matrices.block_order import Order
from toprank.matrices.block_vector import BlockVector


def kth_largest(values: BlockVector, k: int) -> float:
    """The k-th largest value."""
    return _kth_largest(Order.of(values, None), k)


def median_size(values: BlockVector) -> float:
    """The median of the absolute values, as NumPy has it."""
    order, n = Order.of(abs(values), None), len(values)
    middle = [_kth_largest(order, k) for k in sorted({n // 2 + 1, (n + 1) // 2})]
    return float(np.mean(np.array(middle, dtype=values.dtype)))


def _kth_largest(order: Order, k: int) -> float:
    return order.first_beyond(k - 1)
