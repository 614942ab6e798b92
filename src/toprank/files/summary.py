"""What is known of a fit, in plain data that a model file can hold."""

from __future__ import annotations

import datetime
import os
from typing import Any

import numpy as np

from toprank.files.content import sum_of
from toprank.inspection import certificate_of, scorer_of
from toprank.plain_data import plain

_SHOWN_PARAMETERS = ("tau", "k", "beta", "alpha", "surrogate", "kernel", "gamma")


def summary_of(
    model: Any, method: str, path: str, data: dict[str, Any], rule: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What `info` and `evaluate` want to know of any fitted `TableModel`, in plain data, without what only a fit knows.

    `data` says how many "rows" the file has, how many "positives", how many rows were "learned_from", and which share
    was held out ("holdout", 0 for none) by which "seed". `rule` is what was asked of the threshold.
    """
    last = scorer_of(model.estimator_)
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
            "threshold": {**(rule or {}), **_threshold(model.estimator_)},
            "search": None,
            "held_out": None,
            "fitted": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
    )
    return summary


def missing_values(frame: Any, columns: Any) -> dict[str, int]:
    """Columns with missing values and in how many rows of a frame."""
    if columns is None:
        return {}
    counts = {}
    for name in columns.used:
        series = frame[name]
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
    if hasattr(estimator, "expected_share_"):
        return {"max_fpr": None, "share": estimator.share, "n_calibration": estimator.n_calibration_}
    return {"max_fpr": None}
