"""Steps 1 to 3 of the pair method's compiled moves: which two multipliers move; `_pair_moves` has the mathematics."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from toprank.compiled import part

# Mass below which no free b is needed beside the bound rows.
NO_MASS = 1e-12
# Slopes below this count as none.
_NO_SLOPE = 1e-15
# The smallest and the largest integer; no float that is a number has the bits of either.
_LEAST, _MOST = -(2**63), 2**63 - 1


class Candidates(NamedTuple):
    """What a variable may be paired with: slopes, rows, their squared norms, curvatures and rooms of one kind."""

    slopes: Any
    rows: Any
    squares: Any
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


@part()
def extremes_of_positives(
    g: Any, bits: Any, u: Any, top: Any, curvature: Any, shift: float, s: Any, rows: Any
) -> tuple[int, int]:
    """Fill g, of which `bits` is a view as integers; the largest that may rise and the smallest that may fall, or −1.

    Extremes of integers, and loops that write to one array only, are compiled to vector instructions.
    """
    n, largest, smallest = len(u), _LEAST, _MOST
    for i in range(n):
        g[i] = shift - s[rows[i]] - curvature[i] * u[i]
    for i in range(n):
        order = _in_order(bits[i])
        up, down = order if u[i] < top[i] else _LEAST, order if u[i] > 0 else _MOST
        largest = up if up > largest else largest
        smallest = down if down < smallest else smallest
    high = low = -1
    if largest > _LEAST:
        high = _first(bits, largest, 0)
        while u[high] >= top[high]:
            high = _first(bits, largest, high + 1)
    if smallest < _MOST:
        low = _first(bits, smallest, 0)
        while u[low] <= 0:
            low = _first(bits, smallest, low + 1)
    return high, low


@part()
def extremes_of_thresholds(thresholds: Any, s: Any, per_delta: float, S: float) -> tuple[int, int, int, float]:
    """Fill h, and the room below the bounds where there are any.

    Returns the largest h that is not bound, the smallest with b > 0 that is not, the smallest that is bound (or −1),
    and the sum of the bound ones times their caps. `per_delta` is 1 / δ, or zero where there is no δ.
    """
    rows, _, caps, d, e, _, b, bound, h, bits, room = thresholds
    n, largest, smallest = len(b), _LEAST, _MOST
    low_bound, smallest_bound, bound_slope = -1, np.inf, 0.0
    for j in range(n):
        h[j] = s[rows[j]] + e - d[j] * b[j] * per_delta
    for j in range(n):
        order = _in_order(bits[j])
        up, down = _LEAST if bound[j] else order, order if (b[j] > 0) & (not bound[j]) else _MOST
        largest = up if up > largest else largest
        smallest = down if down < smallest else smallest
    if caps[0] < np.inf:
        for j in range(n):
            room[j] = 0.0 if bound[j] else caps[j] * S - b[j]
            if bound[j]:
                bound_slope += caps[j] * h[j]
                if h[j] < smallest_bound:
                    low_bound, smallest_bound = j, h[j]
    high = low = -1
    if largest > _LEAST:
        high = _first(bits, largest, 0)
        while bound[high]:
            high = _first(bits, largest, high + 1)
    if smallest < _MOST:
        low = _first(bits, smallest, 0)
        while b[low] <= 0 or bound[low]:
            low = _first(bits, smallest, low + 1)
    return high, low, low_bound, bound_slope


@part()
def _in_order(bits: int) -> int:
    """An integer for the bits of a float, such that both have the same order."""
    return bits ^ ((bits >> 63) & _MOST)


@part()
def _first(bits: Any, order: int, start: int) -> int:
    """The number of the first one, from a start on, of which the order is given."""
    k = start
    while _in_order(bits[k]) != order:
        k += 1
    return k


@part()
def steepest(
    g: Any, h: Any, high_u: int, low_u: int, high_b: int, low_b: int, low_bound: int, bound_slope: float, rest: float
) -> Any:
    """The pair of the largest slope: of two u, of two b, of S up, of S down; both −1 where there is none."""
    alone = rest <= NO_MASS
    kind, slope, donor = 0, _NO_SLOPE, low_b
    if high_u >= 0 and low_u >= 0 and g[high_u] - g[low_u] > slope:
        kind, slope = 1, g[high_u] - g[low_u]
    if low_bound >= 0 and (donor < 0 or h[low_bound] < h[donor]):
        donor = low_bound
    if high_b >= 0 and donor >= 0 and h[high_b] - h[donor] > slope:
        kind, slope = 2, h[high_b] - h[donor]
    if high_u >= 0 and (alone or high_b >= 0):
        value = g[high_u] + bound_slope + (0.0 if alone else rest * h[high_b])
        if value > slope:
            kind, slope = 3, value
    if low_u >= 0 and (alone or low_b >= 0):
        value = -g[low_u] - bound_slope - (0.0 if alone else rest * h[low_b])
        if value > slope:
            kind = 4
    if kind == 1:
        return high_u, low_u, True, True
    if kind == 2:
        return donor, high_b, False, False
    if kind == 3:
        return high_u, -1 if alone else high_b, True, False
    if kind == 4:
        return -1 if alone else low_b, low_u, False, True
    return -1, -1, True, True


@part()
def partner_of(
    is_u: bool, k: int, x: int, limit: float, bound_slope: float, rest: float, may_move_S: bool, bound_norm: float,
    own: Any, others: Any, row: Any, scale: float, bound_row: Any, has_bound: bool, gains: Any, bits: Any,
) -> tuple[int, bool]:  # fmt: skip
    """The partner of the largest gain of a variable that raises the score of its row x, and whether it is a u.

    A u rises, by `limit` at most, with another u that falls, or with S and a b; a b falls with another b that rises, or
    with S and a u. `own` are those of its kind, `others` those of the other kind; −1 stands for S with no b beside the
    bound ones, or for nothing.
    """
    square, slope, flat = own.squares[k], own.slopes[k], own.curvature[k] * own.curvature_scale
    guard, of_bound = 1e-14 * square * scale + 1e-300, bound_row[x]
    if is_u:
        alone = _Model(slope, -1.0, square, 1.0, -2.0, 0.0, flat, guard, 1.0, limit)
        base = bound_norm + square - 2 * of_bound
        offset, twice = slope + bound_slope, 2 * rest
        with_S = _Model(offset, rest, base, rest * rest, -twice, twice, flat, guard, 1 / rest, limit)
    else:
        alone = _Model(-slope, 1.0, square, 1.0, -2.0, 0.0, flat, guard, 1.0, limit)
        base = bound_norm + rest * (rest * square + 2 * of_bound)
        offset = -bound_slope - rest * slope
        with_S = _Model(offset, -1.0, base, 1.0, -2 * rest, -2.0, flat, guard, 1.0, limit / rest)
    partner, best, partner_is_u = -1, 0.0, is_u
    for kind in range(2 if may_move_S and rest > NO_MASS else 1):  # one call, as each is compiled into the caller
        candidates, model = (own, alone) if kind == 0 else (others, with_S)
        other, gain = _largest_gain(gains, bits, candidates, model, row, scale, bound_row, has_bound)
        if gain > best:
            partner, best, partner_is_u = other, gain, is_u == (kind == 0)
    if is_u and rest <= NO_MASS:
        bend = base * scale + flat
        bend = bend if bend > guard else guard
        change = offset / bend if offset > 0.0 else 0.0
        change = change if change < limit else limit
        if change * (offset - 0.5 * change * bend) > best:
            return -1, False
    return partner, partner_is_u


@part()
def _largest_gain(
    gains: Any, bits: Any, candidates: Any, model: Any, row: Any, scale: float, bound_row: Any, has_bound: bool
) -> tuple[int, float]:
    """The candidate of the largest gain, or −1, and the gain; `row` are the products of the variable that is kept.

    The loops have no branches and no `min`, which would have to look for NaN, and numbers of rows are not looked at for
    negative ones, so that they are compiled to vector instructions.
    """
    slopes, rows, squares, curvature, curvature_scale, room = candidates
    offset, sign, base, on_square, on_row, on_bound, flat, guard, room_scale, limit = model
    n, best = len(slopes), 0
    for k in range(n):
        gains[k] = base + on_square * squares[k] + on_row * row[np.uint64(rows[k])]
    if has_bound:
        for k in range(n):
            gains[k] += on_bound * bound_row[rows[k]]
    for k in range(n):
        value = offset + sign * slopes[k]
        value = value if value > 0 else 0.0
        bend = gains[k] * scale + flat + curvature[k] * curvature_scale
        bend = bend if bend > guard else guard
        change, most = value / bend, room[k] * room_scale
        change = change if change < most else most
        change = change if change < limit else limit
        gains[k] = change * (value - 0.5 * change * bend)
    for k in range(n):
        best = bits[k] if bits[k] > best else best
    if best == 0:
        return -1, 0.0
    partner = _first(bits, best, 0)
    return partner, gains[partner]
