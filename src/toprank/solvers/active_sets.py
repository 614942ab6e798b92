r"""A quadratic program by guesses of its active set, each of which is improved by the solution of the last one.

.. math:: \min_z\; \tfrac12 z^\top H z - q^\top z, \qquad z \ge 0, \quad b \le c \sum b,

with z = (y, b); without caps c there is no second bound. A z is free, zero, or, if it is a b, at its cap. Steps:

1. The free ones by one factor. Those at a cap are c S with S = Σb, so they go along as one row, and 1 − Σc of S, over
   those at their cap, is left to the free b.
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

# Guesses after which there is no hope; guesses in a row that may have no fewer changes, and changes that are a handful.
_GUESSES, _PATIENCE, _HANDFUL = 40, 2, 20
# Share of the largest slope at zero below which a slope is rounding, and mass below which no free b is left.
_NO_SLOPE, _NO_MASS = 1e-10, 1e-9
_ZERO, _FREE, _AT_CAP = -1, 0, 1


def solve_by_active_sets(H: Floats, q: Floats, caps: Floats | None, n_doubtful: int, start: Floats) -> Floats | None:
    """The optimum z, or None where the guesses do not settle; the first one is the active set of `start`."""
    of_b = slice(n_doubtful, None)
    most = np.zeros(len(q))  # caps, with room for y
    if caps is not None:
        most[of_b] = caps
    state = np.where(start > 0, _FREE, _ZERO)
    state[of_b][_reaches(start[of_b], caps, -1e-12)] = _AT_CAP
    fewest, patience = len(q) + 1, _PATIENCE
    for _ in range(_GUESSES):
        # 1. The free ones.
        z = _solution(H, q, most, state, n_doubtful)
        if z is None:
            return None
        # 2. The slopes.
        slopes, at_cap = H @ z - q, state == _AT_CAP
        no_slope, rest = _NO_SLOPE * float(np.abs(q).max()), 1.0 - float(most[at_cap].sum())
        slopes[of_b] += float(most[at_cap] @ slopes[at_cap]) / rest
        # 3. The next guess.
        following = np.where((state != _FREE) & (state * slopes > no_slope), _FREE, state)
        following[(state == _FREE) & (z < 0)] = _ZERO
        if caps is not None:
            following[_within_mass(z, most, following, n_doubtful)] = _AT_CAP
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


def _solution(H: Floats, q: Floats, most: Floats, state: Rows, n_doubtful: int) -> Floats | None:
    """The best z of a guess, whatever its signs; None if there is no such z."""
    free, at_cap = np.flatnonzero(state == _FREE), np.flatnonzero(state == _AT_CAP)
    of_caps, system, right = most[at_cap], H[np.ix_(free, free)], q[free]
    rest = 1.0 - float(of_caps.sum())
    if rest <= _NO_MASS or not len(free):
        return None
    per_free = (free >= n_doubtful) / rest  # what a free one adds to S
    if len(at_cap):
        bound = of_caps @ H[at_cap]
        across = bound[free] + 0.5 * float(bound[at_cap] @ of_caps) * per_free
        blas.dsyr2(1.0, per_free, across, a=system.T, lower=1, overwrite_a=1)
        right = right + per_free * float(of_caps @ q[at_cap])
    factor, failed = lapack.dpotrf(system.T, lower=1, clean=0, overwrite_a=1)  # by columns, so that nothing is copied
    if failed:
        return None
    z = np.zeros(len(q))
    z[free] = lapack.dpotrs(factor, right, lower=1)[0]
    z[at_cap] = of_caps * float(per_free @ z[free])
    return z
