"""ONNX graphs give the scores of their models: linear ones, kernels, and classifiers of other packages."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, NuSVC

from deployment.running import assert_same, run
from toprank import PatMatNP, TopPush, WMWRanker
from toprank.datasets import load_bundled
from toprank.online import CBR, OPAUC, UniExp
from toprank.persistence import to_onnx


@pytest.fixture(scope="module")
def cancer():
    data = load_bundled("breast_cancer")
    return data.X[::3], data.y[::3]


def scores_of(model, X, input_type="float64"):
    return run(model, X, input_type)[0]


def assert_close(scores, model, X, tolerance=1e-9):
    expected = model.decision_function(X)
    assert scores.shape == expected.shape
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance * np.abs(expected).max())


MODELS = {
    "linear": PatMatNP(),
    "TopPush": TopPush(),
    "rbf": PatMatNP(kernel="rbf"),
    "poly": PatMatNP(kernel="poly", degree=3, coef0=1.0),
    "poly-6": PatMatNP(kernel="poly", degree=6, gamma=0.01, coef0=1.0),
    "poly-0": WMWRanker(kernel="poly", degree=0),
    "sigmoid": PatMatNP(kernel="sigmoid", approximation="nystroem", n_components=30, random_state=0),
    "nystroem": PatMatNP(kernel="rbf", approximation="nystroem", n_components=30, random_state=0),
    "fourier": PatMatNP(kernel="rbf", approximation="fourier", n_components=30, random_state=0),
    "WMWRanker": WMWRanker(),
    "WMWRanker-rbf": WMWRanker(kernel="rbf", n_components=30, random_state=0),
    "CBR": CBR(),
    "OPAUC-rank": OPAUC(rank=3),
    "UniExp": UniExp(),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name, cancer):
    X, y = cancer
    model = make_pipeline(StandardScaler(), MODELS[name]).fit(X, y)
    assert_close(scores_of(model, X), model, X)
    # single precision in the input alone: the difference is that of the rows
    narrow = X.astype(np.float32).astype(np.float64)
    assert_close(scores_of(model, X, "float32"), model, narrow)
    assert_close(scores_of(model, X, "float32"), model, X, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_models_of_single_precision_and_sparse_rows(kernel, dtype, cancer):
    X = StandardScaler().fit_transform(cancer[0])
    model = PatMatNP(kernel=kernel).fit(csr_array(X.astype(dtype)), cancer[1])
    assert_close(scores_of(model, X), model, X, tolerance=1e-5 if dtype == np.float32 else 1e-9)


SCALERS = {
    "standard": StandardScaler(),
    "mean only": StandardScaler(with_std=False),
    "spread only": StandardScaler(with_mean=False),
    "robust": RobustScaler(),
    "largest": MaxAbsScaler(),
    "range": MinMaxScaler(feature_range=(-1, 2)),
    "cut range": MinMaxScaler(feature_range=(0.3, 0.4), clip=True),
    "cut largest": MaxAbsScaler(clip=True),
    "passthrough": "passthrough",
    "two": make_pipeline(RobustScaler(), MaxAbsScaler()),
}


@pytest.mark.parametrize("name", SCALERS)
def test_scalers(name, cancer):
    X, y = cancer
    X = X / X.std(axis=0)
    scaler = SCALERS[name]
    steps = [*scaler.steps] if isinstance(scaler, Pipeline) else [("scaler", scaler)]
    model = Pipeline([*steps, ("model", PatMatNP())]).fit(X, y)
    assert_same(model, np.vstack([X, 2 * X]))


def test_no_support_vectors(cancer):
    X, y = cancer
    model = PatMatNP(kernel="rbf").fit(StandardScaler().fit_transform(X), y)
    model.dual_coef_, model.support_vectors_ = model.dual_coef_[:, :0], model.support_vectors_[:0]
    assert_close(scores_of(model, X), model, X)


class Foreign(BaseEstimator):
    def fit(self, X, y):
        self.fitted_ = True
        return self


def test_what_has_no_export(cancer):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X, y = cancer
    X = StandardScaler().fit_transform(X)
    with pytest.raises(TypeError, match=r"SplineTransformer has no ONNX export here: skl2onnx \d.*; take another step"):
        to_onnx(make_pipeline(SplineTransformer(), PatMatNP()).fit(X, y))
    with pytest.raises(TypeError, match="the kernel is precomputed, which has no ONNX export"):
        to_onnx(PatMatNP(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(TypeError, match="the kernel is a function, which has no ONNX export"):
        to_onnx(PatMatNP(kernel=lambda a, b: a @ b.T).fit(X, y))
    with pytest.raises(TypeError, match="Foreign has no ONNX export here"):
        to_onnx(Foreign().fit(X, y))
    with pytest.raises(NotFittedError):
        to_onnx(PatMatNP())
    with pytest.raises(ValueError, match=r"input_type must be .*, got 'int'"):
        to_onnx(PatMatNP().fit(X, y), input_type="int")


def test_without_onnx(cancer, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'toprank\[onnx\]'"):
        to_onnx(PatMatNP())


CLASSIFIERS = {
    "LogisticRegression": LogisticRegression(),
    "LinearSVC": LinearSVC(),
    "RidgeClassifier": RidgeClassifier(),
    "GaussianNB": GaussianNB(),
    "KNeighborsClassifier": KNeighborsClassifier(),
    "SVC": SVC(),
    "NuSVC-poly": NuSVC(kernel="poly", nu=0.1),
    "CalibratedClassifierCV": CalibratedClassifierCV(LogisticRegression(), cv=2),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_of_scikit_learn(name, cancer):
    X, y = cancer
    model = make_pipeline(StandardScaler(), CLASSIFIERS[name]).fit(X, np.where(y, "bad", "fine"))
    assert_same(model, X)


@pytest.mark.parametrize("model", [QuadraticDiscriminantAnalysis(), BaggingClassifier(n_estimators=2)], ids=str)
def test_what_skl2onnx_does_not_give_in_double_precision(model, cancer):
    pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    name = type(model).__name__
    with pytest.raises(TypeError, match=f"{name} has no ONNX export here: skl2onnx .* with scikit-learn"):
        to_onnx(model.fit(cancer[0][:, :3], cancer[1]))


def test_a_wrong_conversion_is_found(cancer, monkeypatch):
    """A piece of skl2onnx that computes something else than scikit-learn is refused."""
    skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    X, y = cancer
    honest = skl2onnx.to_onnx
    model, other = LogisticRegression(C=0.1), LogisticRegression(C=10.0)
    X = StandardScaler().fit_transform(X)
    model.fit(X, y), other.fit(X, y)
    monkeypatch.setattr(
        skl2onnx, "to_onnx", lambda step, options, **more: honest(other, options={id(other): options[id(step)]}, **more)
    )
    with pytest.raises(TypeError, match=r"its float64 values differ by .* from those of scikit-learn"):
        to_onnx(model)
