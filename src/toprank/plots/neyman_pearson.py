"""What a sample of negatives says about the false positive rate of a threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.decision.neyman_pearson import NeymanPearsonClassifier
from toprank.decision.order_statistics import negatives_needed, threshold_rule
from toprank.inspection import last_step
from toprank.plots import _style
from toprank.plots._display import Display
from toprank.ranking.curves import list_lengths
from toprank.ranking.intervals import one_sided_lower, one_sided_upper
from toprank.ranking.ranked_list import RankedList, check_threshold
from toprank.ranking.tie_runs import Floats


@dataclass(frozen=True)
class NeymanPearsonBand:
    r"""Realised false positive rates of the rules "score above t", with exact limits for the true ones.

    For a threshold t with j of n negatives above it, the true rate is at most

    .. math:: U_j = B^{-1}(1 - \delta;\, j + 1,\, n - j)

    with probability 1 − δ, where :math:`B^{-1}` is the quantile of the beta distribution; the lower limit mirrors it.
    Each limit has this confidence for one threshold that is fixed beforehand, or is an order statistic of fixed rank.
    The chosen threshold is the lowest score t of a negative with :math:`U_j \le` max_fpr: an order statistic whose rank
    follows from n, max_fpr and δ alone, so its guarantee is exact, with ties too.

    Thresholds are the distinct scores of the negatives, rising. Where more than 200 negatives lie above, only those
    are kept at which their number grows by about 0.5 %, and the marked one.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.plots import NeymanPearsonBand, RankedList
    >>> ranked = RankedList.from_predictions(np.zeros(300), np.arange(300.0))
    >>> band = NeymanPearsonBand.from_ranking(ranked, max_fpr=0.01, confidence=0.95)
    >>> band.marked, round(float(band.upper[-1]), 4)  # the highest negative; 299 would do
    (299.0, 0.0099)
    """

    thresholds: NDArray[Any]
    fpr: Floats
    lower: Floats
    upper: Floats
    max_fpr: float
    confidence: float
    negatives: int
    needed: int
    """How many negatives a guarantee needs."""
    marked: float | None
    """The threshold of a model, or the chosen one; None if the negatives are too few."""
    is_chosen: bool
    """Whether the marked threshold was chosen on these negatives."""

    @classmethod
    def from_ranking(
        cls, ranked: RankedList, *, max_fpr: float = 0.01, confidence: float = 0.95, threshold: float | None = None
    ) -> Self:
        """Compute the limits, and choose a threshold unless one is given."""
        needed = negatives_needed(max_fpr, confidence)
        ranked.require(negatives=True)
        counts = ranked.runs.negatives
        if np.any(counts != np.round(counts)):
            raise ValueError(
                "the weights of the negatives are not whole numbers, and an exact limit needs counts; leave "
                "sample_weight out"
            )
        present = counts > 0
        above = (ranked.runs.false_positives - counts)[present][::-1]
        scores = ranked.scores[present][::-1]
        n = int(ranked.negatives)
        chosen = None
        if n >= needed:
            chosen = float(scores[np.argmax(above <= n - threshold_rule(n, max_fpr, confidence).rank)])
        marked = chosen if threshold is None else check_threshold(threshold)
        kept = _kept(above, scores, marked)
        above, scores = above[kept], scores[kept]
        return cls(
            thresholds=scores,
            fpr=above / n,
            lower=one_sided_lower(above, n - above, confidence),
            upper=one_sided_upper(above, n - above, confidence),
            max_fpr=max_fpr,
            confidence=confidence,
            negatives=n,
            needed=needed,
            marked=marked,
            is_chosen=threshold is None,
        )

    def at(self, threshold: float) -> tuple[float, float, float]:
        """Realised rate and its lower and upper limit at a threshold, read at the highest kept one not above it."""
        place = int(np.searchsorted(self.thresholds, threshold, side="right")) - 1
        if place < 0:
            n = np.array([float(self.negatives)])
            return 1.0, float(one_sided_lower(n, 0 * n, self.confidence)[0]), 1.0
        return float(self.fpr[place]), float(self.lower[place]), float(self.upper[place])


def _kept(above: Floats, scores: NDArray[Any], marked: float | None) -> NDArray[np.intp]:
    """Numbers of the thresholds to keep; the numbers of negatives above them fall."""
    wanted = np.append(0.0, list_lengths(max(float(above[0]), 1.0)))
    kept = len(above) - 1 - np.searchsorted(above[::-1], wanted[wanted <= above[0]], side="left")
    last = [] if marked is None else [max(int(np.searchsorted(scores, marked, side="right")) - 1, 0)]
    return np.unique(np.append(kept, last).astype(np.intp))


class NeymanPearsonDisplay(Display):
    """Realised false positive rate by threshold, with exact limits for the true one and the chosen threshold.

    With `from_predictions` the scores are those of held-out negatives, and the threshold is chosen on them as
    `toprank.NeymanPearsonClassifier` does; positives may be there and play no part. With `from_estimator` and a fitted
    `NeymanPearsonClassifier`, its own threshold, `max_fpr` and `confidence` are shown, and the limits are those
    that the given rows yield for its true rate. Weights must be whole numbers, for repeated rows.

    The vertical axis is logarithmic from one negative on, with 0 at its end as in `RocAtTopDisplay`. The horizontal
    axis starts where the rate is 30 times `max_fpr`.

    {data_and_name}

    Other Parameters
    ----------------
    max_fpr : float, default=0.01
        The bound on the false positive rate, in the computation.
    confidence : float, default=0.95
        Confidence of each limit.
    threshold : float, optional
        The threshold to mark; by default it is chosen.

    Attributes
    ----------
    data : NeymanPearsonBand
        The computed data.
    line_, upper_ : matplotlib Line2D
        Realised rate and upper limit.
    band_ : matplotlib PolyCollection
        Between the lower and the upper limit.
    point_ : matplotlib Line2D or None
        The upper limit at the marked threshold; None if there are too few negatives to choose one.
    {place}

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.plots import NeymanPearsonDisplay
    >>> scores = np.arange(1000.0)
    >>> display = NeymanPearsonDisplay.from_predictions(np.zeros(1000), scores, max_fpr=0.01)
    >>> display.data.marked  # 4 of 1000 negatives are above
    995.0
    >>> [round(rate, 4) for rate in display.data.at(995.0)]
    [0.004, 0.0014, 0.0091]
    """

    data: NeymanPearsonBand
    data_class = NeymanPearsonBand

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **parameters: Any) -> Self:
        """Compute and draw from a fitted model and rows that it has not seen.

        A `NeymanPearsonClassifier` brings its threshold, `max_fpr` and `confidence`; for any other model the threshold
        is chosen on the negatives among the rows.

        Parameters
        ----------
        {model}
        **parameters
            As in the other displays: `sample_weight`, `pos_label`, `name`, `ax`, `plot_kwargs` and the parameters of
            the computation, see the class.

        {drawn}
        """
        model = last_step(estimator)
        if isinstance(model, NeymanPearsonClassifier):
            own = {"max_fpr": model.max_fpr, "confidence": model.confidence, "threshold": 0.0}
            parameters = {**own, **parameters}
        return super().from_estimator(estimator, X, y, **parameters)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        legend: str | None = "auto",
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the rate, its limits and the marked threshold.

        Parameters
        ----------
        {ax}
        name : str, optional
            Name of the model, instead of that of the display.
        {legend}
        curve_kwargs : dict, optional
            Properties of the line of the realised rate.

        Returns
        -------
        self
            With `line_`, `upper_`, `band_`, `point_`, `ax_` and `figure_`.
        """
        ax = self._start(ax)
        data = self.data
        style = {"color": _style.COLOURS[0], "linewidth": 1.5, "label": "realised FPR"}
        style = _style.with_user_style(style, curve_kwargs)
        x, (fpr, lower, upper) = self._vertices()
        (self.line_,) = ax.plot(x, fpr, drawstyle="steps-post", **style)
        limit = {"color": _style.COLOURS[1], "linewidth": 1.5, "linestyle": _style.DASHES[1]}
        label = f"upper limit, {100 * data.confidence:g} %"
        (self.upper_,) = ax.plot(x, upper, drawstyle="steps-post", label=label, **limit)
        self.band_ = ax.fill_between(x, lower, upper, step="post", color=style["color"], alpha=0.15, linewidth=0)
        _style.logarithmic_from_zero(ax.yaxis, 1 / data.negatives)
        self._set_range(ax)
        ax.axhline(data.max_fpr, color=_style.GREY, linewidth=1, linestyle=(0, (1, 2)))
        self._draw_marked(ax)
        ax.set_xlabel(_style.with_name("threshold on the score", self.name if name is None else name))
        ax.set_ylabel("false positive rate")
        _style.add_legend(ax, legend)
        return self

    def _vertices(self) -> tuple[Floats, list[Floats]]:
        """The steps, with a last one of some length to the right of the highest negative."""
        data = self.data
        x = data.thresholds.astype(np.float64)
        beyond = x[-1] + max(0.08 * (x[-1] - x[0]), 1e-3 * max(abs(x[-1]), 1.0) if len(x) == 1 else 0.0)
        if data.marked is not None and np.isfinite(data.marked):
            beyond = max(beyond, data.marked)
        return np.append(x, beyond), [np.append(y, y[-1]) for y in (data.fpr, data.lower, data.upper)]

    def _set_range(self, ax: Any) -> None:
        """Show the top: from where the rate is 30 times the bound, or the marked threshold if that is lower."""
        data = self.data
        x = self.line_.get_xdata()
        first = int(np.argmax(data.fpr <= 30 * data.max_fpr))
        left = x[first] if data.marked is None else min(x[first], data.marked)
        left = max(left, x[0] - (x[-1] - x[0]))
        margin = 0.03 * (x[-1] - left)
        ax.set_xlim(left - margin, x[-1] + margin)
        highest = min(1.0, max(2 * float(data.upper[first]), 2 * data.max_fpr))
        ax.set_ylim(top=highest)

    def _draw_marked(self, ax: Any) -> None:
        """The marked threshold, with the upper limit of its rate; or why there is none."""
        data = self.data
        self.point_ = None
        if data.marked is None:
            ax.plot([], [], linestyle="none", label=f"no threshold: {data.negatives} negatives, {data.needed} needed")
            return
        if not np.isfinite(data.marked):
            return
        who = "chosen" if data.is_chosen else "given"
        label = f"{who} for FPR ≤ {data.max_fpr:g}: score > {data.marked:.3g}"
        ax.axvline(data.marked, color="black", linewidth=1, linestyle=(0, (4, 2)))
        style = {"color": _style.COLOURS[1], "markeredgecolor": "black", "markersize": 7, "zorder": 4}
        (self.point_,) = ax.plot(data.marked, data.at(data.marked)[2], "o", label=label, **style)
