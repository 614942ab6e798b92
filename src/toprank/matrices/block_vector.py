"""Vectors of a number for each row, in pieces beside the blocks of the rows.

Operations of NumPy make expressions, of which nothing is computed. What makes a number of a vector is one round: each
block computes the expression and sends what it comes to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import getitem
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from toprank.arrays import Floats, Rows
from toprank.matrices.block_expressions import ROW_BY_ROW, Call, Leaf, as_type, evaluate, renumbered
from toprank.matrices.block_tasks import Piece, Pieces, added_up, fetched, on_each, stored

# An expression of more stored vectors than this is computed and stored itself.
_MOST_LEAVES = 8
# What the numbers that a function makes of the blocks come to.
_OF_ALL: dict[Any, Any] = {np.sum: np.sum, np.dot: np.sum, np.count_nonzero: np.sum, np.max: np.max}


class BlockVector(NDArrayOperatorsMixin):
    """A vector in pieces: an expression of stored vectors, of which `leaves` has the pieces.

    `lengths` are those of the pieces. The number of a row is that in all pieces together.
    """

    def __init__(
        self, lengths: tuple[int, ...], leaves: Sequence[Pieces], expression: Any, dtype: Any = np.float64
    ) -> None:
        self.lengths, self.leaves, self.expression, self.dtype = lengths, tuple(leaves), expression, np.dtype(dtype)
        self._notes: dict[str, Any] = {}

    @classmethod
    def of(cls, pieces: Pieces, lengths: Sequence[int], dtype: Any = np.float64) -> BlockVector:
        """A vector whose pieces are known."""
        return cls(tuple(lengths), (list(pieces),), Leaf(0), dtype)

    def __len__(self) -> int:
        return sum(self.lengths)

    def noted(self, name: str, make: Callable[[], Any]) -> Any:
        """What was made of the vector under a name, or is made now."""
        if name not in self._notes:
            self._notes[name] = make()
        return self._notes[name]

    def note(self, name: str, value: Any) -> None:
        """Note something of the vector."""
        self._notes[name] = value

    def known(self, name: str) -> Any:
        """What was noted, or None."""
        return self._notes.get(name)

    @property
    def pieces(self) -> Pieces:
        """The pieces, which are computed and kept."""
        return self.stored().leaves[0]

    @cached_property
    def offsets(self) -> Rows:
        """Numbers of the first rows of the pieces, and of the row after the last."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.intp)

    @cached_property
    def n_true(self) -> tuple[int, ...]:
        """How many of each piece are true."""
        return tuple(int(count) for count in self.on_blocks(np.count_nonzero))

    # Elementwise operations.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or any(np.ndim(x) for x in inputs if not isinstance(x, BlockVector)):
            return NotImplemented
        if ufunc is np.matmul:
            return applied(np.dot, *inputs).sum()
        return applied(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        if function in ROW_BY_ROW:
            return applied(function, *arguments, **options)
        if function in (np.flatnonzero, np.count_nonzero, np.argmax) and not options:
            return getattr(self, f"_{function.__name__}")()
        return NotImplemented

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError(f"a vector of {len(self):,} rows in {len(self.lengths)} blocks is not gathered in one place")

    def astype(self, dtype: Any, copy: bool = True) -> BlockVector:
        """The same in another precision."""
        return applied(as_type, self, np.dtype(dtype), dtype=dtype)

    def stored(self) -> BlockVector:
        """The same, computed and kept in pieces."""
        if isinstance(self.expression, Leaf):
            return self
        return BlockVector.of(stored(self.tasks(_itself)), self.lengths, self.dtype)

    def in_short(self) -> BlockVector:
        """The same, computed and kept; a piece of equal numbers, as weights mostly are, is kept as one number."""
        return BlockVector.of(stored(self.tasks(in_short)), self.lengths, self.dtype)

    # Numbers of all rows.

    def on_blocks(self, function: Callable[..., Any], columns: Sequence[Pieces] = ()) -> list[Any]:
        """What a function makes of each piece, and of those of other columns, sent here."""
        return fetched(self.tasks(function, columns))

    def tasks(self, function: Callable[..., Any], columns: Sequence[Pieces] = (), *common: Any) -> list[Piece]:
        """Tasks that call a function with each piece, those of other columns, and what is common to all."""
        return on_each(_with_value, [*self.leaves, *columns], len(self.leaves), self.expression, function, common)

    def numbers_of(self, asked: Sequence[tuple[Any, ...]]) -> list[float]:
        """What functions make of this and other vectors, see `toprank.arrays.numbers_of`: one round."""
        parts = applied(several, *(vector for _, *vectors in asked for vector in vectors))
        of_blocks = parts.tasks(_numbers_of, [], tuple((function, len(vectors)) for function, *vectors in asked))
        columns = np.array(fetched(of_blocks), dtype=np.float64).T
        found = [float(_OF_ALL[function](column)) for (function, *_), column in zip(asked, columns, strict=True)]
        for (function, vector, *_), number in zip(asked, found, strict=True):
            if function is np.sum:
                vector._total = number
        return found

    def sum(self) -> float:
        """Sum."""
        return self._total

    def mean(self) -> float:
        """Mean."""
        return self._total / len(self)

    def max(self) -> float:
        """The largest one."""
        return self._most

    def min(self) -> float:
        """The smallest one."""
        return self._least

    @cached_property
    def _total(self) -> float:
        return float(np.sum(self.on_blocks(np.sum)))

    @cached_property
    def _most(self) -> float:
        return float(max(self.on_blocks(_largest)))

    @cached_property
    def _least(self) -> float:
        return float(min(self.on_blocks(_smallest)))

    def any(self) -> bool:
        """Whether one is true."""
        return any(self.on_blocks(np.any))

    def all(self) -> bool:
        """Whether all are true."""
        return all(self.on_blocks(np.all))

    def _count_nonzero(self) -> int:
        return int(sum(self.n_true))

    def _flatnonzero(self) -> Rows:
        parts = zip(self.on_blocks(np.flatnonzero), self.offsets[:-1], strict=True)
        return np.concatenate([part + offset for part, offset in parts])

    def _argmax(self) -> int:
        places = self.on_blocks(_place_of_largest)
        block = int(np.argmax([value for value, _ in places]))
        return int(self.offsets[block] + places[block][1])

    def root_from_below(self, share: BlockVector, sums: Callable[..., tuple[Floats, Floats]], first: Any) -> float:
        """The root of a sum over the rows, by `toprank.matrices.block_root`."""
        from toprank.matrices.block_root import root_from_below

        return root_from_below(self, share, sums, np.array(first))

    def top_mean(self, caps: BlockVector | None) -> float:
        """The mean of the largest, whose caps have the sum 1, or the largest one."""
        from toprank.matrices.block_selection import ROUNDING, Search, find, top_mean

        return self.max() if caps is None else top_mean(find([Search(self, caps, 1 - ROUNDING)])[0])

    def drawn(self, size: int, random_state: np.random.RandomState) -> Rows:
        """Rows drawn by these weights, by `toprank.matrices.block_draw`."""
        from toprank.matrices.block_draw import draw_rows

        return draw_rows(self, size, random_state)

    def first_beyond(self, weights: BlockVector, weight: float) -> float:
        """The largest value up to which, it included, there is more than so much weight."""
        from toprank.matrices.block_order import Order

        return Order.of(self, weights).first_beyond(weight)

    # Some of the rows.

    def __getitem__(self, rows: Any) -> Any:
        """All rows, those under a mask in pieces, or one or several by number, which are sent here."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        if isinstance(rows, BlockVector):
            # the mask is kept with its part, so that no other one gets its number
            return self.noted(f"rows {id(rows)}", lambda: (rows, self._masked(rows)))[1]
        if np.ndim(rows) == 0:
            return self[np.array([rows])][0]
        return self._fetch(np.asarray(rows, dtype=np.intp))

    def _masked(self, rows: BlockVector) -> BlockVector:
        taken = applied(getitem, self, rows, dtype=self.dtype)
        taken.lengths = rows.n_true
        return taken

    def of_blocks(self, blocks: Sequence[int]) -> BlockVector:
        """The vector of some of the blocks."""
        leaves = [[leaf[b] for b in blocks] for leaf in self.leaves]
        return BlockVector(tuple(self.lengths[b] for b in blocks), leaves, self.expression, self.dtype)

    def _fetch(self, rows: Rows) -> Floats:
        places = local_numbers(rows, self.offsets)
        blocks = [b for b, place in enumerate(places) if len(place)]
        parts = fetched(self.of_blocks(blocks).tasks(getitem, [[places[b] for b in blocks]]))
        found = np.concatenate([np.zeros(0, self.dtype), *parts])
        ordered = np.empty_like(found)
        ordered[np.argsort(rows, kind="stable")] = found
        return ordered


def applied(function: Callable[..., Any], *arguments: Any, dtype: Any = np.float64) -> BlockVector:
    """The vector of what a function makes of the pieces of some vectors, and of numbers."""
    vectors = [x for x in arguments if isinstance(x, BlockVector)]
    leaves: list[Pieces] = []
    of_vectors = []
    for vector in vectors:
        places = []
        for leaf in vector.leaves:
            known = next((i for i, other in enumerate(leaves) if other is leaf), len(leaves))
            if known == len(leaves):
                leaves.append(leaf)
            places.append(Leaf(known))
        of_vectors.append(renumbered(vector.expression, places))
    expressions = iter(of_vectors)
    call = Call(function, tuple(next(expressions) if isinstance(x, BlockVector) else x for x in arguments))
    found = BlockVector(vectors[0].lengths, leaves, call, dtype)
    return found.stored() if len(leaves) > _MOST_LEAVES else found


def kept(values: Any) -> Any:
    """Values that are needed several times: a vector in pieces is computed now, an array is what it is."""
    return values.stored() if isinstance(values, BlockVector) else values


def in_short(values: Any) -> Any:
    """Numbers that may not be written to; if all are equal, a view of one of them."""
    if len(values) < 2 or values[0] != values[-1] or (values != values[0]).any():
        return values
    return np.broadcast_to(values[0], values.shape)


def sum_of(function: Callable[..., Any], *arguments: Any) -> Floats:
    """The sum over all blocks of the array that a function makes of their pieces of some vectors, and of numbers."""
    return np.asarray(added_up(applied(function, *arguments).tasks(_itself)), dtype=np.float64)


def local_numbers(rows: Rows, offsets: Rows) -> list[Rows]:
    """The numbers of rows within their blocks, in rising order, block by block."""
    rising = np.sort(rows, kind="stable")
    ends = np.searchsorted(rising, offsets)
    return [rising[ends[b] : ends[b + 1]] - offsets[b] for b in range(len(offsets) - 1)]


def several(*pieces: Any) -> tuple[Any, ...]:
    """The pieces of several vectors side by side."""
    return pieces


def _numbers_of(vectors: tuple[Any, ...], asked: Sequence[tuple[Any, int]]) -> list[float]:
    left = iter(vectors)
    found = []
    for function, n_vectors in asked:
        arguments = [next(left) for _ in range(n_vectors)]
        found.append(_largest(*arguments) if function is np.max else float(function(*arguments)))
    return found


def _with_value(*pieces: Any) -> Any:
    *pieces_and_columns, n_leaves, expression, function, common = pieces
    value = evaluate(expression, pieces_and_columns[:n_leaves])
    return function(value, *pieces_and_columns[n_leaves:], *common)


def _itself(value: Any) -> Any:
    return value


def _largest(values: Any) -> float:
    return float(values.max()) if len(values) else -np.inf


def _smallest(values: Any) -> float:
    return float(values.min()) if len(values) else np.inf


def _place_of_largest(values: Any) -> tuple[float, int]:
    return (float(values.max()), int(np.argmax(values))) if len(values) else (-np.inf, 0)
