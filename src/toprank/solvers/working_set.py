"""The rows that the pair method works on, and their products with each other as far as memory allows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


class Products(Protocol):
    """Products of the rows of the data: a kernel matrix that need not be in memory."""

    n: int
    dtype: Any
    diagonal: NDArray[Any]

    @property
    def full(self) -> NDArray[Any] | None:
        """All products, where they are kept as a whole."""

    def between(self, rows_a: Rows, rows_b: Rows) -> NDArray[Any]:
        """Products of some rows with others."""

    def product(self, c: Floats) -> Floats:
        """Scores of all rows for w = Σ c x."""


class WorkingSet:
    """Rows in play, in the order in which they came, and their products as far as memory allows."""

    def __init__(self, products: Products, cache_size: float) -> None:
        self.products = products
        self.most_bytes = cache_size * 2**19  # while the set grows, the old products and the new ones are both there
        self.numbers = np.zeros(0, np.intp)
        self.index_of = np.full(products.n, -1)
        self.rows = np.empty((0, 0), products.dtype)
        self.place = np.zeros(0, np.intp)
        self.next_place = 0
        if (full := products.full) is not None:
            self.rows, self.numbers = full, np.arange(products.n)
            self.index_of, self.place = np.arange(products.n), np.arange(products.n)

    @property
    def is_complete(self) -> bool:
        """Whether all products are at hand."""
        return len(self.rows) == len(self.numbers)

    def add(self, new: Rows) -> None:
        """Append rows."""
        new = np.unique(new[self.index_of[new] < 0])
        if not len(new):
            return
        old, size = len(self.numbers), len(self.numbers) + len(new)
        self.index_of[new] = np.arange(old, size)
        self.numbers = np.concatenate([self.numbers, new])
        slots = int(min(size, max(8, self.most_bytes // (size * self.rows.itemsize))))
        rows = np.empty((slots, size), self.rows.dtype)
        place = np.full(size, -1)
        kept = np.flatnonzero(self.place >= 0)[:slots]
        place[kept] = np.arange(len(kept))
        # in order where all are there, and then without a copy in between
        rows[: len(kept), :old] = self.rows if len(kept) == old else self.rows[self.place[kept]]
        rows[: len(kept), old:] = self.products.between(self.numbers[kept], new)
        more = np.arange(old, size)[: slots - len(kept)]
        place[more] = np.arange(len(kept), len(kept) + len(more))
        if len(kept) == old:  # the matrix is symmetric
            rows[old : old + len(more), :old] = rows[:old, old : old + len(more)].T
            rows[old : old + len(more), old:] = self.products.between(self.numbers[more], new)
        else:
            rows[len(kept) : len(kept) + len(more)] = self.products.between(self.numbers[more], self.numbers)
        self.rows, self.place, self.next_place = rows, place, 0

    def fetch(self, index: int) -> None:
        """Compute the products of a row in place of another's, in turn."""
        self.place[self.place == self.next_place] = -1
        self.rows[self.next_place] = self.products.between(self.numbers[index : index + 1], self.numbers)[0]
        self.place[index] = self.next_place
        self.next_place = (self.next_place + 1) % len(self.rows)
