"""The figures of the report, drawn from the curves of `toprank.ranking`.

Several lists share a figure: the lines of the first, the second, … differ in colour and dashes by the style sheet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.plots.convergence import FLOOR, ConvergenceTrace
from toprank.plots.densities import ScoreHistogram
from toprank.ranking.curves import PrecisionAtKCurve, PrecisionRecallCurve, RocCurve
from toprank.ranking.ranked_list import RankedList
from toprank.ranking.thinning import thin
from toprank.ranking.tie_runs import Floats
from toprank.report.numbers_as_text import count, percent, round_percent
from toprank.report.numbers_as_text import number as number_text
from toprank.report.svg import Figure, count_axis, linear_axis, log_axis, rate_axis, share_axis

Lists = list[tuple[str, RankedList]]
"""Names and lists, of the same rows."""

# The figures are narrower than a page.
COLUMNS = 400
BINS = 48
# Scores are far where the range of all is so many times that of the bulk, which lacks this share at either end.
WIDER = 1.3
TAIL = 0.005


def roc(lists: Lists) -> Figure:
    """True positive rate by false positive rate, few false alarms at large."""
    ranked = lists[0][1]
    figure = Figure(
        "roc",
        "Recall by false positive rate",
        "The share of positives found, by the share of negatives that become alerts, on a logarithmic axis.",
        rate_axis("false positive rate (logarithmic)", 1 / ranked.negatives),
        share_axis("recall"),
        n_lists=len(lists),
    )
    chance = np.geomspace(figure.x.low, 1.0, 60)
    figure.line("reference", chance, chance, "random order")
    for kind, name, one in _drawn("curve", lists):
        curve = RocCurve.from_ranking(one)
        kept = thin(curve.fpr, curve.tpr, logarithmic=True, columns=COLUMNS)
        figure.steps(kind, curve.fpr[kept], curve.tpr[kept], name)
    return figure


def precision_at_k(lists: Lists, confidence: float) -> Figure:
    """Precision by the number of alerts, with exact limits."""
    ranked = lists[0][1]
    figure = Figure(
        "precision-at-k",
        "Precision by number of alerts",
        f"Share of positives among the k best rows, with exact {round_percent(confidence)} limits for each k alone.",
        count_axis("number of alerts k (logarithmic)", ranked.total),
        share_axis("precision"),
        n_lists=len(lists),
    )
    base = ranked.positives / ranked.total
    curves = []
    for kind, name, one in _drawn("band", lists):
        curve = PrecisionAtKCurve.from_ranking(one, confidence=confidence)
        kept = thin(curve.k, curve.precision, logarithmic=True, columns=COLUMNS // 4)
        limits = f"{round_percent(confidence)} limits" + (f" of {name}" if len(lists) > 1 else "")
        figure.area(kind, curve.k[kept], curve.lower[kept], curve.upper[kept], limits)
        curves.append((curve.k[kept], curve.precision[kept]))
    figure.line("reference", [1.0, figure.x.high], [base, base], f"base rate {percent(base)}")
    for (kind, name, _), line in zip(_drawn("curve", lists), curves, strict=True):
        figure.line(kind, *line, name)
    return figure


def precision_recall(lists: Lists) -> Figure:
    """Precision by recall, nothing interpolated."""
    ranked = lists[0][1]
    figure = Figure(
        "precision-recall",
        "Precision by recall",
        "How clean the list is when it holds a given share of the positives.",
        share_axis("recall"),
        share_axis("precision"),
        n_lists=len(lists),
    )
    base = ranked.positives / ranked.total
    figure.line("reference", [0.0, 1.0], [base, base], f"base rate {percent(base)}")
    for kind, name, one in _drawn("curve", lists):
        curve = PrecisionRecallCurve.from_ranking(one)
        kept = thin(curve.recall, curve.precision, columns=COLUMNS)
        figure.line(kind, curve.recall[kept], curve.precision[kept], name)
    return figure


def _drawn(mark: str, lists: Lists) -> list[tuple[str, str, RankedList]]:
    """The kind of a mark for each list, with its name and itself."""
    return [(f"{mark} list-{i}", name, ranked) for i, (name, ranked) in enumerate(lists)]


def densities(ranked: RankedList, threshold: float | None, *, number: int = 0, of: str = "") -> Figure:
    """Histograms of the scores of both classes, each scaled to sum 1; far scores are in the outermost bins.

    Scores of different lists have different units, so each list, by its `number`, has a figure; `of` names it.
    """
    edges = score_edges(ranked, threshold)
    histogram = ScoreHistogram.from_ranking(ranked, bins=BINS if edges is None else edges, threshold=threshold)
    positives, negatives = histogram.positives / ranked.positives, histogram.negatives / ranked.negatives
    # the outermost bins reach to the last scores, and are drawn as wide as the others
    drawn = histogram.edges.copy()
    if edges is not None:
        drawn[0], drawn[-1] = 2 * drawn[1] - drawn[2], 2 * drawn[-2] - drawn[-3]
    figure = Figure(
        f"densities-{number}",
        f"Scores of both classes{f', {of}' if of else ''}",
        "Histograms, each class scaled to sum 100\u00a0%; alerts lie to the right of the line."
        + ("" if edges is None else " The outermost bins hold all scores beyond."),
        linear_axis("score", float(drawn[0]), float(drawn[-1]), number_text),
        share_axis("share of class per bin", 1.05 * float(max(positives.max(), negatives.max()))),
        first_list=number,
    )
    figure.bars("negative", drawn, negatives, f"negatives ({count(ranked.negatives)})")
    figure.bars("positive", drawn, positives, f"positives ({count(ranked.positives)})")
    if threshold is not None and figure.x.low <= threshold <= figure.x.high:
        figure.line("own", [threshold, threshold], [0.0, figure.y.high], "threshold of the model")
    return figure


def score_edges(ranked: RankedList, threshold: float | None) -> Floats | None:
    """Edges of bins for the bulk of the scores, or None if the whole range is not much wider.

    The bulk of a class is all but 0.5 % of its rows at either end. A threshold in it is an edge.
    """
    scores = ranked.scores.astype(np.float64)
    ends = []
    for weights in (ranked.runs.positives, ranked.runs.negatives):
        share = np.cumsum(weights) / weights.sum()
        ends += [scores[np.searchsorted(share, TAIL)], scores[np.searchsorted(share, 1 - TAIL)]]
    low, high = min(ends), max(ends)
    if low == high or scores[0] - scores[-1] < WIDER * (high - low):
        return None
    width = (high - low) / BINS
    start = threshold if threshold is not None and low < threshold < high else low
    edges = start + width * np.arange(np.ceil((low - start) / width), np.floor((high - start) / width) + 1)
    return np.concatenate([[min(scores[-1], edges[0]) - width], edges, [max(scores[0], edges[-1]) + width]])


def convergence(estimator: Any) -> Figure | None:
    """The relative gap by iteration, or None where the solver kept no bound."""
    if "iteration" not in getattr(estimator, "history_", {}):
        return None
    try:
        trace = ConvergenceTrace.from_estimator(estimator)
    except ValueError:  # no lower bound was ever known
        return None
    known = np.isfinite(trace.gap)
    iteration, gap = trace.iteration[known], np.maximum(trace.gap[known], FLOOR)
    low = float(gap.min()) if trace.tol is None else min(float(gap.min()), trace.tol)
    figure = Figure(
        "convergence",
        "Convergence of the fit",
        "How far the objective can be above its optimum at most, relative to itself, by iteration.",
        linear_axis("iteration", 0.0, max(float(iteration[-1]), 1.0), number_text),
        log_axis("relative gap", low, float(gap.max())),
    )
    if trace.tol is not None:
        figure.line("reference", [0.0, figure.x.high], [trace.tol, trace.tol], f"tolerance {number_text(trace.tol)}")
    kept = thin(iteration, gap, columns=COLUMNS)
    figure.line("curve list-0", iteration[kept], gap[kept], "gap")
    if len(kept) <= 30:
        for x, y in zip(*figure.points(iteration[kept], gap[kept]), strict=True):
            figure.marks.append(f'<circle class="vertex" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>')
    return figure
