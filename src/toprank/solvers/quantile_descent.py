r"""Descent for Grill and GrillNP, whose threshold is the true quantile.

The threshold t(w) is the score of one row, and which row it is changes with w: the objective is neither convex nor
smooth. **What is found is a stationary point**, the best of several starts, **without any certificate**: there may be
better ones, and other starts find others.

Two facts help. The threshold is positively homogeneous, t(cw) = c·t(w) for c ≥ 0, so along a ray the objective is
convex in c, and the best multiple of a direction needs no further pass over the data. And with the threshold as a free
variable the objective is jointly convex in (w, t), which gives a good direction to start from.

1. Starts: the difference of the class means; the solution with a free threshold; random directions. Each is scaled by
   its best factor.
2. From each, L-BFGS on a smoothed objective: the quantile becomes a weighted mean of the scores whose rank is near it,
   over a window that narrows from stage to stage. The window is in ranks, so homogeneity remains.
3. From there, descent on the objective itself. The rows with scores within ε of the threshold can each become the
   threshold; their gradients g + c·x_r span an ε-subdifferential. Minus its shortest element is a direction of descent;
   a backtracking line search follows, on scores alone. If the element is short, or the search fails, ε falls. When both
   are small the point is stationary.
4. The best point of all starts, and w = 0, by the objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar, nnls
from sklearn.utils import check_random_state

from toprank.arrays import Floats
from toprank.formulations.thresholds import Threshold
from toprank.matrices.dense_or_sparse import products_of_rows
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import Point, Problem, Recorder, Solution
from toprank.solvers.registry import require_fit

# Half-widths of the windows of the smoothed quantile, as shares of its level.
WINDOWS = (1.0, 0.5, 0.25, 0.1)
# Most rows near the threshold that an ε-subdifferential is made of.
MOST_TIED = 100


def solve_grill(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 200,
    n_restarts: int = 5,
    random_state: Any = None,
    verbose: int = 0,
    start: Solution | None = None,
) -> Solution:
    """Find a stationary point of Grill or GrillNP, the best of `n_restarts` starts; the module has the steps.

    A point is stationary, `converged`, if the shortest subgradient is at most `tol` times as long as the gradient at
    zero; rows count as tied if their scores differ by `tol` times the spread of the scores. The hinge has kinks of its
    own, which the test does not know: with it, expect `converged` to be false at good points too. `max_iter` is for
    each stage: there are four windows and one descent for each start. `start` is a further point to start from.
    """
    require_fit("restarts", problem)
    if n_restarts < 1:
        raise ValueError(f"n_restarts={n_restarts} leaves nowhere to start from; use 1 or more")
    search = _Search(problem, max_iter, Incumbent(problem, tol, Recorder(verbose)))
    random = check_random_state(random_state)
    for direction in _directions(problem, n_restarts, random, max_iter, start):
        search.run(direction)
    return search.incumbent.solution(search.stationary)


@dataclass(frozen=True)
class SmoothedQuantile(Threshold):
    r"""Mean of the scores by rank, with a parabolic window around the quantile.

    A row takes up the interval of its weight in the ranks from above, as a share of all weight, and its part p is the
    mass that the density :math:`\frac{3}{4h} (1 - ((u - \tau)/h)^2)_+` puts there. As the half-width h falls to zero
    the threshold becomes the quantile.
    """

    tau: float
    width: float

    def evaluate(self, scores: Floats, weights: Floats) -> tuple[float, Floats]:
        """Sort, and weigh by rank."""
        order = np.argsort(-scores, kind="stable")
        ends = np.concatenate([[0.0], np.cumsum(weights[order])])
        u = np.clip((ends / ends[-1] - self.tau) / self.width, -1.0, 1.0)
        p = np.zeros(len(scores))
        p[order] = np.diff(0.75 * (u - u**3 / 3))
        p /= p.sum()
        return float(p @ scores), p


@dataclass(frozen=True)
class _Constant(Threshold):
    """A threshold that does not follow the scores: the other half of the chain rule."""

    t: float

    def evaluate(self, scores: Floats, weights: Floats) -> tuple[float, Floats]:
        return self.t, np.zeros(len(scores))


class _Search:
    """The way to stationary points from one start after the other."""

    def __init__(self, problem: Problem, max_iter: int, incumbent: Incumbent) -> None:
        self.problem, self.incumbent, self.tol, self.max_iter = problem, incumbent, incumbent.tol, max_iter
        self.recorder, self.stationary = incumbent.recorder, False
        zeros = np.zeros(len(problem.positive))
        self.gradient_scale = float(np.linalg.norm(problem.combine(problem.evaluate(zeros)[1])))
        self.recorder.passes += 1
        self._offer(problem.point(np.zeros(problem.X.shape[1]), zeros), stationary=False)

    def run(self, direction: Floats) -> None:
        """All stages from one start."""
        # 1. The start.
        w = _best_multiple(self.problem, direction)
        self._offer(self.problem.point(w), stationary=False)
        self.recorder.passes += 2
        # 2. The smoothed objective.
        for width in _widths(self.problem):
            w = self._smoothed(w, width)
            point = self.problem.point(w)
            self._offer(point, stationary=False)
        # 3. The objective itself.
        w, stationary = self._descend(point)
        self.recorder.passes += 1
        self._offer(self.problem.point(w), stationary)

    def _offer(self, point: Point, stationary: bool) -> None:
        """Keep the better point; the end of a descent counts even if it is the point that it began with."""
        is_best = self.incumbent.offer(point.primal, point.w, point.scores)
        if is_best or (stationary and point.primal == self.incumbent.primal):
            self.stationary = stationary
        self.incumbent.record()

    def _smoothed(self, w: Floats, width: float) -> Floats:
        """L-BFGS with the smoothed quantile."""
        problem = self.problem
        smoothed = _with_threshold(problem, SmoothedQuantile(problem.formulation.threshold.level, width))
        options = {"maxiter": self.max_iter, "ftol": 1e-3 * self.tol}
        result = minimize(lambda w: _objective(smoothed, w), w, jac=True, method="L-BFGS-B", options=options)
        self.incumbent.n_iter += int(result.nit)
        self.recorder.passes += 2 * int(result.nfev) + 1
        return np.asarray(result.x)

    def _descend(self, point: Point) -> tuple[Floats, bool]:
        """Descent along shortest ε-subgradients, and whether its end is stationary."""
        rows = self.problem.threshold_rows
        most = min(self.problem.X.shape[1] + 1, MOST_TIED, len(rows))
        distances = np.abs(point.scores[rows] - point.threshold)
        radius = float(np.partition(distances, most - 1)[most - 1])
        smallest = self.tol * float(np.std(point.scores))
        length = 1.0
        for _ in range(self.max_iter):
            self.incumbent.n_iter += 1
            direction = -_shortest_subgradient(self.problem, point, radius, most)
            self.recorder.passes += 1
            following = None
            if np.linalg.norm(direction) > self.tol * self.gradient_scale:
                following, length = _line_search(self.problem, point, direction, 4 * length)
                self.recorder.passes += 1
            elif radius <= smallest:
                return point.w, True
            if following is not None:
                point = following
            elif radius <= smallest * 1e-3:
                return point.w, False
            else:
                radius /= 4
        return point.w, False


def _directions(
    problem: Problem, n_restarts: int, random: np.random.RandomState, max_iter: int, start: Solution | None
) -> Iterator[Floats]:
    """Directions to start from, none of them zero, each with the positives above the negatives on average."""
    # At w = 0 all slopes are equal, and minus the gradient is the difference of the class means times the slope.
    difference = -problem.combine(problem.evaluate(np.zeros(len(problem.positive)))[1])
    directions = [] if start is None else [start.coef.astype(np.float64)]
    directions.append(difference)
    if n_restarts > 1:
        directions.append(_free_threshold(problem, max_iter))
    for _ in range(n_restarts - 2):
        random_direction = random.normal(size=len(difference))
        directions.append(random_direction if random_direction @ difference >= 0 else -random_direction)
    return (direction for direction in directions if np.any(direction != 0))


def _free_threshold(problem: Problem, max_iter: int) -> Floats:
    """Coefficients of the jointly convex problem in (w, t)."""

    def objective(wt: Floats) -> tuple[float, Floats]:
        w, t = wt[:-1], float(wt[-1])
        scores = problem.scores(w)
        slopes = _with_threshold(problem, _Constant(t)).evaluate(scores)[1]
        return problem.objective(float(w @ w), scores, t), np.append(problem.gradient(w, slopes), -slopes.sum())

    start = np.zeros(problem.X.shape[1] + 1)
    result = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return np.asarray(result.x[:-1])


def _best_multiple(problem: Problem, direction: Floats) -> Floats:
    """The best point of a ray, by the logarithm of its length: the scores of the direction are all it takes."""
    direction = direction / np.linalg.norm(direction)
    scores = problem.scores(direction)
    # No better point than zero is longer than this.
    longest = np.log(2 * problem.primal(0 * direction, 0 * scores) / problem.alpha) / 2

    def objective(log_length: float) -> float:
        length = np.exp(log_length)
        return problem.primal(length * direction, length * scores)

    result = minimize_scalar(objective, bounds=(longest - 20.0, longest), method="bounded")
    return np.asarray(np.exp(result.x) * direction)


def _widths(problem: Problem) -> list[float]:
    """Half-widths of the windows in ranks: shares of the level, but of at least ten rows before they narrow."""
    tau = problem.formulation.threshold.level
    widest = max(min(tau, 1 - tau), min(0.5, 10 / len(problem.threshold_rows)))
    return [share * widest for share in WINDOWS]


def _with_threshold(problem: Problem, threshold: Threshold) -> Problem:
    return replace(problem, formulation=replace(problem.formulation, threshold=threshold))


def _objective(problem: Problem, w: Floats) -> tuple[float, Floats]:
    """The objective and its gradient: two passes."""
    scores = problem.scores(w)
    _, slopes, t = problem.evaluate(scores)
    return problem.objective(float(w @ w), scores, t), problem.gradient(w, slopes)


def _shortest_subgradient(problem: Problem, point: Point, radius: float, most: int) -> Floats:
    """The shortest convex combination of the gradients that hold if one of the rows near the threshold were it."""
    rows = problem.threshold_rows
    distances = np.abs(point.scores[rows] - point.threshold)
    nearest = np.argsort(distances, kind="stable")[:most]
    tied = problem.X[rows[nearest[distances[nearest] <= radius]]]
    slopes = _with_threshold(problem, _Constant(point.threshold)).evaluate(point.scores)[1]
    pull = -float(slopes.sum())
    base = problem.gradient(point.w, slopes)
    cross = pull * np.asarray(tied @ base.astype(tied.dtype), dtype=np.float64)
    inner = products_of_rows(tied).astype(np.float64)
    share = _shortest_combination(pull**2 * inner + cross[:, None] + cross + float(base @ base))
    return base + pull * np.asarray(tied.T @ share.astype(tied.dtype), dtype=np.float64)


def _shortest_combination(gram: Floats) -> Floats:
    """The p of the simplex with the least pᵀ·gram·p, as the direction of the q ≥ 0 with least qᵀ·gram·q + (1 − Σq)²."""
    size = max(float(np.trace(gram)) / len(gram), np.finfo(float).tiny)
    values, vectors = np.linalg.eigh(gram / size)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    system, right = np.vstack([root, np.ones(len(gram))]), np.append(np.zeros(len(gram)), 1.0)
    q, _ = nnls(system, right, maxiter=30 * len(gram))
    return np.asarray(q / q.sum())


def _line_search(problem: Problem, point: Point, direction: Floats, length: float) -> tuple[Point | None, float]:
    """Halve the step until the objective falls by a tenth of what the direction promises; None if it never does."""
    scores = problem.scores(direction)
    promise = 0.1 * float(direction @ direction)
    trial = length
    for _ in range(40):
        following = problem.point(point.w + trial * direction, point.scores + trial * scores)
        if following.primal <= point.primal - trial * promise:
            return following, trial
        trial /= 2
    return None, length / 4
