"""The eight estimators as a user meets them."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import (
    DegenerateSolutionWarning,
    Grill,
    GrillNP,
    PatMat,
    PatMatNP,
    TauFPL,
    TopMeanK,
    TopPush,
    TopPushK,
    path,
)
from toprank.datasets import load_bundled, make_imbalanced, make_outlier, optimal_tpr
from toprank.metrics import positives_at_top, tpr_at_fpr, wmw_score

CONVEX = [TopPush(), TopPushK(k=5), TauFPL(tau=0.1), TopMeanK(tau=0.5), PatMat(), PatMatNP()]
# Descents that are cut short: what these tests are about does not depend on how far they go.
ALL = [*CONVEX, *(model(random_state=0, threshold="trained", max_iter=5) for model in (Grill, GrillNP))]
every_estimator = pytest.mark.parametrize("model", ALL, ids=lambda model: type(model).__name__)
convex_only = pytest.mark.parametrize("model", CONVEX, ids=lambda model: type(model).__name__)


def expected_failures(estimator):
    if not isinstance(estimator, Grill):
        return {}
    reason = "not convex: a descent from the same start ends in another stationary point after another rounding"
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


# PatMatNP has the threshold of its budget in them, the others that of their formulation, without the fits of folds.
# The checks compare models to 1e-7, so the optimum, where there is one, has to be found that exactly; a descent without
# one need not be long. Some of their data sets have fewer than ten negatives, and some have classes that cannot be told
# apart, which the warning says.
@pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning")  # for labels 1 and 2
@parametrize_with_checks(
    [
        clone(model).set_params(
            **({"tol": 1e-10} if model in CONVEX else {"max_iter": 1}),
            **({"threshold": "trained"} if hasattr(model, "threshold") and not isinstance(model, PatMatNP) else {}),
            **({"k": 1.5} if isinstance(model, TopPushK) else {}),
        )
        for model in ALL
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def cancer():
    data = load_bundled("breast_cancer")
    return StandardScaler().fit_transform(data.X), data.y


@every_estimator
def test_containers_storages_and_labels(model):
    X, y = cancer()
    X, y = X[::3, :6], y[::3]
    model = clone(model).set_params(alpha=0.1, tol=1e-6)
    names = [f"f{i}" for i in range(6)]
    reference = quiet_fit(model, X, y).decision_function(X)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        fitted = quiet_fit(clone(model), frame, y)
        assert fitted.feature_names_in_.tolist() == names
        np.testing.assert_allclose(fitted.decision_function(frame), reference, atol=1e-8)
    labels = np.where(y == 1, "malignant", "benign")
    for X_stored in (csr_array(X), csr_matrix(X)):
        fitted = quiet_fit(clone(model).set_params(pos_label="malignant"), X_stored, labels)
        assert fitted.classes_.tolist() == ["benign", "malignant"]
        np.testing.assert_array_equal(fitted.predict(X_stored) == "malignant", fitted.decision_function(X_stored) > 0)
        if not isinstance(model, Grill | GrillNP):
            assert fitted.objective_ == pytest.approx(model.objective_, rel=1e-5)


def quiet_fit(model, X, y, sample_weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, sample_weight)


@every_estimator
def test_float32_stays_float32(model):
    X, y = cancer()
    single = quiet_fit(clone(model), X.astype(np.float32), y)
    assert single.coef_.dtype == single.intercept_.dtype == np.float32
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    if not isinstance(model, Grill | GrillNP):
        double = quiet_fit(clone(model), X, y)
        assert single.objective_ == pytest.approx(double.objective_, rel=1e-3)


@convex_only
def test_certificate_and_attributes(model):
    X, y = cancer()
    model = clone(model).fit(X, y)
    assert model.dual_gap_ <= model.tol
    assert model.dual_gap_ == pytest.approx((model.objective_ - model.dual_objective_) / model.objective_)
    assert model.history_["gap"][-1] == model.dual_gap_
    assert set(model.history_) == {"iteration", "passes", "seconds", "primal", "dual", "gap"}
    assert model.coef_.shape == (1, X.shape[1])
    assert model.intercept_[0] == -model.threshold_
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] - model.threshold_, atol=1e-12)


@convex_only
@pytest.mark.usefixtures("trained_thresholds")
def test_zero_weight_is_removal(model, rng):
    X, y = cancer()
    weight = rng.integers(0, 3, len(y)).astype(float)
    kept = weight > 0
    weighted = clone(model).set_params(tol=1e-8).fit(X, y, weight)
    removed = clone(model).set_params(tol=1e-8).fit(X[kept], y[kept], weight[kept])
    assert weighted.objective_ == pytest.approx(removed.objective_, rel=1e-7)


def test_top_push_never_predicts_a_training_negative(rng):
    X, y, _ = make_imbalanced(500, 5, separation=4.0, random_state=int(rng.integers(1000)))
    for dtype in (np.float64, np.float32):
        model = TopPush().fit(X.astype(dtype), y)
        assert not model.predict(X[y == 0].astype(dtype)).any()
        assert model.predict(X[y == 1].astype(dtype)).mean() == pytest.approx(
            positives_at_top(y, model.decision_function(X.astype(dtype)))
        )


@pytest.mark.parametrize("model", [TauFPL(tau=0.05), PatMatNP(tau=0.05)], ids=repr)
def test_known_optimum_of_gaussians_is_reached(model):
    X, y, _ = make_imbalanced(40_000, 8, positive_share=0.1, separation=2.5, random_state=0)
    half = len(y) // 2
    model = clone(model).fit(X[:half], y[:half])
    tpr = tpr_at_fpr(y[half:], model.decision_function(X[half:]), max_fpr=0.05)
    assert tpr == pytest.approx(optimal_tpr(0.05, separation=2.5), abs=0.04)


def test_collapse_is_announced_with_its_remedy():
    X, y = make_outlier(200, random_state=0)
    for model, remedy in [
        (TopPush(), "TopPushK, TauFPL or PatMatNP"),
        (TopPushK(k=1), "a larger k"),
        (TopMeanK(tau=0.1), "tau above the share of positives"),
    ]:
        with pytest.warns(DegenerateSolutionWarning, match=remedy):
            model.fit(X, y)
        assert not model.coef_.any()
        assert model.objective_ == pytest.approx(1)
    assert PatMat(tau=0.1).fit(X, y).coef_.any()
    assert TauFPL(tau=0.5).fit(X, y).coef_.any()


@pytest.mark.parametrize("surrogate", ["quadratic", "huber", "logistic", "exponential"])
@pytest.mark.parametrize("model", [TopPush(), TopPushK(k=2), TauFPL(tau=0.05)], ids=repr)
def test_a_collapse_is_not_hidden_by_rounding(model, surrogate):
    """Random labels: w of the size of one rounding error must not beat w = 0."""
    for seed in (34, 35, 47, 48, 282, 294, 312):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(30, 100))
        X, y = rng.standard_normal((n, 7)), rng.random(n) < 0.35
        for tol in (1e-4, 1e-8):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted = clone(model).set_params(alpha=1.0, tol=tol, surrogate=surrogate).fit(X, y)
            assert fitted.coef_.any() == (np.abs(fitted.coef_).max() > 1e-12)
            assert fitted.coef_.any() == (fitted.objective_ < 1 - 1e-14)
            assert [warning.category for warning in caught] == [DegenerateSolutionWarning] * (not fitted.coef_.any())


@pytest.mark.parametrize(
    "model",
    [TopPush(surrogate="hinge", max_iter=1), PatMat(tau=0.1, alpha=1e12, solver="sgd", max_iter=1, random_state=0)],
    ids=["can collapse, not proved", "cannot collapse"],
)
def test_zero_is_never_silent(model):
    X, y = make_outlier(200, random_state=0)
    with pytest.warns(DegenerateSolutionWarning, match="better than w = 0 was found.* of the optimum.* lower tol"):
        model.fit(X, y)
    assert not model.coef_.any()


@pytest.mark.parametrize("solver", ["apg", "sgd", "newton"])
def test_solvers_by_name(solver, rng):
    X, y, _ = make_imbalanced(400, 4, positive_share=0.3, separation=3.0, random_state=1)
    reference = TauFPL(tau=0.1, alpha=0.1, tol=1e-8).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TauFPL(tau=0.1, alpha=0.1, solver=solver, threshold="trained", random_state=0).fit(X, y)
    assert reference.objective_ <= model.objective_ * (1 + 1e-8)
    assert model.dual_objective_ <= reference.objective_ * (1 + 1e-8)
    tolerance = {"apg": 1.2e-4, "newton": 1.2e-4, "sgd": 0.3}[solver]  # minibatch thresholds are biased
    assert model.objective_ == pytest.approx(reference.objective_, rel=tolerance)


def test_convergence_warning_says_what_to_do():
    X, y = cancer()
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations .* increase max_iter or tol"):
        PatMatNP(max_iter=1, tol=1e-12).fit(X, y)


@convex_only
def test_warm_start_and_path(model):
    X, y = cancer()
    alphas = [1.0, 1e-3, 1e-1]
    models = path(model, X, y, alphas=alphas)
    assert models.alphas.tolist() == alphas
    assert np.all(models.dual_gap <= model.tol)
    for i, alpha in enumerate(alphas):
        cold = clone(model).set_params(alpha=alpha).fit(X, y)
        assert models.objective[i] == pytest.approx(cold.objective_, rel=2e-4)
    scores = models.decision_function(X)
    assert scores.shape == (len(y), 3)
    np.testing.assert_allclose(scores[:, 0], X @ models.coef[0] + models.intercept[0], atol=1e-12)


def test_path_refuses():
    X, y = cancer()
    for alphas in ([], [1.0, 0.0], [np.nan]):
        with pytest.raises(ValueError, match="alphas must be positive"):
            path(TopPush(), X, y, alphas=alphas)


def test_warm_start_with_other_features():
    X, y = cancer()
    model = TauFPL(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="earlier fit had 30 features and X has 29"):
        model.fit(X[:, 1:], y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TopPush(alpha=0), "alpha must be positive and finite, got 0"),
        (TopPush(alpha=np.nan), "alpha must be"),
        (TopPush(alpha="1"), "alpha must be"),
        (TopPush(tol=-1), "tol must be"),
        (TopPush(surrogate="square"), "surrogate must be one of"),
        (
            TopPush(solver="lbfgs"),
            "solver must be one of 'auto', 'newton', 'pairs', 'apg', 'sgd', 'low-rank', 'dual-cd' for TopPush, got",
        ),
        (PatMat(solver="apg"), "solver must be one of 'auto', 'newton', 'pairs', 'sgd', 'low-rank', 'dual-cd' for"),
        (Grill(solver="newton"), "solver must be one of 'auto', 'sgd' for Grill"),
        (TopPush(max_iter=0), "max_iter must be a whole number of at least 1"),
        (TopPushK(k=0), "k must be positive"),
        (TopPushK(k=1000), "mean of the k=1000 largest scores, but there are only 357"),
        (TauFPL(tau=0), "tau must be strictly between 0 and 1, got 0"),
        (TauFPL(tau=1.0), "tau must be strictly between 0 and 1, got 1.0"),
        (PatMatNP(beta=-1), "beta must be positive"),
    ],
)
def test_bad_parameters(model, message):
    X, y = cancer()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_bad_data():
    X, y = cancer()
    with pytest.raises(ValueError, match="NaN"):
        TopPush().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="infinity"):
        TopPush().fit(np.where(X > 2, np.inf, X), y)
    with pytest.raises(ValueError, match="only one class"):
        TopPush().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="only one class is left"):
        TopPush().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="Only binary classification"):
        TopPush().fit(X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="Negative values"):
        TopPush().fit(X, y, sample_weight=-y)


@convex_only
def test_a_large_offset_of_the_features_does_not_matter(model):
    X, y = cancer()
    plain, shifted = clone(model).fit(X, y), clone(model).fit(X + 1e8, y)
    assert shifted.objective_ == pytest.approx(plain.objective_, rel=1e-3)
    assert shifted.dual_gap_ <= 1e-4


@every_estimator
@pytest.mark.parametrize("scale", [1e100, 1e-100])
def test_features_far_from_one_are_refused(model, scale):
    X, y = cancer()
    with pytest.raises(ValueError, match=r"largest absolute value of X is .*StandardScaler"):
        clone(model).fit(scale * X, y)


@convex_only
@pytest.mark.parametrize("scale", [1e-4, 1e6])
@pytest.mark.usefixtures("trained_thresholds")
def test_other_scales_are_certified(model, scale):
    X, y = cancer()
    fitted = clone(model).fit(scale * X, y)
    assert fitted.dual_gap_ <= 1e-4
    assert wmw_score(y, fitted.decision_function(scale * X)) > 0.95


def test_columns_of_very_different_scales_are_certified():
    """Where the objective is flat to its last digit, the gradient of large columns may still be far from zero."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.exp(rng.normal(size=(900, 30)))
        noisy = X[:, :8].sum(axis=1) + 3 * rng.normal(size=900)
        fitted = PatMat(tau=0.05, alpha=0.01, threshold="trained")
        fitted.fit(X * np.logspace(-3, 9, 30), noisy > np.quantile(noisy, 0.96))
        assert fitted.dual_gap_ <= 1e-4


@convex_only
@pytest.mark.usefixtures("trained_thresholds")
def test_a_huge_penalty_leaves_the_direction(model):
    """The coefficients tend to zero with a growing penalty, but not their direction."""
    X, y = cancer()
    models = [clone(model).set_params(alpha=alpha).fit(X, y) for alpha in (1e2, 1e4, 1e6)]
    for fitted in models:
        assert fitted.dual_gap_ <= 1e-4
        assert wmw_score(y, fitted.decision_function(X)) > 0.95
    assert np.abs(models[2].coef_).max() < np.abs(models[0].coef_).max() / 1000


@every_estimator
def test_same_seed_same_model_and_pickle(model):
    X, y = cancer()
    first, second = quiet_fit(clone(model), X, y), quiet_fit(clone(model), X, y)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    restored = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(restored.decision_function(X), first.decision_function(X))


def test_verbose_logs(caplog):
    X, y = cancer()
    with caplog.at_level("INFO", logger="toprank"):
        make_pipeline(StandardScaler(), TauFPL(verbose=1)).fit(X, y)
    assert "gap" in caplog.text


def test_a_failed_or_interrupted_fit_leaves_the_model_as_it_was(rng, monkeypatch):
    X = rng.standard_normal((40, 3))
    y = X[:, 0] > 0.3
    model = TopPushK(k=3).fit(X, y)
    expected = model.decision_function(X)
    with pytest.raises(ValueError, match="k=1000"):
        model.set_params(k=1000).fit(X[:, :2], y)
    np.testing.assert_array_equal(model.decision_function(X), expected)

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("toprank.estimators.back_ends.Linear.solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(k=2).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), expected)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TopPush(max_iter="many"), "max_iter must be a whole number of at least 1, got 'many'"),
        (TopPush(max_iter=1.5), "max_iter must be a whole number of at least 1, got 1.5"),
        (TopPush(surrogate=["hinge"]), r"surrogate must be one of .*, got \['hinge'\]"),
        (TopPush(alpha=1e-300), "alpha must be between 1e-40 and 1e[+]40, got 1e-300"),
        (PatMat(tau=1e-300), "tau must be at least 1e-12, got 1e-300"),
        (PatMat(beta=1e-300), "beta=1e-300, .* even w = 0 has a loss of inf; use a larger beta"),
        (PatMatNP(beta=0.01, surrogate="exponential"), "even w = 0 has a loss of 1e[+]130"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_parameters_beyond_all_measure(rng, model, message):
    X = rng.standard_normal((40, 3))
    with pytest.raises(ValueError, match=message):
        model.fit(X, X[:, 0] > 0)
