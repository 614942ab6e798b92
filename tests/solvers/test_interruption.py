"""Ctrl-C during a fit: the best model so far is kept, with an honest certificate, if there is one."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from toprank import GrillNP, NeymanPearsonClassifier, PatMatNP, TauFPL, TopPushK, TopSearchCV, path
from toprank.datasets import make_imbalanced
from toprank.solvers.problem import Recorder

X, Y, _ = make_imbalanced(240, 4, separation=1.5, positive_share=0.3, random_state=3)
HARD = {"alpha": 1e-4, "tol": 1e-9}
MODELS = {
    "newton": TauFPL(0.2, **HARD),
    "smooth newton": PatMatNP(0.1, **HARD),
    "hinge": PatMatNP(0.1, surrogate="hinge", **HARD),
    "pairs": TopPushK(30, solver="pairs", alpha=1e-2),
    "apg": TauFPL(0.2, solver="apg", alpha=1e-2),
    "sgd": PatMatNP(0.1, solver="sgd", random_state=0, **HARD),
    "restarts": GrillNP(0.1, random_state=0),
    "kernel pairs": TauFPL(0.2, kernel="rbf", gamma=0.1, **HARD),
    "low-rank": PatMatNP(0.1, kernel="rbf", gamma=0.1, solver="low-rank", **HARD),
    "dual-cd": TauFPL(0.2, kernel="rbf", gamma=0.1, solver="dual-cd", random_state=0, **HARD),
    "features": PatMatNP(0.1, kernel="rbf", approximation="nystroem", n_components=30, random_state=0, **HARD),
}

# The row of the history that is interrupted, of all solvers that run: low-rank solves a linear problem first.
ROWS = {"newton": 1, "pairs": 2, "kernel pairs": 1, "low-rank": 10, "dual-cd": 100}


@pytest.fixture
def interrupted(monkeypatch):
    """A function after which Ctrl-C comes with the n-th row of the history, in the middle of writing it."""

    def after(n):
        seen, add = [0], Recorder.add

        def interrupting(self, iteration, *known):
            seen[0] += 1
            if seen[0] == n:
                self.rows["iteration"].append(iteration)
                raise KeyboardInterrupt
            add(self, iteration, *known)

        monkeypatch.setattr(Recorder, "add", interrupting)

    return after


@pytest.mark.parametrize("name", MODELS)
def test_the_best_point_so_far_is_a_model_with_its_certificate(name, interrupted):
    whole = clone(MODELS[name])
    whole.set_params(threshold="trained")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # that of a hard problem
        whole.fit(X, Y)
    assert whole.interrupted_ is False
    interrupted(ROWS.get(name, 3))
    model = clone(MODELS[name])
    with pytest.warns(ConvergenceWarning, match=r"was interrupted after \d+ iterations at .*warm_start=True goes on"):
        model.fit(X, Y)
    assert model.interrupted_ is True
    assert {len(values) for values in model.history_.values()} == {len(model.history_["gap"])}
    assert objective(model) == pytest.approx(model.objective_, rel=1e-6)
    if np.isfinite(model.dual_objective_):
        assert model.dual_objective_ <= whole.objective_ * (1 + 1e-9)
        assert model.objective_ >= whole.dual_objective_ * (1 - 1e-9)
    # the budget is spent on the rows that there are
    assert model.threshold_from_ == "training scores"
    negatives = model.decision_function(X[Y == 0])
    assert np.sum(negatives > 0) <= model._budget(len(negatives)) * len(negatives) < np.sum(negatives > -1e-3) + 1


def objective(model):
    """The objective by the scores of a fitted model."""
    scores = model.decision_function(X) + model.threshold_
    squared = float(np.sum(np.square(model.coef_))) if hasattr(model, "coef_") else expansion_square(model)
    loss, _, _ = model._formulation().evaluate(scores, Y == 1, np.ones(len(Y)))
    return 0.5 * model.alpha * squared + loss


def expansion_square(model):
    scores = model.decision_function(X[model.support_]) + model.threshold_
    return float(model.dual_coef_[0] @ scores)


def test_a_warm_start_goes_on(interrupted, monkeypatch):
    model = TauFPL(0.2, alpha=1e-4, warm_start=True, threshold="trained")
    with monkeypatch.context():
        interrupted(1)
        with pytest.warns(ConvergenceWarning, match="was interrupted"):
            model.fit(X, Y)
    monkeypatch.undo()
    assert model.fit(X, Y).dual_gap_ <= 1e-4
    assert not model.interrupted_


def test_without_a_point_ctrl_c_is_raised_and_the_model_is_as_it_was(interrupted):
    model = PatMatNP(0.1).fit(X, Y)
    before = model.decision_function(X)
    interrupted(1)  # at w = 0
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_the_threshold_alone_may_be_interrupted(monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("toprank.estimators.budget_threshold._matched", interrupt)
    model = PatMatNP(0.1)
    with pytest.warns(ConvergenceWarning, match="the model is complete, but the search for its threshold"):
        model.fit(X, Y)
    assert (model.interrupted_, model.threshold_from_) == (True, "training scores")
    assert model.dual_gap_ <= 1e-4


@pytest.mark.parametrize(
    "several",
    [
        lambda: TopSearchCV(PatMatNP(0.1), cv=3).fit(X, Y),
        lambda: GridSearchCV(PatMatNP(0.1), {"alpha": [0.1, 1.0]}, scoring="roc_auc", cv=3).fit(X, Y),
        lambda: cross_val_score(PatMatNP(0.1), X, Y, scoring="roc_auc", cv=3),
        lambda: NeymanPearsonClassifier(PatMatNP(0.1), max_fpr=0.2, cv=3).fit(X, Y),
        lambda: path(PatMatNP(0.1), X, Y),
    ],
    ids=["TopSearchCV", "GridSearchCV", "cross_val_score", "vote", "path"],
)
@pytest.mark.filterwarnings("ignore:PatMatNP was interrupted")
def test_of_several_fits_all_are_stopped(several, interrupted):
    interrupted(3)
    with pytest.raises(KeyboardInterrupt):
        several()


def test_one_fit_inside_a_classifier_is_kept(interrupted):
    interrupted(3)
    with pytest.warns(ConvergenceWarning, match="was interrupted"):
        model = NeymanPearsonClassifier(PatMatNP(0.1), max_fpr=0.2, random_state=0).fit(X, Y)
    assert model.estimator_.interrupted_
    assert np.mean(model.predict(X)[Y == 0]) < 0.4
