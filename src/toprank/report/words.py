"""Budgets and what they find, in words."""

from __future__ import annotations

from toprank.ranking.paired import Difference
from toprank.ranking.ranked_list import OperatingPoint
from toprank.report.evaluation import Evaluation
from toprank.report.numbers_as_text import count, number, percent, round_percent, signed

# Labels that say no more than that a row is positive.
_PLAIN_LABELS = {"1", "1.0", "true", "yes", "y", "t"}


def alerts(number_of: float) -> str:
    """So many alerts."""
    return f"{count(number_of)} alert{'' if number_of == 1 else 's'}"


def rule(point: OperatingPoint) -> str:
    """The budget of a point."""
    if point.kind == "k":
        return alerts(point.value)
    return f"a false positive rate of at most {round_percent(point.value)}"


def outcome(point: OperatingPoint) -> str:
    """What is found at a point."""
    if not point.true_positives:
        return f"{alerts(point.alerts)}, none of them right." if point.alerts else "no alert."
    return (
        f"{alerts(point.alerts)}: {count(point.true_positives)} of {count(point.positives)} positives are caught "
        f"({percent(point.recall)}), {count(point.positives - point.true_positives)} missed, and the number of false "
        f"alarms is {count(point.false_positives)}. {percent(point.precision)} of the alerts are right, "
        f"{number(point.lift, 3)} times the base rate."
    )


def cases(evaluation: Evaluation, target_name: str | None) -> str:
    """What the positives are called: by their label, or by the column of labels where the label says nothing."""
    label = evaluation.positive_label
    if label.lower() not in _PLAIN_LABELS:
        return f"cases of {label}"
    return "positives" if target_name is None else f"cases of {target_name}"


def title(evaluation: Evaluation, points: list[OperatingPoint], target_name: str | None) -> str:
    """What a reader wants to know first: how many are found within the budget."""
    first, those = points[0], cases(evaluation, target_name)
    total = count(first.positives)
    within = alerts(first.value) if first.kind == "k" else f"{round_percent(first.value)} false alarms"
    find = "finds" if first.kind == "k" and first.value == 1 else "find"
    if not evaluation.several:
        if first.kind == "k":
            return f"{within} {find} {count(first.true_positives)} of {total} {those}"
        return f"{count(first.true_positives)} of {total} {those} found with {within}"
    each = [f"{count(point.true_positives)} by {one.name}" for one, point in zip(evaluation.lists, points, strict=True)]
    listed = f"{', '.join(each[:-1])} and {each[-1]}"
    if first.kind == "k":
        return f"Of {total} {those}, {within} {find} {listed}"
    return f"Of {total} {those}, {listed} are found with {within}"


def difference(first: str, second: str, found: Difference, level: str) -> str:
    """By how much one list finds more than another, and whether that may be chance."""
    more = f"{count(abs(found.value))} {'more' if found.value >= 0 else 'fewer'}"
    clear = found.lower > 0 or found.upper < 0
    verdict = "Chance does not explain that." if clear else "That may be chance."
    head = f"{first} finds as many as {second}" if found.value == 0 else f"{first} finds {more} than {second}"
    return f"{head} ({level} limits of the difference: {signed(found.lower)} to {signed(found.upper)}). {verdict}"
