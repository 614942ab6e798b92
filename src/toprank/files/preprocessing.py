"""From columns of a table to features, as scikit-learn transformers that a model file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toprank.files.columns import CATEGORY, MOST_CATEGORIES


def table_pipeline(used: Mapping[str, str], ranker: Any) -> Any:
    """A pipeline for prepared frames: medians and scaling for numbers, one-hot columns for categories, then the ranker.

    `used` has names and kinds of the columns in their order; see `toprank.files.columns`.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder

    # by place, as a ColumnTransformer looks for each name among all
    numbers = [i for i, kind in enumerate(used.values()) if kind != CATEGORY]
    categories = [i for i, kind in enumerate(used.values()) if kind == CATEGORY]
    parts: list[tuple[str, Any, list[int]]] = []
    if numbers:
        parts.append(("number", Pipeline(number_steps()), numbers))
    if categories:
        encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_CATEGORIES)
        parts.append(("category", encoder, categories))
    transformer = ColumnTransformer(parts, verbose_feature_names_out=False)
    return Pipeline([("columns", transformer), ("rank", ranker)])


def number_steps() -> list[tuple[str, Any]]:
    """Steps for numbers: the median for missing values with a column that marks them, then mean 0 and variance 1."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return [("impute", imputer), ("scale", StandardScaler())]


def sparse_pipeline(ranker: Any) -> Any:
    """A pipeline for svmlight rows: features divided by their largest absolute value."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MaxAbsScaler

    return Pipeline([("scale", MaxAbsScaler()), ("rank", ranker)])
