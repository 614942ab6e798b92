r"""Newton's method for a largest score over hundreds of dense features: the dual's proximal points, by parabolas.

With multipliers u of the positives and b of the threshold rows, and :math:`\bar b` those of the last round, a round
solves the dual with a proximal term :math:`\frac{E}{2} \|b - \bar b\|^2`. Its own dual has no constraints and is made
of parabolas:

.. math:: \min_{w, t} \frac{\alpha}{2} \|w\|^2 + \sum_i a_i\, \ell(t - s_i^+)
          + \sum_j \frac{1}{2 E} \bigl( (s_j^- - t + E\, \bar b_j)_+^2 - (E\, \bar b_j)^2 \bigr),

so Newton's method with an exact line search ends, from wherever it starts. Steps:

1. The multipliers at w and t: :math:`u_i = a_i\, \ell'(t - s_i^+)`, :math:`b_j = (s_j^- - t + E\, \bar b_j)_+ / E`.
2. They are, but for a multiple of b, a dual point: a lower bound, asked for where few rows change. The objective at w
   is an upper one. Stop when the relative gap is at most `tol`.
3. Where no row has changed its parabola, the round is over: b is the next :math:`\bar b`, and E a tenth, or a half
   where it is a small share of the squares of the rows.
4. The Newton step. Its matrix changes by the rows that have changed their parabola, of which there are few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.arrays import Floats, Rows
from toprank.formulations.surrogates import PiecewiseQuadratic
from toprank.matrices.dense_or_sparse import Cholesky, sandwich
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import DualPoint, Problem, Solution, WeightedRows

# E as a share of the mean square of the rows: at first, from a start, where it is small, and at last; and what a round
# leaves of it, and of a small one.
_FIRST, _FROM_START, _SMALL, _LEAST = 1e-2, 1e-4, 1.1e-5, 1e-9
_FALL, _SLOW_FALL = 0.1, 0.5
# Changes of parabolas, as a share of the b that are not zero, up to which a bound may be close; rows that have changed
# since the last factor, as a share of the features, beyond which there is a new one.
_FEW_CHANGES, _FEW_ROWS = 0.02, 0.15
# Rounds, at most.
_ROUNDS = 60
# Gap above which it does not matter whether w = 0 is ruled out.
_LOOSE = 1e-3
# Halvings of a step, at most, and of the range of t.
_HALVINGS, _BISECTIONS = 12, 40
# Slope along a step, as a part of the one it began with, that is none; and curvature in t, as a part of what it is if w
# does not follow.
_NO_SLOPE, _NO_CURVATURE = 1e-10, 1e-14


def has_proximal_points(problem: WeightedRows) -> bool:
    """Whether the formulation is one for this method: a largest score, and a loss of parabolas."""
    formulation = problem.formulation
    return bool(
        formulation.threshold.is_maximum
        and formulation.threshold.caps(problem.threshold_weights) is None
        and formulation.surrogate.is_piecewise_quadratic
        and formulation.surrogate.is_smooth
    )


def solve_proximal_newton(
    problem: Problem, *, tol: float = 1e-4, max_iter: int = 1000, verbose: int = 0, start: Solution | None = None
) -> Solution:
    """Minimise a formulation with the largest score to a relative duality gap of `tol`; `max_iter` counts steps.

    Of a `start` w is used, and the dual point if there is one.
    """
    incumbent = Incumbent.from_zero(problem, problem.X.shape[1], tol, verbose)
    return _ProximalSolver(problem, incumbent, max_iter).run(start)


class _ProximalSolver:
    """The point (w, t), its scores, and the Newton matrix."""

    def __init__(self, problem: Problem, incumbent: Incumbent, max_iter: int) -> None:
        self.problem, self.incumbent, self.max_iter = problem, incumbent, max_iter
        self.surrogate: PiecewiseQuadratic = problem.formulation.surrogate.pieces
        self.n, self.d = problem.X.shape
        squares = float(np.einsum("ij,ij->", problem.X, problem.X))
        self.square = squares / self.n / problem.alpha or 1.0  # of a row, in the units of E
        self.E = _FIRST * self.square
        self.w, self.t, self.scores = np.zeros(self.d), 0.0, np.zeros(self.n)
        self.centre = np.zeros(len(problem.threshold_rows))
        self.weights, self.system = np.zeros(self.n), _NewtonSystem(problem.X, problem.alpha)

    def run(self, start: Solution | None) -> Solution:
        """Steps 1 to 4."""
        problem, incumbent, rounds, is_new = self.problem, self.incumbent, 0, True
        self._first_point(start)
        while True:
            # 1. The multipliers.
            u, b, weights = self._multipliers()
            n_changed = int(np.count_nonzero(weights != self.weights))
            # 2. Both bounds, at the beginning of a round and where they may be close to each other.
            if is_new or n_changed <= _FEW_CHANGES * np.count_nonzero(b):
                self._certify(u, b)
                if incumbent.converged and (incumbent.tol > _LOOSE or incumbent.is_informative(incumbent.gap)):
                    break
            if incumbent.n_iter >= self.max_iter:
                break
            # 3. The end of a round.
            if not n_changed and not is_new:
                rounds += 1
                if np.array_equal(b, self.centre) or rounds >= _ROUNDS:
                    break
                share = self.E / self.square
                self.E = max(share * (_FALL if share > _SMALL else _SLOW_FALL), _LEAST) * self.square
                self.centre, is_new = b, True
                continue
            # 4. The step.
            self._step(weights, problem.row_weights(u, -b), float(u.sum() - b.sum()))
            is_new = False
        incumbent.record()
        return incumbent.solution()

    def _first_point(self, start: Solution | None) -> None:
        """That of a start, with the multiple of its multipliers that is best, or w = 0."""
        if start is None:
            self._balance()
            return
        problem, point = self.problem, start.dual_point
        self.w = start.coef.astype(np.float64)
        self.scores = problem.scores(self.w)
        if point is not None and len(point.p) == len(self.centre):
            v = problem.combine(problem.signed(point.y, point.p))
            _, scale = problem.dual_value(point, float(v @ v))
            self.centre, self.E = scale * float(point.y.sum()) * point.p, _FROM_START * self.square
        self._balance()

    def _balance(self) -> None:
        """The t that is best for w: the sums of u and of b are the same."""
        problem, s = self.problem, self.scores
        high = float(s[problem.threshold_rows].max()) + self.E * float(self.centre.max())
        low = min(float(s[problem.positives].min()), float(s[problem.threshold_rows].min())) - self.surrogate.shift
        for _ in range(_BISECTIONS):
            self.t = 0.5 * (low + high)
            u, b, _ = self._multipliers()
            low, high = (low, self.t) if u.sum() > b.sum() else (self.t, high)

    def _multipliers(self) -> tuple[Floats, Floats, Floats]:
        """The u and b, and the curvatures of the parabolas on which the rows are."""
        problem, surrogate, share = self.problem, self.surrogate, self.problem.positive_share
        x = self.t - self.scores[problem.positives] + surrogate.shift
        slopes = np.clip(x / surrogate.width, 0.0, surrogate.max_slope)
        is_bent = (x > 0) & (slopes < surrogate.max_slope)
        b = np.maximum((self.scores[problem.threshold_rows] - self.t) / self.E + self.centre, 0.0)
        on_rows = problem.row_weights(np.where(is_bent, share / surrogate.width, 0.0), np.where(b > 0, 1 / self.E, 0.0))
        return share * slopes, b, on_rows

    def _certify(self, u: Floats, b: Floats) -> None:
        problem, incumbent, total = self.problem, self.incumbent, float(b.sum())
        incumbent.offer(problem.primal(self.w, self.scores), self.w, self.scores)
        if total > 0 and u.any():
            point = DualPoint(u, b / total)
            incumbent.recorder.passes += 1
            incumbent.raise_bound(problem.lower_bound(point), point)
        incumbent.record()

    def _step(self, weights: Floats, on_rows: Floats, slope_of_t: float) -> None:
        """A Newton step, as long as is best."""
        problem, self.weights = self.problem, weights
        slope = problem.alpha * self.w - problem.combine(on_rows)
        of_w, of_t, along_t = self.system.solve(weights, slope)
        is_flat = along_t <= _NO_CURVATURE * float(weights.sum())
        dt = 0.0 if is_flat else -(slope_of_t - float(self.system.border @ of_w)) / along_t
        dw = -of_w - dt * of_t
        on_scores = problem.scores(dw)
        step = self._best_step(dw, dt, on_scores)
        self.w, self.t, self.scores = self.w + step * dw, self.t + step * dt, self.scores + step * on_scores
        self.incumbent.n_iter += 1
        self.incumbent.recorder.passes += 2

    def _best_step(self, dw: Floats, dt: float, on_scores: Floats) -> float:
        """The share of a step at which the slope along it is zero, or all of it."""
        problem, surrogate, alpha = self.problem, self.surrogate, self.problem.alpha
        x, s = (self.scores[rows] - self.t for rows in (problem.positives, problem.threshold_rows))
        dx, ds = (on_scores[rows] - dt for rows in (problem.positives, problem.threshold_rows))
        of_w, squared = float(self.w @ dw), float(dw @ dw)

        def slope(step: float) -> float:
            y = np.clip((surrogate.shift - x - step * dx) / surrogate.width, 0.0, surrogate.max_slope)
            b = np.maximum((s + step * ds) / self.E + self.centre, 0.0)
            return alpha * (of_w + step * squared) - float(problem.positive_share * y @ dx) + float(b @ ds)

        if slope(1.0) <= _NO_SLOPE * abs(slope(0.0)):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if slope(middle) > 0 else (middle, high)
        return low or high


class _NewtonSystem:
    """The Newton matrix α I + Σ weight x xᵀ with its border −Σ weight x for t; where few weights change, its factor.

    Changes D of the weights of some rows Z are changes of the inverse of that rank: with L the factor,
    Ψ = L⁻¹ Zᵀ, it is L⁻ᵀ (I − Ψ (D⁻¹ + Ψᵀ Ψ)⁻¹ Ψᵀ) L⁻¹.
    """

    def __init__(self, X: Any, alpha: float) -> None:
        self.X, self.matrix, self.border = X, alpha * np.eye(X.shape[1]), np.zeros(X.shape[1])
        self.weights = self.of_factor = np.zeros(len(X))
        self.factor: Cholesky | None = None

    def solve(self, weights: Floats, slope: Floats) -> tuple[Floats, Floats, float]:
        """The inverse times the slope and times the border, and the curvature in t that is left."""
        changed = np.flatnonzero(weights != self.weights)
        self.border = self.border - (weights - self.weights)[changed] @ self.X[changed]
        self.weights = weights
        changed = np.flatnonzero(weights != self.of_factor)
        if self.factor is None or len(changed) > _FEW_ROWS * len(self.border):
            self._factorise(weights)
            changed = changed[:0]
        assert self.factor is not None
        halves = self.factor.half_solve(np.column_stack([slope, self.border]))
        if len(changed):
            columns = self._columns(changed)
            inner = columns.T @ columns
            inner[np.arange(len(changed)), np.arange(len(changed))] += 1 / (weights - self.of_factor)[changed]
            halves -= columns @ np.linalg.solve(inner, columns.T @ halves)
        of_w, of_t = (self.factor.back_solve(half) for half in halves.T)
        return of_w, of_t, float(weights.sum() - self.border @ of_t)

    def _factorise(self, weights: Floats) -> None:
        change = weights - self.of_factor
        for sign in (1.0, -1.0):
            if (changed := np.maximum(sign * change, 0.0)).any():
                self.matrix += sign * sandwich(self.X, changed)
        self.factor, self.of_factor = Cholesky(self.matrix), weights
        self._known, self._columns_of = np.zeros(0, np.intp), np.empty((len(self.matrix), 0))

    def _columns(self, rows: Rows) -> Floats:
        """Ψ of some rows; they are kept until the next factor."""
        assert self.factor is not None
        new = np.setdiff1d(rows, self._known)
        if len(new):
            more = self.factor.half_solve(np.ascontiguousarray(self.X[new].T, dtype=np.float64))
            self._known, self._columns_of = np.concatenate([self._known, new]), np.hstack([self._columns_of, more])
        order = np.argsort(self._known)
        return self._columns_of[:, order[np.searchsorted(self._known, rows, sorter=order)]]
