"""What a kernel solver gets: as in `toprank.solvers.problem`, with a kernel matrix in place of the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from toprank.formulations.certificates import dual_value, rounding_of_square
from toprank.formulations.formulation import Formulation
from toprank.matrices.gram import Gram
from toprank.solvers.problem import Solution, WeightedRows, relative_gap

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class KernelProblem(WeightedRows):
    r"""Minimise :math:`\frac{\alpha}{2} c^\top K c + F(Kc)` over c, where :math:`w = \sum_i c_i\, \phi(x_i)`.

    `gram` is the kernel matrix K of all rows, `positive` marks the positive ones and `weights` are all positive.
    `precision` is the relative error of kernel values that were given rounded.
    """

    matrix: ClassVar[Literal["kernel"]] = "kernel"
    gram: Gram
    positive: NDArray[np.bool_]
    weights: Floats
    formulation: Formulation
    alpha: float
    precision: float = 0.0

    def scores(self, c: Floats) -> Floats:
        """All scores K c."""
        return self.gram.product(c)

    def primal(self, c: Floats, scores: Floats) -> float:
        """The objective at c, whose scores are known."""
        return 0.5 * self.alpha * float(c @ scores) + self.formulation.evaluate(scores, self.positive, self.weights)[0]

    def signed(self, y: Floats, p: Floats) -> Floats:
        """Weights r of all rows, whose sum Σ rᵢ φ(xᵢ) is that of the positives by y minus Σy times that of p."""
        row_weights = np.zeros(len(self.positive))
        row_weights[self.positives] = y
        row_weights[self.threshold_rows] -= y.sum() * p
        return row_weights

    def squared_norm(self, r: Floats, products: Floats | None = None) -> float:
        """The square r·K r, by no rounding error too small; `products` is K r where it is known."""
        square = self.gram.quadratic(r) if products is None else float(r @ products)
        # a symmetric matrix of independent errors has a norm of about the root of its size
        given = self.precision * float(np.sqrt(self.gram.n)) * float(r**2 @ np.abs(self.gram.diagonal))
        return max(square, 0.0) + given + rounding_of_square(self.gram.diagonal, r)

    def rounding(self, c: Floats, scores: Floats) -> float:
        """How much the objective at c, whose scores are known, may be off by rounding, to first order."""
        _, slopes, _ = self.formulation.evaluate(scores, self.positive, self.weights)
        square, of_slopes = (rounding_of_square(self.gram.diagonal, weights) for weights in (c, slopes))
        return 0.5 * self.alpha * square + float(np.sqrt(square * of_slopes))

    def lower_bound(
        self, y: Floats, p: Floats, threshold_conjugate: float = 0.0, products: Floats | None = None
    ) -> float:
        """The dual objective at the best multiple of y; `toprank.formulations.certificates` has the formula."""
        squared_norm, surrogate = self.squared_norm(self.signed(y, p), products), self.formulation.surrogate
        return dual_value(surrogate, self.positive_share, y, squared_norm, self.alpha, threshold_conjugate)[0]

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
        dual = 0.0 if point is None else self.lower_bound(point.y, point.p, point.threshold_conjugate, products)
        dual = max(dual - self.rounding(c, scores), 0.0)
        history = {name: list(values) for name, values in solution.history.items()}
        history["primal"][-1], history["dual"][-1] = primal, dual
        history["gap"][-1] = gap = relative_gap(primal, dual)
        return replace(solution, coef=c, primal=primal, dual=dual, converged=gap <= tol, history=history, scores=scores)
