"""TopKClassifier: the length of the list, ties, groups."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import PatMat
from toprank.datasets import make_imbalanced
from toprank.decision import TopKClassifier
from toprank.decision.top_k import best_rows

DEPENDS_ON_THE_BATCH = {
    "check_methods_subset_invariance": "what is predicted for a row depends on the rows it comes with",
    "check_classifiers_train": "a decision function of zero is no threshold: the best rows of the batch are positive",
}


@pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning")  # for labels 1 and 2
@parametrize_with_checks(
    [TopKClassifier(LogisticRegression(), share=0.5)],
    expected_failed_checks=lambda estimator: DEPENDS_ON_THE_BATCH,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def one_by_one(scores, k, groups):
    """Take rows one at a time, the best that is left, the first among equals."""
    chosen = np.zeros(len(scores), dtype=bool)
    for group in set(groups.tolist()):
        rows = [i for i in range(len(scores)) if groups[i] == group]
        for _ in range(min(k if k >= 1 else int(k * len(rows) + 1e-9), len(rows))):
            best = max((i for i in rows if not chosen[i]), key=lambda i: (scores[i], -i))
            chosen[best] = True
    return chosen


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30),
    k=st.integers(1, 8),
    percent=st.integers(1, 100),
)
def test_best_rows_against_brute_force(rows, k, percent):
    scores, groups = np.array(rows, dtype=float).T
    np.testing.assert_array_equal(best_rows(scores, k=k, share=None, groups=groups), one_by_one(scores, k, groups))
    np.testing.assert_array_equal(best_rows(scores, k=k, share=None), one_by_one(scores, k, np.zeros(len(rows))))
    if percent < 100:
        np.testing.assert_array_equal(
            best_rows(scores, k=None, share=percent / 100, groups=groups), one_by_one(scores, percent / 100, groups)
        )


@pytest.mark.parametrize(("share", "n", "wanted"), [(0.1, 30, 3), (0.29, 100, 29), (0.02, 49, 0), (1.0, 7, 7)])
def test_share_is_rounded_down_but_for_rounding_errors(share, n, wanted):
    assert best_rows(np.arange(float(n)), k=None, share=share).sum() == wanted


def data():
    X, y, _ = make_imbalanced(1000, random_state=0)
    return X, y


def test_groups_ties_and_frozen_models():
    X, y = data()
    fitted = make_pipeline(StandardScaler(), PatMat()).fit(X, y)
    model = TopKClassifier(FrozenEstimator(fitted), k=5).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), fitted.decision_function(X))
    days = np.repeat(["monday", "tuesday", "wednesday"], [400, 597, 3])
    alert = model.predict(X, groups=days)
    assert [int(alert[days == day].sum()) for day in np.unique(days)] == [5, 5, 3]
    assert alert[days == "monday"][np.argsort(-model.decision_function(X[:400]))[:5]].all()
    # the scores of a tree are equal to the last bit, those of a sum depend on the place of the row in the batch
    tree = TopKClassifier(DecisionTreeClassifier(random_state=0), k=5).fit(X, y)
    twice = tree.predict(np.vstack([X[:3], X[:3]]))
    assert twice.sum() == 5
    assert twice[:3].all()  # the first among equals


def test_labels_frames_and_weights():
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    labels = np.where(y == 1, "fraud", "clean")
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = TopKClassifier(LogisticRegression(), share=0.01, pos_label="fraud")
    model.fit(frame, labels, sample_weight=weight)
    reference = LogisticRegression().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.decision_function(frame), reference.decision_function(X), atol=1e-3)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert np.sum(model.predict(frame) == "fraud") == 10
    with pytest.raises(ValueError, match="sample_weight is 0 a class is missing"):
        model.fit(frame, labels, sample_weight=y)


def test_metadata_routing():
    X, y = data()
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        model = TopKClassifier(inner, k=3).fit(X, y, sample_weight=np.ones(len(y)))
        assert "groups" in model.set_predict_request(groups=True).get_metadata_routing()._self_request.predict.requests
        assert model.predict(X, groups=np.arange(len(y)) % 2).sum() == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give either k or share, got k=None and share=None"),
        ({"k": 3, "share": 0.1}, "give either k or share, got k=3 and share=0.1"),
        ({"k": 0}, "k must be an integer of at least 1, got 0"),
        ({"k": 0.1}, "k must be an integer of at least 1, got 0.1; use share="),
        ({"k": True}, "k must be an integer of at least 1, got True"),
        ({"share": 0.0}, r"share must be in \(0, 1\], got 0.0"),
        ({"share": 1.1}, r"share must be in \(0, 1\], got 1.1"),
        ({"k": 1, "response_method": "predict"}, "response_method must be"),
    ],
    ids=["none", "both", "zero", "fraction", "bool", "no-share", "large-share", "response"],
)
def test_parameters_that_are_refused(options, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        TopKClassifier(PatMat(), **options).fit(X, y)


def test_groups_that_are_refused():
    X, y = data()
    model = TopKClassifier(PatMat(), k=2).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.predict(X, groups=[1, 2])
    with pytest.raises(ValueError, match="groups has missing values"):
        model.predict(X, groups=np.full(len(y), np.nan))
    for missing in (None, np.nan, pd.NA, pd.NaT):
        with pytest.raises(ValueError, match=f"groups has missing values such as {missing}; give such rows a group"):
            model.predict(X, groups=["monday"] * (len(y) - 1) + [missing])
    days = pd.Series(pd.Timestamp("2024-01-01"), index=range(len(y)))
    assert model.predict(X, groups=days).sum() == 2
    days[3] = pd.NaT
    with pytest.raises(ValueError, match="groups has missing values such as NaT"):
        model.predict(X, groups=days)
