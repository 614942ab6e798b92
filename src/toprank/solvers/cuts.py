r"""Newton's method for a largest score over few dense features: the threshold by cuts, the loss by parabolas.

.. math:: \min_{w, t} \frac{\alpha}{2} \|w\|^2 + \sum_i a_i\, \ell(t - s_i^+) \quad \text{with } t \geq s_j^-.

Of the constraints about as many bind as there are features, and a piecewise quadratic loss is a quadratic one as long
as no positive changes its piece:

1. Cuts: the constraints of the threshold rows that score highest at the best and the newest point, and all before.
2. The quadratic of the pieces on which the positives are, under the cuts: non-negative least squares in the multipliers
   b of the cuts. Those that had one in the last round and the new ones are likely to have one, others join if need be.
3. The slopes u of the loss at its solution, and b, are a dual point: a lower bound.
4. One pass for the scores of all rows; the best point on the segment from the best so far is the new best.

Where pieces and cuts settle, the solution is exact: mostly after two to seven rounds.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from toprank.arrays import Floats, Rows
from toprank.formulations.surrogates import PiecewiseQuadratic
from toprank.matrices.dense_or_sparse import Cholesky, sandwich
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import DualPoint, Problem

# Features up to which it is tried.
_MOST_FEATURES = 60
# Cuts of a point: so many more than features, and at least.
_MORE_CUTS, _LEAST_CUTS = 5, 20
# Rounds. Their gaps say little of how far the end is: it may fall from nearly one to rounding in the last one.
_ROUNDS = 20
# How often a round reads the positives.
_READINGS = 4
# Share of a step below which the best point on the way takes the place of its end.
_SHORT = 0.1
# Parts of the cuts that are tried before all of them, and the share of the largest slope below which one is rounding.
_PARTS, _NO_SLOPE = 10, 1e-11


def has_cuts(problem: Problem) -> bool:
    """Whether the problem is one for cuts: a largest score, few dense features, a loss of parabolas."""
    formulation, X = problem.formulation, problem.X
    return bool(
        isinstance(X, np.ndarray)
        and 0 < X.shape[1] <= _MOST_FEATURES
        and formulation.threshold.caps(problem.threshold_weights) is None
        and formulation.surrogate.is_piecewise_quadratic
        and formulation.surrogate.is_smooth
    )


class CutNewton:
    """The rounds; `incumbent` has the first point, and gets the best one and the bound."""

    def __init__(self, problem: Problem, incumbent: Incumbent) -> None:
        self.problem, self.incumbent = problem, incumbent
        self.surrogate: PiecewiseQuadratic = problem.formulation.surrogate.pieces
        self.n_cuts = min(max(_LEAST_CUTS, problem.X.shape[1] + _MORE_CUTS), len(problem.threshold_rows))
        self.positives = _extended(problem.X[problem.positives])
        self.rows, self.cuts = np.zeros(0, np.intp), np.zeros((0, self.positives.shape[1]))
        self.last = np.zeros(0)  # multipliers of the cuts of the last round

    def run(self, at: Floats, max_iter: int) -> bool:
        """Rounds from the scores of a point until the gap is at most the tolerance.

        Returns whether it is, and w = 0 either is ruled out or is optimal.
        """
        problem, incumbent = self.problem, self.incumbent
        for _ in range(min(_ROUNDS, max_iter - incumbent.n_iter)):
            incumbent.n_iter += 1
            # 1. Cuts.
            self._add_cuts(at)
            # 2. and 3. The quadratic and the bound.
            w = self._step(at)
            if w is None:
                break
            # 4. The best point: mostly the new one.
            at = problem.scores(w)
            incumbent.recorder.passes += 1
            if not incumbent.offer(problem.primal(w, at), w, at):
                at = self._between(w, at)
            incumbent.record()
            if incumbent.converged and incumbent.is_informative(incumbent.gap):
                return True
        return False

    def _between(self, w: Floats, scores: Floats) -> Floats:
        """Step 4 where a point is no better: where to go on from, which is it or the best one on the way to it."""
        best = self.incumbent.coef
        with np.errstate(over="ignore"):  # a step that went astray is no better point
            squares = (float(best @ best), float(best @ w), float(w @ w))
        share, _ = self.incumbent.advance(w, scores, squares)
        if share >= _SHORT:
            return scores
        self._add_cuts(scores)
        return self.incumbent.scores

    def _add_cuts(self, scores: Floats) -> None:
        s = scores[self.problem.threshold_rows]
        highest = np.argpartition(s, len(s) - self.n_cuts)[len(s) - self.n_cuts :]
        new = np.setdiff1d(highest, self.rows)
        if len(new):
            self.rows = np.concatenate([self.rows, new])
            self.cuts = np.concatenate([self.cuts, _extended(self.problem.X[self.problem.threshold_rows[new]])])

    def _step(self, scores: Floats) -> Floats | None:
        """The solution of the quadratic at a point, or None if there is none; raises the bound."""
        problem, surrogate, share = self.problem, self.surrogate, self.problem.positive_share
        x = problem.threshold_at(scores) - scores[problem.positives] + surrogate.shift
        bent = (x > 0) & (x <= surrogate.width * surrogate.max_slope)
        h = np.where(bent, share / surrogate.width, 0.0)
        beyond = np.where(bent | (x <= 0), 0.0, share * surrogate.max_slope) if surrogate.max_slope < np.inf else 0.0
        if not bent.any():
            return None
        H = sandwich(self.positives, h)
        H.reshape(-1)[:: len(H) + 1][:-1] += problem.alpha
        factor = Cholesky(H)
        half = factor.half_solve(np.column_stack([self.cuts.T, (surrogate.shift * h + beyond) @ self.positives]))
        likely = np.concatenate([np.flatnonzero(self.last), np.arange(len(self.last), len(self.cuts))])
        b = _multipliers(half[:, :-1], half[:, -1], likely)
        if b is None:
            return None
        self.last = b
        solution = factor.back_solve(half[:, -1] - half[:, :-1] @ b)
        total = float(b.sum())
        if not 0 < total < np.inf or not np.isfinite(solution).all():
            return None
        # the last column is −1, so that the products are s − t
        u = np.clip(h * (surrogate.shift - self.positives @ solution) + beyond, 0.0, share * surrogate.max_slope)
        self._raise_bound(u, b / total)
        self.incumbent.recorder.passes += _READINGS * len(u) / len(problem.positive)
        return np.asarray(solution[:-1])

    def _raise_bound(self, u: Floats, p: Floats) -> None:
        problem, on_rows = self.problem, np.zeros(len(self.problem.threshold_rows))
        v = u @ self.positives[:, :-1] - u.sum() * (p @ self.cuts[:, :-1])
        on_rows[self.rows] = p
        point = DualPoint(u, on_rows)
        self.incumbent.raise_bound(problem.dual_value(point, float(v @ v))[0], point)


def _multipliers(G: Floats, r: Floats, likely: Rows) -> Floats | None:
    """The b ≥ 0 of the least ‖r − G b‖; None where numbers are beyond the range, or columns so alike that it cycles.

    Its time grows with the columns, so the likely ones come first, and those that would lower the norm join them.
    """
    if not (np.isfinite(G).all() and np.isfinite(r).all()):
        return None
    no_slope = _NO_SLOPE * np.sqrt(np.einsum("ij,ij->j", G, G)) * float(np.linalg.norm(r))
    some, b = likely, np.zeros(G.shape[1])
    try:
        for _ in range(_PARTS if 0 < 2 * len(likely) <= len(b) else 0):
            found = nnls(G[:, some], r)[0]
            slopes = G.T @ (r - G[:, some] @ found)
            slopes[some] = 0.0
            missing = np.flatnonzero(slopes > no_slope)
            if not len(missing):
                b[some] = found
                return b
            some = np.concatenate([some[found > 0], missing])
        return np.asarray(nnls(G, r)[0])
    except RuntimeError:  # too many iterations
        return None


def _extended(rows: Floats) -> Floats:
    """Rows (x, −1) in float64."""
    extended = np.full((len(rows), rows.shape[1] + 1), -1.0)
    extended[:, :-1] = rows
    return extended
