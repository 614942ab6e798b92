"""What ``toprank fit`` does between reading and saving."""

from __future__ import annotations

import datetime
import os
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.cli.measures import Measure, Measures, measure
from toprank.cli.methods import complete, last_step, without_search
from toprank.cli.model_files import held_out_rows, sum_of, sum_of_labels
from toprank.cli.output import Output
from toprank.shown_text import printable, shell_word

_SHOWN_PARAMETERS = ("tau", "k", "beta", "alpha", "surrogate", "kernel", "gamma")


@dataclass
class Fitted:
    """A fitted `TableModel` and how it came about."""

    model: Any
    searched: dict[str, Any] | None
    tested: Measures | None
    n_learned: int
    seconds: float
    holdout: float
    seed: int


def fit_rows(
    rows: Any,
    ranker: Any,
    source: Any,
    target: str | None,
    id_column: str | None,
    holdout: float,
    around: dict[str, Any],
    output: Output,
) -> Fitted:
    """Fit to a part of the rows and measure on the rest.

    Parameters
    ----------
    rows : LabelledRows
        The rows.
    ranker : estimator
        The last step.
    source : table
        Where the rows are from.
    target, id_column : str or None
        Names of columns.
    holdout : float
        Share to measure on.
    around : dict
        Arguments of `complete`.
    output : Output
        Where to say what happens.
    """
    from toprank.files import TableModel
    from toprank.files.preprocessing import sparse_pipeline, table_pipeline

    columns = None if rows.columns is None else rows.columns.used
    pipeline = sparse_pipeline(ranker) if columns is None else table_pipeline(columns, ranker)
    estimator = complete(pipeline, verbose=output.shows_progress, **around)
    known = {"target": target, "positive": rows.positive, "id_column": id_column}
    model = TableModel(pipeline, columns, zero_based=getattr(source, "zero_based", False), **known)
    seed = around["seed"]
    train, test = held_out_rows(rows.y, holdout, seed)
    if holdout and not len(test):
        output.note(
            "one class has too few rows to hold some out, so the model is not measured; it learned from all rows"
        )
    start = time.perf_counter()
    part = rows.part(train)
    # a search shows its own progress
    with output.noted_warnings(), nullcontext() if around["search"] else output.progress("fitting"):
        fitted, searched = without_search(estimator.fit(model.rows(part.X), part.y))
    seconds = time.perf_counter() - start
    model.estimator = estimator if searched is None else pipeline
    model.keep_fitted(fitted)
    tested = None
    if len(test):
        held = rows.part(test)
        tested = measure(held.y, model.decision_function(held.X))
        if tested.alerts == 0:
            output.note(
                "no held-out row is above the threshold of this model; set one by --max-fpr 0.01, or take the best "
                "by toprank score --top"
            )
    return Fitted(model, searched, tested, len(train), seconds, holdout if len(test) else 0.0, seed)


def summarised(fitted: Fitted, rows: Any, path: str, method: str) -> None:
    """Put what is known of a fit into the model."""
    from toprank.cli.output import plain

    model = fitted.model
    data = {
        "rows": len(rows.y),
        "positives": int(rows.y.sum()),
        "learned_from": fitted.n_learned,
        "holdout": fitted.holdout,
        "seed": fitted.seed,
        "labels_sha256": sum_of_labels(rows.y),
    }
    model.summary_ = summary_of(model, method, path, data) | plain(
        {
            "missing": _missing(rows),
            "left_out": {} if rows.columns is None else rows.columns.left_out,
            "search": fitted.searched,
            "held_out": None if fitted.tested is None else fitted.tested.record(),
            "seconds": fitted.seconds,
        }
    )


def summary_of(model: Any, method: str, path: str, data: dict[str, Any]) -> dict[str, Any]:
    """What `info` and `evaluate` want to know of any model, in plain data.

    Parameters
    ----------
    model : TableModel
        The fitted model.
    method : str
        Name of the method.
    path : str
        The file that it learned from.
    data : dict
        How many "rows" the file has, how many "positives", how many rows were "learned_from", and which share was held
        out ("holdout", 0 for none) by which "seed".

    Returns
    -------
    dict
        As `summary_` of the model holds it, without what only a fit knows.
    """
    from toprank.cli.output import plain
    from toprank.selection._certificate import certificate_of

    last = last_step(model.estimator_)
    given = last.get_params()
    shown = _SHOWN_PARAMETERS if given.get("kernel", "linear") != "linear" else _SHOWN_PARAMETERS[:-1]
    summary: dict[str, Any] = plain(
        {
            "method": method,
            "parameters": {name: given[name] for name in shown if name in given},
            "data": {"file": os.path.basename(path), "sha256": sum_of(path), **data},
            "columns": {} if model.columns is None else model.columns,
            "missing": {},
            "left_out": {},
            "n_features": int(last.n_features_in_),
            "certificate": certificate_of(model.estimator_),
            "iterations": int(np.max(getattr(last, "n_iter_", 0))),
            "threshold": _threshold(model.estimator_),
            "search": None,
            "held_out": None,
            "fitted": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
    )
    return summary


def _missing(rows: Any) -> dict[str, int]:
    """Columns with missing values and in how many rows."""
    if rows.columns is None:
        return {}
    counts = {}
    for name in rows.columns.used:
        series = rows.X[name]
        counts[name] = int(np.isnan(series.to_numpy()).sum()) if series.dtype.is_float() else series.null_count()
    return {name: count for name, count in counts.items() if count}


def _threshold(estimator: Any) -> dict[str, Any]:
    """What the threshold promises."""
    if hasattr(estimator, "fpr_bound_"):
        return {
            "max_fpr": estimator.max_fpr,
            "confidence": estimator.confidence,
            "fpr_bound": estimator.fpr_bound_,
            "n_calibration": estimator.n_calibration_,
            "guaranteed": estimator.guaranteed_,
        }
    return {"max_fpr": None}


def described(model: Any, data: str, path: str) -> str:
    """A short summary for people."""
    summary = model.summary_
    rows = summary["data"]
    share = 100 * rows["positives"] / rows["rows"]
    lines = [
        f"{summary['method']} fitted to {rows['learned_from']:,} of {rows['rows']:,} rows of {data}, of which "
        f"{rows['positives']:,} ({share:.2g} %) are positive, in {summary['seconds']:.1f} s",
        *(f"  {title:13}{text}" for title, text in facts(summary) if text),
    ]
    if summary["held_out"] is not None:
        lines.append(f"measured on the {summary['held_out']['rows']:,} rows held out:")
        lines.append(_measures_of(summary["held_out"]).text())
    lines.append(f"saved to {path}; next: toprank report {shell_word(data)} --model {shell_word(path)}")
    return "\n".join(lines)


def facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Titles and texts about a model."""
    kinds = list(summary["columns"].values())
    names = {
        "number": ("number", "numbers"),
        "truth": ("true/false", "true/false"),
        "category": ("category", "categories"),
    }
    counted = [f"{kinds.count(kind)} {names[kind][kinds.count(kind) > 1]}" for kind in names if kind in kinds]
    used = ", ".join(counted) + f" → {summary['n_features']} features" if kinds else f"{summary['n_features']} features"
    missing = ", ".join(f"{printable(name)} ({count:,} rows)" for name, count in _first(summary["missing"]))
    left_out = [printable(f"{name}: {reason}") for name, reason in _first(summary["left_out"])]
    parameters = ", ".join(f"{name}={value}" for name, value in summary["parameters"].items())
    searched = "" if summary["search"] is None else f", chosen by search (score {summary['search']['score']:.3f})"
    gap = summary["certificate"]
    certificate = "none for this method" if gap is None else (
        f"duality gap {gap:.1e}: no model of this kind has an objective lower by more than {100 * gap:.1g} %"
    )  # fmt: skip
    return [
        ("columns", used),
        ("missing in", missing),
        *(("left out", text) for text in left_out),
        ("parameters", parameters + searched),
        ("certificate", certificate),
        ("threshold", _threshold_text(summary["threshold"])),
    ]


def _first(items: dict[str, Any], most: int = 8) -> list[tuple[str, Any]]:
    return list(items.items())[:most]


def _threshold_text(threshold: dict[str, Any]) -> str:
    if threshold["max_fpr"] is None:
        return "the one of the method itself; for a bound on false alarms use toprank fit --max-fpr"
    return (
        f"at most {100 * threshold['max_fpr']:g} % false positives with {100 * threshold['confidence']:g} % "
        f"confidence, from {threshold['n_calibration']:,} negatives set aside"
    )


def _measures_of(record: dict[str, Any]) -> Measures:
    """Measures from their record."""
    values = [
        Measure(one["name"], one["title"], *(_number(one[key]) for key in ("value", "lower", "upper")))
        for one in record["measures"]
    ]
    counts = {key: record[key] for key in ("rows", "positives", "alerts", "caught", "confidence")}
    return Measures(**counts, values=values)


def _number(value: float | None) -> float:
    return np.nan if value is None else value
