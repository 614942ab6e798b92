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

A step looks for the largest slope among all moves, keeps the variable that rises, and takes the partner of the largest
gain to second order within the bounds. After each step δ takes its best value, Σ d b² / 2 = τ δ²: for fixed δ the dual
is bounded from below by the quadratic that the step maximises, so every step ascends. Products of rows come from `rows`
(those with a `place`); where one is missing the call ends and says which.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.compiled import compiled

# Entries of `scalars`.
TOTAL, MASS, BOUND_NORM, DELTA, COST = range(5)
# Why a call ended.
STEPS_DONE, OPTIMAL, ROW_MISSING = range(3)
# Mass below which no free b is needed beside the bound rows.
_NO_MASS = 1e-12


@compiled(nogil=True, error_model="numpy")
def ascend(
    rows: Any, place: Any, diagonal: Any, scale: float,
    positives: Any, curvature: Any, top: Any, shift: float,
    thresholds: Any, caps: Any, e: float, d: Any, tau: float,
    u: Any, b: Any, s: Any, bound: Any, bound_row: Any, scalars: Any, smallest: float, steps: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Make up to `steps` moves; returns why it ended, the missing row, and the number of moves made.

    `scale` is 1 / α, `curvature` is width / a, and `positives` and `thresholds` are the numbers of their rows. In and
    out: u, b, the scores s, `bound` (which b are at their bound), `bound_row` (the products of g with all rows) and
    `scalars`. Slopes below `smallest` count as none.
    """
    smooth = d[0] > 0
    g, h, room = np.empty(len(u)), np.empty(len(b)), np.empty(len(b))
    gains = np.empty(max(len(u), len(b)))
    for step in range(steps):
        S, rest = scalars[TOTAL], 1.0 - scalars[MASS]
        per_delta = 1.0 / scalars[DELTA] if smooth else 0.0
        alone = rest <= _NO_MASS
        # 1. Slopes and their extremes.
        high_u, low_u = _extremes_of_positives(g, s, positives, curvature, top, shift, u)
        high_b, low_b, low_bound, bound_slope = _extremes_of_thresholds(
            h, room, s, thresholds, caps, e, d, per_delta, b, bound, S
        )
        # 2. The largest slope: of two u, of two b, of S up, of S down.
        slope, rising, sinking, rising_is_u, sinking_is_u = smallest, -1, -1, True, True
        if high_u >= 0 and low_u >= 0 and g[high_u] - g[low_u] > slope:
            slope, rising, sinking = g[high_u] - g[low_u], high_u, low_u
        donor = low_b
        if low_bound >= 0 and (donor < 0 or h[low_bound] < h[donor]):
            donor = low_bound
        if high_b >= 0 and donor >= 0 and h[high_b] - h[donor] > slope:
            slope, rising, sinking, rising_is_u, sinking_is_u = h[high_b] - h[donor], donor, high_b, False, False
        if high_u >= 0 and (alone or high_b >= 0):
            value = g[high_u] + bound_slope + (0.0 if alone else rest * h[high_b])
            if value > slope:
                slope, rising, sinking, rising_is_u, sinking_is_u = value, high_u, -1 if alone else high_b, True, False
        if low_u >= 0 and (alone or low_b >= 0):
            value = -g[low_u] - bound_slope - (0.0 if alone else rest * h[low_b])
            if value > slope:
                slope, rising, sinking, rising_is_u, sinking_is_u = value, -1 if alone else low_b, low_u, False, True
        if rising < 0 and sinking < 0:
            return OPTIMAL, -1, step
        # 3. The variable that rises is kept; its partner is the one with the largest gain.
        if rising >= 0:
            x = positives[rising] if rising_is_u else thresholds[rising]
            if place[x] < 0:
                return ROW_MISSING, x, step
            row, square, norm = rows[place[x]], diagonal[x], scalars[BOUND_NORM]
            guard = 1e-14 * square * scale + 1e-300
            sinking, sinking_is_u, best = -1, True, 0.0
            if rising_is_u:
                limit, flat = top[rising] - u[rising], curvature[rising]
                sinking, best = _largest_gain(
                    gains, g, g[rising], -1.0, positives, row, bound_row, diagonal, square, 1.0, -2.0, 0.0, scale,
                    flat, curvature, 1.0, u, 1.0, limit, guard,
                )  # fmt: skip
                base = norm + square - 2 * bound_row[x]
                if alone:
                    value, bend = g[rising] + bound_slope, max(base * scale + flat, guard)
                    change = min(max(value, 0.0) / bend, limit)
                    if change * (value - 0.5 * change * bend) > best:
                        sinking, sinking_is_u = -1, False
                else:
                    other, gain = _largest_gain(
                        gains, h, g[rising] + bound_slope, rest, thresholds, row, bound_row, diagonal, base,
                        rest * rest, -2 * rest, 2 * rest, scale, flat, d, per_delta, room, 1 / rest, limit, guard,
                    )  # fmt: skip
                    if gain > best:
                        sinking, sinking_is_u = other, False
            else:
                flat = d[rising] * per_delta
                sinking, best = _largest_gain(
                    gains, h, -h[rising], 1.0, thresholds, row, bound_row, diagonal, square, 1.0, -2.0, 0.0, scale,
                    flat, d, per_delta, room, 1.0, b[rising], guard,
                )  # fmt: skip
                sinking_is_u = False
                if not alone and not bound[rising]:
                    base = norm + rest * (rest * square + 2 * bound_row[x])
                    other, gain = _largest_gain(
                        gains, g, -bound_slope - rest * h[rising], -1.0, positives, row, bound_row, diagonal, base, 1.0,
                        -2 * rest, -2.0, scale, flat, curvature, 1.0, u, 1.0, b[rising] / rest, guard,
                    )  # fmt: skip
                    if gain > best:
                        sinking, sinking_is_u = other, True
            if sinking < 0 and not (rising_is_u and alone):
                return OPTIMAL, -1, step
        # 4. The move.
        x, y = -1, -1
        if rising >= 0:
            x = positives[rising] if rising_is_u else thresholds[rising]
        if sinking >= 0:
            y = positives[sinking] if sinking_is_u else thresholds[sinking]
        for z in (x, y):
            if z >= 0 and place[z] < 0:
                return ROW_MISSING, z, step
        x_row, y_row = rows[place[max(x, 0)]], rows[place[max(y, 0)]]
        if rising_is_u and sinking_is_u and x >= 0 and y >= 0:
            bend = (diagonal[x] + diagonal[y] - 2 * x_row[y]) * scale + curvature[rising] + curvature[sinking]
            change = (g[rising] - g[sinking]) / max(bend, 1e-14 * diagonal[x] * scale + 1e-300)
            change = min(change, top[rising] - u[rising], u[sinking])
            u[rising] = top[rising] if change == top[rising] - u[rising] else u[rising] + change
            u[sinking] = 0.0 if change == u[sinking] else u[sinking] - change
            for z in range(len(s)):
                s[z] += change * scale * (x_row[z] - y_row[z])
        elif x >= 0 and y >= 0 and not rising_is_u and not sinking_is_u:
            _move_between(
                sinking, rising, h[sinking] - h[rising], y_row, x_row, diagonal, scale, thresholds, caps, d, smooth,
                b, s, bound, bound_row, scalars,
            )  # fmt: skip
        else:
            up = rising_is_u
            i, j = (rising, sinking) if up else (sinking, rising)
            slope = g[i] + bound_slope + (rest * h[j] if j >= 0 else 0.0)
            missing = _move_total(
                i, j, 1.0 if up else -1.0, abs(slope), x_row if up else y_row, y_row if up else x_row, rows, place,
                diagonal, scale, positives, curvature, top, thresholds, caps, d, smooth, u, b, s, bound, bound_row,
                scalars,
            )  # fmt: skip
            if missing >= 0:
                return ROW_MISSING, missing, step
        if smooth:
            scalars[DELTA] = np.sqrt(scalars[COST] / tau)
    return STEPS_DONE, -1, steps


@compiled(nogil=True, error_model="numpy")
def _extremes_of_positives(
    g: Any, s: Any, positives: Any, curvature: Any, top: Any, shift: float, u: Any
) -> tuple[int, int]:
    """Fill g; the largest that may rise and the smallest that may fall, or −1.

    The comparisons are written so that the processor can guess them: what is not allowed is made infinite.
    """
    high, low, largest, smallest = -1, -1, -np.inf, np.inf
    for i in range(len(u)):
        g[i] = shift - s[positives[i]] - curvature[i] * u[i]
    for i in range(len(u)):
        up, down = g[i] if u[i] < top[i] else -np.inf, g[i] if u[i] > 0 else np.inf
        if up > largest:
            high, largest = i, up
        if down < smallest:
            low, smallest = i, down
    return high, low


@compiled(nogil=True, error_model="numpy")
def _extremes_of_thresholds(
    h: Any, room: Any, s: Any, thresholds: Any, caps: Any, e: float, d: Any, per_delta: float, b: Any, bound: Any,
    S: float,
) -> tuple[int, int, int, float]:  # fmt: skip
    """Fill h and the room below the bounds.

    Returns the largest h that is not bound, the smallest with b > 0 that is not, the smallest that is bound (or −1),
    and the sum of the bound ones times their caps.
    """
    high, low, low_bound = -1, -1, -1
    largest, smallest, smallest_bound, bound_slope = -np.inf, np.inf, np.inf, 0.0
    for j in range(len(b)):
        h[j] = s[thresholds[j]] + e - d[j] * b[j] * per_delta
        room[j] = 0.0 if bound[j] else caps[j] * S - b[j]
    for j in range(len(b)):
        up, down = -np.inf if bound[j] else h[j], h[j] if b[j] > 0 and not bound[j] else np.inf
        if up > largest:
            high, largest = j, up
        if down < smallest:
            low, smallest = j, down
        if bound[j]:
            bound_slope += caps[j] * h[j]
            if h[j] < smallest_bound:
                low_bound, smallest_bound = j, h[j]
    return high, low, low_bound, bound_slope


@compiled(nogil=True, error_model="numpy")
def _largest_gain(
    gains: Any, slopes: Any, offset: float, sign: float, numbers: Any, row: Any, bound_row: Any, diagonal: Any,
    base: float, on_square: float, on_row: float, on_bound: float, scale: float, flat: float, curvature: Any,
    curvature_scale: float, room: Any, room_scale: float, limit: float, guard: float,
) -> tuple[int, float]:  # fmt: skip
    """The partner of the largest gain, or −1, and the gain.

    A change t of partner k gains t (value − t bend / 2), with value = offset + sign · slope and bend = scale · (base +
    on_square · square + on_row · row + on_bound · bound_row) + flat + curvature. The second loop has no branches and no
    `min`, which would have to look for NaN, so it is compiled to vector instructions.
    """
    for k in range(len(slopes)):
        y = numbers[k]
        gains[k] = (base + on_square * diagonal[y] + on_row * row[y] + on_bound * bound_row[y]) * scale
    for k in range(len(slopes)):
        value = offset + sign * slopes[k]
        value = value if value > 0 else 0.0
        bend = gains[k] + flat + curvature[k] * curvature_scale
        bend = bend if bend > guard else guard
        change, most = value / bend, room[k] * room_scale
        change = change if change < most else most
        change = change if change < limit else limit
        gains[k] = change * (value - 0.5 * change * bend)
    partner, best = -1, 0.0
    for k in range(len(slopes)):
        if gains[k] > best:
            partner, best = k, gains[k]
    return partner, best


@compiled(nogil=True, error_model="numpy")
def _bind(j: int, sign: float, row: Any, diagonal: Any, thresholds: Any, caps: Any, bound: Any, bound_row: Any, scalars: Any) -> None:  # noqa: E501  # fmt: skip
    """Put b_j among the bound rows (sign 1) or take it out (sign −1)."""
    c = sign * caps[j]
    bound[j] = sign > 0
    scalars[MASS] = max(scalars[MASS] + c, 0.0)
    scalars[BOUND_NORM] += 2 * c * bound_row[thresholds[j]] + c * c * diagonal[thresholds[j]]
    for x in range(len(bound_row)):
        bound_row[x] += c * row[x]


@compiled(nogil=True, error_model="numpy")
def _move_between(
    to: int, giver: int, slope: float, to_row: Any, giver_row: Any, diagonal: Any, scale: float,
    thresholds: Any, caps: Any, d: Any, smooth: bool, b: Any, s: Any, bound: Any, bound_row: Any, scalars: Any,
) -> None:  # fmt: skip
    """Move 2."""
    x, y = thresholds[to], thresholds[giver]
    bend = (diagonal[x] + diagonal[y] - 2 * to_row[y]) * scale
    if smooth:
        bend += (d[to] + d[giver]) / scalars[DELTA]
    room = caps[to] * scalars[TOTAL] - b[to]
    change = min(slope / max(bend, 1e-14 * diagonal[x] * scale + 1e-300), b[giver], max(room, 0.0))
    if bound[giver]:
        _bind(giver, -1.0, giver_row, diagonal, thresholds, caps, bound, bound_row, scalars)
    if smooth:
        scalars[COST] += change * (d[to] * (b[to] + 0.5 * change) - d[giver] * (b[giver] - 0.5 * change))
    b[giver] = 0.0 if change == b[giver] else b[giver] - change
    b[to] += change
    if change >= room:
        b[to] = caps[to] * scalars[TOTAL]
        _bind(to, 1.0, to_row, diagonal, thresholds, caps, bound, bound_row, scalars)
    change *= scale
    for z in range(len(s)):
        s[z] += change * (giver_row[z] - to_row[z])


@compiled(nogil=True, error_model="numpy")
def _move_total(
    i: int, j: int, sign: float, slope: float, x_row: Any, y_row: Any, rows: Any, place: Any, diagonal: Any,
    scale: float, positives: Any, curvature: Any, top: Any, thresholds: Any, caps: Any, d: Any, smooth: bool,
    u: Any, b: Any, s: Any, bound: Any, bound_row: Any, scalars: Any,
) -> int:  # fmt: skip
    """Move 3: u_i up (sign 1) or down, and S with it; returns a row that is missing, or −1."""
    x = positives[i]
    S, mass = scalars[TOTAL], scalars[MASS]
    rest = 1.0 - mass
    bend = diagonal[x] + scalars[BOUND_NORM] - 2 * bound_row[x]
    if j >= 0:
        y = thresholds[j]
        bend += rest * rest * diagonal[y] - 2 * rest * x_row[y] + 2 * rest * bound_row[y]
    bend = bend * scale + curvature[i]
    if smooth:
        bend += d[j] / scalars[DELTA]
    change = slope / max(bend, 1e-14 * diagonal[x] * scale + 1e-300)
    reaches_bound = -1
    if sign > 0:
        change = min(change, top[i] - u[i])
        if j >= 0:
            growth = rest - caps[j]
            if growth > 0 and (caps[j] * S - b[j]) / growth < change:
                change = max((caps[j] * S - b[j]) / growth, 0.0)
                reaches_bound = j
    else:
        change = min(change, u[i])
        if j >= 0:
            change = min(change, b[j] / rest)
        for k in range(len(b)):
            if bound[k] or b[k] <= 0:
                continue
            limit = S - b[k] / caps[k]
            if k == j:
                if caps[j] <= rest:
                    continue
                limit = (caps[j] * S - b[j]) / (caps[j] - rest)
            if limit < change:
                change, reaches_bound = max(limit, 0.0), k
        if reaches_bound >= 0 and place[thresholds[reaches_bound]] < 0:
            return int(thresholds[reaches_bound])
    if j >= 0 and smooth:
        scalars[COST] += sign * change * d[j] * (b[j] + 0.5 * sign * change)
    if sign > 0:
        u[i] = top[i] if change == top[i] - u[i] else u[i] + change
        if j >= 0:
            b[j] += rest * change
    else:
        if j >= 0:
            b[j] = 0.0 if change == b[j] / rest else b[j] - rest * change
        u[i] = 0.0 if change == u[i] else u[i] - change
    scalars[TOTAL] = S + sign * change
    change *= sign * scale
    for k in range(len(b)):
        if bound[k]:
            b[k] = caps[k] * scalars[TOTAL]
    if j >= 0:
        for z in range(len(s)):
            s[z] += change * (x_row[z] - bound_row[z] - rest * y_row[z])
    else:
        for z in range(len(s)):
            s[z] += change * (x_row[z] - bound_row[z])
    if reaches_bound >= 0:
        b[reaches_bound] = caps[reaches_bound] * scalars[TOTAL]
        row = rows[place[thresholds[reaches_bound]]]
        _bind(reaches_bound, 1.0, row, diagonal, thresholds, caps, bound, bound_row, scalars)
    return -1
