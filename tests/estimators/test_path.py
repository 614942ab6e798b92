"""Paths with a kernel or its features, and what a path refuses; linear ones are tested with the estimators."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import DegenerateSolutionWarning, PatMat, TauFPL, TopPush, WMWRanker, path
from toprank.base import clone_for_scores
from toprank.datasets import make_imbalanced


@pytest.fixture
def rows():
    X, y, _ = make_imbalanced(60, 4, positive_share=0.4, separation=3.0, random_state=0)
    return X, y


ALPHAS = [0.01, 1e-3, 0.1]
KERNELS = [
    {},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "linear", "solver": "low-rank"},
    {"approximation": "nystroem"},
    {"approximation": "fourier"},
]


def a_model(estimator=TauFPL, **options):
    given = {} if estimator is TopPush else {"tau": 0.1}
    return estimator(**{"kernel": "rbf", "n_components": 20, "random_state": 3, "tol": 1e-9, **given, **options})


def assert_single_fits(models, model, X, y, rows, rtol=1e-4):
    scores = models.decision_function(rows)
    for alpha, column in zip(models.alphas, scores.T, strict=True):
        single = clone_for_scores(model).set_params(alpha=alpha).fit(X, y)
        expected = single.decision_function(rows)
        np.testing.assert_allclose(column, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("storage", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("options", KERNELS, ids=lambda options: "-".join(map(str, options.values())))
@pytest.mark.parametrize("estimator", [TopPush, TauFPL, PatMat])
def test_kernels_and_their_features_are_those_of_single_fits(estimator, options, storage, rows):
    X, y = storage(rows[0]), rows[1]
    model = a_model(estimator, **options)
    models = path(model, X[:40], y[:40], alphas=ALPHAS)
    assert models.dual_gap.max() <= 1e-9
    assert_single_fits(models, model, X[:40], y[:40], X)


def test_a_precomputed_kernel(rows):
    X, y = rows
    model, other = a_model(kernel="precomputed"), a_model(gamma=0.5)
    values = rbf_kernel(X, X[:40], gamma=0.5)
    models = path(model, values[:40], y[:40], alphas=ALPHAS)
    assert models.support_vectors.shape == (0, 0)
    np.testing.assert_allclose(
        models.decision_function(values), path(other, X[:40], y[:40], alphas=ALPHAS).decision_function(X), atol=1e-5
    )
    with pytest.raises(ValueError, match="X has 60 features, but the models of the path were fitted to 40"):
        models.decision_function(rbf_kernel(X, X))


def test_rows_of_any_model_are_kept_once(rows):
    X, y = rows
    model = a_model(TopPush)
    models = path(model, X, y, alphas=ALPHAS)
    of_each = [model.set_params(alpha=alpha).fit(X, y).support_ for alpha in ALPHAS]
    np.testing.assert_array_equal(models.support, np.unique(np.concatenate(of_each)))
    np.testing.assert_array_equal(models.support_vectors, X[models.support])
    for numbers, coef in zip(of_each, models.coef, strict=True):
        np.testing.assert_array_equal(models.support[coef != 0], numbers)


def test_kernel_values_are_computed_once(rows):
    X, y = rows
    asked = []

    def kernel(a, b):
        asked.append(a.shape[0] * b.shape[0])
        return rbf_kernel(a, b, gamma=0.5)

    a_model(kernel=kernel).fit(X, y)
    of_one = sum(asked)
    asked.clear()
    path(a_model(kernel=kernel), X, y, alphas=np.logspace(-3, 0, 12))
    assert sum(asked) < 2 * of_one


def test_features_are_drawn_once(rows):
    X, y = rows
    for seed in (None, np.random.RandomState(0)):
        models = path(a_model(approximation="nystroem", random_state=seed, tol=1e-4), X, y, alphas=[0.1, 0.1])
        scores = models.decision_function(X)
        np.testing.assert_allclose(scores[:, 0], scores[:, 1], rtol=0.1, atol=0.1 * np.abs(scores).max())


def test_a_collapse_has_no_rows(rows):
    y = np.arange(60) % 2
    X = np.repeat(np.arange(30.0), 2)[:, None]  # each positive has a negative at its place
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSolutionWarning)
        models = path(a_model(TopPush), X, y, alphas=[1.0, 10.0])
    assert models.support_vectors.shape == (0, 1)
    assert models.decision_function(X).shape == (60, 2)
    assert not np.ptp(models.decision_function(X), axis=0).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_stays(dtype, rows):
    X, y = rows
    models = path(a_model(tol=1e-3), X.astype(dtype), y, alphas=[0.1])
    assert models.coef.dtype == models.support_vectors.dtype == models.decision_function(X.astype(dtype)).dtype == dtype


@pytest.mark.parametrize(
    "estimator",
    [WMWRanker(), LogisticRegression(), make_pipeline(StandardScaler(), TopPush()), TopPush],
    ids=["WMWRanker", "LogisticRegression", "Pipeline", "class"],
)
def test_other_estimators_are_refused(estimator, rows):
    with pytest.raises(ValueError, match=r"path is for the estimators of the top family, got .*; use toprank.TopS"):
        path(estimator, *rows)


@pytest.mark.parametrize("storage", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_features", [3, 5])
def test_another_number_of_features_is_refused(n_features, storage, rows):
    X, y = rows
    models = path(TopPush(), X, y, alphas=[0.1])
    assert models.decision_function(storage(X)).shape == (60, 1)
    message = f"X has {n_features} features, but the models of the path were fitted to 4"
    with pytest.raises(ValueError, match=message):
        models.decision_function(storage(np.ones((2, n_features))))


@pytest.mark.parametrize("solver", ["low-rank", "dual-cd"])
def test_linear_kernels_by_kernel_solvers(solver, rows):
    X, y = rows
    models = path(TopPush(solver=solver), X, y, alphas=[1.0, 0.1])
    reference = path(TopPush(), X, y, alphas=[1.0, 0.1])
    np.testing.assert_allclose(models.objective, reference.objective, rtol=2e-4)
