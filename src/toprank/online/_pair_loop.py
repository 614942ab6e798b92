"""One row loop for all rankers that pair a new row with the buffer of the other class."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats, Mask
from toprank.compiled import compiled, part
from toprank.online._confidence import LARGEST_INFORMATION, forget_full, information, multiplier, project, shrink
from toprank.online._rows import discount, record, sparse_dot
from toprank.online.buffers import filled, insert


class Ranker(NamedTuple):
    """What all methods learn. `row` has an entry a feature and is zero between rows.

    The rest tells which pairs need no step, see `in_order`: for each slot of the buffers its score, its spread
    √(xᵀΣx) and the value of `moved` when its score was computed; `moved` is the sum of the moves α√v so far. The last
    says whether any feature was negative.
    """

    weights: Floats
    time: NDArray[np.int64]
    row: Floats
    slot_score: Floats
    slot_spread: Floats
    slot_moved: Floats
    moved: Floats
    has_negative: Mask


class Full(NamedTuple):
    """A full covariance in factors, and three vectors to work in."""

    factor: Floats
    variances: Floats
    z: Floats
    projected: Floats
    product: Floats


class Diagonal(NamedTuple):
    """A diagonal covariance: the inverse variances are 1 + scale·gained; and room for a pair."""

    gained: Floats
    scale: Floats
    columns: NDArray[np.int32]
    z: Floats


class Pair(NamedTuple):
    """Room for the difference of two sparse rows."""

    columns: NDArray[np.int32]
    z: Floats


def room_for_pair(capacity: int) -> Pair:
    """Room for two rows of so many entries."""
    return Pair(np.zeros(2 * capacity, np.int32), np.zeros(2 * capacity))


class Method(NamedTuple):
    """What a method of learning has; what it does not have is None, and is not compiled.

    `kept` is the factor of forgetting, `margins` is room for those of steps along the gradient; a full or a diagonal
    covariance, or room for a pair of first-order steps.
    """

    kept: float | None = None
    full: Full | None = None
    diagonal: Diagonal | None = None
    pair: Pair | None = None
    margins: Floats | None = None


class Options(NamedTuple):
    """Parameters of the loop: number of the policy, C and whether it grows, φ."""

    policy: int
    C: float
    growing: bool
    phi: float


@compiled(nogil=True)
def learn_pairs(
    rows: Any, ranker: Any, buffers: Any, scores: Any, options: Any,
    kept: Any, full: Any, diagonal: Any, pair: Any, margins: Any,
) -> None:  # fmt: skip
    """Learn from rows, one after the other.

    1. Score the row with the model so far.
    2. Take C times the weight of the row; if it grows, also times max(1, seen / size of the buffer) of the other class.
    3. Take a step for each row in the buffer of the other class.
    4. Offer the row to the buffer of its class.

    The last five are those of `Method`. They come one by one, as a branch on an argument that is None is not compiled.
    """
    for t in range(len(rows.positive)):
        start, stop = rows.indptr[t], rows.indptr[t + 1]
        indices, values, weight = rows.indices[start:stop], rows.values[start:stop], rows.weights[t]
        label = 1 if rows.positive[t] else 0
        score = sparse_dot(ranker.weights, indices, values)
        record(scores.recent, scores.number, label, score)
        if kept is not None:
            _forget(ranker.slot_spread, buffers.seen, kept, full, diagonal, len(ranker.weights), ranker.time[0])
        buffers.seen[label] += weight
        penalty = options.C * weight
        if options.growing and buffers.seen[1 - label] > buffers.size[1 - label]:
            penalty *= buffers.seen[1 - label] / buffers.size[1 - label]
        for k in range(len(indices)):
            ranker.row[indices[k]] = values[k]
            if values[k] < 0.0:
                ranker.has_negative[0] = True
        spread, moved = _spread(ranker.row, indices, values, full, diagonal), ranker.moved[0]
        if margins is not None:
            _step_gradient(ranker.weights, buffers, label, indices, values, score, penalty, margins)
        else:
            row = label, indices, values, score, spread
            score, spread, moved = _steps(ranker, buffers, row, penalty, options.phi, full, diagonal, pair)
        for k in range(len(indices)):
            ranker.row[indices[k]] = 0.0
        slot = insert(buffers, options.policy, label, indices, values, weight)
        if slot >= 0:
            ranker.slot_score[label, slot] = score
            ranker.slot_spread[label, slot] = spread
            ranker.slot_moved[label, slot] = moved
        ranker.time[0] += 1


@part()
def _forget(spreads: Any, seen: Any, kept: Any, full: Any, diagonal: Any, n_features: Any, time: Any) -> None:
    """Forget a part, which makes no variance larger than by the factor 1/kept."""
    seen[0] *= kept
    seen[1] *= kept
    if full is not None:
        forget_full(full.factor, full.variances, kept, n_features, time, full.projected, full.product)
    if diagonal is not None:
        discount(diagonal.gained, diagonal.scale, kept)  # what was gained over the start
    growth = np.sqrt(1.0 / kept)
    for label in range(2):
        for slot in range(spreads.shape[1]):
            spreads[label, slot] *= growth


@part()
def _spread(row: Any, indices: Any, values: Any, full: Any, diagonal: Any) -> Any:
    """√(xᵀΣx), where Σ is the identity for first-order steps; `row` has the entries of x, too."""
    v = 0.0
    if full is not None:
        for i in range(len(row)):
            full.z[i] = row[i]
        v = project(full.factor, full.variances, full.z, full.projected)
    elif diagonal is not None:
        for k in range(len(indices)):
            v += values[k] * values[k] / (1.0 + diagonal.scale[0] * diagonal.gained[indices[k]])
    else:
        for k in range(len(indices)):
            v += values[k] * values[k]
    return np.sqrt(v)


@part()
def in_order(margin: Any, sizes: Any, moved: Any, spread: Any, moved_there: Any, spread_there: Any, needed: Any) -> Any:
    """Whether a pair is surely in the right order by the margin that it needs, so that its step would be none.

    A step by αyΣz changes any score xᵀw by α·|zᵀΣx| at most, which is no more than α√v·√(xᵀΣx), and spreads √(xᵀΣx)
    never grow but by forgetting. So scores computed some steps ago bound those of now: `moved` is how much was moved
    since. The last term is for rounding, with the sizes |s| + |s'| of the scores.
    """
    uncertain = moved * spread
    uncertain += moved_there * spread_there
    uncertain += 1e-9 * (sizes + needed)
    return margin - uncertain >= needed


@part()
def _products(weights: Any, row: Any, diagonal: Any, there: Any, entries: Any) -> Any:
    """xᵀw, xᵀΣx_t and xᵀΣx for a diagonal Σ."""
    score = overlap = squared = 0.0
    for k in range(len(there)):
        i = there[k]
        scaled = entries[k] / (1.0 + diagonal.scale[0] * diagonal.gained[i])
        score += weights[i] * entries[k]
        overlap += scaled * row[i]
        squared += scaled * entries[k]
    return score, overlap, squared


@part()
def _steps(ranker: Any, buffers: Any, row: Any, penalty: Any, phi: Any, full: Any, diagonal: Any, pair: Any) -> Any:
    """A step for each row in the buffer of the other class, unless bounds say that it would be none.

    Confidence-weighted steps need a margin of φ√v. With the spreads a and b of both rows, √v is at most a + b; if Σ is
    diagonal, v is a² + b² minus twice the overlap x_tᵀΣx, which is not negative if no feature is. Where bounds from
    earlier scores and spreads do not decide, those of now do. Returns the latest score and spread of the row, and the
    value of `moved` when the score was computed.
    """
    label, indices, values, score, spread = row
    other, sign, moved = 1 - label, 2.0 * label - 1.0, ranker.moved[0]
    for slot in range(filled(buffers.inserted, buffers.size, other)):
        now, there_score, there_spread = (
            ranker.moved[0],
            ranker.slot_score[other, slot],
            ranker.slot_spread[other, slot],
        )
        needed = phi * (spread + there_spread)
        if pair is not None:
            needed = 1.0
        if diagonal is not None and not ranker.has_negative[0]:
            needed = phi * np.sqrt(spread * spread + there_spread * there_spread)
        margin, sizes = sign * (score - there_score), abs(score) + abs(there_score)
        since, since_there = now - moved, now - ranker.slot_moved[other, slot]
        if in_order(margin, sizes, since, spread, since_there, there_spread, needed):
            continue
        n = buffers.length[other, slot]
        there, entries = buffers.indices[other, slot, :n], buffers.values[other, slot, :n]
        ranker.slot_moved[other, slot] = now
        if moved != now:
            score, moved = sparse_dot(ranker.weights, indices, values), now
            if diagonal is not None:
                spread = _spread(ranker.row, indices, values, full, diagonal)
        if diagonal is not None:
            there_score, overlap, squared = _products(ranker.weights, ranker.row, diagonal, there, entries)
            ranker.slot_spread[other, slot] = np.sqrt(squared)
            needed = spread * spread + squared - 2.0 * overlap
            needed = phi * np.sqrt(needed if needed > 0.0 else 0.0)
        else:
            there_score = sparse_dot(ranker.weights, there, entries)
        ranker.slot_score[other, slot] = there_score
        margin, sizes = sign * (score - there_score), abs(score) + abs(there_score)
        if in_order(margin, sizes, 0.0, 0.0, 0.0, 0.0, needed):
            continue
        if full is not None:
            now += _step_full(ranker.weights, ranker.row, there, entries, sign, penalty, phi, full)
        if diagonal is not None:
            n = _difference(there, entries, indices, values, ranker.row, diagonal.columns, diagonal.z)
            now += _step_diagonal(ranker.weights, n, sign, penalty, phi, diagonal)
        if pair is not None:
            n = _difference(there, entries, indices, values, ranker.row, pair.columns, pair.z)
            now += _step_passive_aggressive(ranker.weights, n, sign, penalty, pair.columns, pair.z)
        ranker.moved[0] = now
    return score, spread, moved


@part()
def _step_full(weights: Any, row: Any, there: Any, entries: Any, sign: Any, penalty: Any, phi: Any, full: Any) -> Any:
    """A confidence-weighted step with the full covariance; returns α√v."""
    z, product, d = full.z, full.product, len(weights)
    for i in range(d):
        z[i] = row[i]
    for k in range(len(there)):
        z[there[k]] -= entries[k]
    v = project(full.factor, full.variances, z, full.projected)
    m = 0.0
    for i in range(d):
        m += weights[i] * z[i]
    alpha = multiplier(v, sign * m, phi, penalty)
    if alpha > 0.0:
        shrink(full.factor, full.variances, full.projected, 1.0 / information(v, alpha, phi), product)
        for i in range(d):
            weights[i] += alpha * sign * product[i]
    return alpha * np.sqrt(v)


@part()
def _difference(there: Any, entries: Any, indices: Any, values: Any, row: Any, columns: Any, z: Any) -> Any:
    """Write the columns and entries of x_t − x to the room; return how many there are.

    `row` holds x_t with its zeros. An entry that was used is set to zero and restored in the second pass.
    """
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


@part()
def _step_diagonal(weights: Any, n: Any, sign: Any, penalty: Any, phi: Any, diagonal: Any) -> Any:
    """A confidence-weighted step with a diagonal covariance; returns α√v."""
    gained, scale, columns, z = diagonal.gained, diagonal.scale[0], diagonal.columns, diagonal.z
    v = m = 0.0
    for k in range(n):
        i = columns[k]
        v += z[k] * z[k] / (1.0 + scale * gained[i])
        m += weights[i] * z[k]
    alpha = multiplier(v, sign * m, phi, penalty)
    if alpha > 0.0:
        gain, largest = information(v, alpha, phi) / scale, LARGEST_INFORMATION / scale
        for k in range(n):
            i = columns[k]
            weights[i] += alpha * sign * z[k] / (1.0 + scale * gained[i])
            after = gained[i] + gain * z[k] * z[k]
            gained[i] = after if after < largest else largest
    return alpha * np.sqrt(v)


@part()
def _step_passive_aggressive(weights: Any, n: Any, sign: Any, penalty: Any, columns: Any, z: Any) -> Any:
    """The smallest change of w that leaves no hinge loss, or one of length C·‖z‖; returns its length."""
    v = m = 0.0
    for k in range(n):
        v += z[k] * z[k]
        m += weights[columns[k]] * z[k]
    if not (sign * m < 1.0 and v > 0.0):
        return 0.0
    step = (1.0 - sign * m) / v
    step = step if step < penalty else penalty
    for k in range(n):
        weights[columns[k]] += sign * step * z[k]
    return step * np.sqrt(v)


@part()
def _step_gradient(
    weights: Any, buffers: Any, label: Any, indices: Any, values: Any, score: Any, penalty: Any, margins: Any
) -> None:
    """One step along the subgradient of the sum of the hinge losses of all pairs with the buffer."""
    other, sign = 1 - label, 2.0 * label - 1.0
    slots = filled(buffers.inserted, buffers.size, other)
    for slot in range(slots):
        n = buffers.length[other, slot]
        against = sparse_dot(weights, buffers.indices[other, slot, :n], buffers.values[other, slot, :n])
        margins[slot] = sign * (score - against)
    violated = 0
    for slot in range(slots):
        if margins[slot] < 1.0:
            violated += 1
            for k in range(buffers.length[other, slot]):
                i = buffers.indices[other, slot, k]
                weights[i] -= penalty * sign * buffers.values[other, slot, k]
    for k in range(len(indices)):
        weights[indices[k]] += penalty * sign * violated * values[k]
