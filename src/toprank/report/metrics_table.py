"""The metrics of the report, with limits where there are some and a sentence for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.metrics import partial_auc_score, wmw_score
from toprank.ranking.intervals import delong, share_limits
from toprank.ranking.paired import Budget, Difference, area_half_width, found_differences
from toprank.ranking.ranked_list import OperatingPoint, RankedList
from toprank.report.numbers_as_text import count, limits, number, percent, round_percent, signed

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05)
LIST_LENGTHS = (10, 100, 1000)
PARTIAL_FPR = 0.1


@dataclass(frozen=True)
class Metric:
    """A row of the table; `value` is exact, the others are texts."""

    name: str
    value: float
    shown: str
    limits: str
    counts: str
    meaning: str
    budget: Budget | None = None
    """At which the positives are counted that the value is a share of `trials` of; None for an area."""
    trials: float = 1.0
    max_fpr: float = 1.0
    """Right end of an area."""


@dataclass(frozen=True)
class MetricDifference:
    """By how much a metric of the first list is larger than that of another; `found` is exact, the others are texts."""

    found: Difference
    shown: str
    limits: str
    clear: bool
    """Whether the limits exclude zero."""


def metric_rows(
    ranked: RankedList, positive: NDArray[np.bool_], scores: NDArray[np.float64], confidence: float
) -> list[Metric]:
    """All metrics of a list.

    Given the negatives, the threshold of a bound on the false positive rate is fixed, so the positives above it are a
    binomial count, and the exact limits of `clopper_pearson` cover the true positive rate at this threshold. Those of
    the precision of the k best cover what its docstring says. The area has the limits of DeLong, DeLong and
    Clarke-Pearson (1988), which are approximate.
    """
    rates = [0.0, *(rate for rate in FALSE_POSITIVE_RATES if rate * ranked.negatives >= 1)]
    lengths = [k for k in LIST_LENGTHS if k < ranked.total]
    rows = [_recall_at_fpr(ranked, rate, confidence) for rate in rates]
    rows += [row for k in lengths for row in _at_k(ranked, k, confidence)]
    if PARTIAL_FPR * ranked.negatives >= 1:
        area = partial_auc_score(positive, scores, max_fpr=PARTIAL_FPR, pos_label=True)
        meaning = "Standardised: 0.5 for a random order, 1 for a perfect one."
        name = f"Partial AUC, FPR ≤ {round_percent(PARTIAL_FPR)}"
        rows.append(Metric(name, area, number(area), "–", "", meaning, max_fpr=PARTIAL_FPR))
    area = wmw_score(positive, scores)
    lower, upper = delong(ranked, confidence)
    meaning = "How often a positive is above a negative, over the whole list; limits approximate (DeLong)."
    rows.append(Metric("AUC", area, number(area), f"{number(lower)} – {number(upper)}", "", meaning))
    return rows


def _recall_at_fpr(ranked: RankedList, rate: float, confidence: float) -> Metric:
    point = _point(ranked, max_fpr=rate)
    name = f"Recall at FPR ≤ {round_percent(rate)}" if rate else "Positives at the top"
    meaning = (
        f"Positives found while at most {count(np.floor(rate * ranked.negatives * (1 + 1e-12)))} of "
        f"{count(ranked.negatives)} negatives become alerts."
        if rate
        else "Positives above the highest negative: found before the first false alarm."
    )
    return _share(name, point, point.recall, ranked.positives, confidence, meaning)


def _at_k(ranked: RankedList, k: int, confidence: float) -> list[Metric]:
    point = _point(ranked, k=k)
    length = count(k)
    among = f"Positives among the {length} best rows."
    held = f"Share of all positives that the {length} best rows hold."
    return [
        _share(f"Precision at {length}", point, point.precision, k, confidence, among),
        _share(f"Recall at {length}", point, point.recall, ranked.positives, confidence, held),
    ]


def _share(name: str, point: OperatingPoint, value: float, trials: float, confidence: float, meaning: str) -> Metric:
    """A share of counted rows, with its exact limits."""
    found = point.true_positives
    shown = limits(*share_limits(found, trials, confidence))
    budget = Budget("k" if point.kind == "k" else "max_fpr", point.value)
    return Metric(name, value, percent(value), shown, f"{count(found)} of {count(trials)}", meaning, budget, trials)


def difference_rows(
    first: list[Metric],
    second: list[Metric],
    positive: NDArray[np.bool_],
    first_scores: NDArray[Any],
    second_scores: NDArray[Any],
    confidence: float,
) -> list[MetricDifference]:
    """The paired difference of each metric of two lists of the same rows, see `toprank.ranking.paired`."""
    shares = [row for row in first if row.budget is not None]
    budgets = [row.budget for row in shares if row.budget is not None]
    found = iter(found_differences(positive, first_scores, second_scores, budgets, confidence=confidence))
    rows = []
    for mine, other in zip(first, second, strict=True):
        if mine.budget is not None:
            difference = next(found).times(1 / mine.trials)
            rows.append(_difference(difference, lambda value: signed(100 * value, 1)))
            continue
        half = area_half_width(positive, first_scores, second_scores, max_fpr=mine.max_fpr, confidence=confidence)
        value = mine.value - other.value
        rows.append(_difference(Difference(value, value - half, value + half), lambda value: signed(value, 4)))
    return rows


def _difference(found: Difference, text: Callable[[float], str]) -> MetricDifference:
    shown, lower, upper = map(text, found)
    clear = bool(found.lower > 0 or found.upper < 0)
    return MetricDifference(found, shown, f"{lower} to {upper}", clear)


def _point(ranked: RankedList, **rule: float) -> OperatingPoint:
    point = ranked.operating_point(**rule)
    assert point is not None
    return point
