"""Kernel models on rows and weights of every size: the promise of weights, distances, honest certificates."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from toprank import PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from toprank.pairwise import WMWRanker

MODELS = [TopPush(), TopPushK(k=3), TauFPL(tau=0.1), TopMeanK(tau=0.5), PatMat(tau=0.1), PatMatNP(tau=0.1)]


def noisy(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X, X[:, 0] + rng.standard_normal(n) > 0.5


@pytest.mark.parametrize("model", [*MODELS, WMWRanker()], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("parameters", [{"kernel": "rbf"}, {"kernel": "poly", "coef0": 1.0}], ids=["rbf", "poly"])
def test_the_default_gamma_takes_a_weight_for_a_repeated_row(model, parameters):
    X, y = noisy()
    X[:5] *= 4
    weight = np.ones(60)
    weight[:5] = 10
    rows = np.repeat(np.arange(60), weight.astype(int))
    weighted = clone(model).set_params(tol=1e-6, **parameters).fit(X, y, weight)
    repeated = clone(weighted).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=3e-6)


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_features_take_a_weight_for_a_repeated_row(approximation):
    """All rows are landmarks, and frequencies depend on gamma only."""
    X, y = noisy()
    X[:5] *= 4
    weight = np.ones(60)
    weight[:5] = 10
    rows = np.repeat(np.arange(60), weight.astype(int))
    model = PatMatNP(0.1, kernel="rbf", approximation=approximation, n_components=105, random_state=0, tol=1e-8)
    weighted = clone(model).fit(X, y, weight).objective_
    assert weighted == pytest.approx(clone(model).fit(X[rows], y[rows]).objective_, rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e7, 1e8, 1e12])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_scores_of_widely_spread_rows(scale, storage):
    X, y = noisy()
    X *= scale
    X[40:] = X[:20] + np.random.default_rng(1).standard_normal((20, 3))  # some rows are near each other
    model = TopPushK(3, kernel="rbf", gamma="auto").fit(storage(X), y)
    squared = ((X[:, None].astype(np.longdouble) - X[model.support_]) ** 2).sum(axis=-1)
    scores = np.exp(-squared / 3).astype(float) @ model.dual_coef_[0]
    np.testing.assert_allclose(model.decision_function(storage(X)) - model.intercept_, scores, atol=1e-12)
    assert model.dual_gap_ <= 1e-4
