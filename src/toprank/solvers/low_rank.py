r"""The low-rank routes: on a subspace, the kernel problem is a linear one, and Newton's method solves it.

`toprank.solvers.subspace` says what the subspace has to have. For a largest score and a loss of parabolas,
`toprank.solvers.subspace_programs` makes it large enough for programs with the exact kernel. This route, for all other
thresholds and losses, adds to the subspace until it has all that matters: pivots, and the direction Σ rᵢ φ(xᵢ) itself.
That costs K r; then only the change of r from round to round is outside. Near the optimum it is worth hundreds of
pivots, above all for a surrogate quantile, whose r changes smoothly. The support vectors are then all rows with a
multiplier; without directions they are the pivots. Steps:

1. Pivots: at first by :math:`R_{ii}`.
2. The linear problem by `solve_newton` or `solve_smooth_newton`, from the last solution, as exactly as the gap needs.
3. The lower bound with the true kernel, and the direction of r, from K r. Where K is not in memory, a sample of the
   entries says first whether the gap is small enough for that.
4. Stop when the relative gap is at most `tol`, or when nothing can be added. Otherwise, if the direction is new and the
   gap is falling fast, go on with step 2; else add pivots, up to twice as many as there are. Last, the objective is
   computed again from the coefficients with K.
"""

from __future__ import annotations

import numpy as np

from toprank.arrays import Floats
from toprank.formulations.thresholds import within_caps
from toprank.matrices.dense_or_sparse import transpose_matvec
from toprank.solvers.incumbent import COLLAPSE, Incumbent
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.problem import DualPoint, Solution
from toprank.solvers.proximal_newton import has_proximal_points, solve_proximal_newton
from toprank.solvers.smooth_newton import solve_smooth_newton
from toprank.solvers.subspace import Subspace, most_rank_within
from toprank.solvers.subspace_programs import SubspacePrograms
from toprank.solvers.working_set_newton import solve_newton

# Bytes that the factor may take.
_MOST_BYTES, _MOST_BYTES_FOR_PROGRAMS = 400_000_000, 1_000_000_000
# Directions beyond the largest rank.
_DIRECTIONS = 30
# A gap above this is no time for directions, and if the last round left more than that part of it, for pivots.
_FAR, _SLOW = 0.1, 0.6
# More kernel values than the first number are computed for a lower bound only if the gap is at most so many `tol`, and
# if they are at most so many times those of the factor.
_FEW_VALUES, _NEAR, _MORE_VALUES = 500_000_000, 100.0, 20
# Part of the last gap to which the linear problem is solved.
_EXACTNESS = 0.01
# What rows without a multiplier count for as pivots, in mean multipliers.
_FLOOR = 1e-3


def solve_low_rank(
    problem: KernelProblem,
    *,
    tol: float = 1e-4,
    max_iter: int = 5000,
    verbose: int = 0,
    start: Solution | None = None,
    first_rank: int = 200,
    most_rank: int | None = None,
) -> Solution:
    """Minimise on a growing subspace; the docstrings of the routes have the steps.

    `max_iter` counts all Newton steps. The support vectors of `start`, by any kernel solver, are the first pivots;
    there are `first_rank` of them to begin with and `most_rank` at most, by default as many as fit into 400 MB, or 1 GB
    where programs follow.
    """
    has_programs = has_proximal_points(problem)
    most = most_rank_within(_MOST_BYTES_FOR_PROGRAMS if has_programs else _MOST_BYTES, problem.gram)
    most = most if most_rank is None else min(most_rank, problem.gram.n)
    incumbent = Incumbent.from_zero(problem, problem.gram.n, tol, verbose)
    if has_programs:
        return SubspacePrograms(problem, solve_proximal_newton, incumbent, max_iter, most).run(start, first_rank)
    is_smooth = problem.formulation.threshold.is_implicit
    solve = solve_smooth_newton if is_smooth else solve_newton
    return _Directions(problem, solve, incumbent, max_iter, most, _DIRECTIONS).run(start, first_rank)


class _Directions(Subspace):
    """The loop over subspaces."""

    @property
    def is_smooth(self) -> bool:
        """Whether the threshold is."""
        return self.problem.formulation.threshold.is_implicit

    def run(self, start: Solution | None, first_rank: int) -> Solution:
        """Steps 1 to 4."""
        incumbent, importance, linear = self.incumbent, self._first_importance(start), None
        previous, exactness = np.inf, 0.1
        # 1. Pivots.
        self._add_pivots(first_rank, importance)
        while True:
            # 2. The linear problem.
            if self.is_smooth or self.factor.is_complete:
                exactness = min(exactness, 0.2 * self.tol)
            linear = self._step(exactness, linear)
            # 3. The lower bound, and the direction of r.
            gap, has_direction = incumbent.gap, False
            if linear.dual_point is not None:
                gap, importance, has_direction = self._certify(linear, linear.dual_point)
            # 4. Stop, or enlarge the subspace.
            can_grow = has_direction or self._can_add_pivots()
            is_exact = linear.gap <= 0.3 * (gap if can_grow else self.tol) or not linear.converged
            is_solved = gap <= self.tol and (incumbent.is_informative(gap) or gap > 0.5 * previous)
            if is_solved or (is_exact and not can_grow) or incumbent.n_iter >= self.max_iter:
                return self._finish()
            incumbent.record()
            exactness = max(0.2 * self.tol if gap > self.tol else 0.1 * COLLAPSE, _EXACTNESS * gap)
            if not is_exact:
                exactness = min(exactness, 0.1 * linear.gap)
            elif not has_direction or gap > _FAR or gap > _SLOW * previous:
                self._add_pivots(2 * self.factor.rank, importance)
            previous = gap

    def _certify(self, linear: Solution, point: DualPoint) -> tuple[float, Floats, bool]:
        """Step 3; returns the gap, perhaps an estimate, the importance of the rows, and if a direction was added."""
        problem, gram = self.problem, self.problem.gram
        if not self.is_smooth:
            point = self._without_small_entries(point, linear.gap)
        r = problem.signed(point.y, point.p)
        importance = np.abs(r) + _FLOOR * np.abs(r).mean()
        in_span = transpose_matvec(self.factor.features, r)
        n_active = np.count_nonzero(r)
        if gram.full is None and self._can_add_pivots():
            gap = self._estimated_gap(point, r, in_span)
            is_near = gap <= _NEAR * self.tol and n_active <= _MORE_VALUES * self.factor.rank
            if gap > _FAR or not (is_near or n_active * self.n <= _FEW_VALUES):
                self._bound_for_nothing(point, r, in_span)
                return gap, importance, False
        products = gram.product(r)
        self.recorder.passes += n_active / self.n
        squared_norm = max(problem.squared_norm(r, products), float(in_span @ in_span))
        bound, scale = problem.dual_value(point, squared_norm)
        self.incumbent.raise_bound(bound, point)
        gap = self.incumbent.gap
        if gap <= self.tol or not self.factor.add_direction(r, products):
            return gap, importance, False
        multiple = scale / problem.alpha
        self._advance(multiple * r, multiple * products, multiple**2 * squared_norm)
        return self.incumbent.gap, importance, True

    def _without_small_entries(self, point: DualPoint, share: float) -> DualPoint:
        """A feasible point near the given one, in which no more than a share of y and of p was set to zero.

        An interior point has small entries everywhere, and K r costs as many rows of K as there are entries.
        """
        caps = self.problem.formulation.threshold.caps(self.problem.threshold_weights)
        most = np.ones(len(point.p)) if caps is None else caps
        return DualPoint(_trimmed(point.y, share), within_caps(_trimmed(point.p, share), most, 1.0))


def _trimmed(values: Floats, share: float) -> Floats:
    """Values with the smallest ones, together at most a share of the sum, set to zero."""
    order = np.argsort(values)
    small = order[np.cumsum(values[order]) <= share * values.sum()]
    trimmed = values.copy()
    trimmed[small] = 0.0
    return trimmed
