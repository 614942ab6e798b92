"""The best point and the best lower bound that a solver has seen: what every solver keeps, and its certificate."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank.arrays import Floats
from toprank.solvers.problem import DualPoint, Recorder, Solution, WeightedRows, relative_gap

made: ContextVar[list[Incumbent] | None] = ContextVar("made", default=None)
"""Where those that are made are listed, for what is done at an interrupt."""
saved_by: ContextVar[Callable[[Incumbent], None] | None] = ContextVar("saved_by", default=None)
"""What is told of each round, for checkpoints."""
# Relative gap at which w = 0 is taken for the optimum.
COLLAPSE = 1e-9
# Relative difference of objectives next to w = 0 that may be rounding alone.
_ROUNDING = 16 * float(np.finfo(float).eps)


@dataclass
class Incumbent:
    """What is known so far; `coef` is w or, for a kernel, the weights c of the rows, and empty until one is offered."""

    problem: WeightedRows
    tol: float
    recorder: Recorder
    n_iter: int = 0
    primal: float = np.inf
    dual: float = -np.inf
    coef: Floats = field(default_factory=lambda: np.zeros(0))
    scores: Floats = field(default_factory=lambda: np.zeros(0))
    dual_point: DualPoint | None = None
    at_zero: float = np.inf
    """The objective at w = 0, where the search began there."""
    of_rows: bool = False
    """Whether `coef` are weights of rows, of whatever problem."""

    def __post_init__(self) -> None:
        if (others := made.get()) is not None:
            others.append(self)

    @classmethod
    def from_zero(cls, problem: WeightedRows, size: int, tol: float, verbose: int = 0) -> Incumbent:
        """Begin with w = 0, of so many coefficients, and with 0 for a lower bound."""
        scores = problem.zero_scores()
        primal = problem.objective(0.0, scores)
        return cls(problem, tol, Recorder(verbose), 0, primal, 0.0, np.zeros(size), scores, at_zero=primal)

    def offer(self, primal: float, coef: Floats, scores: Floats) -> bool:
        """Keep a point if it is better, or as good and the first one with a direction; returns whether it was."""
        if not (primal < self.primal or (primal == self.primal and not self.coef.any())):
            return False
        self.primal, self.coef, self.scores = primal, coef, scores
        return True

    def advance(self, coef: Floats, scores: Floats, squares: tuple[float, float, float]) -> tuple[float, bool]:
        """Move along the segment to a new point as far as is best; rounding alone does not leave w = 0.

        `squares` are the products of the best point with itself, with the new one, and of the new one with itself.
        Returns the share of the new point, and whether it was better.
        """
        share, value = self.problem.best_between(squares, self.scores, scores)
        better = value < (self.primal if self.coef.any() else (1 - _ROUNDING) * self.primal)
        if better:
            self.coef = (1 - share) * self.coef + share * coef
            self.scores, self.primal = self.problem.mixed(self.scores, scores, share), value
        return share, better

    def raise_bound(self, dual: float, point: DualPoint | None) -> None:
        """Keep a lower bound if it is higher."""
        if dual > self.dual:
            self.dual, self.dual_point = dual, point

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return relative_gap(self.primal, self.dual)

    @property
    def converged(self) -> bool:
        """Whether the gap is as small as it was asked for."""
        return self.gap <= self.tol

    def is_informative(self, gap: float) -> bool:
        """Whether most of what can be gained against w = 0 is gained, or it is certain that nothing can be.

        Where the penalty is so large that w = 0 is within `tol` of the optimum, the direction matters all the same.
        """
        return gap * self.primal <= 0.5 * (self.at_zero - self.primal) or gap <= COLLAPSE

    def record(self) -> None:
        """Add a row to the history."""
        self.recorder.record(self.n_iter, self.primal, self.dual)
        if (save := saved_by.get()) is not None:
            save(self)

    def solution(self, converged: bool | None = None, **more: Any) -> Solution:
        """The best point and its certificate; `converged` is for methods that end by another rule than the gap."""
        return Solution(
            self.coef,
            self.problem.threshold_at(self.scores),
            self.primal,
            self.dual,
            self.n_iter,
            self.converged if converged is None else converged,
            self.recorder.rows,
            dual_point=self.dual_point,
            **more,
        )
