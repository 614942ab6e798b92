"""What stands on the page, as plain values for the templates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import toprank
from toprank.ranking.curves import list_lengths
from toprank.ranking.ranked_list import OperatingPoint
from toprank.report import figures, sections, svg, words
from toprank.report.embedding import embed, embed_positives
from toprank.report.evaluation import Evaluation
from toprank.report.numbers_as_text import count, round_percent
from toprank.report.over_time import over_time
from toprank.report.reasons import top_reasons
from toprank.report.sections import About, FirstBudget


def contents(
    evaluation: Evaluation, about: About, k: int | None = None, max_fpr: float | None = None
) -> dict[str, Any]:
    """Everything that the template names; `k` or `max_fpr` is the budget that is shown first."""
    given = (k, max_fpr) if k is not None or max_fpr is not None else evaluation.default_budget()
    first = FirstBudget.of(evaluation, *given, about.confidence)
    metrics = sections.metrics_of(evaluation, about)
    drawn = _figures(evaluation, about.confidence)
    why = top_reasons(evaluation, first.points[0].alerts, about.n_top_rows, about.background)
    parts = [
        sections.summary(evaluation, about, first, metrics),
        sections.budget(evaluation, about, first),
        sections.curves(drawn),
        sections.metrics(evaluation, about, metrics),
        over_time(evaluation, first, about.per_period, about.amounts, about.drift),
        sections.reasons(why),
        sections.rows(evaluation, about, why),
        sections.features(evaluation, why),
        sections.proof(evaluation),
        sections.card(evaluation, about),
    ]
    now = datetime.now(UTC)
    created = f"{now.day} {now:%B %Y}"
    judged = [one.name for one in evaluation.lists] if evaluation.fitted is None else [evaluation.fitted.parts.name]
    return {
        "title": about.title or words.title(evaluation, first.points, about.target_name),
        "kicker": _kicker(evaluation),
        "facts": [
            " and ".join(judged),
            *([about.data_name] if about.data_name else []),
            f"{count(evaluation.ranked.total)} held-out rows",
            created,
        ],
        "created": created,
        "version": toprank.__version__,
        "sections": [part for part in parts if part is not None],
        "data": _data(evaluation, drawn, first.points[0], about.confidence),
    }


def _kicker(evaluation: Evaluation) -> str:
    if evaluation.several:
        return "Rankings compared"
    return "Report on scores" if evaluation.fitted is None else "Report on a ranking model"


def _figures(evaluation: Evaluation, confidence: float) -> list[svg.Figure]:
    lists = [(one.name, one.ranked) for one in evaluation.lists]
    own = None if evaluation.fitted is None or evaluation.fitted.own is None else evaluation.fitted.own.threshold
    return [
        figures.roc(lists),
        figures.precision_at_k(lists, confidence),
        figures.precision_recall(lists),
        *(
            figures.densities(one, own if i == 0 else None, number=i, of=name if evaluation.several else "")
            for i, (name, one) in enumerate(lists)
        ),
    ]


def _data(evaluation: Evaluation, drawn: list[svg.Figure], point: OperatingPoint, confidence: float) -> dict[str, Any]:
    """What the script reads."""
    ranked = evaluation.ranked
    own = None if evaluation.fitted is None else evaluation.fitted.own
    value = point.value if point.kind == "k" else 100 * point.value
    lists = [{"name": one.name, **embed(one.ranked)} for one in evaluation.lists]
    if evaluation.several:
        for one, scored in zip(lists, evaluation.lists, strict=True):
            one["positives"] = embed_positives(scored.ranked, scored.scores[evaluation.positive])
    return {
        "lists": lists,
        "confidence": confidence,
        "level": round_percent(confidence),
        "budget": {"mode": "k" if point.kind == "k" else "fpr", "value": float(f"{value:.12g}")},
        "own_alerts": int(own.alerts) if own else 0,
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
