"""The parts of the page: each is a name, two titles and the values of its template in ``templates/``.

To add one, write a function that returns a `Section` (or None, where there is nothing to say), a template of its name,
and its line in `contents`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toprank.decision import TopKClassifier
from toprank.ranking.intervals import share_limits
from toprank.ranking.paired import Budget, Difference, found_differences
from toprank.ranking.ranked_list import OperatingPoint
from toprank.report import words
from toprank.report.card import INTENDED_USE, certificate, groups, limits_of_use
from toprank.report.evaluation import Evaluation
from toprank.report.importance import Importance, importance
from toprank.report.metrics_table import Metric, difference_rows, metric_rows
from toprank.report.numbers_as_text import count, limits, number, percent, round_percent
from toprank.report.reasons import TopReasons
from toprank.report.svg import Figure
from toprank.report.top_rows import top_rows


@dataclass(frozen=True)
class About:
    """What the user says about the page."""

    ids: Sequence[Any] | None = None
    table: Any = None
    title: str | None = None
    data_name: str | None = None
    target_name: str | None = None
    confidence: float = 0.95
    n_top_rows: int = 50
    training_rows: int | None = None
    intended_use: str | None = None
    limits: Sequence[str] | None = None
    per_period: Any = None
    amounts: Any = None
    drift: Any = None
    background: Any = None

    @property
    def level(self) -> str:
        """The confidence in words."""
        return round_percent(self.confidence)


@dataclass(frozen=True)
class Section:
    """A part of the page; `link` is its short title in the list of parts."""

    name: str
    title: str
    link: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FirstBudget:
    """The budget that is shown first: what each list finds there, and by how much the first finds more than others."""

    points: list[OperatingPoint]
    differences: list[Difference]

    @classmethod
    def of(cls, evaluation: Evaluation, k: int | None, max_fpr: float | None, confidence: float) -> FirstBudget:
        """Count in each list."""
        points = [one.point(k, max_fpr) for one in evaluation.lists]
        budget = Budget("max_fpr", max_fpr) if max_fpr is not None else Budget("k", points[0].value)
        first, *others = evaluation.lists
        differences = [
            found_differences(evaluation.positive, first.scores, other.scores, [budget], confidence=confidence)[0]
            for other in others
        ]
        return cls(points, differences)


def summary(evaluation: Evaluation, about: About, first: FirstBudget, metrics: list[list[Metric]]) -> Section:
    """What the lists are worth, in sentences and a few numbers."""
    ranked = evaluation.ranked
    base = ranked.positives / ranked.total
    of_data = f" of {about.data_name}" if about.data_name else ""
    whose = f" in the column {about.target_name}" if about.target_name else ""
    tried = "The scores were" if evaluation.fitted is None else "The model was"
    sentences = [
        f"{tried} tried on {count(ranked.total)} held-out rows{of_data}. {count(ranked.positives)} of them "
        f"({percent(base)}) are positive, that is labelled {evaluation.positive_label}{whose}.",
        *_outcomes(evaluation, first, about.level),
    ]
    gap = None if evaluation.fitted is None else evaluation.fitted.parts.gap
    tiles = [{"name": "Base rate", "shown": percent(base), "under": "precision of a random list"}]
    if evaluation.several:
        for one, point in zip(evaluation.lists, first.points, strict=True):
            under = f"of {count(point.positives)}, with {count(point.alerts)} alerts"
            tiles.append({"name": f"Found by {one.name}", "shown": count(point.true_positives), "under": under})
    else:
        tiles += [
            {"name": row.name, "shown": row.shown, "under": f"{row.counts}; {row.limits}"}
            for row in _headline(metrics[0])
        ]
    if evaluation.fitted is not None:
        under = "no certificate" if gap is None else "proven distance from the optimum"
        tiles.append(
            {"name": "Relative gap of the fit", "shown": "–" if gap is None else number(gap, 2), "under": under}
        )
    return Section("summary", "Summary", "Summary", {"sentences": sentences, "tiles": tiles})


def _outcomes(evaluation: Evaluation, first: FirstBudget, level: str) -> list[str]:
    """What each list finds, and how the first differs from the others."""
    within, fitted = words.rule(first.points[0]), evaluation.fitted
    if evaluation.several:
        names = [one.name for one in evaluation.lists]
        return [
            *(
                f"{name} with a budget of {within} raises {words.outcome(point)}"
                for name, point in zip(names, first.points, strict=True)
            ),
            *(
                words.difference(names[0], name, found, level)
                for name, found in zip(names[1:], first.differences, strict=True)
            ),
        ]
    who = "it raises" if fitted is not None else "they raise"
    sentences = [f"With a budget of {within} {who} {words.outcome(first.points[0])}"]
    if fitted is not None and fitted.parts.find(TopKClassifier):
        sentences.append("The rule of the model takes the best rows of each batch; here all rows are one batch.")
    if fitted is not None and fitted.own is not None:
        sentences.append(f"At its own threshold it raises {words.outcome(fitted.own)}")
    return sentences


def _headline(metrics: list[Metric]) -> list[Metric]:
    """Positives at the top, the recall at the middle false positive rate, and the precision of the longest list."""
    recalls = [row for row in metrics if row.name.startswith("Recall at FPR")]
    precisions = [row for row in metrics if row.name.startswith("Precision at")]
    return [metrics[0], *recalls[-2:][:1], *precisions[-2:][:1]]


def budget(evaluation: Evaluation, about: About, first: FirstBudget) -> Section:
    """The slider and the numbers that it moves, here those of the first budget, for readers without JavaScript."""
    ranked = evaluation.ranked
    own = None if evaluation.fitted is None else evaluation.fitted.own
    names = [one.name for one in evaluation.lists]
    values = {
        "level": about.level,
        "total": count(ranked.total),
        "positives": count(ranked.positives),
        "negatives": count(ranked.negatives),
        "base_rate": percent(ranked.positives / ranked.total),
        "words": words.rule(first.points[0]),
        "names": names,
        "lists": [_numbers(point, about.confidence) for point in first.points],
        "differences": [
            words.difference(names[0], name, found, about.level)
            for name, found in zip(names[1:], first.differences, strict=True)
        ],
        "own_alerts": count(own.alerts) if own is not None and own.alerts > 0 else "",
    }
    return Section("budget", "Alert budget", "Alert budget", values)


def _numbers(point: OperatingPoint, confidence: float) -> dict[str, str]:
    trials = {"precision": point.alerts, "recall": point.positives, "fpr": point.negatives}
    found = {"precision": point.true_positives, "recall": point.true_positives, "fpr": point.false_positives}
    return {
        "alerts": count(point.alerts),
        "caught": count(point.true_positives),
        "missed": count(point.positives - point.true_positives),
        "false_alarms": count(point.false_positives),
        "precision": percent(point.precision),
        "recall": percent(point.recall),
        "fpr": percent(point.fpr),
        "lift": "–" if np.isnan(point.lift) else f"{number(point.lift, 3)} ×",
        "threshold": number(point.threshold),
        "threshold_rule": "the lowest score in the list" if point.kind == "k" else "alert if the score is above it",
        **{
            f"{name}_limits": limits(*share_limits(found[name], trials[name], confidence)) if trials[name] else "–"
            for name in trials
        },
    }


def curves(drawn: list[Figure]) -> Section:
    """The figures."""
    return Section("curves", "Curves", "Curves", {"figures": drawn})


def metrics_of(evaluation: Evaluation, about: About) -> list[list[Metric]]:
    """The metrics of each list."""
    return [metric_rows(one.ranked, evaluation.positive, one.scores, about.confidence) for one in evaluation.lists]


def metrics(evaluation: Evaluation, about: About, found: list[list[Metric]]) -> Section:
    """The table of metrics, of several lists side by side with the differences from the first."""
    first, *others = evaluation.lists
    values = {
        "level": about.level,
        "names": [one.name for one in evaluation.lists],
        "rows": list(zip(*found, strict=True)),
        "differences": list(
            zip(
                *(
                    difference_rows(found[0], rows, evaluation.positive, first.scores, other.scores, about.confidence)
                    for rows, other in zip(found[1:], others, strict=True)
                ),
                strict=True,
            )
        ),
    }
    return Section("metrics", "Metrics of the top of the list", "Metrics", values)


def reasons(found: TopReasons | str | None) -> Section | None:
    """What puts rows at the top."""
    if found is None:
        return None
    bars = [] if isinstance(found, str) else found.bars()
    return Section("reasons", "What puts rows at the top", "Reasons", {"found": found, "bars": bars})


def rows(evaluation: Evaluation, about: About, why: TopReasons | str | None) -> Section | None:
    """The best rows of the first list."""
    first, *others = evaluation.lists
    top = top_rows(
        first.scores,
        evaluation.labels,
        evaluation.positive,
        ids=about.ids,
        table=about.table,
        most=about.n_top_rows,
        others={one.name: one.scores for one in others},
        reasons=why.of_rows if isinstance(why, TopReasons) else None,
    )
    values = {"top": top, "total": count(evaluation.ranked.total), "positive_label": evaluation.positive_label}
    by = f" by {first.name}" if others else ""
    return Section("rows", f"Top-ranked rows{by}", "Top rows", values) if top.rows else None


def features(evaluation: Evaluation, why: TopReasons | str | None) -> Section | None:
    """What the model looks at; where columns would have to be shuffled, reasons say as much in less time."""
    fitted = evaluation.fitted
    if fitted is None or (isinstance(why, TopReasons) and why.by_trees):
        return None
    found = importance(fitted.model, fitted.parts, fitted.X, evaluation.positive, evaluation.pos_label)
    bars = [] if isinstance(found, str) else feature_bars(found)
    return Section("features", "Most important features", "Features", {"importance": found, "bars": bars})


def feature_bars(features: Importance) -> list[dict[str, Any]]:
    """The bars of the features on a width of 200, with the zero in common."""
    spread = np.zeros(len(features.values)) if features.spread is None else features.spread
    low = min(0.0, float(np.min(features.values - spread)))
    high = max(0.0, float(np.max(features.values + spread)))
    width = (high - low) or 1.0
    place = np.vectorize(lambda value: round(198 * (value - low) / width + 1, 2), otypes=[float])
    zero = float(place(0.0))
    return [
        {
            "name": name,
            "shown": number(float(value), 3) if features.spread is None else _with_error(value, error),
            "kind": "bar-up" if value >= 0 else "bar-down",
            "x": min(zero, float(place(value))),
            "width": round(abs(float(place(value)) - zero), 2),
            "zero": zero,
            "spread": None if features.spread is None else (float(place(value - error)), float(place(value + error))),
        }
        for name, value, error in zip(features.names, features.values, spread, strict=True)
    ]


def _with_error(value: float, error: float) -> str:
    return f"{round(value, 3) + 0.0:.3f} ± {error:.3f}".replace("-", "−")


def proof(evaluation: Evaluation) -> Section | None:
    """How good the fit is, proven."""
    if evaluation.fitted is None:
        return None
    found = certificate(evaluation.fitted.parts)
    return Section("certificate", "Certificate", "Certificate", {"certificate": found})


def card(evaluation: Evaluation, about: About) -> Section:
    """Use, limits, data, parameters and versions."""
    fitted = evaluation.fitted
    values = {
        "intended_use": about.intended_use or INTENDED_USE,
        "limits": limits_of_use(evaluation.ranked) if about.limits is None else list(about.limits),
        "groups": groups(None if fitted is None else fitted.parts, _data_rows(evaluation, about)),
    }
    title = "Data card" if fitted is None else "Model card"
    return Section("card", title, title, values)


def _data_rows(evaluation: Evaluation, about: About) -> list[tuple[str, str]]:
    ranked = evaluation.ranked
    found = [
        *([("Held-out data", about.data_name)] if about.data_name else []),
        ("Held-out rows", count(ranked.total)),
        ("Positives", f"{count(ranked.positives)} ({percent(ranked.positives / ranked.total)})"),
        *([("Column of labels", about.target_name)] if about.target_name else []),
        ("Positive label", evaluation.positive_label),
    ]
    for one in evaluation.lists:
        whose = f" of {one.name}" if evaluation.several else ""
        found.append((f"Distinct scores{whose}", count(len(one.ranked.scores))))
    if evaluation.fitted is not None:
        read = getattr(evaluation.fitted.model, "n_features_in_", None) or evaluation.fitted.X.shape[1]
        found.append(("Columns that the model reads", count(read)))
        known = "not recorded" if about.training_rows is None else count(about.training_rows)
        found.append(("Training rows", known))
    return found
