"""One row loop for all rankers that pair a new row with the buffer of the other class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats, Mask
from toprank.compiled import compiled
from toprank.online._confidence import LARGEST_INFORMATION, forget_full, information, multiplier, project, shrink
from toprank.online._rows import discount, record, sparse_dot
from toprank.online.buffers import count, filled, insert

FULL, DIAGONAL, SEQUENTIAL, GRADIENT = 0, 1, 2, 3


class Ranker(NamedTuple):
    """What is learned, and room to work in.

    `factor` and `variances` are those of the full covariance; for the diagonal one the inverse variances are
    1 + scale·gained. What a method does not have is empty. `row` has an entry a feature and is zero between rows.
    The rest tells which pairs need no step, see `in_order`: for each slot of the buffers its score, its spread
    √(xᵀΣx) and the value of `moved` when its score was computed; `moved` is the sum of the moves α√v so far. The last
    says whether any feature was negative.
    """

    weights: Floats
    factor: Floats
    variances: Floats
    gained: Floats
    scale: Floats
    time: NDArray[np.int64]
    row: Floats
    slot_score: Floats
    slot_spread: Floats
    slot_moved: Floats
    moved: Floats
    has_negative: Mask


class Options(NamedTuple):
    """Parameters of the loop: numbers of the method and the policy, C and whether it grows, φ, factor of forgetting."""

    method: int
    policy: int
    C: float
    growing: bool
    phi: float
    kept: float


@compiled(nogil=True)
def learn_pairs(rows: Any, ranker: Any, buffers: Any, scores: Any, options: Any) -> None:
    """Learn from rows, one after the other.

    1. Score the row with the model so far.
    2. Take C times the weight of the row; if it grows, also times max(1, seen / size of the buffer) of the other class.
    3. Take a step for each row in the buffer of the other class.
    4. Offer the row to the buffer of its class.
    """
    room = _room(ranker, buffers, options.method)
    for t in range(len(rows.positive)):
        start, stop = rows.indptr[t], rows.indptr[t + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        label = 1 if rows.positive[t] else 0
        score = sparse_dot(ranker.weights, indices, values)
        record(scores, label, score)
        count(buffers, label, rows.weights[t], options.kept)
        if options.kept < 1.0:
            _forget(ranker, options, room)
        penalty = options.C * rows.weights[t]
        if options.growing:
            penalty *= max(1.0, buffers.seen[1 - label] / buffers.size[1 - label])
        for k in range(len(indices)):
            ranker.row[indices[k]] = values[k]
            if values[k] < 0.0:
                ranker.has_negative[0] = True
        spread, moved = _spread(ranker, indices, values, options.method, room), ranker.moved[0]
        if options.method == GRADIENT:
            _step_gradient(ranker, buffers, label, indices, values, score, penalty)
        else:
            row = label, indices, values
            score, spread, moved = _steps(ranker, buffers, row, score, spread, penalty, options, room)
        for k in range(len(indices)):
            ranker.row[indices[k]] = 0.0
        slot = insert(buffers, options.policy, label, indices, values, rows.weights[t])
        if slot >= 0:
            ranker.slot_score[label, slot] = score
            ranker.slot_spread[label, slot] = spread
            ranker.slot_moved[label, slot] = moved
        ranker.time[0] += 1


@compiled(nogil=True)
def _room(ranker: Any, buffers: Any, method: Any) -> Any:
    """Arrays to work in: three of padded length for the full covariance, columns and values of a pair else."""
    padded, pair = len(ranker.variances), 2 * buffers.indices.shape[2]
    z = np.zeros(padded if method == FULL else pair)
    return z, np.zeros(padded), np.zeros(padded), np.zeros(pair, np.int32)


@compiled(nogil=True)
def _forget(ranker: Any, options: Any, room: Any) -> None:
    """Forget a part, which makes no variance larger than by the factor 1/kept."""
    if options.method == FULL:
        _, projected, product, _ = room
        n_features = len(ranker.weights)
        forget_full(ranker.factor, ranker.variances, options.kept, n_features, ranker.time[0], projected, product)
    else:
        discount(ranker.gained, ranker.scale, options.kept)  # what was gained over the start
    growth = np.sqrt(1.0 / options.kept)
    for label in range(2):
        for slot in range(ranker.slot_spread.shape[1]):
            ranker.slot_spread[label, slot] *= growth


@compiled(nogil=True)
def _spread(ranker: Any, indices: Any, values: Any, method: Any, room: Any) -> Any:
    """√(xᵀΣx), where Σ is the identity for first-order steps; the entries of x are in ranker.row, too."""
    v = 0.0
    if method == FULL:
        z, projected, _, _ = room
        for i in range(len(ranker.weights)):
            z[i] = ranker.row[i]
        v = project(ranker.factor, ranker.variances, z, projected)
    elif method == DIAGONAL:
        for k in range(len(indices)):
            v += values[k] * values[k] / (1.0 + ranker.scale[0] * ranker.gained[indices[k]])
    else:
        for k in range(len(indices)):
            v += values[k] * values[k]
    return np.sqrt(v)


@compiled(nogil=True)
def in_order(ranker: Any, other: Any, slot: Any, sign: Any, score: Any, spread: Any, moved: Any, needed: Any) -> Any:
    """Whether a pair is surely in the right order by the margin that it needs, so that its step would be none.

    A step by αyΣz changes any score xᵀw by α·|zᵀΣx| at most, which is no more than α√v·√(xᵀΣx), and spreads √(xᵀΣx)
    never grow but by forgetting. So scores computed some steps ago bound those of now. The last term is for rounding.
    """
    against = ranker.slot_score[other, slot]
    uncertain = (ranker.moved[0] - moved) * spread
    uncertain += (ranker.moved[0] - ranker.slot_moved[other, slot]) * ranker.slot_spread[other, slot]
    uncertain += 1e-9 * (abs(score) + abs(against) + needed)
    return sign * (score - against) - uncertain >= needed


@compiled(nogil=True)
def _products(ranker: Any, there: Any, entries: Any) -> Any:
    """xᵀw, xᵀΣx_t and xᵀΣx for a diagonal Σ."""
    score = overlap = squared = 0.0
    for k in range(len(there)):
        i = there[k]
        scaled = entries[k] / (1.0 + ranker.scale[0] * ranker.gained[i])
        score += ranker.weights[i] * entries[k]
        overlap += scaled * ranker.row[i]
        squared += scaled * entries[k]
    return score, overlap, squared


@compiled(nogil=True)
def _steps(ranker: Any, buffers: Any, row: Any, score: Any, spread: Any, penalty: Any, options: Any, room: Any) -> Any:
    """A step for each row in the buffer of the other class, unless bounds say that it would be none.

    Confidence-weighted steps need a margin of φ√v. With the spreads a and b of both rows, √v is at most a + b; if Σ is
    diagonal, v is a² + b² minus twice the overlap x_tᵀΣx, which is not negative if no feature is. Where bounds from
    earlier scores and spreads do not decide, those of now do. Returns the latest score and spread of the row, and the
    value of `moved` when the score was computed.
    """
    label, indices, values = row
    other, sign, moved, method = 1 - label, 2.0 * label - 1.0, ranker.moved[0], options.method
    for slot in range(filled(buffers, other)):
        spread_there = ranker.slot_spread[other, slot]
        squared = spread * spread + spread_there * spread_there
        if method == SEQUENTIAL:
            needed = 1.0
        elif method == DIAGONAL and not ranker.has_negative[0]:
            needed = options.phi * np.sqrt(squared)
        else:
            needed = options.phi * (spread + spread_there)
        if in_order(ranker, other, slot, sign, score, spread, moved, needed):
            continue
        n = buffers.length[other, slot]
        there, entries = buffers.indices[other, slot, :n], buffers.values[other, slot, :n]
        ranker.slot_moved[other, slot] = ranker.moved[0]
        if moved != ranker.moved[0]:
            score, moved = sparse_dot(ranker.weights, indices, values), ranker.moved[0]
            if method == DIAGONAL:
                spread = _spread(ranker, indices, values, method, room)
        if method == DIAGONAL:
            against, overlap, squared = _products(ranker, there, entries)
            ranker.slot_score[other, slot], ranker.slot_spread[other, slot] = against, np.sqrt(squared)
            needed = options.phi * np.sqrt(max(0.0, spread * spread + squared - 2.0 * overlap))
        else:
            ranker.slot_score[other, slot] = sparse_dot(ranker.weights, there, entries)
        if in_order(ranker, other, slot, sign, score, spread, moved, needed):
            continue
        if method == FULL:
            ranker.moved[0] += _step_full(ranker, there, entries, sign, penalty, options.phi, room)
            continue
        n = _difference(there, entries, indices, values, ranker.row, room)
        if method == DIAGONAL:
            ranker.moved[0] += _step_diagonal(ranker, n, sign, penalty, options.phi, room)
        else:
            ranker.moved[0] += _step_passive_aggressive(ranker, n, sign, penalty, room)
    return score, spread, moved


@compiled(nogil=True)
def _step_full(ranker: Any, there: Any, entries: Any, sign: Any, penalty: Any, phi: Any, room: Any) -> Any:
    """A confidence-weighted step with the full covariance; returns α√v."""
    z, projected, product, _ = room
    d = len(ranker.weights)
    for i in range(d):
        z[i] = ranker.row[i]
    for k in range(len(there)):
        z[there[k]] -= entries[k]
    v = project(ranker.factor, ranker.variances, z, projected)
    m = 0.0
    for i in range(d):
        m += ranker.weights[i] * z[i]
    alpha = multiplier(v, sign * m, phi, penalty)
    if alpha > 0.0:
        shrink(ranker.factor, ranker.variances, projected, 1.0 / information(v, alpha, phi), product)
        for i in range(d):
            ranker.weights[i] += alpha * sign * product[i]
    return alpha * np.sqrt(v)


@compiled(nogil=True)
def _difference(there: Any, entries: Any, indices: Any, values: Any, row: Any, room: Any) -> Any:
    """Write the entries and columns of x_t − x to the room; return how many there are.

    `row` holds x_t with its zeros. An entry that was used is set to zero and restored in the second pass.
    """
    z, _, _, columns = room
    n = len(there)
    for k in range(n):
        i = there[k]
        columns[k] = i
        z[k] = row[i] - entries[k]
        row[i] = 0.0
    for k in range(len(indices)):
        i = indices[k]
        columns[n] = i
        z[n] = values[k]
        n += row[i] != 0.0
        row[i] = values[k]
    return n


@compiled(nogil=True)
def _step_diagonal(ranker: Any, n: Any, sign: Any, penalty: Any, phi: Any, room: Any) -> Any:
    """A confidence-weighted step with a diagonal covariance; returns α√v."""
    z, _, _, columns = room
    scale = ranker.scale[0]
    v = m = 0.0
    for k in range(n):
        i = columns[k]
        v += z[k] * z[k] / (1.0 + scale * ranker.gained[i])
        m += ranker.weights[i] * z[k]
    alpha = multiplier(v, sign * m, phi, penalty)
    if alpha > 0.0:
        gain = information(v, alpha, phi) / scale
        for k in range(n):
            i = columns[k]
            ranker.weights[i] += alpha * sign * z[k] / (1.0 + scale * ranker.gained[i])
            ranker.gained[i] = min(ranker.gained[i] + gain * z[k] * z[k], LARGEST_INFORMATION / scale)
    return alpha * np.sqrt(v)


@compiled(nogil=True)
def _step_passive_aggressive(ranker: Any, n: Any, sign: Any, penalty: Any, room: Any) -> Any:
    """The smallest change of w that leaves no hinge loss, or one of length C·‖z‖; returns its length."""
    z, _, _, columns = room
    v = m = 0.0
    for k in range(n):
        v += z[k] * z[k]
        m += ranker.weights[columns[k]] * z[k]
    if not (sign * m < 1.0 and v > 0.0):
        return 0.0
    step = min(penalty, (1.0 - sign * m) / v)
    for k in range(n):
        ranker.weights[columns[k]] += sign * step * z[k]
    return step * np.sqrt(v)


@compiled(nogil=True)
def _step_gradient(ranker: Any, buffers: Any, label: Any, indices: Any, values: Any, score: Any, penalty: Any) -> None:
    """One step along the subgradient of the sum of the hinge losses of all pairs with the buffer."""
    other, sign = 1 - label, 2.0 * label - 1.0
    margins = np.empty(filled(buffers, other))
    for slot in range(len(margins)):
        n = buffers.length[other, slot]
        against = sparse_dot(ranker.weights, buffers.indices[other, slot, :n], buffers.values[other, slot, :n])
        margins[slot] = sign * (score - against)
    violated = 0
    for slot in range(len(margins)):
        if margins[slot] < 1.0:
            violated += 1
            for k in range(buffers.length[other, slot]):
                i = buffers.indices[other, slot, k]
                ranker.weights[i] -= penalty * sign * buffers.values[other, slot, k]
    for k in range(len(indices)):
        ranker.weights[indices[k]] += penalty * sign * violated * values[k]
