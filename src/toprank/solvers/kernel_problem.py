"""What a kernel solver gets: as in `toprank.solvers.problem`, with a kernel matrix in place of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.certificates import rounding_of_square
from toprank.formulations.formulation import Formulation
from toprank.matrices.gram import Gram
from toprank.solvers.problem import DualPoint, Solution, WeightedRows


@dataclass(frozen=True)
class KernelProblem(WeightedRows):
    r"""Minimise :math:`\frac{\alpha}{2} c^\top K c + F(Kc)` over c, where :math:`w = \sum_i c_i\, \phi(x_i)`.

    `gram` is the kernel matrix K of all rows, and `positive` marks the positive ones. Rows of `weights` 0 take no part,
    but they have a score. `precision` is the relative error of kernel values that were given rounded.
    """

    matrix: ClassVar[Literal["kernel"]] = "kernel"
    gram: Gram
    positive: Mask
    weights: Floats
    formulation: Formulation
    alpha: float
    precision: float = 0.0

    @cached_property
    def positives(self) -> Rows:
        """Numbers of the positive rows that take part."""
        return np.flatnonzero(self.positive & (self.weights > 0))

    @cached_property
    def threshold_rows(self) -> Rows:
        """Numbers of the rows that take part and that the threshold looks at."""
        rows = self.formulation.threshold_rows(self.positive)
        return rows[self.weights[rows] > 0]

    def evaluate(self, scores: Floats) -> tuple[float, Floats, float]:
        """The loss F(s), its (sub)gradient with respect to all scores, and the threshold."""
        some, slopes = self.weights > 0, np.zeros(len(scores))
        loss, slopes[some], t = self.formulation.evaluate(scores[some], self.positive[some], self.weights[some])
        return loss, slopes, t

    def scores(self, c: Floats) -> Floats:
        """All scores K c."""
        return self.gram.product(c)

    def primal(self, c: Floats, scores: Floats) -> float:
        """The objective at c, whose scores are known."""
        return self.objective(float(c @ scores), scores)

    def squared_norm(self, r: Floats, products: Floats | None = None) -> float:
        """The square r·K r, by no rounding error too small; `products` is K r where it is known."""
        square = self.gram.quadratic(r) if products is None else float(r @ products)
        # a symmetric matrix of independent errors has a norm of about the root of its size
        given = self.precision * float(np.sqrt(self.gram.n)) * float(r**2 @ np.abs(self.gram.diagonal))
        return max(square, 0.0) + given + rounding_of_square(self.gram.diagonal, r)

    def rounding(self, coef: Floats, scores: Floats | None = None) -> float:
        """How much the objective at c may be off by rounding, to first order: large weights of both signs cancel."""
        scores = self.scores(coef) if scores is None else scores
        _, slopes, _ = self.evaluate(scores)
        square, of_slopes = (rounding_of_square(self.gram.diagonal, weights) for weights in (coef, slopes))
        return 0.5 * self.alpha * square + float(np.sqrt(square * of_slopes))

    def lower_bound(self, point: DualPoint, products: Floats | None = None) -> float:
        """The dual objective at the best multiple of y; `products` is K r where it is known."""
        return self.dual_value(point, self.squared_norm(self.signed(point.y, point.p), products))[0]

    def certified(self, solution: Solution, dtype: Any, tol: float) -> Solution:
        """A solution rounded to a type, with its objective and bound computed again by these kernel values.

        Where rounding makes it worse than w = 0, it is w = 0.
        """
        c, point = solution.coef.astype(dtype).astype(np.float64), solution.dual_point
        r = np.zeros(len(c)) if point is None else self.signed(point.y, point.p)
        scores, products = self.gram.products(c, r)
        primal, zeros = self.primal(c, scores), np.zeros(len(c))
        if (at_zero := self.primal(zeros, zeros)) < primal:
            c, scores, primal = zeros, zeros, at_zero
        dual = 0.0 if point is None else self.lower_bound(point, products)
        dual = max(dual - self.rounding(c, scores), 0.0)
        return solution.recertified(primal, dual, tol, coef=c, scores=scores)
