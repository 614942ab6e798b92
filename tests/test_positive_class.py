"""Which class is positive: the one that the user names, whatever the labels are; else a guess is never silent."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import check_scoring, f1_score, make_scorer
from sklearn.metrics import roc_auc_score as sklearn_auc
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toprank
from toprank import (
    AlertShareClassifier,
    NeymanPearsonClassifier,
    PatMatNP,
    PositiveClassWarning,
    TauFPL,
    TopKClassifier,
    TopSearchCV,
    WMWRanker,
    compare,
    online,
)
from toprank.base import is_positive, two_classes
from toprank.datasets import make_imbalanced
from toprank.metrics import get_scorer, roc_auc_score, tpr_at_fpr, wmw_score
from toprank.plots import RocAtTopDisplay

# Fits are short, and some look for the wrong class.
pytestmark = [
    pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

X, Y, _ = make_imbalanced(300, 4, positive_share=0.2, separation=2.5, random_state=0)
WORDS = np.where(Y == 1, "fraud", "ok")  # the positive class is the first in sorted order
PRICES = np.where(Y == 1, 10, 20)
FOLDS = {"cv": 3}
PIPELINE = make_pipeline(StandardScaler(), TauFPL(tau=0.1))
SHORT = {"max_iter": 5, "random_state": 0, "threshold": "trained"}

MODELS = {
    "TopPush": toprank.TopPush(alpha=1.0),
    "TopPushK": toprank.TopPushK(k=5),
    "TauFPL": TauFPL(tau=0.1),
    "TopMeanK": toprank.TopMeanK(tau=0.5),
    "PatMat": toprank.PatMat(tau=0.1),
    "PatMatNP": PatMatNP(tau=0.1),
    "Grill": toprank.Grill(tau=0.1, **SHORT),
    "GrillNP": toprank.GrillNP(tau=0.1, **SHORT),
    "kernel": TauFPL(tau=0.1, kernel="rbf", alpha=1e-3),
    "nystroem": TauFPL(tau=0.1, kernel="rbf", approximation="nystroem", n_components=20, random_state=0),
    "CBR": online.CBR(random_state=0),
    "OAM": online.OAM(random_state=0),
    "OPAUC": online.OPAUC(),
    "AdaOAM": online.AdaOAM(),
    "UniExp": online.UniExp(),
    "WMWRanker": WMWRanker(),
    "NeymanPearsonClassifier": NeymanPearsonClassifier(PIPELINE, 0.1, random_state=0),
    "vote": NeymanPearsonClassifier(PIPELINE, 0.2, cv=2, random_state=0),
    "pooled": NeymanPearsonClassifier(PIPELINE, 0.2, cv=2, combine="refit", random_state=0),
    "of a forest": NeymanPearsonClassifier(RandomForestClassifier(5, random_state=0), 0.2, random_state=0),
    "with class weights": TopKClassifier(LogisticRegression(class_weight={"fraud": 3.0, "ok": 1.0}), k=20),
    "AlertShareClassifier": AlertShareClassifier(PIPELINE, 0.1, random_state=0),
    "TopKClassifier": TopKClassifier(PIPELINE, k=20),
    "around a search": TopKClassifier(
        GridSearchCV(SGDClassifier(random_state=0), {"alpha": [1e-3, 1.0]}, scoring="average_precision", cv=3), k=20
    ),
    "TopSearchCV": TopSearchCV(PIPELINE, {"taufpl__alpha": [0.1, 1.0]}, **FOLDS),
    "search by roc_auc": TopSearchCV(PIPELINE, {"taufpl__alpha": [0.1, 1.0]}, scoring="roc_auc", **FOLDS),
    "search of another": TopSearchCV(
        SGDClassifier(random_state=0), {"alpha": [1e-3, 1.0]}, scoring="average_precision", **FOLDS
    ),
}
WEIGHTS_OF_CODES = {"with class weights": {"estimator__class_weight": {1: 3.0, 0: 1.0}}}


def fitted(name, y, **parameters):
    return clone(MODELS[name]).set_params(**parameters).fit(X, y)


@pytest.mark.parametrize("labels", [WORDS, PRICES], ids=["words", "numbers"])
@pytest.mark.parametrize("name", MODELS)
def test_models_are_the_same_to_the_last_bit_whatever_the_labels_are(name, labels):
    if name in WEIGHTS_OF_CODES and labels is PRICES:
        pytest.skip("its class weights name words")
    expected = fitted(name, Y, **WEIGHTS_OF_CODES.get(name, {}))
    positive = labels[np.argmax(Y)]
    model = fitted(name, labels, pos_label=positive.item())
    assert model.classes_.tolist() == [labels[np.argmin(Y)], positive]
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    if not isinstance(model, WMWRanker):
        np.testing.assert_array_equal(model.predict(X) == positive, expected.predict(X) == 1)
    if hasattr(model, "scorer_"):
        assert model.cv_results_["mean_test_score"].tolist() == expected.cv_results_["mean_test_score"].tolist()
        assert model.score(X, labels) == expected.score(X, Y)


def test_two_hundred_alerts_are_two_hundred_frauds():
    X, y, _ = make_imbalanced(20_000, positive_share=0.005, random_state=1)
    labels = np.where(y == 1, "fraud", "ok")
    model = TopKClassifier(PatMatNP(), k=200, pos_label="fraud").fit(X[:10_000], labels[:10_000])
    alerts = model.predict(X[10_000:]) == "fraud"
    assert alerts.sum() == 200
    assert (labels[10_000:][alerts] == "fraud").mean() > 10 * np.mean(y[10_000:])


@pytest.mark.parametrize("name", sorted(set(MODELS) - {"with class weights"}))
def test_a_guess_is_said_once_however_many_fits_there_are(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PositiveClassWarning)
        model = fitted(name, WORDS)
    assert model.classes_.tolist() == ["fraud", "ok"]
    texts = [str(warning.message) for warning in caught if warning.category is PositiveClassWarning]
    assert len(texts) == 1
    assert type(model).__name__ in texts[0]
    assert "'ok'" in texts[0]
    assert "pos_label=" in texts[0]
    assert [warning.filename for warning in caught] == [__file__]


def test_a_majority_as_the_positive_class_is_said():
    many = 1 - (np.arange(300) % 15 == 0)
    with pytest.warns(PositiveClassWarning, match=r"TauFPL takes 1 .* 90 % of the rows or more have; .*pos_label=0"):
        TauFPL(tau=0.1).fit(X, many)
    with pytest.warns(PositiveClassWarning, match=r"'ok'.*, which 90 % .* by pos_label='fraud'"):
        two_classes(np.where(many, "ok", "fraud"), "compare")
    TauFPL(tau=0.1, pos_label=1).fit(X, many)  # it was meant so
    TauFPL(tau=0.1).fit(X, 1 - Y)  # 80 % are not that many


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], [False, True], [0.0, 1.0]])
def test_usual_labels_need_no_word(labels):
    y = np.asarray(labels)[Y]
    assert two_classes(y, "nobody").tolist() == labels
    assert two_classes(y, "nobody", labels[0]).tolist() == labels[::-1]
    assert is_positive(y, two_classes(y, "nobody", labels[0])).tolist() == (Y == 0).tolist()


@pytest.mark.parametrize(
    ("pos_label", "message"),
    [
        (
            "Fraud",
            r"^pos_label must be one of the labels, which are 'fraud', 'ok', got 'Fraud'; did you mean 'fraud'\?$",
        ),
        (1, r"^pos_label must be one of the labels, which are 'fraud', 'ok', got 1$"),
    ],
)
@pytest.mark.parametrize("name", ["TauFPL", "OAM", "WMWRanker", "TopKClassifier", "vote", "TopSearchCV"])
def test_a_label_that_is_not_there_is_refused(name, pos_label, message):
    with pytest.raises(ValueError, match=message):
        fitted(name, WORDS, pos_label=pos_label)


def test_the_estimator_inside_may_name_the_class():
    outer = TopKClassifier(PIPELINE, k=20, pos_label="fraud").fit(X, WORDS)
    inner = TopKClassifier(make_pipeline(StandardScaler(), TauFPL(tau=0.1, pos_label="fraud")), k=20).fit(X, WORDS)
    assert inner.classes_.tolist() == ["ok", "fraud"]
    np.testing.assert_array_equal(inner.decision_function(X), outer.decision_function(X))
    with pytest.raises(ValueError, match="pos_label is not the same everywhere: elsewhere it is 'ok', got 'fraud'"):
        TopKClassifier(TauFPL(pos_label="ok"), k=20, pos_label="fraud").fit(X, WORDS)


def test_a_frozen_model_keeps_its_class():
    frozen = FrozenEstimator(TauFPL(tau=0.1, pos_label="fraud").fit(X, WORDS))
    model = NeymanPearsonClassifier(frozen, 0.1).fit(X, WORDS)
    assert model.classes_.tolist() == ["ok", "fraud"]
    assert np.mean(model.predict(X)[Y == 0] == "fraud") <= 0.1
    other = FrozenEstimator(LogisticRegression().fit(X, WORDS))
    with pytest.raises(ValueError, match="must be the class that the frozen estimator scores, 'ok', got 'fraud'"):
        TopKClassifier(other, k=20, pos_label="fraud").fit(X, WORDS)


def test_errors_name_the_labels_of_the_user():
    later = np.argsort(Y, kind="stable")
    splits = [(later[:100], later[100:])]
    with pytest.raises(ValueError, match=r"split 0 of cv trains on rows of one class only, \['ok'\]"):
        NeymanPearsonClassifier(PIPELINE, 0.2, cv=splits, pos_label="fraud").fit(X, WORDS)
    with pytest.raises(ValueError, match=r"only one class is left: 'ok'$"):
        TauFPL(pos_label="fraud").fit(X, WORDS, sample_weight=1.0 * (Y == 0))
    with pytest.raises(ValueError, match=r"a class is missing: \['ok'\] is left"):
        TopKClassifier(TauFPL(), k=3, pos_label="fraud").fit(X, WORDS, sample_weight=1.0 * (Y == 0))


def test_online_models_keep_their_class():
    model = online.OAM(pos_label="fraud", random_state=0).partial_fit(X[:5], WORDS[:5], classes=["fraud", "ok"])
    model.partial_fit(X[5:], WORDS[5:], classes=["ok", "fraud"])
    assert model.classes_.tolist() == ["ok", "fraud"]
    with pytest.raises(ValueError, match="pos_label must stay what it was when this model started, 'fraud', got 'ok'"):
        model.set_params(pos_label="ok").partial_fit(X, WORDS)


# --- scorers, compare ------------------------------------------------------------------------------------------------

METRIC = ("tpr_at_fpr", {"max_fpr": 0.05})


def search(model, y, grid, scoring):
    return GridSearchCV(model, grid, scoring=scoring, cv=3).fit(X, y).cv_results_["mean_test_score"]


def test_searches_of_scikit_learn_with_words():
    scoring, grid = get_scorer("tpr_at_fpr", max_fpr=0.05), {"alpha": [0.1, 1.0]}
    expected = search(TauFPL(tau=0.1), Y, grid, scoring)
    np.testing.assert_array_equal(search(TauFPL(tau=0.1, pos_label="fraud"), WORDS, grid, scoring), expected)
    forest = make_pipeline("passthrough", RandomForestClassifier(5, random_state=0))
    depth = {"randomforestclassifier__max_depth": [1, 3]}
    with pytest.warns(PositiveClassWarning, match="the scorer of RandomForestClassifier takes 'ok'"):
        guessed = search(forest, WORDS, depth, scoring)
    np.testing.assert_array_equal(
        guessed, search(forest, WORDS, depth, get_scorer(*METRIC[:1], max_fpr=0.05, pos_label="ok"))
    )


def test_the_area_under_the_curve_of_scikit_learn_is_of_the_last_label():
    """The reason why there is one in `get_scorer`."""
    model = TauFPL(tau=0.1, pos_label="fraud")
    expected = search(TauFPL(tau=0.1), Y, {"alpha": [0.1, 1.0]}, "roc_auc")
    ours = search(model, WORDS, {"alpha": [0.1, 1.0]}, get_scorer("roc_auc"))
    np.testing.assert_allclose(ours, expected, rtol=1e-12)
    with pytest.warns(
        PositiveClassWarning, match=r"roc_auc_score of scikit-learn takes 'ok' .*get_scorer\('roc_auc'\)"
    ):
        theirs = search(model, WORDS, {"alpha": [0.1, 1.0]}, "roc_auc")
    np.testing.assert_allclose(theirs, 1 - expected, rtol=1e-9)  # if this changes, the documentation may, too
    scores = model.fit(X, WORDS).decision_function(X)
    assert roc_auc_score(WORDS, scores, pos_label="fraud") == pytest.approx(sklearn_auc(Y, scores), rel=1e-12)


@pytest.mark.parametrize("name", ["TauFPL", "OAM", "TopKClassifier", "NeymanPearsonClassifier", "AlertShareClassifier"])
def test_a_scorer_that_knows_no_class_is_said(name):
    model = fitted(name, WORDS, pos_label="fraud")
    for scoring in ("roc_auc", ["roc_auc", "accuracy"]):
        with pytest.warns(PositiveClassWarning, match="roc_auc_score of scikit-learn takes 'ok'") as caught:
            check_scoring(make_pipeline("passthrough", model), scoring)(make_pipeline("passthrough", model), X, WORDS)
        assert [warning.filename for warning in caught] == [__file__]
    model.predict(X)
    make_scorer(f1_score, pos_label="fraud", response_method="predict")(model, X, WORDS)
    get_scorer("roc_auc")(model, X, WORDS)
    check_scoring(model, "roc_auc")(fitted(name, Y), X, Y)


def test_a_search_of_scikit_learn_says_it_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        search(TauFPL(tau=0.1), WORDS, {"alpha": [0.1, 1.0]}, get_scorer("roc_auc"))
    assert [warning.category for warning in caught] == [PositiveClassWarning]


def test_comparison_with_words():
    models = {"ours": TauFPL(tau=0.1), "forest": RandomForestClassifier(5, random_state=0), "ranker": WMWRanker()}
    metrics = [METRIC, "roc_auc", "average_precision", "positives_at_top", "wmw"]
    expected = compare(models, X, Y, metrics=metrics, **FOLDS)
    result = compare(models, X, WORDS, metrics=metrics, pos_label="fraud", **FOLDS)
    assert result.fold_scores == expected.fold_scores
    assert not any(row["error"] or row["warning"] for row in result.rows)
    models["ours"] = TauFPL(tau=0.1, pos_label="fraud")  # it is enough that one names it
    assert compare(models, X, WORDS, metrics=metrics, **FOLDS).fold_scores == expected.fold_scores


def test_metrics_of_the_user_get_the_labels_of_the_user():
    def caught(model, X, y):
        return float(np.mean((model.predict(X) == "fraud") & (y == "fraud")))

    metrics = {
        "function": caught,
        "theirs": make_scorer(f1_score, pos_label="fraud"),
        "ours": get_scorer("tpr_at_fpr", max_fpr=0.05, pos_label="fraud"),
    }
    codes = {
        "function": lambda model, X, y: float(np.mean((model.predict(X) == 1) & (y == 1))),
        "theirs": "f1",
        "ours": METRIC,
    }
    result = compare([TauFPL(tau=0.1)], X, WORDS, metrics=metrics, **FOLDS)
    assert result.fold_scores == compare([TauFPL(tau=0.1)], X, Y, metrics=codes, **FOLDS).fold_scores


def test_a_guess_of_a_comparison_is_said_once():
    with pytest.warns(PositiveClassWarning, match="compare takes 'ok'") as caught:
        result = compare([TauFPL(tau=0.1), LogisticRegression()], X, WORDS, metrics=METRIC, **FOLDS)
    assert len(caught) == 1
    assert all(np.isfinite(row["mean"]) for row in result.rows)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("tpr_at_fp", "tpr_at_fpr"), ("average-precison", "average_precision"), ("Precision@k", "precision_at_k")],
)
def test_a_metric_that_is_probably_meant(name, meant):
    with pytest.raises(ValueError, match=f"there is no metric '{name}'; did you mean '{meant}'"):
        compare([TauFPL()], X, Y, metrics=name)


def test_levels_that_are_words_have_no_order_of_their_own():
    levels = np.array(["low", "medium", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    order = ["low", "medium", "high"]
    expected = WMWRanker(labels=order).fit(X, levels)
    with pytest.warns(
        PositiveClassWarning, match="WMWRanker takes the levels in sorted order, from 'high' to 'medium'"
    ):
        guessed = WMWRanker().fit(X, levels)
    assert guessed.classes_.tolist() == sorted(order)
    assert get_scorer("wmw")(expected, X, levels) == expected.score(X, levels)
    with pytest.raises(ValueError, match="pos_label is for two levels, and there are 3, got 'high'"):
        WMWRanker(pos_label="high").fit(X, levels)
    assert wmw_score(WORDS, X[:, 0], pos_label="fraud") == wmw_score(Y, X[:, 0])
    with pytest.raises(ValueError, match="must be the last of labels"):
        wmw_score(WORDS, X[:, 0], pos_label="ok", labels=["ok", "fraud"])


def test_a_metric_names_the_label_that_is_meant():
    with pytest.raises(ValueError, match=r"pos_label='Fraud' does not occur in y_true, .* did you mean 'fraud'\?"):
        tpr_at_fpr(WORDS, X[:, 0], max_fpr=0.1, pos_label="Fraud")


# --- probabilities ---------------------------------------------------------------------------------------------------


def test_missing_probabilities_have_a_hint_that_works():
    model = TauFPL(tau=0.1, pos_label="fraud").fit(X, WORDS)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(TauFPL, "predict_proba")
    with pytest.raises(
        AttributeError, match=r"TauFPL has no predict_proba.*CalibratedClassifierCV\(.* and y == 'fraud'"
    ):
        model.predict_proba(X)
    calibrated = CalibratedClassifierCV(TauFPL(tau=0.1), cv=3).fit(X, WORDS == "fraud")
    assert sklearn_auc(Y, calibrated.predict_proba(X)[:, 1]) > 0.8
    with pytest.raises(IndexError):  # why the hint has it so: it takes classes in sorted order only
        CalibratedClassifierCV(TauFPL(tau=0.1, pos_label="fraud"), cv=3).fit(X, WORDS)
    usual = NeymanPearsonClassifier(TauFPL(tau=0.1), 0.1, random_state=0).fit(X, Y)
    with pytest.raises(AttributeError, match="predict_proba") as missing:
        usual.predict_proba(X)
    assert "CalibratedClassifierCV(TauFPL(...)) to X and y" in str(missing.value.__cause__)


# --- displays --------------------------------------------------------------------------------------------------------


def test_displays_ask_the_model():
    pytest.importorskip("matplotlib")
    ours = RocAtTopDisplay.from_estimator(TauFPL(tau=0.1, pos_label="fraud").fit(X, WORDS), X, WORDS)
    expected = RocAtTopDisplay.from_estimator(TauFPL(tau=0.1).fit(X, Y), X, Y)
    np.testing.assert_array_equal(ours.curves[0].tpr, expected.curves[0].tpr)
    with pytest.warns(PositiveClassWarning, match="LogisticRegression takes 'ok'"):
        RocAtTopDisplay.from_estimator(LogisticRegression().fit(X, WORDS), X, WORDS)
