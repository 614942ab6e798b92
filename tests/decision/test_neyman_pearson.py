"""NeymanPearsonClassifier as a user meets it, and its guarantee by simulation."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from scipy.sparse import csr_array
from scipy.stats import binom, norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, RepeatedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import PatMatNP, TauFPL
from toprank.datasets import make_imbalanced
from toprank.decision import NeymanPearsonClassifier, threshold_rule


def expected_failures(model):
    if not hasattr(model.estimator, "predict_proba"):
        return {}
    return {"check_classifiers_train": "the threshold is not at a probability of one half, which the check demands"}


# The data sets of the checks are small: with a bound of one half one held-out negative is enough.
@pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning")  # for labels 1 and 2
@parametrize_with_checks(
    [
        NeymanPearsonClassifier(LogisticRegression(), 0.5, 0.5),
        NeymanPearsonClassifier(PatMatNP(), 0.5, 0.5, cv=2),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class MeanDifference(ClassifierMixin, BaseEstimator):
    """Scores by the difference of the class means; it remembers what it was given."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.sample_weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        self.w_ = X[y == self.classes_[1]].mean(axis=0) - X[y == self.classes_[0]].mean(axis=0)
        return self

    def decision_function(self, X):
        return X @ self.w_

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def data(n=2000, seed=0):
    X, y, _ = make_imbalanced(n, separation=2.5, random_state=seed)
    return X, y


def test_threshold_of_a_frozen_model_is_the_order_statistic():
    X, y = data(4000)
    fitted = TauFPL().fit(X[:2000], y[:2000])
    model = NeymanPearsonClassifier(FrozenEstimator(fitted), 0.05, 0.9).fit(X[2000:], y[2000:])
    scores = np.sort(fitted.decision_function(X[2000:][y[2000:] == 0]))
    rule = threshold_rule(len(scores), 0.05, 0.9)
    assert (model.n_calibration_, model.rank_) == (len(scores), rule.rank)
    assert model.threshold_ == pytest.approx(scores[rule.rank - 1], rel=1e-12)
    assert model.threshold_ > scores[rule.rank - 1]
    assert model.violation_probability_ == rule.violation_probability <= 0.1
    assert model.fpr_bound_ == rule.fpr_upper_bound <= 0.05
    assert model.guaranteed_
    assert model.estimator_.estimator is fitted
    np.testing.assert_array_equal(model.decision_function(X), fitted.decision_function(X) - model.threshold_)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) > 0)


def test_negatives_are_enough_for_a_frozen_model():
    X, y = data()
    labels = np.where(y == 1, "fraud", "clean")
    frozen = FrozenEstimator(LogisticRegression().fit(X, labels))
    both = NeymanPearsonClassifier(frozen, 0.05).fit(X, labels)
    alone = NeymanPearsonClassifier(frozen, 0.05).fit(X[y == 0], labels[y == 0])
    assert alone.threshold_ == both.threshold_
    assert alone.classes_.tolist() == ["clean", "fraud"]
    with pytest.raises(ValueError, match="label 'other', which is not one of the classes"):
        NeymanPearsonClassifier(frozen, 0.05).fit(X, np.where(y == 1, "other", "clean"))


def test_a_share_of_the_negatives_and_no_positive_is_held_out():
    X, y = data()
    model = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=0.3, random_state=0).fit(X, y)
    n_negatives = np.sum(y == 0)
    assert model.n_calibration_ == np.ceil(0.3 * n_negatives)
    trained = model.estimator_
    assert np.sum(trained.y_ == 1) == np.sum(y == 1)
    assert np.sum(trained.y_ == 0) == n_negatives - model.n_calibration_
    in_training = {row.tobytes() for row in trained.X_}
    held_out = np.array([row.tobytes() not in in_training for row in X])
    rule = threshold_rule(model.n_calibration_, 0.05, 0.95)
    assert np.sum(model.decision_function(X[held_out]) > 0) == rule.n_negatives - rule.rank


def test_rows_count_once_however_they_are_repeated():
    X, y = data()
    positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    train = np.concatenate([positives, negatives[:1000]])
    drawn = np.random.default_rng(0).choice(negatives[1000:1150], 300)  # 299 are needed, at most 150 are there
    for combine in ("unanimous", "refit"):
        with pytest.raises(ValueError, match=r"of which only 1[0-4][0-9] are distinct rows"):
            NeymanPearsonClassifier(MeanDifference(), 0.01, cv=[(train, drawn)], combine=combine).fit(X, y)
    # rows to train on may repeat, and so may held-out positives, which do not count
    cv = [
        (negatives[:1000].repeat(2).tolist() + positives[:20].tolist(), negatives[1000:].tolist() + [positives[-1]] * 2)
    ]
    assert NeymanPearsonClassifier(MeanDifference(), 0.01, cv=cv).fit(X, y).n_calibration_ == len(negatives) - 1000


def test_random_folds_must_leave_both_classes():
    X, _ = data(200)
    lonely = np.zeros(200, dtype=int)
    lonely[0] = 1
    with pytest.raises(ValueError, match=r"cv=2 leaves only one class to train on.* 199 negatives and 1 positives"):
        NeymanPearsonClassifier(MeanDifference(), 0.5, 0.5, cv=2, combine="refit").fit(X, lonely)
    vote = NeymanPearsonClassifier(MeanDifference(), 0.5, 0.5, cv=2).fit(X, lonely)  # the positive trains both
    assert len(vote.estimators_) == 2


def test_seed_decides_the_split():
    X, y = data()
    thresholds = [
        NeymanPearsonClassifier(MeanDifference(), 0.05, random_state=seed).fit(X, y).threshold_ for seed in (0, 0, 1)
    ]
    assert thresholds[0] == thresholds[1] != thresholds[2]


def test_unanimous_vote():
    X, y = data(3002)
    model = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=3, random_state=0).fit(X, y)
    margins = [m.decision_function(X) - t for m, t in zip(model.estimators_, model.thresholds_, strict=True)]
    assert len(margins) == 3
    assert not hasattr(model, "estimator_")
    assert model.threshold_ == 0
    assert model.guaranteed_
    np.testing.assert_allclose(model.decision_function(X), np.min(margins, axis=0))
    np.testing.assert_array_equal(model.predict(X), np.all(np.array(margins) > 0, axis=0))
    sizes = [np.sum(y == 0) - np.sum(m.y_ == 0) for m in model.estimators_]
    assert sum(sizes) == np.sum(y == 0)
    assert len(set(sizes)) > 1
    assert model.violation_probability_ == min(threshold_rule(n, 0.05, 0.95).violation_probability for n in sizes)


def test_folds_are_the_same_whatever_the_number_of_jobs():
    X, y = data(3000)
    with parallel_config("threading"):
        one, two = (
            NeymanPearsonClassifier(LogisticRegression(), 0.05, cv=3, random_state=0, n_jobs=n).fit(X, y)
            for n in (1, 2)
        )
    np.testing.assert_array_equal(one.thresholds_, two.thresholds_)


def test_refit_pools_the_folds_and_promises_nothing():
    X, y = data()
    model = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=KFold(4), combine="refit").fit(X, y)
    assert not model.guaranteed_
    assert len(model.estimator_.y_) == len(y)
    assert model.n_calibration_ == np.sum(y == 0)
    pooled = np.concatenate(
        [
            MeanDifference().fit(X[train], y[train]).decision_function(X[test][y[test] == 0])
            for train, test in KFold(4).split(X)
        ]
    )
    assert model.threshold_ == pytest.approx(np.sort(pooled)[model.rank_ - 1], rel=1e-12)
    folds = NeymanPearsonClassifier(LogisticRegression(), 0.05, cv=4, combine="refit", random_state=0)
    splits = folds._splits(X, y, np.ones(len(y), dtype=bool), y == 0, {})
    for train, held_out in splits:
        assert np.all(y[held_out] == 0)
        assert not np.intersect1d(train, held_out).size
        assert y[train].mean() == pytest.approx(y.mean(), abs=2e-3)
    assert folds.fit(X, y).n_calibration_ == np.sum(y == 0)
    with pytest.raises(ValueError, match="each negative at most once"):
        NeymanPearsonClassifier(MeanDifference(), 0.05, cv=RepeatedKFold(n_splits=2), combine="refit").fit(X, y)


def test_splitters_splits_and_groups():
    X, y = data()
    late = np.where(np.arange(len(y)) < 1000, -1, 0)
    by_splitter = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=PredefinedSplit(late)).fit(X, y)
    by_splits = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=[(np.arange(1000), np.arange(1000, 2000))]).fit(X, y)
    assert len(by_splitter.estimator_.y_) == 1000
    assert by_splitter.threshold_ == by_splits.threshold_
    assert by_splitter.guaranteed_
    groups = np.arange(len(y)) % 7
    grouped = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=GroupKFold(2)).fit(X, y, groups=groups)
    known = {row.tobytes(): group for row, group in zip(X, groups, strict=True)}
    first, second = ({known[row.tobytes()] for row in m.X_} for m in grouped.estimators_)
    assert not first & second
    assert first | second == set(range(7))


@pytest.mark.parametrize("routing", [False, True])
def test_weights_train_and_do_not_count(routing):
    X, y = data()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    kept = weight > 0
    estimator = MeanDifference()
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            estimator.set_fit_request(sample_weight=True)
        model = NeymanPearsonClassifier(estimator, 0.05, random_state=0).fit(X, y, sample_weight=weight)
        removed = NeymanPearsonClassifier(estimator, 0.05, random_state=0).fit(
            X[kept], y[kept], sample_weight=weight[kept]
        )
    assert model.threshold_ == removed.threshold_
    assert model.n_calibration_ == np.ceil(0.5 * np.sum(y[kept] == 0))
    known = {row.tobytes(): value for row, value in zip(X, weight, strict=True)}
    np.testing.assert_array_equal(
        model.estimator_.sample_weight_, [known[row.tobytes()] for row in model.estimator_.X_]
    )


def test_weights_of_zero_with_splits_by_row_number():
    X, y = data()
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    splits = [(np.arange(1000), np.arange(1000, 2000))]
    model = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=splits).fit(X, y, sample_weight=weight)
    trained = (np.arange(len(y)) < 1000) & (weight > 0)
    np.testing.assert_array_equal(model.estimator_.X_, X[trained])
    assert model.n_calibration_ == np.sum((np.arange(len(y)) >= 1000) & (weight > 0) & (y == 0))


def test_groups_by_routing():
    X, y = data()
    groups = np.arange(len(y)) % 7
    plain = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=GroupKFold(2)).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        splitter = GroupKFold(2).set_split_request(groups=True)
        routed = NeymanPearsonClassifier(MeanDifference(), 0.05, cv=splitter).fit(X, y, groups=groups)
    np.testing.assert_array_equal(plain.thresholds_, routed.thresholds_)


def test_any_scorer_and_container():
    lightgbm = pytest.importorskip("lightgbm")
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"feature{i}" for i in range(X.shape[1])])
    for estimator in (
        make_pipeline(StandardScaler(), TauFPL()),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1),
    ):
        model = NeymanPearsonClassifier(estimator, 0.05, random_state=0).fit(frame, y)
        assert model.feature_names_in_.tolist() == list(frame.columns)
        assert model.n_features_in_ == X.shape[1]
        assert np.mean(model.predict(frame)[y == 0]) < 0.05
        if hasattr(estimator, "predict_proba"):
            np.testing.assert_array_equal(model.predict_proba(frame), model.estimator_.predict_proba(frame))
        else:
            assert not hasattr(model, "predict_proba")
    sparse = NeymanPearsonClassifier(TauFPL(), 0.05, random_state=0).fit(csr_array(X), y)
    dense = NeymanPearsonClassifier(TauFPL(), 0.05, random_state=0).fit(X, y)
    assert sparse.threshold_ == pytest.approx(dense.threshold_, abs=1e-3)


def test_probabilities_of_a_vote_are_means():
    X, y = data()
    model = NeymanPearsonClassifier(GaussianNB(), 0.05, cv=2, random_state=0).fit(X, y)
    mean = np.mean([m.predict_proba(X) for m in model.estimators_], axis=0)
    np.testing.assert_array_equal(model.predict_proba(X), mean)


def test_response_method():
    X, y = data()
    options = {"max_fpr": 0.05, "random_state": 0}
    by_score = NeymanPearsonClassifier(LogisticRegression(), **options).fit(X, y)
    by_probability = NeymanPearsonClassifier(LogisticRegression(), response_method="predict_proba", **options).fit(X, y)
    assert by_probability.threshold_ == pytest.approx(1 / (1 + np.exp(-by_score.threshold_)))
    np.testing.assert_array_equal(by_score.predict(X), by_probability.predict(X))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_equal_rows_stay_below_in_batches_of_any_size(dtype):
    # Rows of a few kinds: many of them tie with the threshold, and sums of products round differently in another batch.
    rng = np.random.default_rng(0)
    kinds = rng.random((4, 37)).astype(dtype)
    X = kinds[rng.integers(0, 4, 3000)]
    y = (rng.random(3000) < 0.3).astype(int)
    model = NeymanPearsonClassifier(LogisticRegression(), 0.1, random_state=0).fit(X, y)
    alarms = model.predict(kinds).astype(bool)
    for size in (1, 2, 3, 7, 1000):
        batch = np.concatenate([kinds] * size)
        np.testing.assert_array_equal(model.predict(batch).astype(bool), np.concatenate([alarms] * size))
    shares = np.array([np.mean((kind == X).all(axis=1)) for kind in kinds])
    assert shares[alarms].sum() <= 0.1


def test_parameters_clone_and_pickle():
    X, y = data()
    model = NeymanPearsonClassifier(TauFPL(), 0.05, random_state=0)
    copy = clone(model).set_params(estimator__tau=0.2, max_fpr=0.1)
    assert (copy.estimator.tau, copy.max_fpr, model.estimator.tau) == (0.2, 0.1, 0.05)
    model.fit(X, y)
    assert "threshold_" not in vars(clone(model))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))


def test_second_fit_forgets_the_first():
    X, y = data()
    model = NeymanPearsonClassifier(MeanDifference(), 0.05, random_state=0).fit(X, y)
    model.set_params(cv=2).fit(X, y)
    assert not hasattr(model, "estimator_")


class NanScores(MeanDifference):
    """Scores with a hole."""

    def decision_function(self, X):
        scores = X @ self.w_
        scores[3] = np.nan
        return scores


class NoScores(ClassifierMixin, BaseEstimator):
    """Labels only."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NeymanPearsonClassifier(MeanDifference(), 0.001), r"at least 2995 held-out .* cv=0.5 holds out 9\d\d\."),
        (NeymanPearsonClassifier(MeanDifference(), 0.01, cv=8), "at least 299 held-out negatives, got 2"),
        (NeymanPearsonClassifier(MeanDifference(), 1.5), "max_fpr must be strictly between 0 and 1, got 1.5"),
        (NeymanPearsonClassifier(MeanDifference(), 0.1, -1), "confidence must be strictly between 0 and 1, got -1"),
        (NeymanPearsonClassifier(MeanDifference(), 0.1, cv=1), "cv as a number of folds must be at least 2, got 1"),
        (NeymanPearsonClassifier(MeanDifference(), 0.1, cv=1.5), "cv must be strictly between 0 and 1, got 1.5"),
        (NeymanPearsonClassifier(MeanDifference(), 0.1, combine="mean"), "combine must be .*, got 'mean'"),
        (NeymanPearsonClassifier(MeanDifference(), 0.1, response_method="vote"), "response_method must be .* 'vote'"),
        (
            NeymanPearsonClassifier(MeanDifference(), 0.1, cv=[(np.arange(1500), np.arange(1000, 2000))]),
            "rows both in its train and its test part",
        ),
        (
            NeymanPearsonClassifier(MeanDifference(), 0.1, cv=[(np.arange(1000), np.arange(1000, 2000).repeat(2))]),
            r"holds out \d+ negatives, of which only \d+ are distinct rows; .* each at most once",
        ),
        (NeymanPearsonClassifier(MeanDifference(), 0.1, cv=[]), "cv has no splits; give at least one pair"),
        (
            NeymanPearsonClassifier(MeanDifference(), 0.1, cv=0.9999),
            r"cv=0.9999 leaves only one class to train on.* \d+ negatives and \d+ positives; hold out fewer",
        ),
        (NeymanPearsonClassifier(NanScores(), 0.1), "decision_function of NanScores is nan in row 3"),
        (NeymanPearsonClassifier(NoScores(), 0.1), "NoScores has no decision_function and no predict_proba"),
        (
            NeymanPearsonClassifier(TauFPL(kernel="precomputed"), 0.1),
            "kernel='precomputed' cannot be trained on a part",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else "model",
)
def test_errors(model, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_labels_that_are_refused():
    X, y = data()
    model = NeymanPearsonClassifier(MeanDifference(), 0.1)
    with pytest.raises(ValueError, match="only one class"):
        model.fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"Only binary classification is supported.*3 classes"):
        model.fit(X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(X, np.where(y == 1, np.nan, 0.0))
    for missing in (None, np.nan, pd.NA, pd.NaT):
        with pytest.raises(ValueError, match=f"y has missing values such as {missing}; drop such rows"):
            model.fit(X, [missing if label else "clean" for label in y])
    multiclass = FrozenEstimator(LogisticRegression().fit(X, np.arange(len(y)) % 3))
    with pytest.raises(ValueError, match="3 classes"):
        NeymanPearsonClassifier(multiclass, 0.1).fit(X, y)


def violations(estimator, repetitions, n, max_fpr, **options):
    """How often the true rate is above the bound: two normal classes, so that the rate of a linear score is known."""
    count = 0
    shift = np.array([1.5, 0.5, 0.0])
    fresh = np.random.default_rng(10**6).normal(size=(20_000, 3))
    for seed in range(repetitions):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], [n, 30])
        X = rng.normal(size=(len(y), 3)) + y[:, None] * shift
        model = NeymanPearsonClassifier(estimator, max_fpr, 0.9, random_state=seed, **options).fit(X, y)
        if len(model.estimators_) == 1:
            rate = norm.sf(model.threshold_ / np.linalg.norm(model.estimator_.w_))
        else:
            rate = np.mean(model.predict(fresh))
        count += rate > max_fpr
    return count


@pytest.mark.parametrize(("n", "max_fpr"), [(46, 0.1), (200, 0.05)])
def test_coverage_of_a_split_with_fits(n, max_fpr):
    rule = threshold_rule(int(np.ceil(0.5 * n)), max_fpr, 0.9)
    count = violations(MeanDifference(), 300, n, max_fpr)
    low, high = binom.ppf([1e-4, 1 - 1e-4], 300, rule.violation_probability)
    assert low <= count <= high


@pytest.mark.slow
def test_coverage_over_many_repetitions():
    rule = threshold_rule(100, 0.05, 0.9)
    low, high = binom.ppf([1e-4, 1 - 1e-4], 2000, rule.violation_probability)
    assert low <= violations(MeanDifference(), 2000, 200, 0.05) <= high
    assert violations(MeanDifference(), 2000, 200, 0.05, cv=2) <= high
