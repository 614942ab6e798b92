"""Bases of the estimators whose threshold is made of a share τ of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toprank.checks import require_positive, require_share
from toprank.estimators._base import KernelClassifier, TopClassifier
from toprank.exceptions import InputError
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, Threshold, TopMean

_SMALLEST_TAU = 1e-12
_LARGEST_LOSS = 1e50


@dataclass(eq=False, repr=False)
class ShareClassifier(TopClassifier):
    """With a share τ."""

    tau: float = 0.05

    def _check_parameters(self) -> None:
        require_share("tau", self.tau)
        super()._check_parameters()


class QuantileClassifier(ShareClassifier):
    """With the true quantile, and a loss of false positives."""

    false_positives = True

    def _threshold(self) -> Threshold:
        return Quantile(float(self.tau))


@dataclass(eq=False, repr=False)
class TopMeanClassifier(ShareClassifier, KernelClassifier):
    """With the mean of a share τ of the highest scores."""

    def _threshold(self) -> Threshold:
        return TopMean(share=float(self.tau))


@dataclass(eq=False, repr=False)
class SurrogateQuantileClassifier(ShareClassifier, KernelClassifier):
    """With a quantile of a share τ and a scaling β, smoothed by the surrogate."""

    beta: float = 0.1

    def _check_parameters(self) -> None:
        require_share("tau", self.tau)
        require_positive("beta", self.beta, "use a value such as 0.1")
        super()._check_parameters()
        if self.tau < _SMALLEST_TAU:
            raise InputError.of(
                "tau", self.tau, "must be at least {t:.0e}", "use a share such as 0.05", t=_SMALLEST_TAU
            )
        surrogate = get_surrogate(self.surrogate)
        at_zero = -surrogate.inverse(np.array(float(self.tau))) / float(self.beta)
        with np.errstate(over="ignore"):
            loss = float(surrogate.value(at_zero))
        if not loss < _LARGEST_LOSS:
            raise InputError.saying(
                "with {beta=}, {tau=} and {surrogate=} even w = 0 has a loss of {loss:.0e}; use a larger beta, such as "
                "1.0",
                beta=self.beta,
                tau=self.tau,
                surrogate=self.surrogate,
                loss=loss,
            )

    def _threshold(self) -> Threshold:
        return SurrogateQuantile(float(self.tau), float(self.beta), get_surrogate(self.surrogate))
