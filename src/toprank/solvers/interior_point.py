"""A primal-dual interior-point method for the top family, restricted to a working set of rows.

Steps of an iteration (Mehrotra):

1. Residuals, and the primal and dual value of the restricted problem; stop when they are close.
2. Eliminate p, r and y: what remains is a system in ŵ and S, or in y and three borders.
3. Predictor: the affine direction, and from it how far μ can be lowered.
4. Corrector with the same factor; where it allows a short step only, up to two more that bring outlying products back
   (Gondzio 1996). A step to almost the boundary.
5. Now and then, drop rows whose multiplier vanishes and add rows at their cap to g.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank.arrays import Floats, Rows
from toprank.solvers.centring import centre_positives, split
from toprank.solvers.problem import relative_gap
from toprank.solvers.restricted import Restricted, State

# Further corrections of a direction, and the step from which on none is tried.
_CORRECTIONS = 2
_LONG_STEP = 0.9


@dataclass
class Outcome:
    """What a run of the interior-point method leaves: the problem may have shrunk on the way.

    `rows_visited` counts each time that a row of the working set was read.
    """

    problem: Restricted
    state: State
    mu: float
    iterations: int
    rows_visited: int
    solved: bool


def interior_point(problem: Restricted, state: State, tol: float, *, max_iter: int, shrink: bool) -> Outcome:
    """Solve a restricted problem from an iterate to a relative gap of `tol`, or until no step can be made.

    Near the boundary of a badly scaled problem a direction may overflow; such a step is not taken.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return _iterate(problem, state, tol, max_iter, shrink)


def _iterate(problem: Restricted, state: State, tol: float, max_iter: int, shrink: bool) -> Outcome:
    images: Floats | None = None
    short_steps, last_step, visited, solved = 0, 1.0, 0, False
    iteration = 0
    while True:
        # 1. Residuals, and whether the gap is small.
        if images is None or iteration % 8 == 0:  # the updated products drift by rounding
            images = problem.rows.apply(state.extended)
        dual = state.S * problem.g_extended - problem.rows.apply_transposed(state.y)
        squared_norm = float(dual[:-2] @ dual[:-2])
        dual[:-2] += problem.alpha * state.extended[:-2]
        mu = problem.mean_product(state)
        solved = _certify(problem, state, images, dual, squared_norm, tol)
        if solved or short_steps >= 4 or iteration >= max_iter:
            break
        # 2. to 4. The direction, and a step to almost the boundary.
        direction, image, step = _direction(_NewtonSystem(problem, state, images, dual), mu, last_step)
        step *= max(0.99, 1 - mu) if step < 1 else 1.0
        images = images + step * image
        following = problem.moved(state, step, direction, -images[: problem.m], mu)
        if not following.is_finite():
            break
        state, last_step = following, step
        short_steps = short_steps + 1 if step < 1e-3 else 0
        iteration += 1
        # 5. Fewer rows.
        smaller = problem.shrunk(state) if shrink and step > 0.3 and iteration > 4 else None
        visited += problem.rows.visited()
        if smaller is not None:
            problem, state = smaller
            images = None
    return Outcome(problem, state, mu, iteration, visited + problem.rows.visited(), solved)


def _certify(problem: Restricted, state: State, images: Floats, dual: Floats, squared_norm: float, tol: float) -> bool:
    """Whether the values are close, the sums of the multipliers balanced, and so the bound of the whole problem too."""
    products = images.copy()
    products[: problem.m] += state.extended[-2]
    products[problem.m :] -= state.extended[-1]
    primal_value, dual_bound = problem.bounds(state, products, squared_norm)
    balanced = abs(dual[-2]) + abs(dual[-1]) <= 1e-6 * state.S
    if not (relative_gap(primal_value, dual_bound) <= tol and balanced):
        return False
    # rows of large norm make more of what is left of the imbalance
    return relative_gap(primal_value, problem.lower_bound(state)) <= 2 * tol


def carried_over(old: Restricted, state: State, new: Restricted, mu: float) -> State:
    """The iterate of one working set on another; rows that were not in the old one enter with products μ."""
    m, S = new.m, state.S
    gaps = -new.rows.apply(state.extended)
    positives = centre_positives(new.surrogate, new.share, gaps[:m], mu)
    if new.caps is None:
        p = np.maximum(np.abs(gaps[m:]), mu / S)
        rows = (mu / p, p, np.ones_like(p), np.zeros_like(p))
    else:
        p, r = split(gaps[m:], mu / (new.caps * S))
        rows = (mu / p, p, mu / r, r)
    columns = []
    for known, of_positives, of_rows in zip((state.y, state.p, state.room, state.r), positives, rows, strict=True):
        column = np.concatenate([of_positives, of_rows])
        _copy_known(old.positives, known[: old.m], new.positives, column[:m])
        _copy_known(old.threshold_rows, known[old.m :], new.threshold_rows, column[m:])
        columns.append(column)
    carried = State(state.extended.copy(), S, np.array(columns), state.gaps)
    low, up = new.lower, new.upper
    carried.p[low] = np.maximum(carried.p[low], 0.1 * mu / carried.y[low])
    carried.r[up] = np.maximum(carried.r[up], 0.1 * mu / carried.room[up])
    return carried


def _copy_known(old: Rows, values: Floats, new: Rows, target: Floats) -> None:
    """Set target to the old values where a row (both lists are sorted) was known before."""
    place = np.minimum(np.searchsorted(old, new), len(old) - 1)
    known = old[place] == new
    target[known] = values[place[known]]


class _NewtonSystem:
    """Newton's equations at an iterate, p, r and y eliminated: one factor for all changes of the products."""

    def __init__(self, problem: Restricted, state: State, images: Floats, dual: Floats) -> None:
        self.problem, self.state, self.dual = problem, state, dual
        slope, curvature = problem.conjugate_model(state)
        self.primal = -images - (slope + state.r - state.p)
        ratio = state.r / state.room
        self.threshold = -float(problem.g_extended @ state.extended) - float(problem.per_S @ state.r)
        self.bound = (problem.fixed + problem.per_S * state.S - state.y - state.room)[problem.upper]
        weights = 1.0 / (state.p / state.y + ratio + curvature)
        self.solve = problem.factorised(weights, problem.per_S * ratio)

    def direction(self, on_lower: Floats, on_upper: Floats) -> tuple[State, Floats]:
        """The direction in which y p and room · r change by so much, and B̂ times its (w, t, ν)."""
        problem, state, low, up = self.problem, self.state, self.problem.lower, self.problem.upper
        y, p, room, r = state.y, state.p, state.room, state.r
        row_residual, correction = self.primal.copy(), (on_upper - r[up] * self.bound) / room[up]
        row_residual[low] += on_lower / y[low]
        row_residual[up] -= correction
        threshold = self.threshold - float(problem.per_S[up] @ correction)
        step, dS, dy, image = self.solve(self.dual, row_residual, threshold)
        change = State(step, dS, np.zeros_like(state.columns))
        change.y[:] = dy
        change.p[low] = (on_lower - p[low] * dy[low]) / y[low]
        change.room[up] = problem.per_S[up] * dS - dy[up] + self.bound
        change.r[up] = (on_upper - r[up] * change.room[up]) / room[up]
        return change, image


def _direction(system: _NewtonSystem, mu: float, last_step: float) -> tuple[State, Floats, float]:
    """Predictor and correctors; returns the direction, B̂ times its (w, t, ν) and the longest step."""
    problem, state, low, up = system.problem, system.state, system.problem.lower, system.problem.upper
    y, p, room, r = state.y, state.p, state.room, state.r
    # 3. Predictor.
    affine, _ = system.direction(-y[low] * p[low], -room[up] * r[up])
    reached = state.moved(_longest_step(problem, state, affine), affine)
    centring = min(1.0, (problem.mean_product(reached) / mu) ** 3)
    target = mu * (max(centring, 0.5) if last_step < 0.1 else centring)
    # 4. Correctors.
    on_lower = target - y[low] * p[low] - affine.y[low] * affine.p[low]
    on_upper = target - room[up] * r[up] - affine.room[up] * affine.r[up]
    change, image = system.direction(on_lower, on_upper)
    step = _longest_step(problem, state, change)
    for _ in range(_CORRECTIONS if problem.rows.solves_cheaply else 0):
        if step >= _LONG_STEP:
            break
        reach = min(1.0, 1.5 * step + 0.3)
        on_lower = on_lower + _recentring(y[low], change.y[low], p[low], change.p[low], reach, target)
        on_upper = on_upper + _recentring(room[up], change.room[up], r[up], change.r[up], reach, target)
        corrected, its_image = system.direction(on_lower, on_upper)
        longer = _longest_step(problem, state, corrected)
        if longer < 1.1 * step:
            break
        change, image, step = corrected, its_image, longer
    return change, image, step


def _recentring(
    values: Floats, changes: Floats, slacks: Floats, slack_changes: Floats, reach: float, target: float
) -> Floats:
    """What brings the products at a longer step back to between a tenth of the target and ten times it."""
    products = (values + reach * changes) * (slacks + reach * slack_changes)
    return np.maximum(np.clip(products, 0.1 * target, 10 * target) - products, -10 * target)


def _longest_step(problem: Restricted, state: State, direction: State) -> float:
    """The largest step up to 1 that keeps multipliers with a slack, and slacks, non-negative."""
    relative = direction.columns / state.columns
    relative[0, : problem.lower.start] = 0.0
    fastest = float(np.fmin.reduce(relative, axis=None))  # NaN is a slack that is not in use
    return 1.0 / max(1.0, -fastest)
