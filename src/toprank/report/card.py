"""What the report says of the model itself: certificate, guarantee, parameters, versions."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
import sklearn

import toprank
from toprank.decision import NeymanPearsonClassifier
from toprank.inspection import Anatomy
from toprank.ranking.ranked_list import RankedList
from toprank.report.figures import convergence
from toprank.report.numbers_as_text import cell, count, number, percent, round_percent
from toprank.report.svg import Figure

Rows = list[tuple[str, str]]

INTENDED_USE = (
    "To put rows in an order, so that the best of them can be acted upon within a budget of alerts or of false alarms. "
    "A score orders rows; it is not a probability."
)
FEW_POSITIVES = 30
# What is shown of `selection_` of a forest.
_CHOICE = {
    "why": "Why",
    "alpha": "Penalty",
    "tau": "τ of the head",
    "honest": "Honest leaves",
    "worth": "Found on rows not seen",
    "worth_of_prior": "The prior alone",
}


@dataclass(frozen=True)
class Certificate:
    """Sentences on how good the fit is, proven, with its numbers and its course."""

    sentences: list[str]
    rows: Rows
    figure: Figure | None


@dataclass(frozen=True)
class Group:
    """A part of the model card."""

    name: str
    rows: Rows


def certificate(parts: Anatomy) -> Certificate:
    """What is known of the optimum, and of the false positive rate."""
    gap = parts.gap
    estimator = parts.parts[0].estimator
    sentences = [*_on_the_gap(gap, parts), *_on_the_guarantee(parts.find(NeymanPearsonClassifier))]
    rows = [("Relative gap", "not known" if gap is None else number(gap, 3))]
    known = {"Objective": "objective_", "Lower bound": "dual_objective_", "Iterations": "n_iter_", "Tolerance": "tol"}
    for name, attribute in known.items():
        value = np.asarray(getattr(estimator, attribute, np.nan))
        # other libraries have other things by these names
        if value.dtype.kind in "if" and value.size and np.isfinite(value).all():
            rows.append((name, number(float(value.max()), 6)))
    if isinstance(getattr(estimator, "solver_", None), str):
        rows.append(("Solver", estimator.solver_))
    return Certificate(sentences, rows, convergence(estimator))


def _on_the_gap(gap: float | None, parts: Anatomy) -> list[str]:
    name, n_models = type(parts.parts[0].estimator).__name__, len(parts.parts)
    several = f" (the largest gap of {n_models} models)" if n_models > 1 else ""
    if gap is None:
        return [
            f"{name} comes without a certificate: no lower bound of its training objective is known, so nothing is "
            "proven about how close the fit is to the best one."
        ]
    tol = getattr(parts.parts[0].estimator, "tol", None)
    missed = tol is not None and gap > tol * (1 + 1e-9)
    reached = f" The tolerance of {number(tol)} was not reached." if tol is not None and missed else ""
    return [
        f"The training objective is at most {number(gap, 2)} of itself above the smallest possible value{several}: "
        "with the same data and parameters no other model can be better by more. This is proven by a lower bound."
        f"{reached}",
        "A certificate speaks of the fit to the training data. What the model is worth on new rows is told by the "
        "held-out metrics above.",
    ]


def _on_the_guarantee(rule: Any) -> list[str]:
    if rule is None:
        return []
    bound, confidence = round_percent(rule.max_fpr), round_percent(rule.confidence)
    if not rule.guaranteed_:
        return [
            f"The threshold aims at a false positive rate of at most {bound}; as it was pooled over folds and the "
            "model fitted again, this has no exact guarantee."
        ]
    return [
        f"The threshold keeps the false positive rate at or below {bound} with {confidence} confidence, as long as new "
        f"negatives are drawn like the {count(rule.n_calibration_)} that were held out to set it. The probability of a "
        f"higher rate is at most {percent(rule.violation_probability_)}."
    ]


def limits_of_use(ranked: RankedList) -> list[str]:
    """What any reader should keep in mind."""
    sentences = [
        "The numbers hold for rows drawn like the held-out ones. Where people, prices or attackers change, "
        "check them again on fresh labels.",
        "The held-out rows must not have been used for training or for choosing parameters; the report cannot check "
        "this.",
        "No comparison between groups of people was made; do that before decisions about people.",
    ]
    if ranked.positives < FEW_POSITIVES:
        sentences.insert(0, f"There are only {count(ranked.positives)} positives, so every share is uncertain.")
    return sentences


def groups(parts: Anatomy | None, data: Rows) -> list[Group]:
    """Data, parameters and versions; parameters that are estimators are shown as levels of their own."""
    found = [Group("Data", data)]
    for level in [] if parts is None else parts.levels:
        if hasattr(level, "steps") or not hasattr(level, "get_params"):
            continue
        parameters = level.get_params(deep=False).items()
        rows = [(name, cell(value)) for name, value in parameters if not hasattr(value, "get_params")]
        if rows:
            found.append(Group(f"Parameters of {type(level).__name__}", rows))
    chosen = None if parts is None else getattr(parts.parts[0].estimator, "selection_", None)
    if chosen:
        found.append(Group("What the fit chose", [(_CHOICE[name], cell(chosen[name])) for name in _CHOICE]))
    steps = [] if parts is None else [type(step).__name__ for step in parts.parts[0].steps]
    if steps:
        found.append(Group("Preparation of rows", [(f"Step {i}", name) for i, name in enumerate(steps, start=1)]))
    packages = {"toprank": toprank, "scikit-learn": sklearn, "NumPy": np, "SciPy": scipy}
    versions = [(name, package.__version__) for name, package in packages.items()]
    return [*found, Group("Versions", [*versions, ("Python", platform.python_version())])]
