"""A second-order step of the pair method: the best point over the multipliers that are between their bounds.

A step takes the dual on a working set, `toprank.solvers.pair_dual`, to a better point; `toprank.solvers.program_step`
has another one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.thresholds import within_caps
from toprank.matrices.dense_or_sparse import Cholesky
from toprank.solvers._pair_state import BOUND_NORM, DELTA, MASS
from toprank.solvers.pair_dual import WorkingSetDual

# Parts of a Newton direction that are tried; what leaves the bounds is put back onto them.
_PARTS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
# Operations of a move for each row of the working set.
COST_OF_MOVE = 10.0


class SecondOrderStep(Protocol):
    """A step, its cost in operations of a move, and the part of the moves' cost that it may have."""

    share: float

    def cost(self, dual: WorkingSetDual) -> float:
        """The cost of a step from here; infinite where products are missing."""

    def __call__(self, dual: WorkingSetDual, tol: float, scores: Floats | None = None) -> None:
        """Make a step towards a relative gap of `tol`; `scores` near those of the optimum may be known."""


class FaceStep:
    """Maximise over the free multipliers, with δ fixed, and move towards that point as far as it pays.

    The point, or a part of the way to it, is put back onto the bounds; the segment to what results is feasible, and
    the dual is quadratic along it, so that the best of it is known in closed form.
    """

    share = 0.25  # it pays only once it is clear who is at a bound

    def cost(self, dual: WorkingSetDual) -> float:
        """That of a factor."""
        free = sum(int(mask.sum()) for mask in dual.free())
        return free**3 / 30 if dual.working.is_complete else np.inf

    def __call__(self, dual: WorkingSetDual, tol: float, scores: Floats | None = None) -> None:
        """Make a step towards a relative gap of `tol`."""
        free_u, free_b = dual.free()
        rows = np.concatenate([dual.positives[free_u], dual.thresholds[free_b]])
        m = int(free_u.sum())
        Q, slopes = _quadratic(dual, rows, m, free_u, free_b)
        direction = _maximiser(dual, Q, slopes, m)
        best, change = 0.0, np.zeros(len(rows))
        for part in _PARTS:
            candidate = _within_bounds(dual, part * direction, m, free_u, free_b)
            rise, curvature = float(slopes @ candidate), float(candidate @ (Q @ candidate))
            step = 1.0 if rise >= curvature else max(rise, 0.0) / max(curvature, np.finfo(float).tiny)
            gain = step * (rise - 0.5 * step * curvature)
            if gain > best:
                best, change = gain, step * candidate
            elif best > 0:
                break
        u, b = dual.u, dual.b
        u[free_u] = np.clip(u[free_u] + change[:m], 0.0, dual.top[free_u])
        b[free_b] = np.maximum(b[free_b] + change[m:], 0.0)
        b[dual.bound] = dual.caps[dual.bound] * u.sum()
        dual.take(u, b)


def _quadratic(dual: WorkingSetDual, rows: Rows, m: int, free_u: Mask, free_b: Mask) -> tuple[Floats, Floats]:
    """Curvature and slopes of the dual in the free multipliers, the bound rows going along with S."""
    Q = dual.working.rows[np.ix_(rows, rows)].astype(np.float64)
    g = dual.bound_row[rows]
    Q[:m, m:] = g[m:] - Q[:m, m:]
    Q[m:, :m] = Q[:m, m:].T
    Q[:m, :m] += dual.scalars[BOUND_NORM] - g[:m] - g[:m, None]
    Q /= dual.alpha
    bend = np.concatenate([dual.surrogate.width / dual.share[free_u], dual.d[free_b] / dual.scalars[DELTA]])
    Q[np.arange(len(rows)), np.arange(len(rows))] += bend
    on_positives, on_thresholds = dual.slopes()
    with_bound = float(dual.caps[dual.bound] @ on_thresholds[dual.bound])
    return Q, np.concatenate([on_positives[free_u] + with_bound, on_thresholds[free_b]])


def _maximiser(dual: WorkingSetDual, Q: Floats, slopes: Floats, m: int) -> Floats:
    """The change to the largest value of the quadratic among those that keep Σu = Σb."""
    rest = 1.0 - dual.scalars[MASS]
    balance = np.concatenate([np.full(m, rest), np.full(len(slopes) - m, -1.0)])
    factor = Cholesky(Q)
    direction = factor.solve(slopes)
    if len(slopes) > m or rest > 1e-12:
        across = factor.solve(balance)
        direction -= across * (float(balance @ direction) / float(balance @ across))
    return direction


def _within_bounds(dual: WorkingSetDual, change: Floats, m: int, free_u: Mask, free_b: Mask) -> Floats:
    """The change to a feasible point close to the one asked for."""
    u, b = dual.u[free_u], dual.b[free_b]
    new = np.clip(u + change[:m], 0.0, dual.top[free_u])
    total = float(dual.u.sum() - u.sum() + new.sum())
    rest = (1.0 - dual.scalars[MASS]) * total
    wanted = np.maximum(b + change[m:], 0.0)
    return np.concatenate([new - u, within_caps(wanted, dual.caps[free_b] * total, rest) - b])
