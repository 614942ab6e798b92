"""`TopForest`: the sum of its leaf values, its choice, its certificate, tables as they are, and what cannot be used."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import GrillNP, PatMatNP, TauFPL, TopForest
from toprank.datasets import make_imbalanced
from toprank.matrices.leaves import LeafMatrix
from toprank.metrics import get_scorer, tpr_at_fpr
from toprank.trees.head_choice import Candidate, Choice, Judged, Jury, chosen, fitted, to_fit, to_score
from toprank.trees.training_leaves import TrainingLeaves


@pytest.fixture(scope="module")
def data():
    X, y, _ = make_imbalanced(600, random_state=0)
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def model(data):
    return TopForest(tau=0.05, n_estimators=20, random_state=0).fit(*data)


def test_the_score_is_the_sum_of_its_leaf_values(model, data):
    numbers = model.trees_.leaf_numbers(data[0])
    starts = np.cumsum(model.trees_.n_leaves) - model.trees_.n_leaves
    expected = model.leaf_values_[numbers + starts].sum(axis=1) - model.threshold_
    np.testing.assert_allclose(model.decision_function(data[0]), expected, atol=1e-10)


def test_the_cover_of_a_node_is_that_of_its_children(model, data):
    trees = model.trees_
    inner = trees.feature >= 0
    np.testing.assert_allclose(trees.cover[inner], trees.cover[trees.left[inner]] + trees.cover[trees.right[inner]])
    np.testing.assert_allclose(trees.cover[trees.roots], len(data[0]))


def test_the_certificate_is_that_of_the_head(model):
    assert 0 <= model.dual_gap_ <= 1e-4
    assert model.objective_ >= model.dual_objective_
    assert model.n_iter_ > 0


def test_the_choice_is_never_worse_than_the_prior(model):
    selection = model.selection_
    (prior,) = (one for one in selection["candidates"] if one["prior_alone"])
    assert selection["worth"] >= prior["worth"] == selection["worth_of_prior"]
    assert f"{selection['worth']:.3f}" in selection["why"]


def random_leaves(informative, n=300):
    """Rows whose prior says something about the label, and their leaves or not."""
    rng = np.random.default_rng(0)
    y = rng.random(n) < 0.3
    numbers = rng.integers(0, 8, (n, 30))
    if informative:
        numbers[:, :10] = np.where(y[:, None], rng.integers(4, 8, (n, 10)), numbers[:, :10])
    leaves = LeafMatrix.of(numbers, [8] * 30, rng.random((n, 30)) < 0.5)
    prior = 1.0 * y + rng.standard_normal(n)
    return TrainingLeaves(LeafMatrix.of(numbers, [8] * 30), leaves, prior[:, None], y, np.ones(n))


@pytest.mark.parametrize("informative", [False, True])
def test_leaves_that_say_nothing_are_left_alone(informative):
    rows = random_leaves(informative)
    jury = Jury.of(rows, 0.1, np.random.RandomState(0))
    alone = Candidate(1.0, None, honest=True, prior_alone=True)
    candidates = [alone, *(Candidate(alpha, None, True) for alpha in (1e3, 1e-3))]
    found = jury.judged(PatMatNP(tau=0.1), candidates)
    worth = {one.candidate: one.worth for one in found}
    assert (worth[candidates[2]] > worth[alone] + 0.1) is informative
    assert worth[candidates[1]] == worth[alone]  # a large penalty gives back the prior
    assert (chosen(found, int(rows.positive.sum())).candidate == candidates[2]) is informative


@pytest.mark.parametrize(
    ("n_positives", "worth_of_best", "worth_of_prior", "taken"),
    [(10, 0.55, 0.4, "usual"), (1000, 0.55, 0.4, "best"), (10, 0.55, 0.52, "prior"), (10, 0.7, 0.4, "best")],
)
def test_a_usual_head_is_left_for_a_clearly_better_one(n_positives, worth_of_best, worth_of_prior, taken):
    heads = {
        "prior": (Candidate(1.0, None, honest=True, prior_alone=True), worth_of_prior),
        "usual": (Candidate(0.1, None, honest=False), 0.5),
        "usual, honest": (Candidate(0.1, None, honest=True), 0.51),
        "best": (Candidate(0.01, None, honest=True), worth_of_best),
    }
    found = [Judged(candidate, np.zeros(0), worth) for candidate, worth in heads.values()]
    assert chosen(found, n_positives).candidate == heads[taken][0]


@pytest.mark.parametrize(
    ("optimum", "taken", "tried"), [(0.1, 0.1, 3), (0.01, 0.01, 4), (0.001, 0.001, 4), (1e-5, 0.001, 4)]
)
def test_a_smaller_penalty_is_tried_where_the_smallest_is_the_best(optimum, taken, tried, monkeypatch):
    def judged(self, head, candidates):
        return [Judged(one, np.zeros(0), 0.9 - 0.1 * abs(np.log10(one.alpha / optimum))) for one in candidates]

    monkeypatch.setattr(Jury, "judged", judged)
    rows, choice = random_leaves(informative=True), Choice(0.1, "auto", honest=True, varies_tau=False)
    best, found = choice.best(PatMatNP(tau=0.1), choice.candidates([True])[1:], rows, np.random.RandomState(0))
    assert [one.candidate.alpha for one in found] == [1.0, 0.1, 0.01, 0.001][:tried]
    assert best.candidate.alpha == taken


def test_scores_of_the_jury_are_of_heads_that_have_not_seen_the_row():
    rows = random_leaves(informative=False)
    jury = Jury.of(rows, 0.1, np.random.RandomState(0))
    candidate = Candidate(1e-3, None, honest=True)
    (found,) = jury.judged(PatMatNP(tau=0.1), [candidate])
    for train, test in jury.folds:
        there, here = to_fit(rows[train], candidate), to_score(rows[test], candidate)
        head = PatMatNP(tau=0.1, tol=1e-2, alpha=1e-3).fit(there, rows.positive[train])
        np.testing.assert_allclose(found.scores[test], head.decision_function(here), rtol=1e-6)
    seen = fitted(PatMatNP(tau=0.1), candidate, rows).decision_function(to_score(rows, candidate))
    assert tpr_at_fpr(rows.positive, seen, max_fpr=0.1) > tpr_at_fpr(rows.positive, found.scores, max_fpr=0.1) + 0.2


def test_the_prior_alone_ranks_as_the_forest_does(data, monkeypatch):
    monkeypatch.setattr("toprank.trees.head_choice.chosen", lambda found, n_positives: found[0])
    monkeypatch.setattr("toprank.trees.head_choice.ALPHAS", (1.0,))
    model = TopForest(tau=0.05, n_estimators=20, random_state=0).fit(*data)
    assert model.selection_["prior_alone"]
    n = int(model.trees_.n_leaves[:20].sum())
    assert not model.leaf_values_[:n].any()
    assert np.ptp(model.leaf_values_[n:]) > 0
    assert model.dual_gap_ <= 1e-4


@pytest.mark.parametrize("most", [300, 5000])
def test_the_threshold_spends_the_budget_on_new_rows(most, monkeypatch):
    monkeypatch.setattr("toprank.trees.head_choice._MOST_ROWS", most)
    X, y, _ = make_imbalanced(9000, random_state=1)
    model = TopForest(tau=0.05, alpha=0.01, honest=True, n_estimators=40, random_state=0).fit(X[:1000], y[:1000])
    above = model.decision_function(X[1000:]) > 0
    assert 0.02 < above[y[1000:] == 0].mean() < 0.075
    np.testing.assert_array_equal(model.predict(X[1000:]) == 1, above)


def test_the_same_seed_gives_the_same_model_on_any_number_of_jobs(model, data):
    again = clone(model).set_params(n_jobs=2).fit(*data)
    np.testing.assert_array_equal(again.decision_function(data[0]), model.decision_function(data[0]))


@pytest.mark.parametrize("head", [TauFPL(tau=0.1), PatMatNP(tau=0.1, surrogate="hinge")], ids=repr)
def test_other_heads(head, data):
    model = TopForest(tau=0.05, head=head, n_estimators=10, random_state=0).fit(*data)
    assert model.dual_gap_ <= 1e-4
    assert model.selection_["tau"] == 0.1
    assert tpr_at_fpr(data[1], model.decision_function(data[0]), max_fpr=0.05) > 0.5


def test_what_is_given_is_not_varied(data):
    model = TopForest(tau=0.05, alpha=0.5, honest=True, n_estimators=10, random_state=0).fit(*data)
    assert len(model.selection_["candidates"]) == 1
    assert (model.selection_["alpha"], model.selection_["honest"]) == (0.5, True)
    assert model.selection_["worth_of_prior"] is None


def table(seed=0, n=400):
    """A table of numbers with gaps, words and truth values."""
    rng = np.random.default_rng(seed)
    amount, kind = rng.exponential(100, n), rng.choice(["card", "cash", "wire"], n)
    y = ((amount > 120) & (kind == "wire")) | (rng.random(n) < 0.03)
    amount[rng.random(n) < 0.1] = np.nan
    words = [None if rng.random() < 0.1 else str(word) for word in kind]
    return {"amount": amount, "kind": words, "night": rng.random(n) < 0.5}, np.where(y, "fraud", "fine")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_tables_as_they_are(frame):
    columns, y = table()
    new, y_new = table(seed=1)
    y, y_new = np.where(y == "fraud", 1, 0), np.where(y_new == "fraud", 1, 0)
    model = TopForest(tau=0.05, n_estimators=30, random_state=0).fit(frame(columns), y)
    scores = model.decision_function(frame(new))
    assert tpr_at_fpr(y_new, scores, max_fpr=0.05) > 0.6
    assert list(model.feature_names_in_) == ["amount", "kind", "night"]
    unseen = model.decision_function(frame(new | {"kind": ["cheque"] * 400}))
    missing = model.decision_function(frame(new | {"kind": [None] * 400}))
    np.testing.assert_array_equal(unseen, missing)  # a category that is new counts as missing
    with pytest.raises(ValueError, match="feature names should match"):
        model.decision_function(frame(new).rename(columns={"kind": "way"}) if frame is pd.DataFrame else
                                frame(new).rename({"kind": "way"}))  # fmt: skip


def test_pandas_and_polars_give_the_same_model():
    columns, y = table()
    y = (y == "fraud").astype(int)
    categories = pd.DataFrame(columns).astype({"kind": "category"})
    models = [
        TopForest(tau=0.05, n_estimators=10, random_state=0).fit(X, y)
        for X in (pd.DataFrame(columns), pl.DataFrame(columns), categories)
    ]
    scores = [one.decision_function(X) for one, X in zip(models, (pd.DataFrame(columns), pl.DataFrame(columns),
                                                                    categories), strict=True)]  # fmt: skip
    np.testing.assert_array_equal(scores[0], scores[1])
    np.testing.assert_array_equal(scores[0], scores[2])


def test_the_positive_class_is_the_one_that_is_named():
    columns, y = table()
    X = pd.DataFrame(columns)
    parameters = {"tau": 0.05, "alpha": 1.0, "honest": False, "n_estimators": 10, "random_state": 0}
    model = TopForest(pos_label="fraud", **parameters).fit(X, y)
    assert model.classes_.tolist() == ["fine", "fraud"]
    other = TopForest(pos_label="fine", **parameters).fit(X, y)
    assert other.classes_.tolist() == ["fraud", "fine"]
    assert tpr_at_fpr(y, model.decision_function(X), max_fpr=0.05, pos_label="fraud") > 0.6
    assert tpr_at_fpr(y, other.decision_function(X), max_fpr=0.5, pos_label="fine") > 0.6


@pytest.mark.parametrize("names", [["amount", "kind"], [0, 1]])
def test_an_array_has_no_categories(names):
    frame = pd.DataFrame({names[0]: np.arange(40.0), names[1]: ["card", "wire"] * 20})
    model = TopForest(tau=0.2, n_estimators=2, alpha=1.0, random_state=0).fit(frame, np.arange(40) > 29)
    with pytest.raises(ValueError, match=rf"columns \[{names[1]!r}\] held text or categories .*; pass a frame"):
        model.decision_function(np.zeros((3, 2)))


def test_dates_are_refused_with_advice():
    columns, y = table()
    X = pd.DataFrame(columns | {"when": pd.date_range("2026-01-01", periods=400)})
    with pytest.raises(ValueError, match="column 'when' holds dates or times; make numbers of them"):
        TopForest().fit(X, y == "fraud")


def test_gaps_and_columns_without_any_value(data):
    X, y = data[0].copy(), data[1]
    X[::7, 0] = np.nan
    X[:, 3] = np.nan
    model = TopForest(tau=0.05, n_estimators=10, random_state=0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.decision_function(data[0])).all()  # values where there was none in training


def test_weights_of_zero_remove_rows(data):
    X, y = data
    weights = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)
    kept = weights > 0
    model = TopForest(tau=0.05, n_estimators=10, random_state=0)
    scores = clone(model).fit(X, y, sample_weight=weights).decision_function(X)
    np.testing.assert_allclose(scores, clone(model).fit(X[kept], y[kept]).decision_function(X), rtol=1e-6, atol=1e-8)


def test_many_rows_are_judged_by_a_part(data, monkeypatch):
    monkeypatch.setattr("toprank.trees.head_choice._MOST_ROWS", 200)
    model = TopForest(tau=0.05, n_estimators=10, random_state=0).fit(*data)
    assert model.selection_["worth"] > 0
    assert np.isfinite(model.threshold_)


def test_a_few_trees_leave_rows_without_a_tree(data):
    assert TopForest(tau=0.05, n_estimators=1, random_state=0).fit(*data).dual_gap_ <= 1e-4


def test_it_is_a_classifier_for_the_searches_of_scikit_learn(data):
    model = TopForest(tau=0.05, n_estimators=10, alpha=1.0, honest=False, random_state=0)
    scores = cross_val_score(model, *data, cv=2, scoring=get_scorer("tpr_at_fpr", max_fpr=0.05), error_score="raise")
    assert scores.min() > 0.1  # 0.05 by chance


def test_progress_is_logged(data, caplog):
    with caplog.at_level("INFO", logger="toprank"):
        TopForest(tau=0.05, n_estimators=5, alpha=1.0, honest=False, random_state=0, verbose=1).fit(*data)
    assert "growing two forests of 5 trees and boosted ones on 600 rows" in caplog.text
    assert "fitting the head" in caplog.text


class NeverFitted(LogisticRegression):
    """No trees, which has to be said before a long fit."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError


def test_what_cannot_be_used_says_what_can(data):
    X, y = data
    for parameters, message in (
        ({"tau": 1.5}, "tau must be strictly between 0 and 1"),
        ({"alpha": "small"}, "alpha must be positive"),
        ({"honest": "yes"}, "honest must be True, False or 'auto', got 'yes'"),
        ({"n_estimators": 0}, "n_estimators must be a whole number"),
        ({"head": GrillNP()}, "head must be a linear estimator of the top family with a convex objective"),
        ({"head": TauFPL(kernel="rbf")}, "head must be a linear estimator"),
    ):
        with pytest.raises(ValueError, match=message):
            TopForest(**parameters).fit(X, y)
    for trees, message in (
        ("forest", "trees must be ensembles of trees, got 'forest'"),
        (NeverFitted(), r"trees must be ensembles of trees, got NeverFitted\(\)"),
        (RandomForestClassifier, r"trees must be an ensemble, not its class, .*; use RandomForestClassifier\(\)"),
        (FrozenEstimator(RandomForestClassifier()), "trees must be fitted where it is frozen"),
    ):
        with pytest.raises(ValueError, match=message):
            TopForest(trees=trees).fit(X, y)
    with pytest.raises(ValueError, match="two rows of each class"):
        TopForest(n_estimators=2).fit(X, np.arange(len(y)) == 3)
    with pytest.raises(ValueError, match="only one class"):
        TopForest(n_estimators=2).fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"only one class is left: 0$"):
        TopForest(n_estimators=2).fit(X, y, sample_weight=y == 0)


WEIGHTS = "trees are grown on rows drawn at random: a weight of 2 and a repeated row give different draws"


@pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning")
@parametrize_with_checks(
    [TopForest(tau=0.2, n_estimators=3, alpha=1.0, honest=False, random_state=0)],
    expected_failed_checks=lambda estimator: {"check_sample_weight_equivalence_on_dense_data": WEIGHTS},
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
