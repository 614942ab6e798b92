r"""Features of the rows on a subspace of the kernel's feature space that grows.

The subspace is spanned by generators: pivots φ(x_p), and directions Σ rᵢ φ(xᵢ). In an orthonormal basis of it, made by
Gram and Schmidt's method in the order of the generators, Φ holds the coordinates of the projections of all φ(xᵢ), and
the lower triangular G those of the generators. With pivots only, Φ is the incomplete Cholesky factor, K[:, P] = Φ Gᵀ.

For a w in the subspace, of coordinates v, the scores are Φ v and the squared norm is ‖v‖²; its weights on the
generators are G⁻ᵀ v.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular

from toprank.arrays import Floats, Rows
from toprank.matrices.dense_or_sparse import matvec, transpose_matvec
from toprank.matrices.gram import Gram
from toprank.matrices.threads import on_all_cores

# Pivots chosen at a time, and rows that they are chosen from.
_BLOCK, _CANDIDATES = 128, 256
# Columns of a tile of the factor.
_TILE_COLUMNS = 1024


class IncompleteCholesky:
    """The factor Φ of a kernel matrix, to which pivots and directions can be added, `most_rank` in all.

    A generator needs a residual above the rounding errors of K; rows below have Φ to working precision. `residual` is
    the diagonal of K − Φ Φᵀ, the squared distances of the rows from the subspace, and `rank` the number of generators;
    `pivots` are the rows that are pivots, in the order in which they came. The kernel matrix may remember it, so it
    refers to that by a weak reference.
    """

    def __init__(self, gram: Gram, most_rank: int) -> None:
        self._gram, self.most_rank = ref(gram), most_rank
        self.residual = np.maximum(gram.diagonal.astype(np.float64), 0.0)
        self.precision = 1e-5 if gram.dtype == np.float32 else 1e-12
        self.rounding = self.precision * float(self.residual.max(initial=0.0))
        self.rank = 0
        self.pivots, self._pivot_places = np.zeros(0, np.intp), np.zeros(0, np.intp)
        self._directions: list[tuple[int, Floats, Floats]] = []  # place, coordinates and weights r of each
        # Memory that nothing was written to takes no room: the factor grows by rows of its transpose.
        self._transposed = np.empty((most_rank, gram.n), dtype=gram.dtype)

    @property
    def gram(self) -> Gram:
        """The kernel matrix."""
        gram = self._gram()
        assert gram is not None
        return gram

    @property
    def features(self) -> NDArray[Any]:
        """Φ, one row for each row of the data."""
        return self._transposed[: self.rank].T

    @property
    def is_complete(self) -> bool:
        """Whether K = Φ Φᵀ up to rounding."""
        return bool(self.residual.max(initial=0.0) <= self.rounding)

    def coefficients(self, v: Floats) -> Floats:
        """The weights c of the rows with K c = Φ v."""
        G = np.zeros((self.rank, self.rank))
        G[self._pivot_places] = self.features[self.pivots]
        for place, coordinates, _ in self._directions:
            G[place, : place + 1] = coordinates
        weights = solve_triangular(G, v, lower=True, trans=1)
        c = np.zeros(self.gram.n)
        c[self.pivots] = weights[self._pivot_places]
        for place, _, r in self._directions:
            c += weights[place] * r
        return c

    def add_direction(self, r: Floats, products: Floats) -> bool:
        """Add Σ rᵢ φ(xᵢ), where `products` is K r; returns whether it has a part outside of the subspace."""
        coordinates = transpose_matvec(self.features, r)
        outside = products - matvec(self.features, coordinates)
        squared = float(r @ outside)
        if self.rank == len(self._transposed) or not squared > self.precision * float(r @ products):
            return False
        column = outside / np.sqrt(squared)
        self._transposed[self.rank] = column
        self._directions.append((self.rank, np.append(coordinates, np.sqrt(squared)), r))
        self.rank += 1
        self._subtract(column**2)
        return True

    def add_pivots(self, rank: int, importance: Floats) -> None:
        """Add pivots up to a rank, greedily by importance² · residual; fewer if only rounding errors are left."""
        rank = min(rank, len(self._transposed))
        while self.rank < rank:
            value = np.where(self.residual > self.rounding, importance**2 * self.residual, 0.0)
            if not value.any():
                break
            self._append(*self._next_pivots(value, importance, min(rank - self.rank, _BLOCK)))

    def _next_pivots(self, value: Floats, importance: Floats, most: int) -> tuple[Rows, Floats]:
        """Pivots out of the rows of the largest value, and the Cholesky factor of their part of the residual matrix.

        They are in the order of pivoting, which ends where a row that is no candidate may be worth three times as much.
        """
        n_candidates = min(_CANDIDATES, self.gram.n)
        order = np.argpartition(-value, n_candidates - 1)
        candidates = np.sort(order[:n_candidates])
        candidates = candidates[value[candidates] > 0]
        largest_left_out = float(value[order[n_candidates:]].max(initial=0.0))
        scale, features = importance[candidates], self.features[candidates].astype(np.float64)
        residual = self.gram.between(candidates, candidates).astype(np.float64) - features @ features.T
        tolerance = max(largest_left_out / 3, 1e-15 * float(value.max()))
        factor, places, rank, _ = lapack.dpstrf(scale[:, None] * residual * scale, lower=1, tol=tolerance)
        places = places[: max(min(rank, most), 1)] - 1
        L = np.tril(factor[: len(places), : len(places)]) / scale[places][:, None]
        is_rounding = L.diagonal() ** 2 <= self.rounding
        kept = int(is_rounding.argmax()) if is_rounding.any() else len(places)
        if kept == 0:
            self.residual[candidates[places[0]]] = 0.0
        return candidates[places[:kept]], L[:kept, :kept]

    def _append(self, new: Rows, L: Floats) -> None:
        """Append pivots; L is the Cholesky factor of their part of the residual matrix."""
        old, rank, n = self.rank, self.rank + len(new), self.gram.n
        if not len(new):
            return
        kernel_rows, known = self.gram.between(new, np.arange(n)), self._transposed[:old, new].T.copy()

        def fill(tile: slice) -> Floats:
            left = kernel_rows[:, tile].astype(np.float64) - known @ self._transposed[:old, tile]
            values = solve_triangular(L, left, lower=True, check_finite=False)
            self._transposed[old:rank, tile] = values
            return np.asarray(np.einsum("ij,ij->j", values, values))

        tiles = [slice(i, min(i + _TILE_COLUMNS, n)) for i in range(0, n, _TILE_COLUMNS)]
        squares = np.concatenate(on_all_cores(fill, tiles))
        self.pivots = np.concatenate([self.pivots, new])
        self._pivot_places = np.concatenate([self._pivot_places, np.arange(old, rank)])
        self.rank = rank
        self._subtract(squares)

    def _subtract(self, squares: Floats) -> None:
        self.residual = np.maximum(self.residual - squares, 0.0)
        self.residual[self.pivots] = 0.0
