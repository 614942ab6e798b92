r"""Accelerated projected gradients on the dual: the TopPush paper's own method, kept as a reference and a baseline.

In the paper's scaling, α = m·y and β = m·b with m positives and mean-one weights r = m·a of the positives, the dual is

.. math:: \min_{(\alpha, \beta) \in \Xi}\ g(\alpha, \beta) = \frac{1}{2 \lambda m} \| v \|^2
          + \sum_i r_i\, \ell^*(\alpha_i / r_i), \qquad v = X_+^\top \alpha - X^\top \beta,

over Ξ: 0 ≤ α ≤ r·max_slope, β ≥ 0, Σα = Σβ = S and, for the mean of the k largest, β ≤ cS with the caps c = weights/k.
To a dual point belongs the primal one w = v/(λm). λ is the penalty `alpha` of the problem.

Steps of an iteration (Algorithm 1 of the paper):

1. Auxiliary point s = current + ω (current − previous), with ω = (t₋₁ − 1)/t. Scores are linear in the dual variables,
   so those at s follow from the two stored vectors, and so does the gradient: X₊v/(λm) + ℓ*'(α/r) and −Xv/(λm).
2. new = projection of s − ∇g(s)/L onto Ξ (Algorithm 2), then its v: one pass over the data.
3. Accept it if g(new) ≤ g(s) + ⟨∇g(s), new − s⟩ + (L/2)‖new − s‖², else double L and go to 2. (The paper prints
   another test, which accepts almost anything.) The test compares what is beyond the linear model: ‖v − v_s‖²/(2λm)
   and the same of ℓ*, so that no digits cancel. L starts at 1/(m + n) and never falls.
4. Scores Xv of the new point: one pass. They give the primal objective P(w), and the next gradient.
5. Certificate: the smallest P and the largest dual value D seen so far, D at the best multiple of (α, β). Stop when
   P − D ≤ tol·P, or by the paper's rule when g changes by less than tol, which says nothing about the error.

The conjugates of the logistic and the exponential loss have no gradient at the ends of their domains, where the steps
may well go. So within a margin ε of the ends and beyond them ℓ* is continued by its second-order Taylor polynomial.
Inside the domain this lowers it by at most ε/2. With ε a quarter of P − D, which falls on the way, the change is an
eighth of the error that is still allowed, and the large curvature at the ends, which would make L large for good, comes
into play only near the solution. The certificate uses the true conjugate. These two losses start at the dual point of
w = 0, the others at zero.

With `adaptive=True`, which is not the paper's and is what `solver="auto"` takes for wide sparse data whose columns are
alike:

- L starts from two steps of the power method on the quadratic part, in place of some twenty doublings. The conjugate
  bends α alone, often ten times as much as the data do, so a step is measured by ρ‖α‖² + ‖β‖², where ρL is the
  curvature of both.
- Where the step and the momentum point in opposite directions, the momentum starts anew and L is halved (O'Donoghue
  and Candès 2015).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from toprank.arrays import Floats
from toprank.matrices.dense_or_sparse import largest_eigenvalue
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.problem import DualPoint, Problem, Recorder, Solution
from toprank.solvers.projection import project_balanced, project_capped
from toprank.solvers.registry import require_fit

# Bounds of the margin ε, and the relative rounding of g that the acceptance test forgives.
_SMALLEST_MARGIN, _LARGEST_MARGIN = 1e-12, 0.1
_ROUNDING = 1e-14


class _Point(NamedTuple):
    """A dual point (α, β), its v = X₊ᵀα − Xᵀβ, and the scores Xv of all rows: all linear in (α, β)."""

    alpha: Floats
    beta: Floats
    v: Floats
    scores: Floats

    def extrapolated(self, previous: _Point, factor: float) -> _Point:
        """Self + factor · (self − previous), without a pass."""
        return _Point(*(new + factor * (new - old) for new, old in zip(self, previous, strict=True)))


class _Dual:
    """The dual objective g of a problem and its domain Ξ; counts the passes over the data."""

    def __init__(self, problem: Problem, recorder: Recorder) -> None:
        self.problem, self.recorder = problem, recorder
        self.surrogate = problem.formulation.surrogate
        self.weights = len(problem.positives) * problem.positive_share
        self.penalty = problem.alpha * len(problem.positives)
        self.caps = problem.formulation.threshold.caps(problem.threshold_weights)
        self.upper = self.weights * self.surrogate.max_slope if np.isfinite(self.surrogate.max_slope) else None
        self.margin = _LARGEST_MARGIN if self.surrogate.is_own_barrier else 0.0
        self.rho = 1.0  # weight of α in the metric of the steps

    def first_point(self, start: Solution | None) -> _Point:
        """The point to start from, made feasible."""
        problem = self.problem
        share = problem.threshold_share
        if (earlier := problem.start_point(start)) is not None:
            return self._best_multiple(earlier)
        if not self.surrogate.is_own_barrier:
            v, scores = np.zeros(problem.X.shape[1]), np.zeros(problem.X.shape[0])
            return _Point(np.zeros_like(self.weights), np.zeros_like(share), v, scores)
        alpha = self.weights * self.surrogate.derivative(np.zeros_like(self.weights))
        return self.point(alpha, alpha.sum() * share)

    def _best_multiple(self, earlier: DualPoint) -> _Point:
        """A point of an earlier problem, made feasible, at its best multiple."""
        alpha = len(earlier.y) * earlier.y
        point = self.point(*self.project(alpha, alpha.sum() * earlier.p))
        known = self.dual_point(point)
        _, scale = self.problem.dual_value(known, float(point.v @ point.v) / len(known.y) ** 2)
        return _Point(*(scale * part for part in point))

    def project(self, alpha: Floats, beta: Floats) -> tuple[Floats, Floats]:
        """The nearest point of Ξ."""
        if self.caps is None:
            return project_balanced(alpha, beta, self.upper, self.rho)
        return project_capped(alpha, beta, self.caps, self.upper, self.rho)

    def inner(self, a: _Point, b: _Point, c: _Point) -> float:
        """The product (a − b)·(b − c) in the metric of the steps."""
        on_alpha = float((a.alpha - b.alpha) @ (b.alpha - c.alpha))
        return self.rho * on_alpha + float((a.beta - b.beta) @ (b.beta - c.beta))

    def combine(self, alpha: Floats, beta: Floats) -> Floats:
        """The vector v: one pass."""
        self.recorder.passes += 1
        return self.problem.combine(self.problem.row_weights(alpha, -beta))

    def dual_point(self, point: _Point) -> DualPoint:
        """The point in the scaling of the problem."""
        total = max(float(point.beta.sum()), np.finfo(float).tiny)
        return DualPoint(point.alpha / len(point.alpha), point.beta / total)

    def point(self, alpha: Floats, beta: Floats, v: Floats | None = None) -> _Point:
        """The point with its scores: one pass, and one more if v is not known."""
        v = self.combine(alpha, beta) if v is None else v
        self.recorder.passes += 1
        return _Point(alpha, beta, v, self.problem.scores(v))

    def conjugate(self, alpha: Floats) -> tuple[Floats, Floats]:
        """Terms r·ℓ*(α/r) and their derivatives, with ℓ* continued by a parabola beyond the margin."""
        slopes = alpha / self.weights
        inside = np.clip(slopes, self.margin, self.surrogate.max_slope - self.margin)
        beyond = slopes - inside
        slope = self.surrogate.conjugate_derivative(inside)
        bend = self.surrogate.conjugate_curvature(inside) * beyond
        terms = self.weights * (self.surrogate.conjugate(inside) + beyond * (slope + 0.5 * bend))
        return terms, slope + bend

    def narrow(self, margin: float) -> None:
        """Lower the margin ε, if the conjugate needs one."""
        if self.surrogate.is_own_barrier:
            self.margin = max(min(self.margin, margin), _SMALLEST_MARGIN)

    def first_curvature(self, adaptive: bool) -> float:
        """The first L: the paper's, or a part of the curvature of ‖v‖²/(2λm) by the power method, with its ρ."""
        smallest = 1 / (len(self.weights) + len(self.problem.threshold_rows))
        if not adaptive:
            return smallest
        self.recorder.passes += 4
        curvature = max(0.5 * largest_eigenvalue(self.problem.X) / self.penalty, smallest)
        middle = np.array([min(1.0, 0.5 * self.surrogate.max_slope)])
        self.rho = 1.0 + float(self.surrogate.conjugate_curvature(middle)[0]) / curvature
        return curvature

    def value(self, point: _Point) -> float:
        """The dual objective g."""
        return float(point.v @ point.v) / (2 * self.penalty) + float(self.conjugate(point.alpha)[0].sum())

    def step(self, auxiliary: _Point, curvature: float) -> tuple[_Point, float]:
        """Projected gradient step from the auxiliary point, and the L that it needed."""
        terms, derivatives = self.conjugate(auxiliary.alpha)
        gradient_alpha = auxiliary.scores[self.problem.positives] / self.penalty + derivatives
        gradient_beta = -auxiliary.scores[self.problem.threshold_rows] / self.penalty
        slack = _ROUNDING * abs(self.value(auxiliary))
        while True:
            alpha, beta = self.project(
                auxiliary.alpha - gradient_alpha / (self.rho * curvature), auxiliary.beta - gradient_beta / curvature
            )
            move_alpha, move_beta = alpha - auxiliary.alpha, beta - auxiliary.beta
            v = self.combine(alpha, beta)
            move_v = v - auxiliary.v
            beyond_linear = float(move_v @ move_v) / (2 * self.penalty) + float(
                (self.conjugate(alpha)[0] - terms - derivatives * move_alpha).sum()
            )
            squared_length = self.rho * float(move_alpha @ move_alpha) + float(move_beta @ move_beta)
            if not beyond_linear > 0.5 * curvature * squared_length + slack:  # so that a NaN ends the search too
                return self.point(alpha, beta, v), curvature
            curvature *= 2


def solve_apg(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 100_000,
    stop: Literal["gap", "objective"] = "gap",
    adaptive: bool = False,
    patience: int | None = None,
    verbose: int = 0,
    start: Solution | None = None,
) -> Solution:
    """Solve by accelerated projected gradients on the dual; the steps are in the docstring of the module.

    An iteration costs two passes, and one more for each time that L is doubled. `stop` is the certificate, "gap", or
    the paper's rule, "objective", by which `tol` is the change of g. `patience` ends the run without success after so
    many iterations that did not halve the gap. The `state` of the solution is the last `DualPoint`.
    """
    require_fit("apg", problem)
    if stop not in ("gap", "objective"):
        raise ValueError(f'stop must be "gap" or "objective", got {stop!r}')
    incumbent = Incumbent.from_zero(problem, problem.X.shape[1], tol, verbose)
    dual = _Dual(problem, incumbent.recorder)
    current = previous = dual.first_point(start)
    _certify(dual, current, incumbent)
    incumbent.record()
    converged = stop == "gap" and incumbent.converged
    curvature, t_before, t = dual.first_curvature(adaptive), 0.0, 1.0
    halved, halved_at = incumbent.gap, 0
    while not converged and incumbent.n_iter < max_iter:
        if patience is not None and incumbent.n_iter - halved_at >= patience:
            break
        # 1. The auxiliary point.
        dual.narrow(0.25 * (incumbent.primal - incumbent.dual))
        auxiliary = current.extrapolated(previous, (t_before - 1) / t)
        # 2. to 4. A projected gradient step, with the L that it needs, and the scores there.
        previous = current
        current, curvature = dual.step(auxiliary, curvature)
        t_before, t = t, 0.5 * (1 + np.sqrt(1 + 4 * t**2))
        incumbent.n_iter += 1
        # 5. The certificate.
        _certify(dual, current, incumbent)
        if incumbent.gap <= 0.5 * halved:
            halved, halved_at = incumbent.gap, incumbent.n_iter
        incumbent.record()
        converged = incumbent.converged if stop == "gap" else abs(dual.value(current) - dual.value(previous)) < tol
        if adaptive and dual.inner(auxiliary, current, previous) > 0:
            previous, curvature, t_before, t = current, 0.5 * curvature, 0.0, 1.0
    return incumbent.solution(converged, state=dual.dual_point(current))


def _certify(dual: _Dual, point: _Point, incumbent: Incumbent) -> None:
    """Step 5: offer the point's w and its dual value."""
    problem = dual.problem
    w, scores = point.v / dual.penalty, point.scores / dual.penalty
    incumbent.offer(problem.primal(w, scores), w, scores)
    if not incumbent.coef.any() and w.any():  # w = 0 may hide for long that a shorter step would gain
        incumbent.advance(w, scores, (0.0, 0.0, float(w @ w)))
    if point.alpha.any():
        known = dual.dual_point(point)
        squared_norm = float(point.v @ point.v) / len(known.y) ** 2
        incumbent.raise_bound(problem.dual_value(known, squared_norm)[0], known)
