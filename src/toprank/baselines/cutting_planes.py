r"""Minimise a penalised convex risk of the scores by cutting planes: the solver of structural support vector machines.

.. math:: f(w) = \frac\alpha2 \|w\|^2 + R(Xw), \qquad R \ge 0

A risk is known by its value and one subgradient at given scores: that of the most violated constraint, where R is a
maximum over structures such as rankings. Each point gives a plane below R, and the largest of all planes is a model of
it. Steps of an iteration:

1. The minimum of the model with the penalty is w = −Aᵀμ/α, where the rows of A are the slopes of the planes and μ is
   the maximum of the dual, a concave quadratic function on the simplex. Its value there is a lower bound of f.
2. The best point moves towards that minimum as far as is best. Scores are linear in w, so one pass over the data is
   enough.
3. Stop when the best value is within `tol` of the lower bound, or rounding errors hide all further gains.
4. A new plane: at a point a tenth of the way from the best point to the minimum of the model. Planes that have not
   been part of the minimum for long are forgotten.

A risk may have a faster method for problems that need many planes: it goes on from the best point, and adds its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from toprank.arrays import Floats
from toprank.baselines.tangents import Risk, Way
from toprank.matrices.dense_or_sparse import Cholesky, matvec, transpose_matvec
from toprank.solvers.incumbent import COLLAPSE
from toprank.solvers.problem import NO_GAIN, Recorder, relative_gap

# Share of the way from the best point to the minimum of the model at which the next plane touches.
_AHEAD = 0.1
# Iterations after which a plane that takes no part is forgotten.
_PATIENCE = 30
# Planes that there is room for at first.
_ROOM = 32
# Iterations without any gain after which rounding errors leave nothing to gain.
_STALLED = 20
# Part of the largest violation of the optimality of the model that may be rounding.
_ROUNDING = 1e-13
# Iterations after which another method goes on, where there is one.
_ENOUGH = 100


@dataclass
class Minimum:
    """Where the search ended: `bound` is a lower bound of the optimum."""

    w: Floats
    scores: Floats
    objective: float
    bound: float
    n_iter: int
    converged: bool
    history: dict[str, list[float]]


class Planes:
    """The planes R ≥ a·w + b as rows of arrays, and the weights μ of those that make the minimum of the model.

    The first one is R ≥ 0. Arrays have room for more, as copies of all slopes would take longer than all else.
    """

    def __init__(self, n_columns: int) -> None:
        self.slopes, self.offsets = np.zeros((_ROOM, n_columns)), np.zeros(_ROOM)
        self.products = np.zeros((_ROOM, _ROOM))
        self.share, self.idle = np.ones(1), np.zeros(1)

    def add(self, slope: Floats, offset: float) -> None:
        """Add a plane, in the place of one that has not been of use for long if there is any."""
        place = 1 + int(np.argmax(self.idle[1:])) if len(self.idle) > 1 else 0
        if self.idle[place] < _PATIENCE:
            place = len(self.share)
            self._make_room(place + 1)
            self.share, self.idle = np.append(self.share, 0.0), np.append(self.idle, 0.0)
        n = len(self.share)
        self.slopes[place], self.offsets[place], self.share[place], self.idle[place] = slope, offset, 0.0, 0.0
        self.products[place, :n] = self.products[:n, place] = self.slopes[:n] @ slope

    def _make_room(self, n: int) -> None:
        more = len(self.offsets)
        if n > more:
            self.slopes = np.vstack([self.slopes, np.zeros_like(self.slopes)])
            self.offsets = np.pad(self.offsets, (0, more))
            self.products = np.pad(self.products, (0, more))

    def minimum(self, alpha: float) -> tuple[Floats, float]:
        """The minimum of the model with the penalty, and a lower bound of its value, exact but for rounding."""
        n = len(self.share)
        offsets = self.offsets[:n]
        self.share = simplex_minimum(self.products[:n, :n] / alpha, offsets, self.share)
        self.idle = np.where(self.share > 0, 0.0, self.idle + 1)
        combined = self.share @ self.slopes[:n]
        return -combined / alpha, float(self.share @ offsets - combined @ combined / (2 * alpha))


class Reached(NamedTuple):
    """The best point, its objective, a lower bound of the optimum, and the iterations that it took."""

    w: Floats
    primal: float
    bound: float
    n_iter: int


Faster = Callable[[Reached, Planes, Recorder], Reached]


def simplex_minimum(G: Floats, b: Floats, start: Floats) -> Floats:
    """Minimise μᵀGμ/2 − b·μ over μ ≥ 0 with Σμ = 1, by an active-set method from a feasible start."""
    mu, inside = start.copy(), start > 0
    # a constant added to all products changes nothing on the simplex, and makes dependent planes harmless
    G = G + max(float(G.diagonal().max()), np.finfo(float).tiny)
    for _ in range(10 * len(b) + 50):
        rows = np.flatnonzero(inside)
        solve = Cholesky(G[np.ix_(rows, rows)]).solve
        of_b, of_one = solve(b[rows]), solve(np.ones(len(rows)))
        target = of_b - (of_b.sum() - 1) / of_one.sum() * of_one
        if target.min() < 0:
            # go towards it until a weight is zero, and leave that plane out
            falling = np.flatnonzero(target < 0)
            steps = mu[rows[falling]] / (mu[rows[falling]] - target[falling])
            first, step = falling[np.argmin(steps)], steps.min()
            mu[rows] += step * (target - mu[rows])
            mu[rows[first]], inside[rows[first]] = 0.0, False
            continue
        mu[rows] = target / target.sum()
        slack = G @ mu - b
        entering, common = int(np.argmin(slack)), float(mu @ slack)
        if inside[entering] or common - slack[entering] <= _ROUNDING * (abs(common) + float(np.abs(b).max())):
            break
        inside[entering] = True
    mu = np.maximum(mu, 0.0)
    return np.asarray(mu / mu.sum())


def solve_cutting_planes(
    X: Any, risk: Risk, alpha: float, *, tol: float, max_iter: int, verbose: int = 0, faster: Faster | None = None
) -> Minimum:
    """Minimise α/2 ‖w‖² + R(Xw) to a relative gap of `tol`, see the module."""
    recorder = Recorder(verbose)
    best, scores = np.zeros(X.shape[1]), np.zeros(X.shape[0])
    touched = at_best = risk(scores)
    primal = at_zero = at_best.value
    planes, touched_scores, bound, of_planes, n_iter = Planes(X.shape[1]), scores, 0.0, 0.0, 0
    recorder.record(0, primal, bound)
    known, n_idle = (primal, of_planes), 0
    while n_iter < max_iter:
        n_iter += 1
        # 4. The plane at the last point that was chosen.
        slope = transpose_matvec(X, touched.gradient)
        planes.add(slope, touched.value - float(touched.gradient @ touched_scores))
        # 1. The minimum of the model.
        w, value = planes.minimum(alpha)
        of_planes = max(of_planes, value)
        bound = max(bound, of_planes)
        new_scores = matvec(X, w)
        recorder.passes += 2
        # 2. The best point towards it.
        way = Way(risk, alpha, scores, new_scores, (float(best @ best), float(best @ w), float(w @ w)))
        found = way.best(at_best)
        if found.value < primal and at_zero - found.value > NO_GAIN * at_zero:
            best, scores = best + found.share * (w - best), way.scores(found.share)
            primal, at_best = found.value, found.point
        # 3. The certificate.
        recorder.record(n_iter, primal, bound)
        n_idle = 0 if (primal, of_planes) != known else n_idle + 1
        known = (primal, of_planes)
        if _is_solved(primal, bound, at_zero, tol) or n_idle == _STALLED:
            break
        if faster is not None and n_iter == _ENOUGH:
            best, primal, bound, n_iter = faster(Reached(best, primal, bound, n_iter), planes, recorder)
            scores = matvec(X, best)
            at_best = risk(scores)
            if _is_solved(primal, bound, at_zero, tol):
                break
        touched_scores = scores + _AHEAD * (new_scores - scores)
        touched = risk(touched_scores)
    converged = relative_gap(primal, bound) <= tol
    return Minimum(best, scores, primal, bound, n_iter, converged, recorder.rows)


def _is_solved(primal: float, bound: float, at_zero: float, tol: float) -> bool:
    """Whether the gap is small, and most of what can be gained against w = 0 is gained or nothing can be."""
    gap = relative_gap(primal, bound)
    return gap <= tol and (gap * primal <= 0.5 * (at_zero - primal) or gap <= COLLAPSE)
