"""The rows that the pair method works on, and their products with each other as far as memory allows."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats, Rows

# Rows that the first array of products has room for: where few are needed, most of it is never touched, and where many
# are, none is moved.
_ROOM = 6000


class Products(Protocol):
    """Products of the rows of the data: a kernel matrix that need not be in memory."""

    n: int
    dtype: Any
    diagonal: NDArray[Any]
    remembered: dict[str, Any]

    @property
    def full(self) -> NDArray[Any] | None:
        """All products, where they are kept as a whole."""

    def between(self, rows_a: Rows, rows_b: Rows, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Products of some rows with others, in an array that may be given."""

    def product(self, c: Floats) -> Floats:
        """Scores of all rows for w = Σ c x."""


class WorkingSet:
    """Rows in play, in the order in which they came, and their products as far as memory allows.

    `rows` holds the products; it is the beginning of `buffer`, whose rows may be longer and are contiguous. What is
    `remembered` names rows by their place here; where all are here in their order, it is of use to other runs, too.
    """

    def __init__(self, products: Products, cache_size: float) -> None:
        self.products = products
        self.most_bytes = cache_size * 2**19  # while the set grows, the old products and the new ones are both there
        self.numbers = np.zeros(0, np.intp)
        self.index_of = np.full(products.n, -1)
        self.rows = self.buffer = np.empty((0, 0), products.dtype)
        self.place = np.zeros(0, np.intp)
        self.next_place = 0
        self.remembered: dict[str, Any] = {}
        if (full := products.full) is not None:
            self.rows, self.buffer, self.remembered = full, full, products.remembered
            self.numbers = np.arange(products.n)
            self.index_of, self.place = np.arange(products.n), np.arange(products.n)

    @classmethod
    def without_products(cls, products: Products) -> WorkingSet:
        """All rows in their order, and no products of them but those that are asked for."""
        working = cls.__new__(cls)
        working.products, working.most_bytes, working.remembered = products, 0.0, {}
        working.numbers = working.index_of = np.arange(products.n)
        working.rows = working.buffer = np.empty((0, products.n), products.dtype)
        working.place, working.next_place = np.full(products.n, -1), 0
        return working

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
        kept = np.flatnonzero(self.place >= 0)[:slots]
        in_order = len(kept) == old  # where all are there, which is without a copy as long as there is room
        rows = self._room(slots, size, in_order)
        if not in_order:
            rows[: len(kept), :old] = self.rows[self.place[kept]]
        place = np.full(size, -1)
        place[kept] = np.arange(len(kept))
        self.products.between(self.numbers[kept], new, rows[: len(kept), old:])
        more = np.arange(old, size)[: slots - len(kept)]
        place[more] = np.arange(len(kept), len(kept) + len(more))
        if in_order:  # the matrix is symmetric
            rows[old : old + len(more), :old] = rows[:old, old : old + len(more)].T
            self.products.between(self.numbers[more], new, rows[old : old + len(more), old:])
        else:
            self.products.between(self.numbers[more], self.numbers, rows[len(kept) : len(kept) + len(more)])
        self.rows, self.place, self.next_place = rows, place, 0

    def _room(self, slots: int, size: int, in_order: bool) -> NDArray[Any]:
        """An array of that shape; if the products are in order, it begins with them.

        It is a part of a larger one, so that most additions need not move what is there. Memory that nothing was
        written to takes no room.
        """
        old = len(self.rows)
        if not (in_order and slots == size <= len(self.buffer)):
            most = int(np.sqrt(self.most_bytes / self.rows.itemsize))
            side = max(size, min(max(2 * size, _ROOM), most, len(self.index_of)))
            self.buffer = np.empty((side, side) if slots == size else (slots, size), self.rows.dtype)
            if in_order:
                self.buffer[:old, :old] = self.rows
        return self.buffer[:slots, :size]

    def fetch(self, index: int) -> None:
        """Compute the products of a row in place of another's, in turn."""
        self.place[self.place == self.next_place] = -1
        self.rows[self.next_place] = self.products.between(self.numbers[index : index + 1], self.numbers)[0]
        self.place[index] = self.next_place
        self.next_place = (self.next_place + 1) % len(self.rows)
