"""From which column of a table a feature comes that a model gets after the preparation of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from toprank.arrays import Rows


def source_columns(step: Any, columns: Rows) -> Rows | None:
    """The columns that the features come from which a fitted step makes of some columns, None if that is not known."""
    if isinstance(step, str) or step is None:
        return None if step == "drop" else columns
    if isinstance(step, Pipeline):
        return _through(step, columns)
    if isinstance(step, ColumnTransformer):
        return _of_column_transformer(step, columns)
    if isinstance(step, OneHotEncoder):
        return np.repeat(columns, step._n_features_outs)
    if isinstance(step, SimpleImputer):
        return _of_imputer(step, columns)
    if isinstance(step, MissingIndicator):
        return np.asarray(columns[step.features_])
    if isinstance(step, SelectorMixin):
        return np.asarray(columns[step.get_support()])
    if isinstance(step, OneToOneFeatureMixin) and not isinstance(step, FunctionTransformer):
        return columns
    return None


def _through(pipeline: Any, columns: Rows) -> Rows | None:
    found: Rows | None = columns
    for _, step in pipeline.steps:
        found = None if found is None else source_columns(step, found)
    return found


def _of_column_transformer(step: Any, columns: Rows) -> Rows | None:
    found = np.full(max((part.stop for part in step.output_indices_.values()), default=0), -1)
    for name, transformer, _ in step.transformers_:
        place = step.output_indices_[name]
        if place.stop == place.start:
            continue
        sources = source_columns(transformer, columns[step._transformer_to_input_indices[name]])
        if sources is None or len(sources) != place.stop - place.start:
            return None
        found[place] = sources
    return found


def _of_imputer(step: Any, columns: Rows) -> Rows:
    """Columns without any value are left out, unless they are kept; columns that mark gaps follow."""
    empty = np.array([value != value for value in step.statistics_], dtype=bool)
    kept = columns if step.keep_empty_features else columns[~empty]
    return kept if step.indicator_ is None else np.concatenate([kept, columns[step.indicator_.features_]])
