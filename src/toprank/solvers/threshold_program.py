r"""The dual on a working set as a small program of the multipliers that may be at a bound.

Positives that are surely below their margin have multipliers u between their bounds. With these eliminated, what is
left of the dual of the pair method (`toprank.solvers.pair_dual`) is a quadratic program of the others: of z = (y, b),
the multipliers y of the doubtful positives and b of the threshold rows,

.. math:: \min_z\; \tfrac12 z^\top H z - q^\top z, \qquad z \ge 0, \quad b \le c \sum b.

It is small, as only rows at the top have such multipliers, and the positives' part of the dual is well conditioned by
the curvature of the loss. What pairs and Newton steps on a guess of the free multipliers are slow at is to find out
which b are zero, where many rows that are alike share the threshold. Guesses of the active set that correct each other
(`toprank.solvers.active_sets`) do that in a few steps. Where rows are so alike that H is singular but for rounding, as
with few features, the guesses would not settle; so the program has a proximal term, a share of the curvature of each z
times its squared distance from the start, as small as the guesses allow: 1e-7 where they settle at once, which is exact
for all that matters. Each program starts at the solution of the last one, so that a larger term comes to the optimum as
well, in more of them. Where all that fails, an interior-point method solves it.

With A the curvature in u (K / α and that of the loss), G the products / α of the rows of u with those of z (negative
for y), σ = (−1, 1) and :math:`\ell` the slopes at zero, the u at z and at the threshold λ is
:math:`A^{-1}(\ell + \lambda 1 + G z)`, and λ follows from Σu = σ·z. So, with :math:`v = \sigma - G^\top A^{-1} 1` and
:math:`\epsilon = 1^\top A^{-1} 1`, and M the curvature in z alone,

.. math:: H = M - G^\top A^{-1} G + v v^\top / \epsilon.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from toprank.arrays import Floats, Rows
from toprank.matrices._gather import gather
from toprank.matrices.dense_or_sparse import Cholesky
from toprank.solvers.active_sets import solve_by_active_sets

# Share that is added to the products of rows with themselves: equal rows then have equal multipliers, not any.
_GUARD = 1e-11
# Shares of the curvature of a z in the proximal term, in turn.
PROXIMITIES = (1e-7, 1e-6, 1e-5, 1e-4)
# Room for the rows of programs to come, as a multiple of those that are kept; what is never touched costs nothing.
_ROOM = 1.5
# Steps after which a program ends in any case.
_STEPS = 40
# Part of the way to a bound that a step takes at most, and the room below a cap to start with.
_TO_THE_BOUND, _FIRST_ROOM = 0.995, 0.1


ProductsInType = Callable[[Rows, Rows, Any], NDArray[Any]]


class Elimination:
    """The factor L of A, and what is left of other rows beside it, which is kept for the programs to come.

    `rows` are those of the eliminated u, `products` gives those of some rows with others, over α, in a type, and `bend`
    is what the loss adds to the curvature in u. It stays with a kernel matrix, so it must not refer to it. In single
    precision it takes half of the time and room.
    """

    def __init__(
        self,
        products: ProductsInType,
        rows: Rows,
        bend: Floats,
        alpha: float,
        n_rows: int,
        *,
        is_single: bool = False,
    ) -> None:
        self.rows, self.is_single, self._bend, self._alpha = rows, is_single, bend, alpha
        self.dtype: Any = np.float32 if is_single else np.float64
        A = products(rows, rows, self.dtype)
        A[np.arange(len(A)), np.arange(len(A))] += bend
        self.factor = Cholesky(A, in_place=True)
        self.ones = self.factor.half_solve(np.ones((len(A), 1)))[:, 0]
        self._place, self._kept = np.full(n_rows, -1), np.zeros(0, np.intp)
        self._halves, self._left = np.empty((0, len(A)), self.dtype), np.empty((0, 0))
        self.squares = np.zeros(0)

    def is_of(self, bend: Floats, alpha: float) -> bool:
        """Whether it is that of a problem with this curvature of the loss in its u, and this α."""
        return alpha == self._alpha and np.array_equal(bend, self._bend)

    def basis(self, dropped: Rows) -> Floats:
        """Orthonormal columns to project out of all others: then those of the eliminated u are zero, and no longer so.

        :math:`L^{-1} e_i` spans what the i-th u adds to the inverse of A.
        """
        units = np.zeros((len(self.ones), len(dropped)))
        units[dropped, np.arange(len(dropped))] = 1.0
        return np.asarray(np.linalg.qr(self.factor.half_solve(units))[0])

    @property
    def halves(self) -> Floats:
        """L⁻¹ times the products with each of the rows that are kept, one row for each."""
        return self._halves[: len(self._kept)]

    def left(self, places: Rows) -> Floats:
        """The products of rows that are kept with each other, over α, less those of their halves; a copy."""
        found = np.empty((len(places), len(places)))
        gather(self._left, places, places, 1.0, found)
        return found

    def places(self, rows: Rows, products: ProductsInType) -> Rows:
        """Where rows are kept; new ones are added."""
        if len(rows) and (most := int(rows.max())) >= len(self._place):  # the working set has grown
            self._place = np.concatenate([self._place, np.full(most + 1 - len(self._place), -1)])
        missing = np.unique(rows[self._place[rows] < 0])
        if len(missing):
            self._keep(missing, products)
        return self._place[rows]

    def _keep(self, new: Rows, products: ProductsInType) -> None:
        old, size = len(self._kept), len(self._kept) + len(new)
        self._place[new], self._kept = np.arange(old, size), np.concatenate([self._kept, new])
        if size > len(self._halves):
            halves, known, room = self._halves, self._left, int(_ROOM * size)
            self._halves, self._left = np.empty((room, len(self.ones)), self.dtype), np.empty((room, room))
            self._halves[:old], self._left[:old, :old] = halves[:old], known[:old, :old]
        self.factor.half_solve_rows(products(new, self.rows, self.dtype), self._halves[old:size])
        left = products(new, self._kept, self.dtype)
        self.squares = np.concatenate([self.squares, left[np.arange(len(new)), np.arange(old, size)]])
        left -= self._halves[old:size] @ self._halves[:size].T
        self._left[old:size, :size] = left
        self._left[:old, old:size] = left[:, :old].T


class Program(ABC):
    """min ½ z·Hz − q·z, where the first `n_doubtful` entries of z are y, and `curvature` is that of each z."""

    H: Floats
    q: Floats
    base: tuple[Floats, Floats]
    epsilon: float
    offset: float

    def _complete(self, signs: Floats, bend: Floats, squares: Floats, on_level: Floats, slopes: Floats) -> None:
        """From what is left of the products, in H, to the program: signs, the loss, the level, and q.

        `squares` are the products of the rows with themselves, `on_level` is Gᵀ A⁻¹ 1 without its signs, and `slopes`
        are those by z at the base, where the eliminated u follow.
        """
        self.n_doubtful = n = int(np.count_nonzero(signs < 0))
        self.v = signs * (1.0 - on_level)
        # A row without entries has no curvature of its own, but that of the level.
        self.curvature = np.maximum(squares + bend, self.v**2 / self.epsilon)
        self.H[np.arange(len(bend)), np.arange(len(bend))] += bend + _GUARD * self.curvature
        self.H[:n, n:] *= -1.0
        self.H[n:, :n] *= -1.0
        blas.dger(1.0, self.v, self.v / self.epsilon, a=self.H.T, overwrite_a=1)
        self.q = slopes + self.v * (self.offset / self.epsilon) + self.H @ self.base[1]

    def _level(self, change: Floats) -> float:
        """How far the multiplier of Σu = σ·z moves with z."""
        return (float(self.v @ change) - self.offset) / self.epsilon

    @abstractmethod
    def eliminated_at(self, z: Floats) -> Floats:
        """The best u for z."""

    def solve(self, start: Floats, caps: Floats | None, tol: float, first: int = 0) -> tuple[Floats, int]:
        """The z of the program, from a start with some positive b, and the proximal term with which guesses settled.

        `first` is the number of the first one to try; beyond the last is the interior-point method, to a relative gap.
        """
        diagonal = np.arange(len(self.H))
        for level in range(first, len(PROXIMITIES)):
            near = PROXIMITIES[level] * self.curvature
            self.H[diagonal, diagonal] += near
            z = solve_by_active_sets(self.H, self.q + near * start, caps, self.n_doubtful, start)
            self.H[diagonal, diagonal] -= near
            if z is not None:
                return z, level
        return _InteriorPoint(self.H, self.q, caps, self.n_doubtful).run(start, tol), len(PROXIMITIES)


class ThresholdProgram(Program):
    """The program of some rows, at their places in an elimination, of which the signs are σ.

    `bend` is what the loss adds to their curvature, `slopes` are the slopes by u and by z at the point `base` of both,
    and `fixed` is the sum of the u that are at a bound and left out. The u of the numbers `dropped`, zero in the base,
    are left out of the elimination. As only the way from the base depends on the elimination, one in single precision
    leads to the optimum as well, in several programs.
    """

    def __init__(
        self,
        elimination: Elimination,
        places: Rows,
        signs: Floats,
        bend: Floats,
        slopes: tuple[Floats, Floats],
        base: tuple[Floats, Floats],
        fixed: float,
        dropped: Rows,
    ) -> None:
        self.elimination, self.places, self.signs, self.base = elimination, places, signs, base
        # What is common to the slopes is the multiplier of Σu = σ·z, nearly: without it little is left to be rounded.
        common = float(np.median(slopes[0]))
        at_base = elimination.factor.half_solve((slopes[0] - common)[:, None])[:, 0]
        self.H, self.basis = elimination.left(places), None
        if len(dropped):
            self.basis = elimination.basis(dropped)
            within = (elimination.halves @ self.basis)[places]
            self.H += within @ within.T
        self.at_base, self.per_level = self._projected(at_base), self._projected(elimination.ones)
        self.epsilon = float(self.per_level @ self.per_level)
        on_level, on_base = (elimination.halves @ x for x in (self.per_level, self.at_base))
        lacks = fixed + float(base[0].sum() - signs @ base[1])
        self.offset = lacks + float(self.at_base @ self.per_level)
        self._complete(
            signs, bend, elimination.squares[places], on_level[places], slopes[1] + signs * (common + on_base[places])
        )

    def _projected(self, half: Floats) -> Floats:
        return half if self.basis is None else half - self.basis @ (self.basis.T @ half)

    def eliminated_at(self, z: Floats) -> Floats:
        """The best u for z."""
        change, on_kept = z - self.base[1], np.zeros(len(self.elimination.halves), self.elimination.dtype)
        on_kept[self.places] = self.signs * change
        half = self.at_base + self._level(change) * self.per_level + self._projected(on_kept @ self.elimination.halves)
        return self.base[0] + self.elimination.factor.back_solve(half)


class _InteriorPoint:
    """Predictor and corrector of Mehrotra for min ½ z·Hz − q·z with z ≥ 0 and, where there are caps c, c Σb − b ≥ 0."""

    def __init__(self, H: Floats, q: Floats, caps: Floats | None, n_doubtful: int) -> None:
        self.H, self.q, self.caps, self.of_b = H, q, caps, slice(n_doubtful, None)

    def run(self, start: Floats, tol: float) -> Floats:
        """Steps until the products of slacks and multipliers are a small share of the objective."""
        z, multipliers = self._first_point(start)
        for _ in range(_STEPS):
            slack, residual = self._slack(z), self.H @ z - self.q - self._slope(multipliers)
            complementarity = float(multipliers @ slack)
            is_exact = complementarity <= tol * abs(float(self.q @ z))
            if is_exact and np.abs(residual).max() <= tol * np.abs(self.q).max():
                break
            if not slack.all():  # a bound is reached but for rounding
                break
            factor = Cholesky(self._system(multipliers / slack), in_place=True)
            # The predictor, and how far it gets.
            change, of_slack, rise = self._direction(factor, residual, slack, multipliers, 0.0)
            to_go, up = _longest(slack, of_slack), _longest(multipliers, rise)
            left = float((multipliers + up * rise) @ (slack + to_go * of_slack)) / complementarity
            # The corrector, aimed at products that are equal.
            target = left**3 * complementarity / len(slack) - rise * of_slack
            change, of_slack, rise = self._direction(factor, residual, slack, multipliers, target)
            step = min(_longest(slack, of_slack, 1 / _TO_THE_BOUND), _longest(multipliers, rise, 1 / _TO_THE_BOUND))
            z, multipliers = z + _TO_THE_BOUND * step * change, multipliers + _TO_THE_BOUND * step * rise
        # Zero where the multiplier says so.
        return np.where(self.H.diagonal() * z < multipliers[: len(z)], 0.0, z)

    def _first_point(self, start: Floats) -> tuple[Floats, Floats]:
        """Well inside, near the start: no entry far below the mean, no b close to its cap."""
        z = np.maximum(start, 0.1 * float(start.mean()))
        if self.caps is not None:
            b = z[self.of_b]
            even, room = self.caps * (float(b.sum()) / float(self.caps.sum())), self.caps * float(b.sum()) - b
            most = self.caps * float(b.sum()) - even
            lacks = np.maximum(_FIRST_ROOM * most - room, 0.0)
            share = float(np.max(lacks / (lacks + (1 - _FIRST_ROOM) * most)))
            z[self.of_b] = (1 - share) * b + share * even
        slack, gradient = self._slack(z), self.H @ z - self.q
        multipliers = float(np.abs(gradient).mean()) * float(slack.mean()) / slack
        multipliers[: len(z)] = np.maximum(multipliers[: len(z)], gradient)
        return z, multipliers

    def _slack(self, z: Floats) -> Floats:
        """What is not to become negative; it is linear in z."""
        if self.caps is None:
            return z
        b = z[self.of_b]
        return np.concatenate([z, self.caps * float(b.sum()) - b])

    def _slope(self, multipliers: Floats) -> Floats:
        """The derivative of multipliers times slacks."""
        n = len(self.q)
        slope = multipliers[:n].copy()
        if self.caps is not None:
            of_caps = multipliers[n:]
            slope[self.of_b] += float(self.caps @ of_caps) - of_caps
        return slope

    def _system(self, ratio: Floats) -> Floats:
        """H, and the slacks' curvature: that of z is diagonal, that of the caps has two directions more."""
        n, system = len(self.q), self.H.copy()
        system[np.arange(n), np.arange(n)] += ratio[:n]
        if self.caps is not None:
            of_b, weighted = system[self.of_b, self.of_b], ratio[n:] * self.caps
            of_b -= weighted[:, None] - float(weighted @ self.caps)
            of_b -= weighted
            of_b[np.arange(len(of_b)), np.arange(len(of_b))] += ratio[n:]
        return system

    def _direction(
        self, factor: Cholesky, residual: Floats, slack: Floats, multipliers: Floats, target: Floats | float
    ) -> tuple[Floats, Floats, Floats]:
        """Changes of z, of the slacks and of the multipliers that make their products `target`."""
        toward = target / slack - multipliers
        change = factor.solve(self._slope(toward) - residual)
        of_slack = self._slack(change)
        return change, of_slack, toward - multipliers / slack * of_slack


def _longest(values: Floats, change: Floats, most: float = 1.0) -> float:
    """The longest step, at most `most`, that keeps positive values so."""
    sinking = change < 0
    return float(np.min(-values[sinking] / change[sinking], initial=most))
