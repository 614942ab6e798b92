"""The second-order steps of the pair method, for many multipliers at once.

- `FaceStep`: the best point over the multipliers that are between their bounds, put back onto the bounds.
- `ProgramStep`: the best point over all b that may matter and the u that are between their bounds, see
  `toprank.solvers.threshold_program`. It finds out by itself which b are zero and which are at their cap, so it may be
  made early; it needs a threshold that is a maximum and a loss that is curved.

A step takes the dual on a working set, `toprank.solvers.pair_dual`, to a better point.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.thresholds import within_caps
from toprank.matrices.dense_or_sparse import Cholesky
from toprank.solvers._pair_state import BOUND_NORM, DELTA, MASS
from toprank.solvers.pair_dual import WorkingSetDual
from toprank.solvers.threshold_program import ThresholdProgram

# Parts of a Newton direction that are tried; what leaves the bounds is put back onto them.
_PARTS = (1.0, 0.5, 0.25, 0.1, 0.03, 0.01)
# Rows that take part in a program beside those with a multiplier: so many, and a share of those.
_MORE_ROWS, _MORE_SHARE = 30, 0.2
# Sum of the caps of the rows of a program, at least.
_CAPS = 1.5
# Part of the mean of what margins lack within which a positive is doubtful.
_DOUBT = 0.1
# Time of an operation of a matrix product, in those of a move, and of what a program takes whatever its size.
_COST_OF_BLAS, _COST_OF_STEP = 0.04, 1e7
# Part of the moves' cost that a program may have: the first one, without and with caps, as moves alone may be enough;
# and the later ones.
_FIRST_SHARE, _LATER_SHARE = (1.0, 0.4), 1.5
# Programs of a step, and their gap as a part of the one that is asked for.
_PROGRAMS, _EXACTNESS = 3, 1e-3


class SecondOrderStep(Protocol):
    """A step, its cost in operations of a move, and the part of the moves' cost that it may have."""

    share: float

    def cost(self, dual: WorkingSetDual) -> float:
        """The cost of a step from here; infinite where products are missing."""

    def __call__(self, dual: WorkingSetDual, tol: float) -> None:
        """Make a step towards a relative gap of `tol`."""


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

    def __call__(self, dual: WorkingSetDual, tol: float) -> None:
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


class ProgramStep:
    """Solve the program of the multipliers that may be at a bound, and move to its solution as far as it pays.

    1. The positives by what their margins lack, at the threshold that the multipliers say: those that surely have a
       multiplier are eliminated, those that surely have none, or the largest one, keep it, and the others are doubtful.
       The b are those that are not zero, and those of the rows next to them.
    2. The program. Where eliminated u leave their bounds they are put there, and what is left is solved again.
    3. The dual is quadratic along the segment to the point found, so that the best of it is known in closed form.
    """

    def __init__(self, has_caps: bool) -> None:
        self.share = _FIRST_SHARE[has_caps]

    def cost(self, dual: WorkingSetDual) -> float:
        """That of its products and factors."""
        if not dual.working.is_complete:
            return np.inf
        m = int(np.count_nonzero(dual.free()[0]))
        k = (1 + _MORE_SHARE) * np.count_nonzero(dual.b) + _MORE_ROWS
        return _COST_OF_STEP + _COST_OF_BLAS * float(m**3 / 3 + m**2 * k + m * k**2 + 5 * k**3)

    def __call__(self, dual: WorkingSetDual, tol: float) -> None:
        """Make a step towards a relative gap of `tol`."""
        self.share = _LATER_SHARE
        # 1. Who takes part.
        (sure, doubtful), rows = self._positives(dual), self._threshold_rows(dual)
        u, b, some = dual.u.copy(), dual.b[rows], np.flatnonzero(doubtful)
        caps = dual.caps[rows] if dual.terms.has_caps else None
        for _ in range(_PROGRAMS):
            # 2. The program.
            if not sure.any():
                return
            program = self._program(dual, sure, some, rows, u)
            z = program.solve(np.concatenate([u[some], b]), caps, _EXACTNESS * tol)
            b = z[len(some) :]
            if not np.isfinite(z).all() or not b.any():
                return
            found = program.eliminated_at(z)
            u[some] = np.minimum(z[: len(some)], dual.top[some])
            u[sure] = np.clip(found, 0.0, dual.top[sure])
            outside = (found < 0) | (found > dual.top[sure])
            if not outside.any():
                break
            sure[np.flatnonzero(sure)[outside]] = False
        # 3. The segment.
        total, wanted = float(u.sum()), np.zeros(len(dual.b))
        wanted[rows] = b * (total / float(b.sum()))
        self._move(dual, u, within_caps(wanted, dual.caps * total, total))

    @staticmethod
    def _positives(dual: WorkingSetDual) -> tuple[Mask, Mask]:
        """Which positives are eliminated, and which are doubtful."""
        slopes, (free, _), shift = dual.slopes()[0], dual.free(), dual.surrogate.shift
        if not free.any():
            return free, free
        level = -float(np.median(slopes[free]))
        lacks = shift + level - dual.scores[dual.positives]
        spread = _DOUBT * float(np.abs(lacks[free]).mean())
        most = dual.top / dual.share * dual.surrogate.width  # where u reaches its upper bound
        sure = free & (lacks > spread) & (lacks < most - spread)
        near_a_bound = np.minimum(np.abs(lacks), np.abs(lacks - most)) <= spread
        return sure, (near_a_bound | free) & ~sure

    @staticmethod
    def _threshold_rows(dual: WorkingSetDual) -> Rows:
        s, with_b = dual.scores[dual.thresholds], np.flatnonzero(dual.b)
        order = np.argsort(-s, kind="stable")
        others = order[dual.b[order] == 0]
        n_more = _MORE_ROWS + int(_MORE_SHARE * len(with_b))
        if dual.terms.has_caps:
            reached = dual.caps[with_b].sum() + np.cumsum(dual.caps[others])
            n_more = max(n_more, int(np.searchsorted(reached, _CAPS)) + 1)
        return np.sort(np.concatenate([with_b, others[:n_more]]))

    @staticmethod
    def _program(dual: WorkingSetDual, sure: Mask, some: Rows, rows: Rows, u: Floats) -> ThresholdProgram:
        """The program; `some` are the doubtful positives."""
        values, alpha, m = dual.working.rows, dual.alpha, len(some)
        of_u, of_z = dual.positives[sure], np.concatenate([dual.positives[some], dual.thresholds[rows]])
        A, G, M = (values[np.ix_(x, y)] / alpha for x, y in ((of_u, of_u), (of_u, of_z), (of_z, of_z)))
        bend = dual.surrogate.width / dual.share
        A[np.arange(len(A)), np.arange(len(A))] += bend[sure]
        M[np.arange(m), np.arange(m)] += bend[some]
        G[:, :m] *= -1.0
        M[:m, m:] *= -1.0
        M[m:, :m] *= -1.0
        kept = ~sure
        kept[some] = False
        fixed = np.zeros(dual.size)
        fixed[dual.positives[kept]] = u[kept]
        scores, shift = dual.combination(fixed / alpha), dual.surrogate.shift
        on_z = scores[of_z]
        on_z[:m] = shift - on_z[:m]
        return ThresholdProgram(A, G, M, (shift - scores[of_u], on_z), float(fixed.sum()), len(rows))

    @staticmethod
    def _move(dual: WorkingSetDual, u: Floats, b: Floats) -> None:
        change_u, change_b, on_rows = u - dual.u, b - dual.b, np.zeros(dual.size)
        on_rows[dual.positives] = change_u
        on_rows[dual.thresholds] -= change_b
        on_positives, on_thresholds = dual.slopes()
        rise = float(on_positives @ change_u + on_thresholds @ change_b)
        curvature = float(on_rows @ dual.combination(on_rows / dual.alpha))
        curvature += dual.surrogate.width * float((change_u**2 / dual.share).sum())
        if rise >= curvature:
            dual.take(u, b)
        elif rise > 0:
            step = rise / curvature
            dual.take(dual.u + step * change_u, dual.b + step * change_b)
