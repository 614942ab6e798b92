r"""Exact projections onto the domain of the dual: expected linear time.

The distance is :math:`\rho \|\alpha - \alpha^0\|^2 + \|\beta - \beta^0\|^2`; ρ = 1, Euclid's, is the paper's.

The dual variables α of the positives and β of the threshold rows have equal sums, S = Σα = Σβ. Every multiplier below
is the root of a non-increasing piecewise linear function, found by divide and conquer over its break points
(Algorithm 2 of the TopPush paper). The pivots come from a fixed sequence: the same input gives the same output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.compiled import compiled, part
from toprank.formulations.thresholds import top_mean

_MAX_STEPS = 200


def project_balanced(
    alpha0: Floats, beta0: Floats, upper: Floats | None = None, rho: float = 1.0
) -> tuple[Floats, Floats]:
    r"""Project onto :math:`\{0 \le \alpha \le u,\ \beta \ge 0,\ \sum \alpha = \sum \beta\}`; u is infinite by default.

    1. α = clip(α⁰ − γ/ρ, 0, u) and β = (β⁰ + γ)₊ with one multiplier γ (Proposition 2 of the paper).
    2. γ is a root of Σ clip(α⁰ᵢ − γ/ρ, 0, uᵢ) − Σ (β⁰ⱼ + γ)₊, whose break points are ρα⁰, ρ(α⁰ − u) and −β⁰.
    3. Where all ρα⁰ ≤ −β⁰ⱼ the function has a flat piece of roots, and each of them gives α = β = 0.
    """
    corners = np.empty(0) if upper is None else (alpha0 - upper)[np.isfinite(upper)]
    parts = (rho * alpha0, rho * corners, -beta0)
    points = np.concatenate(parts)
    above, below = (
        np.repeat(np.array(side), [len(x) for x in parts]) for side in ((1 / rho, -1 / rho, 0.0), (0.0, 0.0, 1.0))
    )
    gamma = _root(points, above, below, 0.0)
    alpha, beta = np.clip(alpha0 - gamma / rho, 0.0, upper), np.maximum(beta0 + gamma, 0.0)
    inside = np.count_nonzero(alpha if upper is None else (alpha > 0) & (alpha < upper))
    free = inside / rho + np.count_nonzero(beta)
    if free:  # one Newton step, with sums in pairs, against the rounding of the running sums
        gamma += (alpha.sum() - beta.sum()) / free
    return np.clip(alpha0 - gamma / rho, 0.0, upper), np.maximum(beta0 + gamma, 0.0)


def project_capped(
    alpha0: Floats, beta0: Floats, caps: Floats, upper: Floats | None = None, rho: float = 1.0
) -> tuple[Floats, Floats]:
    r"""Project onto :math:`\{0 \le \alpha \le u,\ 0 \le \beta \le c S,\ \sum \beta = S\}` with :math:`S = \sum \alpha`.

    Derivation. For a given S the problem falls apart. Let A(S) and B(S) be half the squared distances of α⁰, times
    ρ, and of β⁰ to the points of sum S. With multipliers λ and μ of the two sums and νⱼ ≥ 0 of the caps,

    - α = clip(α⁰ − λ/ρ, 0, u) and A'(S) = −λ;
    - β = clip(β⁰ − μ, 0, cS), where Σβ = S determines μ, νⱼ = (β⁰ⱼ − μ − cⱼS)₊, and B'(S) = −μ − Σ cⱼνⱼ, because S also
      moves the caps.

    Both are convex in S, and the best S has A' + B' = 0. Take λ as the unknown, so that
    S(λ) = Σ clip(α⁰ − λ/ρ, 0, u) is explicit, and look for the root of

    .. math:: h(\lambda) = \lambda + \mu + \sum_j c_j (\beta^0_j - \mu - c_j S)_+,
              \qquad \mu = \mu(S),\ S = S(\lambda).

    S falls in λ and −B' falls in S, so h is piecewise linear with slopes of at least 1: one root. With C and Q the sums
    of c and c² over the rows at their caps and F the number of rows strictly between, μ' = (C − 1)/F and hence
    B'' = (1 − C)²/F + Q; the slope of h is 1 + B'' · (number of α strictly inside) / ρ.

    1. −B'(S) is largest at S = 0: t(β⁰), the largest p·β⁰ over 0 ≤ p ≤ c, Σp = 1. So the root is between −t(β⁰) and
       ρ max α⁰, and if that is at most −t(β⁰) then S = 0.
    2. Newton's method on h inside this bracket, with bisection where a step did not halve abs(h). On the linear piece
       that holds the root a step is exact. Each step finds μ(S) in expected linear time; the number of steps, about 5,
       does not grow with the number of rows.

    The caps c > 0 have a sum of at least 1, and one of at least 1 never binds; without `upper` u is infinite.
    """
    if caps.min() >= 1:
        return project_balanced(alpha0, beta0, upper, rho)
    low, high = -top_mean(beta0, caps)[0], rho * float(alpha0.max())
    if high <= low:
        return np.zeros_like(alpha0), np.zeros_like(beta0)
    bounds = np.full(len(alpha0), np.inf) if upper is None else upper
    multiplier = _capped_root(alpha0, beta0, caps, bounds, rho, low, high)
    alpha = np.clip(alpha0 - multiplier / rho, 0.0, bounds)
    limits = caps * alpha.sum()
    mu = _shift(beta0, limits, alpha.sum())
    beta = np.clip(beta0 - mu, 0.0, limits)
    free = np.count_nonzero((beta > 0) & (beta < limits))
    if free:  # one Newton step, with sums in pairs, against the rounding of the running sums
        beta = np.clip(beta0 - mu - (alpha.sum() - beta.sum()) / free, 0.0, limits)
    return alpha, beta


@compiled()
def _root(points: Any, above: Any, below: Any, total: float) -> float:
    """Root γ of a non-increasing ρ(γ) = total + Σₖ wₖ(γ)·(xₖ − γ); overwrites its arrays.

    wₖ is `above[k]` where the break point xₖ is above γ and `below[k]` where it is below.

    1. Take as pivot u the median of three break points that are still open.
    2. With the settled ones in two running numbers, s = Σ w·x and n = Σ w, ρ(u) = total + s' − n'·u.
    3. If ρ(u) < 0 the root is below u, and the points from u upwards are settled; else those from u downwards.
    4. When none is open, γ = (total + s)/n; on a flat piece, n = 0, an end of the bracket.
    """
    size = len(points)
    slope, offset = 0.0, total
    low, high = -np.inf, np.inf
    state = 20140612
    while size > 0:
        state = state * 48271 % 2147483647
        first, second, third = points[state % size], points[state // 7 % size], points[state // 49 % size]
        pivot = max(min(first, second), min(max(first, second), third))
        trial_slope, trial_offset = slope, offset
        for k in range(size):  # comparisons as numbers: a branch would be mispredicted half of the time
            weight = above[k] * (points[k] > pivot) + below[k] * (points[k] < pivot)
            trial_slope += weight
            trial_offset += weight * points[k]
        root_is_below = trial_offset < trial_slope * pivot
        low, high = (low, pivot) if root_is_below else (pivot, high)
        kept = 0
        for k in range(size):
            point, is_open = points[k], points[k] < pivot if root_is_below else points[k] > pivot
            weight = (above[k] if root_is_below else below[k]) * (not is_open)
            slope += weight
            offset += weight * point
            points[kept], above[kept], below[kept] = point, above[k], below[k]
            kept += is_open
        size = kept
    if slope == 0:
        return low if low > -np.inf else high
    return min(max(offset / slope, low), high)


@compiled(allocates=True)
def _shift(values: Any, limits: Any, total: float) -> float:
    """The μ with Σ clip(values − μ, 0, limits) = total > 0; limits of at least the total cannot bind."""
    points, above = np.empty(2 * len(values)), np.ones(2 * len(values))
    size = 0
    for j in range(len(values)):
        points[size], above[size] = values[j], 1
        size += 1
        if limits[j] < total:
            points[size], above[size] = values[j] - limits[j], -1
            size += 1
    return _root(points[:size], above[:size], np.zeros(size), -total)


@part(allocates=True)
def _capped_derivative(
    alpha0: Any, beta0: Any, caps: Any, upper: Any, rho: float, multiplier: float
) -> tuple[float, float, float]:
    """The function h, its slope and μ at λ = multiplier; where S = 0, which is above the root, h is infinite."""
    total, free_alphas = 0.0, 0
    for i in range(len(alpha0)):
        alpha = min(max(alpha0[i] - multiplier / rho, 0.0), upper[i])
        total += alpha
        free_alphas += 0.0 < alpha < upper[i]
    if total <= 0.0:
        return np.inf, 1.0, np.inf
    mu = _shift(beta0, caps * total, total)
    excess, capped, capped_squares, free_betas = 0.0, 0.0, 0.0, 0
    for j in range(len(beta0)):
        room = mu + caps[j] * total - beta0[j]
        if room <= 0.0:
            excess -= caps[j] * room
            capped += caps[j]
            capped_squares += caps[j] ** 2
        elif beta0[j] > mu:
            free_betas += 1
    bend = capped_squares + ((1 - capped) ** 2 / free_betas if free_betas else 0.0)
    return multiplier + mu + excess, 1 + free_alphas * bend / rho, mu


@compiled(allocates=True)
def _capped_root(alpha0: Any, beta0: Any, caps: Any, upper: Any, rho: float, low: float, high: float) -> float:
    """Root of h between low and high: Newton's method, with bisection where it did not halve abs(h)."""
    precision = 2.3e-16 * max(abs(low), abs(high))
    multiplier = 0.0 if low < 0.0 < high else 0.5 * (low + high)
    previous = np.inf
    for _ in range(_MAX_STEPS):
        value, slope, mu = _capped_derivative(alpha0, beta0, caps, upper, rho, multiplier)
        if value > 0:
            high = multiplier
        else:  # μ falls in S and so rises in λ: the rows below μ stay at zero from here on
            low, beta0, caps = multiplier, beta0[beta0 > mu], caps[beta0 > mu]
        following = multiplier - value / slope
        if abs(following - multiplier) <= precision or high - low <= precision:
            break
        newton = low < following < high and abs(value) <= 0.5 * previous
        multiplier, previous = following if newton else 0.5 * (low + high), abs(value)
    return multiplier
