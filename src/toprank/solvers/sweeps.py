r"""Sparse rows of a largest score: sweeps over single multipliers, as those of LIBLINEAR, with a certificate.

A step costs the entries of one row, not a product with a working set. The sums of the multipliers have to be equal, so
that no single one could be changed; a penalty ε/2 (t − t₀)² takes that condition away, and

.. math:: w = \frac1\alpha \Big( \sum_i u_i x_i - \sum_j b_j x_j \Big), \qquad
          t = t_0 + \frac1\epsilon \Big( \sum_j b_j - \sum_i u_i \Big)

follow from the multipliers. The last t is the next t₀ (the method of multipliers), so that the sums become equal in the
end though the penalty is a weak one: a strong one would tie all multipliers to each other, and sweeps take long then.

1. A sweep over all rows, in random order, then some over those with a multiplier, each followed by several over the few
   of them that lacked most: a handful of rows that are much alike take longer than all others together, and one row
   above the threshold is enough to spoil the objective.
2. The multipliers with equal sums are a feasible dual point: a lower bound, and the point w for the objective.
3. Stop when the relative gap is at most `tol`, or where it falls so slowly that the pair method is quicker; otherwise
   t₀ = t, and again.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from toprank.arrays import Rows
from toprank.solvers._sweep import SweepRows, sweep
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import DualPoint, Problem, Solution
from toprank.solvers.traits import ROWS_IN_MEMORY

# How often those with a multiplier are swept after each sweep of all rows; how often then those that lacked most: the
# share of them, and the part of what the first of them lacked that they lack at least.
_SWEEPS, _MORE_SWEEPS, _SHARE, _LACKS = 4, 10, 0.03, 0.05
# Rounds, and in how many of them the gap has to halve; more where the pair method could not keep its products.
_ROUNDS, _PATIENCE, _LONG_PATIENCE = 200, 6, 30


def has_sweeps(problem: Problem) -> bool:
    """Whether the rows are sparse and the threshold is the largest score of the negatives."""
    formulation = problem.formulation
    of_largest = formulation.threshold.is_maximum and formulation.threshold.caps(problem.threshold_weights) is None
    return issparse(problem.X) and of_largest and formulation.over == "negatives"


def solve_by_sweeps(
    problem: Problem, *, tol: float, max_iter: int | None = None, verbose: int = 0, start: Solution | None = None
) -> Solution:
    """What rounds of sweeps find, which need not be converged; its `state` is a dual point to go on from."""
    incumbent = Incumbent.from_zero(problem, problem.X.shape[1], tol, verbose)
    sweeps, gaps = _Sweeps(problem, problem.start_point(start)), [incumbent.gap]
    while incumbent.n_iter < min(_ROUNDS, _ROUNDS if max_iter is None else max_iter):
        incumbent.recorder.passes += sweeps.round()
        incumbent.n_iter += 1
        if (point := sweeps.point()) is None:
            break
        _certify(problem, incumbent, point)
        gaps.append(incumbent.gap)
        if incumbent.converged and incumbent.is_informative(gaps[-1]):
            break
        patience = _PATIENCE if np.count_nonzero(sweeps.multipliers) <= ROWS_IN_MEMORY else _LONG_PATIENCE
        if len(gaps) > patience and gaps[-1] > 0.5 * gaps[-1 - patience]:
            break
    if not incumbent.recorder.rows["gap"]:
        incumbent.record()
    return incumbent.solution(state=sweeps.point(), scores=incumbent.scores)


def _certify(problem: Problem, incumbent: Incumbent, point: DualPoint) -> None:
    """Step 2."""
    v = problem.combine(problem.signed(point.y, point.p))
    bound, scale = problem.dual_value(point, float(v @ v))
    incumbent.raise_bound(bound, point)
    w, best = scale / problem.alpha * v, incumbent.coef
    incumbent.advance(w, problem.scores(w), (float(best @ best), float(best @ w), float(w @ w)))
    incumbent.recorder.passes += 2
    incumbent.record()


class _Sweeps:
    """The multipliers, and w and t that follow from them; they begin with those of a dual point, or with zeros."""

    def __init__(self, problem: Problem, point: DualPoint | None) -> None:
        self.problem, positive, X = problem, problem.positive, problem.X
        surrogate, n = problem.formulation.surrogate.pieces, len(positive)
        squares = np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
        # By far weaker than what ties a multiplier to w, but not than what ties all of them.
        self.per_epsilon = float(squares.mean()) / (problem.alpha * np.sqrt(n))
        bend, most = np.zeros(n), np.full(n, np.inf)
        bend[positive] = surrogate.width / problem.positive_share
        most[positive] = surrogate.max_slope * problem.positive_share
        curvature = np.maximum(squares / problem.alpha + self.per_epsilon + bend, np.finfo(float).tiny)
        self.signs = np.where(positive, 1.0, -1.0)
        self.rows = SweepRows(X.indptr, X.indices, X.data, self.signs, bend, curvature, most)
        self.scales = np.array([surrogate.shift, 1 / problem.alpha, self.per_epsilon])
        self.rng = np.random.default_rng(0)
        self.w, self.multipliers, self.lacking, self.t = np.zeros(X.shape[1]), np.zeros(n), np.zeros(n), 0.0
        if point is not None:
            self._begin_at(point)

    def _begin_at(self, point: DualPoint) -> None:
        problem = self.problem
        on_rows = problem.signed(point.y, point.p)
        v = problem.combine(on_rows)
        _, scale = problem.dual_value(point, float(v @ v))
        self.multipliers, self.w = scale * np.abs(on_rows), scale / problem.alpha * v
        self.t = problem.threshold_at(problem.scores(self.w))

    def round(self) -> float:
        """Steps 3 and 1: sweeps from the new t₀; returns the passes over the data."""
        n = len(self.multipliers)
        self.t -= self.per_epsilon * float(self.signs @ self.multipliers)
        n_swept = self._sweep(np.arange(n))
        for _ in range(_SWEEPS):
            n_swept += self._sweep(active := np.flatnonzero(self.multipliers))
            n_swept += self._sweep(self._worst(active), _MORE_SWEEPS)
        return n_swept / n

    def _sweep(self, some: Rows, times: int = 1) -> int:
        """Sweep some rows, in random order; returns their number, each time counted."""
        order = np.concatenate([self.rng.permutation(some) for _ in range(times)])
        self.t = sweep(self.rows, order, self.w, self.multipliers, self.t, self.scales, self.lacking)
        return len(order)

    def _worst(self, active: Rows) -> Rows:
        """Those that lacked most when they were swept last."""
        lacking, n_worst = self.lacking[active], max(int(_SHARE * len(active)), 1)
        if n_worst >= len(active):
            return active
        least = max(float(np.partition(lacking, -n_worst)[-n_worst]), _LACKS * float(lacking.max()))
        return np.asarray(active[lacking >= least])

    def point(self) -> DualPoint | None:
        """The dual point, if no sum is zero or has overflowed."""
        u, b = self.multipliers[self.problem.positives], self.multipliers[self.problem.threshold_rows]
        is_point = 0 < float(u.sum()) < np.inf and 0 < float(b.sum()) < np.inf
        return DualPoint(u, b / b.sum()) if is_point else None
