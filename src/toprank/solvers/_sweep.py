"""Compiled loops: arrays only, cached, compiled on first use."""

from __future__ import annotations

from typing import Any, NamedTuple

from toprank.compiled import compiled


class SweepRows(NamedTuple):
    """CSR rows, and of each its sign, the curvature of its conjugate, that of the dual, and its largest multiplier."""

    indptr: Any
    indices: Any
    data: Any
    sign: Any
    bend: Any
    curvature: Any
    most: Any


@compiled(nogil=True)
def sweep(rows: SweepRows, order: Any, w: Any, multipliers: Any, t: float, scales: Any, lacking: Any) -> float:
    """Set the multipliers of the rows, in the given order, to their best values one by one; returns the threshold t.

    `scales` are the shift of the surrogate, 1 / α and 1 / ε; w and the multipliers are changed in place, and what the
    score of each row lacked, as far as its multiplier could be changed, is written to `lacking`.
    """
    shift, per_alpha, per_epsilon = scales
    for i in order:
        score = 0.0
        for q in range(rows.indptr[i], rows.indptr[i + 1]):
            score += rows.data[q] * w[rows.indices[q]]
        lacks = rows.sign[i] * (t - score) - rows.bend[i] * multipliers[i]
        if rows.sign[i] > 0:
            lacks += shift
        new = min(max(multipliers[i] + lacks / rows.curvature[i], 0.0), rows.most[i])
        change = rows.sign[i] * (new - multipliers[i])
        lacking[i] = abs(change) * rows.curvature[i]
        if change != 0.0:
            multipliers[i] = new
            t -= change * per_epsilon
            for q in range(rows.indptr[i], rows.indptr[i + 1]):
                w[rows.indices[q]] += change * per_alpha * rows.data[q]
    return t
