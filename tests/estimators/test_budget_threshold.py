"""The threshold that spends the budget: its rate on new rows, its conventions, and who does not pay for it."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import (
    GrillNP,
    NeymanPearsonClassifier,
    PatMat,
    PatMatNP,
    TauFPL,
    TopKClassifier,
    TopMeanK,
    TopPush,
    TopPushK,
    TopSearchCV,
    path,
)
from toprank.datasets import make_imbalanced
from toprank.estimators import _shares, budget_threshold
from toprank.estimators.back_ends import Expansion
from toprank.estimators.budget_threshold import Scales, _dealt, _matched, _tied, smallest_threshold, spread
from toprank.persistence import load, save
from toprank.selection import compare

MODELS = [PatMatNP(0.05), TauFPL(0.05), TopPushK(40), PatMat(0.1), TopMeanK(0.3), GrillNP(0.05, random_state=0)]
each = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def rows(n=1000, d=6, separation=2.0):
    X, y, _ = make_imbalanced(n, d, separation=separation, positive_share=0.2, random_state=0)
    return X, y


@each
def test_the_budget_is_spent_on_new_rows(model):
    X, y = rows(21_000, separation=3.0)
    (X, y), (new, labels) = (X[:1000], y[:1000]), (X[1000:], y[1000:])
    model = clone(model).fit(X, y)
    above = model.decision_function(new) > 0
    counted = labels == 0 if model.over == "negatives" else np.ones(len(labels), dtype=bool)
    budget = 40 / np.sum(y == 0) if isinstance(model, TopPushK) else model.tau
    assert model.threshold_from_ == "out-of-fold scores"
    assert np.mean(above[counted]) == pytest.approx(budget, rel=0.35)
    trained = clone(model).set_params(threshold="trained").fit(X, y)
    assert trained.threshold_ == trained.trained_threshold_ == model.trained_threshold_
    assert trained.threshold_from_ == "trained"
    difference = trained.decision_function(new[:9]) - model.decision_function(new[:9])
    np.testing.assert_allclose(difference, model.threshold_ - model.trained_threshold_, atol=1e-9)
    assert (trained.objective_, trained.dual_gap_) == (model.objective_, model.dual_gap_)


def test_where_the_fit_learns_its_rows_by_heart():
    """As many features as rows: all of the training rows are where they should be, and nothing follows from them."""
    X, y = rows(5000, d=100)
    new, labels = X[120:], y[120:]
    model = TauFPL(0.1, alpha=1e-3).fit(X[:120], y[:120])
    fpr = np.mean(model.predict(new)[labels == 0])
    trained = np.mean(new[labels == 0] @ model.coef_[0] > model.trained_threshold_)
    assert trained > 0.2
    assert fpr < 0.15


@pytest.mark.parametrize("model", MODELS[:-1], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("kernel", [{}, {"kernel": "rbf", "gamma": 0.1, "alpha": 0.01}], ids=["linear", "rbf"])
def test_a_weight_is_a_repeated_row_and_order_does_not_matter(model, kernel, rng):
    X, y = rows(160)
    weights = rng.integers(0, 4, len(y))
    weighted = clone(model).set_params(tol=1e-9, **kernel).fit(X, y, weights)
    shuffled = rng.permutation(np.repeat(np.arange(len(y)), weights))
    repeated = clone(weighted).fit(X[shuffled], y[shuffled])
    assert weighted.threshold_ == pytest.approx(repeated.threshold_, rel=1e-3, abs=1e-4)


def test_rows_at_the_threshold_of_a_fit_are_tied(rng):
    scores = np.array([0.3, 1.0 + 1e-9, -1.0, 1.0, 0.3 + 1e-5, 1.0 - 1e-9])
    tied = _tied(scores)
    np.testing.assert_allclose(tied, scores, atol=2e-9)
    assert tied[1] == tied[3] == tied[5]
    assert len(np.unique(tied)) == 4
    np.testing.assert_array_equal(_tied(np.zeros(3)), np.zeros(3))
    many = np.sort(rng.random(100_000))
    assert np.abs(_tied(many) - many).max() < 1e-6  # no chain of neighbours


def test_storages_and_precisions():
    X, y = rows(300)
    reference = PatMatNP(0.05).fit(X, y).threshold_
    assert PatMatNP(0.05).fit(csr_array(X), y).threshold_ == pytest.approx(reference, rel=1e-9)
    single = PatMatNP(0.05).fit(X.astype(np.float32), y)
    assert single.intercept_.dtype == np.float32
    assert single.threshold_ == pytest.approx(reference, rel=1e-4)
    given = PatMatNP(0.05, kernel="precomputed", alpha=0.01).fit(rbf_kernel(X, gamma=0.1), y)
    assert given.threshold_from_ == "out-of-fold scores"
    assert np.mean(given.predict(rbf_kernel(X, gamma=0.1))[y == 0]) == pytest.approx(0.05, abs=0.04)
    features = {"kernel": "rbf", "approximation": "nystroem", "n_components": 40, "random_state": 0}
    again = [PatMatNP(0.05, **features).fit(X, y).threshold_ for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize("model", [TauFPL(tau=0.1), PatMatNP(0.1), PatMatNP(0.1, surrogate="logistic"), PatMat(0.1)])
def test_folds_share_the_kernel_matrix_of_the_whole(model, monkeypatch):
    """The same threshold as from matrices of their own rows, with the same kernel."""
    X, y = rows(300)
    model = clone(model).set_params(alpha=1e-3, kernel="rbf", gamma=0.2, tol=1e-9)
    shared = model.fit(X, y).threshold_

    def on_its_own(self, rows, weights):
        return Expansion(self.task.part(rows, weights, self.problem.threshold_weights))

    monkeypatch.setattr(Expansion, "part", on_its_own)
    monkeypatch.setattr(Expansion, "start_of_part", lambda *args: None)
    assert model.fit(X, y).threshold_ == pytest.approx(shared, abs=1e-4)


def test_dealing():
    dealt = _dealt(np.arange(12.0), np.ones(12))
    assert dealt.argmax(axis=1).tolist() == [0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 0, 1]
    weights = np.array([3.0, 0.5, 2.0, 12.0])
    dealt = _dealt(np.array([4.0, 1.0, 2.0, 3.0]), weights)
    np.testing.assert_array_equal(dealt.sum(axis=1), weights)
    assert dealt[1].tolist() == [0.5, 0, 0, 0, 0]  # no whole number: in one fold
    assert dealt[2].tolist() == [0, 1, 1, 0, 0]
    one_by_one = _dealt(np.arange(18.0), np.ones(18))
    assert dealt[3].tolist() == one_by_one[3:15].sum(axis=0).tolist()


def on_scale(scores, of_part, of_whole, weights):
    ratio = spread(of_whole, weights) / spread(of_part, weights)
    return _matched(Scales(scores, np.ones(len(scores)), of_part, weights, of_whole, weights, ratio))


def test_scores_of_another_scale():
    of_part, of_whole = np.array([1.0, 2.0, 4.0, 3.0]), np.array([10.0, 20.0, 50.0, 30.0])
    matched = on_scale(np.array([1.0, 2.5, 4.0]), of_part, of_whole, np.ones(4))
    assert matched.tolist() == [10.0, 25.0, 50.0]
    beyond = on_scale(np.array([5.0]), of_part, 10 * of_part, np.ones(4))
    assert beyond[0] == pytest.approx(50.0)
    twice = on_scale(np.array([2.5]), of_part, of_whole, np.array([1.0, 2.0, 1.0, 1.0]))
    repeated = on_scale(np.array([2.5]), of_part[[0, 1, 1, 2, 3]], of_whole[[0, 1, 1, 2, 3]], np.ones(5))
    assert twice[0] == repeated[0]


def test_the_share_of_a_budget():
    scores, weights = np.array([1.0, 5.0, 3.0, 4.0, 2.0]), np.array([1.0, 1.0, 1.0, 1.0, 1.0])
    assert [smallest_threshold(scores, weights, share) for share in (0.1, 0.2, 0.39, 0.4)] == [5.0, 4.0, 4.0, 3.0]
    assert smallest_threshold(scores, np.array([1.0, 1.0, 1.0, 2.0, 1.0]), 0.5) == 3.0


@pytest.mark.parametrize("model", [PatMatNP(0.3), PatMat(0.3)], ids=["negatives", "all"])
def test_too_few_rows_for_folds(model):
    X, y = rows(60)
    chosen = np.concatenate([np.flatnonzero(y == 0)[:4], np.flatnonzero(y == 1)[:4]])
    model = clone(model).fit(X[chosen], y[chosen])
    assert (model.threshold_from_, model.threshold_) == ("trained", model.trained_threshold_)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match=r"threshold must be .*'budget'.*'trained'.*, got 'best'"):
        PatMatNP(threshold="best").fit(*rows(60))
    assert "threshold" not in TopPush().get_params()  # its budget is nothing at all


@pytest.fixture
def paid(monkeypatch):
    """How often a threshold was set on out-of-fold scores."""
    calls = []

    def counted(*arguments):
        calls.append(1)
        return budget_threshold.out_of_fold_threshold(*arguments)

    monkeypatch.setattr(_shares, "out_of_fold_threshold", counted)
    return calls


def test_who_only_needs_scores_does_not_pay(paid):
    X, y = rows(400)
    pipeline = make_pipeline(StandardScaler(), PatMatNP(0.05))
    NeymanPearsonClassifier(pipeline, max_fpr=0.1, random_state=0).fit(X, y)
    NeymanPearsonClassifier(PatMatNP(0.05), max_fpr=0.1, cv=3, combine="refit", random_state=0).fit(X, y)
    TopKClassifier(pipeline, k=5).fit(X, y)
    path(PatMatNP(0.05), X, y, alphas=[0.1, 1.0])
    compare([pipeline, PatMat()], X, y, cv=2, metrics="roc_auc")
    search = TopSearchCV(pipeline, {"patmatnp__alpha": [0.1, 1.0]}, cv=2).fit(X, y)
    assert len(paid) == 1  # the best candidate, fitted to all rows
    assert search.best_estimator_[-1].threshold_from_ == "out-of-fold scores"
    # what reads predictions is judged by those that the model will make
    TopSearchCV(PatMatNP(0.05), {"alpha": [0.1, 1.0]}, cv=2, scoring="f1", refit=False).fit(X, y)
    TopSearchCV(PatMatNP(0.05), {"alpha": [1.0]}, cv=2, scoring=make_scorer(lambda a, b: 0.0), refit=False).fit(X, y)
    assert len(paid) == 1 + 4 + 2


def test_it_is_saved(tmp_path):
    X, y = rows(200)
    model = PatMatNP(0.05).fit(X, y)
    save(model, tmp_path / "model.toprank")
    loaded = load(tmp_path / "model.toprank")
    for name in ("threshold", "threshold_", "trained_threshold_", "threshold_from_", "interrupted_"):
        assert getattr(loaded, name) == getattr(model, name)
