r"""PatMat and PatMatNP with the hinge: an interior-point method, as the problem is a quadratic program.

With ν = t − 1/β, shares a of the positives and c of the threshold rows, the problem is

.. math:: \min_{w, \nu} \frac{\alpha}{2} \|w\|^2 + \sum_i a_i (1 + 1/\beta + \nu - s_i^+)_+
          \quad \text{subject to} \quad \sum_j c_j (s_j - \nu)_+ = \tau / \beta.

Multipliers: u of the positives in [0, a], b of the threshold rows in [0, cλ], λ of the constraint. Optimality, on the
central path with all products equal to μ instead of 0:

.. math::

    \alpha w = X_+^\top u - X^\top b, \qquad \textstyle\sum u = \sum b, \qquad \sum_j c_j r_j = \tau / \beta, \\
    z = r - p, \qquad y\,p = \mu, \qquad (\bar y - y)\, r = \mu,

where y = (u; b), z are the arguments of the two positive parts and ȳ the upper bounds of y. An iterate is a `State`
with (w, ν) for its extended variable and λ for S.

Steps of an iteration (Mehrotra):

1. Eliminate p, r, y, ν and λ: what remains is a system of Newton's kind in w, of weights 1 / (p/y + r/room), whose
   centre is the mean of the rows with these weights. Rows whose weight is nothing beside α are left out of it.
2. Predictor: the affine direction, and from it how far μ can be lowered.
3. Corrector with the same factor, and a step to almost the boundary.
4. The objective and the lower bound at the iterate; stop when they are close.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from toprank.arrays import Floats
from toprank.matrices.operand import squared_norms
from toprank.solvers.centring import centre_positives, split
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.newton_system import newton_system
from toprank.solvers.problem import DualPoint, Problem
from toprank.solvers.restricted import State

# A row is left out of a system if weight · (‖x‖² + ‖centre‖²) is less than this part of α / (number of rows).
_NEGLIGIBLE = 1e-3
# So many steps in a row that are short or bring no progress end the run.
_FAILURES = 6
# Relative gaps that the products of the first iterate stand for; the next one is tried where one fails.
_PARTS = (1.0, 100.0)


Solve = Callable[[Floats, Floats], tuple[State, Floats]]


def improve_hinge_quantile(problem: Problem, incumbent: Incumbent, max_iter: int) -> None:
    """Improve the best point and bound of a formulation with hinge and surrogate quantile until they are close."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        _InteriorPoint(problem, incumbent).run(max_iter)


class _InteriorPoint:
    """The problem, its constants and its linear systems."""

    def __init__(self, problem: Problem, incumbent: Incumbent) -> None:
        self.problem, self.incumbent, self.recorder = problem, incumbent, incumbent.recorder
        self.quantile = threshold = problem.formulation.threshold.implicit
        self.a, self.c = problem.positive_share, problem.threshold_share
        self.m = len(self.a)
        self.margin, self.level = 1 + 1 / threshold.beta, threshold.tau / threshold.beta
        self.squared_norms = squared_norms(problem.X)

    def run(self, max_iter: int) -> None:
        """From the best point so far; where that is too near the boundary to get away from it, from further inside."""
        for part in _PARTS:
            if self.incumbent.converged or self.incumbent.n_iter >= max_iter:
                break
            self._follow_path(part, max_iter)

    def _follow_path(self, part: float, max_iter: int) -> None:
        """Steps 1 to 4, from products that are those of a relative gap of `part`."""
        incumbent = self.incumbent
        state, scores = self._first_point(incumbent.coef, incumbent.scores, part), incumbent.scores
        failures = 0
        while incumbent.n_iter < max_iter and failures < _FAILURES:
            before = incumbent.gap
            # 1. to 3. The direction, and a step to almost the boundary.
            direction, change = self._direction(state, scores)
            step = _longest_step(state, direction)
            step *= 0.99 if step < 1 else 1.0
            following = state.moved(step, direction)
            if not following.is_finite():
                break
            state, incumbent.n_iter = following, incumbent.n_iter + 1
            scores = scores + step * change if incumbent.n_iter % 8 else self._scores(state.extended[:-1])
            # 4. The certificate.
            self._certify(state, scores)
            incumbent.record()
            if incumbent.converged:
                break
            failures = failures + 1 if step < 0.1 and incumbent.gap > 0.99 * before else 0

    def _scores(self, w: Floats) -> Floats:
        self.recorder.passes += 1
        return self.problem.scores(w)

    def _combine(self, on_positives: Floats | float, on_threshold: Floats | float) -> Floats:
        """The sum of the rows with weights of their two roles."""
        self.recorder.passes += 1
        return self.problem.combine(self.problem.row_weights(on_positives, on_threshold))

    def _arguments(self, scores: Floats, nu: float) -> Floats:
        """z: the arguments of the positive parts, of positives and threshold rows."""
        problem = self.problem
        return np.concatenate([self.margin + nu - scores[problem.positives], scores[problem.threshold_rows] - nu])

    def _first_point(self, w: Floats, scores: Floats, gap: float) -> State:
        """An iterate at w whose products are those of an expected relative gap; the first steps balance its sums."""
        problem = self.problem
        s = scores[problem.threshold_rows]
        nu = self.quantile.solve(s, self.c) - 1 / self.quantile.beta
        objective = problem.objective(float(w @ w), scores, nu + 1 / self.quantile.beta)
        mu = max(gap * objective, np.finfo(float).tiny) / (len(self.a) + len(s))
        hinge = problem.formulation.surrogate
        u, p, room, r = centre_positives(hinge, self.a, nu + 1 / self.quantile.beta - scores[problem.positives], mu)
        multiplier = float(u.sum()) / max(float(self.c @ (s >= nu)), float(self.c.min()))
        q, xi = split(s - nu, mu / (self.c * multiplier))
        columns = [np.concatenate(pair) for pair in ((u, mu / q), (p, q), (room, mu / xi), (r, xi))]
        return State(np.append(w, nu), multiplier, np.array(columns))

    def _certify(self, state: State, scores: Floats) -> None:
        """Step 4: offer the iterate, made feasible, to the incumbent."""
        problem, beta, w, nu = self.problem, self.quantile.beta, state.extended[:-1], state.extended[-1]
        t = self.quantile.solve(scores[problem.threshold_rows], self.c, nu + 1 / beta)
        self.incumbent.offer(problem.objective(float(w @ w), scores, t), w, scores)
        u, b = state.columns[0, : self.m], state.columns[0, self.m :]
        p = b / b.sum()
        known = DualPoint(u.copy(), p, self.quantile.conjugate(p, self.c))
        self.recorder.passes += 1
        self.incumbent.raise_bound(problem.lower_bound(known), known)

    def _direction(self, state: State, scores: Floats) -> tuple[State, Floats]:
        """Steps 1 to 3; returns the direction and its scores."""
        y, p, room, r = state.columns
        solve = self._factorised(state, scores)
        affine, _ = solve(-y * p, -room * r)
        mu = _mean_product(state)
        reached = _mean_product(state.moved(_longest_step(state, affine), affine))
        target = mu * min(1.0, (reached / mu) ** 3)
        dy, dp, droom, dr = affine.columns
        return solve(target - y * p - dy * dp, target - room * r - droom * dr)

    def _factorised(self, state: State, scores: Floats) -> Solve:
        """A function of what the products have to change by, (y p, room r), that gives a direction and its scores."""
        problem, m, c = self.problem, self.m, self.c
        y, p, room, r = state.columns
        D = 1.0 / (p / y + r / room)
        total, of_threshold = float(D.sum()), D[m:]
        h = c * r[m:] / room[m:]
        hd = of_threshold * h
        centre = self._combine(D[:m], of_threshold) / total
        column = self._combine(0.0, hd) - hd.sum() * centre
        inverse = self._system(D, centre)
        solved = inverse(column)
        pivot = -float(h @ (c * of_threshold * p[m:] / y[m:])) - float(hd.sum()) ** 2 / total - float(column @ solved)
        row_residual = self._arguments(scores, state.extended[-1]) - r + p
        w_residual = problem.alpha * state.extended[:-1] - self._combine(y[:m], -y[m:])
        nu_residual = float(y[:m].sum() - y[m:].sum())
        level_residual = float(c @ r[m:]) - self.level
        room_residual = -room.copy()
        room_residual[:m] += self.a - y[:m]
        room_residual[m:] += c * state.S - y[m:]

        def solve(on_lower: Floats, on_upper: Floats) -> tuple[State, Floats]:
            bound = on_upper - r * room_residual
            e = row_residual + on_lower / y - bound / room
            signed = D * e
            signed[m:] *= -1.0
            excess = nu_residual + float(signed.sum())
            right = self._combine(signed[:m], signed[m:]) - w_residual - excess * centre
            z = inverse(right)
            wanted = -level_residual - float(c @ (bound[m:] / room[m:])) - float(hd @ e[m:])
            wanted -= float(hd.sum()) * excess / total
            d_multiplier = (wanted - float(column @ z)) / pivot
            dw = z - solved * d_multiplier
            d_nu = float(centre @ dw) + (float(hd.sum()) * d_multiplier - excess) / total
            change = self._scores(dw)
            dz = np.concatenate([d_nu - change[problem.positives], change[problem.threshold_rows] - d_nu])
            dz[m:] += h * d_multiplier
            dy = D * (dz + e)
            d_room = room_residual - dy
            d_room[m:] += c * d_multiplier
            columns = np.array([dy, (on_lower - p * dy) / y, d_room, (on_upper - r * d_room) / room])
            return State(np.append(dw, d_nu), d_multiplier, columns), change

        return solve

    def _system(self, D: Floats, centre: Floats) -> Callable[[Floats], Floats]:
        """The system in w, without rows of negligible weight."""
        problem = self.problem
        weights = problem.row_weights(D[: self.m], D[self.m :])
        sizes = self.squared_norms + float(centre @ centre)
        weights[weights * sizes < _NEGLIGIBLE * problem.alpha / len(weights)] = 0.0
        ridge = np.full(problem.X.shape[1], problem.alpha)
        return newton_system(problem.X, weights, centre, ridge, self.recorder)


def _mean_product(state: State) -> float:
    """The barrier parameter μ."""
    y, p, room, r = state.columns
    return (float(y @ p) + float(room @ r)) / (2 * len(y))


def _longest_step(state: State, direction: State) -> float:
    """The largest step up to 1 that keeps multipliers and slacks non-negative."""
    return 1.0 / max(1.0, -float((direction.columns / state.columns).min()))
