"""`TopForest(trees=...)`: new leaf values for the trees of others, pulled to the old ones."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from toprank import TopForest
from toprank.metrics import tpr_at_fpr


def rows(n=400, seed=0, drift=0.0):
    """Rows of five features and noisy labels; with drift, another feature counts."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    signal = X[:, 0] + X[:, 1] ** 2 + drift * (X[:, 2] > 0.5)
    return X, (signal + rng.standard_normal(n) > 2.2).astype(int)


def of_library(module, name, **parameters):
    """An unfitted model of a library that may not be installed."""
    return getattr(pytest.importorskip(module), name)(**parameters)


SOURCES = {
    "ExtraTreesRegressor": lambda: ExtraTreesRegressor(6, max_leaf_nodes=9, random_state=0),
    "RandomForest": lambda: RandomForestClassifier(6, max_depth=4, random_state=0),
    "GradientBoosting": lambda: GradientBoostingClassifier(n_estimators=6, random_state=0),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5),
    "LightGBM": lambda: of_library("lightgbm", "LGBMClassifier", n_estimators=6, min_child_samples=5, verbose=-1),
    "XGBoost": lambda: of_library("xgboost", "XGBClassifier", n_estimators=6, max_depth=3),
    "dart": lambda: of_library("xgboost", "XGBClassifier", n_estimators=6, max_depth=3, booster="dart", rate_drop=0.5),
    "CatBoost": lambda: of_library(
        "catboost", "CatBoostClassifier", iterations=6, depth=3, verbose=0, allow_writing_files=False
    ),
}


def raw_scores(model, X):
    """What the leaves of an ensemble add up to, by the library itself."""
    if hasattr(model, "booster_"):
        return model.predict(X, raw_score=True)
    if hasattr(model, "get_booster"):
        return model.predict(X, output_margin=True)
    if hasattr(model, "calc_leaf_indexes"):
        return model.predict(X, prediction_type="RawFormulaVal")
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize("name", SOURCES)
def test_a_large_penalty_gives_back_the_old_model_and_a_small_one_moves_its_leaves(name):
    old = SOURCES[name]().fit(*rows())
    recent, y = rows(seed=1, drift=2.0)
    new, _ = rows(300, seed=2)
    parameters = {"tau": 0.1, "trees": FrozenEstimator(old), "random_state": 0}
    model = TopForest(alpha=1e12, **parameters).fit(recent, y)
    scores, before = model.decision_function(new), np.asarray(raw_scores(old, new), dtype=float)
    slope, constant = np.polyfit(before, scores, 1)
    assert slope > 0
    np.testing.assert_allclose(slope * before + constant, scores, atol=1e-5 * np.ptp(scores))
    assert model.sources_ == [old]
    assert len(model.leaf_values_) == model.n_leaves_.sum()
    free = TopForest(alpha=1e-3, **parameters).fit(recent, y).decision_function(new)
    assert np.corrcoef(free, before)[0, 1] < 0.98


@pytest.mark.parametrize("name", ["RandomForest", "LightGBM", "XGBoost"])
def test_the_ranking_of_the_old_model_to_the_last_pair(name):
    old = SOURCES[name]().fit(*rows())
    new, _ = rows(300, seed=2)
    model = TopForest(tau=0.1, trees=FrozenEstimator(old), alpha=1e12, random_state=0).fit(*rows(seed=1))
    scores, before = model.decision_function(new), np.asarray(raw_scores(old, new), dtype=float)
    apart = before[:, None] - before > 1e-6  # equal sums of single precision are no order
    assert (scores[:, None] > scores)[apart].all()


@pytest.mark.parametrize("name", ["RandomForest", "LightGBM", "XGBoost"])
def test_boosters_and_forests_have_the_sum_of_the_leaf_values(name):
    old = SOURCES[name]().fit(*rows())
    recent, y = rows(seed=1)
    model = TopForest(tau=0.1, trees=FrozenEstimator(old), alpha=0.1, random_state=0).fit(recent, y)
    assert (model.trees_ is None) is (name != "RandomForest")
    numbers = model._grove_.leaf_numbers(recent)
    starts = np.cumsum(model.n_leaves_) - model.n_leaves_
    expected = model.leaf_values_[numbers + starts].sum(axis=1) + model.intercept_
    np.testing.assert_allclose(model.decision_function(recent), expected, atol=1e-10)
    assert 0 <= model.dual_gap_ <= 1e-4


def test_what_has_drifted_is_found_again():
    old = GradientBoostingClassifier(n_estimators=40, max_depth=3, random_state=0).fit(*rows(1500, drift=0.3))
    new, y_new = rows(4000, seed=2, drift=3.0)
    model = TopForest(tau=0.1, trees=FrozenEstimator(old), random_state=0).fit(*rows(800, seed=1, drift=3.0))
    before = tpr_at_fpr(y_new, old.decision_function(new), max_fpr=0.1)
    assert tpr_at_fpr(y_new, model.decision_function(new), max_fpr=0.1) > before + 0.05
    assert model.selection_["honest"]  # the trees have seen none of the rows
    assert 0.07 < model.predict(new)[y_new == 0].mean() < 0.13


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_booster_is_read_as_its_model(library):
    name = {"lightgbm": "LightGBM", "xgboost": "XGBoost"}[library]
    old = SOURCES[name]().fit(*rows())
    booster = old.booster_ if library == "lightgbm" else old.get_booster()
    X, y = rows(seed=1)
    models = [
        TopForest(tau=0.1, trees=FrozenEstimator(one), alpha=0.1, random_state=0).fit(X, y) for one in (old, booster)
    ]
    np.testing.assert_allclose(*(model.decision_function(X) for model in models), atol=1e-12)
    with pytest.raises(ValueError, match="trees must be models that can be fitted, or frozen"):
        TopForest(trees=booster).fit(X, y)
    with pytest.raises(ValueError, match="X has 4 features, but the trees of Booster were fitted to 5"):
        TopForest(trees=FrozenEstimator(booster)).fit(X[:, :4], y)


def test_ensembles_that_are_grown_here():
    X, y = rows()
    new, y_new = rows(3000, seed=2)
    grove = [
        RandomForestClassifier(10, min_samples_leaf=3),
        HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5),
    ]
    models = [TopForest(tau=0.1, trees=grove, alpha=0.1, random_state=0).fit(X, y) for _ in range(2)]
    model = models[0]
    assert model.selection_["honest"] is False  # boosting has seen all rows
    assert len(model.sources_) == 2
    assert len(model.n_leaves_) == 15
    assert tpr_at_fpr(y_new, model.decision_function(new), max_fpr=0.1) > 0.45
    assert 0.05 < model.predict(new)[y_new == 0].mean() < 0.15  # by scores of rows that the trees have not seen
    np.testing.assert_array_equal(*(model.decision_function(new) for model in models))


def test_boosting_is_judged_by_trees_that_have_not_seen_the_rows():
    """Labels without any sense: trees that had seen the rows would find many of them."""
    X, _ = rows(300)
    y = np.random.default_rng(0).random(300) < 0.3
    boosting = GradientBoostingClassifier(n_estimators=20, max_depth=6, random_state=0)
    model = TopForest(tau=0.1, trees=boosting, alpha=1e-3, random_state=0).fit(X, y)
    assert tpr_at_fpr(y, model.decision_function(X), max_fpr=0.1) > 0.9
    assert model.selection_["worth"] < 0.35


def test_a_bagged_forest_has_honest_leaves_and_a_prior_out_of_bag():
    X, y = rows()
    forest = ExtraTreesClassifier(30, bootstrap=True, oob_score=True, random_state=0)
    model = TopForest(tau=0.1, trees=forest, honest=True, alpha=1e12).fit(X, y)
    out_of_bag = model.sources_[0].oob_decision_function_[:, 1]
    negatives = np.sort(out_of_bag[y == 0])[::-1]
    share = negatives[int(0.1 * len(negatives))]  # a tenth of the negatives is above it
    slope = np.ptp(model.decision_function(X)) / np.ptp(model.sources_[0].predict_proba(X)[:, 1])
    folds = 0.05 * slope  # the prior of each fold has a slope of its own
    at_threshold = share * slope + model.leaf_values_.min() * 30
    assert at_threshold == pytest.approx(model.threshold_, abs=folds)


def test_categories_and_gaps_go_to_the_booster_as_they_are():
    X, y = rows()
    frame = pd.DataFrame({"number": X[:, 0], "word": pd.Categorical(np.where(X[:, 1] ** 2 > 1, "much", "little"))})
    frame.loc[::7, "number"] = np.nan
    old = SOURCES["LightGBM"]().fit(frame, y)
    model = TopForest(tau=0.1, trees=FrozenEstimator(old), alpha=1e12).fit(frame, y, sample_weight=np.arange(400) % 3)
    scores, before = model.decision_function(frame), raw_scores(old, frame)
    np.testing.assert_allclose(
        scores - scores.mean(), (before - before.mean()) * scores.std() / before.std(), atol=1e-5
    )


def test_what_cannot_be_retuned_says_why():
    X, y = rows()
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    linear = of_library("lightgbm", "LGBMClassifier", n_estimators=2, linear_tree=True, verbose=-1).fit(X, y)
    of_lines = of_library("xgboost", "XGBClassifier", n_estimators=2, booster="gblinear").fit(X, y)
    based = GradientBoostingClassifier(n_estimators=2, init=LogisticRegression()).fit(X, y)
    three = RandomForestClassifier(3).fit(X, np.arange(len(y)) % 3)
    for trees, message in (
        (LogisticRegression(), "trees must be ensembles of trees"),
        (FrozenEstimator(make_pipeline(forest)), "trees must be ensembles of trees"),
        ([], "trees must have an ensemble at least"),
        (FrozenEstimator(linear), "linear models in place of values; fit it with linear_tree=False"),
        (FrozenEstimator(of_lines), "(?s)trees must be ensembles of trees.*use booster='gbtree'"),
        (FrozenEstimator(based), "begin with those of another model, init="),
        (FrozenEstimator(three), "fit it to two classes"),
    ):
        with pytest.raises(ValueError, match=message):
            TopForest(trees=trees).fit(X, y)
    with pytest.raises(ValueError, match="X has 3 features, but the trees of RandomForestClassifier were fitted to 5"):
        TopForest(trees=FrozenEstimator(forest)).fit(X[:, :3], y)
    with pytest.raises(ValueError, match="honest=True needs trees that have not seen each row"):
        TopForest(trees=GradientBoostingClassifier(n_estimators=2), honest=True).fit(X, y)
