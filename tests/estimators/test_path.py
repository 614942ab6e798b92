"""What a path refuses; that it agrees with single fits is tested with the estimators."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import TopMeanK, TopPush, TopSearchCV, WMWRanker, path
from toprank.datasets import make_imbalanced


@pytest.fixture
def rows():
    X, y, _ = make_imbalanced(60, 4, positive_share=0.4, separation=3.0, random_state=0)
    return X, y


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "rbf"},
        {"kernel": "precomputed"},
        {"kernel": "rbf", "approximation": "nystroem"},
        {"kernel": "rbf", "approximation": "fourier"},
        {"kernel": "linear", "approximation": "nystroem"},
    ],
    ids=lambda options: "-".join(options.values()),
)
def test_kernels_are_refused_with_a_remedy(options, rows):
    model = TopMeanK(0.5, n_components=20, **options)
    kernel, approximation = options["kernel"], options.get("approximation", "auto")
    message = f"path is for linear models, got kernel={kernel!r} and approximation={approximation!r}; use toprank.TopS"
    with pytest.raises(ValueError, match=re.escape(message)):
        path(model, *rows)


@pytest.mark.parametrize("search", [TopSearchCV, GridSearchCV])
def test_the_remedy_works(search, rows):
    X, y = rows
    found = search(TopMeanK(0.5, kernel="rbf"), {"alpha": [0.01, 0.1]}, cv=2).fit(X, y)
    assert found.best_params_["alpha"] in (0.01, 0.1)


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
