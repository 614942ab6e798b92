"""What stands on the page, as plain values for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import toprank
from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier, TopKClassifier
from toprank.inspection import Anatomy, anatomy, budget_of
from toprank.plots._display import scores_of
from toprank.ranking.curves import list_lengths
from toprank.ranking.intervals import share_limits
from toprank.ranking.ranked_list import OperatingPoint, RankedList
from toprank.ranking.tie_runs import positive_rows
from toprank.report import figures, svg
from toprank.report.card import INTENDED_USE, certificate, groups, limits_of_use
from toprank.report.embedding import embed
from toprank.report.importance import Importance, importance
from toprank.report.metrics_table import Metric, metric_rows
from toprank.report.numbers_as_text import cell, count, limits, number, percent, round_percent
from toprank.report.top_rows import top_rows


@dataclass(frozen=True)
class Evaluation:
    """A model, held-out rows and what the model makes of them."""

    model: Any
    parts: Anatomy
    X: Any
    y: NDArray[Any]
    scores: NDArray[Any]
    positive: NDArray[np.bool_]
    pos_label: Any
    ranked: RankedList
    own: OperatingPoint | None
    """What the model's own threshold takes, if it has one."""

    @classmethod
    def of(cls, model: Any, X: Any, y: NDArray[Any], pos_label: Any) -> Self:
        """Score the rows and sort them."""
        scores, pos_label, threshold = scores_of(model, X, pos_label)
        ranked = RankedList.from_predictions(y, scores, pos_label=pos_label)
        ranked.require(positives=True, negatives=True)
        parts = anatomy(model)
        own = None if parts.find(TopKClassifier) else ranked.operating_point(threshold=threshold)
        return cls(model, parts, X, y, scores, positive_rows(y, pos_label), pos_label, ranked, own)


def contents(
    evaluation: Evaluation,
    *,
    ids: Sequence[Any] | None,
    table: Any,
    title: str | None,
    data_name: str | None,
    budget: tuple[int | None, float | None],
    confidence: float,
    n_top_rows: int,
    training_rows: int | None,
    intended_use: str | None,
    limits: Sequence[str] | None,
) -> dict[str, Any]:
    """Everything that the template names."""
    ranked, parts = evaluation.ranked, evaluation.parts
    k, max_fpr = budget if budget != (None, None) else default_budget(evaluation)
    point = ranked.operating_point(k=k, max_fpr=max_fpr)
    assert point is not None
    own_threshold = None if evaluation.own is None else evaluation.own.threshold
    drawn = [
        figures.roc(ranked),
        figures.precision_at_k(ranked, confidence),
        figures.precision_recall(ranked),
        figures.densities(ranked, own_threshold),
    ]
    features = importance(evaluation.model, parts, evaluation.X, evaluation.positive, evaluation.pos_label)
    metrics = metric_rows(ranked, evaluation.positive, evaluation.scores, confidence)
    now = datetime.now(UTC)
    created = f"{now.day} {now:%B %Y}"
    return {
        "title": title or (f"{parts.name} on {data_name}" if data_name else parts.name),
        "facts": [parts.name, *([data_name] if data_name else []), f"{count(ranked.total)} held-out rows", created],
        "created": created,
        "version": toprank.__version__,
        "total": count(ranked.total),
        "positives": count(ranked.positives),
        "negatives": count(ranked.negatives),
        "base_rate": percent(ranked.positives / ranked.total),
        "positive_label": _label_of(evaluation),
        "level": round_percent(confidence),
        "summary": _summary(evaluation, point, metrics, data_name),
        "budget": _budget(point, confidence),
        "own_alerts": count(evaluation.own.alerts) if evaluation.own else "",
        "figures": drawn,
        "metrics": metrics,
        "top": top_rows(evaluation.scores, evaluation.y, evaluation.positive, ids=ids, table=table, most=n_top_rows),
        "importance": features,
        "bars": [] if isinstance(features, str) else feature_bars(features),
        "certificate": certificate(parts),
        "intended_use": intended_use or INTENDED_USE,
        "limits": limits_of_use(ranked) if limits is None else list(limits),
        "card_groups": groups(parts, _data_rows(evaluation, data_name, training_rows)),
        "data": _data(evaluation, drawn, point, confidence),
    }


def default_budget(evaluation: Evaluation) -> tuple[int | None, float | None]:
    """Number of alerts or false positive rate that the model was made for, else as many alerts as positives."""
    total = int(evaluation.ranked.total)
    rule = evaluation.parts.find(NeymanPearsonClassifier)
    if rule is not None:
        return None, float(rule.max_fpr)
    top = evaluation.parts.find(TopKClassifier)
    if top is not None:
        return min(max(1, int(top.k if top.share is None else top.share * total)), total), None
    alerts = evaluation.parts.find(AlertShareClassifier)
    if alerts is not None:
        return max(1, round(alerts.share * total)), None
    budget = budget_of(evaluation.parts.parts[0].estimator)
    if budget is None or budget.share is None:
        return int(evaluation.ranked.positives), None
    if budget.over == "negatives":
        return None, float(budget.share)
    return max(1, round(budget.share * total)), None


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


def _label_of(evaluation: Evaluation) -> str:
    return cell(evaluation.y[np.argmax(evaluation.positive)])


def _summary(
    evaluation: Evaluation, point: OperatingPoint, metrics: list[Metric], data_name: str | None
) -> dict[str, Any]:
    ranked = evaluation.ranked
    base = ranked.positives / ranked.total
    of_data = f" of {data_name}" if data_name else ""
    sentences = [
        f"The model was tried on {count(ranked.total)} held-out rows{of_data}. {count(ranked.positives)} of them "
        f"({percent(base)}) are positive, that is labelled {_label_of(evaluation)}.",
        f"With a budget of {_rule_words(point)} it raises {_outcome(point)}",
    ]
    if evaluation.parts.find(TopKClassifier):
        sentences.append("The rule of the model takes the best rows of each batch; here all rows are one batch.")
    if evaluation.own is not None:
        sentences.append(f"At its own threshold it raises {_outcome(evaluation.own)}")
    gap = evaluation.parts.gap
    tiles = [
        {"name": "Base rate", "shown": percent(base), "under": "precision of a random list"},
        *({"name": row.name, "shown": row.shown, "under": f"{row.counts}; {row.limits}"} for row in _headline(metrics)),
        {
            "name": "Relative gap of the fit",
            "shown": "–" if gap is None else number(gap, 2),
            "under": "no certificate" if gap is None else "proven distance from the optimum",
        },
    ]
    return {"sentences": sentences, "tiles": tiles}


def _headline(metrics: list[Metric]) -> list[Metric]:
    """Positives at the top, the recall at the middle false positive rate, and the precision of the longest list."""
    recalls = [row for row in metrics if row.name.startswith("Recall at FPR")]
    precisions = [row for row in metrics if row.name.startswith("Precision at")]
    return [metrics[0], *recalls[-2:][:1], *precisions[-2:][:1]]


def _alerts(number_of: float) -> str:
    return f"{count(number_of)} alert{'' if number_of == 1 else 's'}"


def _rule_words(point: OperatingPoint) -> str:
    if point.kind == "k":
        return _alerts(point.value)
    return f"a false positive rate of at most {round_percent(point.value)}"


def _outcome(point: OperatingPoint) -> str:
    if not point.true_positives:
        return f"{_alerts(point.alerts)}, none of them right." if point.alerts else "no alert."
    return (
        f"{_alerts(point.alerts)}: {count(point.true_positives)} of {count(point.positives)} positives are caught "
        f"({percent(point.recall)}), {count(point.positives - point.true_positives)} missed, and the number of false "
        f"alarms is {count(point.false_positives)}. {percent(point.precision)} of the alerts are right, "
        f"{number(point.lift, 3)} times the base rate."
    )


def _budget(point: OperatingPoint, confidence: float) -> dict[str, str]:
    """The numbers of the first budget, for readers without JavaScript."""
    trials = {"precision": point.alerts, "recall": point.positives, "fpr": point.negatives}
    found = {"precision": point.true_positives, "recall": point.true_positives, "fpr": point.false_positives}
    return {
        "words": _rule_words(point),
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


def _data_rows(evaluation: Evaluation, data_name: str | None, training_rows: int | None) -> list[tuple[str, str]]:
    ranked = evaluation.ranked
    features = getattr(evaluation.model, "n_features_in_", None) or evaluation.X.shape[1]
    return [
        *([("Held-out data", data_name)] if data_name else []),
        ("Held-out rows", count(ranked.total)),
        ("Positives", f"{count(ranked.positives)} ({percent(ranked.positives / ranked.total)})"),
        ("Positive label", _label_of(evaluation)),
        ("Distinct scores", count(len(ranked.scores))),
        ("Columns that the model reads", count(features)),
        ("Training rows", "not recorded" if training_rows is None else count(training_rows)),
    ]


def _data(evaluation: Evaluation, drawn: list[svg.Figure], point: OperatingPoint, confidence: float) -> dict[str, Any]:
    """What the script reads."""
    ranked = evaluation.ranked
    value = point.value if point.kind == "k" else 100 * point.value
    return {
        **embed(ranked),
        "confidence": confidence,
        "budget": {"mode": "k" if point.kind == "k" else "fpr", "value": float(f"{value:.12g}")},
        "own_alerts": int(evaluation.own.alerts) if evaluation.own else 0,
        "stops": {
            "alerts": list_lengths(ranked.total).astype(int).tolist(),
            "false_alarms": list_lengths(ranked.negatives).astype(int).tolist(),
        },
        "figures": {figure.name: figure.scales for figure in drawn},
        "plane": {
            "width": svg.WIDTH,
            "left": svg.LEFT,
            "right": svg.RIGHT,
            "top": svg.TOP,
            "bottom": svg.BOTTOM,
            "after_zero": svg.AFTER_ZERO,
        },
    }
