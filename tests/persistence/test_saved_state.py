"""A fuzz that the schemas themselves generate: no attribute of any class may be other than its schema says."""

import contextlib
import functools
import math
import os
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

import toprank
from toprank import baselines
from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier, TopKClassifier
from toprank.files.model import TableModel
from toprank.online import CBR, OAM, OPAUC, AdaOAM, UniExp
from toprank.persistence import ModelFileError, allowed, encode, load, save
from toprank.persistence.sklearn_state import SKLEARN_HOMES, SKLEARN_STATES
from toprank.persistence.validate import schema_of
from toprank.saved_state import Array, Chosen, Items, Kind, Number, Part, Record, Rule, Table

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(60, 5))
Y = (X[:, 0] + 0.5 * RANDOM.normal(size=60) > 0.5).astype(int)
CATEGORIES = RANDOM.integers(0, 4, size=(60, 5)).astype(float)
MISSING = np.where(X > 1.5, np.nan, X)
SPARSE = sparse.csr_array(np.where(X > 0, X, 0))


def fitted(model, rows=X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, Y)


def table_model():
    scorer = make_pipeline(StandardScaler(), toprank.PatMatNP())
    model = TableModel(scorer, dict.fromkeys("abcde", "number"), as_array=True, target="t", positive="1")
    model.keep_fitted(fitted(scorer))
    counts = {"rows": 60, "positives": 9, "learned_from": 50, "holdout": 0.2, "seed": 0}
    model.summary_ = {
        **{"method": "patmatnp", "parameters": {"alpha": 0.1}, "fitted": "2025-01-01", "held_out": None},
        "data": {"file": "a.csv", "sha256": "0", "labels_sha256": "0", **counts},
        **{"columns": {"a": "number"}, "missing": {"a": 3}, "left_out": {"b": "is empty"}, "n_features": 1},
        **{"certificate": 1e-5, "threshold": {"max_fpr": 0.1, "confidence": 0.95, "n_calibration": 30}},
        "search": {"score": 0.5},
    }
    return model


WARM = {"warm_start": True}
OWN = {
    "TopPush": lambda: fitted(toprank.TopPush()),
    "GrillNP": lambda: fitted(toprank.GrillNP(threshold="trained", max_iter=9)),
    "TopPush-rbf": lambda: fitted(toprank.TopPush(kernel="rbf")),
    "TopPush-sparse": lambda: fitted(toprank.TopPush(kernel="rbf"), SPARSE),
    "TopPush-precomputed": lambda: fitted(toprank.TopPush(kernel="precomputed"), X @ X.T),
    "TopPush-nystroem": lambda: fitted(toprank.TopPush(kernel="rbf", approximation="nystroem", n_components=9)),
    "TopPush-fourier": lambda: fitted(toprank.TopPush(kernel="rbf", approximation="fourier", n_components=9)),
    "TopPush-pairs-warm": lambda: fitted(toprank.TopPush(kernel="rbf", **WARM)),
    "TopPush-apg-warm": lambda: fitted(toprank.TopPush(solver="apg", max_iter=9, **WARM)),
    "PatMat-dual-cd-warm": lambda: fitted(toprank.PatMat(kernel="rbf", solver="dual-cd", max_iter=99, **WARM)),
    "PatMatNP-warm": lambda: fitted(toprank.PatMatNP(**WARM)),
    "WMWRanker": lambda: fitted(toprank.WMWRanker()),
    "WMWRanker-rbf": lambda: fitted(toprank.WMWRanker(kernel="rbf")),
    "WMWRanker-precomputed": lambda: fitted(toprank.WMWRanker(kernel="precomputed"), X @ X.T),
    "RankSVM": lambda: fitted(baselines.RankSVM()),
    "RankSVM-rbf": lambda: fitted(baselines.RankSVM(kernel="rbf", loss="squared_hinge")),
    "PNormPush": lambda: fitted(baselines.PNormPush()),
    "InfinitePush": lambda: fitted(baselines.InfinitePush(penalty="l1", alpha=0.01)),
    "RankBoost": lambda: fitted(baselines.RankBoost(n_estimators=5)),
    "RankNet": lambda: fitted(baselines.RankNet(hidden_units=3, random_state=0)),
    "RankNet-linear": lambda: fitted(baselines.RankNet(hidden_units=0)),
    "AATP": lambda: fitted(baselines.AATP(max_candidates=3, tau=0.3)),
    "OWPC": lambda: fitted(baselines.OWPC()),
    "CostSensitive": lambda: fitted(baselines.CostSensitive()),
    "SVMpAUC": lambda: fitted(baselines.SVMpAUC(max_fpr=0.5)),
    "SVMMAP-rbf": lambda: fitted(baselines.SVMMAP(kernel="rbf", n_components=9)),
    "CBR": lambda: fitted(CBR(threshold_window=20)),
    "CBR-diag": lambda: fitted(CBR(covariance="diag", buffer_size=(4, 9), threshold_window=20)),
    "OAM": lambda: fitted(OAM(random_state=0)),
    "OPAUC": lambda: fitted(OPAUC()),
    "OPAUC-rank": lambda: fitted(OPAUC(rank=2, random_state=0)),
    "AdaOAM": lambda: fitted(AdaOAM()),
    "UniExp": lambda: fitted(UniExp()),
    "NeymanPearsonClassifier": lambda: fitted(NeymanPearsonClassifier(LogisticRegression(), 0.3, 0.7, cv=0.5)),
    "AlertShareClassifier": lambda: fitted(AlertShareClassifier(toprank.PatMatNP(), share=0.1, random_state=0)),
    "TopBlend": lambda: fitted(toprank.TopBlend([("top", toprank.PatMatNP())], alpha=1.0, random_state=0)),
    "TopForest": lambda: fitted(toprank.TopForest(0.2, n_estimators=1, alpha=1.0, honest=False, random_state=0)),
    "LeafFeatures": lambda: fitted(toprank.LeafFeatures(ExtraTreesClassifier(1, max_depth=2), random_state=0)),
    "TopKClassifier": lambda: fitted(TopKClassifier(toprank.PatMatNP(), k=5)),
    "TableModel": table_model,
}
SKLEARN = {
    "Pipeline": lambda: fitted(make_pipeline(StandardScaler(), LogisticRegression())),
    "ColumnTransformer": lambda: fitted(ColumnTransformer([("a", StandardScaler(), [0, 2])], remainder="passthrough")),
    "FeatureUnion": lambda: fitted(make_union(StandardScaler(), PCA(2))),
    "Binarizer": lambda: fitted(Binarizer()),
    "KBinsDiscretizer": lambda: fitted(KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf")),
    "LabelBinarizer": lambda: LabelBinarizer().fit(Y),
    "LabelEncoder": lambda: LabelEncoder().fit(Y),
    "MaxAbsScaler": lambda: fitted(MaxAbsScaler()),
    "MinMaxScaler": lambda: fitted(MinMaxScaler()),
    "Normalizer": lambda: fitted(Normalizer()),
    "OneHotEncoder": lambda: fitted(OneHotEncoder(drop="first", min_frequency=16), CATEGORIES),
    "OrdinalEncoder": lambda: fitted(OrdinalEncoder(min_frequency=16), CATEGORIES),
    "PolynomialFeatures": lambda: fitted(PolynomialFeatures(interaction_only=True, include_bias=False)),
    "PowerTransformer": lambda: fitted(PowerTransformer()),
    "QuantileTransformer": lambda: fitted(QuantileTransformer(n_quantiles=7)),
    "RobustScaler": lambda: fitted(RobustScaler()),
    "StandardScaler": lambda: fitted(StandardScaler(), MISSING),
    "TargetEncoder": lambda: fitted(TargetEncoder(), CATEGORIES),
    "MissingIndicator": lambda: fitted(MissingIndicator(), MISSING),
    "SimpleImputer": lambda: fitted(SimpleImputer(add_indicator=True), MISSING),
    "VarianceThreshold": lambda: fitted(VarianceThreshold()),
    "PCA": lambda: fitted(PCA(3)),
    "TruncatedSVD": lambda: fitted(TruncatedSVD(3, random_state=0)),
    "Nystroem": lambda: fitted(Nystroem(n_components=7, random_state=0)),
    "RBFSampler": lambda: fitted(RBFSampler(n_components=7, random_state=0)),
    "LogisticRegression": lambda: fitted(LogisticRegression()),
    "RidgeClassifier": lambda: fitted(RidgeClassifier()),
    "LinearSVC": lambda: fitted(LinearSVC()),
    "DummyClassifier": lambda: fitted(DummyClassifier()),
    **{
        tree.__name__: lambda tree=tree: fitted(tree(max_depth=2, random_state=0))
        for tree in (DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor)
    },
    **{
        forest.__name__: lambda forest=forest: fitted(forest(1, max_depth=2, random_state=0))
        for forest in (ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor)
    },
    "FrozenEstimator": lambda: FrozenEstimator(fitted(LogisticRegression())),
}
MODELS = OWN | SKLEARN
ON_THEIR_OWN = {name.partition("-")[0] for name in MODELS}


@functools.cache
def model_of(name):
    """A model that tests look at and leave as it is."""
    return MODELS[name]()


def wrong_arrays(rule, array, known):
    """Another type, number of axes, size of an axis, order, and values outside."""
    if sparse.issparse(array):
        wrong = wrong_arrays(rule, array.toarray(), known)
        yield from ((what, sparse.csr_array(one)) for what, one in wrong if np.ndim(one) == 2 and one.dtype.kind == "f")
        return
    yield "a list", [array]
    yield "complex", np.zeros(array.shape, complex)
    yield "in the other byte order", np.zeros(array.shape, ">i4")
    yield "an axis more", array[None]
    for axis, size in enumerate(rule.shape):
        if size is not None:
            yield f"one more along axis {axis}", np.insert(array, 0, 0, axis=axis)
        if size is not None and array.shape[axis]:
            yield f"one less along axis {axis}", np.delete(array, 0, axis=axis)
    if rule.rowwise and sum(size > 1 for size in array.shape) > 1:
        yield "by columns", np.asfortranarray(array)
    if array.dtype.kind in "iuf" and array.size:
        yield from ((f"with {value}", with_one(array, value)) for value in wrong_numbers(rule, array.dtype))


def wrong_numbers(rule, dtype):
    limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    if rule.low is not None:
        yield limits.min
    if rule.high is not None or getattr(rule, "below", None) is not None:
        yield limits.max
    if rule.finite and dtype.kind == "f":
        yield from (math.nan, math.inf, -math.inf)


def with_one(array, value):
    array = array.copy()
    array.flat[-1] = value
    return array


def wrong_scalars(rule, value, known):
    yield from (("a word", "word"), ("a list", [value]), ("a truth value", True), ("a type", float))
    if rule.whole:
        yield "a fraction", 0.5
    if rule.high is not None:
        yield "large", 2**70
    yield from (
        (f"{number}", number) for number in wrong_numbers(rule, np.dtype(float)) if math.isfinite(number) or rule.finite
    )


def wrong_kinds(rule, value, known):
    yield from (("a number", 3.5), ("a list", [value]))
    if rule.among is not None:
        yield "another word", "word"


def wrong_parts(rule, value, known):
    yield from (("a number", 3.5), ("a class", float), ("a word", "word"), ("a list", [value]))


def wrong_items(rule, value, known):
    yield "a tuple", tuple(value)
    if rule.length is not None:
        yield "one more", [*value, *value[:1]] if isinstance(value, list) else np.append(value, None)
    first = next((i for i, item in enumerate(value) if item is not None), None)
    if first is not None:
        yield from (
            (f"[{first}] {what}", replaced(value, first, wrong))
            for what, wrong in wrong_values(rule.each, value[first], known)
        )


def wrong_records(rule, value, known):
    yield from (("short", value[:-1]), ("a dict", {"a": value}))
    for i, place in enumerate(rule.places):
        yield from (
            (f"[{i}] {what}", tuple(replaced(list(value), i, w))) for what, w in wrong_values(place, value[i], known)
        )


def wrong_tables(rule, value, known):
    yield from (("a list", list(value)), ("with another key", {**value, 3: 4}))
    yield from (
        (f"without {key}", {k: v for k, v in value.items() if k != key})
        for key, r in rule.named.items()
        if not r.optional
    )
    others = [key for key in value if key not in rule.named][:1]
    for key in [*(key for key in rule.named if key in value), *others]:
        wrong = wrong_values(rule.named.get(key, rule.others), value[key], known)
        yield from ((f"[{key}] {what}", {**value, key: one}) for what, one in wrong)


def replaced(items, i, item):
    items = items.copy()
    items[i] = item
    return items


GENERATORS = {
    **{Array: wrong_arrays, Number: wrong_scalars, Kind: wrong_kinds, Part: wrong_parts, Items: wrong_items},
    **{Record: wrong_records, Table: wrong_tables},
}


def wrong_values(rule, value, known):
    """Values that a rule must refuse, and what is wrong with them."""
    if not rule.none and type(rule) is not Rule:
        yield "none", None
    if type(rule) is Chosen:
        rule = rule.choose(known, value)
    if value is not None and type(rule) is not Rule:
        yield from GENERATORS[type(rule)](rule, value, known)


def objects_of(item, seen):
    """An object and all that it refers to, each once."""
    if id(item) in seen:
        return
    seen.add(id(item))
    if isinstance(item, list | tuple | dict):
        for inner in item.values() if isinstance(item, dict) else item:
            yield from objects_of(inner, seen)
    elif hasattr(item, "__dict__") and type(item).__module__.startswith(("toprank.", "sklearn.")):
        yield item
        for inner in allowed.state_of(item).values():
            yield from objects_of(inner, seen)


def changes_of(item):
    """Names of attributes, what is wrong, and the wrong value; ... for a missing one."""
    schema, known = schema_of(type(item), trusted=False), vars(item)
    for name, rule in schema.fields.items():
        if name not in known or (rule.when is not None and not rule.when(known)):
            continue
        if not rule.optional and name != schema.fitted:
            yield name, "missing", ...
        for what, wrong in wrong_values(rule, known[name], known):
            yield name, what, wrong


@pytest.fixture
def forged(tmp_path, monkeypatch):
    """Load what a model would be in the file of one who means harm."""
    monkeypatch.setattr(encode, "check_state", lambda *_: None)
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def through_file(model):
        save(model, tmp_path / "model")
        return load(tmp_path / "model")

    return through_file


@pytest.mark.parametrize("name", MODELS)
def test_no_attribute_may_be_other_than_declared(name, forged):
    model = forged(model_of(name))  # without what is not saved
    taken, n_changes = [], 0
    for item in objects_of(model, set()):
        if item is not model and type(item).__name__ in ON_THEIR_OWN:
            continue
        before = dict(vars(item))
        for attribute, what, wrong in changes_of(item):
            vars(item)[attribute] = wrong
            if wrong is ...:
                del vars(item)[attribute]
            with contextlib.suppress(ModelFileError):
                forged(model)
                taken.append(f"{type(item).__name__}.{attribute}: {what}")
            n_changes += 1
            vars(item).clear()
            vars(item).update(before)
    assert taken == []
    assert n_changes >= 4
    forged(model)


@pytest.mark.parametrize("name", OWN)
def test_every_attribute_of_a_fitted_model_is_declared(name):
    for item in objects_of(model_of(name), set()):
        if type(item).__module__.startswith("toprank."):
            parameters = item.get_params(deep=False) if hasattr(item, "get_params") else {}
            assert allowed.state_of(item).keys() <= {*parameters, *item.saved_state.fields}


def test_every_class_that_a_file_may_name_has_a_schema():
    classes = [allowed.AllowedClasses().class_of(name) for name in (*allowed._HOMES, *SKLEARN_HOMES)]
    assert all(schema_of(cls, trusted=False) is not None for cls in classes)
    assert {cls.__name__ for cls in classes if cls.__module__.startswith("sklearn.")} == SKLEARN_STATES.keys()
    met = {type(item) for name in MODELS for item in objects_of(model_of(name), set())}
    of_the_family = {cls for cls in classes if cls.__module__ == "toprank.estimators.top"}
    schemas = {id(schema_of(cls, trusted=False)) for cls in met}
    assert {id(cls.saved_state) for cls in of_the_family} <= schemas  # they share two
    with_fields = [cls for cls in classes if schema_of(cls, trusted=False).fields and cls not in of_the_family]
    assert set(with_fields) <= met


class Bare(BaseEstimator):
    """A class that does not say what its attributes must be."""


def test_a_class_without_a_schema_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setitem(allowed._HOMES, f"{__name__.partition('.')[0]}.Bare", __name__)
    with pytest.raises(
        ModelFileError, match=r"Bare does not say what its attributes must be.*declare them as its saved_"
    ):
        save(Bare(), tmp_path / "model")


def test_an_attribute_that_is_not_declared_hides_nothing(forged):
    model = OWN["TopPush"]()
    model.note = "fine"
    assert forged(model).note == "fine"
    model.remedies = 3
    with pytest.raises(ModelFileError, match="'remedies', which would hide"):
        forged(model)
