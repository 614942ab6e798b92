r"""The top family restricted to a working set of rows: the problem, its iterates and its linear systems.

The restricted problem. With g the sum of the rows that are known to be above the threshold, weighted by their caps, and
k₀ = 1 − (their caps), the threshold is t = g·w + k₀ ν + Σ cⱼ ξⱼ with ξⱼ ≥ sⱼ − ν, ξⱼ ≥ 0 for the rows in play; for the
plain maximum it is t = ν ≥ sⱼ. Multipliers: u of the positives, b of the threshold rows, S of the threshold.

Optimality, with y = (u; b), the extended rows B̂ of `WorkingRows`, ŵ = (w, t, ν) and ĝ = (g, −1, k₀):

.. math::

    (\alpha w, 0, 0) + S \hat g - \hat B^\top y = 0, \qquad
    \hat g \cdot \hat w + \sum_j c_j \xi_j = 0, \\
    -\hat B \hat w = (\ell^*)'(y) - p + r, \qquad y\,p = \mu, \qquad (\bar y - y)\, r = \mu,

where (ℓ*)' acts on the positives, p is the slack of y ≥ 0 and r = ξ that of the upper bound ȳ: the largest slope for a
positive, cⱼ S for a threshold row. Logistic and exponential losses need no bounds: their conjugate is its own barrier.
Their multiplier is kept as the gap z with u = a ℓ'(z), which has no domain to leave and loses no digits at its ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.formulations.certificates import dual_value
from toprank.formulations.surrogates import Surrogate
from toprank.formulations.thresholds import top_mean, within_caps
from toprank.matrices.working_rows import WorkingRows
from toprank.solvers.centring import centre_positives, centre_threshold

Solve = Callable[[Floats, Floats, float], tuple[Floats, float, Floats, Floats]]
_LEAST = 1e-100
# Part of the distance to the end of its domain that a Newton step may leave of a multiplier that is its own barrier.
_LEFT = 0.01
# Rounds of scaling; each halves the logarithm of what is left.
_EQUILIBRATIONS = 5
# A multiplier is behind its gap if it is smaller than the slope of the loss there by a factor of e to this power.
_BEHIND = 5.0


def _column(number: int) -> Any:
    """An attribute that is a row of `State.columns`."""
    return property(lambda state: state.columns[number])


@dataclass
class State:
    """An iterate: (w, t, ν), S, and for each row the multiplier, its slack, the room above it and that slack."""

    extended: Floats
    S: float
    columns: Floats
    """Shape (4, n): y, p, room and r, of which those that a row does not need do not change; without any upper bound
    (2, n), room and r are left out."""
    gaps: Floats = field(default_factory=lambda: np.zeros(0))
    """Where the conjugate is its own barrier, the gaps z at which the loss has the slopes y of the positives."""

    y, p, room, r = map(_column, range(4))
    """Multipliers, their slacks, the room between them and their upper bounds, and the slacks of that."""

    def moved(self, step: float, direction: State) -> State:
        """The iterate after a step; rounding does not take a multiplier or slack to zero."""
        columns = step * direction.columns
        columns += self.columns
        np.maximum(columns, _LEAST, out=columns)
        return State(self.extended + step * direction.extended, self.S + step * direction.S, columns)

    def is_finite(self) -> bool:
        """Whether no number has overflowed."""
        return bool(np.isfinite(self.S + self.extended.sum() + self.columns.sum()))

    def rows(self, kept: Mask) -> State:
        """The iterate of the rows under a mask."""
        return replace(self, columns=self.columns[:, kept])


@dataclass
class Restricted:
    """The problem on a working set.

    `share` are the weights of the positives in it, `caps` those of the threshold rows in play (None for the plain
    maximum), `g` and `k0` describe the rows above; `positives` and `threshold_rows` number the rows, in rising order,
    among the positives and the threshold rows of the whole problem, and `above` the rows above among the latter.
    """

    rows: WorkingRows
    alpha: float
    surrogate: Surrogate
    share: Floats
    caps: Floats | None
    g: Floats
    k0: float
    positives: Rows
    threshold_rows: Rows
    above: Rows
    refine: bool = False

    def __post_init__(self) -> None:
        m, n = self.rows.n_positive, self.rows.n
        self.m, self.n = m, n
        self.g_extended = np.concatenate([self.g, [-1.0, self.k0]])
        self.has_barrier = self.surrogate.is_own_barrier
        bounded = np.isfinite(self.surrogate.max_slope) and not self.has_barrier
        # rows whose multiplier is kept positive, and rows with an upper bound `fixed` + `per_S` · S
        self.lower = slice(m if self.has_barrier else 0, n)
        self.upper = slice(0 if bounded else m, n if self.caps is not None else m)
        self.fixed, self.per_S = np.zeros(n), np.zeros(n)
        if bounded:
            self.fixed[:m] = self.share * self.surrogate.max_slope
        if self.caps is not None:
            self.per_S[m:] = self.caps
        n_upper = max(0, int(self.upper.stop - self.upper.start))
        self.has_upper, self.n_columns = n_upper > 0, 4 if n_upper > 0 else 2
        self._pairs = [(0, self.lower), (2, self.upper)][: self.n_columns // 2]
        self.n_products = int(self.lower.stop - self.lower.start) + n_upper
        if not self.has_barrier:  # the curvature of a piecewise quadratic conjugate is the same everywhere
            self.curvature = np.zeros(n)
            self.curvature[:m] = self.surrogate.conjugate_curvature(self.share) / self.share

    def threshold(self, scores: Floats, w: Floats) -> float:
        """The threshold of the restricted problem, from the scores of its threshold rows."""
        if self.caps is None:
            return float(scores.max())
        return float(self.g @ w + self.k0 * top_mean(scores, self.caps / self.k0)[0])

    def bounds(self, state: State, products: Floats, squared_norm: float) -> tuple[float, float]:
        """Primal and dual value; `products` is B w and `squared_norm` is ‖Bᵀy − S g‖²."""
        w, u = state.extended[:-2], state.y[: self.m]
        t = self.threshold(-products[self.m :], w)
        loss = self.share @ self.surrogate.value(t - products[: self.m])
        primal = 0.5 * self.alpha * float(w @ w) + float(loss)
        if self.has_barrier:
            conjugate = self.share @ self.surrogate.conjugate(u / self.share)
            return primal, float(-squared_norm / (2 * self.alpha) - conjugate)
        return primal, dual_value(self.surrogate, self.share, u, squared_norm, self.alpha)[0]

    def feasible(self, state: State) -> tuple[Floats, Floats]:
        """An exactly feasible dual point near the iterate: u of the positives, and p of the threshold rows in play."""
        b = state.y[self.m :]
        p = b * (self.k0 / b.sum())
        return state.y[: self.m], p if self.caps is None else within_caps(p, self.caps, self.k0)

    def lower_bound(self, state: State) -> float:
        """D at an exactly feasible point near the iterate: a bound for the whole problem too."""
        u, p = self.feasible(state)
        S = float(u.sum())
        v = self.rows.combine(np.concatenate([u, S * p])) - S * self.g
        with np.errstate(over="ignore"):  # a point that went astray has no bound
            squared_norm = float(v @ v)
        return dual_value(self.surrogate, self.share, u, squared_norm, self.alpha)[0]

    def conjugate_model(self, state: State) -> tuple[Floats, Floats]:
        """Slope and curvature of Σ a ℓ*(u / a) in the multipliers, zero for those of threshold rows."""
        m, share, surrogate = self.m, self.share, self.surrogate
        slope = np.zeros(self.n)
        if not self.has_barrier:
            slope[:m] = surrogate.conjugate_derivative(state.y[:m] / share)
            return slope, self.curvature
        slope[:m], curvature = state.gaps, np.zeros(self.n)
        curvature[:m] = 1 / np.maximum(share * surrogate.curvature(state.gaps), _LEAST)
        return slope, curvature

    def moved(self, state: State, step: float, direction: State, z: Floats, mu: float) -> State:
        """The iterate after a step, which ends at the gaps t − s⁺ = z of the positives.

        Newton's equation of a multiplier that is its own barrier is linear in u, but log u may have far to go. If it
        kept the step inside the domain, one outlier would hold up all rows. Instead, a multiplier that would leave
        its domain takes the value that the loss has at its gap, if that lies further in its direction. A vanished one
        that is far behind its gap comes back as μ at most, as with other losses, since growing from nothing takes long.
        """
        following = state.moved(step, direction)
        if not self.has_barrier:
            return following
        m, surrogate = self.m, self.surrogate
        before, after = state.y[:m] / self.share, following.y[:m] / self.share
        low, high = after < _LEFT * before, surrogate.max_slope - after < _LEFT * (surrogate.max_slope - before)
        lower = np.minimum(z, surrogate.conjugate_derivative(_LEFT * before))
        following.gaps = np.where(low, lower, np.maximum(z, state.gaps))
        inside = ~(low | high)
        following.gaps[inside] = surrogate.conjugate_derivative(after[inside])
        back = np.minimum(z, surrogate.conjugate_derivative(np.minimum(mu / self.share, 0.5 * surrogate.max_slope)))
        following.gaps = np.where(back - following.gaps > _BEHIND, back, following.gaps)
        following.y[:m] = np.maximum(self.share * surrogate.derivative(following.gaps), _LEAST)
        return following

    def mean_product(self, state: State) -> float:
        """The barrier parameter μ of an iterate: the mean of its complementarity products."""
        low, up = self.lower, self.upper
        total = float(state.y[low] @ state.p[low])
        if self.has_upper:
            total += float(state.room[up] @ state.r[up])
        return total / self.n_products

    def mean_product_after(self, state: State, step: float, direction: State) -> float:
        """The same after a step, by the sums of its terms."""
        pairs = [(state.columns[k : k + 2, rows], direction.columns[k : k + 2, rows]) for k, rows in self._pairs]
        linear = sum(float(values[0] @ changes[1] + values[1] @ changes[0]) for values, changes in pairs)
        square = sum(float(changes[0] @ changes[1]) for _, changes in pairs)
        total = self.n_products * self.mean_product(state) + step * (linear + step * square)
        return max(total, 0.0) / self.n_products

    def centred(self, w: Floats, mu: float) -> State:
        """An iterate at w with all complementarity products equal to μ; the first step balances the sums of it."""
        products = self.rows.products(w)
        scores = -products[self.m :]
        gaps = self.threshold(scores, w) - products[: self.m]
        positives = centre_positives(self.surrogate, self.share, gaps, mu)
        S = float(positives[0].sum())
        nu, rows = centre_threshold(scores, self.caps, self.k0, S, mu)
        t = nu if self.caps is None else self.k0 * nu + float(self.g @ w) + float(self.caps @ rows[3])
        return State(np.concatenate([w, [t, nu]]), S, self.columns(positives, rows), gaps)

    def columns(self, positives: Iterable[Floats], threshold_rows: Iterable[Floats]) -> Floats:
        """The columns of an iterate, of (y, p, room, r) of the positives and of the threshold rows."""
        pairs = list(zip(positives, threshold_rows, strict=True))[: self.n_columns]
        return np.array([np.concatenate(pair) for pair in pairs])

    def shrink(self, state: State) -> State | None:
        """Drop rows of vanishing multiplier and move rows at their cap into g; None if few would go.

        In place, so that nobody keeps the rows that went in memory; returns the iterate of those that stay.
        """
        m, S = self.m, state.S
        u, b = state.y[:m], state.y[m:]
        kept = np.full(self.n, True)
        if not self.has_barrier:
            kept[:m] = u > 1e-3 * u.mean()
        kept[m:] = b > 1e-3 * self.k0 * S / (self.n - m)
        g, k0, caps, above = self.g, self.k0, None, self.above
        if self.caps is not None:
            full = state.room[m:] < 1e-3 * self.caps * S
            kept[m:] &= ~full
            at_cap = np.zeros(self.n)
            at_cap[m:][full] = self.caps[full]
            g, k0, caps = g - self.rows.combine(at_cap), k0 - float(self.caps[full].sum()), self.caps[kept[m:]]
            above = np.concatenate([above, self.threshold_rows[full]])
            if k0 <= 0 or caps.sum() <= 1.05 * k0:
                return None
        if kept.sum() > 0.6 * self.n or kept[m:].sum() < 5 or not kept[:m].any():
            return None
        self.rows, self.share, self.caps = self.rows.subset(kept), self.share[kept[:m]], caps
        self.g, self.k0, self.above = g, k0, above
        self.positives, self.threshold_rows = self.positives[kept[:m]], self.threshold_rows[kept[m:]]
        self.__post_init__()
        return state.rows(kept)

    def factorised(self, weights: Floats, h: Floats) -> Solve:
        """A function (dual residual, row residual, threshold residual) -> (dŵ, dS, dy, B̂ dŵ)."""
        return (self._in_row_space if self.rows.in_row_space else self._in_feature_space)(weights, h)

    def _in_feature_space(self, weights: Floats, h: Floats) -> Solve:
        """Eliminate y: what remains is a system in ŵ, bordered by S."""
        rows, alpha = self.rows, self.alpha
        factor = rows.feature_system(weights, alpha)
        column, weighted, own = self.g_extended, weights * h if self.has_upper else h, 0.0
        if self.has_upper:
            column, own = column - rows.apply_transposed(weighted), float(weighted @ h - self.per_S @ h)
        solved = factor.solve(column)
        pivot = own - float(column @ solved)

        def refined(right: Floats) -> Floats:
            z = factor.solve(right)
            if self.refine:
                image = rows.apply_transposed(weights * rows.apply(z))
                image[:-2] += alpha * z[:-2]
                z += factor.solve(right - image)
            return z

        def solve(dual: Floats, primal: Floats, threshold: float) -> tuple[Floats, float, Floats, Floats]:
            z = refined(rows.apply_transposed(weights * primal) - dual)
            dS = (threshold - float(weighted @ primal) - float(column @ z)) / pivot
            step = z - solved * dS
            image = rows.apply(step)
            dy = primal - image
            if self.has_upper:
                dy += h * dS
            dy *= weights
            return step, dS, dy, image

        return solve

    def _in_row_space(self, weights: Floats, h: Floats) -> Solve:
        """Eliminate w: what remains is a system in y, bordered by (t, ν, S)."""
        rows, alpha, g = self.rows, self.alpha, self.g
        inverse = rows.row_system(weights, alpha, 1e-3)
        borders, solved, Q = self._borders(h, inverse)
        scale = _equilibration(Q)
        Q *= scale * scale[:, None]

        def solve(dual: Floats, primal: Floats, threshold: float) -> tuple[Floats, float, Floats, Floats]:
            z = inverse((primal + rows.products(dual[:-2]) / alpha)[:, None])[:, 0]
            right = borders.T @ z
            right[:2] -= dual[-2:]
            right[2] += threshold + float(g @ dual[:-2]) / alpha
            q = scale * np.linalg.lstsq(Q, scale * right, rcond=None)[0]
            dy, dS = z - solved @ q, float(q[2])
            dw = (rows.combine(dy) - g * dS - dual[:-2]) / alpha
            step = np.concatenate([dw, q[:2]])
            return step, dS, dy, rows.apply(step)

        return solve

    def _borders(self, h: Floats, inverse: Callable[[Floats], Floats]) -> tuple[Floats, Floats, Floats]:
        """The columns of (t, ν, S) in the system of y, what solves it for them, and the Schur complement."""
        borders = np.zeros((self.n, 3))
        borders[: self.m, 0], borders[self.m :, 1] = -1.0, 1.0
        borders[:, 2] = -(h + self.rows.products(self.g) / self.alpha)
        solved = np.zeros_like(borders)
        used = 2 if self.caps is None else 3
        solved[:, :used] = inverse(borders[:, :used])
        Q = borders.T @ solved
        Q[2, 2] -= float(self.per_S @ h) + float(self.g @ self.g) / self.alpha
        Q[2, :2] += self.g_extended[-2:]
        Q[:2, 2] += self.g_extended[-2:]
        return borders, solved, Q


def _equilibration(Q: Floats) -> Floats:
    """Scales of rows and columns of a symmetric matrix that bring the largest entry of each to about one (Ruiz).

    The entries of t, ν and S differ by as many powers of ten as the penalty and the features do; without a common scale
    the least-squares solution would take the small ones for zero.
    """
    scale = np.ones(len(Q))
    for _ in range(_EQUILIBRATIONS):
        largest = np.abs(Q * scale * scale[:, None]).max(axis=1)
        scale /= np.sqrt(np.where(largest > 0, largest, 1.0))
    return scale
