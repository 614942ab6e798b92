"""The soft-confidence-weighted step, with a full covariance in factors or a diagonal one.

For a pair z = x_t − x with the label y, mean μ and covariance Σ of the ranker, let v = zᵀΣz and m = y·μᵀz. The minimum
of KL(N(μ', Σ') ‖ N(μ, Σ)) + C·max(0, φ√(zᵀΣ'z) − y·μ'ᵀz) has a multiplier α ∈ [0, C] with

    μ' = μ + αyΣz,        Σ'⁻¹ = Σ⁻¹ + (αφ/√u)·zzᵀ,        u = zᵀΣ'z,

and so √u·(√u + αφv) = v. Where C does not bind, φ√u = m + αv gives α²v²ζ + 2αvmψ + m² − φ²v = 0 with ψ = 1 + φ²/2 and
ζ = 1 + φ², whose larger root is α; it is positive if and only if m < φ√v.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import part

# Rows of the factor come in multiples of this many columns, and in groups of this many.
LANES = 4
# A step never shrinks the variance along z by more than this factor, and no variance falls below the smallest one.
_LARGEST_SHRINKAGE = 1e14
SMALLEST_VARIANCE = 1e-200
# Less than the smallest information is none; more than the largest is not kept.
_SMALLEST_INFORMATION = 1e-300
LARGEST_INFORMATION = 1e200


@part()
def multiplier(v: Any, m: Any, phi: Any, penalty: Any) -> Any:
    """α of the step; of the two ways to write the root, the one without cancellation."""
    squared = phi * phi
    if not (v > 0.0 and m < phi * np.sqrt(v)):
        return 0.0
    psi, zeta = 1.0 + squared / 2.0, 1.0 + squared
    root = np.sqrt(m * m * squared * squared / 4.0 + v * squared * zeta)
    if m > 0.0:
        alpha = (phi - m / np.sqrt(v)) * (phi + m / np.sqrt(v)) / (m * psi + root)
    else:
        alpha = (root - m * psi) / (v * zeta)
    return alpha if alpha < penalty else penalty


@part()
def information(v: Any, alpha: Any, phi: Any) -> Any:
    """αφ/√u, what the step adds to the inverse covariance along z: √u = 2√v / (a + √(a² + 4)) with a = αφ√v."""
    a, largest = alpha * phi * np.sqrt(v), np.sqrt(_LARGEST_SHRINKAGE)
    a = a if a < largest else largest
    gain = a * (a + np.sqrt(a * a + 4.0)) / (2.0 * v)
    return gain if gain > _SMALLEST_INFORMATION else _SMALLEST_INFORMATION


@part()
def project(factor: Any, variances: Any, z: Any, projected: Any) -> Any:
    """Set projected = Uᵀz and return v = zᵀΣz, where Σ = U·diag(variances)·Uᵀ and factor = Uᵀ, unit lower triangular.

    All arrays are padded to a multiple of LANES. The sums are written out for that many lanes and two rows at a time:
    so they run on vectors, and in an order that no compiler may change.
    """
    v = 0.0
    for row in range(0, len(z), 2):
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
        a, b = factor[row], factor[row + 1]
        for i in range(0, row + 1, LANES):
            z0, z1, z2, z3 = z[i], z[i + 1], z[i + 2], z[i + 3]
            a0 += a[i] * z0
            a1 += a[i + 1] * z1
            a2 += a[i + 2] * z2
            a3 += a[i + 3] * z3
            b0 += b[i] * z0
            b1 += b[i + 1] * z1
            b2 += b[i + 2] * z2
            b3 += b[i + 3] * z3
        projected[row] = (a0 + a2) + (a1 + a3)
        projected[row + 1] = (b0 + b2) + (b1 + b3)
        v += variances[row] * projected[row] ** 2 + variances[row + 1] * projected[row + 1] ** 2
    return v


@part()
def shrink(factor: Any, variances: Any, projected: Any, noise: Any, product: Any) -> None:
    """Replace Σ by Σ − Σzzᵀ Σ / (v + noise) in its factors, and set product = Σz for the old Σ: Bierman's method.

    Column j of U, with f = Uᵀz, g = variances·f, a₋₁ = noise and aⱼ = aⱼ₋₁ + fⱼgⱼ, in which b starts at zero:

        varianceⱼ ← varianceⱼ·aⱼ₋₁/aⱼ,    Uᵢⱼ ← Uᵢⱼ − bᵢ·fⱼ/aⱼ₋₁,    bᵢ ← bᵢ + (old Uᵢⱼ)·gⱼ.

    The variances stay positive whatever the rounding, so Σ stays positive definite. As the ones and zeros of the
    triangle are stored, a group of columns needs no case of its own; b, which ends up as Σz, is read and written once
    for a group.
    """
    for i in range(len(product)):
        product[i] = 0.0
    total = noise
    for j in range(0, len(variances), LANES):
        f0, f1, f2, f3 = projected[j], projected[j + 1], projected[j + 2], projected[j + 3]
        g0, g1, g2, g3 = variances[j] * f0, variances[j + 1] * f1, variances[j + 2] * f2, variances[j + 3] * f3
        a0 = total
        a1 = a0 + f0 * g0
        a2 = a1 + f1 * g1
        a3 = a2 + f2 * g2
        total = a3 + f3 * g3
        variances[j] *= a0 / a1
        variances[j + 1] *= a1 / a2
        variances[j + 2] *= a2 / a3
        variances[j + 3] *= a3 / total
        for k in range(j, j + LANES):
            variances[k] = variances[k] if variances[k] > SMALLEST_VARIANCE else SMALLEST_VARIANCE
        f0, f1, f2, f3 = f0 / a0, f1 / a1, f2 / a2, f3 / a3
        for i in range(j + LANES):
            b = product[i]
            u0, u1, u2, u3 = factor[j, i], factor[j + 1, i], factor[j + 2, i], factor[j + 3, i]
            factor[j, i] = u0 - b * f0
            b += u0 * g0
            factor[j + 1, i] = u1 - b * f1
            b += u1 * g1
            factor[j + 2, i] = u2 - b * f2
            b += u2 * g2
            factor[j + 3, i] = u3 - b * f3
            product[i] = b + u3 * g3


@part()
def forget_full(
    factor: Any, variances: Any, kept: Any, n_features: Any, time: Any, projected: Any, unused: Any
) -> None:
    """Pull Σ⁻¹ towards its start: kept·Σ⁻¹ + (1 − kept)·I, the second part one or more coordinates at a time.

    Each coordinate has its turn once in 1/(4·(1 − kept)) rows or more often, with what it missed in between.
    """
    for j in range(len(variances)):
        variances[j] /= kept
    turns = 1
    while turns < 4.0 * n_features * (1.0 - kept):
        turns += 1
    noise = turns / ((1.0 - kept) * n_features)
    for turn in range(turns):
        column = (time * turns + turn) % n_features
        for j in range(len(variances)):
            projected[j] = factor[j, column]
        shrink(factor, variances, projected, noise, unused)
