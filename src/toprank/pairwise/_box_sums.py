"""Compiled loops of the fast sums: arrays only, cached, compiled on first use.

Where products are added up, a product and a sum may be fused into one operation with one rounding instead of two;
nothing else of the arithmetic may be changed by the compiler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from toprank.arrays import Floats, Mask
from toprank.compiled import compiled, part

# Number of coefficients of a polynomial and of decaying exponentials; a multiple of four, as
# the loops below work on four at a time.
TERMS = 16
# After so many points the sums of a cell start anew, so that rounding errors do not pile up.
_FLUSH = 2048
_FUSED = {"contract"}


@compiled(nogil=True, fastmath=_FUSED)
def add_moments(
    points: Any, scale: Any, first: Any, boxes: Any, rows: Any, weights: Any, moments: Any, partial: Any, count: Any
) -> None:
    """[r, c, k]: add Σ weightᵢ · localᵢᵏ over the points i of row r in box c, with local coordinates in [−1, 1].

    Boxes are counted from `first` unless `boxes` holds their numbers; empty `rows` stand for zeros. The last two are
    zeros to work with: parts of the sums, and how many points are in them.
    """
    numbered, many = len(boxes) > 0, len(rows) > 0
    for i in range(len(points)):
        scaled = points[i] * scale
        box = np.floor(scaled)
        c = np.int64(boxes[i]) if numbered else np.int64(box - first)
        r = np.int64(rows[i]) if many else 0
        t = 2.0 * (scaled - box) - 1.0
        t2 = t * t
        t4 = t2 * t2
        v0 = weights[i]
        v1, v2 = v0 * t, v0 * t2
        v3 = v1 * t2
        for k in range(0, TERMS, 4):
            partial[r, c, k] += v0
            partial[r, c, k + 1] += v1
            partial[r, c, k + 2] += v2
            partial[r, c, k + 3] += v3
            v0 *= t4
            v1 *= t4
            v2 *= t4
            v3 *= t4
        count[r, c] += 1
        if count[r, c] == _FLUSH:
            count[r, c] = 0
            for k in range(TERMS):
                moments[r, c, k] += partial[r, c, k]
                partial[r, c, k] = 0.0
    for row in range(moments.shape[0]):
        for cell in range(moments.shape[1]):
            for k in range(TERMS):
                moments[row, cell, k] += partial[row, cell, k]


@compiled(nogil=True, fastmath=_FUSED)
def evaluate(points: Any, scale: Any, first: Any, boxes: Any, rows: Any, polynomials: Any, values: Any) -> None:
    """[i]: Σₖ polynomials[rowᵢ, boxᵢ, k] · localᵢᵏ, with boxes and rows as for the moments."""
    numbered, many = len(boxes) > 0, len(rows) > 0
    for i in range(len(points)):
        scaled = points[i] * scale
        box = np.floor(scaled)
        c = np.int64(boxes[i]) if numbered else np.int64(box - first)
        r = np.int64(rows[i]) if many else 0
        t = 2.0 * (scaled - box) - 1.0
        t2 = t * t
        t4 = t2 * t2
        polynomial = polynomials[r, c]
        v0 = polynomial[TERMS - 4]
        v1 = polynomial[TERMS - 3]
        v2 = polynomial[TERMS - 2]
        v3 = polynomial[TERMS - 1]
        for k in range(TERMS - 8, -1, -4):
            v0 = v0 * t4 + polynomial[k]
            v1 = v1 * t4 + polynomial[k + 1]
            v2 = v2 * t4 + polynomial[k + 2]
            v3 = v3 * t4 + polynomial[k + 3]
        values[i] = (v0 + v1 * t) + (v2 + v3 * t) * t2


class Tables(NamedTuple):
    """How boxes interact: near ones through a table, far ones through exponentials; see `interact`."""

    near: Floats
    rising: Floats
    falling: Floats
    below: Floats
    above: Floats
    ends: Floats


class Room(NamedTuple):
    """What `interact` works with: sources of a row, which boxes they fill, what is sent and received, decays."""

    sources: Floats
    filled: Mask
    sent: Floats
    received: Floats
    decays: Floats

    @classmethod
    def of(cls, n_boxes: int) -> Room:
        """Room for so many boxes."""
        sources, sent, received = np.zeros((3, n_boxes, TERMS))
        return cls(sources, np.zeros(n_boxes, np.bool_), sent, received, np.zeros((3, TERMS)))


@compiled(nogil=True)
def interact(
    moments: Any, joined: Any, wanted: Any, positions: Any, width: Any, tables: Any, room: Any, polynomials: Any
) -> None:
    """[r, J]: add the polynomial of what all boxes send to box J, where wanted[r, J].

    The moments of row r are the sum of those given, with the weights joined[r]. Boxes I and J that are at most `reach`
    apart act through the table near[J − I + reach]. Sources farther below a target act by ends[0] + Σₖ below[k]
    e⁻⁽ᵏ⁺¹⁾ˢ, sources farther above it by ends[1] + ends[2]·s + Σₖ above[k] e⁽ᵏ⁺¹⁾ˢ, with s = y − z. Two sweeps over the
    boxes carry these sums along; rising[k] holds the coefficients of the polynomial e⁽ᵏ⁺¹⁾ᵗᐟ² in t, falling[k] those
    of e⁻⁽ᵏ⁺¹⁾ᵗᐟ².
    """
    near, ends, sources, filled = tables.near, tables.ends, room.sources, room.filled
    n_boxes, reach = len(positions), len(near) // 2
    for r in range(len(joined)):
        if not _join(moments, joined[r], sources, filled):
            continue
        _add_near(sources, filled, wanted[r], positions, near, polynomials[r])
        if positions[n_boxes - 1] - positions[0] > reach:
            for side in (1, -1):
                outgoing, incoming = (tables.rising, tables.falling) if side == 1 else (tables.falling, tables.rising)
                coefficients = tables.below if side == 1 else tables.above
                constant, slope = (ends[0], 0.0) if side == 1 else (ends[1], ends[2])
                for i in range(n_boxes):
                    for k in range(TERMS):
                        room.sent[i, k] = 0.0
                _multiply_rows(sources, filled, outgoing.T, room.sent)
                here = positions, width, reach, side
                _sweep(here, sources, room, coefficients, constant, slope, polynomials[r])
                _multiply_rows(room.received, wanted[r], incoming, polynomials[r])


@part()
def _join(moments: Any, weights: Any, sources: Any, filled: Any) -> Any:
    """Set the sources of a row and which boxes have any; returns whether some have."""
    some = False
    for box in range(len(sources)):
        for k in range(TERMS):
            sources[box, k] = 0.0
    for other in range(len(moments)):
        if weights[other] != 0:
            for box in range(len(sources)):
                for k in range(TERMS):
                    sources[box, k] += weights[other] * moments[other, box, k]
    for box in range(len(sources)):
        filled[box] = False
        for k in range(TERMS):
            if sources[box, k] != 0:
                filled[box] = some = True
    return some


@part(fastmath=_FUSED)
def _add_near(sources: Any, filled: Any, wanted: Any, positions: Any, near: Any, polynomials: Any) -> None:
    """Add Σ sources[I] @ near[J − I + reach] over the boxes I within reach of J to polynomials[J]."""
    n_boxes, reach = len(positions), len(near) // 2
    for J in range(n_boxes):
        if not wanted[J]:
            continue
        box = J
        while box > 0 and positions[J] - positions[box - 1] <= reach:
            box -= 1
        while box < n_boxes and positions[box] - positions[J] <= reach:
            if filled[box]:
                offset = np.int64(positions[J] - positions[box]) + reach
                for a in range(TERMS):
                    value = polynomials[J, a]
                    for b in range(TERMS):
                        value += sources[box, b] * near[offset, b, a]
                    polynomials[J, a] = value
            box += 1


@part(fastmath=_FUSED)
def _multiply_rows(left: Any, used: Any, matrix: Any, product: Any) -> None:
    """Add left[i] @ matrix to product[i] for the used rows i; slices would cost more than the products."""
    for i in range(len(left)):
        if used[i]:
            for a in range(TERMS):
                value = product[i, a]
                for b in range(TERMS):
                    value += left[i, b] * matrix[b, a]
                product[i, a] = value


@part()
def _sweep(here: Any, sources: Any, room: Any, coefficients: Any, constant: Any, slope: Any, polynomials: Any) -> None:
    """Receive from the far sources on one side: below the targets for side = 1, sweeping up, else above, sweeping down.

    State at box J, with r the distance of a far source from the centre of J: decayed[k] = Σ q e⁻⁽ᵏ⁺¹⁾ʳ, total = Σ q
    and distance = Σ q·r, the latter two as compensated sums, which are added to the polynomials.
    """
    positions, width, reach, side = here
    sent, received, decayed, over_move, over_gap = (
        room.sent,
        room.received,
        room.decays[0],
        room.decays[1],
        room.decays[2],
    )
    for k in range(TERMS):
        decayed[k], over_move[k], over_gap[k] = 0.0, 1.0, 1.0
    moved = gap = 0.0
    total = distance = total_error = distance_error = 0.0
    n_boxes = len(positions)
    source = 0 if side == 1 else n_boxes - 1
    before = positions[source]
    for step in range(n_boxes):
        J = step if side == 1 else n_boxes - 1 - step
        moved = _set_decays(over_move, moved, width * abs(positions[J] - before))
        before = positions[J]
        for k in range(TERMS):
            decayed[k] *= over_move[k]
        distance, distance_error = _add(distance, distance_error, total * moved)
        while abs(positions[J] - positions[source]) > reach:
            gap = _set_decays(over_gap, gap, width * abs(positions[J] - positions[source]))
            for k in range(TERMS):
                decayed[k] += over_gap[k] * sent[source, k]
            moment, first = sources[source, 0], sources[source, 1]
            total, total_error = _add(total, total_error, moment)
            # a source at local coordinate t is gap − side·width/2·t away from the centre
            distance, distance_error = _add(distance, distance_error, gap * moment - side * width / 2 * first)
            source += side
        for k in range(TERMS):
            received[J, k] = coefficients[k] * decayed[k]
        # s = side·distance + width/2·t
        polynomials[J, 0] += constant * total + slope * side * distance
        polynomials[J, 1] += slope * total * width / 2


@part()
def _set_decays(decays: Any, distance_before: Any, distance: Any) -> Any:
    """Set decays[k] = e⁻⁽ᵏ⁺¹⁾ᵈ for a distance d, which is returned; there is nothing to do if it is the one before."""
    if distance != distance_before:
        step = np.exp(-distance)
        factor = step
        for k in range(TERMS):
            decays[k] = factor
            factor *= step
    return distance


@part()
def _add(total: Any, error: Any, term: Any) -> Any:
    """Kahan's compensated addition."""
    corrected = term - error
    result = total + corrected
    return result, (result - total) - corrected


@compiled(nogil=True)
def fourier_coefficients(
    cells: Any, offsets: Any, weights: Any, h: Any, sines: Any, cosines: Any, total: Any, parts: Any
) -> None:
    """Add Σ q cos(2nh·offset), Σ q sin(2nh·offset) for odd n and Σ q of each cell: A, B and Q of (31), unscaled.

    `parts` are zeros to work with, of the shapes of the three results.
    """
    part_sines, part_cosines, part_total = parts
    interval = _FLUSH if len(total) < _FLUSH else len(total)
    for i in range(len(cells)):
        c, q = cells[i], weights[i]
        angle = 2.0 * h * offsets[i]
        sine, cosine, twice = q * np.sin(angle), q * np.cos(angle), 2.0 * np.cos(2.0 * angle)
        sine_before, cosine_before = -sine, cosine
        part_total[c] += q
        for n in range(sines.shape[1]):
            part_cosines[c, n] += cosine
            part_sines[c, n] += sine
            sine, sine_before = twice * sine - sine_before, sine
            cosine, cosine_before = twice * cosine - cosine_before, cosine
        if i % interval == interval - 1 or i == len(cells) - 1:
            for c in range(len(total)):
                total[c] += part_total[c]
                part_total[c] = 0.0
                for n in range(sines.shape[1]):
                    sines[c, n] += part_sines[c, n]
                    cosines[c, n] += part_cosines[c, n]
                    part_sines[c, n] = part_cosines[c, n] = 0.0


@compiled(nogil=True)
def fourier_sums(
    targets: Any, first: Any, centres: Any, width: Any, cutoff: Any, h: Any, A: Any, B: Any, total: Any, above: Any,
    values: Any,
) -> None:  # fmt: skip
    """The sum (30): series of the clusters within the cut-off of a target, twice the weight of those farther above.

    No cluster before `first` of a target is within the cut-off; above[k] is the weight of the k-th and of all after it.
    """
    n_clusters = len(centres)
    shift_sine, shift_cosine = np.sin(2.0 * h * width), np.cos(2.0 * h * width)
    for i in range(len(targets)):
        y, k = targets[i], first[i]
        while k < n_clusters and y - centres[k] > cutoff:
            k += 1
        value = 0.0
        before, sine, cosine = np.inf, 0.0, 0.0
        while k < n_clusters and centres[k] - y <= cutoff:
            if centres[k] - before == width:
                sine, cosine = sine * shift_cosine - cosine * shift_sine, cosine * shift_cosine + sine * shift_sine
            else:
                angle = 2.0 * h * (y - centres[k])
                sine, cosine = np.sin(angle), np.cos(angle)
            value += total[k] + 4.0 / np.pi * _series(A[k], B[k], sine, cosine)
            before = centres[k]
            k += 1
        values[i] = value + 2.0 * above[k]


@part()
def _series(A: Any, B: Any, sine: Any, cosine: Any) -> Any:
    """Σ Bₙ cos(n·angle) − Aₙ sin(n·angle) over odd n, by the three-term recurrence of both."""
    twice = 2.0 * (cosine * cosine - sine * sine)
    sine_before, cosine_before = -sine, cosine
    value = 0.0
    for n in range(len(A)):
        value += B[n] * cosine - A[n] * sine
        sine, sine_before = twice * sine - sine_before, sine
        cosine, cosine_before = twice * cosine - cosine_before, cosine
    return value
