"""How fast a solver closes the duality gap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from toprank.inspection import last_step, model_name
from toprank.plots import _style
from toprank.plots._display import Drawing
from toprank.ranking.tie_runs import Floats

AXES = {"iteration": "iteration", "passes": "passes over the data", "seconds": "time (s)"}
# Up to so many iterations each has a marker: a solver may report only a few, or one.
EVERY_MARKER = 30
FLOOR = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ConvergenceTrace:
    """The relative gap of one fit: no model has an objective lower by more than this share.

    Examples
    --------
    >>> from toprank import PatMatNP
    >>> from toprank.plots import ConvergenceTrace
    >>> model = PatMatNP(tau=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> bool(ConvergenceTrace.from_estimator(model).gap[-1] <= model.tol)
    True
    """

    name: str
    iteration: Floats
    passes: Floats
    seconds: Floats
    gap: Floats
    tol: float | None

    @classmethod
    def from_estimator(cls, estimator: Any, *, name: str | None = None) -> Self:
        """Read `history_`: its ``gap``, or for a pairwise ranker ``suboptimality`` over ``objective``."""
        model = last_step(estimator)
        history = getattr(model, "history_", None)
        if history is None:
            raise ValueError(
                f"{type(model).__name__} has no history_; it must be a fitted estimator of toprank, or a pipeline that "
                "ends with one"
            )
        if "gap" in history:
            gap = np.asarray(history["gap"], dtype=np.float64)
        else:
            gap = np.asarray(history["suboptimality"]) / np.abs(history["objective"])
        if not np.isfinite(gap).any():
            raise ValueError(
                f"{type(model).__name__} has no lower bound of its objective, so there is no gap to draw; choose a "
                "convex formulation or a solver with a certificate"
            )
        columns = {column: np.asarray(history[column], dtype=np.float64) for column in AXES}
        name = model_name(estimator) if name is None else name
        return cls(name=name, gap=gap, tol=getattr(model, "tol", None), **columns)


class ConvergenceDisplay(Drawing):
    """Relative duality gap by iteration, passes over the data or seconds, on a logarithmic axis.

    A gap of zero has no place on such an axis and is drawn at the rounding error 2.2e-16; iterations at which no lower
    bound was known yet are left out. A dotted line shows the tolerance of the models.

    Build it by `from_estimator`, `from_estimators` or `from_cv_results`.

    Parameters
    ----------
    traces : list of ConvergenceTrace
        The data.

    Attributes
    ----------
    traces : list of ConvergenceTrace
        The data.
    lines_ : list of matplotlib Line2D
        One a trace.
    {place}

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import PatMatNP, TopPushK
    >>> from toprank.datasets import load_bundled
    >>> from toprank.plots import ConvergenceDisplay
    >>> data = load_bundled("breast_cancer")
    >>> X = StandardScaler().fit_transform(data.X)
    >>> models = {"TopPushK": TopPushK(k=10).fit(X, data.y), "PatMatNP": PatMatNP(tau=0.05).fit(X, data.y)}
    >>> display = ConvergenceDisplay.from_estimators(models)
    >>> [bool(trace.gap[-1] <= 1e-4) for trace in display.traces]
    [True, True]
    """

    def __init__(self, traces: Iterable[ConvergenceTrace]) -> None:
        self.traces = list(traces)
        if not self.traces:
            raise ValueError("there is no model to draw; give at least one")

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, ax: Any = None, plot_kwargs: dict[str, Any] | None = None
    ) -> Self:
        """Draw the gap of one fitted model, or of a pipeline that ends with it.

        Parameters
        ----------
        estimator : fitted estimator of toprank, or pipeline
            Its `history_` is read.
        name : str, optional
            Name in the legend; by default that of the class.
        {drawing}

        {drawn}
        """
        return cls([ConvergenceTrace.from_estimator(estimator, name=name)]).plot(ax=ax, **(plot_kwargs or {}))

    @classmethod
    def from_estimators(
        cls, estimators: Mapping[str, Any], *, ax: Any = None, plot_kwargs: dict[str, Any] | None = None
    ) -> Self:
        """Draw the gaps of several fitted models.

        Parameters
        ----------
        estimators : dict of str to fitted estimator
            Names in the legend, and models.
        {drawing}

        {drawn}
        """
        traces = [ConvergenceTrace.from_estimator(model, name=name) for name, model in estimators.items()]
        return cls(traces).plot(ax=ax, **(plot_kwargs or {}))

    @classmethod
    def from_cv_results(cls, cv_results: Any, *, ax: Any = None, plot_kwargs: dict[str, Any] | None = None) -> Self:
        """Draw the gaps of the models of all folds.

        Parameters
        ----------
        cv_results : dict
            Result of ``cross_validate(..., return_estimator=True)``.
        {drawing}

        {drawn}
        """
        if "estimator" not in cv_results:
            raise ValueError("cv_results has no 'estimator'; call cross_validate(..., return_estimator=True)")
        models = {f"fold {number}": model for number, model in enumerate(cv_results["estimator"], start=1)}
        return cls.from_estimators(models, ax=ax, plot_kwargs=plot_kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        x: str = "iteration",
        xscale: str = "linear",
        legend: str | None = "auto",
        curve_kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Draw one line a model.

        Parameters
        ----------
        {ax}
        x : {"iteration", "passes", "seconds"}, default="iteration"
            What the horizontal axis counts.
        xscale : {"linear", "log"}, default="linear"
            Its scale; a logarithmic one has no place for what lies at 0.
        {legend}
        curve_kwargs : dict, optional
            Properties of the lines.

        Returns
        -------
        self
            With `lines_`, `ax_` and `figure_`.
        """
        if x not in AXES:
            raise ValueError(f"x must be one of {', '.join(map(repr, AXES))}, got {x!r}")
        if xscale not in ("linear", "log"):
            raise ValueError(f"xscale must be 'linear' or 'log', got {xscale!r}")
        ax = self._start(ax)
        ax.set(xscale=xscale, yscale="log")
        self.lines_ = []
        for trace in self.traces:
            known = np.isfinite(trace.gap) & ((getattr(trace, x) > 0) | (xscale == "linear"))
            style = {**_style.line_style(ax), "label": trace.name}
            if np.count_nonzero(known) <= EVERY_MARKER:
                style["markevery"] = None
            style = _style.with_user_style(style, curve_kwargs)
            self.lines_ += ax.plot(getattr(trace, x)[known], np.maximum(trace.gap[known], FLOOR), **style)
        self._draw_tolerances(ax)
        ax.set(xlabel=AXES[x], ylabel="relative duality gap")
        if x == "iteration" and xscale == "linear":
            ax.xaxis.get_major_locator().set_params(integer=True)
        _style.add_legend(ax, legend)
        return self

    def _draw_tolerances(self, ax: Any) -> None:
        ends = np.concatenate([line.get_xdata() for line in _style.curves_on(ax)])
        for tol in sorted({trace.tol for trace in self.traces if trace.tol is not None}):
            _style.reference(ax, [ends.min(), ends.max()], [tol, tol], f"tol {tol:g}", label=f"tol {tol:g}")
