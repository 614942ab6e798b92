"""What is found in a model, whatever is around it."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import (
    CBR,
    AlertShareClassifier,
    GrillNP,
    NeymanPearsonClassifier,
    PatMat,
    PatMatNP,
    TauFPL,
    TopKClassifier,
    TopMeanK,
    TopPush,
    TopPushK,
    WMWRanker,
)
from toprank.datasets import make_imbalanced
from toprank.inspection import Budget, anatomy, budget_of, certificate_of, last_step, linear_coefficients, scorer_of

X, Y, _ = make_imbalanced(600, positive_share=0.3, random_state=0)


@pytest.mark.parametrize(
    ("model", "budget"),
    [
        (TopPush(), Budget("negatives", None, None)),
        (TopPushK(k=7), Budget("negatives", None, 7)),
        (TauFPL(tau=0.2), Budget("negatives", 0.2, None)),
        (PatMatNP(tau=0.2), Budget("negatives", 0.2, None)),
        (GrillNP(tau=0.2), Budget("negatives", 0.2, None)),
        (TopMeanK(tau=0.3), Budget("all", 0.3, None)),
        (PatMat(tau=0.3), Budget("all", 0.3, None)),
        (WMWRanker(), None),
        (CBR(), None),
        (LogisticRegression(), None),
    ],
    ids=lambda item: type(item).__name__,
)
def test_the_top_that_a_model_was_made_for(model, budget):
    assert budget_of(model) == budget


@pytest.mark.parametrize(
    "around",
    [
        lambda model: model,
        lambda model: make_pipeline(StandardScaler(), model),
        lambda model: GridSearchCV(make_pipeline(StandardScaler(), model), {"patmatnp__alpha": [0.1, 1.0]}, cv=2),
        lambda model: NeymanPearsonClassifier(make_pipeline(StandardScaler(), model), 0.1, random_state=0),
        lambda model: NeymanPearsonClassifier(model, 0.2, cv=2, random_state=0),
        lambda model: TopKClassifier(FrozenEstimator(model.fit(X, Y)), k=5),
        lambda model: AlertShareClassifier(model, share=0.2, random_state=0),
    ],
    ids=["alone", "pipeline", "search", "threshold", "vote", "frozen", "share"],
)
def test_the_estimator_inside(around):
    fitted = around(PatMatNP()).fit(X, Y)
    inner = scorer_of(fitted)
    assert type(inner) is PatMatNP
    assert inner.dual_gap_ <= certificate_of(fitted) == anatomy(fitted).gap <= 1e-4
    np.testing.assert_array_equal(linear_coefficients(inner), inner.coef_[0])


def test_what_is_not_fitted_is_looked_into_as_far_as_it_goes():
    rule = NeymanPearsonClassifier(PatMatNP())
    assert scorer_of(rule) is rule
    assert certificate_of(rule) is None
    assert last_step(make_pipeline(StandardScaler(), rule)) is rule


def test_weights_of_features_are_those_of_linear_scores_only():
    Z = csr_array(X)
    for linear in (LogisticRegression().fit(X, Y), WMWRanker().fit(X, Y), PatMatNP(solver="low-rank").fit(Z, Y)):
        scores = linear.decision_function(X)
        np.testing.assert_allclose(np.ptp(scores - X @ linear_coefficients(linear)), 0, atol=1e-9 * np.ptp(scores))
    several = LogisticRegression().fit(X, np.arange(len(X)) % 3)
    others = [PatMatNP(kernel="rbf"), PatMatNP(kernel="rbf", approximation="fourier"), RandomForestClassifier(3)]
    for model in (several, *(other.fit(X, Y) for other in others)):
        assert linear_coefficients(model) is None
