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
3. The Newton direction: by Cholesky in feature space or in the space of the active rows, whichever is smaller, or by
   preconditioned conjugate gradients when both are large.
4. A backtracking line search on the objective.

The hinge has no curvature. It is approached by Huberised hinges of falling width; the certificate is always that of
the hinge itself. Where a narrow one has too little curvature for a step to succeed, the Hessian of a wider one is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, cg

from toprank.formulations.certificates import dual_value
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import PiecewiseQuadratic, Surrogate
from toprank.formulations.thresholds import SurrogateQuantile
from toprank.solvers.matrix import Cholesky, sandwich
from toprank.solvers.problem import DualPoint, Problem, Recorder, Solution, relative_gap

Floats = NDArray[np.float64]

# Largest order of a system that is formed and factorised.
EXPLICIT = 2000


@dataclass
class _Point:
    """A point with everything that the next step needs.

    `unit` is y over its largest entry, and `pull` is X₊ᵀu − (Σu)·g for this u: y may be so small that what belongs to
    it would underflow, or vanish beside αw in the gradient, and any multiple of y gives a bound.
    """

    w: Floats
    scores: Floats
    threshold: float
    objective: float
    gradient: Floats
    centre: Floats
    y: Floats
    unit: Floats
    pull: Floats
    p: Floats


def solve_smooth_newton(
    problem: Problem, *, tol: float = 1e-4, max_iter: int = 3000, verbose: int = 0, start: Solution | None = None
) -> Solution:
    """Minimise a formulation with a surrogate quantile to a relative duality gap of `tol`."""
    recorder = Recorder(verbose)
    w = np.zeros(problem.X.shape[1]) if start is None else start.coef.astype(np.float64)
    n_iter = 0
    best_primal, best_dual, best, best_scores = np.inf, -np.inf, w, np.zeros(len(problem.positive))
    dual_point: DualPoint | None = None
    wider: list[Surrogate] = []
    for surrogate in _smoothings(problem.formulation.surrogate):
        smooth = _with_surrogate(problem, surrogate)
        wider.insert(0, surrogate)
        point = _evaluate(smooth, w, None, recorder)
        while True:
            primal, dual, conjugate = _bounds(problem, smooth, point)
            if dual > best_dual:
                best_dual, dual_point = dual, DualPoint(point.unit, point.p, conjugate)
            if primal < best_primal:
                best_primal, best, best_scores = primal, point.w, point.scores
            recorder.record(n_iter, best_primal, best_dual)
            at_zero = n_iter == 0 and not point.w.any()  # one step at least, so that the model has a direction
            if not at_zero and (relative_gap(best_primal, best_dual) <= tol or _is_done(smooth, point, tol)):
                break
            if n_iter >= max_iter:
                break
            n_iter += 1
            following = _newton_step(smooth, point, wider, recorder)
            if following is None:
                break
            point = following
        w = point.w
        if relative_gap(best_primal, best_dual) <= tol or n_iter >= max_iter:
            break
    t = problem.formulation.threshold.value(best_scores[problem.threshold_rows], problem.threshold_weights)
    converged = relative_gap(best_primal, best_dual) <= tol
    return Solution(best, t, best_primal, best_dual, n_iter, converged, recorder.rows, dual_point=dual_point)


def _smoothings(surrogate: Surrogate) -> list[Surrogate]:
    """The surrogate itself, or for the hinge a sequence of Huberised hinges that tends to it."""
    if surrogate.name != "hinge":
        return [surrogate]
    return [PiecewiseQuadratic("huber", 1 + h, 2 * h, 1.0) for h in 0.5 * 0.2 ** np.arange(14)]


def _with_surrogate(problem: Problem, surrogate: Surrogate) -> Problem:
    threshold = problem.formulation.threshold
    assert isinstance(threshold, SurrogateQuantile)
    formulation: Formulation = replace(
        problem.formulation, surrogate=surrogate, threshold=replace(threshold, surrogate=surrogate)
    )
    return replace(problem, formulation=formulation)


def _objective(problem: Problem, w_squared: float, scores: Floats, start: float) -> tuple[float, float]:
    """Objective and threshold from scores alone."""
    threshold = problem.formulation.threshold
    assert isinstance(threshold, SurrogateQuantile)
    t = threshold.solve(scores[problem.threshold_rows], problem.threshold_share, start)
    loss = problem.positive_share @ problem.formulation.surrogate.value(t - scores[problem.positives])
    return 0.5 * problem.alpha * w_squared + float(loss), t


def _evaluate(problem: Problem, w: Floats, scores: Floats | None, recorder: Recorder) -> _Point:
    """Everything at w: two passes for the gradient, and one for the scores where they are not known."""
    if scores is None:
        scores = problem.scores(w)
        recorder.passes += 1
    threshold, surrogate = problem.formulation.threshold, problem.formulation.surrogate
    assert isinstance(threshold, SurrogateQuantile)
    objective, t = _objective(problem, float(w @ w), scores, -np.inf)
    z = t - scores[problem.positives]
    y = problem.positive_share * surrogate.derivative(z)
    largest = float(y.max())
    unit = y / largest if largest > 0 else y
    excess = threshold.beta * (scores[problem.threshold_rows] - t)
    slopes = problem.threshold_share * surrogate.derivative(excess)
    p = slopes / slopes.sum()
    on_threshold, on_positives = np.zeros(len(scores)), np.zeros(len(scores))
    on_threshold[problem.threshold_rows] = p
    on_positives[problem.positives] = unit
    centre = problem.combine(on_threshold)
    pull = problem.combine(on_positives) - unit.sum() * centre
    recorder.passes += 2
    return _Point(w, scores, t, objective, problem.alpha * w - largest * pull, centre, y, unit, pull, p)


def _hessian_weights(problem: Problem, point: _Point, surrogate: Surrogate) -> Floats:
    """Weights h of the rows in the Hessian, by the curvature of the given surrogate."""
    threshold = problem.formulation.threshold
    assert isinstance(threshold, SurrogateQuantile)
    excess = threshold.beta * (point.scores[problem.threshold_rows] - point.threshold)
    share = problem.threshold_share
    slopes = share @ problem.formulation.surrogate.derivative(excess)
    h = np.zeros(len(point.scores))
    h[problem.positives] = problem.positive_share * surrogate.curvature(
        point.threshold - point.scores[problem.positives]
    )
    h[problem.threshold_rows] += point.y.sum() * threshold.beta / slopes * share * surrogate.curvature(excess)
    return h


def _bounds(problem: Problem, smooth: Problem, point: _Point) -> tuple[float, float, float]:
    """Objective, lower bound and t*(p) of the problem itself at a point of the smoothed one."""
    s, threshold = point.scores[problem.threshold_rows], problem.formulation.threshold
    assert isinstance(threshold, SurrogateQuantile)
    if smooth.formulation.surrogate is problem.formulation.surrogate:
        primal, conjugate = point.objective, float(point.p @ s) - point.threshold
    else:
        primal = _objective(problem, float(point.w @ point.w), point.scores, -np.inf)[0]
        conjugate = (threshold.tau * float(np.max(point.p / problem.threshold_share)) - 1) / threshold.beta
    surrogate = problem.formulation.surrogate
    squared_norm = float(point.pull @ point.pull)
    dual, _ = dual_value(surrogate, problem.positive_share, point.unit, squared_norm, problem.alpha, conjugate)
    return primal, dual, conjugate


def _is_done(problem: Problem, point: _Point, tol: float) -> bool:
    """Whether the smoothed problem is solved: by strong convexity ‖∇f‖² / (2α) bounds what is left to gain."""
    return float(point.gradient @ point.gradient) / (2 * problem.alpha) <= 0.1 * tol * point.objective


def _newton_step(problem: Problem, point: _Point, metrics: list[Surrogate], recorder: Recorder) -> _Point | None:
    """A step along the Newton direction by the first of the metrics that makes progress; None if none does.

    Where no row has curvature, as when all positives are beyond their margin, the penalty alone is the metric.
    """
    curved = [weights for weights in (_hessian_weights(problem, point, s) for s in metrics) if weights.any()]
    for weights in curved or [np.zeros(len(point.scores))]:
        following = _line_search(problem, point, _direction(problem, point, weights, recorder), recorder)
        if following is not None:
            return following
    return None


def _line_search(problem: Problem, point: _Point, direction: Floats, recorder: Recorder) -> _Point | None:
    """Halve the step until the objective falls by a part of what its slope promises; None if it never does."""
    step_scores = problem.scores(direction)
    recorder.passes += 1
    slope = float(point.gradient @ direction)
    if not slope < 0:
        return None
    ww, wd, dd = float(point.w @ point.w), float(point.w @ direction), float(direction @ direction)
    step = 1.0
    for _ in range(30):
        scores = point.scores + step * step_scores
        objective, _ = _objective(problem, ww + 2 * step * wd + step**2 * dd, scores, point.threshold)
        if objective <= point.objective + 1e-4 * step * slope:
            return _evaluate(problem, point.w + step * direction, scores, recorder)
        step *= 0.5
    return None


def _direction(problem: Problem, point: _Point, weights: Floats, recorder: Recorder) -> Floats:
    """Solve the Newton system in the cheapest of the three ways."""
    active = np.flatnonzero(weights)
    n_features = problem.X.shape[1]
    recorder.passes += len(active) / len(point.scores)
    if len(active) == 0 or n_features == 0:
        return -point.gradient / problem.alpha
    if n_features <= min(EXPLICIT, 4 * len(active)):
        H = sandwich(problem.X, weights, point.centre)
        H[np.diag_indices(n_features)] += problem.alpha
        return -Cholesky(H).solve(point.gradient)
    if len(active) <= EXPLICIT:
        return _direction_in_row_space(problem, point, weights, active)
    return _direction_by_cg(problem, point, weights, active, recorder)


def _direction_in_row_space(problem: Problem, point: _Point, weights: Floats, active: NDArray[np.intp]) -> Floats:
    """Woodbury's identity: (αI + ZᵀZ)⁻¹ = (I − Zᵀ(αI + ZZᵀ)⁻¹Z) / α, with Z the weighted, centred active rows."""
    rows, root, c = problem.X[active], np.sqrt(weights[active]), point.centre
    if issparse(rows):
        rows = rows.astype(np.float64)
        products = (rows @ rows.T).toarray()
        mean = np.asarray(rows @ c)
        gram = products - mean[:, None] - mean[None, :] + c @ c
    else:
        rows = rows.astype(np.float64) - c
        gram, c = rows @ rows.T, np.zeros_like(c)
    system = root[:, None] * gram * root
    system[np.diag_indices(len(active))] += problem.alpha
    g = point.gradient
    u = root * Cholesky(system).solve(root * (rows @ g - c @ g))
    return np.asarray(-(g - (rows.T @ u - u.sum() * c)) / problem.alpha)


def _direction_by_cg(
    problem: Problem, point: _Point, weights: Floats, active: NDArray[np.intp], recorder: Recorder
) -> Floats:
    """Conjugate gradients with the diagonal of the Hessian as preconditioner, as exact as the gradient is small."""
    rows, h, c = problem.X[active], weights[active], point.centre
    squares = rows.multiply(rows) if issparse(rows) else np.square(rows)
    diagonal = np.asarray(squares.T @ h) - 2 * c * np.asarray(rows.T @ h) + h.sum() * c**2
    diagonal = problem.alpha + np.maximum(diagonal, 0.0)
    part = 2 * len(active) / len(point.scores)

    def product(v: Floats) -> Floats:
        recorder.passes += part
        u = h * (rows @ v - c @ v)
        return np.asarray(problem.alpha * v + rows.T @ u - u.sum() * c)

    shape = (len(c), len(c))
    relative = min(0.1, np.sqrt(float(np.linalg.norm(point.gradient)) / max(point.objective, 1e-300)))
    solution, _ = cg(
        LinearOperator(shape, matvec=product),
        -point.gradient,
        rtol=max(relative, 1e-8),
        maxiter=500,
        M=LinearOperator(shape, matvec=lambda v: v / diagonal),
    )
    return np.asarray(solution)
