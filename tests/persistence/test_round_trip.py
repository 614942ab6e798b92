"""What is loaded is what was saved: every estimator, common pipelines, every kind of plain data."""

import math
from functools import cached_property

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

import toprank
from toprank import decision, online
from toprank.datasets import load_bundled
from toprank.persistence import load, save
from toprank.persistence.allowed import _HOMES, AllowedClasses
from toprank.persistence.sklearn_state import SKLEARN_HOMES


def identical(a, b):
    """Equal in type, value and bits, through all containers and attributes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype != object:
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and all(map(identical, a.ravel().tolist(), b.ravel().tolist()))
    if sparse.issparse(a):
        return a.shape == b.shape and all(
            identical(getattr(a, n), getattr(b, n)) for n in ("data", "indices", "indptr")
        )
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(map(identical, a.values(), b.values()))
    if isinstance(a, np.random.RandomState):
        return identical(a.get_state(legacy=False), b.get_state(legacy=False))
    if isinstance(a, np.random.Generator):
        return identical(a.bit_generator.state, b.bit_generator.state)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return a == b and math.copysign(1, a) == math.copysign(1, b) if not math.isnan(a) else math.isnan(b)
    if hasattr(a, "__dict__") and not isinstance(a, type):
        return identical(vars(a), vars(b))
    return bool(a == b)


class Box(BaseEstimator):
    """Any content, as an estimator of a user."""

    def __init__(self, content=None):
        self.content = content


class Doubling(TransformerMixin, BaseEstimator):
    """A transformer of a user."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return 2 * X


@pytest.fixture(scope="module")
def cancer():
    data = load_bundled("breast_cancer")
    return (StandardScaler().fit_transform(data.X)[::4], data.y[::4])


def through_file(model, tmp_path, **options):
    path = tmp_path / "model.toprank"
    save(model, path, **options)
    return load(path, **options)


LINEAR = ["TopPush", "TopPushK", "TauFPL", "TopMeanK", "PatMat", "PatMatNP", "WMWRanker"]
QUICK = {"threshold": "trained", "max_iter": 9}
KERNEL = ["TopPush", "PatMatNP", "TopMeanK"]
KERNELS = {
    "rbf": {"kernel": "rbf"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0},
    "precomputed": {"kernel": "precomputed"},
    "nystroem": {"kernel": "rbf", "approximation": "nystroem", "n_components": 20},
    "fourier": {"kernel": "rbf", "approximation": "fourier", "n_components": 20, "random_state": 0},
}


@pytest.mark.filterwarnings("ignore::toprank.exceptions.DegenerateSolutionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *[pytest.param(name, {}, id=name) for name in LINEAR],
        *[pytest.param(name, QUICK, id=name) for name in ("Grill", "GrillNP")],
        *[pytest.param(n, options, id=f"{n}-{k}") for n in KERNEL for k, options in KERNELS.items()],
        pytest.param("WMWRanker", {"kernel": "rbf"}, id="WMWRanker-rbf"),
        pytest.param("WMWRanker", {"kernel": "rbf", "n_components": 20}, id="WMWRanker-nystroem"),
        pytest.param("TopPush", {"warm_start": True, "kernel": "rbf"}, id="TopPush-warm"),
        pytest.param("TopPush", {"warm_start": True, "solver": "apg"}, id="TopPush-apg-warm"),
        pytest.param("PatMat", {"warm_start": True, "kernel": "rbf", "solver": "dual-cd"}, id="PatMat-dual-cd-warm"),
    ],
)
def test_own_estimators(name, options, cancer, tmp_path):
    X, y = cancer
    X = X @ X.T if options.get("kernel") == "precomputed" else X
    model = getattr(toprank, name)(**options).fit(X, y)
    loaded = through_file(model, tmp_path)
    if not options.get("warm_start"):
        vars(model).pop("_solution", None)
    assert identical(model, loaded)
    score = "predict" if name == "WMWRanker" else "decision_function"
    np.testing.assert_array_equal(getattr(loaded, score)(X), getattr(model, score)(X))
    assert repr(loaded) == repr(model)


ONLINE = {
    "CBR": online.CBR(),
    "CBR-diag": online.CBR(covariance="diag", buffer_size=(10, 20)),
    "OAM": online.OAM(buffer="reservoir", random_state=np.random.RandomState(1)),
    "OPAUC": online.OPAUC(),
    "OPAUC-rank": online.OPAUC(rank=3),
    "AdaOAM": online.AdaOAM(),
    "UniExp": online.UniExp(),
}


@pytest.mark.parametrize("name", ONLINE)
def test_online_models_go_on_in_the_midst_of_a_stream(name, cancer, tmp_path):
    X, y = cancer
    model = clone(ONLINE[name]).partial_fit(X[:70], y[:70], classes=[0, 1])
    loaded = through_file(model, tmp_path)
    assert identical(model, loaded)
    assert identical(model.partial_fit(X[70:], y[70:]), loaded.partial_fit(X[70:], y[70:]))


def test_decisions(cancer, tmp_path):
    X, y = cancer
    scorer = make_pipeline(StandardScaler(), LogisticRegression())
    for model in (
        decision.NeymanPearsonClassifier(scorer, max_fpr=0.2, confidence=0.8, cv=StratifiedKFold(2)),
        decision.NeymanPearsonClassifier(FrozenEstimator(scorer.fit(X, y)), max_fpr=0.2, confidence=0.8),
        decision.TopKClassifier(scorer, k=10),
        decision.AlertShareClassifier(scorer, share=0.1, random_state=0),
    ):
        model.fit(X, y)
        loaded = through_file(model, tmp_path)
        assert identical(model, loaded)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_storages(stored, cancer, tmp_path):
    X, y = stored(cancer[0]), np.where(cancer[1] == 1, "ill", "well")
    model = toprank.TopPush(kernel="rbf", pos_label="well").fit(X, y)
    loaded = through_file(model, tmp_path)
    assert type(loaded.support_vectors_) is type(model.support_vectors_)
    assert loaded.support_vectors_.dtype == model.support_vectors_.dtype
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_loaded_model_goes_on_from_a_warm_start(cancer, tmp_path):
    X, y = cancer
    model = toprank.PatMatNP(warm_start=True).fit(X, y)
    loaded = through_file(model, tmp_path)
    assert identical(vars(loaded.fit(X, y))["coef_"], vars(model.fit(X, y))["coef_"])
    assert loaded.n_iter_ == model.n_iter_


def test_without_a_warm_start_the_file_does_not_grow_with_the_rows(cancer, tmp_path):
    X, y = cancer
    sizes = []
    for repeats in (1, 20):
        save(toprank.TopPush().fit(np.tile(X, (repeats, 1)), np.tile(y, repeats)), tmp_path / "model")
        sizes.append((tmp_path / "model").stat().st_size)
    assert sizes[1] < sizes[0] + 4000  # the history may be longer


STEPS = {
    "StandardScaler": StandardScaler(),
    "MinMaxScaler": MinMaxScaler(),
    "MaxAbsScaler": MaxAbsScaler(),
    "RobustScaler": RobustScaler(),
    "QuantileTransformer": QuantileTransformer(n_quantiles=20),
    "PolynomialFeatures": PolynomialFeatures(interaction_only=True),
    "KBinsDiscretizer": KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"),
    "SimpleImputer": SimpleImputer(add_indicator=True),
    "FunctionTransformer": FunctionTransformer(),
    "PCA": PCA(3),
    "TruncatedSVD": TruncatedSVD(3, random_state=0),
    "Nystroem": Nystroem(n_components=20, random_state=np.random.RandomState(0)),
    "RBFSampler": RBFSampler(random_state=0),
    "union": make_union(StandardScaler(), PCA(2)),
}


@pytest.mark.parametrize("name", STEPS)
def test_pipelines(name, cancer, tmp_path):
    X, y = cancer
    model = make_pipeline(STEPS[name], LogisticRegression()).fit(X, y)
    loaded = through_file(model, tmp_path)
    assert identical(model, loaded)
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    "numbers",
    [["a", "b"], slice(0, 2), make_column_selector(dtype_include=np.number)],
    ids=["names", "slice", "selector"],
)
def test_tables_with_categories_and_missing_values(numbers, cancer, tmp_path):
    X, y = cancer
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0, "red", None), "d": X[:, 3] > 0})
    frame.loc[3, "a"] = np.nan
    frame["e"] = pd.Categorical(np.where(X[:, 4] > 0, "yes", "no"))
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
            ("colour", OneHotEncoder(handle_unknown="ignore", min_frequency=2), ["c"]),
            ("rank", OrdinalEncoder(dtype=np.float32), ["e"]),
            ("target", TargetEncoder(), ["e"]),
        ],
        remainder="passthrough",
    )
    model = make_pipeline(columns, toprank.PatMatNP()).fit(frame, y)
    loaded = through_file(model, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))
    assert identical(model[0], loaded[0])
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d", "e"]


def test_classes_of_a_user(cancer, tmp_path):
    X, y = cancer
    model = make_pipeline(Doubling(), toprank.TopPush()).fit(X, y)
    loaded = through_file(model, tmp_path, trusted=[Doubling])
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


def test_every_class_of_the_tables_exists_and_keeps_its_name():
    allowed = AllowedClasses()
    for name in (*_HOMES, *SKLEARN_HOMES):
        assert allowed.name_of(allowed.class_of(name)) == name


numbers = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(), max_size=5),
    npst.from_dtype(np.dtype("f4")),
    npst.from_dtype(np.dtype(">i2")),
    npst.from_dtype(np.dtype("U3")),
    st.sampled_from(
        [np.bool_(True), np.dtype("f4"), np.dtype(object), np.float64, float, np.number, slice(1, None, 2)]
    ),
)
dtypes = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(),
    npst.floating_dtypes(sizes=(16, 32, 64)),
    npst.complex_number_dtypes(sizes=(64, 128)),
)
arrays = npst.arrays(dtypes, npst.array_shapes(min_dims=0, min_side=0, max_side=4))
keys = st.one_of(st.text(max_size=3), st.integers(), st.floats(allow_nan=False), st.none(), st.booleans())
contents = st.recursive(
    st.one_of(numbers, arrays),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.lists(inner, min_size=1, max_size=4).map(lambda items: np.array([*items, None], dtype=object)[:-1]),
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plain")


@given(contents)
@settings(max_examples=150)
def test_any_plain_data(folder, content):
    assert identical(through_file(Box(content), folder, trusted=[Box]).content, content)


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix", "csc_array", "csc_matrix"])
def test_sparse_matrices(form, tmp_path):
    matrix = getattr(sparse, form)(np.array([[0, 1.5, 0], [np.nan, 0, -0.0]], dtype=np.float32))
    assert identical(through_file(Box(matrix), tmp_path, trusted=[Box]).content, matrix)


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_order_in_memory_is_kept(order, tmp_path):
    array = np.asarray(np.arange(6.0).reshape(2, 3), order=order)
    loaded = through_file(Box(array), tmp_path, trusted=[Box]).content
    np.testing.assert_array_equal(loaded, array)
    assert loaded.flags.f_contiguous == array.flags.f_contiguous
    assert loaded.flags.writeable
    assert loaded.flags.owndata or loaded.base.flags.owndata


@pytest.mark.parametrize(
    ("array", "order"),
    [
        (np.asfortranarray(np.arange(12.0).reshape(3, 4))[:2], "F"),
        (np.asfortranarray(np.arange(24.0).reshape(4, 6))[1:3, ::2], "F"),
        (np.arange(12.0).reshape(3, 4)[:, :2], "C"),
        (np.broadcast_to(np.arange(3.0), (2, 3)), "C"),
        (np.asfortranarray(np.arange(12.0).reshape(3, 4))[:1], "C"),
    ],
    ids=["some-rows", "some-of-both", "some-columns", "repeated", "one-row"],
)
def test_the_order_of_a_part_of_an_array_is_kept(array, order, tmp_path):
    loaded = through_file(Box(array), tmp_path, trusted=[Box]).content
    np.testing.assert_array_equal(loaded, array)
    assert loaded.flags[f"{order}_CONTIGUOUS"]


def test_scores_after_a_randomised_decomposition_have_the_same_bits(tmp_path):
    data = load_bundled("breast_cancer")
    model = make_pipeline(PCA(5, svd_solver="randomized", random_state=0), toprank.PatMatNP(tau=0.05))
    model.fit(data.X, data.y)
    if model[
        0
    ].components_.flags.contiguous:  # in some versions of scikit-learn it is a part of an array in column order
        model[0].components_ = np.asfortranarray(np.vstack([model[0].components_, np.zeros(data.X.shape[1])]))[:5]
    loaded = through_file(model, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(data.X), model.decision_function(data.X))


def test_names_of_columns_that_a_union_keeps(cancer, tmp_path):
    frame = pd.DataFrame(cancer[0][:, :3], columns=list("abc"))
    union = make_union(StandardScaler(), PCA(2)).set_output(transform="pandas")
    model = make_pipeline(union, toprank.PatMatNP()).fit(frame, cancer[1])
    assert isinstance(union._transformers_feature_names_out[0], pd.Index)
    loaded = through_file(model, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))
    assert loaded[0].transform(frame).columns.tolist() == union.transform(frame).columns.tolist()
    assert [list(names) for names in loaded[0]._transformers_feature_names_out] == [list("abc"), ["pca0", "pca1"]]


class Remembering(BaseEstimator):
    """An estimator of a user that keeps what it computed once."""

    @cached_property
    def answer(self):
        return 42


def test_cached_properties_keep_their_values(tmp_path):
    model = Remembering()
    vars(model)["answer"] = 43
    assert through_file(model, tmp_path, trusted=[Remembering]).answer == 43


def test_an_object_met_twice_is_one_object_again(tmp_path):
    array = np.zeros(3)
    loaded = through_file(Box([array, {"same": array}, array[:2]]), tmp_path, trusted=[Box]).content
    loaded[0][1] = 7
    assert loaded[1]["same"][1] == 7
    assert loaded[2][1] == 0  # a view is a copy


def test_random_generators_go_on(tmp_path):
    old, new = np.random.RandomState(3), np.random.default_rng(3)
    old.normal()  # a half-used pair
    new.integers(5, dtype=np.int32)
    again_old, again_new = through_file(Box([old, new]), tmp_path, trusted=[Box]).content
    np.testing.assert_array_equal(old.normal(size=1000), again_old.normal(size=1000))
    np.testing.assert_array_equal(
        new.integers(9, size=9, dtype=np.int32), again_new.integers(9, size=9, dtype=np.int32)
    )
