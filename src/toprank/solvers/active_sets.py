r"""A quadratic program by guesses of its active set, each of which is improved by the solution of the last one.

.. math:: \min_z\; \tfrac12 z^\top H z - q^\top z, \qquad z \ge 0, \quad b \le c \sum b,

with z = (y, b); without caps c there is no second bound. A z is free, zero, or, if it is a b, at its cap. Steps:

1. The free ones by one factor, which serves the next guesses too where these differ in few rows. Those at a cap are
   c S with S = Σb, so they go along as one row, and 1 − Σc of S, over those at their cap, is left to the free b.
2. The slopes g = H z − q. They are zero for a free y, and the same θ for every free b, where θ (1 − Σc) = −Σ c g over
   those at their cap.
3. A free one below zero becomes zero, one above its cap is put there. A zero one of a slope below θ (below 0 for y)
   becomes free, and so does one at its cap of a slope above θ. Where nothing changes, z is the optimum.

It is the semismooth Newton method for the optimality conditions. From a point near the optimum it takes a few steps,
where an interior-point method takes ten however near it starts; and it is exact. Nothing forces it to end: a handful of
rows that are alike may change in turn for ever. So where several guesses in a row have no fewer changes than one
before, only the last of the changes is made (Murty's rule), and where there are many of them there is no hope.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas, lapack

from toprank.arrays import Floats, Mask, Rows
from toprank.matrices._gather import gather

# Guesses after which there is no hope; guesses in a row that may have no fewer changes, and changes that are a handful.
_GUESSES, _PATIENCE, _HANDFUL = 22, 2, 20
# Share of the largest slope at zero below which a slope is rounding, and mass below which no free b is left.
_NO_SLOPE, _NO_MASS = 1e-10, 1e-9
# Share of the largest slope at zero up to which the best z of an active set is known, and share of the rows of a system
# up to which others are bordered.
_STATIONARY, _BORDER = 1e-4, 0.1
_ZERO, _FREE, _AT_CAP = -1, 0, 1


def solve_by_active_sets(H: Floats, q: Floats, caps: Floats | None, n_doubtful: int, start: Floats) -> Floats | None:
    """The optimum z, or None where the guesses do not settle; the first one is the active set of `start`.

    Where `start` is the best z of its active set, as after a program with fewer rows, the first guess is the next one.
    """
    of_b, systems = slice(n_doubtful, None), _Systems(H)
    most = np.zeros(len(q))  # caps, with room for y
    if caps is not None:
        most[of_b] = caps
    state = np.where(start > 0, _FREE, _ZERO)
    state[of_b][_reaches(start[of_b], caps, -1e-12)] = _AT_CAP
    slopes, largest = _slopes(H, q, start, most, state, n_doubtful), float(np.abs(q).max())
    if np.abs(slopes[state == _FREE]).max(initial=0.0) <= _STATIONARY * largest:
        state = _next_guess(start, slopes, state, most if caps is not None else None, n_doubtful, _STATIONARY * largest)
    fewest, patience = len(q) + 1, _PATIENCE
    for _ in range(_GUESSES):
        # 1. The free ones.
        z = _solution(systems, q, most, state, n_doubtful)
        if z is None:
            return None
        # 2. The slopes.
        slopes = _slopes(H, q, z, most, state, n_doubtful)
        # 3. The next guess.
        following = _next_guess(z, slopes, state, most if caps is not None else None, n_doubtful, _NO_SLOPE * largest)
        changed = np.flatnonzero(following != state)
        if not len(changed):
            return z
        fewest, patience = (len(changed), _PATIENCE) if len(changed) < fewest else (fewest, patience - 1)
        if patience >= 0:
            state = following
        elif fewest <= _HANDFUL:
            state[changed[-1]] = following[changed[-1]]
        else:
            return None
    return None


def _slopes(H: Floats, q: Floats, z: Floats, most: Floats, state: Rows, n_doubtful: int) -> Floats:
    """The slopes g, those of b less θ."""
    slopes, at_cap = H @ z - q, state == _AT_CAP
    rest = max(1.0 - float(most[at_cap].sum()), _NO_MASS)
    slopes[n_doubtful:] += float(most[at_cap] @ slopes[at_cap]) / rest
    return slopes


def _next_guess(z: Floats, slopes: Floats, state: Rows, most: Floats | None, n_doubtful: int, no_slope: float) -> Rows:
    following = np.where((state != _FREE) & (state * slopes > no_slope), _FREE, state)
    following[(state == _FREE) & (z < 0)] = _ZERO
    if most is not None:
        following[_within_mass(z, most, following, n_doubtful)] = _AT_CAP
    return following


def _reaches(b: Floats, caps: Floats | None, margin: float) -> Mask:
    """Which positive b are at their cap, or above it by more than a share."""
    if caps is None:
        return np.zeros(len(b), dtype=bool)
    return np.asarray((b > 0) & (b >= caps * ((1 + margin) * float(b.sum()))))


def _within_mass(z: Floats, most: Floats, state: Rows, n_doubtful: int) -> Rows:
    """The free b above their cap, those furthest above it as long as some of S is left to others."""
    above = n_doubtful + np.flatnonzero(
        (state[n_doubtful:] == _FREE) & _reaches(z[n_doubtful:], most[n_doubtful:], 1e-12)
    )
    above = above[np.argsort(-z[above] / most[above], kind="stable")]
    left = 1.0 - float(most[state == _AT_CAP].sum()) - np.cumsum(most[above])
    return np.asarray(above[left > _NO_MASS])


def _solution(systems: _Systems, q: Floats, most: Floats, state: Rows, n_doubtful: int) -> Floats | None:
    """The best z of a guess, whatever its signs; None if there is no such z."""
    free, at_cap = np.flatnonzero(state == _FREE), np.flatnonzero(state == _AT_CAP)
    of_caps, right, across = most[at_cap], q[free], None
    rest = 1.0 - float(of_caps.sum())
    if rest <= _NO_MASS or not len(free):
        return None
    per_free = (free >= n_doubtful) / rest  # what a free one adds to S
    if len(at_cap):
        bound = of_caps @ systems.H[at_cap]
        across = bound[free] + 0.5 * float(bound[at_cap] @ of_caps) * per_free
        right = right + per_free * float(of_caps @ q[at_cap])
    found = systems.solve(free, right, per_free, across)
    if found is None:
        return None
    z = np.zeros(len(q))
    z[free] = found
    z[at_cap] = of_caps * float(per_free @ found)
    return z


class _Systems:
    r"""Systems of some rows of H, one after the other: by the factor of an earlier one, bordered where they differ.

    For rows that are new and for rows that are gone,

    .. math:: \begin{pmatrix} H_{00} & V \\ V^\top & C \end{pmatrix} \begin{pmatrix} x \\ t \end{pmatrix} = r

    has the columns of the new ones, and unit columns of the gone ones, whose t make their x zero.
    """

    def __init__(self, H: Floats) -> None:
        self.H, self._rows, self._factor = H, np.zeros(0, np.intp), np.zeros((0, 0))

    def solve(self, rows: Rows, right: Floats, per_row: Floats, across: Floats | None) -> Floats | None:
        """The x of (H + p aᵀ + a pᵀ) x = right with p = `per_row` and a = `across`, if it is given; None if none is."""
        is_wanted = np.zeros(len(self.H), dtype=bool)
        is_wanted[rows] = True
        gone = np.flatnonzero(~is_wanted[self._rows])
        is_wanted[self._rows] = False
        new = np.flatnonzero(is_wanted)
        if not len(self._rows) or len(new) + len(gone) > _BORDER * len(rows):
            some = np.empty((len(rows), len(rows)))
            gather(self.H, rows, rows, 1.0, some)
            self._factor, failed = lapack.dpotrf(some.T, lower=1, clean=0, overwrite_a=1)
            if failed:
                self._rows = rows[:0]
                return None
            self._rows, new, gone = rows, rows[:0], rows[:0]
        # Vectors have a place for every row of H, so that rows are taken by their numbers.
        of_caps, wide = np.zeros((2 if across is not None else 0, len(self.H))), np.zeros(len(self.H))
        if across is not None:
            of_caps[:, rows] = per_row, across
        wide[rows] = right
        border = _Border(self.H, self._factor, self._rows, new, gone, of_caps)
        found = border.solve(wide)
        if found is None or not border.size:
            return None if found is None else found[rows]
        # What is lost where rows that are nearly alike are gone or new.
        product = self.H @ found
        for one, other in zip(of_caps, of_caps[::-1], strict=True):
            product += one * float(other @ found)
        left = np.zeros(len(self.H))
        left[rows] = wide[rows] - product[rows]
        more = border.solve(left)
        return None if more is None else found[rows] + more[rows]


class _Border:
    """What is bordered, and its part of the solution; `of_caps` are p and a, or nothing."""

    def __init__(self, H: Floats, factor: Floats, rows: Rows, new: Rows, gone: Rows, of_caps: Floats) -> None:
        self._factor, self._rows, self._new, self._gone = factor, rows, new, rows[gone]
        n_new, n_gone, n_caps = len(new), len(gone), len(of_caps)
        self.size = n_new + n_gone + n_caps
        columns, corner = np.zeros((len(rows), self.size), order="F"), np.zeros((self.size, self.size))
        columns[:, :n_new], corner[:n_new, :n_new] = H[new].take(rows, axis=1).T, H[np.ix_(new, new)]
        columns[gone, n_new + np.arange(n_gone)] = 1.0
        if n_caps:
            columns[:, -2:] = of_caps[:, rows].T
            corner[:n_new, -2:], corner[-2:, :n_new] = of_caps[:, new].T, of_caps[:, new]
            corner[-1, -2] = corner[-2, -1] = -1.0
        if self.size:
            self._halves = blas.dtrsm(1.0, factor, columns, lower=1, overwrite_b=1)
            self._corner = corner - self._halves.T @ self._halves

    def solve(self, right: Floats) -> Floats | None:
        """The x of a right-hand side; both have a place for every row."""
        found, half = np.zeros(len(right)), blas.dtrsv(self._factor, right[self._rows], lower=1)
        if self.size:
            last = -(half @ self._halves)
            last[: len(self._new)] += right[self._new]
            try:
                last = np.linalg.solve(self._corner, last)
            except np.linalg.LinAlgError:
                return None
            half -= self._halves @ last
            found[self._new] = last[: len(self._new)]
        found[self._rows] = blas.dtrsv(self._factor, half, lower=1, trans=1)
        found[self._gone] = 0.0
        return found
