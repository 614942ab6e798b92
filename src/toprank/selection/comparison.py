"""The table that `compare` returns."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

_HEAD = ("estimator", "mean", "std", "p (Holm)", "fit s", "gap")
# Styles of the table in a notebook: no colour of its own but that of the bar, so it is readable on light and on dark.
_PAGE = "overflow-x:auto"
_TABLE = "border-collapse:collapse;margin:0 0 1em;font-variant-numeric:tabular-nums"
_CAPTION = "text-align:left;font-weight:600;padding:4px 8px"
_LEFT, _RIGHT = "text-align:left;padding:2px 8px", "text-align:right;padding:2px 8px"
_BAR = "background:linear-gradient(to right,rgba(70,130,200,.3) {width:.1f}%,transparent 0)"


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

    def _repr_html_(self) -> str:
        """The tables as HTML, for notebooks."""
        blocks = "".join(self._html_block(metric) for metric in self.metrics)
        troubles = "".join(f"<p>{escape(line)}</p>" for line in self._troubles().split("\n") if line)
        return f'<div style="{_PAGE}">{blocks}{troubles}</div>'

    def _html_block(self, metric: str) -> str:
        """The table of one metric, with a bar from 0 to 1 for each mean where all are in between."""
        rows = self._sorted(metric)
        drawn = all(0 <= row["mean"] <= 1 for row in rows if not np.isnan(row["mean"]))
        head = "".join(f'<th style="{_LEFT if i == 0 else _RIGHT}">{name}</th>' for i, name in enumerate(_HEAD))
        lines = []
        for row in rows:
            name, mean, *others = self._cells(row)
            bar = f"{_BAR.format(width=100 * row['mean'])}" if drawn and not np.isnan(row["mean"]) else ""
            weight = "font-weight:600" if row["estimator"] == self.best(metric) else ""
            cells = "".join(f'<td style="{_RIGHT}">{escape(cell)}</td>' for cell in others)
            first = f'<th scope="row" style="{_LEFT};{weight or "font-weight:400"}">{escape(name)}</th>'
            lines.append(f'<tr>{first}<td style="{_RIGHT};{bar}">{escape(mean)}</td>{cells}</tr>')
        return (
            f'<table style="{_TABLE}"><caption style="{_CAPTION}">{escape(metric)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        )

    def _sorted(self, metric: str) -> list[dict[str, Any]]:
        """The rows of one metric, the best mean first and failures last."""
        rows = [row for row in self.rows if row["metric"] == metric]
        return sorted(rows, key=lambda row: np.inf if np.isnan(row["mean"]) else -row["mean"])

    def _cells(self, row: dict[str, Any]) -> tuple[str, ...]:
        """What is shown of a row, in the order of the head."""
        p = "best" if row["estimator"] == self.best(row["metric"]) else _short(row["p_adjusted"], ".3f")
        numbers = [_short(row["mean"], ".4f"), _short(row["std"], ".4f"), p]
        return row["estimator"], *numbers, _short(row["fit_seconds"], ".3f"), _short(row["dual_gap"], ".0e")

    def __repr__(self) -> str:
        return "\n\n".join(self._block(metric) for metric in self.metrics) + self._troubles()

    def _block(self, metric: str) -> str:
        """The table of one metric."""
        rows = self._sorted(metric)
        width = max([9, *(len(row["estimator"]) for row in rows)])
        line = "{:{width}}  {:>7} {:>7} {:>9} {:>8} {:>8}"
        lines = [line.format(*cells, width=width) for cells in (_HEAD, *map(self._cells, rows))]
        return "\n".join([metric, *lines])

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
