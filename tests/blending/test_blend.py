"""A blend of models for the top: its weights, its threshold, and what a user expects of an ensemble."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import toprank
from toprank import PatMatNP, TauFPL, TopBlend
from toprank.blending.blend import _columns
from toprank.datasets import make_imbalanced
from toprank.exceptions import InputError, PositiveClassWarning

X, Y, _ = make_imbalanced(900, separation=3.0, random_state=0)
LINE = ("line", LogisticRegression())
TREE = ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))


@pytest.fixture(scope="module")
def blend():
    return TopBlend([LINE, TREE], tau=0.05, random_state=0).fit(X[:600], Y[:600])


def test_the_score_is_that_of_the_head_on_levels_of_the_models(blend):
    levels = blend.levels(X)
    own = blend.head_.decision_function(_columns(levels))
    ours = blend.decision_function(X)
    np.testing.assert_allclose(ours - ours[0], own - own[0], atol=1e-9)
    assert blend.weights_.sum() == pytest.approx(1000 * blend.head_.coef_[0, 0])
    assert blend.dual_gap_ <= 1e-4


def test_levels_are_those_of_rows_that_a_model_has_not_seen():
    """The scale of a model is made of what cross-validation says, not of rows that it was fitted to."""
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    blend = TopBlend([TREE], cv=folds, alpha=10.0).fit(X, Y)
    held_out = cross_val_predict(TREE[1], X, Y == 1, cv=folds, method="predict_proba")[:, 1]
    negatives = np.unique(held_out[Y != 1])
    np.testing.assert_allclose(blend.scales_[0][0][: len(negatives)], negatives)


def test_a_large_penalty_gives_the_plain_mean_and_a_small_one_does_not():
    mean = TopBlend([LINE, TREE], alpha=1e7, random_state=0).fit(X, Y)
    free = TopBlend([LINE, TREE], alpha=0.1, random_state=0).fit(X, Y)
    np.testing.assert_allclose(mean.weights_, mean.weights_.mean(), rtol=1e-3)
    assert np.ptp(free.weights_) > 0.1 * np.abs(free.weights_).mean()
    assert mean.selection_ == {}


def test_the_penalty_that_finds_most_is_taken(blend):
    found = blend.selection_["found"]
    assert blend.alpha_ == blend.selection_["alpha"][np.argmax(found)]
    assert len(found) == 9
    assert np.all((found >= 0) & (found <= 1))


def test_a_useless_model_gets_less_weight():
    noise = np.random.default_rng(0).normal(size=(900, 1))
    both = np.hstack([noise, X])
    blind = make_pipeline(make_column_transformer(("passthrough", [0])), KNeighborsClassifier(3))
    blend = TopBlend([("line", LogisticRegression()), ("blind", blind)], alpha=1.0, random_state=0).fit(both, Y)
    assert blend.weights_[1] < 0.5 * blend.weights_[0]


def test_its_own_threshold_spends_the_budget():
    rows, labels, _ = make_imbalanced(20_000, separation=3.0, random_state=1)
    blend = TopBlend([LINE, TREE], tau=0.05, alpha=10.0, random_state=0).fit(rows[:5000], labels[:5000])
    rate = blend.predict(rows[5000:])[labels[5000:] == 0].mean()
    assert 0.035 < rate < 0.065


def test_frozen_models_are_left_as_they_are():
    models = [(name, FrozenEstimator(model.fit(X[:300], Y[:300]))) for name, model in (LINE, TREE)]
    blend = TopBlend(models, alpha=10.0, random_state=0).fit(X[300:], Y[300:])
    np.testing.assert_array_equal(blend.estimators_[0].coef_, LINE[1].coef_)
    mixed = TopBlend([models[0], TREE], alpha=10.0, random_state=0).fit(X[300:], Y[300:])
    assert [type(model).__name__ for model in mixed.estimators_] == ["FrozenEstimator", "DecisionTreeClassifier"]


def test_weights_of_zero_remove_rows_and_reach_the_models():
    weights = np.where(np.arange(900) % 3 == 0, 0.0, 1.0)
    scaled = ("scaled", make_pipeline(StandardScaler(), LogisticRegression()))
    folds = list(StratifiedKFold(3).split(X, Y))
    weighted = TopBlend([scaled, TREE], alpha=10.0, cv=folds).fit(X, Y, sample_weight=weights)
    number = np.cumsum(weights > 0) - 1
    kept = [tuple(number[rows[weights[rows] > 0]] for rows in split) for split in folds]
    removed = TopBlend([scaled, TREE], alpha=10.0, cv=kept).fit(X[weights > 0], Y[weights > 0])
    np.testing.assert_allclose(weighted.decision_function(X), removed.decision_function(X), rtol=1e-9)
    twice = TopBlend([scaled, TREE], alpha=10.0, cv=folds).fit(X, Y, sample_weight=1.0 + (Y == 1))
    assert not np.allclose(
        twice.estimators_[0][-1].intercept_, TopBlend([scaled], alpha=10.0).fit(X, Y).estimators_[0][-1].intercept_
    )
    with pytest.raises(InputError, match="KNeighborsClassifier takes no sample_weight"):
        TopBlend([("near", KNeighborsClassifier())]).fit(X, Y, sample_weight=np.ones(900))


def test_the_same_seed_gives_the_same_model_whatever_the_jobs(blend):
    other = clone(blend).set_params(n_jobs=2).fit(X[:600], Y[:600])
    np.testing.assert_array_equal(other.decision_function(X), blend.decision_function(X))


def test_sparse_rows_frames_and_words_as_labels():
    words = np.where(Y == 1, "yes", "no")
    dense = TopBlend([LINE, TREE], alpha=10.0, random_state=0).fit(X, Y)
    sparse = TopBlend([LINE, TREE], alpha=10.0, random_state=0).fit(csr_array(X), Y)
    assert np.corrcoef(dense.decision_function(X), sparse.decision_function(csr_array(X)))[0, 1] > 0.999
    named = TopBlend([LINE, TREE], alpha=10.0, random_state=0, pos_label="yes")
    named.fit(pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]), words)
    assert list(named.feature_names_in_[:2]) == ["x0", "x1"]
    assert set(named.predict(pd.DataFrame(X, columns=named.feature_names_in_))) <= {"yes", "no"}


def test_the_positive_class_is_the_one_that_is_named():
    words = np.where(Y == 1, "fraud", "ok")
    plain = TopBlend([LINE, ("top", PatMatNP(tau=0.05))], alpha=10.0, random_state=0).fit(X, Y)
    named = clone(plain).set_params(pos_label="fraud").fit(X, words)
    assert named.classes_.tolist() == ["ok", "fraud"]
    np.testing.assert_array_equal(named.decision_function(X), plain.decision_function(X))
    with pytest.warns(PositiveClassWarning, match="'ok'"):
        TopBlend([LINE], alpha=10.0).fit(X, words)
    frozen = FrozenEstimator(LogisticRegression().fit(X, words))  # it scores "ok", the last in sorted order
    with pytest.raises(InputError, match="must be the class that the frozen model 'theirs' scores, 'ok'"):
        TopBlend([("theirs", frozen)], pos_label="fraud").fit(X, words)


def test_models_are_reached_by_their_names(blend):
    changed = clone(blend).set_params(line__C=0.5, tree=ExtraTreesClassifier(5))
    assert changed.get_params()["line__C"] == 0.5
    assert isinstance(dict(changed.estimators)["tree"], ExtraTreesClassifier)
    assert blend.named_estimators_["line"] is blend.estimators_[0]


def test_another_head():
    blend = TopBlend([LINE, TREE], head=TauFPL(tau=0.2), alpha=10.0, random_state=0).fit(X, Y)
    assert isinstance(blend.head_, TauFPL)
    assert blend.head_.alpha == 10.0


def test_it_is_saved_and_loaded(tmp_path):
    model = TopBlend([LINE, ("top", PatMatNP(tau=0.05))], alpha=10.0, random_state=0).fit(X, Y)
    toprank.save(model, tmp_path / "blend.toprank")
    loaded = toprank.load(tmp_path / "blend.toprank")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"estimators": []}, "estimators must be pairs of a name and a classifier, got"),
        ({"estimators": LogisticRegression()}, "estimators must be pairs of a name and a classifier, got"),
        ({"estimators": [LogisticRegression()]}, "estimators must be pairs of a name and a classifier, got"),
        ({"estimators": [("line", LinearRegression())]}, "'line' in estimators has neither decision_function"),
        ({"tau": 1.5}, "tau must be strictly between 0 and 1"),
        ({"alpha": -1}, "alpha must be positive"),
        ({"head": LogisticRegression()}, "head must be a linear method of the family"),
        ({"cv": [(np.arange(450), np.arange(450, 900))]}, "cv has row 0 in 0 test parts"),
        ({"cv": KFold(2).split(X[:10])}, "cv has row 10 in 0 test parts"),
    ],
)
def test_errors_name_the_value_and_the_remedy(parameters, words):
    with pytest.raises(InputError, match=words):
        TopBlend(**{"estimators": [LINE], **parameters}).fit(X, Y)


def test_too_few_rows_of_a_class():
    with pytest.raises(ValueError, match="at least 2 rows of each class"):
        TopBlend([LINE]).fit(X[:50], np.arange(50) == 0)


@pytest.mark.filterwarnings("ignore::toprank.exceptions.PositiveClassWarning")
@parametrize_with_checks([TopBlend([LINE, TREE], alpha=10.0, cv=2, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
