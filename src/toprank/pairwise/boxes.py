r"""Sums over all pairs of points to machine precision, in linear time.

The functions φ have no singularity within π of the real line. The line is cut into boxes of width one. Within a box a
source at local coordinate v and a target at u, both in [−1, 1], interact through a polynomial,

.. math:: \varphi(y - z) = \sum_{a, b < 16} D_{ab}\, u^a v^b,

the Chebyshev interpolant in both variables, whose error falls by a factor of 12 with each degree. So a box of sources
is known by its 16 moments Σ q vᵇ, and a box of targets by a polynomial in u. Boxes up to three apart interact through
the tables D. Beyond that distance φ is a constant or linear plus a short sum of decaying exponentials,

.. math:: \sigma(s) = 1 - e^{-s} + e^{-2s} - \dots, \qquad \log \sigma(s) = -e^{-s} + \tfrac12 e^{-2s} - \dots
          \qquad (s > 0),

and sums of exponentials are carried from box to box. Empty boxes are left out where there are many of them. Nothing
depends on how far the points spread, and values far out in a tail are as exact as the others, relative to themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from toprank.arrays import Floats, Mask
from toprank.pairwise._box_sums import TERMS, Room, Tables, add_moments, evaluate, interact
from toprank.pairwise.pair_sums import FUNCTIONS, boxes_between

# Boxes of the logistic functions interact through tables up to this distance; beyond it 16 exponentials are enough, as
# e^(−16·3) is far below the rounding error.
_REACH = 3


@dataclass(frozen=True)
class Expansion:
    """How boxes interact through one function; see `interact` for the meaning of the arrays."""

    width: float
    tables: Tables

    def apply(self, moments: Floats, joined: Floats, boxes: Boxes, wanted: Mask) -> Floats:
        """The polynomials of the boxes, of shape (rows, boxes, 16), where `wanted`.

        The sources of row r are those of all rows of `moments`, with the weights ``joined[r]``.
        """
        n_boxes = len(boxes.positions)
        polynomials = np.zeros((len(joined), n_boxes, TERMS))
        interact(moments, joined, wanted, boxes.positions, self.width, self.tables, Room.of(n_boxes), polynomials)
        return polynomials


@lru_cache
def expansion(function: str) -> Expansion:
    """The tables of a function, made on first use in about a millisecond."""
    k = np.arange(1, TERMS + 1)
    if function == "erfc":
        # an entire function that is 0 or 2 to the last bit beyond a distance of 6
        width, reach, below, above, ends = 0.5, 13, 0.0 * k, 0.0 * k, [0.0, 2.0, 0.0]
    else:
        width, reach = 1.0, _REACH
        alternating = -((-1.0) ** k)  # 1, −1, 1, …
        below, above, ends = {
            "sigmoid": (-alternating, alternating, [1.0, 0.0, 0.0]),
            "reversed_sigmoid": (alternating, -alternating, [0.0, 1.0, 0.0]),
            "log_sigmoid": (-alternating / k, -alternating / k, [0.0, 0.0, 1.0]),
            "sigmoid_derivative": (alternating * k, alternating * k, [0.0, 0.0, 0.0]),
        }[function]
    rising = np.stack([_powers(np.exp(k * _nodes()[0] / 2)) for k in range(1, TERMS + 1)])
    near = _near_tables(FUNCTIONS[function], width, reach)
    rest = (np.asarray(part, dtype=np.float64) for part in (below, above, ends))
    return Expansion(width, Tables(near, rising, rising * (-1.0) ** np.arange(TERMS), *rest))


def _near_tables(phi: Callable[[Any], Any], width: float, reach: int) -> Floats:
    """Tables [J − I + reach, b, a]: coefficient of vᵇ uᵃ in φ(width·(J − I + (u − v)/2))."""
    nodes, to_chebyshev, to_powers = _nodes()
    difference = (nodes[None, :] - nodes[:, None]) / 2
    offsets = np.arange(-reach, reach + 1)[:, None, None]
    series = to_chebyshev @ phi(width * (offsets + difference)) @ to_chebyshev.T
    return np.ascontiguousarray(to_powers @ series @ to_powers.T)


def _powers(values: Floats) -> Floats:
    """Coefficients of the polynomial in t on [−1, 1] that has given values at the nodes."""
    _, to_chebyshev, to_powers = _nodes()
    return np.asarray(to_powers @ (to_chebyshev @ values))


@lru_cache
def _nodes() -> tuple[Floats, Floats, Floats]:
    """Chebyshev nodes, the matrix from values there to a Chebyshev series, and that from the series to powers.

    Powers are safe here, as the series of functions with poles this far away fall quickly; but the two matrices must be
    applied one after the other, since their product has entries of 1e5 that cancel.
    """
    odd, degrees = 2 * np.arange(TERMS) + 1, np.arange(TERMS)[:, None]
    # whole multiples of the angle are reduced before they are rounded
    cosines = np.cos(np.pi / (2 * TERMS) * (degrees * odd % (4 * TERMS)))
    nodes, to_chebyshev = cosines[1], cosines * (2 / TERMS)
    to_chebyshev[0] /= 2
    to_powers = np.zeros((TERMS, TERMS))
    for degree, series in enumerate(np.eye(TERMS)):
        to_powers[: degree + 1, degree] = chebyshev.cheb2poly(series)[: degree + 1]
    return nodes, to_chebyshev, to_powers


@dataclass(frozen=True)
class Boxes:
    """The boxes that points lie in: `positions` on the line, in units of `width`, and how a point finds its box."""

    width: float
    positions: Floats
    numbers: tuple[NDArray[np.int64], ...]
    """The box of each point of each set, where empty boxes were left out; else empty arrays."""

    @classmethod
    def of(cls, width: float, *point_sets: Floats) -> Boxes:
        """Boxes of a given width, a power of two; empty ones are left out where there would be many."""
        smallest, largest = min(points.min() for points in point_sets), max(points.max() for points in point_sets)
        boxes = boxes_between(smallest, largest, width, sum(map(len, point_sets)))
        if boxes is not None:
            return cls(width, boxes, (_NONE,) * len(point_sets))
        ends = np.cumsum([len(points) for points in point_sets])[:-1]
        positions, numbers = np.unique(np.floor(np.concatenate(point_sets) / width), return_inverse=True)
        return cls(width, positions, tuple(np.split(numbers, ends)))

    @classmethod
    def at(cls, width: float, positions: Floats, points: Floats) -> Boxes:
        """Boxes of known positions, in rising order, for some points that lie in them."""
        without_gaps = positions[-1] - positions[0] == len(positions) - 1
        numbers = _NONE if without_gaps else np.searchsorted(positions, np.floor(points / width))
        return cls(width, positions, (numbers,))

    def moments(
        self, points: Floats, weights: Floats, which: int = 0, rows: NDArray[Any] | None = None, n_rows: int = 1
    ) -> Floats:
        """Moments of the boxes under weights of the points, for each row of points: shape (rows, boxes, 16)."""
        rows, shape, first = _NONE if rows is None else rows, (n_rows, len(self.positions)), self.positions[0]
        moments, partial = np.zeros((2, *shape, TERMS))
        count = np.zeros(shape, np.int32)
        add_moments(points, 1 / self.width, first, self.numbers[which], rows, weights, moments, partial, count)
        return moments

    def values(self, points: Floats, polynomials: Floats, which: int = 0, rows: NDArray[Any] | None = None) -> Floats:
        """The polynomials of the boxes at the points, for each point those of its row."""
        rows = _NONE if rows is None else rows
        values = np.empty(len(points))
        evaluate(points, 1 / self.width, self.positions[0], self.numbers[which], rows, polynomials, values)
        return values


_NONE = np.zeros(0, np.int64)


def exact_sum(targets: Floats, sources: Floats, weights: Floats, function: str) -> Floats:
    """Σᵢ qᵢ φ(y − zᵢ) at the targets y, relative to Σᵢ |qᵢ φ(y − zᵢ)| to about 1e-14."""
    act = expansion(function)
    boxes = Boxes.of(act.width, sources, targets)
    moments = boxes.moments(sources, weights)
    polynomials = act.apply(moments, np.ones((1, 1)), boxes, np.ones(moments.shape[:2], bool))
    return boxes.values(targets, polynomials, which=1)
