"""`TopForest` as models of LightGBM and XGBoost: their raw scores are its decision function."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator

from toprank import TopForest, reasons, to_onnx
from toprank.persistence.lightgbm_text import check_lightgbm_text
from toprank.trees.boosters import _of_doubles

PARAMETERS = {"tau": 0.1, "alpha": 1.0, "honest": False, "random_state": 0}


def rows(n=300):
    random = np.random.default_rng(0)
    X = random.random((n, 3))
    y = ((X[:, 1] > 0.8) ^ (random.random(n) < 0.05)).astype(int)
    X[::7, 0] = np.nan
    return X, y


def lightgbm_model(**parameters):
    package = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    return package.LGBMClassifier(n_estimators=5, num_leaves=5, verbose=-1, n_jobs=1, **parameters)


def xgboost_model(**parameters):
    package = pytest.importorskip("xgboost", reason="xgboost is not installed")
    return package.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1, **parameters)


FOREST = {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}


@pytest.mark.parametrize("parameters", [{}, FOREST], ids=["boosting", "forest"])
def test_lightgbm_with_new_leaf_values(parameters):
    X, y = rows()
    old = lightgbm_model(**parameters).fit(X, y)
    model = TopForest(trees=FrozenEstimator(old), **PARAMETERS).fit(X, y)
    before = old.predict_proba(X)
    booster = model.to_lightgbm()
    np.testing.assert_allclose(booster.predict(X, raw_score=True), model.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(booster.predict(X, pred_leaf=True), old.booster_.predict(X, pred_leaf=True))
    np.testing.assert_array_equal(old.predict_proba(X), before)  # a copy


@pytest.mark.parametrize("parameters", [{}, {"booster": "dart", "rate_drop": 0.5, "seed": 3}], ids=["gbtree", "dart"])
def test_xgboost_with_new_leaf_values(parameters):
    X, y = rows()
    old = xgboost_model(**parameters).fit(X, y)
    model = TopForest(trees=FrozenEstimator(old), **PARAMETERS).fit(X, y)
    booster = model.to_xgboost()
    expected = model.decision_function(X)
    found = booster.predict(pytest.importorskip("xgboost").DMatrix(X), output_margin=True)
    np.testing.assert_allclose(found, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


@pytest.fixture(scope="module")
def own():
    X, y = rows()
    return TopForest(n_estimators=5, **PARAMETERS).fit(X, y)


def test_own_trees_become_a_model_of_lightgbm(own):
    pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    booster = own.to_lightgbm()
    X = rows()[0]
    splits = own.trees_.threshold[own.trees_.feature >= 0]
    on_splits = np.repeat(splits[:, None], 3, axis=1)
    near = on_splits.astype(np.float32).astype(np.float64)
    for rows_of in (X, on_splits, near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)):
        np.testing.assert_allclose(booster.predict(rows_of), own.decision_function(rows_of), atol=1e-12)
    check_lightgbm_text(booster.model_to_string())


def test_thresholds_of_doubles_are_those_of_single_precision():
    random = np.random.default_rng(0)
    thresholds = np.concatenate([random.normal(size=200), np.float32(random.normal(size=200)), [0.0, np.inf, 1e-45]])
    found = _of_doubles(thresholds)
    for moved in (found, np.nextafter(found, np.inf)):
        np.testing.assert_array_equal(moved.astype(np.float32) <= thresholds, moved <= found)


def test_what_has_no_such_model_says_what_has(own):
    with pytest.raises(ValueError, match="not those of one model of XGBoost; fit with trees as one frozen model"):
        own.to_xgboost()
    X, y = rows()
    frame = pd.DataFrame({"a": X[:, 1], "kind": np.where(X[:, 2] > 0.5, "card", "wire")})
    model = TopForest(n_estimators=1, **PARAMETERS).fit(frame, y)
    with pytest.raises(ValueError, match=r"columns \['kind'\] hold categories.*use toprank.to_onnx"):
        model.to_lightgbm()
    boosted = HistGradientBoostingClassifier(max_iter=3).fit(X, y)
    model = TopForest(trees=FrozenEstimator(boosted), **PARAMETERS).fit(X, y)
    with pytest.raises(ValueError, match=r"fit with trees as one frozen model of LightGBM$"):
        model.to_lightgbm()
    with pytest.raises(ValueError, match="must be forests of scikit-learn, or one model of LightGBM or XGBoost"):
        model.contributions(X)
    with pytest.raises(TypeError, match="has no ONNX export here; let it grow its own trees"):
        to_onnx(model)


def _shap_values(booster, X):
    shap = pytest.importorskip("shap", reason="shap is not installed")
    explanation = shap.TreeExplainer(booster)(X)
    return explanation.values, np.ravel(explanation.base_values)[0]


@pytest.mark.parametrize("trees", [None, RandomForestClassifier(5, max_depth=3, random_state=0)])
def test_shap_says_of_what_is_exported_what_contributions_say(trees):
    pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    X, y = rows()
    trees = None if trees is None else FrozenEstimator(trees.fit(X, y))
    model = TopForest(n_estimators=4, trees=trees, **PARAMETERS).fit(X, y)
    values, base = _shap_values(model.to_lightgbm(), X[:20])
    contributions, mean = model.contributions(X[:20])
    np.testing.assert_allclose(values, contributions, atol=1e-6)
    assert base == pytest.approx(mean, abs=1e-6)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_shap_explains_a_retuned_booster(library):
    X, y = rows()
    old = (lightgbm_model() if library == "lightgbm" else xgboost_model()).fit(X, y)
    model = TopForest(trees=FrozenEstimator(old), **PARAMETERS).fit(X, y)
    booster = getattr(model, f"to_{library}")()
    values, base = _shap_values(booster, X[:20])
    np.testing.assert_allclose(values.sum(axis=1) + base, model.decision_function(X[:20]), atol=1e-5)


@pytest.mark.parametrize("is_booster", [False, True])
@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_contributions_on_trees_of_a_library_are_those_of_shap(library, is_booster):
    X, y = rows()
    old = (lightgbm_model() if library == "lightgbm" else xgboost_model()).fit(X, y)
    booster = old.booster_ if library == "lightgbm" else old.get_booster()
    model = TopForest(trees=FrozenEstimator(booster if is_booster else old), **PARAMETERS).fit(X, y)
    contributions, mean = model.contributions(X[:20])
    assert contributions.shape == (20, X.shape[1])
    np.testing.assert_allclose(contributions.sum(axis=1) + mean, model.decision_function(X[:20]), atol=1e-5)
    with pytest.raises(ValueError, match="there are no rows to explain; pass one at least"):
        model.contributions(X[:0])
    top = model.decision_function(X).argmax()
    assert reasons(model, X[[top]], n=1)[0][0].contribution == model.contributions(X[[top]])[0].max()
    values, base = _shap_values(getattr(model, f"to_{library}")(), X[:20])
    np.testing.assert_allclose(values, contributions, atol=1e-5)
    assert base == pytest.approx(mean, abs=1e-5)
