r"""Programs (`toprank.solvers.threshold_program`) with a factor Φ in place of the products of the positives.

The products are Φ Φᵀ and what it leaves, R. Only the curvature of the program needs them, as its slopes are exact, so
that programs in turn come to the optimum with any curvature that is close. Here R counts among the rows of z, which
no loss holds apart, and by its diagonal for the eliminated u, whose loss does: with D their curvature by loss and
diagonal, A is D + Φ Φᵀ / α, and by the formula of Woodbury, with :math:`N = \alpha I + \Phi^\top D^{-1} \Phi` over the
eliminated rows,

.. math:: A^{-1} = D^{-1} - D^{-1} \Phi N^{-1} \Phi^\top D^{-1}, \qquad
          M - G^\top A^{-1} G = R_{zz} / \alpha + \Phi_z N^{-1} \Phi_z^\top,

so that the cost grows with the rank of Φ and the rows of z, and hardly with the positives. Programs get on where the
largest eigenvalue of R among the positives is not much larger than α times the curvature of the loss.
"""

from __future__ import annotations

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.matrices.dense_or_sparse import Cholesky
from toprank.matrices.incomplete_cholesky import IncompleteCholesky
from toprank.solvers.pair_dual import WorkingSetDual
from toprank.solvers.program_step import ProgramStep, members_of, terms_of
from toprank.solvers.threshold_program import Program

# Rows above the threshold that take part, at most, as a share of those with a multiplier.
_MOST_SHARE = 0.6


class FeatureElimination:
    """The factor of N for some rows Φ, with the curvatures D."""

    def __init__(self, features: Floats, curvature: Floats, alpha: float) -> None:
        self.features, self.inverse, self.alpha = features, 1 / curvature, alpha
        scaled = features * np.sqrt(self.inverse)[:, None]
        N = scaled.T @ scaled
        N[np.arange(len(N)), np.arange(len(N))] += alpha
        self.factor = Cholesky(N, in_place=True)

    def solve(self, right: Floats) -> Floats:
        """A⁻¹ times a vector."""
        half = self.inverse * right
        return half - self.inverse * (self.features @ self.factor.solve(self.features.T @ half))


class FeatureProgram(Program):
    """The program of some rows of z, of which `features` are those of Φ and `left` is R / α.

    The other arguments are those of `ThresholdProgram`.
    """

    def __init__(
        self,
        elimination: FeatureElimination,
        features: Floats,
        left: Floats,
        signs: Floats,
        bend: Floats,
        slopes: tuple[Floats, Floats],
        base: tuple[Floats, Floats],
        fixed: float,
    ) -> None:
        self.elimination, self.features, self.signs, self.base = elimination, features, signs, base
        common = float(np.median(slopes[0]))
        self.at_base = elimination.solve(slopes[0] - common)
        self.per_level = elimination.solve(np.ones(len(self.at_base)))
        self.epsilon = float(self.per_level.sum())
        on_level, on_base = (self._on_rows(x) for x in (self.per_level, self.at_base))
        lacks = fixed + float(base[0].sum() - signs @ base[1])
        self.offset = lacks + float(self.at_base.sum())
        halves = np.empty(features.shape)
        elimination.factor.half_solve_rows(features, halves)
        squares = left.diagonal() + np.einsum("ij,ij->i", features, features) / elimination.alpha
        self.H = halves @ halves.T
        self.H += left
        self._complete(signs, bend, squares, on_level, slopes[1] + signs * (common + on_base))

    def _on_rows(self, u: Floats) -> Floats:
        """The products over α of the rows of z with the sum of the eliminated ones by u."""
        return np.asarray(self.features @ (self.elimination.features.T @ u)) / self.elimination.alpha

    def eliminated_at(self, z: Floats) -> Floats:
        """The best u for z."""
        change = z - self.base[1]
        direction = self.features.T @ (self.signs * change) / self.elimination.alpha
        by_rows = self.elimination.solve(self.elimination.features @ direction)
        return self.base[0] + self.at_base + self._level(change) * self.per_level + by_rows


class FeatureProgramStep(ProgramStep):
    """The step of programs with a factor of a kernel matrix, which may grow in between.

    The kernel matrix itself is asked for the values of the rows of z with each other, and for exact scores once a
    program.
    """

    most_share, is_exact = _MOST_SHARE, False

    def __init__(self, factor: IncompleteCholesky) -> None:
        super().__init__()
        self.kernel_factor, self.n_programs = factor, 0
        self._last: tuple[Rows, int, FeatureElimination] | None = None

    def _program(
        self, dual: WorkingSetDual, sure: Mask, doubtful: Mask, rows: Rows
    ) -> tuple[Program, Rows, Mask, Rows]:
        self.n_programs += 1
        number, some = np.flatnonzero(sure), np.flatnonzero(doubtful & ~sure)
        members, is_sure = members_of(dual, some, rows), np.full(len(number), True)
        features = self._features(members)
        left = self.kernel_factor.gram.between(members, members).astype(np.float64, copy=False)
        left -= features @ features.T
        left /= dual.alpha
        terms = terms_of(dual, number, is_sure, some, rows)
        return FeatureProgram(self._elimination(dual, number), features, left, *terms), number, is_sure, some

    def _features(self, rows: Rows) -> Floats:
        return np.ascontiguousarray(self.kernel_factor.features[rows], dtype=np.float64)

    def _elimination(self, dual: WorkingSetDual, number: Rows) -> FeatureElimination:
        """That of the last program, if it has the same rows and the same factor."""
        rank, rows = self.kernel_factor.rank, dual.positives[number]
        if self._last is None or self._last[1] != rank or not np.array_equal(self._last[0], rows):
            by_loss = dual.surrogate.width / dual.share[number]
            curvature = by_loss + self.kernel_factor.residual[rows] / dual.alpha
            self._last = rows, rank, FeatureElimination(self._features(rows), curvature, dual.alpha)
        return self._last[2]

    def _combination(self, dual: WorkingSetDual, weights: Floats) -> Floats:
        """By the factor: it only says which rows to look at."""
        features = self.kernel_factor.features
        return np.asarray(features @ (features.T @ weights))
