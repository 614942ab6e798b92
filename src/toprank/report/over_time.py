"""What changes with time: alerts of each day, the amount found, and whether the negatives are those of the fit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from toprank.plots.drift import tail
from toprank.ranking.drift import ScoreDrift
from toprank.ranking.ranked_list import OperatingPoint
from toprank.ranking.tie_runs import Floats, score_column
from toprank.report.evaluation import Evaluation
from toprank.report.numbers_as_text import count, number, percent
from toprank.report.sections import FirstBudget, Section
from toprank.report.svg import Axis, Figure, linear_axis, log_axis

_MOST_BARS = 400
_FORMATS = {"hour": "%d %b %H:%M", "day": "%d %b %Y", "week": "%d %b %Y", "month": "%b %Y"}


def over_time(
    evaluation: Evaluation, first: FirstBudget, per_period: Any, amounts: ArrayLike | None, drift: ScoreDrift | None
) -> Section | None:
    """Alerts a day, the amount found and the drift of the negatives; None if nothing is known of any of them."""
    sentences, figures = [], []
    if per_period is not None:
        sentences.append(_alerts_sentence(per_period))
        if 1 < len(per_period.starts) <= _MOST_BARS:
            figures.append(_alerts_figure(per_period))
    if amounts is not None:
        own = None if evaluation.fitted is None else evaluation.fitted.own
        sentences += _amount_sentences(evaluation, score_column(amounts, "amounts"), first.points[0], own)
    if drift is not None:
        sentences.append(f"{drift.sentence()[0].upper()}{drift.sentence()[1:]}.")
        figures.append(_drift_figure(drift))
    if not sentences:
        return None
    parts = [name for name, there in (("Alerts over time", per_period), ("amount found", amounts), ("drift", drift))
             if there is not None]  # fmt: skip
    title = ", ".join(parts)
    values = {"sentences": sentences, "figures": figures}
    return Section("time", f"{title[0].upper()}{title[1:]}", "Over time", values)


def _alerts_sentence(found: Any) -> str:
    name = found.per if isinstance(found.per, str) else "period"
    text = f"At its own threshold the model raises {found.mean:,.1f} alerts a {name} on average"
    if name == "hour":
        text = text.replace("a hour", "an hour")
    if found.spread is not None:
        low, middle, high = found.spread
        text += f"; whole {name}s have {count(low)} to {count(high)}, half of them at most {number(middle)}"
    return f"{text}."


def _alerts_figure(found: Any) -> Figure:
    edges = np.arange(len(found.starts) + 1, dtype=np.float64)
    places = sorted({0, (len(found.starts) - 1) // 2, len(found.starts) - 1})  # more would overlap
    figure = Figure(
        "alerts-over-time",
        f"Alerts of each {found.per if isinstance(found.per, str) else 'period'}",
        "Alerts at the threshold of the model, and the positives among them; the first and last bar may be cut off.",
        Axis("linear", 0.0, float(edges[-1]), "start", [(float(place), _start(found, place)) for place in places]),
        linear_axis("alerts", 0.0, 1.05 * max(*found.alerts, 1), number),
    )
    figure.bars("negative", edges, np.array(found.alerts, dtype=np.float64), "alerts")
    figure.bars("positive", edges, np.array(found.caught, dtype=np.float64), "positives among them")
    figure.line("reference", [0.0, edges[-1]], [found.mean] * 2, f"mean {number(found.mean, 3)}")
    return figure


def _start(found: Any, place: int) -> str:
    """When a period starts, in words."""
    start = found.starts[place]
    if not isinstance(found.per, str):
        return number(start)
    return datetime.fromtimestamp(start, UTC).strftime(_FORMATS[found.per])


def _amount_sentences(
    evaluation: Evaluation, amounts: Floats, point: OperatingPoint, own: OperatingPoint | None
) -> list[str]:
    """What part of the amount of the positives is found at the first budget and at the threshold of the model."""
    mine = np.where(evaluation.positive, amounts, 0.0)
    scores, total = evaluation.lists[0].scores, float(mine.sum())
    if not total > 0:
        return ["The positives have no amount."]
    said = []
    for one, where in ((point, "Within the first budget"), (own, "At the threshold of the model")):
        if one is None:
            continue
        above, tied = scores > one.threshold, scores == one.threshold
        found = float(mine[above].sum())
        if one.kind == "k":
            found += float(mine[tied].sum()) * (one.value - int(above.sum())) / max(int(tied.sum()), 1)
        said.append(
            f"{where} {percent(found / total)} of the amount of the positives is found, {count(round(found))} of "
            f"{count(round(total))}, and {percent(one.recall)} of the positives."
        )
    return said


def _drift_figure(drift: ScoreDrift) -> Figure:
    """The share of the negatives above each score, then and now."""
    curves = [(*tail(sample), name) for sample, name in ((drift.before, "at the fit"), (drift.now, "now"))]
    scores = np.concatenate([[0.0], *(x for x, _, _ in curves)])
    least = min(float(np.min(y, initial=0.1)) for _, y, _ in curves)
    spare = 0.02 * (float(np.ptp(scores)) or 1.0)
    figure = Figure(
        "drift",
        "Scores of the negatives at the fit and now",
        f"The share of the negatives above each score; equal rates at the threshold: p = {number(drift.p_value, 2)}, "
        "by Fisher’s exact test.",
        linear_axis("score", float(scores.min()) - spare, float(scores.max()) + spare, number),
        log_axis("share of the negatives above", least, 1.0),
    )
    for i, (x, y, name) in enumerate(curves):
        if len(x):
            figure.steps(f"curve list-{i}", x, y, name)
    figure.line("own", [0.0, 0.0], [figure.y.low, figure.y.high], "threshold of the model")
    return figure
