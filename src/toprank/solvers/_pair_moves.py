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

Functions get the arrays that they need one by one, since tuples of arrays take the compiler long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import compiled, part
from toprank.solvers._pair_choice import (
    NO_MASS,
    Candidates,
    extremes_of_positives,
    extremes_of_thresholds,
    partner_of,
    steepest,
)
from toprank.solvers._pair_state import BOUND_NORM, COST, DELTA, MASS, OPTIMAL, ROW_MISSING, STEPS_DONE, TOTAL


@compiled(nogil=True)
def ascend(products: Any, positives: Any, thresholds: Any, state: Any, gains: Any, steps: int) -> tuple[int, int, int]:
    """Make up to `steps` moves; returns why it ended, the missing row, and the number of moves made.

    `gains` is room for those of the partners, as many as there are positives or threshold rows, and a view of it as
    integers.
    """
    rows, place, diagonal, scale = products
    rows_u, squares_u, curvature, top, shift, u, g, g_bits = positives
    rows_b, squares_b, caps, d, _, tau, b, bound, h, _, room = thresholds
    s, bound_row, scalars = state
    smooth, has_bound, per_delta = d[0] > 0, caps[0] < np.inf, 0.0
    of_u = Candidates(g, rows_u, squares_u, curvature, 1.0, u)
    for step in range(steps):
        rest = 1.0 - scalars[MASS]
        alone = rest <= NO_MASS
        if smooth:
            per_delta = 1.0 / scalars[DELTA]
        # 1. Slopes and their extremes.
        high_u, low_u = extremes_of_positives(g, g_bits, u, top, curvature, shift, s, rows_u)
        high_b, low_b, low_bound, bound_slope = extremes_of_thresholds(thresholds, s, per_delta, scalars[TOTAL])
        # 2. The largest slope.
        rising, sinking, rising_is_u, sinking_is_u = steepest(
            g, h, high_u, low_u, high_b, low_b, low_bound, bound_slope, rest
        )
        if rising < 0 and sinking < 0:
            return OPTIMAL, -1, step
        x = y = -1
        # 3. The partner of the largest gain.
        if rising >= 0:
            x = rows_u[rising] if rising_is_u else rows_b[rising]
            if place[x] < 0:
                return ROW_MISSING, x, step
            of_b = Candidates(h, rows_b, squares_b, d, per_delta, room)
            limit, may_move_S = (top[rising] - u[rising], True) if rising_is_u else (b[rising], not bound[rising])
            own, others = (of_u, of_b) if rising_is_u else (of_b, of_u)
            sinking, sinking_is_u = partner_of(
                rising_is_u, rising, x, limit, bound_slope, rest, may_move_S, scalars[BOUND_NORM],
                own, others, rows[place[x]], scale, bound_row, has_bound, gains[0], gains[1],
            )  # fmt: skip
            if sinking < 0 and not (rising_is_u and alone):
                return OPTIMAL, -1, step
        if sinking >= 0:
            y = rows_u[sinking] if sinking_is_u else rows_b[sinking]
            if place[y] < 0:
                return ROW_MISSING, y, step
        # 4. The move.
        if rising >= 0 and sinking >= 0 and rising_is_u == sinking_is_u:
            row_x, row_y = rows[place[x]], rows[place[y]]
            if rising_is_u:
                bend = (diagonal[x] + diagonal[y] - 2 * row_x[y]) * scale
                guard = 1e-14 * diagonal[x] * scale + 1e-300
                change = _move_positives(rising, sinking, bend, guard, u, g, top, curvature)
            else:
                bend = (diagonal[x] + diagonal[y] - 2 * row_y[x]) * scale
                guard = 1e-14 * diagonal[y] * scale + 1e-300
                was_bound = bound[rising]
                change = _move_thresholds(sinking, rising, bend, guard, h, b, d, caps, bound, scalars)
                if was_bound:
                    _bind(x, -caps[rising], row_x, diagonal, scalars, bound_row)
                if bound[sinking]:
                    _bind(y, caps[sinking], row_y, diagonal, scalars, bound_row)
            _shift(s, change * scale, row_x, row_y)
        else:
            sign = 1.0 if rising_is_u else -1.0
            i, of_i = (rising, x) if rising_is_u else (sinking, y)
            j, of_j = (sinking, y) if rising_is_u else (rising, x)
            row_i, slope = rows[place[of_i]], g[i] + bound_slope + (rest * h[j] if j >= 0 else 0.0)
            bend_of_quantile = d[j] / scalars[DELTA] if j >= 0 and smooth else 0.0
            bend = _bend_of_total(of_i, of_j, rest, row_i, diagonal, bound_row, scalars[BOUND_NORM], scale)
            bend = bend + curvature[i] + bend_of_quantile
            guard = 1e-14 * diagonal[of_i] * scale + 1e-300
            change = abs(slope) / (bend if bend > guard else guard)
            change, reaches = _within_bounds_of_total(i, j, sign, change, u, top, b, caps, bound, scalars[TOTAL], rest)
            if sign < 0 and reaches >= 0 and place[rows_b[reaches]] < 0:
                return ROW_MISSING, rows_b[reaches], step
            _move_total(i, j, sign * change, change, rest, smooth, u, top, b, d, caps, bound, scalars)
            row_j = rows[place[of_j]] if j >= 0 else row_i
            _shift_total(s, change * (sign * scale), row_i, row_j, bound_row, rest, j >= 0)
            if reaches >= 0:
                b[reaches], bound[reaches] = caps[reaches] * scalars[TOTAL], True
                z = rows_b[reaches]
                _bind(z, caps[reaches], rows[place[z]], diagonal, scalars, bound_row)
        if smooth:
            scalars[DELTA] = np.sqrt(scalars[COST] / tau)
    return STEPS_DONE, -1, steps


@part()
def _move_positives(to: int, giver: int, bend: float, guard: float, u: Any, g: Any, top: Any, curvature: Any) -> Any:
    """One u up, another one down; returns by how much."""
    bend = bend + curvature[to] + curvature[giver]
    change, room = (g[to] - g[giver]) / (bend if bend > guard else guard), top[to] - u[to]
    change = change if change < room else room
    change = change if change < u[giver] else u[giver]
    u[to] = top[to] if change == room else u[to] + change
    u[giver] = 0.0 if change == u[giver] else u[giver] - change
    return change


@part()
def _move_thresholds(
    to: int, giver: int, bend: float, guard: float, h: Any, b: Any, d: Any, caps: Any, bound: Any, scalars: Any
) -> float:
    """One b up, which may become bound, another one down, which may have been; returns by how much."""
    smooth, room = d[0] > 0, caps[to] * scalars[TOTAL] - b[to]
    if smooth:
        bend += (d[to] + d[giver]) / scalars[DELTA]
    change = (h[to] - h[giver]) / (bend if bend > guard else guard)
    change = change if change < b[giver] else b[giver]
    most = room if room > 0.0 else 0.0
    change = change if change < most else most
    if smooth:
        scalars[COST] += change * (d[to] * (b[to] + 0.5 * change) - d[giver] * (b[giver] - 0.5 * change))
    b[giver], bound[giver] = 0.0 if change == b[giver] else b[giver] - change, False
    b[to] += change
    if change >= room:
        b[to], bound[to] = caps[to] * scalars[TOTAL], True
    return change


@part()
def _shift(s: Any, factor: float, up: Any, down: Any) -> None:
    """Add a multiple of the difference of two rows to the scores."""
    for z in range(len(s)):
        s[z] += factor * (up[z] - down[z])


@part()
def _bind(x: int, c: float, row: Any, diagonal: Any, scalars: Any, bound_row: Any) -> None:
    """Put a row with its cap c among the bound rows, or with −c take it out."""
    mass = scalars[MASS] + c
    scalars[MASS] = mass if mass > 0.0 else 0.0
    scalars[BOUND_NORM] += 2 * c * bound_row[x] + c * c * diagonal[x]
    for z in range(len(bound_row)):
        bound_row[z] += c * row[z]


@part()
def _bend_of_total(
    of_i: int, of_j: int, rest: float, row_i: Any, diagonal: Any, bound_row: Any, bound_norm: float, scale: float
) -> float:
    """The curvature along a change of u_i and S: the bound b, and b_j unless its row is −1."""
    bend = diagonal[of_i] + bound_norm - 2 * bound_row[of_i]
    if of_j >= 0:
        bend += rest * rest * diagonal[of_j] - 2 * rest * row_i[of_j] + 2 * rest * bound_row[of_j]
    return float(bend * scale)


@part()
def _within_bounds_of_total(
    i: int, j: int, sign: float, change: float, u: Any, top: Any, b: Any, caps: Any, bound: Any, S: float, rest: float
) -> tuple[float, int]:
    """The change of S as far as the bounds allow, and the b that reaches its bound then, or −1."""
    reaches, most = -1, top[i] - u[i] if sign > 0 else u[i]
    change = change if change < most else most
    if sign > 0:
        if j >= 0 and rest > caps[j]:
            most = (caps[j] * S - b[j]) / (rest - caps[j])
            if most < change:
                change, reaches = most if most > 0.0 else 0.0, j
        return change, reaches
    if j >= 0:
        most = b[j] / rest
        change = change if change < most else most
    for k in range(len(b)):
        if bound[k] or b[k] <= 0:
            continue
        limit = S - b[k] / caps[k]
        if k == j:
            if caps[j] <= rest:
                continue
            limit = (caps[j] * S - b[j]) / (caps[j] - rest)
        if limit < change:
            change, reaches = limit if limit > 0.0 else 0.0, k
    return change, reaches


@part()
def _move_total(
    i: int, j: int, signed: float, change: float, rest: float, smooth: bool,
    u: Any, top: Any, b: Any, d: Any, caps: Any, bound: Any, scalars: Any,
) -> None:  # fmt: skip
    """u_i up (a positive signed change) or down, and S with it: the bound b, and b_j unless it is −1."""
    if j >= 0 and smooth:
        scalars[COST] += signed * d[j] * (b[j] + 0.5 * signed)
    if signed > 0:
        u[i] = top[i] if change == top[i] - u[i] else u[i] + change
        if j >= 0:
            b[j] += rest * change
    else:
        if j >= 0:
            b[j] = 0.0 if change == b[j] / rest else b[j] - rest * change
        u[i] = 0.0 if change == u[i] else u[i] - change
    scalars[TOTAL] += signed
    for k in range(len(b)):
        if bound[k]:
            b[k] = caps[k] * scalars[TOTAL]


@part()
def _shift_total(s: Any, factor: float, row_i: Any, row_j: Any, bound_row: Any, rest: float, has_j: bool) -> None:
    """The scores after a change of u_i and S."""
    if has_j:
        for z in range(len(s)):
            s[z] += factor * (row_i[z] - bound_row[z] - rest * row_j[z])
    else:
        for z in range(len(s)):
            s[z] += factor * (row_i[z] - bound_row[z])
