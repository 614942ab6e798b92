"""Displays over the length of the list: precision, gain, lift; and precision by recall."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.plots import _style
from toprank.plots._curve_display import CurveDisplay
from toprank.ranking.curves import GainCurve, LiftCurve, PrecisionAtKCurve, PrecisionRecallCurve, list_lengths
from toprank.ranking.intervals import Band
from toprank.ranking.ranked_list import OperatingPoint
from toprank.ranking.tie_runs import Floats


class PrecisionAtKDisplay(CurveDisplay):
    """Precision of the k best rows by k, with a confidence band and the alert budget marked.

    The height of the curve at k is ``precision_at_k(k=k)``, the expected value over random tie-breaking.

    The band of one model is the exact one of Clopper and Pearson. Given the scores, it covers the mean probability to
    be positive of the k rows, that is the precision that new labels would have on average; for each k alone, not for
    all at once; its `confidence` is a parameter of the computation. The band of folds is that of the mean over models,
    see `from_cv_results`.

    {curves}

    Examples
    --------
    >>> from toprank.plots import PrecisionAtKDisplay
    >>> y, score = [1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.4, 0.2]
    >>> display = PrecisionAtKDisplay.from_predictions(y, score, k=4)
    >>> display.curves[0].point.precision
    0.75
    >>> display.curves[0].lower.round(2)
    array([0.03, 0.16, 0.09, 0.19, 0.15, 0.12])
    """

    data_class = PrecisionAtKCurve
    xlabel = "alerts k (rows)"
    ylabel = "precision at k"
    xscale = "log"

    def _band(self) -> Band | None:
        if len(self.curves) > 1:
            return super()._band()
        (curve,) = self.curves
        self.confidence = curve.confidence
        return Band(curve.k, curve.precision, curve.lower, curve.upper)

    def _set_axes(self, ax: Any, logarithmic: bool) -> None:
        _set_length_axis(ax, logarithmic)
        ax.set_ylim(-0.02, 1.04)

    def _draw_chance(self, ax: Any) -> None:
        _style.reference(ax, self.line_.get_xdata()[[0, -1]], [self._base_rate] * 2, "chance", label="chance")

    def _draw_rule(self, ax: Any, point: OperatingPoint) -> None:
        if point.kind == "k":
            _style.reference(ax, [point.value, point.value], [0.0, 1.0], f"k {point.value:g}", dashed=True)


class PrecisionRecallAtTopDisplay(CurveDisplay):
    """Precision by recall with the operating point.

    One corner a distinct score, nothing interpolated: between two corners the line has the precision of the shortest
    list that finds so many positives. With `from_estimator` the threshold of the model itself is marked, unless
    another rule is given. A rule that takes no row has no precision, and the legend says so.

    {curves}

    Examples
    --------
    >>> from toprank.plots import PrecisionRecallAtTopDisplay
    >>> y, score = [1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.4, 0.2]
    >>> point = PrecisionRecallAtTopDisplay.from_predictions(y, score, threshold=0.5).curves[0].point
    >>> point.precision, point.recall
    (0.75, 1.0)
    """

    data_class = PrecisionRecallCurve
    marks_threshold = True
    xlabel = "recall R"
    ylabel = "precision P"
    step = "pre"

    def _vertices(self, logarithmic: bool) -> tuple[Floats, Floats]:
        x, y = super()._vertices(logarithmic)
        return np.append(0.0, x), np.append(y[0], y)

    def _draw_chance(self, ax: Any) -> None:
        _style.reference(ax, [0.0, 1.0], [self._base_rate] * 2, "chance", label="chance")

    def _values(self, x: float, y: float) -> str:
        return f"P {y:.3g}, R {x:.3g}"


class GainDisplay(CurveDisplay):
    """Cumulative gain: the share of the positives found in a share of the list.

    The height of the curve at a share τ is ``recall_at_k(k=τ n)``, straight along a tie run: the expected value over
    random tie-breaking. Dotted lines show a random and a perfect order.

    {curves}

    Examples
    --------
    >>> from toprank.plots import GainDisplay
    >>> y, score = [1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.4, 0.2]
    >>> GainDisplay.from_predictions(y, score, k=3).curves[0].point.recall
    0.6666666666666666
    """

    data_class = GainCurve
    xlabel = "share of the list"
    ylabel = "recall"

    def _vertices(self, logarithmic: bool) -> tuple[Floats, Floats]:
        """On a logarithmic axis a straight line is bent, so it is drawn through more points of it."""
        x, y = super()._vertices(logarithmic)
        if not logarithmic:
            return x, y
        total = max(curve.ranked.total for curve in self.curves)
        shares = np.union1d(x[x > 0], list_lengths(total) / total)
        return shares, np.mean([curve.at(shares) for curve in self.curves], axis=0)

    def _set_axes(self, ax: Any, logarithmic: bool) -> None:
        _set_length_axis(ax, logarithmic)
        ax.set_ylim(-0.02, 1.04)

    def _draw_chance(self, ax: Any) -> None:
        shares = np.append(0.0, np.geomspace(1e-6, 1.0, 400))
        _style.reference(ax, shares, shares, "chance", label="chance; perfect order")
        _style.reference(ax, shares, np.minimum(shares / self._base_rate, 1.0), "perfect")


class LiftDisplay(CurveDisplay):
    """Lift: how many times richer in positives the best rows are than the whole list.

    The height of the curve at a share τ is ``enrichment_factor(fraction=τ)``, the expected value over random
    tie-breaking. The horizontal axis is logarithmic and starts with one row; the lines show a random order, at 1, and a
    perfect one.

    {curves}

    Examples
    --------
    >>> from toprank.plots import LiftDisplay
    >>> y, score = [1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.4, 0.2]
    >>> LiftDisplay.from_predictions(y, score).curves[0].lift[:2]
    array([2., 2.])
    """

    data_class = LiftCurve
    xlabel = "share of the list"
    ylabel = "lift (× base rate)"
    xscale = "log"
    highest = np.inf

    def _set_axes(self, ax: Any, logarithmic: bool) -> None:
        _set_length_axis(ax, logarithmic)
        best = max(curve.ranked.total / curve.ranked.positives for curve in self.curves)
        top = max([best] + [float(np.max(line.get_ydata())) for line in _style.curves_on(ax)])
        ax.set_ylim(0.0, 1.08 * top)

    def _draw_chance(self, ax: Any) -> None:
        shares = np.geomspace(self.line_.get_xdata()[0], 1.0, 400)
        _style.reference(ax, shares, np.ones(400), "chance", label="chance; perfect order")
        _style.reference(ax, shares, np.minimum(1 / shares, 1 / self._base_rate), "perfect")


def _set_length_axis(ax: Any, logarithmic: bool) -> None:
    """Limits, and for a logarithmic axis ticks, that hold all curves on the axes."""
    ends = np.array([line.get_xdata()[[0, -1]] for line in _style.curves_on(ax)])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    if not logarithmic or low == high:
        ax.set_xscale("linear")
        ax.set_xlim(-0.01 * high, high * 1.01)
        return
    ax.set_xscale("log")
    ax.set_xlim(low / (high / low) ** 0.015, high * (high / low) ** 0.015)
    _style.set_log_ticks(ax.xaxis, low, high)
