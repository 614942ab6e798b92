"""Thresholds, votes, lists and searches: graphs decide as their models do, also at the threshold itself."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deployment.running import assert_same, metadata_of, run
from toprank import (
    AlertShareClassifier,
    NeymanPearsonClassifier,
    PatMatNP,
    TauFPL,
    TopKClassifier,
    TopSearchCV,
    WMWRanker,
    to_onnx,
)
from toprank.datasets import make_imbalanced


@pytest.fixture(scope="module")
def rows():
    X, y, _ = make_imbalanced(1500, separation=2.0, random_state=0)
    return X, y


def ranker(**parameters):
    return make_pipeline(StandardScaler(), PatMatNP(tau=0.05, **parameters))


MODELS = {
    "threshold": NeymanPearsonClassifier(ranker(), max_fpr=0.05, random_state=0),
    "probability": NeymanPearsonClassifier(LogisticRegression(), response_method="predict_proba", max_fpr=0.05,
                                           random_state=0),
    "vote": NeymanPearsonClassifier(ranker(), max_fpr=0.05, cv=3, random_state=0),
    "refit": NeymanPearsonClassifier(ranker(), max_fpr=0.05, cv=3, combine="refit", random_state=0),
    "inside a pipeline": make_pipeline(
        StandardScaler(), NeymanPearsonClassifier(PatMatNP(kernel="rbf", approximation="nystroem", n_components=20,
                                                           random_state=0), max_fpr=0.05, random_state=0)),
    "search": TopSearchCV(ranker(), {"patmatnp__alpha": [0.01, 1.0]}, cv=2),
    "grid": GridSearchCV(ranker(), {"patmatnp__alpha": [0.01]}, cv=2),
    "threshold around a search": NeymanPearsonClassifier(
        TopSearchCV(ranker(), {"patmatnp__alpha": [0.1, 1.0]}, cv=2), max_fpr=0.05, random_state=0),
    "alert share": AlertShareClassifier(ranker(), share=0.05, random_state=0),
    "vote of alert shares": NeymanPearsonClassifier(
        AlertShareClassifier(ranker(), share=0.05, random_state=0), max_fpr=0.05, cv=2, random_state=0),
    "list": TopKClassifier(ranker(), k=20),
    "share": TopKClassifier(LogisticRegression(), share=0.03),
    "long list": TopKClassifier(ranker(), k=10_000),
    "list with a threshold": TopKClassifier(NeymanPearsonClassifier(ranker(), max_fpr=0.05, random_state=0), k=7),
}  # fmt: skip


CASES = [(name, (0, 1)) for name in MODELS]
LABELS = (("ok", "fraud"), ("fine", "fraud"), (False, True))
CASES += [(name, labels) for name in ("threshold", "list", "search") for labels in LABELS]


@pytest.mark.parametrize(("name", "labels"), CASES)
def test_scores_and_labels(name, labels, rows):
    X, y = rows
    model = clone(MODELS[name])
    if isinstance(labels[1], str):
        model.set_params(pos_label=labels[1])
    model.fit(X, np.where(y, labels[1], labels[0]))
    assert_same(model, X)
    assert_same(model, np.vstack([X[:50]] * 2))  # ties
    assert metadata_of(model)["classes"] == list(labels)


def test_rows_at_the_threshold(rows):
    """The held-out row that a threshold came from, and rows a few roundings beside it."""
    X, y = rows
    model = NeymanPearsonClassifier(ranker(), max_fpr=0.05, random_state=0).fit(X, y)
    row = X[[np.argmin(np.abs(model.decision_function(X)))]]
    assert abs(model.decision_function(row)[0]) < 1e-12
    margin = model.decision_function(row)[0]
    direction = model.estimator_[-1].coef_[0] / model.estimator_[0].scale_
    steps = np.linspace(-20, 20, 81) * 1e-13 / (direction @ direction)
    near = row + steps[:, None] * direction
    expected, (scores, labels) = model.decision_function(near), run(model, near)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    clear = np.abs(expected) > 5e-13
    assert margin <= 0
    assert 0 < clear.sum() < len(near)
    assert (labels == model.predict(near))[clear].all()
    assert run(model, row)[1].tolist() == model.predict(row).tolist() == [0]


@pytest.mark.parametrize("rule", [NeymanPearsonClassifier, AlertShareClassifier])
def test_the_rows_of_thresholds_stay_below(rule):
    """A threshold is the score of a row, which must not come out above it where a sum has another order."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(120, 8)), random.random(120) < 0.4
        share = {"max_fpr": 0.3, "confidence": 0.5} if rule is NeymanPearsonClassifier else {"share": 0.2}
        model = rule(TauFPL(kernel="rbf"), random_state=0, **share).fit(X, y)
        scores, labels = model.decision_function(X), run(model, X)[1]
        at_threshold = np.abs(scores) < 1e-14
        assert at_threshold.sum() == 1
        assert not labels[at_threshold][0]
        assert (labels == model.predict(X))[~at_threshold].all()


def test_every_held_out_tie_stays_below(rows):
    """Scores with many ties: the threshold is one of them."""
    X, y = rows
    X = np.round(X[:, :2])
    model = NeymanPearsonClassifier(ranker(), max_fpr=0.1, random_state=0).fit(X, y)
    tied = np.abs(model.decision_function(X)) < 1e-9
    assert tied.sum() > 5
    assert run(model, X)[1][tied].tolist() == model.predict(X)[tied].tolist() == [0] * tied.sum()


def test_metadata(rows):
    X, y = rows
    model = NeymanPearsonClassifier(ranker(), max_fpr=0.05, pos_label="fraud", random_state=0)
    model.fit(X, np.where(y, "fraud", "ok"))
    found = metadata_of(model)
    assert found["columns"] == [{"name": f"x{j}", "kind": "number"} for j in range(X.shape[1])]
    np.testing.assert_allclose(found["subtracted_thresholds"], [model.threshold_], rtol=0, atol=1e-12)
    assert (found["rule"], found["threshold"], found["positive"]) == ("score > 0", 0.0, "fraud")
    assert found["classes"] == ["ok", "fraud"]
    assert (found["max_fpr"], found["confidence"]) == (0.05, 0.95)
    found = metadata_of(TopKClassifier(LogisticRegression(), k=5).fit(X, y))
    assert found["rule"] == "the 5 largest scores of a batch"
    assert "threshold" not in found
    found = metadata_of(LogisticRegression().fit(X, y))
    assert (found["rule"], found["positive"]) == ("score > 0", 1)


def test_no_rows_and_fewer_than_the_list(rows):
    X, y = rows
    model = TopKClassifier(ranker(), k=20).fit(X, y)
    for n in (0, 1, 5):
        scores, labels = run(model, X[:n])
        assert (len(scores), labels.sum()) == (n, n)


def test_frozen_and_without_classes(rows):
    X, y = rows
    model = NeymanPearsonClassifier(FrozenEstimator(ranker().fit(X[:700], y[:700])), max_fpr=0.05)
    assert_same(model.fit(X[700:], y[700:]), X)
    model = WMWRanker().fit(X, y)
    scores, labels = run(model, X)
    assert labels is None
    np.testing.assert_allclose(scores, model.decision_function(X))
    model = FixedThresholdClassifier(LogisticRegression(), threshold=0.3).fit(X, y)
    with pytest.raises(TypeError, match="FixedThresholdClassifier has no ONNX export here; use Neyman"):
        to_onnx(model)
