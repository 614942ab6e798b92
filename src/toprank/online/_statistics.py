"""Row loop of the rankers that keep means and covariances of the classes instead of rows: OPAUC and AdaOAM.

The loss of a row x of class y is the mean of ½(1 − y·wᵀ(x − x'))² over all rows x' of the other class seen so far. With
their mean c and covariance S it is a function of these alone, and its gradient is

    (e − y)·(x − c) + S·w,        e = wᵀ(x − c).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from toprank.arrays import Floats
from toprank.compiled import compiled, part
from toprank.online._base import require_room
from toprank.online._rows import record, sparse_dot
from toprank.saved_state import Array

# Rules for what `Statistics` holds, but for the squared gradients.
STATISTICS = {
    "weights_": Array("f8", ("n_features_in_",)),
    "total_": Array("f8", (2,), low=0),
    "mean_": Array("f8", (2, "n_features_in_"), rowwise=True),
    "scatter_": Array("f8", (2, "n_features_in_", "n_features_in_"), rowwise=True),
}


def statistics_of_no_rows(n_features: int, n_squares: int, remedy: str) -> Statistics:
    """What a ranker starts with."""
    require_room(f"two covariances of {n_features} features", 2 * n_features**2, remedy)
    return Statistics(
        weights=np.zeros(n_features),
        total=np.zeros(2),
        mean=np.zeros((2, n_features)),
        scatter=np.zeros((2, n_features, n_features)),
        squares=np.zeros(n_squares),
    )


class Statistics(NamedTuple):
    """State: direction; total weight, mean and scatter Σ weight·(x − c)(x − c)ᵀ of each class; squared gradients.

    `squares` holds their sums, and is empty if the steps are not adapted to the features.
    """

    weights: Floats
    total: Floats
    mean: Floats
    scatter: Floats
    squares: Floats


@compiled(nogil=True)
def learn_statistics(rows: Any, statistics: Any, scores: Any, rate: Any, alpha: Any, delta: Any, room: Any) -> None:
    """Learn from rows, one after the other: score, count in the statistics of the class, step.

    `room` is for two vectors.
    """
    offset, gradient = room[0], room[1]
    for t in range(len(rows.positive)):
        start, stop = rows.indptr[t], rows.indptr[t + 1]
        indices, values = rows.indices[start:stop], rows.values[start:stop]
        label = 1 if rows.positive[t] else 0
        record(scores.recent, scores.number, label, sparse_dot(statistics.weights, indices, values))
        _offset(statistics.mean[label], indices, values, offset)
        _count(statistics, label, rows.weights[t], offset)
        if statistics.total[1 - label] == 0.0:
            continue
        _offset(statistics.mean[1 - label], indices, values, offset)
        curvature = _gradient(statistics, 1 - label, 2.0 * label - 1.0, offset, gradient)
        if len(statistics.squares) > 0:
            _adaptive_step(statistics, rate, alpha, delta, rows.weights[t], gradient)
        else:
            _step(statistics.weights, rate, alpha, rows.weights[t], curvature, gradient)


@part()
def _offset(mean: Any, indices: Any, values: Any, offset: Any) -> None:
    """Set offset = x − mean."""
    for i in range(len(mean)):
        offset[i] = -mean[i]
    for k in range(len(indices)):
        offset[indices[k]] += values[k]


@part()
def _count(statistics: Any, label: Any, weight: Any, offset: Any) -> None:
    """Count a row whose offset from the mean so far is given; the scatter grows by a positive multiple of a square."""
    mean, scatter = statistics.mean[label], statistics.scatter[label]
    before = statistics.total[label]
    statistics.total[label] = before + weight
    share = weight / (before + weight)
    for i in range(len(mean)):
        mean[i] += share * offset[i]
        factor = share * before * offset[i]
        if factor != 0.0:
            for j in range(len(mean)):
                scatter[i, j] += factor * offset[j]


@part()
def _gradient(statistics: Any, other: Any, sign: Any, offset: Any, gradient: Any) -> Any:
    """Set the gradient, and return ‖x − c‖² + tr S, which bounds its Lipschitz constant."""
    weights, scatter, count = statistics.weights, statistics.scatter[other], statistics.total[other]
    for i in range(len(weights)):
        gradient[i] = 0.0
    for i in range(len(weights)):
        if weights[i] != 0.0:
            factor = weights[i] / count
            for j in range(len(weights)):
                gradient[j] += scatter[i, j] * factor
    score = curvature = 0.0
    for i in range(len(weights)):
        score += weights[i] * offset[i]
        curvature += offset[i] * offset[i] + scatter[i, i] / count
    for i in range(len(weights)):
        gradient[i] += (score - sign) * offset[i]
    return curvature


@part()
def _step(weights: Any, rate: Any, alpha: Any, weight: Any, curvature: Any, gradient: Any) -> None:
    """A gradient step with the penalty α/2·‖w‖², no longer than one over its Lipschitz constant."""
    rate = bounded_rate(rate * weight, alpha, curvature)
    for i in range(len(weights)):
        weights[i] -= rate * (alpha * weights[i] + gradient[i])


@part()
def bounded_rate(rate: Any, alpha: Any, curvature: Any) -> Any:
    """The rate, or where that is smaller 1/(2α + curvature): longer steps would diverge."""
    return min(rate, 1.0 / max(2.0 * alpha + curvature, 1e-300))


@part()
def _adaptive_step(statistics: Any, rate: Any, alpha: Any, delta: Any, weight: Any, gradient: Any) -> None:
    """A step in which feature i has the rate divided by δ + √(sum of its squared gradients)."""
    weights, squares = statistics.weights, statistics.squares
    for i in range(len(weights)):
        slope = weight * (alpha * weights[i] + gradient[i])
        squares[i] += slope * slope
        weights[i] -= rate * slope / (delta + np.sqrt(squares[i]))
