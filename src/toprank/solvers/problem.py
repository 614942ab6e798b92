"""What a solver gets and what it gives back."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.formulations.formulation import Formulation
from toprank.solvers.matrix import matvec, transpose_matvec

Floats = NDArray[np.float64]
HISTORY = ("iteration", "passes", "seconds", "primal", "dual", "gap")


@dataclass(frozen=True)
class Problem:
    r"""Minimise :math:`\frac{\alpha}{2} \|w\|^2 + F(Xw)` over w.

    `X` is a dense array or a CSR matrix of float32 or float64, `positive` marks the positive rows and `weights` are
    all positive. Sums are kept in float64.
    """

    X: Any
    positive: NDArray[np.bool_]
    weights: Floats
    formulation: Formulation
    alpha: float

    @cached_property
    def positives(self) -> NDArray[np.intp]:
        """Numbers of the positive rows."""
        return np.flatnonzero(self.positive)

    @cached_property
    def positive_share(self) -> Floats:
        """Weights of the positives, of sum 1."""
        weights: Floats = self.weights[self.positives]
        return np.asarray(weights / weights.sum())

    @cached_property
    def threshold_rows(self) -> NDArray[np.intp]:
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

    def scores(self, w: Floats) -> Floats:
        """All scores, one pass over the data."""
        return matvec(self.X, w)

    def combine(self, row_weights: Floats) -> Floats:
        """The sum of the rows with given weights, Xᵀr: one pass over the data."""
        return transpose_matvec(self.X, row_weights)

    def primal(self, w: Floats, scores: Floats) -> float:
        """The objective at w, whose scores are known."""
        return 0.5 * self.alpha * float(w @ w) + self.formulation.evaluate(scores, self.positive, self.weights)[0]


def relative_gap(primal: float, dual: float) -> float:
    """The duality gap as a share of the primal objective."""
    return max(primal - dual, 0.0) / max(primal, np.finfo(float).tiny)


@dataclass
class Solution:
    """A point, what is known of its quality, and how it was found.

    `dual` is a lower bound of the optimum, or minus infinity where a problem has none.
    """

    coef: Floats
    threshold: float
    primal: float
    dual: float
    n_iter: int
    converged: bool
    history: dict[str, list[float]]
    state: Any = None
    """What a warm start may use; each solver knows its own."""

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return relative_gap(self.primal, self.dual)


@dataclass
class Recorder:
    """The history of a run: one row an iteration."""

    verbose: int = 0
    passes: float = 0.0
    start: float = field(default_factory=time.perf_counter)
    rows: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in HISTORY})

    def record(self, iteration: int, primal: float, dual: float) -> None:
        """Add a row; with `verbose`, log it too."""
        values = (iteration, self.passes, time.perf_counter() - self.start, primal, dual, relative_gap(primal, dual))
        for name, value in zip(HISTORY, values, strict=True):
            self.rows[name].append(value)
        if self.verbose:
            _logger().info("iteration %d: passes %.1f, %.2f s, objective %.6g, lower bound %.6g, gap %.1e", *values)


def _logger() -> logging.Logger:
    """The logger "toprank"; it writes to the standard error stream unless the application has set up logging."""
    logger = logging.getLogger("toprank")
    if not logger.hasHandlers():
        logger.addHandler(logging.StreamHandler())
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    return logger
