"""The best point and the best lower bound that a solver has seen."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from toprank.solvers.problem import DualPoint, Problem, Recorder, Solution, relative_gap

Floats = NDArray[np.float64]


@dataclass
class Incumbent:
    """What is known so far; `w` is empty until a point is offered."""

    problem: Problem
    tol: float
    recorder: Recorder
    n_iter: int = 0
    primal: float = np.inf
    dual: float = -np.inf
    w: Floats = field(default_factory=lambda: np.zeros(0))
    scores: Floats = field(default_factory=lambda: np.zeros(0))
    dual_point: DualPoint | None = None

    def offer(self, primal: float, w: Floats, scores: Floats) -> None:
        """Keep a point if it is better, or as good and the first one with a direction."""
        if primal < self.primal or (primal == self.primal and not self.w.any()):
            self.primal, self.w, self.scores = primal, w, scores

    def raise_bound(self, dual: float, point: DualPoint) -> None:
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

    def record(self) -> None:
        """Add a row to the history."""
        self.recorder.record(self.n_iter, self.primal, self.dual)

    def solution(self) -> Solution:
        """The best point and its certificate."""
        problem = self.problem
        t = problem.formulation.threshold.value(self.scores[problem.threshold_rows], problem.threshold_weights)
        return Solution(
            self.w, t, self.primal, self.dual, self.n_iter, self.converged, self.recorder.rows,
            dual_point=self.dual_point,
        )  # fmt: skip
