"""The table that `compare` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, repr=False)
class Comparison:
    """Results of `compare`, one row for each estimator and metric, the best by the first metric on top.

    Attributes
    ----------
    rows : list of dict
        With the keys ``estimator``, ``metric``, ``mean`` and ``std`` over the folds, ``difference`` of the mean to the
        best one, ``p_value`` and ``p_adjusted`` of it (nan for the best), ``fit_seconds`` (mean), ``dual_gap`` (the
        worst certificate over the folds, nan without), ``n_failed``, ``error``, ``n_warnings``, ``warning``.
    fold_scores : dict of dict of list
        The score of each estimator, metric and fold.
    metrics : list of str
        Their names; the first one sorts the table.
    """

    rows: list[dict[str, Any]]
    fold_scores: dict[str, dict[str, list[float]]]
    metrics: list[str]

    def best(self, metric: str | None = None) -> str | None:
        """Name of the estimator with the best mean of a metric, by default the first; None if all failed.

        Parameters
        ----------
        metric : str, optional
            Name of the metric.

        Returns
        -------
        str or None
            Name of an estimator.
        """
        metric = self.metrics[0] if metric is None else metric
        if metric not in self.metrics:
            raise ValueError(f"there is no metric {metric!r} in the table; it has {', '.join(map(repr, self.metrics))}")
        complete = [row for row in self.rows if row["metric"] == metric and not np.isnan(row["mean"])]
        return max(complete, key=lambda row: row["mean"])["estimator"] if complete else None

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            One column for each key of the rows.
        """
        try:
            import pandas  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas, or read .rows") from error
        return pandas.DataFrame(self.rows)

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame.

        Returns
        -------
        polars.DataFrame
            One column for each key of the rows.
        """
        try:
            import polars
        except ImportError as error:
            raise ImportError("to_polars needs polars: pip install toprank[cli], or read .rows") from error
        return polars.DataFrame(self.rows, infer_schema_length=None)

    def __repr__(self) -> str:
        return "\n\n".join(self._block(metric) for metric in self.metrics) + self._troubles()

    def _block(self, metric: str) -> str:
        """The table of one metric."""
        rows = [row for row in self.rows if row["metric"] == metric]
        rows.sort(key=lambda row: np.inf if np.isnan(row["mean"]) else -row["mean"])
        width = max([9, *(len(row["estimator"]) for row in rows)])
        lines = [f"{metric}", f"{'estimator':{width}}  {'mean':>7} {'std':>7} {'p (Holm)':>9} {'fit s':>8} {'gap':>8}"]
        for row in rows:
            p = "best" if row["estimator"] == self.best(metric) else _short(row["p_adjusted"], ".3f")
            lines.append(
                f"{row['estimator']:{width}}  {_short(row['mean'], '.4f'):>7} {_short(row['std'], '.4f'):>7} {p:>9} "
                f"{_short(row['fit_seconds'], '.3f'):>8} {_short(row['dual_gap'], '.0e'):>8}"
            )
        return "\n".join(lines)

    def _troubles(self) -> str:
        """Errors and warnings, once for each estimator."""
        lines = []
        for row in self.rows:
            if row["metric"] != self.metrics[0]:
                continue
            if row["error"]:
                lines.append(f"{row['estimator']} failed in {row['n_failed']} folds: {row['error']}")
            if row["warning"]:
                lines.append(f"{row['estimator']}, {row['n_warnings']} warnings: {row['warning']}")
        return "\n\n" + "\n".join(lines) if lines else ""


def _short(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)
