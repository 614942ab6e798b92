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
# How many times the gap asked for the sum of the products is at least while the values are not worth computing.
_FAR = 20.0


@dataclass
class Outcome:
    """What a run of the interior-point method leaves; the problem may have shrunk on the way.

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
        solved = _certify(problem, state, mu, images, dual, squared_norm, tol)
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
        smaller = problem.shrink(state) if shrink and step > 0.3 and iteration > 4 else None
        visited += problem.rows.visited()
        if smaller is not None:
            state, images = smaller, None
    return Outcome(problem, state, mu, iteration, visited + problem.rows.visited(), solved)


def _certify(
    problem: Restricted, state: State, mu: float, images: Floats, dual: Floats, squared_norm: float, tol: float
) -> bool:
    """Whether the values are close, the sums of the multipliers balanced, and so the bound of the whole problem too.

    The sum of the complementarity products is the gap of a feasible iterate, and the optimum is at most ℓ(0) = 1: while
    that sum is far above `tol`, nothing needs to be computed.
    """
    if problem.n_products * mu > _FAR * tol:
        return False
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
    columns = new.columns(positives, rows)
    _copy_known(old.positives, state.columns[:, : old.m], new.positives, columns[:, :m])
    _copy_known(old.threshold_rows, state.columns[:, old.m :], new.threshold_rows, columns[:, m:])
    carried = State(state.extended.copy(), S, columns, state.gaps)
    low, up = new.lower, new.upper
    carried.p[low] = np.maximum(carried.p[low], 0.1 * mu / carried.y[low])
    if new.has_upper:
        carried.r[up] = np.maximum(carried.r[up], 0.1 * mu / carried.room[up])
    return carried


def _copy_known(old: Rows, columns: Floats, new: Rows, target: Floats) -> None:
    """Set columns of target to the old ones where a row (both lists are sorted) was known before."""
    place = np.minimum(np.searchsorted(old, new), len(old) - 1)
    known = old[place] == new
    target[:, known] = columns[:, place[known]]


class _NewtonSystem:
    """Newton's equations at an iterate, p, r and y eliminated: one factor for all changes of the products."""

    def __init__(self, problem: Restricted, state: State, images: Floats, dual: Floats) -> None:
        self.problem, self.state, self.dual = problem, state, dual
        slope, curvature = problem.conjugate_model(state)
        self.primal = state.p - images - slope
        self.threshold = -float(problem.g_extended @ state.extended)
        inverse_weights, h = state.p / state.y + curvature, problem.per_S
        if problem.has_upper:
            ratio = state.r / state.room
            self.primal -= state.r
            self.threshold -= float(problem.per_S @ state.r)
            self.bound = (problem.fixed + problem.per_S * state.S - state.y - state.room)[problem.upper]
            inverse_weights, h = inverse_weights + ratio, h * ratio
        self.solve = problem.factorised(1.0 / inverse_weights, h)

    def direction(self, on_lower: Floats, on_upper: Floats | None) -> tuple[State, Floats]:
        """The direction in which y p and room · r change by so much, and B̂ times its (w, t, ν)."""
        problem, state, low, up = self.problem, self.state, self.problem.lower, self.problem.upper
        y, row_residual, threshold = state.y[low], self.primal.copy(), self.threshold
        row_residual[low] += on_lower / y
        if on_upper is not None:
            room, r, per_S = state.room[up], state.r[up], problem.per_S[up]
            correction = (on_upper - r * self.bound) / room
            row_residual[up] -= correction
            threshold -= float(per_S @ correction)
        step, dS, dy, image = self.solve(self.dual, row_residual, threshold)
        change = State(step, dS, np.zeros(state.columns.shape))
        change.columns[0] = dy
        change.columns[1, low] = (on_lower - state.p[low] * dy[low]) / y
        if on_upper is not None:
            of_room = per_S * dS - dy[up] + self.bound
            change.columns[2, up], change.columns[3, up] = of_room, (on_upper - r * of_room) / room
        return change, image


def _direction(system: _NewtonSystem, mu: float, last_step: float) -> tuple[State, Floats, float]:
    """Predictor and correctors; returns the direction, B̂ times its (w, t, ν) and the longest step."""
    problem, state, low, up = system.problem, system.state, system.problem.lower, system.problem.upper
    columns, on_upper = state.columns, None
    # 3. Predictor.
    on_lower = -columns[0, low] * columns[1, low]
    if problem.has_upper:
        on_upper = -columns[2, up] * columns[3, up]
    affine, _ = system.direction(on_lower, on_upper)
    reached = problem.mean_product_after(state, _longest_step(problem, state, affine), affine)
    centring = min(1.0, (reached / mu) ** 3)
    target = mu * (max(centring, 0.5) if last_step < 0.1 else centring)
    # 4. Correctors.
    on_lower = target + on_lower - affine.columns[0, low] * affine.columns[1, low]
    if on_upper is not None:
        on_upper = target + on_upper - affine.columns[2, up] * affine.columns[3, up]
    change, image = system.direction(on_lower, on_upper)
    step = _longest_step(problem, state, change)
    for _ in range(_CORRECTIONS if problem.rows.solves_cheaply else 0):
        if step >= _LONG_STEP:
            break
        reach = min(1.0, 1.5 * step + 0.3)
        on_lower = on_lower + _recentring(columns[:2, low], change.columns[:2, low], reach, target)
        if on_upper is not None:
            on_upper = on_upper + _recentring(columns[2:, up], change.columns[2:, up], reach, target)
        corrected, its_image = system.direction(on_lower, on_upper)
        longer = _longest_step(problem, state, corrected)
        if longer < 1.1 * step:
            break
        change, image, step = corrected, its_image, longer
    return change, image, step


def _recentring(factors: Floats, changes: Floats, reach: float, target: float) -> Floats:
    """What brings the products at a longer step back to between a tenth of the target and ten times it."""
    one, other = factors + reach * changes
    products = one * other
    within = np.minimum(np.maximum(products, 0.1 * target), 10 * target)
    return np.asarray(np.maximum(within - products, -10 * target))


def _longest_step(problem: Restricted, state: State, direction: State) -> float:
    """The largest step up to 1 that keeps multipliers with a slack, and slacks, non-negative."""
    relative = direction.columns / state.columns
    relative[0, : problem.lower.start] = 0.0
    fastest = float(np.fmin.reduce(relative, axis=None))  # NaN is a slack that is not in use
    return 1.0 / max(1.0, -fastest)
