"""Row loop of OPAUC with covariances of low rank, at a cost that depends on the entries of a row alone.

With signs r_j ∈ {−1, 1}^τ drawn for every row, the scatter of a class is replaced by Z̄Z̄ᵀ, where
Z̄ = Σⱼ √weightⱼ·(xⱼ − c)·rⱼᵀ/√τ = Z − c·ρᵀ, with Z = Σⱼ √weightⱼ·xⱼrⱼᵀ/√τ and ρ = Σⱼ √weightⱼ·rⱼ/√τ. Both Z and the sum
s = Σⱼ weightⱼ·xⱼ change in the columns of a new row only, whereas the direction changes everywhere. So it is written in
terms of them,

    w = scale·base + B·p,        B = [s⁻, Z⁻, s⁺, Z⁺] with K = 2(τ + 1) columns,

and the loop keeps p, Bᵀw and BᵀB. A row costs O(K·nnz + K²). As rounding errors of the latter two add up, they are
computed anew once in as many rows as there are features.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.arrays import Floats
from toprank.compiled import compiled, part
from toprank.online._rows import discount, random_bits, record
from toprank.online._statistics import bounded_rate

_FEWEST_ROWS_BETWEEN = 256


class LowRank(NamedTuple):
    """State: w = scale·base + basis·p; products = basisᵀw; gram = basisᵀbasis; for each class its weight and ρ."""

    base: Floats
    scale: Floats
    basis: Floats
    p: Floats
    products: Floats
    gram: Floats
    total: Floats
    rho: Floats
    random: NDArray[np.uint64]
    time: NDArray[np.int64]


@compiled(nogil=True)
def learn_low_rank(rows: Any, state: Any, scores: Any, rate: Any, alpha: Any, room: Any) -> None:
    """Learn from rows, one after the other: score, count in the statistics of the class, step.

    `room` is for two vectors of the length of `p`.
    """
    width = len(state.p) // 2
    of_row, added, step = room[0], room[1, :width], room[1, width:]
    for t in range(len(rows.positive)):
        start, stop = rows.indptr[t], rows.indptr[t + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        label = 1 if rows.positive[t] else 0
        score, squared = _products_with(state, indices, values, of_row)
        record(scores.recent, scores.number, label, score)
        row = indices, values, score, squared
        _draw(state, label, rows.weights[t], added)
        _count(state, label, row, of_row, added)
        if state.total[1 - label] > 0.0:
            _step(state, label, row, of_row, rate * rows.weights[t], alpha, step)
        state.time[0] += 1
        if state.time[0] % max(len(state.base), _FEWEST_ROWS_BETWEEN) == 0:
            _refresh(state)


@part()
def _products_with(state: Any, indices: Any, values: Any, of_row: Any) -> Any:
    """Set of_row = Bᵀx, and return wᵀx and ‖x‖²."""
    score = squared = 0.0
    for a in range(len(of_row)):
        of_row[a] = 0.0
    for k in range(len(indices)):
        x, row = values[k], state.basis[indices[k]]
        score += state.base[indices[k]] * x
        squared += x * x
        for a in range(len(of_row)):
            of_row[a] += x * row[a]
    score *= state.scale[0]
    for a in range(len(of_row)):
        score += of_row[a] * state.p[a]
    return score, squared


@part()
def _draw(state: Any, label: Any, weight: Any, added: Any) -> None:
    """Set added = [weight, √weight·r/√τ] with random signs r, count the weight and add to ρ."""
    rank = len(added) - 1
    size = np.sqrt(weight / rank)
    added[0] = weight
    bits = np.uint64(0)
    for a in range(rank):
        if a % 64 == 0:
            bits = random_bits(state.random)
        added[a + 1] = size if bits & np.uint64(1) else -size
        bits >>= np.uint64(1)
        state.rho[label, a] += added[a + 1]
    state.total[label] += weight


@part()
def _count(state: Any, label: Any, row: Any, of_row: Any, added: Any) -> None:
    """Add x·addedᵀ to the columns of the class, and keep w, the products, the Gram matrix and Bᵀx in step."""
    indices, values, score, squared = row
    width = len(added)
    first = label * width
    moved = 0.0
    for a in range(width):
        moved += added[a] * state.p[first + a]
        state.products[first + a] += added[a] * score
    for k in range(len(indices)):
        on_basis = state.basis[indices[k]]
        state.base[indices[k]] -= values[k] * moved / state.scale[0]
        for a in range(width):
            on_basis[first + a] += values[k] * added[a]
    for a in range(2 * width):
        for b in range(width):
            state.gram[a, first + b] += of_row[a] * added[b]
            state.gram[first + b, a] += of_row[a] * added[b]
    for a in range(width):
        for b in range(width):
            state.gram[first + a, first + b] += squared * added[a] * added[b]
    for a in range(width):
        of_row[first + a] += squared * added[a]


@part()
def _step(state: Any, label: Any, row: Any, of_row: Any, rate: Any, alpha: Any, step: Any) -> None:
    """Step: w ← (1 − ηα)·w − η·[e·x − (e + ρᵀq/n)·c + Z·q/n], with e = wᵀ(x − c) − y and q = Zᵀw − ρ·cᵀw."""
    indices, values, score, squared = row
    width = len(step)
    first = (1 - label) * width
    n, rho = state.total[1 - label], state.rho[1 - label]
    of_mean = state.products[first] / n
    error = score - of_mean - (2.0 * label - 1.0)
    mean_squared = state.gram[first, first] / n / n
    curvature = max(0.0, squared - 2.0 * of_row[first] / n + mean_squared)
    along = 0.0
    for a in range(width - 1):
        z = first + 1 + a
        q = state.products[z] - rho[a] * of_mean
        step[a + 1] = q / n
        along += rho[a] * q / n
        spread = state.gram[z, z] - 2.0 * rho[a] * state.gram[z, first] / n + rho[a] * rho[a] * mean_squared
        curvature += max(0.0, spread) / n
    step[0] = -(error + along) / n
    rate = bounded_rate(rate, alpha, curvature)
    discount(state.base, state.scale, 1.0 - rate * alpha)
    for a in range(2 * width):
        state.p[a] *= 1.0 - rate * alpha
        state.products[a] = (1.0 - rate * alpha) * state.products[a] - rate * error * of_row[a]
    for b in range(width):
        state.p[first + b] -= rate * step[b]
        for a in range(2 * width):
            state.products[a] -= rate * step[b] * state.gram[first + b, a]
    for k in range(len(indices)):
        state.base[indices[k]] -= rate * error * values[k] / state.scale[0]


@part()
def _refresh(state: Any) -> None:
    """Write w to `base`, and compute the products and the Gram matrix from their definitions."""
    size = len(state.p)
    state.products[:] = 0.0
    state.gram[:] = 0.0
    for i in range(len(state.base)):
        row = state.basis[i]
        w = state.scale[0] * state.base[i]
        for a in range(size):
            w += row[a] * state.p[a]
        state.base[i] = w
        for a in range(size):
            if row[a] != 0.0:
                state.products[a] += row[a] * w
                for b in range(size):
                    state.gram[a, b] += row[a] * row[b]
    state.p[:] = 0.0
    state.scale[0] = 1.0
