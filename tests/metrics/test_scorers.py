"""Scorers inside scikit-learn's model selection."""

import inspect

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.preprocessing import scale

from toprank import PositiveClassWarning, metrics


@pytest.fixture(scope="module")
def data():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:200], y[:200]


def test_scorer_equals_metric(data, stored):
    X, y = stored(data[0]), data[1]
    model = LogisticRegression().fit(X, y)
    expected = metrics.tpr_at_fpr(y, model.decision_function(X), max_fpr=0.02)
    assert metrics.get_scorer("tpr_at_fpr", max_fpr=0.02)(model, X, y) == expected


@pytest.mark.parametrize("name", metrics.get_scorer_names())
def test_every_scorer_works_with_decision_function_and_predict_proba(name, data):
    X, y = data
    parameters = {"k": 20, "tau": 0.2, "max_fpr": 0.1, "min_recall": 0.5}
    metric = getattr(metrics, name, None) or getattr(metrics, f"{name}_score")
    signature = inspect.signature(metric).parameters
    wanted = {key: value for key, value in parameters.items() if key in signature}
    scorer = metrics.get_scorer(name, **wanted)
    for model in (LogisticRegression(), RandomForestClassifier(20, random_state=0)):
        model.fit(X, y)
        response = model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]
        assert scorer(model, X, y) == metric(y, response, **wanted)


def test_positive_class_may_be_the_first_one(data):
    X, y = data[0], np.where(data[1] == 1, "benign", "malignant")
    model = LogisticRegression().fit(X, y)
    scorer = metrics.get_scorer("positives_at_top", pos_label="benign")
    expected = metrics.positives_at_top(y, -model.decision_function(X), pos_label="benign")
    assert scorer(model, X, y) == expected


def test_wmw_scores_regressors(data):
    X = data[0]
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LinearRegression().fit(X[:, 1:], y)
    scorer = metrics.get_scorer("wmw", graph="chain")
    assert scorer(model, X[:, 1:], y) == metrics.wmw_score(y, model.predict(X[:, 1:]), graph="chain")


def test_grid_search(data):
    X, y = data
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-6, 1.0]}, scoring=metrics.get_scorer("partial_auc", max_fpr=0.1)
    ).fit(X, y)
    assert search.best_score_ > 0.9
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_weights_and_groups_are_routed(data):
    X, y = data
    rng = np.random.default_rng(0)
    weight, day = rng.integers(0, 5, len(y)).astype(float), rng.integers(0, 6, len(y))
    folds = [(np.arange(100), np.arange(100, 200)), (np.arange(100, 200), np.arange(100))]
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = metrics.get_scorer("precision_at_k", k=5).set_score_request(sample_weight=True, groups=True)
        model = LogisticRegression().set_fit_request(sample_weight=False)
        result = cross_validate(
            model,
            X,
            y,
            scoring=scorer,
            cv=folds,
            params={"sample_weight": weight, "groups": day},
            return_estimator=True,
        )
    for (_, test), fitted, value in zip(folds, result["estimator"], result["test_score"], strict=True):
        score = fitted.decision_function(X[test])
        assert value == metrics.precision_at_k(y[test], score, k=5, groups=day[test], sample_weight=weight[test])


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("tpr_at_fdr", {"max_fpr": 0.1}, "there is no metric 'tpr_at_fdr'; did you mean 'tpr_at_fpr'"),
        ("tpr_at_fpr", {}, "tpr_at_fpr needs max_fpr="),
        ("tpr_at_fpr", {"fpr": 0.1}, "no parameter 'fpr'; it takes max_fpr, pos_label"),
        ("precision_at_k", {"k": 3, "groups": [1, 2]}, "set_score_request"),
    ],
)
def test_errors(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        metrics.get_scorer(name, **parameters)


@pytest.mark.parametrize("words", [False, True])
def test_scorers_of_dask_arrays_gather_no_labels(data, words, monkeypatch):
    da = pytest.importorskip("dask.array")
    from toprank import TauFPL

    X, y = data[0], np.where(data[1] == 1, "fine", "grave") if words else data[1]
    options = {"pos_label": "grave"} if words else {}
    model = TauFPL(tau=0.1, threshold="trained", **options).fit(X, y)
    in_blocks = da.from_array(X, chunks=(80, -1)), da.from_array(y, chunks=80)

    def never(*_, **__):
        raise AssertionError("labels are gathered")

    for name, parameters in [("tpr_at_fpr", {"max_fpr": 0.02}), ("roc_auc", {}), ("wmw", {})]:
        scorer = metrics.get_scorer(name, **parameters)
        expected = scorer(model, X, y)
        with monkeypatch.context() as patched:
            patched.setattr(da.Array, "__array__", never)
            assert scorer(model, *in_blocks) == pytest.approx(expected, rel=1e-12)


def test_a_model_of_words_that_was_not_asked_warns_of_dask_labels_too(data):
    da = pytest.importorskip("dask.array")
    X, y = data[0], np.where(data[1] == 1, "fine", "grave")
    model = LogisticRegression().fit(X, y)
    scorer = metrics.get_scorer("roc_auc")
    with pytest.warns(PositiveClassWarning, match="grave"):
        expected = scorer(model, X, y)
    with pytest.warns(PositiveClassWarning, match="grave"):
        assert scorer(model, X, da.from_array(y, chunks=80)) == pytest.approx(expected, rel=1e-12)
