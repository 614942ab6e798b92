"""Sample weights of any size: those that cannot matter are left out and named, the others count."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from exact import optimum
from toprank import GrillNP, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK, WMWRanker
from toprank.online import CBR, OAM, OPAUC, AdaOAM, UniExp

pytestmark = pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning")
SURROGATES = ["quadratic", "hinge", "huber", "logistic", "exponential"]


def two_classes(n=1100):
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.3
    return rng.standard_normal((n, 5)) + y[:, None], y


def decaying(n, half_life):
    return 0.5 ** (np.arange(n) / half_life)


@pytest.mark.covering
@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("half_life", [1, 2.5])
@pytest.mark.parametrize(
    ("model", "threshold"),
    [
        (TauFPL(0.1), {"share": 0.1}),
        (TopPushK(1.1), {"k": 1.1}),
        (TopMeanK(0.5), {"share": 0.5, "over": "all"}),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_decaying_weights(model, threshold, half_life, surrogate):
    X, y = two_classes()
    weights = decaying(len(y), half_life)
    model.set_params(surrogate=surrogate)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weights)
    (warning,) = caught
    assert "rows were left out: their sample weights, at most" in str(warning.message)
    assert warning.filename == __file__
    assert model.dual_gap_ <= 1e-4
    heavy = weights > 1e-7  # the rest is less than the tolerance, and cvxpy does not cope with it
    best = optimum(X[heavy], y[heavy], weights[heavy], 0.1, surrogate, **threshold)
    assert model.objective_ == pytest.approx(best, rel=1.1e-4)


@pytest.mark.parametrize("scale", [1e-300, 1e250])
def test_only_ratios_count(scale):
    X, y = two_classes(200)
    weights = np.random.default_rng(1).uniform(0.5, 2, 200)
    grill = GrillNP(0.1, random_state=0, threshold="trained")
    for model in (TopPush(), TauFPL(0.1), TopMeanK(0.5), PatMat(0.1), PatMatNP(0.1), grill):
        expected = model.fit(X, y, sample_weight=weights).coef_
        np.testing.assert_allclose(model.fit(X, y, sample_weight=scale * weights).coef_, expected, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match=r"largest sample weight is .*, too far from 1 for k=2 rows; divide"):
        TopPushK(2).fit(X, y, sample_weight=scale * weights)


def test_to_the_largest_score_every_negative_counts():
    X, y = two_classes(200)
    weights = np.where(y, 1.0, 10.0 ** np.random.default_rng(1).uniform(-300, 0, 200))
    np.testing.assert_array_equal(TopPush().fit(X, y, sample_weight=weights).coef_, TopPush().fit(X, y).coef_)


def test_how_small_is_negligible_depends_on_the_loss():
    """A positive of weight 1e-60, 300 below the others: the exponential loss makes e^300 of it, the hinge 300."""
    X, y = two_classes(200)
    row = np.flatnonzero(y)[0]
    X[row] = -300.0
    weights = np.ones(200)
    weights[row] = 1e-60
    without = np.delete(X, row, axis=0), np.delete(y, row)
    with pytest.warns(UserWarning, match="1 of 200 rows were left out: .* at most 1e-60 of the largest"):
        hinge = TauFPL(0.1, surrogate="hinge").fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(hinge.coef_, TauFPL(0.1, surrogate="hinge").fit(*without).coef_)
    model = TauFPL(0.1, surrogate="exponential", tol=1e-8).fit(X, y, sample_weight=weights)
    assert model.dual_gap_ <= 1e-8
    assert model.objective_ > 1.05 * TauFPL(0.1, surrogate="exponential").fit(*without).objective_
    scores = X @ model.coef_[0]
    losses = np.exp(model.trained_threshold_ - scores[y])
    loss = (1e-60 * losses[0] + losses[1:].sum()) / (y.sum() - 1)
    assert model.objective_ == pytest.approx(0.05 * np.sum(model.coef_**2) + loss, rel=1e-6)


def test_a_class_without_a_weight_that_counts():
    X, y = two_classes(200)
    weights = np.where(y, 1.0, 1e-200)
    with (
        pytest.warns(UserWarning, match="rows were left out"),
        pytest.raises(ValueError, match="needs rows of both classes with a weight that counts"),
    ):
        TopMeanK(0.5).fit(X, y, sample_weight=weights)
    assert TauFPL(0.1).fit(X, y, sample_weight=weights).dual_gap_ <= 1e-4  # ratios within a class only


@pytest.mark.parametrize("half_life", [1, 2.5])
@pytest.mark.parametrize("model", [WMWRanker(), CBR(), OAM(), AdaOAM(), OPAUC(), UniExp()], ids=repr)
def test_decaying_weights_elsewhere(model, half_life):
    X, y = two_classes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=decaying(len(y), half_life))
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert scores.std() > 0
