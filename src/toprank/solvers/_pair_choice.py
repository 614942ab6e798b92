"""Steps 1 to 3 of the pair method's compiled moves: which two multipliers move; `_pair_moves` has the mathematics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from toprank.compiled import compiled
from toprank.solvers._pair_state import BOUND_NORM, DELTA, TOTAL, Pair

# Mass below which no free b is needed beside the bound rows.
NO_MASS = 1e-12
# Slopes below this count as none.
_NO_SLOPE = 1e-15


class Extremes(NamedTuple):
    """The largest g and h that may rise, the smallest that may fall, the smallest bound h; and Σ c h of the bound."""

    high_u: int
    low_u: int
    high_b: int
    low_b: int
    low_bound: int
    bound_slope: float


class _Partners(NamedTuple):
    """What a variable may be paired with: slopes, rows, curvatures and rooms of one kind."""

    slopes: Any
    rows: Any
    curvature: Any
    curvature_scale: float
    room: Any


class _Model(NamedTuple):
    """What a change t of partner k gains: t (value − t bend / 2), for t up to `limit` and to room_scale · room.

    value = offset + sign · slope, and bend, which is at least `guard`, = scale · (base + on_square · square + on_row ·
    row + on_bound · bound_row) + flat + curvature.
    """

    offset: float
    sign: float
    base: float
    on_square: float
    on_row: float
    on_bound: float
    flat: float
    guard: float
    room_scale: float
    limit: float


@compiled(nogil=True, error_model="numpy")
def extremes_of_positives(positives: Any, state: Any) -> tuple[int, int]:
    """Fill g; the largest that may rise and the smallest that may fall, or −1.

    The comparisons are written so that the processor can guess them: what is not allowed is made infinite.
    """
    g, u, s = positives.g, positives.u, state.s
    rows, curvature, top, shift = positives.rows, positives.curvature, positives.top, positives.shift
    high, low, largest, smallest = -1, -1, -np.inf, np.inf
    for i in range(len(u)):
        g[i] = shift - s[rows[i]] - curvature[i] * u[i]
    for i in range(len(u)):
        up, down = g[i] if u[i] < top[i] else -np.inf, g[i] if u[i] > 0 else np.inf
        if up > largest:
            high, largest = i, up
        if down < smallest:
            low, smallest = i, down
    return high, low


@compiled(nogil=True, error_model="numpy", inline="always")
def _per_delta(thresholds: Any, state: Any) -> float:
    """1 / δ, or zero where there is no δ."""
    return 1.0 / state.scalars[DELTA] if thresholds.d[0] > 0 else 0.0


@compiled(nogil=True, error_model="numpy")
def extremes_of_thresholds(thresholds: Any, state: Any) -> tuple[int, int, int, float]:
    """Fill h and the room below the bounds.

    Returns the largest h that is not bound, the smallest with b > 0 that is not, the smallest that is bound (or −1),
    and the sum of the bound ones times their caps.
    """
    h, b, bound, room, s = thresholds.h, thresholds.b, thresholds.bound, thresholds.room, state.s
    rows, caps, d, e = thresholds.rows, thresholds.caps, thresholds.d, thresholds.e
    per_delta, S = _per_delta(thresholds, state), state.scalars[TOTAL]
    high, low, low_bound = -1, -1, -1
    largest, smallest, smallest_bound, bound_slope = -np.inf, np.inf, np.inf, 0.0
    for j in range(len(b)):
        h[j] = s[rows[j]] + e - d[j] * b[j] * per_delta
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


@compiled(nogil=True, error_model="numpy", inline="always")
def steepest(positives: Any, thresholds: Any, extremes: Any, rest: float) -> Any:
    """The pair of the largest slope: of two u, of two b, of S up, of S down; both −1 where there is none."""
    g, h = positives.g, thresholds.h
    high_u, low_u, high_b, low_b, low_bound, bound_slope = extremes
    alone = rest <= NO_MASS
    slope, rising, sinking, rising_is_u, sinking_is_u = _NO_SLOPE, -1, -1, True, True
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
    return Pair(rising, sinking, rising_is_u, sinking_is_u)


@compiled(nogil=True, error_model="numpy", inline="always")
def partner_of_positive(
    i: int, gains: Any, products: Any, positives: Any, thresholds: Any, state: Any, bound_slope: float, rest: float
) -> Any:
    """The pair of u_i, which rises, with another u that falls, or with S."""
    x, g, scale = positives.rows[i], positives.g, products.scale
    row, square = products.rows[products.place[x]], products.diagonal[x]
    guard, flat, limit = 1e-14 * square * scale + 1e-300, positives.curvature[i], positives.top[i] - positives.u[i]
    others = _Partners(g, positives.rows, positives.curvature, 1.0, positives.u)
    model = _Model(g[i], -1.0, square, 1.0, -2.0, 0.0, flat, guard, 1.0, limit)
    sinking, best = _largest_gain(gains, others, model, row, products, state)
    base = state.scalars[BOUND_NORM] + square - 2 * state.bound_row[x]
    if rest <= NO_MASS:
        value, bend = g[i] + bound_slope, max(base * scale + flat, guard)
        change = min(max(value, 0.0) / bend, limit)
        if change * (value - 0.5 * change * bend) > best:
            return Pair(i, -1, True, False)
        return Pair(i, sinking, True, True)
    per_delta = _per_delta(thresholds, state)
    with_S = _Partners(thresholds.h, thresholds.rows, thresholds.d, per_delta, thresholds.room)
    model = _Model(
        g[i] + bound_slope, rest, base, rest * rest, -2 * rest, 2 * rest, flat, guard, 1 / rest, limit
    )  # fmt: skip
    other, gain = _largest_gain(gains, with_S, model, row, products, state)
    if gain > best:
        return Pair(i, other, True, False)
    return Pair(i, sinking, True, True)


@compiled(nogil=True, error_model="numpy", inline="always")
def partner_of_threshold(
    j: int, gains: Any, products: Any, positives: Any, thresholds: Any, state: Any, bound_slope: float, rest: float
) -> Any:
    """The pair of b_j, which falls so that the score of its row rises, with another b that rises, or with S."""
    x, h, b, scale = thresholds.rows[j], thresholds.h, thresholds.b, products.scale
    row, square = products.rows[products.place[x]], products.diagonal[x]
    per_delta = _per_delta(thresholds, state)
    guard, flat = 1e-14 * square * scale + 1e-300, thresholds.d[j] * per_delta
    others = _Partners(h, thresholds.rows, thresholds.d, per_delta, thresholds.room)
    model = _Model(-h[j], 1.0, square, 1.0, -2.0, 0.0, flat, guard, 1.0, b[j])
    sinking, best = _largest_gain(gains, others, model, row, products, state)
    if rest > NO_MASS and not thresholds.bound[j]:
        base = state.scalars[BOUND_NORM] + rest * (rest * square + 2 * state.bound_row[x])
        with_S = _Partners(positives.g, positives.rows, positives.curvature, 1.0, positives.u)
        model = _Model(
            -bound_slope - rest * h[j], -1.0, base, 1.0, -2 * rest, -2.0, flat, guard, 1.0, b[j] / rest
        )  # fmt: skip
        other, gain = _largest_gain(gains, with_S, model, row, products, state)
        if gain > best:
            return Pair(j, other, False, True)
    return Pair(j, sinking, False, False)


@compiled(nogil=True, error_model="numpy")
def _largest_gain(gains: Any, partners: Any, model: Any, row: Any, products: Any, state: Any) -> tuple[int, float]:
    """The partner of the largest gain, or −1, and the gain; `row` are the products of the variable that is kept.

    The second loop has no branches and no `min`, which would have to look for NaN, so it is compiled to vector
    instructions.
    """
    slopes, rows, curvature, curvature_scale, room = partners
    offset, sign, base, on_square, on_row, on_bound, flat, guard, room_scale, limit = model
    diagonal, scale, bound_row = products.diagonal, products.scale, state.bound_row
    for k in range(len(slopes)):
        y = rows[k]
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
