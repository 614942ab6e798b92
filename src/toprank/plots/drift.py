"""Scores of negatives at the fit and now."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from toprank.plots import _style
from toprank.plots._display import Drawing
from toprank.ranking.drift import ScoreDrift, ScoreSample
from toprank.ranking.tie_runs import Floats

_CURVES = {"before": "at the fit", "now": "now"}


class DriftDisplay(Drawing):
    """The share of the negatives above each score, at the fit and now, with the threshold.

    Where the curves cross the threshold are the false positive rates then and now; the axis is logarithmic, as these
    are small. The legend has Fisher's exact test of the two rates. Build it by `from_scores`.

    Parameters
    ----------
    data : ScoreDrift
        The computed data.
    threshold : float, default=0.0
        The score above which a row is an alert.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The two curves.
    line_ : matplotlib Line2D
        The threshold.
    {place}

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.plots import DriftDisplay
    >>> rng = np.random.default_rng(0)
    >>> display = DriftDisplay.from_scores(rng.normal(-3, 1, 5000), rng.normal(-2.5, 1, 5000))
    >>> display.data.is_surprising
    True
    """

    def __init__(self, data: ScoreDrift, *, threshold: float = 0.0) -> None:
        self.data = data
        self.threshold = threshold

    @classmethod
    def from_scores(
        cls,
        before: ScoreSample | ArrayLike,
        now: ScoreSample | ArrayLike,
        *,
        threshold: float = 0.0,
        ax: Any = None,
        plot_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Compute and draw from scores of negatives.

        Parameters
        ----------
        before : array-like of shape (n,) or ScoreSample
            Scores of negatives that the model had not learned from, at the time of the fit.
        now : array-like of shape (m,) or ScoreSample
            Scores of negatives of today.
        threshold : float, default=0.0
            The score above which a row is an alert; that of `decision_function` is 0.
        {drawing}

        {drawn}
        """
        return cls(ScoreDrift.of(before, now, threshold), threshold=threshold).plot(ax=ax, **(plot_kwargs or {}))

    def plot(self, ax: Any = None, *, legend: str | None = "auto") -> Self:
        """Draw both curves.

        Parameters
        ----------
        {ax}
        {legend}

        Returns
        -------
        self
            With `lines_`, `line_`, `ax_` and `figure_`.
        """
        ax = self._start(ax)
        ax.set_yscale("log")
        self.lines_ = []
        for name, label in _CURVES.items():
            sample = getattr(self.data, name)
            scores, shares = tail(sample)
            style = {**_style.line_style(ax), "drawstyle": "steps-post", "markevery": 0.25}
            label = f"{label}: {100 * sample.share:.2g} % of {sample.rows:,} above the threshold"
            self.lines_ += ax.plot(scores, shares, **style, label=label)
        label = f"threshold; equal rates: p = {self.data.p_value:.2g} (Fisher)"
        self.line_ = ax.axvline(self.threshold, color="black", linewidth=1.2, linestyle=(0, (4, 2)), label=label)
        low = min(np.min(line.get_ydata(), initial=0.1) for line in self.lines_)
        _style.set_log_ticks(ax.yaxis, low, 1.0)
        ax.set(xlabel="score", ylabel="share of the negatives above", ylim=(0.7 * low, 1.5))
        _style.add_legend(ax, legend)
        return self


def tail(sample: ScoreSample) -> tuple[Floats, Floats]:
    """Scores that a sample keeps and the share of its rows above each, from the median on and while there are some."""
    scores = np.unique(sample.quantiles)
    shares = sample.share_above(scores)
    kept = (shares > 0) & (shares <= np.min(shares[shares >= 0.5], initial=1.0))
    return scores[kept], shares[kept]
