r"""Stochastic gradients on minibatches: the framework paper, section 3.3.

Basic (3.3.1), for every formulation. The threshold, its gradient and the loss are those of the minibatch, and the
chain rule (3.28) gives the gradient. A threshold of few rows is not the threshold of all of them: the largest of ten
scores lies below the largest of a thousand. The gradient is biased, and **the method does not converge to the optimum
in general**, however small the steps; larger minibatches bring it closer.

Delayed (3.3.2, Algorithm 3.1), for PatMat and PatMatNP. The minibatches :math:`I^1, \dots, I^m` are disjoint and cycle;
every row keeps the score that it had when its minibatch was last visited. With shares c of the threshold rows and b of
the positives, step k on the minibatch I is

1. the scores of its rows, :math:`s_i = x_i \cdot w` for i in I; the others stay as they are (3.29);
2. the threshold t of all scores, :math:`\sum_i c_i\, \ell(\beta (s_i - t)) = \tau` (3.30);
3. :math:`a^k = \sum_{i \in I} c_i\, \ell'(\beta (s_i - t))\, x_i` (3.31);
4. :math:`\nabla t = (a^k + \dots + a^{k-m+1}) / \sum_i c_i\, \ell'(\beta (s_i - t))` (3.33);
5. :math:`g = m \sum_{i \in I_+} b_i\, \ell'(t - s_i) (\nabla t - x_i) + \alpha w` (3.32);
6. :math:`w \leftarrow w - \gamma_k\, g`.

It converges to the optimum (Theorem 3.9, for the Huberised hinge). Two departures from the paper in step 5: the paper
leaves out the penalty, and it divides by the number of positives of the minibatch. With the factor m every positive has
its own share in a cycle; otherwise minibatches of unequal weight would move the point that the method converges to.

Steps, for both: :math:`\gamma_k = \alpha^0 / (k + k_0)` with :math:`\alpha^0 = 1 / \alpha`, since a strongly convex
objective of modulus α needs at least 1/(2α) for the rate of 1/k, and :math:`k_0 = \alpha^0 / \gamma_0`. The first
step is that of Polyak, :math:`\gamma_0 = (P - D) / \|\nabla P\|^2` at the start with the lower bound D: it needs no
Lipschitz constant. As it may be too long, an epoch that ends too high is undone and :math:`\gamma_0` halved: higher
than it began for the delayed version, higher than the whole run began for the basic one, whose epochs are noisy. On a
non-convex problem three epochs without a better point also halve it, and the run goes on from the best one. All points
are kept in the ball :math:`\alpha \|w\|^2 / 2 \le P(w_0)`, which holds the optimum. An epoch offers its last
point and the mean of its points; the result is the best of all that were offered, by the true objective.

Delayed gradients may ask for steps m times shorter than those of the basic version, which is often faster at first but
stops improving at its bias. With few steps compared with L/α, the condition number, the steps hardly fall, and what
remains is the error of a constant step; the mean of an epoch takes most of it away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from toprank.arrays import Floats, Rows
from toprank.formulations.formulation import Formulation
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import Point, Problem, Recorder, Solution

# By default an epoch has this many minibatches: more of them make more progress on a pass over the data, but the
# delayed version looks at all scores once a minibatch.
MINIBATCHES = 16
# A non-convex problem is done when this many epochs, not counting those that diverged, have not improved it by `tol`.
PATIENCE = 20
# There the steps are halved after so many epochs without a better point.
IDLE = 3
# A first step that had to be halved this often leads nowhere: the start is as good as this method gets.
HALVINGS = 40


def solve_sgd(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 200,
    batch_size: int | None = None,
    step: float | None = None,
    delayed: bool | None = None,
    random_state: Any = None,
    verbose: int = 0,
    start: Solution | None = None,
) -> Solution:
    """Minimise by stochastic gradients; the module's docstring has the steps.

    Features should have similar scales: the method has one step size for all of them. `max_iter` counts epochs, each of
    which visits every row once and costs two passes, and three more to be judged. Non-convex problems have no gap:
    there `tol` is the relative improvement within 20 epochs below which the run ends.

    Minibatches have `batch_size` rows, by default a sixteenth of all; they are stratified and each has rows of both
    classes, so there are never more of them than rows of the rarer class. `step` is the first step size, by default
    that of Polyak. `delayed` asks for Algorithm 3.1, by default wherever it applies, that is for PatMat and PatMatNP.
    """
    if delayed is None:
        delayed = _can_be_delayed(problem.formulation)
    _check(problem, batch_size, step, delayed)
    incumbent = Incumbent(problem, tol, Recorder(verbose))
    first = problem.point(np.zeros(problem.X.shape[1]) if start is None else start.coef.astype(np.float64))
    incumbent.recorder.passes += 1
    random = check_random_state(random_state)
    n_batches = _number_of_batches(problem, batch_size)
    gradients = (_DelayedGradients if delayed else _BasicGradients)(problem, n_batches, random)
    _certify(problem, [first], incumbent)
    incumbent.record()
    step = _polyak_step(problem, first, incumbent.dual, incumbent.recorder) if step is None else float(step)
    converged = incumbent.converged
    if step > 0 and not converged:
        converged = _run(problem, gradients, first, incumbent, _Steps(step, 1 / problem.alpha), max_iter)
    return incumbent.solution(converged)


def _certify(problem: Problem, points: list[Point], incumbent: Incumbent) -> None:
    """Offer points; a better one brings a lower bound, if the problem is convex."""
    taken = [incumbent.offer(point.primal, point.w, point.scores) for point in points]
    if any(taken) and problem.formulation.is_convex:
        known = problem.dual_point_at(incumbent.scores)
        incumbent.raise_bound(problem.lower_bound(known), known)
        incumbent.recorder.passes += 1


@dataclass
class _Steps:
    """The sizes α⁰ / (k + k₀) of the steps k = 0, 1, …, with k₀ = α⁰ / first."""

    first: float
    numerator: float
    k: int = 0

    def take(self) -> float:
        """The next size."""
        size = self.first / (1 + self.first * self.k / self.numerator)
        self.k += 1
        return size


class _BasicGradients:
    """The gradient of the same formulation on the minibatch alone; new minibatches every epoch."""

    monotone = False
    """Whether an epoch of small steps lowers the objective."""

    def __init__(self, problem: Problem, n_batches: int, random: np.random.RandomState) -> None:
        self.problem, self.n_batches, self.random = problem, n_batches, random
        threshold = problem.formulation.threshold.of_parts(problem.threshold_weights)
        self.formulation = replace(problem.formulation, threshold=threshold)

    def batches(self) -> list[Rows]:
        return _minibatches(self.problem, self.n_batches, self.random)

    def gradient(self, w: Floats, number: int, rows: Rows) -> Floats:
        block = self.problem.X[rows]
        scores = _scores(block, w)
        _, slopes, _ = self.formulation.evaluate(scores, self.problem.positive[rows], self.problem.weights[rows])
        return _combine(block, slopes)

    def restart(self, point: Point, recorder: Recorder) -> None:
        """Nothing is kept between minibatches."""


class _DelayedGradients:
    """The gradient of Algorithm 3.1; the same minibatches every epoch."""

    monotone = True

    def __init__(self, problem: Problem, n_batches: int, random: np.random.RandomState) -> None:
        self.problem, self.threshold = problem, problem.formulation.threshold.implicit
        self.rows = _minibatches(problem, n_batches, random)
        self.share = problem.row_weights(0.0, problem.threshold_share)
        self.positive_share = problem.row_weights(problem.positive_share, 0.0)
        self.parts = np.zeros((n_batches, problem.X.shape[1]))

    def batches(self) -> list[Rows]:
        return self.rows

    def restart(self, point: Point, recorder: Recorder) -> None:
        """Scores, threshold and the vectors a of one point: one pass."""
        self.scores = point.scores.copy()
        self.t = self.threshold.solve(self.scores, self.share)
        slopes = self._slopes()
        for number, rows in enumerate(self.rows):
            self.parts[number] = _combine(self.problem.X[rows], slopes[rows])
        recorder.passes += 1

    def gradient(self, w: Floats, number: int, rows: Rows) -> Floats:
        block = self.problem.X[rows]
        # 1. and 2. Scores of the minibatch, and the threshold of all.
        self.scores[rows] = _scores(block, w)
        self.t = self.threshold.solve(self.scores, self.share, start=self.t)
        # 3. and 4. The gradient of the threshold.
        slopes = self._slopes()
        self.parts[number] = _combine(block, slopes[rows])
        threshold_gradient = self.parts.sum(axis=0) / slopes.sum()
        # 5. That of the loss; the penalty and step 6 are the same for all methods.
        y = len(self.rows) * self.positive_share[rows]
        y *= self.problem.formulation.surrogate.derivative(self.t - self.scores[rows])
        return np.asarray(y.sum() * threshold_gradient - _combine(block, y))

    def _slopes(self) -> Floats:
        """Weight · ℓ'(β(s − t)) of every row."""
        return self.threshold.slopes(self.scores, self.share, self.t)


_Gradients = _BasicGradients | _DelayedGradients


def _run(
    problem: Problem, gradients: _Gradients, point: Point, incumbent: Incumbent, steps: _Steps, max_iter: int
) -> bool:
    """Epochs until the certificate, or the lack of progress of a non-convex problem, ends them: whether it did."""
    recorder, convex, tol = incumbent.recorder, problem.formulation.is_convex, incumbent.tol
    ceiling = point.primal
    radius = float(np.sqrt(2 * ceiling / problem.alpha))
    primals, shortest, idle = [ceiling], steps.first / 2**HALVINGS, 0
    gradients.restart(point, recorder)
    while incumbent.n_iter < max_iter:
        before = incumbent.primal
        points = [problem.point(w) for w in _epoch(problem, gradients, point.w, steps, radius)]
        recorder.passes += 2 + len(points)
        incumbent.n_iter += 1
        _certify(problem, points, incumbent)
        idle = 0 if incumbent.primal < before else idle + 1
        diverged = not (points and points[0].primal <= ceiling)
        if diverged or (idle >= IDLE and not convex):
            steps.first /= 2
            idle = 0
            point = point if gradients.monotone else problem.point(incumbent.coef, incumbent.scores)
            gradients.restart(point, recorder)
        else:
            point = points[0]
            ceiling = point.primal if gradients.monotone else ceiling
        if not diverged:
            primals.append(incumbent.primal)
        incumbent.record()
        stalled = len(primals) > PATIENCE and primals[-1 - PATIENCE] - primals[-1] <= tol * primals[-1]
        if incumbent.converged or (stalled and not convex):
            return True
        if steps.first < shortest:
            break
    return False


def _epoch(problem: Problem, gradients: _Gradients, w: Floats, steps: _Steps, radius: float) -> list[Floats]:
    """The last point of an epoch and the mean of its points; nothing if a step was so long that numbers overflowed."""
    mean = np.zeros(len(w))
    batches = gradients.batches()
    with np.errstate(over="ignore", invalid="ignore"):
        for number, rows in enumerate(batches):
            w = w - steps.take() * (gradients.gradient(w, number, rows) + problem.alpha * w)
            norm = float(np.linalg.norm(w))
            if not np.isfinite(norm):
                return []
            w = w * min(1.0, radius / max(norm, np.finfo(float).tiny))
            mean += w / len(batches)
    return [w, mean]


def _polyak_step(problem: Problem, point: Point, dual: float, recorder: Recorder) -> float:
    """(P − D) / ‖∇P‖², where the loss is at least zero anyway; zero at a stationary point."""
    gradient = problem.gradient(point.w, problem.evaluate(point.scores)[1])
    recorder.passes += 1
    squared_norm = float(gradient @ gradient)
    return (point.primal - max(dual, 0.0)) / squared_norm if squared_norm > 0 else 0.0


def _minibatches(problem: Problem, n_batches: int, random: np.random.RandomState) -> list[Rows]:
    """All rows, each once, in minibatches with almost equal numbers of rows of either class."""
    classes = [random.permutation(np.flatnonzero(side)) for side in (problem.positive, ~problem.positive)]
    # The larger parts come first among the positives and last among the negatives: so the sizes stay even.
    parts = [np.array_split(classes[0], n_batches), np.array_split(classes[1], n_batches)[::-1]]
    return [np.concatenate(pair) for pair in zip(*parts, strict=True)]


def _number_of_batches(problem: Problem, batch_size: int | None) -> int:
    """At most so many that each has rows of both classes."""
    n_rows, n_positives = len(problem.positive), len(problem.positives)
    wanted = MINIBATCHES if batch_size is None else -(-n_rows // batch_size)
    return max(min(wanted, n_positives, n_rows - n_positives), 1)


def _scores(block: Any, w: Floats) -> Floats:
    return np.asarray(block @ w.astype(block.dtype), dtype=np.float64)


def _combine(block: Any, row_weights: Floats) -> Floats:
    return np.asarray(block.T @ row_weights.astype(block.dtype), dtype=np.float64)


def _can_be_delayed(formulation: Formulation) -> bool:
    return formulation.threshold.is_implicit and not formulation.false_positives


def _check(problem: Problem, batch_size: int | None, step: float | None, delayed: bool) -> None:
    if batch_size is not None and batch_size < 2:
        raise ValueError(
            f"batch_size={batch_size} is too small: a minibatch needs a positive and a negative row; use 2 or more"
        )
    if step is not None and not (step > 0 and np.isfinite(step)):
        raise ValueError(f"step={step} is no step size; use a number > 0, or step=None to have it chosen")
    if delayed and not _can_be_delayed(problem.formulation):
        raise ValueError(
            f"delayed=True needs a surrogate quantile without false positives (PatMat, PatMatNP), but the threshold is "
            f"{type(problem.formulation.threshold).__name__}; use delayed=False"
        )
