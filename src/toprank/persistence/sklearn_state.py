"""Schemas of the scikit-learn classes that a model file may name; see `toprank.saved_state`.

Their parameters are checked by scikit-learn itself. Of their state the sizes are checked against each other, and what
compiled code of SciPy or scikit-learn uses as an index.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from toprank.persistence.tree_state import TREE_STATES
from toprank.saved_state import (
    FEATURES,
    FLAG,
    JOBS,
    LABEL_TYPES,
    WORD,
    Array,
    Chosen,
    Items,
    Kind,
    Known,
    Number,
    Part,
    Record,
    Rule,
    Schema,
    Table,
    count,
)

_LARGEST_EXPANSION = 2**31
_FEATURES = "n_features_in_"
_A_FEATURE = Array("f", (_FEATURES,), finite=False)
_A_FEATURE_OR_NONE = Array("f", (_FEATURES,), finite=False, none=True)
_LABELS = Array(LABEL_TYPES, (None,))
_COMPONENTS = Array("f", ("n_kept", _FEATURES), finite=False, sparse=True)
_A_COMPONENT = Array("f", ("n_kept",), finite=False)
_METHODS = ("fit", "transform", "decision_function", "predict")
_STEP = Part(_METHODS, ("passthrough", "drop"), none=True)
_NAMED_STEP = Record((WORD, _STEP))
_STATELESS = Schema({}, fitted=None)


def _fitted(fitted: str, relations: Any = None, **fields: Rule) -> Schema:
    return Schema({**FEATURES, **fields}, fitted, before=(), relations=relations or {})


_NUMBER_OF_FEATURES = _fitted(_FEATURES)


def _has_infrequent(known: Known) -> bool:
    return bool(known["_infrequent_enabled"])


_CATEGORIES = {
    "categories_": Items(Array(LABEL_TYPES, (None,), finite=False), _FEATURES),
    "_infrequent_enabled": FLAG,
    "_infrequent_indices": Items(Array("i", (None,), low=0, none=True), _FEATURES, when=_has_infrequent),
    "_default_to_infrequent_mappings": Items(Array("i", (None,), low=0, none=True), _FEATURES, when=_has_infrequent),
}


def _mappings(known: Known) -> list[Any]:
    """For each feature the new numbers of its categories, None where they keep their own."""
    mappings: list[Any] = [None] * len(known["categories_"])
    return known["_default_to_infrequent_mappings"] if known["_infrequent_enabled"] else mappings


def _are_ordered(known: Known) -> bool:
    """Numbers are looked up by bisection; nan, if any, is the last."""
    numbers = [values for values in known["categories_"] if values.dtype.kind in "iuf"]
    return all(
        bool((values[1:] > values[:-1])[: len(values) - 1 - int(np.isnan(values[-1:]).sum())].all())
        for values in numbers
    )


def _are_mapped(known: Known) -> bool:
    pairs = zip(_mappings(known), known["categories_"], strict=True)
    return all(mapping is None or (len(mapping) == len(values) and mapping.size) for mapping, values in pairs)


def _outputs_fit(known: Known) -> bool:
    """Whether the columns of a one-hot encoding are those of the categories; SciPy takes them as they are."""
    dropped = known["_drop_idx_after_grouping"]
    dropped = [None] * len(known["categories_"]) if dropped is None else dropped.tolist()
    together = zip(_mappings(known), known["categories_"], dropped, known["_n_features_outs"], strict=True)
    for mapping, values, drop, n_outputs in together:
        n = len(values) if mapping is None else int(mapping.max()) + 1
        if drop is not None and not (isinstance(drop, int) and 0 <= drop < n):
            return False
        if n_outputs != n - (drop is not None):
            return False
    return True


_TYPE = {"a type for its columns": lambda known: np.dtype(known["dtype"]).kind in "biufO"}
_ORDER = {"categories in their order": _are_ordered, "new numbers for its categories": _are_mapped}


def _columns_exist(known: Known) -> bool:
    """Whether columns that are given by their numbers are in the table; names are looked up when it is there."""
    chosen = [columns for *_, columns in known["transformers_"] if not isinstance(columns, slice)]
    numbers = [one for columns in chosen for one in np.ravel(columns) if isinstance(one, Integral)]
    return all(-known[_FEATURES] <= number < known[_FEATURES] for number in numbers)


def _is_expanded(known: Known) -> bool:
    """Whether the number of monomials is the true one: it is the size of an array that is filled without a look."""
    options = {"interaction_only": known["interaction_only"], "include_bias": known["include_bias"]}
    sizes = known[_FEATURES], known["_max_degree"]
    number = PolynomialFeatures._num_combinations
    wanted = number(n_features=sizes[0], min_degree=known["_min_degree"], max_degree=sizes[1], **options)
    full = number(n_features=sizes[0], min_degree=0, max_degree=sizes[1], **options)
    return bool(known["n_output_features_"] == wanted and known["_n_out_full"] == full)


def _ridge(known: Known, value: Any) -> Rule:
    return Array("f", (_FEATURES,) if len(known["classes_"]) == 2 else (None, _FEATURES))


def _intercept(known: Known, value: Any) -> Rule:
    rows = len(np.atleast_2d(known["coef_"]))
    return Array("f", (rows,)) if isinstance(value, np.ndarray) else Number()


def _has_a_row_a_class(known: Known) -> bool:
    rows, n_classes = len(np.atleast_2d(known["coef_"])), len(known["classes_"])
    return n_classes > 1 and rows == (1 if n_classes == 2 else n_classes)


_LINEAR = _fitted(
    "coef_",
    {"a row for each class": _has_a_row_a_class},
    classes_=_LABELS,
    coef_=Array("f", (None, _FEATURES)),
    intercept_=Chosen(_intercept),
)

# By the modules that scikit-learn's own documentation names, and the classes.
_STATES: dict[str, Schema] = {
    "pipeline.Pipeline": Schema(
        {"steps": Items(_NAMED_STEP)}, fitted=None, relations={"a step": lambda known: bool(known["steps"])}
    ),
    "pipeline.FeatureUnion": Schema(
        {"transformer_list": Items(_NAMED_STEP), "transformer_weights": Table(others=Number(), none=True)},
        fitted=None,
        relations=JOBS,
    ),
    "compose.ColumnTransformer": _fitted(
        "transformers_",
        {**JOBS, "columns that there are": _columns_exist},
        transformers_=Items(Record((WORD, Part(_METHODS, ("drop",)), Rule()))),
        _columns=Items(Rule()),
        _remainder=Record((WORD, _STEP, Rule())),
        _transformer_to_input_indices=Table(others=Items(count(0, lambda known: known[_FEATURES] - 1))),
        output_indices_=Table(others=Kind((slice,))),
        sparse_output_=FLAG,
    ),
    "compose.make_column_selector": _STATELESS,
    "preprocessing.Binarizer": _NUMBER_OF_FEATURES,
    "preprocessing.FunctionTransformer": _STATELESS,
    "preprocessing.KBinsDiscretizer": _fitted(
        "bin_edges_",
        bin_edges_=Items(Array("f", (None,)), _FEATURES, np.ndarray),
        n_bins_=Array("i", (_FEATURES,), low=1),
        _encoder=Kind((OneHotEncoder,), optional=True),
    ),
    "preprocessing.LabelBinarizer": Schema({"classes_": _LABELS, "y_type_": WORD, "sparse_input_": FLAG}),
    "preprocessing.LabelEncoder": Schema({"classes_": _LABELS}),
    "preprocessing.MaxAbsScaler": _fitted("scale_", max_abs_=_A_FEATURE, scale_=_A_FEATURE),
    "preprocessing.MinMaxScaler": _fitted(
        "scale_", **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _A_FEATURE)
    ),
    "preprocessing.Normalizer": _NUMBER_OF_FEATURES,
    "preprocessing.OneHotEncoder": _fitted(
        "categories_",
        {**_ORDER, **_TYPE, "columns for its categories": _outputs_fit},
        **_CATEGORIES,
        drop_idx_=Array("O i", (_FEATURES,), none=True),
        _drop_idx_after_grouping=Array("O i", (_FEATURES,), none=True),
        _n_features_outs=Items(count(0), _FEATURES),
    ),
    "preprocessing.OrdinalEncoder": _fitted(
        "categories_",
        {
            **_ORDER,
            **_TYPE,
            "places of missing values in its features": lambda known: (
                known["_missing_indices"].keys() <= set(range(known[_FEATURES]))
            ),
        },
        **_CATEGORIES,
        _missing_indices=Kind((dict,)),
    ),
    "preprocessing.PolynomialFeatures": _fitted(
        "n_output_features_",
        {"the number of its monomials": _is_expanded},
        _min_degree=count(),
        _max_degree=count(),
        n_output_features_=count(0, _LARGEST_EXPANSION),
        _n_out_full=count(0, _LARGEST_EXPANSION),
    ),
    "preprocessing.PowerTransformer": _fitted(
        "lambdas_", lambdas_=_A_FEATURE, _scaler=Kind((StandardScaler,), when=lambda known: bool(known["standardize"]))
    ),
    "preprocessing.QuantileTransformer": _fitted(
        "quantiles_",
        n_quantiles_=count(1),
        references_=Array("f", ("n_quantiles_",)),
        quantiles_=Array("f", ("n_quantiles_", _FEATURES), finite=False),
    ),
    "preprocessing.RobustScaler": _fitted("scale_", center_=_A_FEATURE_OR_NONE, scale_=_A_FEATURE_OR_NONE),
    "preprocessing.StandardScaler": _fitted("scale_", **dict.fromkeys(("mean_", "var_", "scale_"), _A_FEATURE_OR_NONE)),
    "preprocessing.TargetEncoder": _fitted(
        "encodings_",
        {
            **_ORDER,
            "an encoding for each category": lambda known: (
                known["target_type_"] == "multiclass"
                or list(map(len, known["encodings_"])) == list(map(len, known["categories_"]))
            ),
        },
        **_CATEGORIES,
        target_type_=WORD,
        target_mean_=Chosen(
            lambda known, value: Array("f", (None,)) if known["target_type_"] == "multiclass" else Number()
        ),
        encodings_=Items(Array("f", (None,))),
    ),
    "impute.MissingIndicator": _fitted(
        "features_",
        features_=Array("i", (None,), low=0, below=_FEATURES),
        _n_features=count(_FEATURES, _FEATURES),
        _precomputed=FLAG,
    ),
    "impute.SimpleImputer": _fitted(
        "statistics_",
        statistics_=Array(LABEL_TYPES, (_FEATURES,), finite=False),
        indicator_=Part(("missing_values",), none=True),
        _fit_dtype=Kind((np.dtype,)),
        _fill_dtype=Kind((np.dtype,)),
    ),
    "feature_selection.VarianceThreshold": _fitted("variances_", variances_=_A_FEATURE),
    "feature_extraction.FeatureHasher": _STATELESS,
    "decomposition.PCA": _fitted(
        "components_",
        components_=_COMPONENTS,
        mean_=_A_FEATURE,
        explained_variance_=_A_COMPONENT,
        n_components_=count(),
    ),
    "decomposition.TruncatedSVD": _fitted("components_", components_=_COMPONENTS, explained_variance_=_A_COMPONENT),
    "kernel_approximation.Nystroem": _fitted(
        "components_", components_=_COMPONENTS, normalization_=Array("f", ("n_kept", "n_kept"), finite=False)
    ),
    "kernel_approximation.RBFSampler": _fitted(
        "random_weights_",
        random_weights_=Array("f", (_FEATURES, "n_components"), finite=False),
        random_offset_=Array("f", ("n_components",)),
    ),
    "linear_model.LogisticRegression": _LINEAR,
    "linear_model.RidgeClassifier": _LINEAR.extended(
        {"coef_": Chosen(_ridge), "_label_binarizer": Part(("classes_",))}
    ),
    "svm.LinearSVC": _LINEAR,
    "dummy.DummyClassifier": _fitted(
        "class_prior_",
        n_outputs_=count(1, 1),
        n_classes_=count(1),
        classes_=Array(LABEL_TYPES, ("n_classes_",)),
        class_prior_=Array("f", ("n_classes_",), low=0, high=1),
        sparse_output_=FLAG,
        _strategy=Kind((str,), ("most_frequent", "prior", "stratified", "uniform", "constant")),
    ),
    **TREE_STATES,
    "frozen.FrozenEstimator": Schema({"estimator": Part(("fit", "predict"))}, fitted=None),
    **{
        f"model_selection.{name}": _STATELESS
        for name in ("KFold", "ShuffleSplit", "StratifiedKFold", "StratifiedShuffleSplit")
    },
}
SKLEARN_STATES = {name.rpartition(".")[2]: schema for name, schema in _STATES.items()}
SKLEARN_HOMES = {f"sklearn.{cls}": f"sklearn.{module}" for module, _, cls in (name.rpartition(".") for name in _STATES)}
