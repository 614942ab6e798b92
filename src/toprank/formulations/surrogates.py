r"""Surrogates of the 0-1 loss, convex and non-decreasing, with :math:`\ell(0) = 1`.

===========  ==========================================  ===================================  =============
name         :math:`\ell(z)`                             :math:`\ell^*(y)`                    domain of y
===========  ==========================================  ===================================  =============
quadratic    :math:`(1 + z)_+^2`                         :math:`-y + y^2/4`                   y ≥ 0
hinge        :math:`(1 + z)_+`                           :math:`-y`                           0 ≤ y ≤ 1
huber        :math:`(3/2 + z)_+^2 / 2` up to z = -1/2,   :math:`-3y/2 + y^2/2`                0 ≤ y ≤ 1
             then :math:`1 + z`
logistic     :math:`\log_2(1 + e^z)`                     :math:`-H(y \log 2) / \log 2`        0 ≤ y ≤ 1/log 2
exponential  :math:`e^z`                                 :math:`y \log y - y`                 y ≥ 0
===========  ==========================================  ===================================  =============

H is the binary entropy in nats. At a kink the derivative is the one from the left.

A surrogate also declares what solvers ask of it, as attributes of `Surrogate`; a new one is a class here and an entry
in `SURROGATES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, rel_entr, xlog1py, xlogy

from toprank.arrays import Floats, numbers_of
from toprank.exceptions import InputError

_LOG2 = float(np.log(2.0))
# Gaps between scores beyond this are not considered: features are at most 1e15.
LARGEST_GAP = 1e17
_EPS, _TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)
# Numbers below this have squares with fewer digits.
_SMALLEST_SQUARED = float(np.sqrt(_TINY / _EPS))


class SlopeSums(NamedTuple):
    """Sums over rows with shares a and y = a · slope: Σy, the steepest slope, and Σ y²/a."""

    total: float
    steepest: float
    square: float

    @classmethod
    def of(cls, y: Floats, share: Floats) -> SlopeSums:
        """Those of some y."""
        slopes = y / share
        with np.errstate(over="ignore"):  # the exponential loss has slopes whose squares are beyond the range
            return cls(*numbers_of((np.sum, y), (np.max, slopes), (np.dot, y, slopes)))


class MeanLoss(NamedTuple):
    """A mean loss Σ share · ℓ(z)."""

    log_mean: float
    unit: Floats
    """Its derivatives share · ℓ'(z) over the largest of them."""
    log_largest: float
    """The logarithm of that one."""
    sums: SlopeSums
    """Sums of `unit`."""
    others: list[float]
    """More numbers that were asked for."""


class Surrogate(ABC):
    """A loss, its derivatives, its inverse, and its convex conjugate, all elementwise; and what it is, for solvers."""

    name: str
    formula: str
    """What it is, for docstrings."""
    max_slope: float
    """Upper end of the domain of the conjugate."""
    is_own_barrier: ClassVar[bool] = True
    """Whether the conjugate becomes infinitely steep at the ends of its domain, so that no bounds are needed there."""
    in_log_domain: ClassVar[bool] = False
    """Whether the loss is so large at ordinary gaps that solvers keep its logarithm."""
    is_piecewise_quadratic: ClassVar[bool] = False
    """Whether it has `pieces`."""

    @property
    def is_smooth(self) -> bool:
        """Whether it has a derivative everywhere."""
        return True

    @property
    def is_parabola(self) -> bool:
        """Whether it is zero, then a parabola without end."""
        return False

    @property
    def pieces(self) -> PiecewiseQuadratic:
        """The surrogate itself, for what is made for piecewise quadratic ones only."""
        raise ValueError(f"the surrogate {self.name!r} is not piecewise quadratic")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def negligible_share(self) -> float:
        """A row of at most this part of the weight changes no mean loss of 1 at double precision, whatever its gap."""
        return max(_EPS / float(self.value(np.array(LARGEST_GAP))), _TINY / _EPS)

    @abstractmethod
    def value(self, z: Floats) -> Floats:
        """Loss."""

    @abstractmethod
    def derivative(self, z: Floats) -> Floats:
        """First derivative, in [0, max_slope]."""

    @abstractmethod
    def curvature(self, z: Floats) -> Floats:
        """Second derivative, or an element of the generalised one."""

    @abstractmethod
    def inverse(self, value: Floats) -> Floats:
        """The largest z with the given loss, for values > 0."""

    @abstractmethod
    def conjugate(self, y: Floats) -> Floats:
        """Convex conjugate at points of its domain."""

    @abstractmethod
    def conjugate_derivative(self, y: Floats) -> Floats:
        """Derivative of the conjugate inside its domain."""

    @abstractmethod
    def conjugate_curvature(self, y: Floats) -> Floats:
        """Second derivative of the conjugate inside its domain."""

    def conjugate_along(self, y: Floats, slopes: Floats) -> Callable[[float], float]:
        """The function Σ y · ℓ*'(scale · slopes) of a scale."""
        return lambda scale: float(y @ self.conjugate_derivative(np.maximum(scale * slopes, _TINY)))

    def mean_loss(self, z: Floats, share: Floats, *more: tuple[Any, ...]) -> MeanLoss:
        """The mean loss Σ share · ℓ(z) with its derivatives; `more` for `numbers_of` is asked for at the same time."""
        slope = self.derivative(z)
        slopes = share * slope
        mean, largest, total, steepest, square, *others = numbers_of(
            (np.dot, share, self.value(z)),
            (np.max, slopes),
            (np.sum, slopes),
            (np.max, slope),
            (np.dot, slopes, slope),
            *more,
        )
        if not largest > 0:
            return MeanLoss(log_or_minus_infinity(mean), slopes, -np.inf, SlopeSums(total, steepest, square), others)
        if largest < _SMALLEST_SQUARED:
            [square] = numbers_of((np.dot, slopes / largest, slope / largest))
        else:
            square /= largest**2
        sums = SlopeSums(total / largest, steepest / largest, square)
        return MeanLoss(log_or_minus_infinity(mean), slopes / largest, float(np.log(largest)), sums, others)

    def quantile(self, x: Floats, share: Floats, tau: float) -> float | None:
        """The t with mean loss Σ share · ℓ(x − t) = τ, where it has a closed form."""
        return None

    def quantile_conjugate(self, p: Floats, share: Floats, tau: float) -> float:
        """Conjugate of that t as a function of x, at a p of the simplex, where it has a closed form."""
        raise ValueError(f"the quantile of the surrogate {self.name!r} has no conjugate in closed form")


@dataclass(frozen=True)
class PiecewiseQuadratic(Surrogate):
    r"""Zero, then a parabola, then a line: :math:`\ell^*(y) = -\text{shift}\, y + \frac12 \text{width}\, y^2`.

    With x = z + shift the parabola is x² / (2 width) on 0 ≤ x ≤ width · max_slope; a width of zero is the hinge.
    """

    name: str
    shift: float
    width: float
    max_slope: float
    formula: str = ""
    is_own_barrier: ClassVar[bool] = False
    is_piecewise_quadratic: ClassVar[bool] = True

    @property
    def is_smooth(self) -> bool:
        """Whether there is a parabola between zero and the line."""
        return self.width > 0

    @property
    def is_parabola(self) -> bool:
        """Whether there is no line."""
        return self.max_slope == np.inf

    @property
    def pieces(self) -> PiecewiseQuadratic:
        """Itself."""
        return self

    def smoothed(self, width: float) -> PiecewiseQuadratic:
        """The same line after a parabola of another width: the hinge with its kink rounded off."""
        shift = self.shift + 0.5 * (width - self.width) * self.max_slope
        return replace(self, shift=shift, width=width)

    def value(self, z: Floats) -> Floats:
        """Loss, as slope · x − width · slope² / 2."""
        x = np.maximum(z + self.shift, 0.0)
        slope = self._slope(x)
        return slope * (x - 0.5 * self.width * slope)

    def derivative(self, z: Floats) -> Floats:
        """Slope."""
        return self._slope(np.maximum(z + self.shift, 0.0))

    def _slope(self, x: Floats) -> Floats:
        if self.width == 0:
            return np.where(x > 0, self.max_slope, 0.0)
        return np.minimum(x / self.width, self.max_slope)

    def curvature(self, z: Floats) -> Floats:
        """One over the width on the parabola, zero elsewhere."""
        if self.width == 0:
            return np.zeros_like(z)
        x = z + self.shift
        return np.where((x > 0) & (x <= self.width * self.max_slope), 1 / self.width, 0.0)

    def inverse(self, value: Floats) -> Floats:
        """On the parabola x = √(2 width · value), on the line x = value / max_slope + width · max_slope / 2."""
        if not np.isfinite(self.max_slope):
            return np.sqrt(2 * self.width * value) - self.shift
        on_line = value / self.max_slope + 0.5 * self.width * self.max_slope
        on_parabola = np.sqrt(2 * self.width * value)
        return np.where(on_line >= self.width * self.max_slope, on_line, on_parabola) - self.shift

    def conjugate(self, y: Floats) -> Floats:
        """A parabola."""
        return y * (0.5 * self.width * y - self.shift)

    def conjugate_derivative(self, y: Floats) -> Floats:
        """A line."""
        return self.width * y - self.shift

    def conjugate_curvature(self, y: Floats) -> Floats:
        """The width."""
        return np.full_like(y, self.width)

    def quantile_conjugate(self, p: Floats, share: Floats, tau: float) -> float:
        """For the hinge, τ · max(p / share) / max_slope − shift."""
        if self.is_smooth:
            return super().quantile_conjugate(p, share, tau)
        return tau * float((p / share).max()) / self.max_slope - self.shift


class Logistic(Surrogate):
    """Logistic loss scaled to 1 at zero."""

    name = "logistic"
    formula = "``log2(1 + exp(z))``"
    max_slope = 1 / _LOG2

    def value(self, z: Floats) -> Floats:
        """Loss."""
        return np.logaddexp(0.0, z) / _LOG2

    def derivative(self, z: Floats) -> Floats:
        """Logistic function over log 2."""
        slope: Floats = expit(z) / _LOG2
        return slope

    def curvature(self, z: Floats) -> Floats:
        """Derivative of the logistic function over log 2."""
        curvature: Floats = expit(z) * expit(-z) / _LOG2
        return curvature

    def inverse(self, value: Floats) -> Floats:
        """Log of 2^value − 1, without overflow."""
        scaled = _LOG2 * np.asarray(value)
        return scaled + np.log(-np.expm1(-scaled))

    def conjugate(self, y: Floats) -> Floats:
        """Negative binary entropy."""
        q = np.clip(_LOG2 * y, 0.0, 1.0)
        value: Floats = (xlogy(q, q) + xlog1py(1 - q, -q)) / _LOG2
        return value

    def conjugate_derivative(self, y: Floats) -> Floats:
        """Log odds."""
        q = _LOG2 * y
        return np.log(q) - np.log1p(-q)

    def conjugate_curvature(self, y: Floats) -> Floats:
        """Derivative of the log odds."""
        q = _LOG2 * y
        return _LOG2 / (q * (1 - q))


class Exponential(Surrogate):
    """Exponential loss; beyond z = 700 it is the largest number that a float holds, not infinity."""

    name = "exponential"
    formula = "``exp(z)``"
    max_slope = float("inf")
    in_log_domain = True

    def value(self, z: Floats) -> Floats:
        """Loss."""
        return np.exp(np.minimum(z, 700.0))

    derivative = curvature = value

    def inverse(self, value: Floats) -> Floats:
        """Logarithm."""
        return np.log(value)

    def conjugate(self, y: Floats) -> Floats:
        """Negative entropy."""
        value: Floats = xlogy(y, y) - y
        return value

    def conjugate_derivative(self, y: Floats) -> Floats:
        """Logarithm."""
        return np.log(y)

    def conjugate_curvature(self, y: Floats) -> Floats:
        """Reciprocal."""
        return 1 / y

    def conjugate_along(self, y: Floats, slopes: Floats) -> Callable[[float], float]:
        """The logarithm of a product is a sum."""
        total, at_one = numbers_of((np.sum, y), (np.dot, y, np.log(np.maximum(slopes, _TINY))))
        return lambda scale: at_one + total * float(np.log(scale))

    def mean_loss(self, z: Floats, share: Floats, *more: tuple[Any, ...]) -> MeanLoss:
        """By logarithms."""
        logarithms = z + np.log(share)
        highest, largest, *others = numbers_of((np.max, z), (np.max, logarithms), *more)
        unit = np.exp(logarithms - largest)
        log_mean = self._log_mean(z, share, highest)
        return MeanLoss(log_mean, unit, largest, SlopeSums.of(unit, share), others)

    def _log_mean(self, z: Floats, share: Floats, highest: float) -> float:
        """Log-sum-exp."""
        return highest + float(np.log(share @ np.exp(z - highest)))

    def quantile(self, x: Floats, share: Floats, tau: float) -> float:
        """The log-sum-exp of x minus log τ."""
        return self._log_mean(x, share, float(x.max())) - float(np.log(tau))

    def quantile_conjugate(self, p: Floats, share: Floats, tau: float) -> float:
        """Relative entropy plus log τ."""
        return float(rel_entr(p, share).sum()) + float(np.log(tau))


def log_or_minus_infinity(value: float) -> float:
    """The logarithm, also of zero."""
    return float(np.log(value)) if value > 0 else -np.inf


SURROGATES: dict[str, Surrogate] = {
    surrogate.name: surrogate
    for surrogate in (
        PiecewiseQuadratic("quadratic", 1.0, 0.5, float("inf"), "``(1 + z)₊²``"),
        PiecewiseQuadratic("hinge", 1.0, 0.0, 1.0, "``(1 + z)₊``"),
        PiecewiseQuadratic("huber", 1.5, 1.0, 1.0, "the hinge with a rounded corner"),
        Logistic(),
        Exponential(),
    )
}


def get_surrogate(name: str) -> Surrogate:
    """Look a surrogate up by its name."""
    if not (isinstance(name, str) and name in SURROGATES):
        raise InputError.of("surrogate", name, "must be one of {names}", names=", ".join(SURROGATES))
    return SURROGATES[name]
