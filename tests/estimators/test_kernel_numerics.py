"""Kernel models on rows and weights of every size: the promise of weights, distances, honest certificates."""

from math import factorial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from toprank import PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from toprank.pairwise import WMWRanker

pytestmark = pytest.mark.usefixtures("trained_thresholds")
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


def monomials(X):
    """Features whose products are (x·x' + 1)³."""
    powers = [e for e in np.ndindex(*[4] * X.shape[1]) if sum(e) <= 3]
    counts = [factorial(3) / (factorial(3 - sum(e)) * np.prod([factorial(i) for i in e])) for e in powers]
    return np.column_stack(
        [np.sqrt(count) * np.prod(X ** np.array(e), axis=1) for e, count in zip(powers, counts, strict=True)]
    )


@pytest.mark.parametrize("solver", ["auto", "low-rank"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning")  # rounding may be more than any gain
def test_a_kernel_of_badly_scaled_features_claims_no_optimum(solver):
    """Values of up to 1e21 leave no digit of the small features: bounds were above the optimum, even the objective."""
    parameters = {"surrogate": "huber", "alpha": 1e-3}
    for seed in (2, 8, 19, 23, 29, 37):
        X, y = noisy(40, seed)
        X = X * [1e3, 1.0, 1e-3]
        model = PatMatNP(0.2, 1.0, kernel="poly", gamma=1.0, coef0=1.0, solver=solver, **parameters).fit(X, y)
        reached = PatMatNP(0.2, 1.0, **parameters).fit(monomials(X), y).objective_  # so the optimum is at most this
        assert model.dual_objective_ <= reached * (1 + 1e-9)
        assert model.dual_gap_ >= 1 - reached / model.objective_ - 1e-9


@pytest.mark.parametrize("model", [TopPushK(3), TopMeanK(0.3), PatMatNP(0.1)], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("alpha", [1e-2, 1e-4, 1e-6])
@pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bounds_of_single_precision_rows_hold(model, alpha):
    for seed in range(2):
        X, y = noisy(60, seed)
        X = (X + 30).astype(np.float32)
        single = clone(model).set_params(kernel="rbf", gamma=0.1, alpha=alpha).fit(X, y)
        double = clone(single).fit(X.astype(np.float64), y)
        assert single.dual_objective_ <= double.objective_ * (1 + 1e-9)
        assert single.history_["gap"][-1] == single.dual_gap_
        if alpha >= 1e-4:  # below that, coefficients in single precision are further from the optimum
            assert single.dual_gap_ <= 1e-4


@pytest.mark.parametrize("surrogate", ["quadratic", "huber"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_matrix_rounded_to_single_precision_is_taken_for_definite(surrogate):
    """Its smallest eigenvalues are negative, by rounding; the certificate allows for that."""
    for seed in range(4):
        X, y = noisy(40, seed)
        K = rbf_kernel(X, gamma=0.01).astype(np.float32)
        assert np.linalg.eigvalsh(K.astype(np.float64))[0] < 0
        model = PatMatNP(0.1, 1.0, alpha=4e-4, surrogate=surrogate, kernel="precomputed").fit(K, y)
        double = clone(model).fit(rbf_kernel(X, gamma=0.01), y)
        assert model.dual_objective_ <= double.objective_
        # rounding moves a score by at most ‖c‖₁/2²⁵; with Σy = alpha‖c‖₁/2 the objective moves by three times as much
        moved = np.abs(model.dual_coef_).sum(dtype=np.float64) * 2.0**-25
        allowed = 1.5 * model.alpha * np.abs(model.dual_coef_).sum() * moved
        assert model.objective_ >= double.dual_objective_ - allowed
        assert model.dual_gap_ <= 1e-3


@pytest.mark.parametrize("solver", ["pairs", "low-rank", "dual-cd"])
def test_weights_of_all_sizes(solver):
    X, y = noisy()
    weight = 10.0 ** np.random.default_rng(0).uniform(-12, 0, 60)
    model = PatMatNP(0.1, 1.0, kernel="rbf", solver=solver, random_state=0).fit(X, y, weight)
    assert model.dual_gap_ <= 1e-4
