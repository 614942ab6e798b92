r"""Compiled steps of the pair method: ascent of the dual by two multipliers at a time.

Variables: u of the positives and b of the threshold rows, Σu = Σb = S, with w = (Σ u x − Σ b x) / α. The slopes are

.. math:: g_i = \text{shift} - s_i - \text{width}\, u_i / a_i, \qquad h_j = s_j + e - d_j\, b_j / \delta,

where e, d and δ belong to the surrogate quantile; e and d are zero for a mean of the largest scores.

Bounds: 0 ≤ u ≤ top, and 0 ≤ b ≤ c S for a mean of the largest scores. The latter move with S, so pairs alone can be
stuck at a corner that is not optimal. The rows at their bound therefore move along with S, as one row g = Σ c x of mass
Σ c.

A move has a variable that raises the score of its row, a u going up or a b going down, and one that lowers it, a u
going down or a b going up. A u and a b together change S: the bound rows go along, and the b takes the rest of the
mass, or there is no b where the bound rows have all of it.

Steps of a move, and it ends where there is no slope:

1. The slopes of all variables, and the extremes among those that may move.
2. The largest slope among all moves.
3. The variable that rises is kept; its partner is the one of the largest gain to second order within the bounds.
4. The move. Then δ takes its best value, Σ d b² / 2 = τ δ²: for fixed δ the dual is bounded from below by the quadratic
   that the move maximises, so every move ascends.

Products of rows come from `Products.rows` (those with a `place`); where one is missing the call ends and says which.

Functions of many steps are put into their caller before it is compiled: to compile them apart takes half as long again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import compiled
from toprank.solvers._pair_choice import (
    NO_MASS,
    Extremes,
    extremes_of_positives,
    extremes_of_thresholds,
    partner_of_positive,
    partner_of_threshold,
    steepest,
)
from toprank.solvers._pair_state import BOUND_NORM, COST, DELTA, MASS, OPTIMAL, ROW_MISSING, STEPS_DONE, TOTAL


@compiled(nogil=True, error_model="numpy")
def ascend(products: Any, positives: Any, thresholds: Any, state: Any, steps: int) -> tuple[int, int, int]:
    """Make up to `steps` moves; returns why it ended, the missing row, and the number of moves made."""
    scalars, smooth = state.scalars, thresholds.d[0] > 0
    gains = np.empty(max(len(positives.u), len(thresholds.b)))
    for step in range(steps):
        rest = 1.0 - scalars[MASS]
        alone = rest <= NO_MASS
        # 1. Slopes and their extremes.
        high_u, low_u = extremes_of_positives(positives, state)
        high_b, low_b, low_bound, bound_slope = extremes_of_thresholds(thresholds, state)
        extremes = Extremes(high_u, low_u, high_b, low_b, low_bound, bound_slope)
        # 2. The largest slope.
        pair = steepest(positives, thresholds, extremes, rest)
        if pair.rising < 0 and pair.sinking < 0:
            return OPTIMAL, -1, step
        # 3. The partner of the largest gain.
        if pair.rising >= 0:
            x = positives.rows[pair.rising] if pair.rising_is_u else thresholds.rows[pair.rising]
            if products.place[x] < 0:
                return ROW_MISSING, x, step
            if pair.rising_is_u:
                pair = partner_of_positive(
                    pair.rising, gains, products, positives, thresholds, state, bound_slope, rest
                )
            else:
                pair = partner_of_threshold(
                    pair.rising, gains, products, positives, thresholds, state, bound_slope, rest
                )
            if pair.sinking < 0 and not (pair.rising_is_u and alone):
                return OPTIMAL, -1, step
        # 4. The move.
        missing = _move(pair, products, positives, thresholds, state, bound_slope)
        if missing >= 0:
            return ROW_MISSING, missing, step
        if smooth:
            scalars[DELTA] = np.sqrt(scalars[COST] / thresholds.tau)
    return STEPS_DONE, -1, steps


@compiled(nogil=True, error_model="numpy", inline="always")
def _move(pair: Any, products: Any, positives: Any, thresholds: Any, state: Any, bound_slope: float) -> int:
    """Step 4; returns a row that is missing, or −1."""
    rising, sinking, rising_is_u, sinking_is_u = pair
    if rising >= 0:
        x = positives.rows[rising] if rising_is_u else thresholds.rows[rising]
        if products.place[x] < 0:
            return int(x)
    if sinking >= 0:
        y = positives.rows[sinking] if sinking_is_u else thresholds.rows[sinking]
        if products.place[y] < 0:
            return int(y)
    if rising >= 0 and sinking >= 0 and rising_is_u and sinking_is_u:
        _move_positives(rising, sinking, products, positives, state)
        return -1
    if rising >= 0 and sinking >= 0 and not rising_is_u and not sinking_is_u:
        _move_thresholds(sinking, rising, products, thresholds, state)
        return -1
    i, j = (rising, sinking) if rising_is_u else (sinking, rising)
    return _move_total(i, j, 1.0 if rising_is_u else -1.0, products, positives, thresholds, state, bound_slope)


@compiled(nogil=True, error_model="numpy", inline="always")
def _move_positives(to: int, giver: int, products: Any, positives: Any, state: Any) -> None:
    """One u up, another one down."""
    u, g, top, s, diagonal, scale = positives.u, positives.g, positives.top, state.s, products.diagonal, products.scale
    x, y = positives.rows[to], positives.rows[giver]
    to_row, giver_row = products.rows[products.place[x]], products.rows[products.place[y]]
    bend = (diagonal[x] + diagonal[y] - 2 * to_row[y]) * scale + positives.curvature[to] + positives.curvature[giver]
    change = (g[to] - g[giver]) / max(bend, 1e-14 * diagonal[x] * scale + 1e-300)
    change = min(change, top[to] - u[to], u[giver])
    u[to] = top[to] if change == top[to] - u[to] else u[to] + change
    u[giver] = 0.0 if change == u[giver] else u[giver] - change
    for z in range(len(s)):
        s[z] += change * scale * (to_row[z] - giver_row[z])


@compiled(nogil=True, error_model="numpy")
def _move_thresholds(to: int, giver: int, products: Any, thresholds: Any, state: Any) -> None:
    """One b up, another one down, which may have been bound."""
    h, b, d, caps, bound = thresholds.h, thresholds.b, thresholds.d, thresholds.caps, thresholds.bound
    s, scalars, diagonal, scale = state.s, state.scalars, products.diagonal, products.scale
    smooth = d[0] > 0
    x, y = thresholds.rows[to], thresholds.rows[giver]
    to_row, giver_row = products.rows[products.place[x]], products.rows[products.place[y]]
    bend = (diagonal[x] + diagonal[y] - 2 * to_row[y]) * scale
    if smooth:
        bend += (d[to] + d[giver]) / scalars[DELTA]
    room = caps[to] * scalars[TOTAL] - b[to]
    change = (h[to] - h[giver]) / max(bend, 1e-14 * diagonal[x] * scale + 1e-300)
    change = min(change, b[giver], max(room, 0.0))
    if bound[giver]:
        _bind(giver, -1.0, products, thresholds, state)
    if smooth:
        scalars[COST] += change * (d[to] * (b[to] + 0.5 * change) - d[giver] * (b[giver] - 0.5 * change))
    b[giver] = 0.0 if change == b[giver] else b[giver] - change
    b[to] += change
    if change >= room:
        b[to] = caps[to] * scalars[TOTAL]
        _bind(to, 1.0, products, thresholds, state)
    change *= scale
    for z in range(len(s)):
        s[z] += change * (giver_row[z] - to_row[z])


@compiled(nogil=True, error_model="numpy")
def _bind(j: int, sign: float, products: Any, thresholds: Any, state: Any) -> None:
    """Put b_j among the bound rows (sign 1) or take it out (sign −1)."""
    scalars, bound_row, x = state.scalars, state.bound_row, thresholds.rows[j]
    row, c = products.rows[products.place[x]], sign * thresholds.caps[j]
    thresholds.bound[j] = sign > 0
    scalars[MASS] = max(scalars[MASS] + c, 0.0)
    scalars[BOUND_NORM] += 2 * c * bound_row[x] + c * c * products.diagonal[x]
    for z in range(len(bound_row)):
        bound_row[z] += c * row[z]


@compiled(nogil=True, error_model="numpy")
def _move_total(
    i: int, j: int, sign: float, products: Any, positives: Any, thresholds: Any, state: Any, bound_slope: float
) -> int:
    """u_i up (sign 1) or down, and S with it: the bound b, and b_j unless it is −1; returns a missing row, or −1."""
    u, b, d, caps, scalars = positives.u, thresholds.b, thresholds.d, thresholds.caps, state.scalars
    smooth, rest = d[0] > 0, 1.0 - scalars[MASS]
    change = _best_change_of_total(i, j, products, positives, thresholds, state, bound_slope)
    change, reaches_bound = _within_total_bounds(i, j, sign, change, positives, thresholds, state)
    if sign < 0 and reaches_bound >= 0 and products.place[thresholds.rows[reaches_bound]] < 0:
        return int(thresholds.rows[reaches_bound])
    if j >= 0 and smooth:
        scalars[COST] += sign * change * d[j] * (b[j] + 0.5 * sign * change)
    if sign > 0:
        u[i] = positives.top[i] if change == positives.top[i] - u[i] else u[i] + change
        if j >= 0:
            b[j] += rest * change
    else:
        if j >= 0:
            b[j] = 0.0 if change == b[j] / rest else b[j] - rest * change
        u[i] = 0.0 if change == u[i] else u[i] - change
    scalars[TOTAL] += sign * change
    for k in range(len(b)):
        if thresholds.bound[k]:
            b[k] = caps[k] * scalars[TOTAL]
    _rescore_total(i, j, sign, change, products, positives, thresholds, state)
    if reaches_bound >= 0:
        b[reaches_bound] = caps[reaches_bound] * scalars[TOTAL]
        _bind(reaches_bound, 1.0, products, thresholds, state)
    return -1


@compiled(nogil=True, error_model="numpy", inline="always")
def _best_change_of_total(
    i: int, j: int, products: Any, positives: Any, thresholds: Any, state: Any, bound_slope: float
) -> float:
    """The best size of a change of u_i and S, without bounds."""
    scalars, bound_row, diagonal, scale = state.scalars, state.bound_row, products.diagonal, products.scale
    x, rest = positives.rows[i], 1.0 - scalars[MASS]
    slope = positives.g[i] + bound_slope + (rest * thresholds.h[j] if j >= 0 else 0.0)
    bend = diagonal[x] + scalars[BOUND_NORM] - 2 * bound_row[x]
    if j >= 0:
        y, x_row = thresholds.rows[j], products.rows[products.place[x]]
        bend += rest * rest * diagonal[y] - 2 * rest * x_row[y] + 2 * rest * bound_row[y]
    bend = bend * scale + positives.curvature[i]
    if j >= 0 and thresholds.d[0] > 0:
        bend += thresholds.d[j] / scalars[DELTA]
    return float(abs(slope) / max(bend, 1e-14 * diagonal[x] * scale + 1e-300))


@compiled(nogil=True, error_model="numpy", inline="always")
def _within_total_bounds(
    i: int, j: int, sign: float, change: float, positives: Any, thresholds: Any, state: Any
) -> tuple[float, int]:
    """The change of S as far as the bounds allow, and the b that reaches its bound then, or −1."""
    u, b, caps, S, rest = positives.u, thresholds.b, thresholds.caps, state.scalars[TOTAL], 1.0 - state.scalars[MASS]
    reaches_bound = -1
    if sign > 0:
        change = min(change, positives.top[i] - u[i])
        if j >= 0:
            growth = rest - caps[j]
            if growth > 0 and (caps[j] * S - b[j]) / growth < change:
                change = max((caps[j] * S - b[j]) / growth, 0.0)
                reaches_bound = j
        return change, reaches_bound
    change = min(change, u[i])
    if j >= 0:
        change = min(change, b[j] / rest)
    for k in range(len(b)):
        if thresholds.bound[k] or b[k] <= 0:
            continue
        limit = S - b[k] / caps[k]
        if k == j:
            if caps[j] <= rest:
                continue
            limit = (caps[j] * S - b[j]) / (caps[j] - rest)
        if limit < change:
            change, reaches_bound = max(limit, 0.0), k
    return change, reaches_bound


@compiled(nogil=True, error_model="numpy", inline="always")
def _rescore_total(
    i: int, j: int, sign: float, change: float, products: Any, positives: Any, thresholds: Any, state: Any
) -> None:
    """The scores after a change of u_i and S."""
    s, bound_row, rest = state.s, state.bound_row, 1.0 - state.scalars[MASS]
    x_row = products.rows[products.place[positives.rows[i]]]
    change *= sign * products.scale
    if j >= 0:
        y_row = products.rows[products.place[thresholds.rows[j]]]
        for z in range(len(s)):
            s[z] += change * (x_row[z] - bound_row[z] - rest * y_row[z])
    else:
        for z in range(len(s)):
            s[z] += change * (x_row[z] - bound_row[z])
