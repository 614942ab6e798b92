"""Fit a case and judge it."""

import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import toprank
from hunt.problems import Case, draw
from hunt.references import Objective, coefficients_of, objective_of, point_of_reference
from toprank import DegenerateSolutionWarning, WMWRanker
from toprank.solvers.registry import solver_names

SECONDS_A_FIT = 60
SINS = ("false certificate", "false optimum", "wrong objective", "silent collapse", "raw error", "raw warning", "slow")
# What rounding may explain, as a share of the objective.
ROUNDING = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-4}
# Of the objective at w = 0: below that the digits of an objective near zero are noise.
NOISE = 1e-12
# A model that gains less than this over w = 0 ranks by rounding.
COLLAPSED = 1e-15
_PACKAGE = str(Path(toprank.__file__).parent)


@dataclass
class Verdict:
    """What became of a case."""

    seed: int
    text: str
    like: tuple
    outcome: str = "converged"
    seconds: float = 0.0
    sins: dict[str, str] = field(default_factory=dict)


class Stuck(BaseException):
    """A fit takes too long."""


def judge(seed: int, second_share: float = 0.3) -> Verdict:
    """Draw the case of a seed, fit it, and compare it with what others find."""
    case = draw(seed)
    verdict = Verdict(seed, str(case), case.like)
    fitted, warned = _fit(case, clone(case.estimator), verdict)
    if fitted is None:
        return verdict
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objective = objective_of(case, fitted)
        zero = np.zeros(objective.products.shape[1])
        reference = point_of_reference(case, objective)
        points = [zero, coefficients_of(case, fitted)] + ([] if reference is None else [reference])
        if reference is None or seed % 100 < 100 * second_share:
            points += _second_solver(case, objective)
        values = np.array([objective(point) for point in points])
    _compare(case, fitted, warned, values, verdict)
    return verdict


def _fit(case: Case, estimator: Any, verdict: Verdict) -> tuple[Any, list[type]]:
    """The fitted estimator, or None if it raised, and the kinds of warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            verdict.seconds = _seconds(lambda: estimator.fit(case.X, case.y, sample_weight=case.weights))
        except Stuck:
            verdict.outcome, verdict.sins["slow"] = "stuck", f"cut off after {SECONDS_A_FIT} s"
            return None, []
        except Exception as error:  # any kind is the find of a hunt
            _judge_error(error, verdict)
            return None, []
    kinds = [warning.category for warning in caught]
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning | DegenerateSolutionWarning | UserWarning):
            verdict.sins["raw warning"] = f"{warning.category.__name__}: {warning.message}"
    if DegenerateSolutionWarning in kinds:
        verdict.outcome = "collapsed, with a warning"
    elif ConvergenceWarning in kinds:
        verdict.outcome = "not converged, with a warning"
    return estimator, kinds


def _judge_error(error: Exception, verdict: Verdict) -> None:
    """A refusal is a ValueError that the library raises itself."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    verdict.outcome = f"refused: {str(error)[:70]}"
    if not isinstance(error, ValueError) or not last.filename.startswith(_PACKAGE):
        verdict.outcome = "raw error"
        verdict.sins["raw error"] = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"


def _seconds(fit: Any) -> float:
    """The time of a fit; the second one if the first may have compiled."""
    with _limited(SECONDS_A_FIT):
        for _ in range(2):
            start = time.perf_counter()
            fit()
            seconds = time.perf_counter() - start
            if seconds < 0.5:
                break
    return seconds


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Stuck

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _second_solver(case: Case, objective: Objective) -> list[np.ndarray]:
    """Points that other solvers of the library find."""
    estimator = case.estimator
    if isinstance(estimator, WMWRanker):
        others = [name for name in ("newton-cg", "ncg") if name != estimator.solver]
    else:
        fitting = solver_names(estimator._formulation(), [one.matrix for one in estimator._back_ends()])
        others = [name for name in fitting if name in ("newton", "pairs", "low-rank")]
    points = []
    for name in others:
        try:
            with _limited(5):
                other = clone(estimator).set_params(solver=name, tol=1e-6)
                points.append(coefficients_of(case, other.fit(case.X, case.y, sample_weight=case.weights)))
        except (Stuck, ValueError, ArithmeticError):
            continue  # it is judged where it is the first
    return [point for point in points if len(point) == objective.products.shape[1]]


def _compare(case: Case, fitted: Any, warned: list[type], values: np.ndarray, verdict: Verdict) -> None:
    at_zero, own, best = values[0], values[1], float(np.nanmin(values))
    rounding = ROUNDING[case.X.dtype]
    slack = rounding * best + NOISE * at_zero
    lower = fitted.objective_ - fitted.suboptimality_ if isinstance(fitted, WMWRanker) else fitted.dual_objective_
    if lower > best + slack:
        verdict.sins["false certificate"] = f"lower bound {lower:.9g} above {best:.9g}"
    if not abs(own - fitted.objective_) <= 1e3 * rounding * abs(own) + NOISE * at_zero:
        verdict.sins["wrong objective"] = f"stated {fitted.objective_:.9g}, true {own:.9g}"
    silent = ConvergenceWarning not in warned and DegenerateSolutionWarning not in warned
    if silent and fitted.objective_ * (1 - case.estimator.tol) > best + slack:
        verdict.sins["false optimum"] = f"{fitted.objective_:.9g}, another has {best:.9g}, tol {case.estimator.tol:g}"
    collapsed = own >= at_zero * (1 - COLLAPSED)
    if collapsed and DegenerateSolutionWarning not in warned and not isinstance(fitted, WMWRanker):
        verdict.sins["silent collapse"] = f"objective {own:.17g}, at zero {at_zero:.17g}"
