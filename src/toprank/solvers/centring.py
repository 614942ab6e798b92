"""Points of the central path in closed form: all complementarity products of a row equal to μ, for given scores."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from toprank.arrays import Floats
from toprank.formulations.surrogates import Surrogate

# Distance of a threshold from a score, as a part of the score, at which their difference is rounding.
_LOST_DIGITS = 1e-13


def centre_positives(
    surrogate: Surrogate, share: Floats, z: Floats, mu: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """(u, p, room, r) with u p = μ, room · r = μ and z = (ℓ*)'(u / share) + r − p."""
    ones, zeros = np.ones_like(z), np.zeros_like(z)
    if surrogate.is_own_barrier:
        return np.maximum(share * surrogate.derivative(z), 1e-100), zeros, ones, zeros
    pieces = surrogate.pieces
    x = z + pieces.shift
    if pieces.is_parabola:
        width = pieces.width / share
        root = np.sqrt(x * x + 4 * width * mu)
        p = np.where(x > 0, 2 * width * mu / np.maximum(root + x, np.finfo(float).tiny), 0.5 * (root - x))
        return mu / p, p, ones, zeros
    top = share * pieces.max_slope
    u = mu / split(x, mu / top)[0]
    if pieces.is_smooth:
        low, high = zeros, top.copy()
        for _ in range(40):
            above = mu / (top - u) - mu / u + pieces.width * u / share > x
            high, low = np.where(above, u, high), np.where(above, low, u)
            u = 0.5 * (low + high)
    return u, mu / u, top - u, mu / (top - u)


def centre_threshold(
    scores: Floats, caps: Floats | None, k0: float, S: float, mu: float
) -> tuple[float, tuple[Floats, Floats, Floats, Floats]]:
    """ν, and (b, p, room, r) of the threshold rows with products μ and Σb near k₀ S, by Newton's method or Brent's."""
    n = len(scores)
    if caps is None:
        largest = float(scores.max())
        if mu / S < _LOST_DIGITS * abs(
            largest
        ):  # beside the scores ν has no digits left: the same with their differences
            lower, rows = centre_threshold(scores - largest, None, k0, S, mu)
            return largest + lower, rows
        nu = largest + mu / S
        for _ in range(60):
            b = mu / (nu - scores)
            excess = float(b.sum()) - S
            if abs(excess) <= 1e-10 * S:
                break
            nu += excess * mu / float(b @ b)
        return nu, (mu / (nu - scores), nu - scores, np.ones(n), np.zeros(n))
    width = mu / (caps * S)

    def excess_at(level: float) -> float:
        return float((mu / split(scores - level, width)[0]).sum()) - k0 * S

    low, high = float(scores.min()) - 1.0, float(scores.max()) + 1.0
    while excess_at(low) < 0:
        low -= 2 * (high - low)
    while excess_at(high) > 0:
        high += 2 * (high - low)
    nu = float(brentq(excess_at, low, high, xtol=1e-6 * (abs(low) + abs(high)), rtol=1e-6))
    p, r = split(scores - nu, width)
    return nu, (mu / p, p, mu / r, r)


def split(x: Floats, width: Floats) -> tuple[Floats, Floats]:
    """The positive (p, r) with r − p = x and 1/p + 1/r = 1/width, without cancellation."""
    root = np.sqrt(x * x + 4 * width * width)
    small = 4 * width * width / (root + np.abs(x))
    return width + 0.5 * np.where(x > 0, small, root - x), width + 0.5 * np.where(x > 0, root + x, small)
