r"""Lower bounds of the optimum: the dual of a convex formulation.

With dual variables y ≥ 0 of the positives, S = Σy, and p in the domain of the conjugate t* of the threshold,

.. math:: D(y, p) = -\frac{1}{2\alpha} \| X_+^\top y - S\, X^\top p \|^2 - \sum_i a_i\, \ell^*(y_i / a_i) - S\, t^*(p)

is at most the optimum. For the mean of the k largest t* is zero on the capped simplex. For every threshold, p = ∇t(s)
gives t*(p) = p·s − t(s), by Fenchel and Young, so each primal point has a dual one: y = a·ℓ'(t − s⁺), p = ∇t(s).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from toprank.arrays import Floats
from toprank.formulations.surrogates import SlopeSums, Surrogate

_SMALLEST_MULTIPLE = 1e-150
_LARGEST_LOGARITHM = 300.0
# Rounding errors of a product of two rows, of the sums over rows, and of the objective that is compared with the bound.
_ERRORS = 16.0


def rounding_of_square(diagonal: NDArray[Any], r: Floats) -> float:
    """How much ‖Σ rᵢ xᵢ‖² may be off if it is computed from products of rows; `diagonal` holds the rows' own squares.

    Each product is known up to a few units of the last digit of ‖xᵢ‖ ‖xⱼ‖, and the weights r are of both signs: the sum
    may be much smaller than its terms. A lower bound that has this much added to the square is one in spite of it.
    """
    size = float(np.abs(r) @ np.sqrt(np.maximum(diagonal.astype(np.float64), 0.0)))
    return _ERRORS * float(np.finfo(np.float64).eps) * (size * size)  # a power would raise an error beyond the range


def dual_value(
    surrogate: Surrogate,
    share: Floats,
    y: Floats,
    squared_norm: float,
    alpha: float,
    threshold_conjugate: float = 0.0,
    sums: SlopeSums | None = None,
) -> tuple[float, float]:
    """D at the best multiple of y, and that multiple; `squared_norm` is ‖X₊ᵀy − S Xᵀp‖², and `sums` are those of y."""
    total, steepest, square = SlopeSums.of(y, share) if sums is None else sums
    if total <= 0:  # no positive is active
        return 0.0, 0.0
    if not np.isfinite(total + squared_norm):
        return -np.inf, 0.0
    largest = surrogate.max_slope / max(steepest, np.finfo(float).tiny)
    if surrogate.is_piecewise_quadratic:
        rise = total * (surrogate.pieces.shift - threshold_conjugate)
        bend = squared_norm / alpha + surrogate.pieces.width * square
        scale = min(max(rise, 0.0) / bend if bend > 0 else largest, largest)
        return scale * (rise - 0.5 * scale * bend), scale
    slopes = y / share
    conjugate_slope = surrogate.conjugate_along(y, slopes)

    def derivative(logarithm: float) -> float:
        scale = float(np.exp(logarithm))
        return float(-scale * squared_norm / alpha - conjugate_slope(scale) - total * threshold_conjugate)

    # the best multiple may be of any size, as small as alpha
    low, most = np.log(_SMALLEST_MULTIPLE), min(np.log(largest * (1 - 1e-12)), _LARGEST_LOGARITHM)
    high = min(0.0, most)
    while derivative(high) > 0 and high < most:
        high = min(high + 1, most)
    best = low if derivative(low) <= 0 else high if derivative(high) >= 0 else brentq(derivative, low, high, xtol=1e-10)
    scale = float(np.exp(best))
    value = -scale * scale * squared_norm / (2 * alpha) - share @ surrogate.conjugate(scale * slopes)
    return float(value - scale * total * threshold_conjugate), scale
