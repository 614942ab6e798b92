"""How the scores of both classes lie about the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from toprank.plots import _style
from toprank.plots._display import Display
from toprank.ranking.ranked_list import OperatingPoint, RankedList
from toprank.ranking.tie_runs import Floats

# Beyond this the width of an axis overflows.
LARGEST = 1e300
NEGATIVE, POSITIVE = _style.COLOURS[0], _style.COLOURS[1]


@dataclass(frozen=True)
class ScoreHistogram:
    """Weights of the positives and the negatives in bins ``(edges[i], edges[i + 1]]`` of the score.

    The bins are open on the left, as an alert is a score above the threshold, and a threshold in the range is an edge:
    the bins to its right hold the alerts and nothing else.

    Examples
    --------
    >>> from toprank.plots import RankedList, ScoreHistogram
    >>> ranked = RankedList.from_predictions([1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.5, 0.5, 0.2])
    >>> histogram = ScoreHistogram.from_ranking(ranked, threshold=0.5)
    >>> float(histogram.positives[histogram.edges[:-1] >= 0.5].sum())
    2.0
    """

    edges: Floats
    positives: Floats
    negatives: Floats
    ranked: RankedList
    point: OperatingPoint | None

    @classmethod
    def from_ranking(
        cls,
        ranked: RankedList,
        *,
        bins: int | ArrayLike = 50,
        max_fpr: float | None = None,
        k: float | None = None,
        threshold: float | None = None,
    ) -> Self:
        """Count the classes in bins of equal width, or between given edges."""
        ranked.require(positives=True, negatives=True)
        point = ranked.operating_point(max_fpr=max_fpr, k=k, threshold=threshold)
        scores = ranked.scores.astype(np.float64)
        edges = _equal_bins(scores, bins, point) if isinstance(bins, int | np.integer) else _given_bins(scores, bins)
        place = np.searchsorted(edges, scores, side="left") - 1
        positives, negatives = (
            np.asarray(np.bincount(place, weights=weights, minlength=len(edges) - 1), dtype=np.float64)
            for weights in (ranked.runs.positives, ranked.runs.negatives)
        )
        return cls(edges, positives, negatives, ranked, point)


def _equal_bins(scores: Floats, bins: int | np.integer[Any], point: OperatingPoint | None) -> Floats:
    """Edges about a falling list of scores, one of them at the threshold if that is near."""
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins!r}")
    low, high = float(scores[-1]), float(scores[0])
    largest = max(abs(low), abs(high))
    if largest > LARGEST:
        raise ValueError(f"the largest score is {largest:.0e}, too large for an axis; divide the scores by a number")
    width = max((high - low) / int(bins), 16 * float(np.spacing(max(largest, np.finfo(np.float64).tiny))))
    if low == high:
        width = max(abs(low), 1.0) / int(bins)
    start = high
    if point is not None and low - width < point.threshold <= high:
        start = point.threshold
    above, below = int(np.ceil((high - start) / width)), int((start - low) / width) + 1
    edges = start + width * np.arange(-below - 1, above + 2)  # one more on each side, in case of rounding
    first, last = np.searchsorted(edges, low, side="left") - 1, np.searchsorted(edges, high, side="left")
    return np.asarray(edges[first : last + 1])


def _given_bins(scores: Floats, bins: ArrayLike) -> Floats:
    edges = np.asarray(bins, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise ValueError("bins must be a number or at least two rising edges")
    if not (edges[0] < scores[-1] and scores[0] <= edges[-1]):
        raise ValueError(
            f"the edges reach from {edges[0]:g} to {edges[-1]:g}, the scores from {scores[-1]:g} to {scores[0]:g}; the "
            "first edge must be below all scores and the last one not below any"
        )
    return edges


class ScoreDensityDisplay(Display):
    """Histograms of the scores of both classes, with the threshold.

    Histograms and not kernel estimates, which would smear a score that many rows share. Each class is scaled to sum 1,
    so that a rare one is as visible as a frequent one; ``stat="count"`` shows rows on a logarithmic axis instead. Short
    lines at the foot mark the single scores of a class that has few. The bars to the right of the threshold are exactly
    the alerts; where k alerts end inside a tie run, a random part of the rows at the threshold joins them.

    With `from_estimator` the threshold of the model itself is marked, unless another rule is given. Folds have no
    display of this kind: scores of different models are not on one scale.

    {data_and_name}

    Other Parameters
    ----------------
    bins : int or array-like, default=50
        Number of bins of the computation, or their edges.
    max_fpr, k, threshold : float, optional
        The rule that chooses the threshold, as in `RocAtTopDisplay`.

    Attributes
    ----------
    data : ScoreHistogram
        The computed data.
    positives_, negatives_ : matplotlib StepPatch
        The histograms.
    rugs_ : list of matplotlib LineCollection
        The marks of single scores.
    line_ : matplotlib Line2D or None
        The threshold.
    {place}

    Examples
    --------
    >>> from toprank.plots import ScoreDensityDisplay
    >>> y, score = [1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.4, 0.2]
    >>> display = ScoreDensityDisplay.from_predictions(y, score, bins=2, threshold=0.5)
    >>> display.data.positives, display.data.negatives
    (array([0., 2., 1.]), array([2., 1., 0.]))
    """

    data: ScoreHistogram
    data_class = ScoreHistogram
    marks_threshold = True

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        stat: str = "share",
        rug: int = 500,
        legend: str | None = "auto",
    ) -> Self:
        """Draw both histograms.

        Parameters
        ----------
        {ax}
        name : str, optional
            Name of the model, instead of that of the display.
        stat : {"share", "count"}, default="share"
            Share of the class in each bin, or rows on a logarithmic axis.
        rug : int, default=500
            A class with at most this many distinct scores gets a mark for each.
        {legend}

        Returns
        -------
        self
            With `positives_`, `negatives_`, `rugs_`, `line_`, `ax_` and `figure_`.
        """
        if stat not in ("share", "count"):
            raise ValueError(f"stat must be 'share' or 'count', got {stat!r}")
        ax = self._start(ax)
        data = self.data
        heights = [
            np.where(weights > 0, weights, np.nan) / (weights.sum() if stat == "share" else 1.0)  # no line at zero
            for weights in (data.negatives, data.positives)
        ]
        self.negatives_ = ax.stairs(heights[0], data.edges, fill=True, color=NEGATIVE, alpha=0.35)
        ax.stairs(heights[0], data.edges, color=NEGATIVE, linewidth=0.8)
        self.positives_ = ax.stairs(heights[1], data.edges, color=POSITIVE, linewidth=1.4, hatch="////")
        self.negatives_.set_label(f"negatives ({data.ranked.negatives:g})")
        self.positives_.set_label(f"positives ({data.ranked.positives:g})")
        _set_height(ax, np.concatenate(heights), stat)
        self._draw_rugs(ax, rug)
        self._draw_threshold(ax)
        ax.set_xlabel(_style.with_name("score", self.name if name is None else name))
        ax.set_ylabel("share of class per bin" if stat == "share" else "rows per bin")
        _style.add_legend(ax, legend)
        return self

    def _draw_rugs(self, ax: Any, most: int) -> None:
        """Marks at the foot: positives in the upper half, negatives in the lower half of the strip."""
        runs, scores = self.data.ranked.runs, self.data.ranked.scores
        self.rugs_ = []
        for weights, colour, low in ((runs.positives, POSITIVE, 0.04), (runs.negatives, NEGATIVE, 0.005)):
            present = scores[weights > 0]
            if len(present) <= most:
                transform = ax.get_xaxis_transform()
                self.rugs_.append(ax.vlines(present, low, low + 0.03, color=colour, linewidth=0.7, transform=transform))

    def _draw_threshold(self, ax: Any) -> None:
        point = self.data.point
        self.line_ = None
        if point is not None and np.isfinite(point.threshold):
            label = f"{point.rule}: TPR {point.recall:.3g}, FPR {point.fpr:.2g}"
            self.line_ = ax.axvline(point.threshold, color="black", linewidth=1.2, linestyle=(0, (4, 2)), label=label)


def _set_height(ax: Any, heights: Floats, stat: str) -> None:
    """Leave a strip at the foot for the marks."""
    heights = heights[heights > 0]
    top = float(heights.max())
    if stat == "share":
        ax.set_ylim(-0.09 * top, 1.08 * top)
        ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= 1.08 * top])
        return
    low = float(heights.min())
    ax.set_yscale("log")
    decades = max(np.log10(top / low), 1.0)
    ax.set_ylim(low * 10 ** (-0.25 * decades), top * 10 ** (0.08 * decades))
    _style.set_log_ticks(ax.yaxis, low, max(top, 10 * low))
