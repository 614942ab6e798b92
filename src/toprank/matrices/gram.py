"""The kernel matrix of the training rows, on demand and in bounded memory."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank.arrays import Floats, Rows
from toprank.exceptions import InputError, Message
from toprank.matrices.dense_or_sparse import matvec
from toprank.matrices.kernel import Kernel
from toprank.matrices.threads import at_most_threads, on_all_cores, one_blas_thread

# Rows of a block of a product, and of a square of the whole matrix; fixed, so that sums do not depend on the cores.
_BLOCK_ROWS, _SQUARE_ROWS = 256, 192
# Rows whose part of the matrix is looked at for negative eigenvalues.
_DEFINITE_ROWS = 300
# Largest kernel value; with larger ones no solver comes near an optimum, and their squares may overflow.
_LARGEST = 1e30
# Slots of a range for each of those that are asked for, up to which no copy of these is made.
_SPAN = 2
# Columns of a tile of a product, and kernel values at hand up to which threads take longer to start than they save.
_TILE_COLUMNS, _FEW_VALUES = 1024, 1 << 20


class Gram:
    """Kernel matrix K of the n rows of X, computed row by row as it is needed; for "precomputed" X is K itself, dense.

    Rows are kept in a cache of `cache_size_mb` megabytes (of at least two rows); when it is full, the row that was used
    least recently makes room. If the whole matrix fits, it is kept as a whole. Beside the cache, the Gaussian kernel of
    dense rows keeps a centred copy of X, and products need a few megabytes. `evaluations` counts the kernel values
    computed so far; their type is that of X, float32 or float64. In `remembered` is what solvers made of it, for the
    fits to come.

    The rounding of an entry may depend on which rows it was computed with; two objects that are asked the same in the
    same order give the same bits, for any number of cores.
    """

    def __init__(self, kernel: Kernel, X: Any, cache_size_mb: float) -> None:
        if not cache_size_mb > 0:
            raise ValueError(f"cache_size must be a positive number of megabytes, got {cache_size_mb!r}")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        self.kernel, self.X, self.cache_size_mb = kernel, X, cache_size_mb
        self.n, self.dtype = int(X.shape[0]), X.dtype
        self.evaluations = 0
        self.remembered: dict[str, Any] = {}
        self.is_precomputed = kernel.name == "precomputed"
        if self.is_precomputed:
            _check_kernel_matrix(X)
        self.diagonal: NDArray[Any] = kernel.diagonal(X)
        self._check_magnitude()
        if self.is_precomputed:
            self._cache: NDArray[Any] = X
            self._slot_of = np.arange(self.n)
            self._whole = True
            return
        self.evaluations += 0 if kernel.name == "rbf" else self.n
        self._operand = kernel.prepare(X)
        room = int(cache_size_mb * 2**20) // max(self.n * self.dtype.itemsize, 1)
        self._n_slots = min(max(room, 2), self.n)
        # Memory that nothing was written to takes no room: the cache grows as it fills, from its first slots on.
        self._cache = np.empty((self._n_slots, self.n), dtype=self.dtype)
        self._slot_of = np.full(self.n, -1)
        self._row_of = np.full(self._n_slots, -1)
        self._last_used = np.full(self._n_slots, -1)
        self._n_filled, self._clock = 0, 0
        self._fits = room >= self.n
        self._whole = False

    def is_of(self, kernel: Kernel, X: Any, cache_size_mb: float) -> bool:
        """Whether it is the matrix of these rows with this kernel, and kept in as much memory."""
        if (kernel, cache_size_mb, type(X), X.dtype) != (self.kernel, self.cache_size_mb, type(self.X), self.X.dtype):
            return False
        parts = ("data", "indices", "indptr") if issparse(X) else ()
        pairs = [(getattr(X, part), getattr(self.X, part)) for part in parts] or [(X, self.X)]
        return bool(X.shape == self.X.shape and all(np.array_equal(*pair) for pair in pairs))

    @property
    def fits(self) -> bool:
        """Whether the whole matrix fits into the cache."""
        return self._whole or self._fits

    @property
    def full(self) -> NDArray[Any] | None:
        """The whole matrix if it fits into the cache, else None; computed at the first access."""
        if not self._whole:
            if not self._fits:
                return None
            self._compute_all()
        return self._cache

    @property
    def is_definite(self) -> bool:
        """Whether the kernel is positive semidefinite on all rows, which is known of some kernels only."""
        kernel = self.kernel
        return kernel.name in ("linear", "rbf") or (kernel.name == "poly" and kernel.coef0 >= 0)

    def check_definite(self) -> None:
        """Raise an error if a part of the matrix shows that a kernel that may be indefinite is.

        Without this a dual problem is not concave, and its lower bounds are none.
        """
        if self.is_definite:
            return
        some = np.unique(np.linspace(0, self.n - 1, _DEFINITE_ROWS).astype(np.intp))
        values = np.linalg.eigvalsh(self.between(some, some).astype(np.float64))
        if values[0] < -1e-5 * np.abs(values).max():
            raise self.not_definite(f"of {len(some)} rows it has eigenvalues from {values[0]:.1e} to {values[-1]:.1e}")

    def not_definite(self, reason: str) -> InputError:
        """The error about a kernel that is not positive semidefinite."""
        remedy = Message(
            "use kernel='rbf', other parameters, or approximation='nystroem', which takes the positive part",
            elsewhere="use {kernel='rbf'} or {kernel='linear'}",
        )
        broken = f"is not positive semidefinite on these rows: {reason}. There is no convex problem to solve"
        return InputError.saying("{kernel=} {broken}; {remedy}", kernel=self.kernel.name, broken=broken, remedy=remedy)

    def _check_magnitude(self) -> None:
        """Refuse a kernel of huge values; the largest of a definite one is on the diagonal."""
        largest = float(np.abs(self.diagonal).max(initial=0.0))
        if largest > min(_LARGEST, float(np.finfo(self.dtype).max) ** 0.5):
            raise self.kernel.too_large(largest)

    def rows(self, indices: Any) -> NDArray[Any]:
        """Rows of K as an array of shape (len(indices), n); missing rows are computed together."""
        indices = np.asarray(indices, dtype=np.intp)
        if not self._whole:
            missing = np.unique(indices[self._slot_of[indices] < 0])
            wanted = len(np.unique(indices)) if len(missing) else 0
            if wanted > self._n_slots:
                return self._rows_beyond_the_cache(indices)
            if len(missing):
                self._load(missing, keep=indices)
            self._touch(indices)
        return np.asarray(self._cache[self._slot_of[indices]])

    def row(self, index: int) -> NDArray[Any]:
        """One row of K, not to be written to; it stays valid while the next row is asked for, not longer."""
        if not self._whole:
            if self._slot_of[index] < 0:
                self._load(np.array([index]), keep=np.array([index]))
            self._last_used[self._slot_of[index]] = self._clock = self._clock + 1
        return np.asarray(self._cache[self._slot_of[index]])

    def between(self, rows_a: Any, rows_b: Any, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Entries of K at the given rows and columns, in an array that may be given."""
        if self._whole:
            values = self._cache[np.ix_(rows_a, rows_b)]
            if out is None:
                return values
            out[:] = values
            return out
        self.evaluations += len(rows_a) * len(rows_b)
        return self.kernel.between(self._operand.take(rows_a), self._operand.take(rows_b), out)

    def product(self, c: Floats) -> Floats:
        """K c in float64, from the rows where c is not zero."""
        active = np.flatnonzero(c)
        if not self._whole and self._n_filled == self.n:
            self._put_in_order()
        if self._whole and 4 * len(active) >= self.n:  # fewer rows are gathered
            with one_blas_thread():
                return matvec(self._cache, c)
        return self._combination(active, np.asarray(c, dtype=np.float64)[active], None)

    def products(self, c: Floats, r: Floats) -> tuple[Floats, Floats]:
        """K c and K r; kernel values that are not in the cache are computed once for both."""
        if self.full is not None:
            return self.product(c), self.product(r)
        active = np.flatnonzero((c != 0) | (r != 0))
        of_c, of_r = self._combination(active, np.stack([c[active], r[active]]), None)
        return of_c, of_r

    def quadratic(self, c: Floats) -> float:
        """The square c·K c, from the entries where c is not zero."""
        active = np.flatnonzero(c)
        narrow = np.asarray(c, dtype=np.float64)[active]
        return float(narrow @ self._combination(active, narrow, active))

    def _combination(self, rows: Rows, weights: Floats, columns: Rows | None) -> Floats:
        """The sum of some rows of K with weights, at some columns or at all; rows in the cache are used.

        Weights may have several rows, one for each sum.
        """
        n_columns = self.n if columns is None else len(columns)
        total = np.zeros((*weights.shape[:-1], n_columns))
        cached = self._slot_of[rows] >= 0
        if not self._whole and not self._is_callable and columns is None:
            missing = rows[~cached]
            if 0 < len(missing) <= self._n_slots - self._n_filled:  # where there is room, keep them
                self._load(missing, keep=rows)
                cached[:] = True
        for known in (True, False):
            chosen, factors = rows[cached == known], weights[..., cached == known].astype(self.dtype)
            for start in range(0, len(chosen), _BLOCK_ROWS):
                block, factor = chosen[start : start + _BLOCK_ROWS], factors[..., start : start + _BLOCK_ROWS]
                total += self._block_combination(block, factor, columns, known)
        return total

    def _block_combination(self, block: Rows, factor: NDArray[Any], columns: Rows | None, known: bool) -> Floats:
        slots: Any = self._slot_of[block]
        left = None if known else self._operand.take(block)
        n_columns = self.n if columns is None else len(columns)
        if not known:
            self.evaluations += len(block) * n_columns
        elif columns is None:
            slots, factor = self._without_gaps(slots, factor)

        def part(tile: slice) -> Floats:
            wanted: Any = tile if columns is None else columns[tile]
            if left is None:
                values = self._cache[slots, wanted] if columns is None else self._cache[np.ix_(slots, wanted)]
            else:
                values = self.kernel.between(left, self._operand.take(wanted), parallel=False)
            return np.asarray(factor @ values, dtype=np.float64)

        width = n_columns if self._is_callable else _TILE_COLUMNS
        tiles = [slice(i, i + width) for i in range(0, n_columns, max(width, 1))]
        with at_most_threads(1) if known and len(block) * n_columns <= _FEW_VALUES else nullcontext():
            return np.concatenate(on_all_cores(part, tiles), axis=-1)

    def _without_gaps(self, slots: Rows, factor: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
        """A range of slots and factors that are zero in between, where that touches few more: it needs no copy."""
        first, last = int(slots.min()), int(slots.max()) + 1
        if last - first > _SPAN * len(slots):
            return slots, factor
        wide = np.zeros((*factor.shape[:-1], last - first), factor.dtype)
        wide[..., slots - first] = factor
        return slice(first, last), wide

    @property
    def _is_callable(self) -> bool:
        return callable(self.kernel.name)

    def _fill(self, target: NDArray[Any], places: Rows, rows: Rows) -> None:
        """Compute rows of K into places of an array, a block at a time; without a copy if the places are in order."""
        for start in range(0, len(rows), _BLOCK_ROWS):
            block, where = rows[start : start + _BLOCK_ROWS], places[start : start + _BLOCK_ROWS]
            in_order = bool(np.all(np.diff(where) == 1))
            out = target[where[0] : where[-1] + 1] if in_order else np.empty((len(block), self.n), self.dtype)
            self.kernel.between(self._operand.take(block), self._operand, out)
            out[np.arange(len(block)), block] = self.diagonal[block]
            self.evaluations += out.size
            if not in_order:
                target[where] = out

    def _load(self, missing: Rows, keep: Rows) -> None:
        """Compute rows into free slots, then into those used least recently, but not over the rows to keep."""
        n_free = min(self._n_slots - self._n_filled, len(missing))
        slots = np.arange(self._n_filled, self._n_filled + n_free)
        if n_free < len(missing):
            kept = self._slot_of[keep]
            age = self._last_used.copy()
            age[kept[kept >= 0]] = np.iinfo(age.dtype).max
            age[slots] = np.iinfo(age.dtype).max
            oldest = np.argsort(age, kind="stable")[: len(missing) - n_free]
            self._slot_of[self._row_of[oldest]] = -1
            slots = np.concatenate([slots, oldest])
        self._fill(self._cache, slots, missing)
        self._slot_of[missing], self._row_of[slots] = slots, missing
        self._touch(missing)
        self._n_filled = min(self._n_filled + len(missing), self._n_slots)

    def _put_in_order(self) -> None:
        """Give every row of a matrix that is complete the slot of its number, by swaps: they need no second matrix."""
        for row in range(self.n):
            slot, other = int(self._slot_of[row]), int(self._row_of[row])
            if slot != row:
                self._cache[[row, slot]] = self._cache[[slot, row]]
                self._slot_of[other], self._row_of[slot] = slot, other
        self._slot_of[:] = self._row_of[:] = np.arange(self.n)
        self._whole = True

    def _touch(self, rows: Rows) -> None:
        self._clock += 1
        self._last_used[self._slot_of[rows]] = self._clock

    def _rows_beyond_the_cache(self, indices: Rows) -> NDArray[Any]:
        """More rows than the cache holds: nothing is stored."""
        out = np.empty((len(indices), self.n), dtype=self.dtype)
        slots = self._slot_of[indices]
        out[slots >= 0] = self._cache[slots[slots >= 0]]
        missing = np.flatnonzero(slots < 0)
        self._fill(out, missing, indices[missing])
        return out

    def _compute_all(self) -> None:
        """Fill the cache: by squares of the upper triangle and their mirror images, if little is known yet."""
        missing = np.flatnonzero(self._slot_of < 0)
        if self._is_callable or 2 * len(missing) < self.n:
            if len(missing):
                self._load(missing, keep=missing)
            self._put_in_order()
            return
        whole = self._cache
        stripes = [slice(i, min(i + _SQUARE_ROWS, self.n)) for i in range(0, self.n, _SQUARE_ROWS)]

        def stripe(rows: slice) -> NDArray[Any]:
            left, room = self._operand.take(rows), np.empty((_SQUARE_ROWS, _SQUARE_ROWS), self.dtype)
            for columns in stripes[rows.start // _SQUARE_ROWS :]:  # a square stays in a processor's own memory
                values = room[: rows.stop - rows.start, : columns.stop - columns.start]
                self.kernel.between(left, self._operand.take(columns), values, parallel=False)
                if columns == rows:
                    np.copyto(values, values.T.copy(), where=np.tri(*values.shape, dtype=np.bool_))
                whole[rows, columns], whole[columns, rows] = values, values.T
            return whole

        on_all_cores(stripe, stripes)
        np.fill_diagonal(whole, self.diagonal)
        self.evaluations += self.n * (self.n + 1) // 2
        self._slot_of[:] = self._row_of[:] = np.arange(self.n)
        self._n_filled, self._whole = self.n, True


def _check_kernel_matrix(K: Any) -> None:
    """Refuse what cannot be a precomputed kernel matrix of the training rows."""
    if issparse(K):
        raise InputError.saying("{kernel='precomputed'} needs a dense matrix; use K.toarray()")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise InputError.saying(
            "{kernel='precomputed'} needs the square matrix of the kernel between all training rows, got shape {shape}",
            shape=K.shape,
        )
    largest = float(max(K.max(), -K.min())) if K.size else 0.0
    if not np.isfinite(largest):
        raise InputError.saying(
            "{kernel='precomputed'}, but the matrix has NaN or infinite entries; check how it was computed"
        )
    rounding = (1e-4 if K.dtype == np.float32 else 1e-8) * largest
    for start in range(0, len(K), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        difference = np.abs(K[rows] - K[:, rows].T)
        if difference.max() > rounding:
            i, j = np.unravel_index(int(difference.argmax()), difference.shape)
            raise InputError.saying(
                "{kernel='precomputed'} needs a symmetric matrix, but {how}; use (K + K.T) / 2 if it is only rounding",
                how=f"the entries ({start + i}, {j}) and ({j}, {start + i}) differ by {difference[i, j]:.1e}",
            )
