"""Displays of a curve, of one model or of the models of several folds."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length

from toprank.inspection import model_name
from toprank.plots import _style
from toprank.plots._display import Display, scores_of
from toprank.ranking.curves import TopCurve
from toprank.ranking.intervals import Band, fold_band
from toprank.ranking.ranked_list import OperatingPoint, RankedList
from toprank.ranking.thinning import thin
from toprank.ranking.tie_runs import Floats

# A label of more characters is broken, so that it fits above axes of 3.5 inches.
LABEL_WIDTH = 36


class CurveDisplay(Display):
    """Base of the displays with one line a model; a subclass adds labels, scales and reference lines."""

    xlabel: ClassVar[str]
    ylabel: ClassVar[str]
    xscale: ClassVar[str] = "linear"
    step: ClassVar[str | None] = None
    """How the line goes from corner to corner: "post", "pre", or straight."""
    highest: ClassVar[float] = 1.0
    """The largest possible value."""

    def __init__(
        self, curves: Any, *, name: str | None = None, test_over_train: float | None = None, confidence: float = 0.95
    ) -> None:
        self.curves: list[Any] = [curves] if isinstance(curves, TopCurve) else list(curves)
        super().__init__(self.curves, name=name)
        self.test_over_train = test_over_train
        self.confidence = confidence
        self.band = self._band()

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        confidence: float = 0.95,
        name: str | None = None,
        ax: Any = None,
        plot_kwargs: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> Self:
        """Compute and draw the mean curve of the folds with a confidence band, see `fold_band`.

        Parameters
        ----------
        cv_results : dict
            Result of ``cross_validate(..., return_estimator=True, return_indices=True)``.
        X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
            The rows given to `cross_validate`.
        y : array-like of shape (n,)
            Their labels.
        {sample_weight}
        pos_label : label, optional
            The positive class; by default the second of the classes of the models.
        confidence : float, default=0.95
            Confidence of the band, for each place alone.
        name : str, optional
            Name in the legend; by default that of the class of the models.
        {drawing}
        **parameters
            Parameters of the computation, see the class; k alerts are counted in the test part of each fold.

        {drawn}
        """
        cls._check_parameters(parameters)
        train, test = _check_folds(cv_results, X)
        check_consistent_length(X, y, sample_weight)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        curves = []
        for estimator, rows in zip(cv_results["estimator"], test, strict=True):
            labels = _safe_indexing(y, rows)
            scores, label, threshold = scores_of(estimator, _safe_indexing(X, rows), pos_label, labels)
            part = None if weight is None else weight[rows]
            ranked = RankedList.from_predictions(labels, scores, sample_weight=part, pos_label=label)
            curves.append(cls.data_class.from_ranking(ranked, **cls._with_threshold(parameters, threshold)))
        ratio = float(np.mean([len(b) / len(a) for a, b in zip(train, test, strict=True)]))
        name = model_name(cv_results["estimator"][0]) if name is None else name
        display = cls(curves, name=name, test_over_train=ratio, confidence=confidence)
        return display.plot(ax=ax, **(plot_kwargs or {}))

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        xscale: str | None = None,
        legend: str | None = "auto",
        plot_chance_level: bool = True,
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the curve; each further curve on the same axes gets another colour, dashes and marker.

        Parameters
        ----------
        {ax}
        name : str, optional
            Name in the legend, instead of that of the display.
        xscale : {"log", "linear"}, optional
            Scale of the horizontal axis, by default the one that the class states.
        {legend}
        plot_chance_level : bool, default=True
            Whether to draw what a random order gives.
        curve_kwargs : dict, optional
            Properties of the line.

        Returns
        -------
        self
            With `line_`, `band_`, `point_`, `ax_` and `figure_`.
        """
        xscale = self.xscale if xscale is None else xscale
        if xscale not in ("log", "linear"):
            raise ValueError(f"xscale must be 'log' or 'linear', got {xscale!r}")
        ax = self._start(ax)
        style = _style.with_user_style(_style.line_style(ax), curve_kwargs)
        x, y = self._vertices(xscale == "log")
        drawstyle = "default" if self.step is None else f"steps-{self.step}"
        label = self._label(self.name if name is None else name)
        (self.line_,) = ax.plot(x, y, **{"drawstyle": drawstyle, "label": label, **style})
        self._draw_band(ax, xscale == "log")
        self._set_axes(ax, xscale == "log")
        if plot_chance_level:
            self._draw_chance(ax)
        self._draw_point(ax)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        _style.add_legend(ax, legend)
        return self

    def _band(self) -> Band | None:
        """The mean of the folds and its band; None for one curve."""
        if len(self.curves) == 1:
            return None
        if self.test_over_train is None:
            raise ValueError("several curves are those of folds and need test_over_train, the ratio of their rows")
        places = np.unique(np.concatenate([c.x[thin(c.x, c.y, logarithmic=self.xscale == "log")] for c in self.curves]))
        places = places[places <= min(curve.x[-1] for curve in self.curves)]
        values = np.array([curve.at(places) for curve in self.curves])
        return fold_band(places, values, self.test_over_train, self.confidence, self.highest)

    def _vertices(self, logarithmic: bool) -> tuple[Floats, Floats]:
        """Vertices of the line, thinned."""
        x, y = (self.curves[0].x, self.curves[0].y) if self.band is None else (self.band.x, self.band.mean)
        kept = thin(x, y, logarithmic=logarithmic)
        return x[kept], y[kept]

    def _label(self, name: str | None) -> str | None:
        """Name and the values at the operating point, as far as there are such."""
        parts = [part for part in (name, self._point_note()) if part]
        return (", " if sum(map(len, parts)) <= LABEL_WIDTH else ",\n").join(parts) or None

    def _point_note(self) -> str:
        points, (x, y) = self._points()
        if not points:
            return ""
        nothing = "no alerts" if len(points) == 1 else "no alerts in a fold"
        return f"{points[0].rule}: {self._values(x, y) if np.isfinite(y) else nothing}"

    def _points(self) -> tuple[list[OperatingPoint], tuple[float, float]]:
        """The operating points of the curves and where they lie, on average."""
        points = [curve.point for curve in self.curves if curve.point is not None]
        if not points:
            return [], (np.nan, np.nan)
        x, y = np.mean([curve.locate(point) for curve, point in zip(self.curves, points, strict=True)], axis=0)
        return points, (float(x), float(y))

    def _draw_band(self, ax: Any, logarithmic: bool) -> None:
        self.band_ = None
        if self.band is None:
            return
        kept = thin(self.band.x, self.band.mean, logarithmic=logarithmic)
        self.band_ = ax.fill_between(
            self.band.x[kept],
            self.band.lower[kept],
            self.band.upper[kept],
            step=self.step,
            **_style.band_style(ax, self.line_.get_color()),
        )
        folds = f", mean of {len(self.curves)} folds" if len(self.curves) > 1 else ""
        note = f"{100 * self.confidence:g} % band{folds}"
        if note not in ax.get_legend_handles_labels()[1]:
            self.band_.set_label(note)

    def _set_axes(self, ax: Any, logarithmic: bool) -> None:
        """Scales and limits, here of rates on both axes."""
        if logarithmic:
            _style.logarithmic_from_zero(ax.xaxis, self._smallest())
        else:
            ax.set_xscale("linear")
            ax.set_xlim(-0.01, 1.01)
        ax.set_ylim(-0.02, 1.04)

    def _smallest(self) -> float:
        """The smallest positive x of the curves."""
        return float(min(curve.x[np.searchsorted(curve.x, 0.0, side="right")] for curve in self.curves))

    @property
    def _base_rate(self) -> float:
        """The share of positives, of folds their mean."""
        return float(np.mean([curve.ranked.positives / curve.ranked.total for curve in self.curves]))

    def _draw_chance(self, ax: Any) -> None:
        """What a random order gives."""

    def _draw_point(self, ax: Any) -> None:
        """The operating point: the marker of the curve, larger and with a black edge."""
        self.point_ = None
        points, place = self._points()
        if not points:
            return
        self._draw_rule(ax, points[0])
        style = {"color": self.line_.get_color(), "marker": self.line_.get_marker(), "linestyle": "none"}
        edge = {"markersize": 8, "markeredgecolor": "black", "markeredgewidth": 1.2}
        (self.point_,) = ax.plot(*place, **style, **edge, zorder=4, clip_on=False)

    def _draw_rule(self, ax: Any, point: OperatingPoint) -> None:
        """The budget as a line."""

    def _values(self, x: float, y: float) -> str:
        """The values at the operating point, for the legend."""
        return f"{y:.3g}"


def _check_folds(cv_results: Any, X: Any) -> tuple[Any, Any]:
    """The row numbers of the training and the test parts."""
    for key in ("estimator", "indices"):
        if key not in cv_results:
            raise ValueError(
                f"cv_results has no {key!r}; call cross_validate(..., return_estimator=True, return_indices=True)"
            )
    train, test = cv_results["indices"]["train"], cv_results["indices"]["test"]
    if len(test) < 2:
        raise ValueError(f"a band needs at least two folds, got {len(test)}; use from_estimator for one model")
    last = max(int(np.max(part)) for part in [*train, *test])
    if last >= _num_samples(X):
        raise ValueError(
            f"X has {_num_samples(X)} rows, but the folds name row {last}; give the X and y that cross_validate got"
        )
    return train, test
