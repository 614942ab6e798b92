"""What is put around an estimator of scores: preprocessing, a search for its penalty, a threshold with a guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toprank.files.preprocessing import sparse_pipeline, table_pipeline


def pipeline_of(used: Mapping[str, str] | None, ranker: Any) -> Any:
    """An estimator of scores after the preprocessing of columns, or of svmlight rows if these are None."""
    return sparse_pipeline(ranker) if used is None else table_pipeline(used, ranker)


def complete(
    pipeline: Any,
    *,
    max_fpr: float | None = None,
    confidence: float = 0.95,
    search: bool = False,
    seed: int = 0,
    jobs: int | None = 1,
    verbose: bool = False,
) -> Any:
    """A pipeline with a search for its penalty and a threshold with a guarantee around it, as asked for; not fitted."""
    from sklearn.model_selection import StratifiedKFold

    from toprank.decision import NeymanPearsonClassifier
    from toprank.selection import TopSearchCV

    model = pipeline
    if search:
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        model = TopSearchCV(pipeline, cv=folds, n_jobs=jobs, verbose=int(verbose))
    if max_fpr is not None:
        model = NeymanPearsonClassifier(model, max_fpr=max_fpr, confidence=confidence, random_state=seed)
    return model


def without_search(model: Any) -> tuple[Any, dict[str, Any] | None]:
    """A fitted model with the best candidate in place of a search, and what the search chose."""
    from sklearn.base import clone

    if hasattr(model, "best_estimator_"):
        return model.best_estimator_, {"parameters": model.best_params_, "score": model.best_score_}
    if hasattr(model, "estimators_") and hasattr(model.estimators_[0], "best_estimator_"):
        found = model.estimators_[0]
        model.estimators_ = [found.best_estimator_]
        model.estimator_ = found.best_estimator_
        model.estimator = clone(found.best_estimator_)
        return model, {"parameters": found.best_params_, "score": found.best_score_}
    return model, None
