"""Find the certificate of a fitted model inside pipelines, searches and wrappers."""

from __future__ import annotations

from math import isfinite
from typing import Any


def certificate_of(model: Any) -> float | None:
    """The relative bound on the suboptimality: `dual_gap_` or that of `WMWRanker`, None if there is none."""
    while not hasattr(model, "dual_gap_"):
        if hasattr(model, "suboptimality_"):
            return float(model.suboptimality_ / model.objective_)
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "estimator_"):
            model = model.estimator_
        elif isinstance(getattr(model, "estimators_", None), list) and model.estimators_:
            gaps = [certificate_of(part) for part in list(model.estimators_)]
            known = [gap for gap in gaps if gap is not None]
            return max(known) if len(known) == len(gaps) else None
        else:
            return None
    return float(model.dual_gap_) if isfinite(model.dual_gap_) else None
