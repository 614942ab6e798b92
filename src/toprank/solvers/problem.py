"""What a solver gets and what it gives back.

All solvers are functions ``solve(problem, *, tol, max_iter, verbose, start)``: `tol` is the relative duality gap at
which to stop, `max_iter` the largest number of iterations, with `verbose` above zero the history is logged, and `start`
is the `Solution` of an earlier run to start from. Those that draw numbers take `random_state` too.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.certificates import dual_value
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SlopeSums
from toprank.log import logger, tell
from toprank.matrices.dense_or_sparse import matvec, transpose_matvec
from toprank.saved_state import FLAG, Array, Chosen, Items, Kind, Number, Schema, Table, count
from toprank.solvers.row_choice import RowChoice
from toprank.solvers.segment import best_on_segment

Matrix = Literal["rows", "kernel", "blocks"]
HISTORY = ("iteration", "passes", "seconds", "primal", "dual", "gap")
# Shares of the objective by which a lower bound may be above it.
_ROUNDING, _SINGLE_PRECISION = 1e-9, 1e-6
# Share of the objective at w = 0 below which a difference from it is rounding.
NO_GAIN = 64 * float(np.finfo(float).eps)


class WeightedRows:
    """Rows of two classes with weights, and a formulation: what follows from them without the data."""

    positive: Mask
    weights: Floats
    formulation: Formulation
    alpha: float

    @cached_property
    def positives(self) -> Rows:
        """Numbers of the positive rows."""
        return np.flatnonzero(self.positive)

    @cached_property
    def positive_share(self) -> Floats:
        """Weights of the positives, of sum 1."""
        weights: Floats = self.weights[self.positives]
        return np.asarray(weights / weights.sum())

    @cached_property
    def threshold_rows(self) -> Rows:
        """Numbers of the rows that the threshold looks at."""
        return self.formulation.threshold_rows(self.positive)

    @cached_property
    def threshold_weights(self) -> Floats:
        """Weights of the threshold rows, as given."""
        return self.weights[self.threshold_rows]

    @cached_property
    def threshold_share(self) -> Floats:
        """Weights of the threshold rows, of sum 1."""
        return np.asarray(self.threshold_weights / self.threshold_weights.sum())

    @cached_property
    def _negatives(self) -> tuple[Rows, Floats]:
        """Numbers of the negative rows, and their weights of sum 1."""
        rows = np.flatnonzero(~self.positive)
        return rows, self.weights[rows] / self.weights[rows].sum()

    def zero_scores(self) -> Floats:
        """The scores of all rows at w = 0."""
        return np.zeros(len(self.positive))

    def settled(self, scores: Floats) -> Floats:
        """The same scores; what is still an expression is computed, as it will be read often."""
        return scores

    def mixed(self, old: Floats, new: Floats, share: float) -> Floats:
        """The scores between old and new ones, by the share of the new ones."""
        return (1 - share) * old + share * new

    def threshold_at(self, scores: Floats) -> float:
        """The threshold t of the scores of all rows."""
        return self.formulation.threshold.value(scores[self.threshold_rows], self.threshold_weights)

    def objective(self, squared_norm: float, scores: Floats, t: float | None = None) -> float:
        """The objective α/2 ‖w‖² + F(s) of given scores, and of their threshold t where it is known."""
        t, surrogate = self.threshold_at(scores) if t is None else t, self.formulation.surrogate
        loss = float(self.positive_share @ surrogate.value(t - scores[self.positives]))
        if self.formulation.false_positives:
            rows, share = self._negatives
            loss += float(share @ surrogate.value(scores[rows] - t))
        return 0.5 * self.alpha * squared_norm + loss

    def best_between(self, squares: tuple[float, float, float], old: Floats, new: Floats) -> tuple[float, float]:
        """The share of the new scores at the best point between old ones and them, and the objective there."""
        if self.formulation.false_positives:
            return best_on_segment(self.objective, squares, old, new)
        # all points between need the scores of the same rows in the same order, so these are taken once
        n, order = len(self.threshold_rows), np.concatenate([self.threshold_rows, self.positives])
        threshold, surrogate = self.formulation.threshold, self.formulation.surrogate

        def objective(squared_norm: float, scores: Floats) -> float:
            t = threshold.value(scores[:n], self.threshold_weights)
            return 0.5 * self.alpha * squared_norm + float(self.positive_share @ surrogate.value(t - scores[n:]))

        return best_on_segment(objective, squares, old[order], new[order])

    def evaluate(self, scores: Floats) -> tuple[float, Floats, float]:
        """The loss F(s), its (sub)gradient with respect to all scores, and the threshold."""
        return self.formulation.evaluate(scores, self.positive, self.weights)

    def rounding(self, coef: Floats, scores: Floats | None = None) -> float:
        """How much more than the last digits of the objective at a point, whose scores may be known, may be off."""
        return 0.0

    def row_weights(self, on_positives: Floats | float, on_threshold: Floats | float) -> Floats:
        """Weights of all rows, of which a row may have two roles."""
        weights = np.zeros(len(self.positive))
        weights[self.positives] = on_positives
        weights[self.threshold_rows] += on_threshold
        return weights

    def signed(self, y: Floats, p: Floats) -> Floats:
        """Weights r of all rows, whose sum Σ rᵢ xᵢ is that of the positives by y minus Σy times that of p."""
        return self.row_weights(y, -y.sum() * p)

    def dual_value(self, point: DualPoint, squared_norm: float, sums: SlopeSums | None = None) -> tuple[float, float]:
        """The dual objective at the best multiple of y, and that multiple.

        `squared_norm` is ‖Σ rᵢ xᵢ‖², and `sums` are those of y, where they are known.
        """
        surrogate, share, conjugate = self.formulation.surrogate, self.positive_share, point.threshold_conjugate
        return dual_value(surrogate, share, point.y, squared_norm, self.alpha, conjugate, sums)

    def dual_point_at(self, scores: Floats) -> DualPoint:
        """The dual point that belongs to given scores; its y is scaled so that squares do not overflow."""
        s = scores[self.threshold_rows]
        t, p = self.formulation.threshold.evaluate(s, self.threshold_weights)
        y = self.positive_share * self.formulation.surrogate.derivative(t - scores[self.positives])
        y /= max(float(y.max()), np.finfo(float).tiny)
        return DualPoint(y, p, float(p @ s) - t)

    def start_point(self, start: Solution | None) -> DualPoint | None:
        """Where a method on the dual ended, if that was on as many rows and not at zero.

        The state of files of earlier versions may be an array, or have another multiple of p.
        """
        last = None if start is None else start.state
        if not isinstance(last, DualPoint) or len(last.y) != len(self.positives):
            return None
        y, p = np.maximum(last.y, 0.0), np.maximum(last.p, 0.0)
        return DualPoint(y, p / p.sum()) if len(p) == len(self.threshold_rows) and y.any() and p.any() else None


@dataclass(frozen=True)
class Point:
    """Coefficients, the scores of all rows, their threshold and the objective."""

    w: Floats
    scores: Floats
    threshold: float
    primal: float


@dataclass(frozen=True)
class Problem(WeightedRows):
    r"""Minimise :math:`\frac{\alpha}{2} \|w\|^2 + F(Xw)` over w.

    `X` is a dense array or a CSR matrix of float32 or float64, `positive` marks the positive rows and `weights` are
    all positive. Sums are kept in float64.
    """

    matrix: ClassVar[Matrix] = "rows"
    passes_for_both: ClassVar[int] = 2
    """Passes over the data for the sums of the rows with two lists of weights."""
    X: Any
    positive: Mask
    weights: Floats
    formulation: Formulation
    alpha: float

    def scores(self, w: Floats) -> Floats:
        """All scores, one pass over the data."""
        return matvec(self.X, w)

    def combine(self, row_weights: Floats) -> Floats:
        """The sum of the rows with given weights, Xᵀr: one pass over the data."""
        return transpose_matvec(self.X, row_weights)

    def combine_both(self, one: Floats, other: Floats) -> tuple[Floats, Floats]:
        """The sums of the rows with two lists of weights."""
        return self.combine(one), self.combine(other)

    def primal(self, w: Floats, scores: Floats) -> float:
        """The objective at w, whose scores are known."""
        return self.objective(float(w @ w), scores)

    def point(self, w: Floats, scores: Floats | None = None) -> Point:
        """What belongs to w: one pass over the data where its scores are not known."""
        scores = self.scores(w) if scores is None else scores
        t = self.threshold_at(scores)
        return Point(w, scores, t, self.objective(float(w @ w), scores, t))

    def gradient(self, w: Floats, slopes: Floats) -> Floats:
        """The gradient at w, of the slopes of F with respect to the scores: one pass over the data."""
        return self.combine(slopes) + self.alpha * w

    def row_choice(self, caps: Floats | None) -> RowChoice:
        """The choice of rows for a working set."""
        return RowChoice(self, caps)

    def lower_bound(self, point: DualPoint) -> float:
        """The dual objective at the best multiple of y: one pass over the data."""
        v = self.combine(self.signed(point.y, point.p))
        return self.dual_value(point, float(v @ v))[0]


def relative_gap(primal: float, dual: float) -> float:
    """The duality gap as a share of the primal objective.

    A lower bound above the objective is an error. Up to a share of 1e-9 it is rounding, and there is no gap; up to 1e-6
    it is what single precision leaves, and the gap is the error itself. Beyond that the bound is void: the objective is
    at least 0, nothing more is known, and the gap is 1.
    """
    gap = abs(primal - dual) / max(primal, np.finfo(float).tiny)
    if dual <= primal:
        return gap
    return 0.0 if gap <= _ROUNDING else gap if gap <= _SINGLE_PRECISION else 1.0


@dataclass(frozen=True)
class DualPoint:
    """A feasible point of the dual, as in `toprank.formulations.certificates`; any multiple of y will do.

    `y` are the variables of the positives, `p` those of the threshold rows, and `threshold_conjugate` is t*(p).
    """

    saved_state: ClassVar[Schema] = Schema(
        {"y": Array("f8", (None,)), "p": Array("f8", (None,)), "threshold_conjugate": Number(optional=True)},
        fitted=None,
    )

    y: Floats
    p: Floats
    threshold_conjugate: float = 0.0


@dataclass
class Solution:
    """A point, what is known of its quality, and how it was found.

    `dual` is a lower bound of the optimum, or minus infinity where a problem has none.
    """

    saved_state: ClassVar[Schema] = Schema(
        {
            "coef": Array("f", (None,)),
            "threshold": Number(),
            "primal": Number(),
            "dual": Number(finite=False),
            "n_iter": count(),
            "converged": FLAG,
            "history": Table(others=Items(Number(finite=False))),
            "state": Chosen(  # files of earlier versions may hold an array, which is not used
                lambda known, value: Array("f8", (None,)) if isinstance(value, np.ndarray) else Kind((DualPoint,)),
                none=True,
            ),
            "scores": Array("f", (None,), none=True),
            "dual_point": Kind((DualPoint,), none=True),
            "excess": Number(0.0, optional=True),
            "interrupted": Kind((bool,), optional=True),
        },
        fitted=None,
    )

    coef: Floats
    threshold: float
    primal: float
    dual: float
    n_iter: int
    converged: bool
    history: dict[str, list[float]]
    state: DualPoint | None = None
    """Where a method on the dual ended, for a warm start."""
    scores: Floats | None = None
    """Scores of the rows, where the solver has them."""
    dual_point: DualPoint | None = None
    """Where the lower bound is attained, if the solver keeps it; None also where the bound is that of y = 0."""
    excess: float = 0.0
    """Share by which a void bound was above the objective; it was replaced by 0, which is always a bound."""
    interrupted: bool = False
    """Whether Ctrl-C ended the run."""

    def __post_init__(self) -> None:
        if self.dual > self.primal * (1 + _SINGLE_PRECISION):
            self.excess = (self.dual - self.primal) / max(self.primal, np.finfo(float).tiny)
            self.dual, self.converged = 0.0, False

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return relative_gap(self.primal, self.dual)

    def recertified(self, primal: float, dual: float, tol: float, **changes: Any) -> Solution:
        """The solution with objective and bound computed again, which the last row of the history has too."""
        history, gap = {name: list(values) for name, values in self.history.items()}, relative_gap(primal, dual)
        history["primal"][-1], history["dual"][-1], history["gap"][-1] = primal, dual, gap
        return replace(self, primal=primal, dual=dual, converged=gap <= tol, history=history, **changes)


def without_noise(problem: WeightedRows, solution: Solution) -> Solution:
    """The solution, or w = 0 where both have the same objective but for rounding: what is left then ranks by noise."""
    zeros = problem.zero_scores()
    t = problem.threshold_at(zeros)
    at_zero = problem.objective(0.0, zeros, t)
    noise = NO_GAIN * at_zero + problem.rounding(solution.coef, solution.scores)
    if problem.formulation.false_positives or abs(solution.primal - at_zero) > noise:
        return solution
    scores = None if solution.scores is None else zeros
    return replace(solution, coef=np.zeros_like(solution.coef), primal=at_zero, threshold=t, scores=scores)


@dataclass
class Recorder:
    """The history of a run: one row an iteration."""

    verbose: int = 0
    passes: float = 0.0
    start: float = field(default_factory=time.perf_counter)
    names: tuple[str, ...] = HISTORY
    message: str = "iteration %d: passes %.1f, %.2f s, objective %.6g, lower bound %.6g, gap %.1e"
    rows: dict[str, list[float]] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = {name: [] for name in self.names}

    def record(self, iteration: int, primal: float, dual: float) -> None:
        """Add a row of an objective and its lower bound."""
        self.add(iteration, primal, dual, relative_gap(primal, dual))

    def add(self, iteration: int, *known: float) -> None:
        """Add a row of what is known after an iteration; with `verbose`, log it too."""
        values = (iteration, self.passes, time.perf_counter() - self.start, *known)
        for name, value in zip(self.names, values, strict=True):
            self.rows[name].append(value)
        if self.verbose:
            logger().info(self.message, *values)
        tell(f"iteration {iteration}, gap {known[-1]:.1e}")
