"""AlertShareClassifier: the order statistic, the promise by simulation, rows in the order of time."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import AlertShareClassifier, NeymanPearsonClassifier, PatMatNP
from toprank.exceptions import InputError


def expected_failures(model):
    if not hasattr(model.estimator, "predict_proba"):
        return {}
    return {"check_classifiers_train": "the threshold is not at a probability of one half, which the check demands"}


@pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning")  # for labels 1 and 2
@parametrize_with_checks(
    [AlertShareClassifier(LogisticRegression(), 0.5), AlertShareClassifier(PatMatNP(), 0.5)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class Itself(ClassifierMixin, BaseEstimator):
    """The score is the first column; it remembers what it was given."""

    def fit(self, X, y):
        self.classes_, self.X_ = np.unique(y), X
        return self

    def decision_function(self, X):
        return X[:, 0]


def frozen():
    return FrozenEstimator(Itself().fit(np.zeros((2, 1)), [0, 1]))


@pytest.mark.parametrize(("n", "share", "above"), [(99, 0.01, 0), (199, 0.01, 1), (299, 0.1, 29), (9, 0.5, 4)])
def test_so_many_held_out_rows_are_above(n, share, above):
    scores = np.random.default_rng(0).permutation(n).astype(float)[:, None]
    model = AlertShareClassifier(frozen(), share).fit(scores, np.arange(n) % 2)
    assert model.predict(scores).sum() == above
    assert model.expected_share_ == pytest.approx((above + 1) / (n + 1))
    assert model.expected_share_ <= share * (1 + 1e-9)


def test_the_promise_is_kept_on_average():
    """P(a new row is above) is (above + 1) / (n + 1) over draws of the held-out rows, as of any continuous scores."""
    random = np.random.default_rng(0)
    share, n, rates = 0.05, 79, []
    for _ in range(2000):
        held_out = random.random((n, 1))
        model = AlertShareClassifier(frozen(), share).fit(held_out, np.arange(n) % 2)
        rates.append(1 - model.threshold_)  # scores are uniform
    error = np.std(rates) / np.sqrt(len(rates))
    assert np.mean(rates) == pytest.approx(share, abs=4 * error)
    assert model.expected_share_ == pytest.approx(share)


def test_ties_stay_on_the_safe_side():
    scores = np.repeat([0.0, 1.0], 50)[:, None]
    model = AlertShareClassifier(frozen(), 0.1).fit(scores, np.arange(100) % 2)
    assert model.predict(scores).sum() == 0


def test_too_few_rows_and_wrong_parameters_are_refused():
    rows, y = np.arange(98.0)[:, None], np.arange(98) % 2
    with pytest.raises(InputError, match=r"share=0\.01 needs at least 99 held-out rows, got 98"):
        AlertShareClassifier(frozen(), 0.01).fit(rows, y)
    for wrong in ({"share": 1.0}, {"holdout": 0}, {"shuffle": "no"}, {"response_method": "x"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            AlertShareClassifier(Itself(), **{"share": 0.2} | wrong).fit(rows, y)
    with pytest.raises(InputError, match="leaves only one class among the 73 rows"):
        AlertShareClassifier(Itself(), 0.2, shuffle=False).fit(rows, (np.arange(98) > 90).astype(int))


def test_the_last_rows_are_held_out_where_rows_are_in_order():
    random = np.random.default_rng(0)
    X, y = np.arange(1000.0)[:, None], (random.random(1000) < 0.3).astype(int)
    model = AlertShareClassifier(Itself(), 0.1, shuffle=False).fit(X, y)
    np.testing.assert_array_equal(model.estimator_.X_[:, 0], np.arange(750))
    assert model.n_calibration_ == 250
    assert model.threshold_ == pytest.approx(1000 - 25)  # 24 of the last 250 scores are above it
    at_random = AlertShareClassifier(Itself(), 0.1, random_state=0).fit(X, y)
    assert at_random.estimator_.X_.max() > 990


@pytest.mark.parametrize("combine", ["unanimous", "refit"])
def test_negatives_of_the_neyman_pearson_classifier_in_order(combine):
    random = np.random.default_rng(0)
    X, y = np.arange(1000.0)[:, None], (random.random(1000) < 0.3).astype(int)
    negatives = np.flatnonzero(y == 0)
    one = NeymanPearsonClassifier(Itself(), 0.1, cv=0.25, shuffle=False).fit(X, y)
    first = negatives[-int(np.ceil(len(negatives) / 4))]
    np.testing.assert_array_equal(one.estimator_.X_[:, 0], np.arange(first))  # no later positive is trained on
    assert one.n_calibration_ == np.sum(y[first:] == 0)
    several = NeymanPearsonClassifier(Itself(), 0.3, cv=4, combine=combine, shuffle=False).fit(X, y)
    for train, block in several._own_splits(np.arange(1000), negatives):
        np.testing.assert_array_equal(np.setdiff1d(np.arange(1000), train), np.arange(block[0], block[-1] + 1))


def test_a_drift_breaks_a_random_hold_out_more_than_one_in_order():
    """The scores of negatives rise with time: a threshold of the latest is the better one for those to come."""
    random = np.random.default_rng(0)
    n = 4000
    X = (random.normal(size=n) + np.linspace(0, 2, n))[:, None]
    y = (random.random(n) < 0.1).astype(int)
    later = (random.normal(size=n) + 2)[:, None]
    rates = {
        shuffle: NeymanPearsonClassifier(Itself(), 0.05, cv=0.2, shuffle=shuffle, random_state=0)
        .fit(X, y)
        .predict(later)
        .mean()
        for shuffle in (True, False)
    }
    assert rates[True] > 0.1
    assert rates[False] < 0.07
