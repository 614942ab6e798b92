r"""Two ways to minimise a penalised loss of the scores.

.. math:: f(w) = \frac\alpha2 \|w\|^2 + F(Xw)

f is strongly convex with constant α, so no w has a value below :math:`f(w) - \|\nabla f(w)\|^2 / (2\alpha)`. Both
solvers stop when this bound on the suboptimality is at most `tol` times the value, but not before the first step: under
a large penalty, or with tiny features, the solution is hardly better than zero, but it ranks, and zero does not.

X is read by its operations, and what is a number for each row is an array or, for rows in blocks, a `BlockVector`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from toprank.arrays import Floats
from toprank.matrices.dense_or_sparse import (
    matvec,
    sandwich,
    thinned,
    transpose_matvec,
    weighted_squares,
    zero_scores,
)
from toprank.solvers.problem import Recorder

HISTORY = ("iteration", "passes", "seconds", "objective", "gradient_norm", "suboptimality")
# Products with the Hessian for a step, at most.
_MOST_PRODUCTS = 500
# Rows, and largest number of columns, of which the first preconditioner is made; after more than so many inner
# iterations it is made anew, of all rows and with their present weights.
_SAMPLE, _EXPLICIT, _PATIENCE = 1000, 300, 15
_MESSAGE = "iteration %d: passes %d, %.2f s, objective %.6g, gradient %.1e, bound %.1e"
# Rounding errors of a sum over the rows, at most.
_ROUNDING = 100.0


class LossPoint(Protocol):
    """Value and derivatives of a loss at given scores."""

    scores: Floats

    @property
    def value(self) -> float:
        """The loss F."""

    @property
    def gradient(self) -> Floats:
        """Its derivative by each score."""

    @property
    def curvature(self) -> Floats:
        """The diagonal of its Hessian."""

    def hessian_product(self, direction: Floats) -> Floats:
        """Its Hessian times a direction in the space of scores."""


class Loss(Protocol):
    """A convex loss of the scores of all rows, twice differentiable, or nearly so."""

    def __call__(self, scores: Floats) -> LossPoint:
        """The loss at some scores."""


@dataclass
class Point:
    """Coefficients with all that is known of the objective there."""

    w: Floats
    loss: LossPoint
    objective: float
    gradient: Floats

    def suboptimality(self, alpha: float) -> float:
        """No coefficients have an objective lower by more than this."""
        return float(self.gradient @ self.gradient) / (2 * alpha)


@dataclass
class Problem:
    """The objective of a matrix, a loss and a penalty."""

    X: Any
    loss: Loss
    alpha: float
    verbose: int = 0
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.verbose, 0, names=HISTORY, message=_MESSAGE)

    def scores(self, w: Floats) -> Floats:
        """X w."""
        self.recorder.passes += 1
        return matvec(self.X, w)

    def combine(self, rows: Floats) -> Floats:
        """Xᵀ r."""
        self.recorder.passes += 1
        return transpose_matvec(self.X, rows)

    def objective(self, w: Floats, loss: LossPoint) -> float:
        """The value at w."""
        return 0.5 * self.alpha * float(w @ w) + loss.value

    def point(self, w: Floats, loss: LossPoint) -> Point:
        """The value and the gradient at w, from the loss of its scores."""
        return Point(w, loss, self.objective(w, loss), self.alpha * w + self.combine(loss.gradient))

    def hessian_product(self, loss: LossPoint, direction: Floats) -> Floats:
        """∇²f times a direction: two passes."""
        return self.alpha * direction + self.combine(loss.hessian_product(self.scores(direction)))

    def record(self, iteration: int, point: Point) -> None:
        """Add a row to the history."""
        norm = float(np.linalg.norm(point.gradient))
        self.recorder.add(iteration, point.objective, norm, point.suboptimality(self.alpha))

    def is_solved(self, point: Point, tol: float) -> bool:
        """Whether the bound on the suboptimality is small enough."""
        return point.suboptimality(self.alpha) <= tol * abs(point.objective)

    def is_worth_a_step(self, point: Point, n_iter: int, tol: float) -> bool:
        """Whether there is more to gain, or no step was taken yet though the gradient is more than rounding errors."""
        if n_iter > 0 or not self.is_solved(point, tol):
            return not self.is_solved(point, tol)
        terms = float(np.linalg.norm(self.combine(np.abs(point.loss.gradient))))
        return float(np.linalg.norm(point.gradient)) > _ROUNDING * float(np.finfo(self.X.dtype).eps) * terms


@dataclass
class Solution:
    """A point and how it was found."""

    point: Point
    n_iter: int
    converged: bool


def solve_newton_cg(problem: Problem, *, tol: float = 1e-6, max_iter: int = 100) -> Solution:
    """Minimise by Newton's method with inner conjugate gradients.

    1. Conjugate gradients on ∇²f d = −∇f, preconditioned by the weighted covariance of the columns, as exact as the
       gradient is small. A product with the Hessian is two passes over the data and one pair of sums.
    2. Halve the step until f falls by a part of what its slope promises. Scores are linear in w, so that no further
       pass is needed.
    """
    w = np.zeros(problem.X.shape[1])
    point = problem.point(w, problem.loss(zero_scores(problem.X)))
    preconditioner = Preconditioner(problem.X, point.loss.curvature, _SAMPLE)
    first_norm = float(np.linalg.norm(point.gradient))
    n_iter = n_inner = 0
    problem.record(0, point)
    while n_iter < max_iter and problem.is_worth_a_step(point, n_iter, tol):
        n_iter += 1
        if n_inner > _PATIENCE and point.loss.curvature.any():
            preconditioner = Preconditioner(problem.X, point.loss.curvature, problem.X.shape[0])
        norm = float(np.linalg.norm(point.gradient))
        wanted = np.sqrt(2 * problem.alpha * tol * abs(point.objective))
        exactness = min(0.3, max(np.sqrt(norm / first_norm), 0.3 * wanted / norm))
        direction, n_inner = newton_direction(problem, point, preconditioner, exactness)
        following = backtrack(problem, point, direction)
        if following is None:
            break
        point = following
        problem.record(n_iter, point)
    return Solution(point, n_iter, problem.is_solved(point, tol))


def newton_direction(
    problem: Problem, point: Point, preconditioner: Preconditioner, exactness: float
) -> tuple[Floats, int]:
    """Solve ∇²f d = −∇f to a residual of `exactness` times its norm; also the number of products with the Hessian."""
    shape, n_products, curvature = (len(point.w), len(point.w)), 0, float(point.loss.curvature.sum())

    def product(direction: Floats) -> Floats:
        nonlocal n_products
        n_products += 1
        return problem.hessian_product(point.loss, direction)

    def precondition(right: Floats) -> Floats:
        return preconditioner.solve(right, problem.alpha, curvature)

    hessian, inverse = (LinearOperator(shape, by, dtype=np.float64) for by in (product, precondition))
    direction, _ = cg(hessian, -point.gradient, rtol=exactness, maxiter=_MOST_PRODUCTS, M=inverse)
    return np.asarray(direction), n_products


class Preconditioner:
    """Approximate inverse of αI + XᵀWX, with weights W of the rows and X centred, in two matrix products.

    The matrix is made of about `n_rows` of the rows. Where the columns are many, only its diagonal is used.
    """

    def __init__(self, X: Any, weights: Floats, n_rows: int) -> None:
        n_columns = X.shape[1]
        sample, w = thinned(X, weights, max(n_rows, 4 * n_columns))
        self.curvature = float(weights.sum())
        w = w * (self.curvature / float(w.sum()))
        mean = transpose_matvec(sample, w) / self.curvature
        self.vectors: Floats | None = None
        if n_columns <= _EXPLICIT:
            values, self.vectors = np.linalg.eigh(sandwich(sample, w, mean))  # reads the lower triangle
        else:
            values = weighted_squares(sample, w) - self.curvature * mean**2
        self.values: Floats = np.maximum(values, 0.0)

    def solve(self, right: Floats, alpha: float, curvature: float) -> Floats:
        """Multiply by the approximate inverse, for weights that have changed to a sum of `curvature`."""
        divisor = alpha + curvature / self.curvature * self.values
        if self.vectors is None:
            return np.asarray(right / divisor)
        return np.asarray(self.vectors @ ((self.vectors.T @ right) / divisor))


def backtrack(problem: Problem, point: Point, direction: Floats) -> Point | None:
    """The first of the steps 1, 1/2, 1/4, … with enough decrease; None if rounding errors hide it."""
    slope = float(point.gradient @ direction)
    if not slope < 0:
        return None
    change = problem.scores(direction)
    step = 1.0
    for _ in range(40):
        w = point.w + step * direction
        loss = problem.loss(point.loss.scores + step * change)
        # at the optimum the decrease drowns in rounding errors; then the gradient decides
        if problem.objective(w, loss) <= point.objective + 1e-4 * step * slope + 1e-14 * abs(point.objective):
            following = problem.point(w, loss)
            lost = -slope < 1e-12 * abs(point.objective)
            if lost and np.linalg.norm(following.gradient) >= np.linalg.norm(point.gradient):
                return None
            return following
        step *= 0.5
    return None


def solve_ncg(problem: Problem, *, tol: float = 1e-6, max_iter: int = 10_000) -> Solution:
    """Minimise by nonlinear conjugate gradients, Polak–Ribière, as in the RankNCG paper.

    Only gradients steer it, so that it works with those of the erfc series too; they need not belong to the objective.

    1. Find a step along the direction where the derivative is a tenth of that at the start, by bracketing and secants.
       Scores are linear in w, so that no pass is needed.
    2. The next direction is −∇f + β·direction, β = max(0, ∇f⁺·(∇f⁺ − ∇f) / ‖∇f‖²).
    """
    point = problem.point(np.zeros(problem.X.shape[1]), problem.loss(zero_scores(problem.X)))
    direction, step = -point.gradient, None
    n_iter = 0
    problem.record(0, point)
    while n_iter < max_iter and problem.is_worth_a_step(point, n_iter, tol):
        n_iter += 1
        slope = float(point.gradient @ direction)
        if not slope < 0:
            direction, slope = -point.gradient, -float(point.gradient @ point.gradient)
        change = problem.scores(direction)
        first = 1.0 / (1.0 + float(np.abs(change).max())) if step is None else step
        found = _find_step(problem, point, direction, change, slope, first)
        if found is None:
            break
        step, loss = found
        following = problem.point(point.w + step * direction, loss)
        g, g_before = following.gradient, point.gradient
        beta = max(0.0, float(g @ (g - g_before)) / float(g_before @ g_before))
        direction = beta * direction - g
        point = following
        problem.record(n_iter, point)
    return Solution(point, n_iter, problem.is_solved(point, tol))


def _find_step(
    problem: Problem, point: Point, direction: Floats, change: Floats, slope: float, first: float
) -> tuple[float, LossPoint] | None:
    """A step whose derivative is at most a tenth of the slope at zero, in absolute value."""
    wd, dd = float(point.w @ direction), float(direction @ direction)
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.inf
    step = first
    for _ in range(60):
        loss = problem.loss(point.loss.scores + step * change)
        here = problem.alpha * (wd + step * dd) + float(loss.gradient @ change)
        if abs(here) <= 0.1 * abs(slope):
            return step, loss
        if here > 0:
            high, high_slope = step, here
            secant = low - low_slope * (high - low) / (high_slope - low_slope)
        else:
            secant = step - here * (step - low) / (here - low_slope) if here > low_slope else np.inf
            low, low_slope = step, here
        if high == np.inf:
            step = min(max(secant, 2 * step), 10 * step)
        else:
            margin = 0.1 * (high - low)
            step = min(max(secant, low + margin), high - margin)
    return None
