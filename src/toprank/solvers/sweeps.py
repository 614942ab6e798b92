r"""A first point of the pair method for sparse rows: sweeps over single multipliers, as those of LIBLINEAR.

A step costs the entries of one row, not a product with a working set. The sums of the multipliers have to be equal, so
that no single one could be changed; a penalty ε/2 t² on the threshold takes that condition away, and

.. math:: w = \frac1\alpha \Big( \sum_i u_i x_i - \sum_j b_j x_j \Big), \qquad
          t = \frac1\epsilon \Big( \sum_j b_j - \sum_i u_i \Big)

follow from the multipliers. With 1/ε as large as the mean ‖x‖²/α the sums are nearly equal, and the threshold is one
feature more. In some sweeps it shows which rows matter; to find out the last of them takes hundreds, which the pair
method does not need.

1. A sweep over all rows, in random order.
2. Some over those with a multiplier; then again from 1, a few times.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from toprank.solvers._sweep import SweepRows, sweep
from toprank.solvers.problem import DualPoint, Problem

# How often all rows are swept, and how often those with a multiplier after each time.
_ROUNDS, _SWEEPS = 4, 4


def has_sweeps(problem: Problem) -> bool:
    """Whether the rows are sparse and the threshold is the largest score of the negatives."""
    formulation = problem.formulation
    of_largest = formulation.threshold.is_maximum and formulation.threshold.caps(problem.threshold_weights) is None
    return issparse(problem.X) and of_largest and formulation.over == "negatives"


def swept(problem: Problem) -> tuple[DualPoint | None, float]:
    """A dual point, if there is one, and the passes over the data that it took."""
    X, positive, surrogate = problem.X, problem.positive, problem.formulation.surrogate.pieces
    squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    per_epsilon = float(squares.mean()) / problem.alpha
    bend = np.zeros(len(positive))
    most = np.full(len(positive), np.inf)
    bend[positive] = surrogate.width / problem.positive_share
    most[positive] = surrogate.max_slope * problem.positive_share
    curvature = np.maximum(squares / problem.alpha + per_epsilon + bend, np.finfo(float).tiny)
    rows = SweepRows(X.indptr, X.indices, X.data, np.where(positive, 1.0, -1.0), bend, curvature, most)
    scales, rng = np.array([surrogate.shift, 1 / problem.alpha, per_epsilon]), np.random.default_rng(0)
    w, multipliers, t, passes = np.zeros(X.shape[1]), np.zeros(len(positive)), 0.0, 0.0
    for _ in range(_ROUNDS):
        # 1. All rows.
        t = sweep(rows, rng.permutation(len(positive)), w, multipliers, t, scales)
        # 2. Those with a multiplier.
        for _ in range(_SWEEPS):
            active = np.flatnonzero(multipliers)
            t = sweep(rows, rng.permutation(active), w, multipliers, t, scales)
            passes += len(active) / len(positive)
    u, b = multipliers[positive], multipliers[problem.threshold_rows]
    is_point = 0 < float(u.sum()) < np.inf and 0 < float(b.sum()) < np.inf
    return DualPoint(u, b / b.sum()) if is_point else None, passes + _ROUNDS
