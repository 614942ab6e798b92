r"""Newton's method for PatMat and PatMatNP, whose objective is smooth.

With g = Xᵀp the gradient of the threshold, y = a·ℓ'(t − s⁺), S = Σy, and c the shares of the threshold rows,

.. math:: \nabla f = \alpha w + S g - X_+^\top y, \qquad
          \nabla^2 f = \alpha I + \sum_r h_r (x_r - g)(x_r - g)^\top,

where a positive has the weight :math:`h = a\,\ell''(t - s)` and a threshold row
:math:`h = S \beta\, c\,\ell''(\beta (s - t)) / \sum_j c_j \ell'(\beta (s_j - t))`: the second derivative of the
threshold follows by differentiating its defining equation twice. All weights are non-negative, so the Hessian is
positive definite. A row far below the threshold has weight zero for the quadratic loss and costs nothing.

Steps of an iteration:

1. One pass for the scores (they are linear in w, so the line search needs no more).
2. The threshold, the gradient (two passes) and with it the certificate, as
   :math:`X_+^\top y - S g = \alpha w - \nabla f`.
3. The Newton direction.
4. A backtracking line search on the objective.

Exponential loss. It is e^L with L convex, and L may be in the hundreds: at w = 0 it is log(1/τ) / β. A Newton step on
e^L lowers L by at most 1, but its direction is that of a step on L, so the line search may lengthen it. All is kept
relative to the largest y. Rounding errors of the gradient are e^L times as large as those of its terms, more than α
can hold; so the metric and the gradient have a floor in terms of them (`_ridge`, `_centre_and_pull`).

The hinge has no curvature. It is approached by Huberised hinges of falling width, which is quick as long as few rows
are near a kink; where one of them takes many steps or brings little, an interior-point method takes over. The
certificate is always that of the hinge itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toprank.arrays import Floats
from toprank.formulations.surrogates import SlopeSums, Surrogate, log_or_minus_infinity
from toprank.matrices.dense_or_sparse import weighted_squares
from toprank.solvers.hinge_quantile import improve_hinge_quantile
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.newton_system import Solve, newton_system
from toprank.solvers.problem import DualPoint, Problem, Recorder, Solution

_EPSILON, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)

# Steps for one Huberised hinge.
_STEPS_OF_A_WIDTH = 20
# A Huberised hinge that leaves so much of the gap is the last one.
_LITTLE = 0.7
# So many steps in a row without any progress end the run.
_STALLS = 5
# Solutions of the Newton equation for a bound where the loss is huge.
_REFINEMENTS = 3
# Logarithm of the slope of the loss from which on rounding errors in the gradient count.
_HUGE = float(np.log(1e4))
# Scores beyond this have rounding errors that the exponential would show.
_LARGEST_SCORE = 1e9
# Errors of a logarithm of the objective that are rounding, as multiples of the last digit.
_ROUNDING = 4.0
# Beyond this an objective is infinite in double precision.
_LARGEST_LOGARITHM = 700.0


@dataclass(frozen=True)
class _Level:
    """What follows from scores and ‖w‖.

    `unit` is y over its largest entry, whose logarithm is `log_largest`: y may be so small that what belongs to it
    would underflow, or vanish beside αw in the gradient, and any multiple of y gives a bound. `sums` are those of
    `unit`, `slope` is the sum of the slopes that p is proportional to, and `conjugate` is t*(p).
    """

    scores: Floats
    threshold: float
    log_objective: float
    unit: Floats
    log_largest: float
    sums: SlopeSums
    p: Floats
    slope: float
    conjugate: float

    @property
    def log_scale(self) -> float:
        """Logarithm of what gradient and Hessian are divided by: the largest y where that is above 1."""
        return max(0.0, self.log_largest)

    @property
    def largest(self) -> float:
        """The largest y over the scale, at most 1."""
        return float(np.exp(self.log_largest - self.log_scale))


@dataclass(frozen=True)
class _Point(_Level):
    """A point with everything that the next step needs.

    `centre` is g, `pull` is X₊ᵀu − (Σu)·g for u = `unit`, `gradient` is divided by the scale, and `is_huge` says that
    rounding errors of `pull` count.
    """

    w: Floats
    centre: Floats
    pull: Floats
    gradient: Floats
    is_huge: bool


def solve_smooth_newton(
    problem: Problem, *, tol: float = 1e-4, max_iter: int = 3000, verbose: int = 0, start: Solution | None = None
) -> Solution:
    """Minimise a formulation with a surrogate quantile to a relative duality gap of `tol`."""
    problem = _precise(problem)
    incumbent = Incumbent(problem, tol, Recorder(verbose))
    w = np.zeros(problem.X.shape[1]) if start is None else start.coef.astype(np.float64)
    if problem.formulation.surrogate.is_smooth:
        _minimise(problem, problem, w, incumbent, max_iter)
    else:
        _approach_hinge(problem, w, incumbent, max_iter)
    _leave_zero(problem, incumbent)
    return incumbent.solution()


def _precise(problem: Problem) -> Problem:
    """The problem in double precision where an exponential loss is so large at w = 0 that rounding errors count."""
    threshold = problem.formulation.threshold.implicit
    if threshold.surrogate.in_log_domain and -np.log(threshold.tau) / threshold.beta > _HUGE:
        return replace(problem, X=problem.X.astype(np.float64, copy=False))
    return problem


def _approach_hinge(problem: Problem, w: Floats, incumbent: Incumbent, max_iter: int) -> None:
    """Huberised hinges as long as each of them brings much, then the interior-point method.

    That one has numbers for each row and its multipliers, so of rows in blocks all is left to Huberised hinges.
    """
    has_interior_point = problem.matrix == "rows"
    for width in 0.2 ** np.arange(14):
        before = incumbent.gap
        smooth = _with_surrogate(problem, problem.formulation.surrogate.pieces.smoothed(width))
        w = _minimise(problem, smooth, w, incumbent, min(max_iter, incumbent.n_iter + _STEPS_OF_A_WIDTH))
        if incumbent.converged or (has_interior_point and incumbent.gap > _LITTLE * before):
            break
    if has_interior_point and not incumbent.converged:
        improve_hinge_quantile(problem, incumbent, max_iter)


def _minimise(problem: Problem, smooth: Problem, w: Floats, incumbent: Incumbent, max_iter: int) -> Floats:
    """Newton's method on a problem that is `problem` itself or a smoothed one; returns the last point."""
    recorder, stalls = incumbent.recorder, 0
    point: _Point | None = _evaluate(smooth, w, None, recorder)
    while point is not None:
        # 1. and 2. The certificate at a point whose scores, threshold and gradient are known.
        w, before = point.w, (incumbent.primal, incumbent.dual)
        _certify(problem, smooth, point, incumbent)
        incumbent.record()
        is_better = incumbent.primal < before[0] * (1 - 1e-12) or incumbent.dual > before[1] + 1e-12 * abs(before[1])
        stalls = 0 if is_better else stalls + 1
        at_zero = incumbent.n_iter == 0 and not w.any()  # one step at least, so that the model has a direction
        done = incumbent.converged or (smooth is not problem and _is_done(smooth, point, incumbent))
        if ((done or stalls >= _STALLS) and not at_zero) or incumbent.n_iter >= max_iter:
            break
        # 3. and 4. The Newton direction, and the point that the line search finds.
        incumbent.n_iter += 1
        point = _step(smooth, point, incumbent)
    return w


def _leave_zero(problem: Problem, incumbent: Incumbent) -> None:
    """Replace w = 0 by a step down the slope, which at zero is the difference of two mean rows.

    The objective is differentiable there, so w = 0 is optimal only if these means agree.
    """
    if incumbent.coef.any() or not len(incumbent.coef):
        return
    threshold = problem.formulation.threshold.implicit
    point = _evaluate(problem, incumbent.coef, None, incumbent.recorder)
    # the hinge is linear as long as no score has moved by more than τ/β
    moved = float(np.abs(problem.scores(point.gradient)).max())
    is_short = threshold.beta * moved > threshold.tau * problem.alpha
    length = threshold.tau / threshold.beta / moved if is_short else 1 / problem.alpha
    following = _line_search(problem, point, -length * point.gradient, incumbent.recorder)
    if following is not None:
        incumbent.n_iter += 1
        _certify(problem, problem, following, incumbent)
        incumbent.record()


def _with_surrogate(problem: Problem, surrogate: Surrogate) -> Problem:
    threshold = replace(problem.formulation.threshold.implicit, surrogate=surrogate)
    return replace(problem, formulation=replace(problem.formulation, surrogate=surrogate, threshold=threshold))


def _level(problem: Problem, w_squared: float, scores: Floats, start: float = -np.inf, above: float = 0.0) -> _Level:
    """Objective, threshold and slopes from scores alone; the threshold is looked for above `start`."""
    threshold, surrogate = problem.formulation.threshold.implicit, problem.formulation.surrogate
    s, share = scores[problem.threshold_rows], problem.threshold_share
    t = threshold.solve(s, share, start, above)
    slopes = threshold.slopes(s, share, t)
    z = t - scores[problem.positives]
    loss = surrogate.mean_loss(z, problem.positive_share, (np.sum, slopes), (np.dot, slopes, s))
    log_objective = float(np.logaddexp(log_or_minus_infinity(0.5 * problem.alpha * w_squared), loss.log_mean))
    if surrogate.in_log_domain and np.abs(scores).max() > _LARGEST_SCORE:
        log_objective = np.inf
    slope, at_scores = loss.others
    p, conjugate = slopes / slope, at_scores / slope - t
    return _Level(scores, t, log_objective, loss.unit, loss.log_largest, loss.sums, p, slope, conjugate)


def _evaluate(problem: Problem, w: Floats, level: _Level | None, recorder: Recorder) -> _Point:
    """Everything at w: two passes for the gradient, and one for the scores where nothing is known of them."""
    if level is None:
        level = _level(problem, float(w @ w), problem.scores(w))
        recorder.passes += 1
    is_huge = problem.formulation.surrogate.in_log_domain and level.log_largest > _HUGE
    centre, pull = _centre_and_pull(problem, level.unit, level.sums.total, level.p, is_huge, recorder)
    gradient = problem.alpha * np.exp(-level.log_scale) * w - level.largest * pull
    return _Point(**vars(level), w=w, centre=centre, pull=pull, gradient=gradient, is_huge=is_huge)


def _centre_and_pull(
    problem: Problem, unit: Floats, total: float, p: Floats, without_rounding: bool, recorder: Recorder
) -> tuple[Floats, Floats]:
    """The centre g = Xᵀp, and X₊ᵀu − (Σu)·g, whose sum is `total`; two passes.

    With `without_rounding`, entries of the latter that are no larger than the rounding errors of their sum are zero: so
    they are for data that differ from X in the last digits (Oettli and Prager 1964), and a bound with them is a bound.
    """
    on_positives, on_threshold = problem.row_weights(unit, 0.0), problem.row_weights(0.0, p)
    centre, of_positives = problem.combine_both(on_threshold, on_positives)
    pull = of_positives - total * centre
    recorder.passes += problem.passes_for_both
    if without_rounding:
        X, sizes = problem.X, on_positives + total * on_threshold
        errors = (8 + np.sqrt(len(sizes))) * _EPSILON * np.asarray(abs(X).T @ sizes)
        pull = np.where(np.abs(pull) > errors, pull, 0.0)
        recorder.passes += 1
    return centre, pull


def _hessian_weights(problem: Problem, point: _Point) -> Floats:
    """Weights h of the rows in the Hessian over the scale."""
    threshold, surrogate = problem.formulation.threshold.implicit, problem.formulation.surrogate
    if surrogate.in_log_domain:  # the exponential bends as much as it rises
        on_positives = point.largest * point.unit
    else:
        z = point.threshold - point.scores[problem.positives]
        on_positives = np.exp(-point.log_scale) * problem.positive_share * surrogate.curvature(z)
    S = point.largest * point.sums.total
    s, share = point.scores[problem.threshold_rows], problem.threshold_share
    return problem.row_weights(on_positives, threshold.curvature(s, share, point.threshold, S, point.slope))


def _certify(problem: Problem, smooth: Problem, point: _Point, incumbent: Incumbent) -> None:
    """Offer objective and lower bound of the problem itself at a point of the smoothed one."""
    primal, conjugate = float(np.exp(min(point.log_objective, _LARGEST_LOGARITHM))), point.conjugate
    if smooth is not problem:
        threshold, share = problem.formulation.threshold.implicit, problem.threshold_share
        t = threshold.solve(point.scores[problem.threshold_rows], share, point.threshold)
        primal, conjugate = (
            problem.objective(float(point.w @ point.w), point.scores, t),
            threshold.conjugate(point.p, share),
        )
    incumbent.offer(primal, point.w, point.scores)
    known = DualPoint(point.unit, point.p, conjugate)
    incumbent.raise_bound(problem.dual_value(known, float(point.pull @ point.pull), point.sums)[0], known)


def _is_done(problem: Problem, point: _Point, incumbent: Incumbent) -> bool:
    """Whether the smoothed problem is solved: by strong convexity ‖∇f‖² / (2α) bounds what is left to gain."""
    left = log_or_minus_infinity(float(point.gradient @ point.gradient) / (2 * problem.alpha)) + 2 * point.log_scale
    return left <= float(np.log(0.1 * incumbent.tol)) + point.log_objective


def _step(problem: Problem, point: _Point, incumbent: Incumbent) -> _Point | None:
    """A step along the Newton direction; None if it makes no progress.

    Where no row has curvature, as when all positives are beyond their margin, the penalty alone is the metric.
    """
    weights = _hessian_weights(problem, point)
    norm = float(np.linalg.norm(point.gradient))
    relative = min(0.1, np.sqrt(norm * np.exp(point.log_scale - point.log_objective)))
    ridge = _ridge(problem, point, weights)
    solve = newton_system(problem.X, weights, point.centre, ridge, incumbent.recorder, max(relative, 1e-8))
    if point.is_huge:
        _offer_linearised(problem, point, solve, incumbent)
    return _line_search(problem, point, -solve(point.gradient), incumbent.recorder)


def _offer_linearised(problem: Problem, point: _Point, solve: Solve, incumbent: Incumbent) -> None:
    """Offer the bound at y and p as they would be after a Newton step, were they linear in w.

    Where the loss stays huge, the rounding of the scores alone spoils the balance of the rows in y and p taken at them;
    the linearised ones are balanced by the Newton equation itself, which is solved again for what is left.
    """
    threshold = problem.formulation.threshold.implicit
    w, gradient, unit, p = point.w, point.gradient, point.unit, point.p
    for _ in range(_REFINEMENTS):
        move = -solve(gradient)
        change = problem.scores(move)
        on_threshold = change[problem.threshold_rows]
        rise = float(p @ on_threshold)
        unit = unit * np.maximum(1 + rise - change[problem.positives], 0.0)
        p = p * np.maximum(1 + threshold.beta * (on_threshold - rise), 0.0)
        if not (unit.any() and p.any()):
            break
        w, p = w + move, p / p.sum()
        _, pull = _centre_and_pull(problem, unit, float(unit.sum()), p, True, incumbent.recorder)
        known = DualPoint(unit, p, threshold.conjugate(p, problem.threshold_share))
        incumbent.raise_bound(problem.dual_value(known, float(pull @ pull))[0], known)
        gradient = problem.alpha * np.exp(-point.log_scale) * w - point.largest * pull


def _ridge(problem: Problem, point: _Point, weights: Floats) -> Floats:
    """The penalty over the scale, but not below the rounding errors of the Hessian.

    Along a direction in which no two rows differ, the gradient of the loss is rounding alone; the penalty holds it.
    """
    X = problem.X
    ridge = np.full(X.shape[1], problem.alpha * np.exp(-point.log_scale))
    if not point.is_huge:
        return ridge
    column = weighted_squares(X, weights)
    return np.maximum(ridge, 100 * _EPSILON * np.where(column > 0, column, 1.0))


def _line_search(problem: Problem, point: _Point, direction: Floats, recorder: Recorder) -> _Point | None:
    """Halve the step until the objective falls by a part of what its slope promises; None if it never does.

    What is lost in its last digits does not count: where columns are large, the objective is flat there long before the
    gradient is small enough for a bound. With the exponential loss a full step is doubled as long as that is better.
    """
    step_scores = problem.scores(direction)
    recorder.passes += 1
    slope = float(point.gradient @ direction) * np.exp(point.log_scale - point.log_objective)
    if not slope < 0:
        return None
    ww, wd, dd = float(point.w @ point.w), float(point.w @ direction), float(direction @ direction)
    # the threshold is convex, and bends by no more than a part of the Newton model
    rise = float(point.centre @ direction)
    bend = -0.5 * float(point.gradient @ direction) / max(point.largest * point.sums.total, _TINY)

    def at(step: float) -> _Level:
        scores = problem.settled(point.scores + step * step_scores)
        start, above = point.threshold + step * rise, step**2 * bend
        return _level(problem, ww + 2 * step * wd + step**2 * dd, scores, start, above)

    step, rounding = 1.0, _ROUNDING * _EPSILON * max(abs(point.log_objective), 1.0)
    for _ in range(30):
        reached = at(step)
        if reached.log_objective <= point.log_objective + np.log1p(max(1e-4 * step * slope, -0.5)) + rounding:
            break
        step *= 0.5
    else:
        return None
    while step >= 1 and point.log_scale > 0 and problem.formulation.surrogate.in_log_domain:
        further = at(2 * step)
        if not further.log_objective < reached.log_objective:
            break
        step, reached = 2 * step, further
    return _evaluate(problem, point.w + step * direction, reached, recorder)
