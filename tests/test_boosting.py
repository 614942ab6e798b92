"""Objectives of the top for boosting: gradient and curvature by finite differences, and both packages as they call."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.boosting import objective
from toprank.datasets import make_imbalanced
from toprank.exceptions import InputError
from toprank.metrics import tpr_at_fpr

SMOOTH = [
    ("PatMatNP", {"tau": 0.2, "beta": 0.5}),
    ("PatMatNP", {"tau": 0.1, "beta": 1.0, "surrogate": "logistic"}),
    ("PatMat", {"tau": 0.3, "surrogate": "exponential", "beta": 1.0}),
    ("TauFPL", {"tau": 0.3}),
    ("TopPushK", {"k": 3, "surrogate": "logistic"}),
    ("TopMeanK", {"tau": 0.7, "surrogate": "logistic"}),
]


def problem(seed, n=14):
    rng = np.random.default_rng(seed)
    positive = np.arange(n) < n // 3
    return rng.normal(size=n), positive, rng.uniform(0.5, 2.0, size=n)


def loss(chosen, scores, positive, weights):
    """What slopes and curvatures belong to: the loss, times the weight of the positives."""
    return weights[positive].sum() * chosen.formulation.evaluate(scores, positive, weights)[0]


@pytest.mark.parametrize(("method", "parameters"), SMOOTH)
@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_slopes_are_the_gradient(method, parameters, seed):
    chosen = objective(method, **parameters)
    scores, positive, weights = problem(seed)
    slopes, _ = chosen(positive.astype(int), scores, weights)
    for row, step in enumerate(1e-6 * np.eye(len(scores))):
        rise = loss(chosen, scores + step, positive, weights) - loss(chosen, scores - step, positive, weights)
        assert rise / 2e-6 == pytest.approx(slopes[row], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(("method", "parameters"), SMOOTH)
@given(seed=st.integers(0, 10_000), chosen_rows=st.integers(1, 2**14 - 1))
@settings(max_examples=40, deadline=None)
def test_no_leaf_bends_the_loss_more_than_its_curvatures(method, parameters, seed, chosen_rows):
    chosen = objective(method, max_step=1e12, **parameters)  # the curvatures alone, without the limit of steps
    scores, positive, weights = problem(seed)
    leaf = np.array([chosen_rows >> i & 1 for i in range(len(scores))], dtype=float)
    _, curvatures = chosen(positive.astype(int), scores, weights)
    h = 1e-4
    values = [loss(chosen, scores + change * leaf, positive, weights) for change in (-h, 0.0, h)]
    order = np.argsort(scores + h * leaf, kind="stable"), np.argsort(scores - h * leaf, kind="stable")
    if np.array_equal(*order):  # a mean of the largest has a kink where two rows change places
        assert (values[0] - 2 * values[1] + values[2]) / h**2 <= curvatures @ leaf + 1e-4 * (1 + abs(values[1]))


def test_curvature_of_a_group_is_reached():
    """All positives together do not move a threshold of the negatives: there the bound is the curvature itself."""
    chosen = objective("PatMatNP", tau=0.2, beta=0.5, max_step=1e12)
    scores, positive, weights = problem(3)
    _, curvatures = chosen(positive.astype(int), scores, weights)
    h = 1e-3
    values = [loss(chosen, scores + change * positive, positive, weights) for change in (-h, 0.0, h)]
    assert (values[0] - 2 * values[1] + values[2]) / h**2 == pytest.approx(curvatures[positive].sum(), rel=1e-5)


def test_steps_are_limited():
    slopes, curvatures = objective("PatMatNP", tau=0.01, surrogate="logistic", max_step=0.5)(
        np.array([1, 0, 0, 0]), np.zeros(4)
    )
    assert np.abs(slopes / curvatures).max() == pytest.approx(0.5)


def scores_of_lightgbm(lightgbm, X, y, weights, chosen, new):
    model = lightgbm.LGBMClassifier(n_estimators=40, objective=chosen, verbose=-1, n_jobs=1, random_state=0)
    return model.fit(X, y, sample_weight=weights).predict(new, raw_score=True)


def test_lightgbm_learns_for_the_top_in_both_of_its_ways():
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    X, y, _ = make_imbalanced(3000, separation=3.0, random_state=0)
    weights = np.where(np.arange(3000) % 2, 1.0, 2.0)
    chosen = objective("TauFPL", tau=0.05, surrogate="logistic")
    scores = scores_of_lightgbm(lightgbm, X[:2000], y[:2000], weights[:2000], chosen, X[2000:])
    data = lightgbm.Dataset(X[:2000], y[:2000], weight=weights[:2000])
    options = {"objective": chosen, "verbose": -1, "num_threads": 1, "seed": 0, "min_data_in_leaf": 20}
    own = lightgbm.train(options, data, num_boost_round=40).predict(X[2000:], raw_score=True)
    np.testing.assert_allclose(scores, own, rtol=1e-6, atol=1e-9)
    at_random = np.random.default_rng(0).permutation(scores)
    assert tpr_at_fpr(y[2000:], scores, max_fpr=0.05) > 0.3 + tpr_at_fpr(y[2000:], at_random, max_fpr=0.05)


def test_xgboost_learns_for_the_top_in_both_of_its_ways():
    xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
    X, y, _ = make_imbalanced(3000, separation=3.0, random_state=0)
    weights = np.where(np.arange(3000) % 2, 1.0, 2.0)
    chosen = objective("PatMatNP", tau=0.05)
    model = xgboost.XGBClassifier(n_estimators=40, objective=chosen, n_jobs=1, base_score=0.5, max_depth=4)
    scores = model.fit(X[:2000], y[:2000], sample_weight=weights[:2000]).predict(X[2000:], output_margin=True)
    data = xgboost.DMatrix(X[:2000], y[:2000], weight=weights[:2000])
    options = {"nthread": 1, "base_score": 0.5, "max_depth": 4}
    own = xgboost.train(options, data, 40, obj=chosen).predict(xgboost.DMatrix(X[2000:]), output_margin=True)
    # the two start from another constant, which no ranking sees
    np.testing.assert_allclose(scores - scores.mean(), own - own.mean(), rtol=1e-4, atol=1e-5)
    at_random = np.random.default_rng(0).permutation(scores)
    assert tpr_at_fpr(y[2000:], scores, max_fpr=0.05) > 0.3 + tpr_at_fpr(y[2000:], at_random, max_fpr=0.05)


def test_it_can_be_copied_and_pickled_with_the_model_that_holds_it():
    chosen = objective("PatMatNP", tau=0.1)
    for other in (copy.deepcopy(chosen), pickle.loads(pickle.dumps(chosen))):
        np.testing.assert_array_equal(other([1, 0], [0.0, 1.0]), chosen([1, 0], [0.0, 1.0]))


@pytest.mark.parametrize(
    ("arguments", "parameters", "words"),
    [
        (("GrillNP",), {}, "method has an objective that is not convex, got 'GrillNP'"),
        (("LogLoss",), {}, "method must be one of .* got 'LogLoss'"),
        (("PatMatNP",), {"tau": 2.0}, "tau must be strictly between 0 and 1, got 2.0"),
        (
            ("PatMatNP",),
            {"alpha": 2.0},
            "alpha is no part of the objective of PatMatNP, got 2.0; use beta",
        ),
        (("TauFPL",), {"max_step": 0}, "max_step must be positive and finite, got 0"),
    ],
)
def test_errors_name_the_value_and_the_remedy(arguments, parameters, words):
    with pytest.raises(InputError, match=words):
        objective(*arguments, **parameters)


def test_both_classes_are_needed():
    with pytest.raises(ValueError, match="need positive and negative rows"):
        objective("TauFPL")(np.ones(3), np.zeros(3))
