"""One fold of a search: all penalties of one setting of the other parameters, each fit started from its neighbour."""

from __future__ import annotations

import inspect
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metadata_routing import _routing_enabled, process_routing
from sklearn.utils.metaestimators import _safe_split

from toprank.decision._labels import Coding
from toprank.decision._rows import row_arguments
from toprank.estimators._base import TopClassifier
from toprank.estimators._kernels import KernelClassifier
from toprank.estimators.back_ends import Features
from toprank.exceptions import DegenerateSolutionWarning
from toprank.inspection import certificate_of, last_step
from toprank.matrices.shared_values import shared_kernel_values
from toprank.selection._scorers import clone_for, scored

# The penalty of an estimator that chooses it itself.
OWN_CHOICE = "auto"


# Parameters of the last step that its kernel matrix does not depend on, besides the penalty.
_BESIDE_THE_KERNEL = ("tau", "k", "beta", "surrogate")


@dataclass(frozen=True)
class Setting:
    """Parameters besides the penalty, and the candidates that have them: their numbers and penalties.

    Settings of the same `kernel` have equal parameters but for those that a kernel matrix does not depend on.
    """

    parameters: dict[str, Any]
    candidates: list[tuple[int, Any]]
    kernel: tuple[int, ...]


def settings_of(grid: list[dict[str, Any]], alpha: str) -> tuple[list[dict[str, Any]], list[Setting]]:
    """All candidates in the order of scikit-learn's grid search, and the same by setting of the other parameters."""
    prefix = alpha.removesuffix("alpha")
    beside = {alpha, *(prefix + name for name in _BESIDE_THE_KERNEL)}
    candidates: list[dict[str, Any]] = []
    settings: dict[Any, Setting] = {}
    for part, values in enumerate(grid):
        ParameterGrid(values)  # refuses what is no grid
        for places in ParameterGrid({name: range(len(entries)) for name, entries in values.items()}):
            candidate = {name: values[name][place] for name, place in places.items()}
            others = {name: value for name, value in candidate.items() if name != alpha}
            key = (part, *(place for name, place in places.items() if name != alpha))
            kernel = (part, *(place for name, place in places.items() if name not in beside))
            settings.setdefault(key, Setting(others, [], kernel)).candidates.append((len(candidates), candidate[alpha]))
            candidates.append(candidate)
    return candidates, list(settings.values())


def prefix_of_last(estimator: Any) -> str:
    """The prefix of the parameters of the last step of a pipeline."""
    return f"{estimator.steps[-1][0]}__" if hasattr(estimator, "steps") else ""


def starts_warm(model: Any) -> bool:
    """Whether a fit from a neighbour's solution ends where a fit from scratch does.

    Linear or with a kernel, and convex: random features differ from fit to fit, and a stationary point of Grill or the
    end point of a stochastic method depends on the start.
    """
    if not isinstance(model, TopClassifier) or model.solver in ("sgd", "dual-cd"):
        return False
    return Features not in model._back_ends() and model._formulation().is_convex


def groups_of(settings: list[Setting], estimator: Any) -> list[list[Setting]]:
    """Settings that are fitted one after the other: those of the same kernel matrix; of a linear model each alone."""
    model, kernel = last_step(estimator), f"{prefix_of_last(estimator)}kernel"
    if not isinstance(model, KernelClassifier):
        return [[setting] for setting in settings]
    groups: dict[Any, list[Setting]] = {}
    for number, setting in enumerate(settings):
        is_linear = setting.parameters.get(kernel, model.kernel) == "linear"
        groups.setdefault(number if is_linear else setting.kernel, []).append(setting)
    return list(groups.values())


def fit_group(settings: list[Setting], *of_fold: Any) -> dict[int, dict[str, Any]]:
    """What `fit_fold` gives, for several settings, which share the values of their kernel."""
    results: dict[int, dict[str, Any]] = {}
    with shared_kernel_values():
        for setting in settings:
            results |= fit_fold(setting, *of_fold)
    return results


def fit_fold(
    setting: Setting,
    estimator: Any,
    X: Any,
    y: Any,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    scorer: Any,
    coding: Coding,
    params: dict[str, Any],
) -> dict[int, dict[str, Any]]:
    """For each candidate of a setting its score, times and certificate, or the error."""
    others = {name: clone(value, safe=False) for name, value in setting.parameters.items()}
    estimator = clone_for([scorer], estimator).set_params(**others)
    model, prefix = last_step(estimator), prefix_of_last(estimator)
    before, own = _parameters_of_steps(estimator, params, prefix)
    start = time.perf_counter()
    X_train, y_train = _safe_split(estimator, X, coding.codes(y), train)
    X_test, y_test = _safe_split(estimator, X, y, test, train)
    try:
        if prefix and len(estimator.steps) > 1:
            preparation = estimator[:-1]
            X_train = preparation.fit_transform(X_train, y_train, **row_arguments(X, before, train))
            X_test = preparation.transform(X_test)
    except Exception as error:
        return {number: {"error": error, "fit_time": time.perf_counter() - start} for number, _ in setting.candidates}
    shared = (time.perf_counter() - start) / len(setting.candidates)
    if starts_warm(model):
        model.set_params(warm_start=True)
    results = {}
    for number, alpha in sorted(setting.candidates, key=lambda one: -np.inf if one[1] == OWN_CHOICE else -one[1]):
        model.set_params(alpha=alpha)
        results[number] = _fit_one(model, X_train, y_train, row_arguments(X, own, train))
        results[number]["fit_time"] += shared
        if "error" not in results[number]:
            results[number].update(_score_one(model, X_test, y_test, scorer, coding, row_arguments(X, own, test)))
    return results


def _fit_one(model: Any, X: Any, y: Any, params: dict[str, Any]) -> dict[str, Any]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSolutionWarning)  # shows in the score
        try:
            model.fit(X, y, **params)
        except Exception as error:  # the others may still fit
            return {"error": error, "fit_time": time.perf_counter() - start}
    seconds, gap = time.perf_counter() - start, certificate_of(model)
    return {"fit_time": seconds} if gap is None else {"fit_time": seconds, "dual_gap": gap}


def _score_one(model: Any, X: Any, y: Any, scorer: Any, coding: Coding, params: dict[str, Any]) -> dict[str, Any]:
    start = time.perf_counter()
    weighs = "sample_weight" in params and "sample_weight" in inspect.signature(scorer).parameters
    try:
        score = scored(scorer, model, X, y, coding, **({"sample_weight": params["sample_weight"]} if weighs else {}))
    except Exception as error:
        return {"error": error, "score_time": time.perf_counter() - start}
    return {"score": score, "score_time": time.perf_counter() - start}


def _parameters_of_steps(estimator: Any, params: dict[str, Any], prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of fit for the steps before the last, and for the last step."""
    if not prefix or not params:
        return {}, params
    if not _routing_enabled():
        own = {name.removeprefix(prefix): value for name, value in params.items() if name.startswith(prefix)}
        return {name: value for name, value in params.items() if not name.startswith(prefix)}, own
    routed = process_routing(estimator, "fit", **params)
    wanted = {
        name
        for step, _ in estimator.steps[:-1]
        for method in ("fit", "fit_transform")
        for name in routed.get(step, {}).get(method, {})
    }
    return {name: params[name] for name in wanted}, dict(routed[prefix.removesuffix("__")].fit)
