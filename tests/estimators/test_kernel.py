"""Estimators with kernels: models against hand-made sums, against each other and against the linear ones."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import (
    ApproximationWarning,
    DegenerateSolutionWarning,
    PatMat,
    PatMatNP,
    TauFPL,
    TopMeanK,
    TopPush,
    TopPushK,
)
from toprank.matrices import features

MODELS = [TopPush(), TopPushK(k=3), TauFPL(tau=0.1), TopMeanK(tau=0.5), PatMat(tau=0.1), PatMatNP(tau=0.1)]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
GAMMA = 0.3
# These tests are about directions and the threshold of the formulation; test_budget_threshold.py is about the other.
pytestmark = pytest.mark.usefixtures("trained_thresholds")


def ring(n=150, seed=0, dtype=np.float64):
    """Positives inside, negatives around: no direction tells them apart, the Gaussian kernel does."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    return X.astype(dtype), (np.linalg.norm(X, axis=1) + 0.3 * rng.standard_normal(n) < 1.3).astype(int)


def blobs(n=150, seed=0, d=5):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(int)
    return rng.standard_normal((n, d)) + y[:, None], y


def rbf(model, **parameters):
    return clone(model).set_params(**{"kernel": "rbf", "gamma": GAMMA, "tol": 1e-6, **parameters})


def named_rbf(A, B):
    return rbf_kernel(A, B, gamma=GAMMA)


def quiet_fit(model, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*arguments)


@every_model
def test_precomputed_callable_and_named_kernel_agree(model):
    X, y = ring()
    other = ring(seed=1)[0]
    by_name = rbf(model).fit(X, y)
    given = rbf(model, kernel="precomputed").fit(rbf_kernel(X, gamma=GAMMA), y)
    called = rbf(model, kernel=named_rbf).fit(X, y)
    scores = by_name.decision_function(other)
    assert by_name.solver_ == given.solver_ == called.solver_ == "pairs"
    for fitted, rows in ((given, rbf_kernel(other, X, gamma=GAMMA)), (called, other)):
        assert fitted.dual_gap_ <= 1e-6
        assert fitted.objective_ == pytest.approx(by_name.objective_, rel=2e-6)
        np.testing.assert_allclose(fitted.decision_function(rows), scores, atol=1e-2 * np.abs(scores).max())
        np.testing.assert_array_equal(fitted.predict(rows), (fitted.decision_function(rows) > 0).astype(int))


@every_model
@pytest.mark.parametrize("solver", ["pairs", "low-rank", "dual-cd"])
def test_a_linear_kernel_is_the_linear_model(model, solver):
    X, y = blobs()
    linear = clone(model).set_params(tol=1e-8).fit(X, y)
    assert linear.solver_ == "newton"
    fitted = quiet_fit(clone(linear).set_params(kernel="linear", solver=solver, tol=1e-7, random_state=0), X, y)
    assert fitted.solver_ == solver
    assert fitted.dual_objective_ <= linear.objective_ * (1 + 1e-8)
    assert linear.dual_objective_ <= fitted.objective_ * (1 + 1e-8)
    if solver == "dual-cd" and isinstance(model, TopPushK | TauFPL | TopMeanK):
        # pairs of multipliers alone cannot move the bounds of a mean; what it did not reach is in its stated gap
        assert fitted.dual_gap_ > 1e-7
        assert fitted.objective_ < float(fitted._formulation().evaluate(np.zeros(len(y)), y == 1, np.ones(len(y)))[0])
    else:
        assert fitted.objective_ == pytest.approx(linear.objective_, rel=1e-5)
        np.testing.assert_allclose(fitted.coef_, linear.coef_, atol=3e-3 * np.abs(linear.coef_).max())
        assert fitted.threshold_ == pytest.approx(linear.threshold_, rel=1e-2)
    assert fitted.coef_.shape == (1, 5)
    np.testing.assert_allclose(fitted.decision_function(X), X @ fitted.coef_[0] - fitted.threshold_, atol=1e-12)
    assert not hasattr(fitted, "dual_coef_")


@every_model
@pytest.mark.parametrize("solver", ["pairs", "low-rank", "dual-cd"])
def test_solvers_agree_with_a_kernel(model, solver):
    X, y = ring()
    reference = rbf(model).fit(X, y)
    fitted = quiet_fit(rbf(model, solver=solver, random_state=0), X, y)
    assert fitted.solver_ == solver
    assert fitted.dual_objective_ <= reference.objective_ * (1 + 1e-9)
    assert reference.dual_objective_ <= fitted.objective_ * (1 + 1e-9)
    if solver != "dual-cd" or isinstance(model, TopPush | PatMat | PatMatNP):
        assert fitted.dual_gap_ <= 1e-6


@every_model
def test_support_vectors_make_the_scores(model, stored):
    X, y = ring()
    X = stored(X)
    fitted = rbf(model, tol=1e-4).fit(X, y)
    dense = X.toarray() if issparse(X) else X
    assert fitted.dual_coef_.shape == (1, len(fitted.support_))
    assert fitted.support_vectors_.shape == (len(fitted.support_), 3)
    assert fitted.dual_coef_.dtype == fitted.support_vectors_.dtype == fitted.intercept_.dtype == X.dtype
    assert fitted.decision_function(X).dtype == X.dtype
    assert issparse(fitted.support_vectors_) == issparse(X)
    vectors = fitted.support_vectors_
    np.testing.assert_array_equal(vectors.toarray() if issparse(X) else vectors, dense[fitted.support_])
    assert np.all(np.diff(fitted.support_) > 0)
    assert np.all(fitted.dual_coef_ != 0)
    if not isinstance(model, PatMat | TopMeanK):  # where a positive row has a multiplier of either kind
        assert np.all((fitted.dual_coef_[0] > 0) == (y[fitted.support_] == 1))
    if isinstance(model, TopPush):
        assert len(fitted.support_) < len(y)
    other = ring(seed=1)[0]
    by_hand = rbf_kernel(other, dense[fitted.support_].astype(float), gamma=GAMMA) @ fitted.dual_coef_[0].astype(float)
    scale = np.abs(fitted.dual_coef_).sum()
    tolerance = (1e-5 if X.dtype == np.float32 else 1e-12) * scale
    for asked in (other, csr_array(other), other.astype(np.float32), csr_array(other.astype(np.float32))):
        slack = tolerance if asked.dtype == np.float64 else 1e-5 * scale
        np.testing.assert_allclose(fitted.decision_function(asked), by_hand - fitted.threshold_, atol=slack)
    assert fitted.objective_ == pytest.approx(rbf(model).fit(*ring()).objective_, rel=2e-4)
    assert fitted.dual_gap_ <= 1e-4
    assert fitted.history_["gap"][-1] == fitted.dual_gap_
    assert fitted.threshold_ == -fitted.intercept_[0]


@pytest.mark.parametrize("parameters", [{}, {"kernel": named_rbf}, {"approximation": "nystroem", "n_components": 40}])
def test_prediction_in_blocks(parameters, monkeypatch):
    X, y = ring()
    other = ring(n=97, seed=1)[0]
    fitted = rbf(TauFPL(tau=0.1), random_state=0, **parameters).fit(X, y)
    at_once = fitted.decision_function(other)
    monkeypatch.setattr(features, "_BLOCK_ENTRIES", 1000)
    np.testing.assert_allclose(fitted.decision_function(other), at_once, atol=1e-10)


@every_model
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_weights_are_repetition_and_removal(model, kernel):
    X, y = ring()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    K = rbf_kernel(X, gamma=GAMMA)  # parts of it have the same bits; the kernel of some rows may be rounded otherwise

    def data(chosen):
        return K[np.ix_(chosen, chosen)] if kernel == "precomputed" else X[chosen]

    def scores(fitted, training):
        return fitted.decision_function(K[:, training] if kernel == "precomputed" else X)

    everything, kept = np.arange(len(y)), np.flatnonzero(weight)
    weighted = rbf(model, kernel=kernel).fit(data(everything), y, weight)
    repeated = rbf(model, kernel=kernel).fit(data(rows), y[rows])
    removed = rbf(model, kernel=kernel).fit(data(kept), y[kept], weight[kept])
    assert np.all(weight[weighted.support_] > 0)
    expected = scores(weighted, everything)
    assert repeated.objective_ == pytest.approx(weighted.objective_, rel=2e-6)
    np.testing.assert_allclose(scores(repeated, rows), expected, atol=1e-2 * np.abs(expected).max())
    np.testing.assert_allclose(scores(removed, kept), expected, atol=1e-12)
    np.testing.assert_array_equal(kept[removed.support_], weighted.support_)


@every_model
def test_labels_and_frames(model):
    X, y = ring()
    names = ["a", "b", "c"]
    labels = np.where(y == 1, "yes", "no")
    plain = rbf(model).fit(X, y)
    fitted = rbf(model).set_params(pos_label="yes").fit(pd.DataFrame(X, columns=names), labels)
    assert fitted.feature_names_in_.tolist() == names
    assert fitted.classes_.tolist() == ["no", "yes"]
    frame = pd.DataFrame(X, columns=names)
    np.testing.assert_array_equal(fitted.decision_function(frame), plain.decision_function(X))
    np.testing.assert_array_equal(fitted.predict(frame) == "yes", plain.predict(X) == 1)


@every_model
@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_approximations(model, approximation, stored):
    X, y = ring()
    X = stored(X)
    fitted = rbf(model, approximation=approximation, n_components=60, random_state=0, tol=1e-4).fit(X, y)
    width = fitted.coef_.shape[1]
    assert width == 60 if approximation == "fourier" else width <= 60
    assert fitted.feature_map_(X).shape == (150, width)
    assert fitted.coef_.dtype == fitted.decision_function(X).dtype == X.dtype
    expected = fitted.feature_map_(X) @ fitted.coef_[0] - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), expected, atol=1e-4)
    assert fitted.dual_gap_ <= 1e-4
    assert not hasattr(fitted, "support_")
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.coef_, fitted.coef_)


@every_model
def test_nystroem_features_of_all_rows_are_the_kernel(model):
    X, y = ring()
    exact = rbf(model).fit(X, y)
    fitted = rbf(model, approximation="nystroem", n_components=1000, random_state=0).fit(X, y)
    assert fitted.objective_ == pytest.approx(exact.objective_, rel=3e-6)


def test_a_new_fit_leaves_nothing_of_the_last_model():
    X, y = blobs()
    of_a_model = {"coef_", "dual_coef_", "support_", "support_vectors_", "feature_map_"}
    model = TauFPL(tau=0.1, gamma=GAMMA, n_components=20, random_state=0)
    kinds = [
        ({"kernel": "linear", "approximation": None}, {"coef_"}),
        ({"kernel": "rbf"}, {"dual_coef_", "support_", "support_vectors_"}),
        ({"approximation": "fourier"}, {"coef_", "feature_map_"}),
        ({"approximation": None, "kernel": "poly"}, {"dual_coef_", "support_", "support_vectors_"}),
        ({"kernel": "linear"}, {"coef_"}),
    ]
    for parameters, expected in kinds:
        model.set_params(**parameters).fit(X, y)
        assert of_a_model & set(vars(model)) == expected
        fresh = clone(model).fit(X, y)
        np.testing.assert_array_equal(fresh.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"kernel": named_rbf},
        {"kernel": "precomputed"},
        {"approximation": "nystroem"},
        {"approximation": "fourier"},
        {"kernel": "poly", "solver": "dual-cd"},
    ],
    ids=["rbf", "callable", "precomputed", "nystroem", "fourier", "dual-cd"],
)
def test_same_seed_pickle_and_clone(parameters):
    X, y = blobs(60)
    X = X @ X.T if parameters.get("kernel") == "precomputed" else X
    model = rbf(TopPushK(k=3), n_components=30, random_state=0, tol=1e-4, **parameters)
    fitted = quiet_fit(model, X, y)
    scores = fitted.decision_function(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(X), scores)
    np.testing.assert_array_equal(quiet_fit(clone(fitted), X, y).decision_function(X), scores)


def test_poly_kernel():
    X, y = blobs()
    fitted = TopPushK(k=3, kernel="poly", gamma=0.01, degree=2, coef0=0.5, alpha=1e-3).fit(X, y)
    assert fitted.dual_gap_ <= 1e-4
    K = polynomial_kernel(X, X[fitted.support_], gamma=0.01, degree=2, coef0=0.5)
    expected = K @ fitted.dual_coef_[0] - fitted.threshold_
    np.testing.assert_allclose(fitted.decision_function(X), expected, atol=1e-9)


def test_few_directions_are_for_the_low_rank_route():
    X, y = blobs()
    assert TopPush(kernel="poly", degree=1, coef0=1.0).fit(X, y).solver_ == "low-rank"
    assert TopPush(kernel="poly", degree=5, coef0=1.0).fit(X, y).solver_ == "pairs"


@pytest.mark.parametrize(("d", "solver"), [(1, "low-rank"), (8, "pairs")])
def test_so_are_smooth_kernels_of_many_rows_and_few_features(d, solver, rng):
    X = rng.standard_normal((2000, d))
    y = np.abs(X[:, 0]) + 0.5 * rng.standard_normal(2000) > 1.2
    fitted = TopPush(kernel="rbf", gamma=1 / d, alpha=1e-2).fit(X, y)
    assert fitted.solver_ == solver
    assert clone(fitted).fit(X[:1990], y[:1990]).solver_ == "pairs"
    assert fitted.dual_gap_ <= 1e-4
    other = TopPush(kernel="rbf", gamma=1 / d, alpha=1e-2, solver={"low-rank": "pairs", "pairs": "low-rank"}[solver])
    assert other.fit(X, y).objective_ == pytest.approx(fitted.objective_, rel=2e-4)


def test_a_stall_of_the_pairs_is_ended_by_the_low_rank_route(monkeypatch):
    monkeypatch.setattr("toprank.solvers.registry._MOVES", 3)
    monkeypatch.setattr("toprank.solvers.registry._MOVES_A_ROW", 0)
    X, y = blobs()
    fitted = TopPushK(k=3, kernel="rbf").fit(X, y)
    assert fitted.solver_ == "low-rank"
    assert fitted.dual_gap_ <= 1e-4


@pytest.mark.parametrize("solver", ["auto", "pairs", "low-rank", "dual-cd"])
def test_a_kernel_that_is_not_positive_is_refused(solver, rng):
    A = rng.standard_normal((40, 40))
    with pytest.raises(ValueError, match=r"'precomputed' is not positive semidefinite.*eigenvalues from.*nystroem"):
        TopPush(kernel="precomputed", solver=solver).fit(A + A.T, np.arange(40) % 3 == 0)


def test_of_a_sigmoid_kernel_the_positive_part_is_used():
    X, y = blobs()
    model = TopPushK(k=3, kernel="sigmoid", gamma=0.5, alpha=1e-3)
    with pytest.raises(ValueError, match="'sigmoid' is not positive semidefinite"):
        model.fit(X, y)
    assert model.set_params(approximation="nystroem", random_state=0).fit(X, y).dual_gap_ <= 1e-4


def test_gamma_by_name():
    X, y = blobs()
    for name, value in (("scale", 1 / (5 * X.var())), ("auto", 1 / 5)):
        by_name, by_value = (TopPush(kernel="rbf", gamma=gamma).fit(X, y) for gamma in (name, value))
        np.testing.assert_allclose(by_name.decision_function(X), by_value.decision_function(X), atol=1e-6)


def test_grid_search():
    X, y = ring()
    grid = {"gamma": [30.0, GAMMA]}
    search = GridSearchCV(rbf(TauFPL(tau=0.2), tol=1e-3), grid, scoring="roc_auc", cv=3).fit(X, y)
    assert search.best_params_ == {"gamma": GAMMA}
    assert search.best_score_ > 0.8
    given = GridSearchCV(TauFPL(tau=0.2, kernel="precomputed", tol=1e-3), {"alpha": [0.1]}, scoring="roc_auc", cv=3)
    given.fit(rbf_kernel(X, gamma=GAMMA), y)
    assert given.best_score_ == pytest.approx(search.best_score_, abs=1e-2)


@every_model
def test_warm_start(model):
    X, y = ring()
    fitted = rbf(model, warm_start=True).fit(X, y)
    objective, n_iter = fitted.objective_, fitted.n_iter_
    again = fitted.fit(X, y)
    assert again.objective_ == pytest.approx(objective, rel=2e-6)
    assert again.n_iter_ <= n_iter
    with pytest.raises(ValueError, match=r"earlier fit had 150 rows and X has 149.*warm_start=False"):
        fitted.fit(X[1:], y[1:])


@pytest.mark.parametrize("kind", [TopPushK(k=3), PatMatNP()], ids=lambda model: type(model).__name__)
def test_warm_start_from_another_solver(kind):
    X, y = ring()
    reference = rbf(kind).fit(X, y).objective_
    for first in ("pairs", "low-rank", "dual-cd"):
        for second in ("pairs", "low-rank", "dual-cd"):
            model = quiet_fit(rbf(kind, solver=first, warm_start=True, random_state=0, max_iter=2000), X, y)
            quiet_fit(model.set_params(solver=second), X, y)
            assert model.dual_objective_ <= reference * (1 + 1e-9)
            assert reference <= model.objective_ * (1 + 2e-6)
            if second != "dual-cd":
                assert model.objective_ == pytest.approx(reference, rel=2e-6)
    X, y = blobs()
    for first, second in (("newton", "pairs"), ("pairs", "newton"), ("apg", "pairs"), ("pairs", "apg")):
        if isinstance(kind, PatMatNP) and "apg" in (first, second):
            continue
        model = clone(kind).set_params(solver=first, warm_start=True).fit(X, y)
        objective = model.objective_
        assert model.set_params(solver=second).fit(X, y).objective_ == pytest.approx(objective, rel=2e-4)


@pytest.mark.covering
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed", "nystroem", "fourier"])
@pytest.mark.parametrize("gamma", [0.02, 3.0])
def test_top_push_never_predicts_a_training_negative(dtype, kernel, gamma):
    """All negatives that support the model have the threshold as their score, to the last digits."""
    X, y = ring(400, dtype=dtype)
    X = X + dtype(5)
    model = TopPush(kernel=kernel, gamma=gamma, alpha=1e-3, tol=1e-5, random_state=0)
    if kernel in ("nystroem", "fourier"):
        model.set_params(kernel="rbf", approximation=kernel, n_components=100)
    X = rbf_kernel(X, gamma=gamma) if kernel == "precomputed" else X
    assert X.dtype == dtype
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSolutionWarning)
        fitted = quiet_fit(model, X, y)
    assert not fitted.predict(X)[y == 0].any()
    assert not np.concatenate([fitted.predict(X[[i]]) for i in np.flatnonzero(y == 0)]).any()
    if gamma == 3.0 and kernel in ("rbf", "precomputed"):
        assert fitted.predict(X)[y == 1].mean() > 0.5


@pytest.mark.parametrize(
    ("kernel", "sparse"),
    [("rbf", False), ("rbf", True), (named_rbf, False), (named_rbf, True), ("precomputed", False)],
    ids=["rbf", "rbf-sparse", "callable", "callable-sparse", "precomputed"],
)
def test_collapse_is_announced(kernel, sparse):
    """Every positive has a negative at its place: w = 0 is the optimum."""
    X, _ = ring(100)
    X, y = np.vstack([X, X]), np.repeat([0, 1], 100)
    X = csr_array(X) if sparse else X
    if kernel == "precomputed":
        X = rbf_kernel(X, gamma=GAMMA)
    model = TopPush(kernel=kernel, gamma=GAMMA)
    with pytest.warns(DegenerateSolutionWarning, match="TopPushK, TauFPL or PatMatNP"):
        model.fit(X, y)
    assert model.objective_ == pytest.approx(1)
    assert model.dual_gap_ <= 1e-4
    assert len(model.support_) == 0
    assert model.dual_coef_.shape == (1, 0)
    np.testing.assert_array_equal(model.decision_function(X), np.zeros(200))
    assert not model.predict(X).any()


def test_a_limit_of_iterations_is_announced():
    X, y = ring()
    with pytest.warns(ConvergenceWarning, match="increase max_iter or tol"):
        model = TauFPL(kernel="rbf", max_iter=120, tol=1e-10).fit(X, y)
    assert model.n_iter_ <= 120
    assert model.dual_gap_ > 1e-10


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TopPush(kernel="foo"), "kernel must be a callable or one of 'linear', .* got 'foo'"),
        (TopPush(kernel=None), "kernel must be a callable or one of .* got None"),
        (TopPush(kernel="rbf", gamma=-1), "gamma must be 'scale', 'auto' or a finite number >= 0, got -1"),
        (TopPush(kernel="rbf", gamma=np.nan), "gamma must be .* got nan"),
        (TopPush(kernel="rbf", gamma="foo"), "gamma must be .* got 'foo'"),
        (TopPush(kernel="poly", degree=-1), "degree must be .* got -1; use a value such as 3"),
        (TopPush(kernel="poly", degree=1.5), "degree=1.5 .* use a whole number such as 3"),
        (TopPush(kernel="poly", coef0="0"), "coef0 must be a finite number, got '0'"),
        (
            TopPush(kernel="rbf", approximation="foo"),
            "approximation must be 'auto', None, .*, got 'foo'",
        ),
        (TopPush(kernel="rbf", approximation="nystroem", n_components=0), "n_components must be .* got 0"),
        (TopPush(kernel="rbf", approximation="fourier", n_components=0.5), "n_components must be .* got 0.5"),
        (TopPush(kernel="rbf", approximation="fourier", n_components="5"), "n_components must be .* got '5'"),
        (TopPush(kernel="precomputed", approximation="nystroem"), "kernel='precomputed' has none; use approx.*=None"),
        (TopPush(kernel="poly", approximation="fourier"), "'rbf' only, got kernel='poly'; use 'nystroem' instead"),
        (TopPush(kernel="rbf", cache_size=0), "cache_size must be positive and finite, got 0; use a number of mega"),
        (TopPush(kernel="rbf", solver="newton"), "solver must be one of 'auto', 'pairs', .* for TopPush, got 'newton'"),
        (TopPush(kernel="rbf", surrogate="logistic", solver="pairs"), "'auto', 'low-rank' for TopPush, got 'pairs'"),
        (TopPush(kernel="rbf", surrogate="huber", solver="dual-cd"), "one of 'auto', 'pairs', 'low-rank' .*'dual-cd'"),
        (PatMat(kernel="rbf", surrogate="hinge", solver="pairs"), "one of 'auto', 'low-rank', 'dual-cd' .*'pairs'"),
        (TopPush(kernel="rbf", approximation="fourier", solver="low-rank"), "'sgd' for TopPush, got 'low-rank'"),
        (
            TopPush(kernel="precomputed"),
            "needs the square matrix of all training rows, got 150 rows and 3 columns; pass the",
        ),
        (TopPush(kernel=lambda A, B: np.ones((2, 2))), r"returned an array of shape \(2, 2\) .* must return one value"),
        (TopPush(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)), "not finite numbers; check it"),
        (TopPushK(k=1000, kernel="rbf"), "k=1000 largest scores, but there are only .* use a smaller k"),
    ],
)
def test_bad_parameters(model, message):
    X, y = ring()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_bad_data():
    X, y = ring()
    K = rbf_kernel(X, gamma=GAMMA)
    model = TopPush(kernel="precomputed")
    for wide in (K[:, :149], np.hstack([K, K[:, :3]])):
        with pytest.raises(ValueError, match="needs the square matrix of all training rows"):
            model.fit(wide, y)
    with pytest.raises(ValueError, match=r"needs a dense matrix, got a sparse one; .*toarray\(\)"):
        model.fit(csr_array(K), y)
    with pytest.raises(ValueError, match="needs a symmetric matrix"):
        model.fit(np.triu(K), y)
    model.fit(K, y)
    with pytest.raises(ValueError, match="149 features, but TopPush is expecting 150"):
        model.predict(K[:, 1:])
    for bad, message in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(ValueError, match=message):
            rbf(TopPush()).fit(np.where(X > 2, bad, X), y)
        with pytest.raises(ValueError, match=message):
            model.fit(np.where(K == 1, bad, K), y)


def expected_failures(estimator):
    failures = {}
    if estimator.approximation == "nystroem":
        reason = "the rows of the features are drawn at random, of other numbers of rows others"
        failures["check_sample_weight_equivalence_on_dense_data"] = reason
        failures["check_sample_weight_equivalence_on_sparse_data"] = reason
    if estimator.kernel == "precomputed":
        failures["check_fit2d_1feature"] = (
            "its data have a single negative, too few for k = 1.5, which the message says"
        )
        for name in ("check_positive_only_tag_during_fit", "check_estimators_dtypes"):
            failures[name] = "its matrix is not positive semidefinite, which the message says"
    return failures


# The checks compare models to 1e-7, so the optimum has to be found that exactly.
@pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning")  # for labels 1 and 2
@parametrize_with_checks(
    [
        TopPush(kernel="rbf", tol=1e-10),
        TauFPL(kernel="rbf", tol=1e-10),
        PatMatNP(beta=1.0, alpha=1.0, kernel="rbf", tol=1e-14),
        TauFPL(kernel="rbf", approximation="nystroem", n_components=20, random_state=0, tol=1e-10),
        TopPushK(k=1.5, kernel="precomputed", tol=1e-10),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_linear_kernel_on_rows_far_from_zero():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 3)) + 1e5
    y = X[:, 0] - 1e5 + 0.3 * rng.normal(size=30) > 0.5
    model = TauFPL(tau=0.1, alpha=1e-5, solver="low-rank").fit(X, y)
    linear = TauFPL(tau=0.1, alpha=1e-5).fit(X, y)
    assert model.objective_ == pytest.approx(linear.objective_, rel=1e-3)
    np.testing.assert_array_equal(model.predict(X), linear.predict(X))


@pytest.mark.parametrize("model", [PatMat(), PatMatNP(), TauFPL(), TopPush()], ids=lambda model: type(model).__name__)
def test_low_rank_of_nothing(model):
    model = clone(model).set_params(solver="low-rank")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSolutionWarning)
        assert not model.fit(np.zeros((6, 2)), [0, 0, 0, 1, 1, 1]).coef_.any()


def test_features_take_the_place_of_a_kernel_of_very_many_rows(monkeypatch):
    monkeypatch.setattr("toprank.estimators._kernels.MOST_ROWS_OF_A_KERNEL", 149)
    X, y = ring()
    given = {"n_components": 30, "random_state": 0}
    with pytest.warns(ApproximationWarning, match="of 150 rows would take very long, .* 30 Nyström features") as caught:
        model = rbf(TauFPL(tau=0.1), **given).fit(X, y)
    assert caught[0].filename == __file__
    asked = rbf(TauFPL(tau=0.1), approximation="nystroem", **given).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), asked.decision_function(X))
    exact = [{"approximation": None}, {"solver": "low-rank"}]
    for parameters in exact:
        assert hasattr(rbf(TauFPL(tau=0.1), **parameters).fit(X, y), "dual_coef_")
    assert rbf(PatMatNP(tau=0.1), kernel="linear").fit(X, y).coef_.shape == (1, 3)
    assert hasattr(rbf(TauFPL(tau=0.1)).fit(X[:149], y[:149]), "dual_coef_")
    assert hasattr(rbf(TauFPL(tau=0.1), kernel="precomputed").fit(named_rbf(X, X), y), "dual_coef_")
