"""What is put around an estimator of scores: preprocessing, a search for its penalty, a threshold with a guarantee.

From columns of a table to features there are only scikit-learn transformers that a model file can hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toprank.files.columns import CATEGORY, MOST_CATEGORIES


def pipeline_of(used: Mapping[str, str] | None, ranker: Any) -> Any:
    """An estimator of scores after the preprocessing of columns, or of svmlight rows if these are None.

    Features of the latter are divided by their largest absolute value, so that they stay sparse.
    """
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler

    if used is not None:
        return table_pipeline(used, ranker)
    return Pipeline([("scale", MaxAbsScaler()), ("rank", ranker)])


def table_pipeline(used: Mapping[str, str], ranker: Any) -> Any:
    """A pipeline for prepared frames: medians and scaling for numbers, one-hot columns for categories, then the ranker.

    A column of its own marks the missing values of numbers. `used` has names and kinds of the columns in their order;
    see `toprank.files.columns`.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    # by place, as a ColumnTransformer looks for each name among all
    numbers = [i for i, kind in enumerate(used.values()) if kind != CATEGORY]
    categories = [i for i, kind in enumerate(used.values()) if kind == CATEGORY]
    parts: list[tuple[str, Any, list[int]]] = []
    if numbers:
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        parts.append(("number", Pipeline([("impute", imputer), ("scale", StandardScaler())]), numbers))
    if categories:
        encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES)
        parts.append(("category", encoder, categories))
    transformer = ColumnTransformer(parts, verbose_feature_names_out=False)
    return Pipeline([("columns", transformer), ("rank", ranker)])


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

    found = model.estimators_[0] if hasattr(model, "estimators_") else model
    if not hasattr(found, "best_estimator_"):
        return model, None
    best, chosen = found.best_estimator_, {"parameters": found.best_params_, "score": found.best_score_}
    if found is model:
        return best, chosen
    model.estimators_, model.estimator_, model.estimator = [best], best, clone(best)
    return model, chosen
