"""The ROC curve where few false alarms are allowed."""

from __future__ import annotations

from typing import Any

import numpy as np

from toprank.plots import _style
from toprank.plots._curve_display import CurveDisplay
from toprank.ranking.curves import RocCurve
from toprank.ranking.ranked_list import OperatingPoint


class RocAtTopDisplay(CurveDisplay):
    r"""ROC curve with a logarithmic axis of false positive rates and the alert budget marked.

    The height of the curve at u is ``tpr_at_fpr(max_fpr=u)``: a step function, as a threshold takes all rows of a score
    or none.

    Zero: a logarithm has none, but much of the top is there. The axis is logarithmic from the smallest positive
    false positive rate of the data, one negative, and a short linear piece joins that to a tick at exactly 0. No
    rate lies in between, so nothing is hidden; the height at 0 is `positives_at_top`.

    The budget ``max_fpr`` is a vertical line. The budget of k alerts is the line :math:`m\,\mathrm{TPR} +
    n\,\mathrm{FPR} = k` for m positives and n negatives, which is the same for all models; its point is the expected
    one over random tie-breaking, above the steps where k cuts a tie run.

    {curves}

    Examples
    --------
    >>> from toprank.plots import RocAtTopDisplay
    >>> y, score = [1, 1, 0, 1, 0, 0], [0.9, 0.8, 0.7, 0.6, 0.4, 0.2]
    >>> display = RocAtTopDisplay.from_predictions(y, score, max_fpr=0.4, name="model")
    >>> display.curves[0].point.recall  # tpr_at_fpr(y, score, max_fpr=0.4)
    1.0
    >>> display.ax_.get_xscale()
    'symlog'
    """

    data_class = RocCurve
    xlabel = "false positive rate"
    ylabel = "true positive rate"
    xscale = "log"
    step = "post"

    def _draw_chance(self, ax: Any) -> None:
        rates = np.append(0.0, np.geomspace(min(self._smallest(), 1e-3), 1.0, 200))
        _style.reference(ax, rates, rates, "chance", label="chance")

    def _draw_rule(self, ax: Any, point: OperatingPoint) -> None:
        what = f"{point.kind} {point.value:g}"
        if point.kind == "max_fpr":
            _style.reference(ax, [point.value, point.value], [0.0, 1.0], what, dashed=True)
        elif point.kind == "k" and len(self.curves) == 1:
            tpr = np.linspace(0.0, min(1.0, point.value / point.positives), 200)
            fpr = (point.value - point.positives * tpr) / point.negatives
            inside = fpr <= 1
            _style.reference(ax, fpr[inside], tpr[inside], what, dashed=True)

    def _values(self, x: float, y: float) -> str:
        return f"TPR {y:.3g}"
