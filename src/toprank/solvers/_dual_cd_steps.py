r"""Closed forms of Algorithm 3.1: the best step of a pair of dual variables, and its gain.

The dual is, with :math:`w = \sum_i \alpha_i \phi(x_i) - \sum_j \beta_j \phi(x_j)`, scores s and Σα = Σβ = S,

.. math:: -\tfrac12 \|w\|^2 + \sum_i \left( \text{shift}\, \alpha_i - \tfrac12 \text{width}\, \alpha_i^2 / C_i \right)
          + T(\beta), \qquad 0 \le \alpha_i \le C_i\, \text{max\_slope}.

The quadratic loss :math:`(1 + \vartheta z)_+^2` has shift = 1/ϑ, width = 1/(2ϑ²) and no bound, the hinge
:math:`(1 + \vartheta z)_+` has shift = 1/ϑ, width = 0 and max_slope = ϑ. T depends on the threshold:

- mean of the k largest: T = 0 and 0 ≤ β ≤ cS with caps c;
- surrogate quantile, quadratic, weights q: :math:`T = \text{shift} \sum \beta - \tfrac12 \text{width} \sum \beta_j^2 /
  (\delta q_j) - \delta \tau`, best at :math:`\delta = \sqrt{\tfrac12 \text{width} \sum \beta_j^2 / q_j / \tau}`;
- surrogate quantile, hinge: :math:`T = \text{shift} \sum \beta - \delta \tau` with 0 ≤ β ≤ δ q max_slope, best at
  :math:`\delta = \max_j \beta_j / (q_j\, \text{max\_slope})`,

with the shift, width and max_slope of the quantile's own scaling ϑ = β of the formulation.

Every function gets the `Line` of a pair, whose second variable falls where both are of one kind and rises with the
first, an α, where they are not, and returns (Δ, gain). Theorems are those of the paper, with its Δ_lb read as the max
and Δ_ub as the min of their terms throughout.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from toprank.compiled import part


class Losses(NamedTuple):
    """Shift, width and max_slope of the loss, the same of the quantile, and τ."""

    shift: float
    width: float
    max_slope: float
    quantile_shift: float
    quantile_width: float
    quantile_slope: float
    tau: float


class Line(NamedTuple):
    """A pair of variables: x rises by Δ; C, cap or q of each is its limit.

    g is the difference of scores in the direction of the step, by which the objective falls at first, and eta the
    curvature :math:`K_{kk} + K_{ll} - 2 K_{kl}`.
    """

    g: float
    eta: float
    x: float
    y: float
    limit_x: float
    limit_y: float


@part()
def root(slope: float, curvature: float) -> float:
    """Where the derivative −slope − curvature · Δ is zero; for a line, the end that it rises to."""
    if curvature > 0:
        return -slope / curvature
    return 0.0 if slope == 0 else -np.inf if slope > 0 else np.inf


@part()
def clip(value: float, low: float, high: float) -> float:
    """The nearest point of an interval; where rounding has left it empty, no step."""
    return 0.0 if low > high else min(max(value, low), high)


@part()
def gain_of(step: float, slope: float, curvature: float) -> float:
    """Rise of a concave parabola."""
    return -step * (slope + 0.5 * curvature * step)


@part()
def two_positives(line: Any, losses: Any) -> Any:
    """First case of Theorems 3.1, C.1, D.1 and D.2: α_k + Δ, α_l − Δ; g = s_k − s_l."""
    g, eta, alpha_k, alpha_l, C_k, C_l = line
    slope = g + losses.width * (alpha_k / C_k - alpha_l / C_l)
    curvature = eta + losses.width * (1 / C_k + 1 / C_l)
    low = max(-alpha_k, alpha_l - C_l * losses.max_slope)
    high = min(C_k * losses.max_slope - alpha_k, alpha_l)
    step = clip(root(slope, curvature), low, high)
    return step, gain_of(step, slope, curvature)


@part()
def capped_mixed(line: Any, losses: Any, total: float, others: float) -> Any:
    """Second case of Theorems 3.1 and D.1: α_k + Δ, β_l + Δ; g = s_k − s_l.

    `total` is S and `others` the largest β_j / cap_j apart from l, or minus infinity without caps (K = 1). The cap of l
    itself, β_l + Δ ≤ cap_l (S + Δ), binds only if it is below 1.
    """
    g, eta, alpha_k, beta_l, C_k, cap_l = line
    slope = g - losses.shift + losses.width * alpha_k / C_k
    curvature = eta + losses.width / C_k
    low = max(max(-alpha_k, -beta_l), others - total)
    high = C_k * losses.max_slope - alpha_k
    if cap_l < 1:
        high = min(high, max(cap_l * total - beta_l, 0.0) / (1 - cap_l))
    step = clip(root(slope, curvature), min(low, 0.0), high)
    return step, gain_of(step, slope, curvature)


@part()
def capped_two_thresholds(line: Any, total: float) -> Any:
    """Third case of Theorems 3.1 and D.1: β_k + Δ, β_l − Δ; g = s_l − s_k; without caps (K = 1) they are 1."""
    g, eta, beta_k, beta_l, cap_k, cap_l = line
    low, high = -beta_k, beta_l
    if cap_l < 1:
        low = max(low, min(beta_l - cap_l * total, 0.0))
    if cap_k < 1:
        high = min(high, max(cap_k * total - beta_k, 0.0))
    step = clip(root(g, eta), low, high)
    return step, gain_of(step, g, eta)


@part()
def quadratic_mixed(line: Any, losses: Any, squares: float) -> Any:
    """Second case of Theorem C.1: Δ for the present δ, then the best δ; `squares` is Σ β²/q before the step."""
    g, eta, alpha_k, beta_l, C_k, q_l = line
    delta = np.sqrt(0.5 * losses.quantile_width * squares / losses.tau)
    slope = g - losses.shift - losses.quantile_shift + losses.width * alpha_k / C_k
    curvature = eta + losses.width / C_k
    bend = losses.quantile_width / (delta * q_l)
    step = clip(root(slope + bend * beta_l, curvature + bend), max(-alpha_k, -beta_l), np.inf)
    after = squares + step * (2 * beta_l + step) / q_l
    return step, gain_of(step, slope, curvature) - rise_of_root(squares, after, losses)


@part()
def quadratic_two_thresholds(line: Any, losses: Any, squares: float) -> Any:
    """Third case of Theorem C.1, likewise."""
    g, eta, beta_k, beta_l, q_k, q_l = line
    delta = np.sqrt(0.5 * losses.quantile_width * squares / losses.tau)
    factor = losses.quantile_width / delta
    slope = g + factor * (beta_k / q_k - beta_l / q_l)
    step = clip(root(slope, eta + factor * (1 / q_k + 1 / q_l)), -beta_k, beta_l)
    after = squares + step * (2 * beta_k + step) / q_k - step * (2 * beta_l - step) / q_l
    return step, gain_of(step, g, eta) - rise_of_root(squares, after, losses)


@part()
def rise_of_root(before: float, after: float, losses: Any) -> float:
    """Change of 2√(½ width τ Σβ²/q): what the quadratic quantile costs at the best δ."""
    return float(np.sqrt(2 * losses.quantile_width * losses.tau) * (np.sqrt(max(after, 0.0)) - np.sqrt(before)))


@part()
def peak(slope: float, curvature: float, left: float, right: float, falling: float, rising: float) -> float:
    """The maximum of −slope·Δ − ½ curvature·Δ² − h(Δ), h convex: slope −falling, 0 from left to right, then rising."""
    step = root(slope - falling, curvature)
    if step < left:
        return step
    step = root(slope, curvature)
    if step <= right:
        return max(step, left)
    return max(root(slope + rising, curvature), right)


@part()
def hinge_mixed(line: Any, losses: Any, others: float) -> Any:
    """Second case of Theorem D.2; `others` is the largest β_j / q_j apart from l.

    The paper's two possibilities are the pieces left and right of the kink at which β_l takes δ over; the kink is a
    third one.
    """
    g, eta, alpha_k, beta_l, C_k, q_l = line
    slope = g - losses.shift - losses.quantile_shift
    cost = losses.tau / losses.quantile_slope
    step = peak(slope, eta, -np.inf, others * q_l - beta_l, 0.0, cost / q_l)
    step = clip(step, max(-alpha_k, -beta_l), C_k * losses.max_slope - alpha_k)
    dearer = max(others, (beta_l + step) / q_l) - max(others, beta_l / q_l)
    return step, gain_of(step, slope, eta) - cost * dearer


@part()
def hinge_two_thresholds(line: Any, losses: Any, others: float) -> Any:
    """Third case of Theorem D.2; `others` is the largest β_j / q_j apart from k and l."""
    g, eta, beta_k, beta_l, q_k, q_l = line
    cost = losses.tau / losses.quantile_slope
    left, right = beta_l - others * q_l, others * q_k - beta_k
    if left > right:  # δ is set by l, then by k
        left = right = (beta_l * q_k - beta_k * q_l) / (q_k + q_l)
    step = clip(peak(g, eta, left, right, cost / q_l, cost / q_k), -beta_k, beta_l)
    before = max(others, max(beta_k / q_k, beta_l / q_l))
    after = max(others, max((beta_k + step) / q_k, (beta_l - step) / q_l))
    return step, gain_of(step, g, eta) - cost * (after - before)
