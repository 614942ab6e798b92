"""ONNX graphs give the scores of their models."""

import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from toprank import PatMatNP, TopPush, WMWRanker
from toprank.datasets import load_bundled
from toprank.online import CBR, OPAUC, UniExp
from toprank.persistence import to_onnx


@pytest.fixture(scope="module")
def cancer():
    data = load_bundled("breast_cancer")
    return data.X[::3], data.y[::3]


def scores_of(model, X, input_type="float64"):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    content = to_onnx(model, input_type=input_type).SerializeToString()
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (scores,) = session.run(["score"], {"X": np.asarray(X, dtype=input_type)})
    return scores


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
    assert_close(scores_of(model, X), model, X)


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
    for step, name in (
        (MinMaxScaler(clip=True), "MinMaxScaler"),
        (QuantileTransformer(n_quantiles=10), "QuantileTransformer"),
        (OneHotEncoder(handle_unknown="ignore"), "OneHotEncoder"),
    ):
        with pytest.raises(TypeError, match=f"{name} has no ONNX export here; use StandardScaler"):
            to_onnx(make_pipeline(step, PatMatNP()).fit(X, y))
    with pytest.raises(TypeError, match="the kernel is precomputed, which has no ONNX export"):
        to_onnx(PatMatNP(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(TypeError, match="the kernel is a function, which has no ONNX export"):
        to_onnx(PatMatNP(kernel=lambda a, b: a @ b.T).fit(X, y))
    with pytest.raises(TypeError, match="Foreign has no ONNX export here"):
        to_onnx(Foreign().fit(X, y))
    with pytest.raises(NotFittedError):
        to_onnx(PatMatNP())
    with pytest.raises(ValueError, match="input_type must be 'float32' or 'float64', got 'int'"):
        to_onnx(PatMatNP().fit(X, y), input_type="int")


def test_without_onnx(cancer, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'toprank\[onnx\]'"):
        to_onnx(PatMatNP())
