"""Bases of the estimators with a budget, and of those whose threshold is made of a share τ of the rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from toprank.checks import require_choice, require_positive, require_share
from toprank.estimators._base import TopClassifier
from toprank.estimators._kernels import KernelClassifier
from toprank.estimators.back_ends import BackEnd, Kept
from toprank.estimators.budget_threshold import out_of_fold_threshold, smallest_threshold
from toprank.exceptions import InputError
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, Threshold, TopMean
from toprank.solvers.interruption import is_one_of_several
from toprank.solvers.problem import Solution

_SMALLEST_TAU = 1e-12
_LARGEST_LOSS = 1e50


@dataclass(eq=False, repr=False)
class BudgetClassifier(TopClassifier):
    """With a budget: a share of the rows that the threshold looks at, to be spent by `predict`."""

    threshold: str = field(default="budget", kw_only=True)

    @abstractmethod
    def _budget(self, total: float) -> float:
        """The budget as a share of the rows that it counts, which weigh so much in all."""

    def _check_parameters(self) -> None:
        require_choice("threshold", self.threshold, ("budget", "trained"))
        super()._check_parameters()

    def _threshold_of_predict(self, trained: float, back_end: BackEnd, solution: Solution, kept: Kept) -> float:
        """One that spends the budget on rows which were not learned from, or that of the formulation."""
        self.trained_threshold_, self.threshold_from_ = trained, "trained"
        if self.threshold == "trained" or not solution.coef.any():
            return trained
        problem = back_end.problem
        share = self._budget(float(problem.threshold_weights.sum()))
        found, at_once = None, solution.interrupted
        try:
            found = None if at_once else out_of_fold_threshold(back_end, solution, kept, share)
        except KeyboardInterrupt:
            if is_one_of_several():
                raise
            self.interrupted_ = at_once = True
        if at_once:
            scores = kept.scores[problem.threshold_rows].astype(np.float64)
            found = smallest_threshold(scores, problem.threshold_weights, share)
        if found is None:
            return trained
        self.threshold_from_ = "training scores" if at_once else "out-of-fold scores"
        return found + kept.rounding


@dataclass(eq=False, repr=False)
class ShareClassifier(BudgetClassifier):
    """With a share τ."""

    tau: float = 0.05

    def _budget(self, total: float) -> float:
        return float(self.tau)

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
