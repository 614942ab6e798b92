r"""Coordinate ascent on pairs of dual variables: the kernel paper's own method, kept as a reference and a baseline.

The problem divided by its penalty is the paper's: :math:`\frac12 \|w\|^2 + \sum_i C_i\, \ell(t - s_i)` with
:math:`C_i = a_i / \alpha`, where a are the shares of the positives. The dual variables are α of the positives and β of
the threshold rows, Σα = Σβ; a positive row that the threshold looks at too (TopMeanK, PatMat) has one of each. The
model is :math:`w = \sum_i c_i\, \phi(x_i)`, where c is α minus β row by row. `_dual_cd_steps` has the dual objective.

Steps of an iteration (Algorithm 3.1):

1. Choose a variable k at random.
2. For every other variable l compute the best step of the pair (k, l) in closed form (Theorems 3.1, C.1, D.1, D.2).
3. Take the pair whose step raises the dual objective most.
4. Update the two variables, the scores by two rows of the kernel matrix, and, for the surrogate quantile, δ.

With weights, C, the caps c and the shares q of the quantile differ from row to row; the paper's nτ is τ for shares.

Start: α = S·(shares of the positives) and β = S·(shares of the threshold rows), with the best S. Zero would be
feasible, but with caps no pair can leave it: β_l ≤ c_l S holds every β at zero while S = 0; and in Theorem C.1 δ = 0
divides. Certificate: the gap between the primal objective, from the scores, and the dual objective, at the variables
as they are; it is looked at every few hundred iterations. A run also ends when no pair at all has a gain left.

**Where it stops short.** For the mean of the k largest with k > 1 and for the hinge with the surrogate quantile the
constraints couple all variables, and a point from which no pair can rise need not be the optimum. With caps, S cannot
fall while a third variable is at its cap, β_j = c_j S: all variables at their caps would have to fall together. With
the hinge δ is the largest β_j / q_j, as a rule of many rows at once. It can fall only if all of them fall together,
and one that rises above the others pays for δ alone, τ / q_j for each unit, where all of them together would share the
price. So for these the gap may end far above `tol`. On 60 rows with alpha from 1 to 0.01 it ended below 8e-3 for k = 3,
between 5e-3 and 0.9 for the top 40 % of the negatives, and between 0.1 and 0.99 for the hinge with the surrogate
quantile. Use solver="auto" for the optimum.

For the plain maximum (TopPush), and for the quadratic loss with the surrogate quantile, the bounds are separate and the
objective is smooth where δ > 0: the method converges, and to set δ after Δ, not together with it, does not change the
limit. So the gap that the paper's Figure 3 shows for Pat&Mat is not inherent. On half of ionosphere, standardised, with
the linear kernel and the threshold over the negatives, it fell to 1e-9 after about 20,000 iterations for C = 1 and
after 94,000 to 120,000 for C = 10, where the paper's 20,000 left 2 to 5 %. Too few iterations are thus enough for
such a gap; but the paper does not state its C, and TopPush, for which it shows no gap, took more of them here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from toprank.arrays import Floats, Rows
from toprank.compiled import compiled, part
from toprank.formulations.thresholds import within_caps
from toprank.solvers._dual_cd_steps import (
    Line,
    Losses,
    capped_mixed,
    capped_two_thresholds,
    hinge_mixed,
    hinge_two_thresholds,
    quadratic_mixed,
    quadratic_two_thresholds,
    two_positives,
)
from toprank.solvers.incumbent import Incumbent
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.problem import DualPoint, Recorder, Solution
from toprank.solvers.registry import require_fit

# What the threshold makes of β; without caps the plain maximum.
PLAIN, CAPPED, QUADRATIC, HINGE = 0, 1, 2, 3
# A gain below this share of the dual objective counts as none: the error of the scores is about its root.
_NO_GAIN = 1e-22


def solve_dual_cd(
    problem: KernelProblem,
    *,
    tol: float = 1e-4,
    max_iter: int = 100_000,
    verbose: int = 0,
    start: Solution | None = None,
    random_state: Any = None,
) -> Solution:
    """Minimise by Algorithm 3.1 of the kernel paper; the module's docstring has the steps and the limits.

    `max_iter` counts updates of a pair, of which the paper makes 20,000. The first point is along the last one of
    `start`.
    """
    require_fit("dual-cd", problem)
    dual, incumbent = _Dual.of(problem), Incumbent(problem, tol, Recorder(verbose))
    random, n_variables = check_random_state(random_state), len(dual.terms.rows)
    variables, scores = dual.first_point(start)
    incumbent.recorder.passes += 1
    interval = max(200, n_variables // 4)
    while True:
        _certify(dual, variables, scores, incumbent)
        if incumbent.converged or incumbent.n_iter >= max_iter:
            break
        # 1. to 4. Some iterations.
        chosen = random.randint(n_variables, size=min(interval, max_iter - incumbent.n_iter))
        least = _NO_GAIN * abs(incumbent.dual) / problem.alpha
        moves = dual.ascend(chosen, scores, variables, least)
        incumbent.n_iter += len(chosen)
        incumbent.recorder.passes += 2 * len(chosen) / len(scores)
        if moves == 0 and dual.ascend(np.arange(n_variables), scores, variables, least) == 0:
            break
    solution = incumbent.solution(state=dual.point(variables))
    return problem.certified(solution, np.float64, tol)  # the scores were updated many times, and rounded each time


def _certify(dual: _Dual, variables: Floats, scores: Floats, incumbent: Incumbent) -> None:
    """The certificate at the variables as they are."""
    c = dual.coefficients(variables)
    incumbent.offer(dual.problem.primal(c, scores), c, scores.copy())
    incumbent.raise_bound(dual.objective(variables, scores), dual.point(variables))
    incumbent.record()


class Terms(NamedTuple):
    """What the compiled steps need of the dual.

    `rows` has the row of each variable and `limits` its C, for the first m, or its cap or share q; `diagonal` is that
    of the kernel matrix.
    """

    kind: int
    rows: Rows
    m: int
    limits: Floats
    losses: Losses
    diagonal: Floats


@dataclass(frozen=True)
class _Dual:
    """The dual in the paper's scaling; variables are α, then β, in one array."""

    problem: KernelProblem
    terms: Terms
    whole: NDArray[Any] | None
    """The kernel matrix, where it is in memory."""

    @staticmethod
    def of(problem: KernelProblem) -> _Dual:
        threshold, loss = problem.formulation.threshold, problem.formulation.surrogate.pieces
        C = problem.positive_share / problem.alpha
        if threshold.is_maximum:
            caps = threshold.caps(problem.threshold_weights)
            limits = np.ones(len(problem.threshold_rows)) if caps is None else caps
            kind, of_quantile, tau = (PLAIN if caps is None else CAPPED), (0.0, 0.0, 0.0), 0.0
        else:
            pieces, beta, tau = threshold.implicit.surrogate.pieces, threshold.implicit.beta, threshold.implicit.tau
            of_quantile = (pieces.shift / beta, pieces.width / beta**2, pieces.max_slope * beta)
            kind, limits = (QUADRATIC if pieces.is_smooth else HINGE), problem.threshold_share
        rows = np.concatenate([problem.positives, problem.threshold_rows])
        losses = Losses(loss.shift, loss.width, loss.max_slope, *of_quantile, tau)
        diagonal = problem.gram.diagonal.astype(np.float64)
        terms = Terms(kind, rows, len(C), np.concatenate([C, limits]), losses, diagonal)
        return _Dual(problem, terms, problem.gram.full)

    def first_point(self, start: Solution | None) -> tuple[Floats, Floats]:
        """The best multiple of (a; q), or of an earlier point of the same variables; and its scores."""
        problem, (kind, _, m, limits, losses, _) = self.problem, self.terms
        direction = np.concatenate([problem.positive_share, problem.threshold_share])
        if (earlier := problem.start_point(start)) is not None:
            total = float(earlier.y.sum())
            most = limits[m:] * total if kind in (PLAIN, CAPPED) else np.full(len(earlier.p), np.inf)
            direction = np.concatenate([earlier.y, within_caps(total * earlier.p, most, total)])
        scores = problem.scores(self.coefficients(direction))
        alpha, C = direction[:m], limits[:m]
        squared_norm = float(self.coefficients(direction) @ scores)
        rise = losses.shift * float(alpha.sum()) + self._threshold_term(direction[m:])
        bend = squared_norm + losses.width * float(alpha @ (alpha / C))
        largest = float((C * losses.max_slope / np.maximum(alpha, np.finfo(float).tiny)).min())
        # A surrogate quantile with τ near 1 may offer no rise along this line; any positive multiple will do then.
        best = max(rise, 1e-3 * losses.shift * float(alpha.sum())) / bend if bend > 0 else np.inf
        scale = min(best, largest)
        return scale * direction, scale * scores

    def coefficients(self, variables: Floats) -> Floats:
        """Signed weights c of the rows."""
        return self.problem.row_weights(variables[: self.terms.m], -variables[self.terms.m :])

    def objective(self, variables: Floats, scores: Floats) -> float:
        """The dual objective in the scaling of the problem."""
        m, losses = self.terms.m, self.terms.losses
        alpha = variables[:m]
        loss = losses.shift * float(alpha.sum()) - 0.5 * losses.width * float(alpha @ (alpha / self.terms.limits[:m]))
        squared_norm = self.problem.squared_norm(self.coefficients(variables), scores)
        return self.problem.alpha * (loss + self._threshold_term(variables[m:]) - 0.5 * squared_norm)

    def point(self, variables: Floats) -> DualPoint:
        """The variables as a point of the dual of the problem."""
        alpha, beta = variables[: self.terms.m], variables[self.terms.m :]
        total = max(float(beta.sum()), np.finfo(float).tiny)
        return DualPoint(self.problem.alpha * alpha, beta / total, -self._threshold_term(beta) / total)

    def _threshold_term(self, beta: Floats) -> float:
        """What the threshold adds, at the best δ: a function of degree one."""
        *_, shift, width, max_slope, tau = self.terms.losses
        q = self.terms.limits[self.terms.m :]
        if self.terms.kind == QUADRATIC:
            return shift * float(beta.sum()) - float(np.sqrt(2 * width * tau * (beta @ (beta / q))))
        if self.terms.kind == HINGE:
            return shift * float(beta.sum()) - tau * float((beta / q).max()) / max_slope
        return 0.0

    def ascend(self, chosen: Rows, scores: Floats, variables: Floats, least: float) -> int:
        """Iterate with the given first variables, in place; returns how many of them found a pair with a gain."""
        gram, terms, moves = self.problem.gram, self.terms, 0
        if self.whole is not None:
            return int(_iterate(self.whole, terms, chosen, scores, variables, least))
        for k in chosen:
            row_k = gram.row(terms.rows[k])
            partner, step, gain = best_partner(k, row_k, terms, scores, variables)
            if gain > least:
                update(k, partner, step, row_k, gram.row(terms.rows[partner]), terms, scores, variables)
                moves += 1
        return moves


@compiled(nogil=True)
def _iterate(K: Any, terms: Any, chosen: Any, scores: Any, variables: Any, least: float) -> int:
    """Iterate with the whole matrix in memory."""
    moves = 0
    for k in chosen:
        row_k = K[terms.rows[k]]
        partner, step, gain = best_partner(k, row_k, terms, scores, variables)
        if gain > least:
            update(k, partner, step, row_k, K[terms.rows[partner]], terms, scores, variables)
            moves += 1
    return moves


@compiled(nogil=True)
def update(k: int, partner: int, step: float, row_k: Any, row_l: Any, terms: Any, scores: Any, variables: Any) -> None:
    """Rules (17a) to (17c): two variables, and all scores by two rows of K."""
    variables[k] = max(variables[k] + step, 0.0)
    same_side = (k < terms.m) == (partner < terms.m)
    variables[partner] = max(variables[partner] - step if same_side else variables[partner] + step, 0.0)
    signed = step if k < terms.m else -step
    for i in range(len(scores)):
        scores[i] += signed * (np.float64(row_k[i]) - np.float64(row_l[i]))


@compiled(nogil=True)
def best_partner(k: int, row_k: Any, terms: Any, scores: Any, variables: Any) -> Any:
    """Steps 2 and 3: the partner l of k with the largest gain, the step of the pair, and the gain."""
    sums = threshold_sums(k, terms, variables)
    rows, diagonal = terms.rows, terms.diagonal
    best, best_step, best_gain = -1, 0.0, 0.0
    for l in range(len(variables)):  # noqa: E741
        if l == k:
            continue
        row = rows[l]
        eta = max(diagonal[rows[k]] + diagonal[row] - 2 * row_k[row], 0.0)
        step, gain = pair_step(k, l, eta, sums, terms, scores, variables)
        if gain > best_gain:
            best, best_step, best_gain = l, step, gain
    return best, best_step, best_gain


@part()
def threshold_sums(k: int, terms: Any, variables: Any) -> Any:
    """Σβ and Σβ²/limit; apart from k, the variable of the largest β/limit, its value, and the next largest value."""
    total, squares = 0.0, 0.0
    first, largest, next_largest = -1, -np.inf, -np.inf
    for j in range(terms.m, len(variables)):
        total += variables[j]
        ratio = variables[j] / terms.limits[j]
        squares += variables[j] * ratio
        if j != k:
            if ratio > largest:
                first, largest, next_largest = j, ratio, largest
            elif ratio > next_largest:
                next_largest = ratio
    return total, squares, first, largest, next_largest


@part()
def pair_step(k: int, l: int, eta: float, sums: Any, terms: Any, scores: Any, variables: Any) -> Any:  # noqa: E741
    """The best step of the pair (k, l) and its gain, by the closed form for the sides of k and l and for the kind."""
    kind, m, limits, losses = terms.kind, terms.m, terms.limits, terms.losses
    total, squares, first, largest, next_largest = sums
    others = next_largest if l == first else largest
    g = scores[terms.rows[k]] - scores[terms.rows[l]]
    if k < m and l < m:
        return two_positives(Line(g, eta, variables[k], variables[l], limits[k], limits[l]), losses)
    if k >= m and l >= m:
        line = Line(-g, eta, variables[k], variables[l], limits[k], limits[l])
        if kind == QUADRATIC:
            return quadratic_two_thresholds(line, losses, squares)
        if kind == HINGE:
            return hinge_two_thresholds(line, losses, others)
        return capped_two_thresholds(line, total)
    if k >= m:
        g, k, l = -g, l, k  # noqa: E741
    line = Line(g, eta, variables[k], variables[l], limits[k], limits[l])
    if kind == QUADRATIC:
        return quadratic_mixed(line, losses, squares)
    if kind == HINGE:
        return hinge_mixed(line, losses, others)
    return capped_mixed(line, losses, total, others if kind == CAPPED else -np.inf)
