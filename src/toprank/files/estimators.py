"""What is put around an estimator of scores: preprocessing, a search for its penalty, a threshold with a guarantee.

From columns of a table to features there are only scikit-learn transformers that a model file can hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toprank.files.alert_rule import AlertRule
from toprank.files.columns import CATEGORY, MOST_CATEGORIES
from toprank.files.errors import TableError
from toprank.files.times import Times


def pipeline_of(used: Mapping[str, str] | None, ranker: Any) -> Any:
    """An estimator of scores after the preprocessing of columns, or of svmlight rows if these are None.

    Features of the latter are divided by their largest absolute value, so that they stay sparse. An estimator that
    takes tables as they are, as a forest, stays alone.
    """
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler

    if getattr(ranker, "takes_tables", False):
        if used is None:
            raise TableError.saying(
                "{name} takes tables with named columns, and this is an svmlight file; use a linear model",
                elsewhere="{name} takes tables with named columns, and this is an svmlight file; use {method='linear'}",
                name=type(ranker).__name__,
            )
        return ranker
    if used is not None:
        return table_pipeline(used, ranker)
    return Pipeline([("scale", MaxAbsScaler()), ("rank", ranker)])


def table_pipeline(used: Mapping[str, str], ranker: Any, *, scale: bool = True, fill: float | None = None) -> Any:
    """A pipeline for prepared frames: medians and scaling for numbers, one-hot columns for categories, then the ranker.

    A column of its own marks the missing values of numbers. `used` has names and kinds of the columns in their order;
    see `toprank.files.columns`. `scale` may be False; `fill` is a number that stands for missing ones instead.
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
        if fill is not None:
            imputer = SimpleImputer(strategy="constant", fill_value=float(fill), keep_empty_features=True)
        steps = [("impute", imputer)]
        parts.append(("number", Pipeline([*steps, ("scale", StandardScaler())] if scale else steps), numbers))
    if categories:
        encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES)
        parts.append(("category", encoder, categories))
    transformer = ColumnTransformer(parts, verbose_feature_names_out=False)
    return Pipeline([("columns", transformer), ("rank", ranker)])


def complete(
    pipeline: Any,
    *,
    rule: AlertRule | None = None,
    times: Times | None = None,
    n_negatives: int = 0,
    search: bool = False,
    seed: int = 0,
    jobs: int | None = 1,
    verbose: bool = False,
) -> Any:
    """A pipeline with a search for its penalty and a rule for its threshold around it, as asked for; not fitted.

    `times` are those of the rows if these are in the order of time: then folds are blocks of neighbours. `n_negatives`
    is how many of the rows are negatives.
    """
    from sklearn.model_selection import StratifiedKFold

    from toprank.selection import TopSearchCV

    model = pipeline
    if search:
        folds = StratifiedKFold(5) if times is not None else StratifiedKFold(5, shuffle=True, random_state=seed)
        model = TopSearchCV(pipeline, cv=folds, n_jobs=jobs, verbose=int(verbose))
    return model if rule is None else rule.around(model, times, n_negatives, seed)


def without_search(model: Any) -> tuple[Any, dict[str, Any] | None]:
    """A fitted model with the best candidate in place of a search, and what the search chose."""
    from sklearn.base import clone

    found = model
    if hasattr(model, "threshold_"):  # a rule around the search
        found = model.estimators_[0] if hasattr(model, "estimators_") else getattr(model, "estimator_", model)
    if not hasattr(found, "best_estimator_"):
        return model, None
    best, chosen = found.best_estimator_, {"parameters": found.best_params_, "score": found.best_score_}
    if found is model:
        return best, chosen
    model.estimator_, model.estimator = best, clone(best)
    if hasattr(model, "estimators_"):
        model.estimators_ = [best]
    return model, chosen
