"""The online rankers as a user meets them."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from toprank.datasets import make_imbalanced
from toprank.online import CBR, OAM, OPAUC, AdaOAM, UniExp

ALL = {
    "CBR-fifo": CBR(),
    "CBR-reservoir": CBR(buffer="reservoir", buffer_size=(7, 5), random_state=0),
    "CBR-forgetting": CBR(forgetting=0.99),
    "CBR-diag": CBR(covariance="diag"),
    "CBR-diag-forgetting": CBR(covariance="diag", buffer="reservoir", forgetting=0.2, random_state=0),
    "OAM": OAM(random_state=0),
    "OAM-gradient": OAM(update="gradient", buffer="fifo", C=0.01),
    "OPAUC": OPAUC(),
    "OPAUC-rank": OPAUC(rank=5, random_state=0),
    "AdaOAM": AdaOAM(),
    "UniExp": UniExp(),
    "UniExp-scaled": UniExp(alpha=200.0),
}
every_ranker = pytest.mark.parametrize("model", ALL.values(), ids=ALL.keys())


def expected_failures(estimator):
    reason = (
        "the check shuffles the weighted rows but not the repeated ones, and an online learner depends on the order; "
        "besides, a weight of two is one step with twice the loss, not two steps"
    )
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning")  # for labels 1 and 2
@parametrize_with_checks(
    [CBR(), CBR(covariance="diag"), OAM(), OAM(update="gradient", C=0.01), OPAUC(), OPAUC(rank=10), AdaOAM(), UniExp()],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def rows(n=400, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y = (X @ rng.normal(size=d) + rng.normal(size=n) > 0.8).astype(int)
    return X, y, rng.choice([0.0, 0.3, 1.0, 2.0], size=n)


def state(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def assert_same_bits(one, other):
    assert state(one).keys() == state(other).keys()
    for name, value in state(one).items():
        np.testing.assert_array_equal(value, getattr(other, name), err_msg=name, strict=True)


@every_ranker
@settings(max_examples=5)
@given(cuts=st.lists(st.integers(1, 399), max_size=12))
def test_how_a_stream_is_cut_makes_no_difference(model, cuts):
    X, y, weights = rows()
    whole = clone(model).partial_fit(X, y, classes=[0, 1], sample_weight=weights)
    parts = clone(model)
    for number, part in enumerate(np.split(np.arange(len(y)), sorted(set(cuts)))):
        stored = (np.asarray, csr_array)[number % 2](X[part])
        parts.partial_fit(stored, y[part], classes=[0, 1], sample_weight=weights[part])
    assert_same_bits(whole, parts)


@every_ranker
def test_row_by_row_is_fit(model):
    X, y, _ = rows(150)
    single = clone(model)
    for i in range(len(y)):
        single.partial_fit(X[[i]], y[[i]], classes=[0, 1])
    assert_same_bits(clone(model).fit(X, y), single)


@every_ranker
def test_storages_agree(model):
    X, y, _ = rows()
    dense = clone(model).fit(X, y)
    sparse = csr_array(X)
    assert_same_bits(dense, clone(model).fit(sparse, y))
    # Entries in any order, in two parts, and stored zeros.
    messy = coo_array(X)
    order = np.random.default_rng(0).permutation(messy.nnz)
    data, row, column = messy.data[order], *(index[order] for index in messy.coords)
    data, row, column = np.append(data / 2, data / 2), np.append(row, row), np.append(column, column)
    messy = csr_array((len(y), X.shape[1]))
    messy.indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(y)) + 1)]).astype(np.int32)
    pieces = [(np.append(column[row == i], 0), np.append(data[row == i], 0.0)) for i in range(len(y))]
    messy.indices = np.concatenate([piece[0] for piece in pieces]).astype(np.int32)
    messy.data = np.concatenate([piece[1] for piece in pieces])
    before = messy.data.copy()
    assert_same_bits(dense, clone(model).fit(messy, y))
    np.testing.assert_array_equal(messy.data, before)
    np.testing.assert_allclose(dense.decision_function(X), dense.decision_function(sparse), rtol=1e-12, atol=1e-12)
    single = clone(model).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, dense.coef_, rtol=1e-3, atol=1e-4 * np.abs(dense.coef_).max())


@every_ranker
def test_state_is_plain_and_goes_on_after_pickling(model):
    X, y, weights = rows()
    whole = clone(model).fit(X, y, weights)
    half = clone(model).partial_fit(X[:170], y[:170], sample_weight=weights[:170])
    restored = pickle.loads(pickle.dumps(half))
    copied = clone(model)
    for name, value in state(half).items():
        assert isinstance(value, np.ndarray | int | float | str | list | tuple | dict), name
        assert not isinstance(value, np.ndarray) or value.dtype.kind in "biufU", name
        setattr(copied, name, value.copy() if isinstance(value, np.ndarray) else value)
    for later in (restored, copied):
        assert_same_bits(whole, later.partial_fit(X[170:], y[170:], sample_weight=weights[170:]))


@every_ranker
def test_learns(model):
    X, y, _ = make_imbalanced(3000, separation=3.0, positive_share=0.2, random_state=0)
    if isinstance(model, UniExp):
        model = UniExp()  # without the huge penalty, which is there to see the scale of w at work
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X[:2000], y[:2000])
    assert roc_auc_score(y[2000:], pipeline.decision_function(X[2000:])) > 0.9


@every_ranker
def test_labels_names_and_attributes(model):
    X, y, _ = rows()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    words = np.array(["bad", "good"])[y]
    fitted = clone(model).set_params(pos_label="good").partial_fit(frame, words, classes=["good", "bad"])
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    assert fitted.coef_.shape == (1, X.shape[1])
    assert fitted.n_samples_seen_ == len(y)
    np.testing.assert_array_equal(fitted.coef_, clone(model).fit(X, y).coef_)
    np.testing.assert_array_equal(fitted.predict(frame) == "good", fitted.decision_function(frame) > 0)
    np.testing.assert_allclose(
        fitted.decision_function(frame), X @ fitted.coef_[0] + fitted.intercept_[0], rtol=1e-9, atol=1e-9
    )


def test_a_weight_multiplies_the_penalty():
    X, y, _ = rows(80)
    for one, other in (
        (CBR(C=0.02), CBR(C=0.01)),
        (OAM(C=0.02, buffer_size=200), OAM(C=0.01, buffer_size=200)),
        (UniExp(learning_rate=0.02, alpha=0.0), UniExp(learning_rate=0.01, alpha=0.0)),
        (OPAUC(learning_rate=0.002), OPAUC(learning_rate=0.001)),
    ):
        np.testing.assert_allclose(one.fit(X, y).coef_, other.fit(X, y, np.full(80, 2.0)).coef_, rtol=1e-9)


@every_ranker
def test_rows_of_weight_zero_are_left_out(model):
    X, y, weights = rows()
    kept = weights > 0
    assert_same_bits(clone(model).fit(X, y, weights), clone(model).fit(X[kept], y[kept], weights[kept]))
    nothing = clone(model).partial_fit(X[:5], y[:5], classes=[0, 1], sample_weight=np.zeros(5))
    assert nothing.n_samples_seen_ == 0
    assert not nothing.decision_function(X).any()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CBR(covariance="banded"), "covariance must be one of 'full', 'diag', got 'banded'"),
        (CBR(buffer="lifo"), "buffer must be one of 'fifo', 'reservoir', got 'lifo'"),
        (CBR(buffer_size=0), "buffer_size must be a whole number of at least 1, got 0"),
        (CBR(buffer_size=(5, 6, 7)), r"pair .for the negative class, for the positive class., got \(5, 6, 7\)"),
        (CBR(C=-1), "C must be positive and finite, got -1"),
        (CBR(eta=0.5), "eta must be above 0.5 and below 1, got 0.5"),
        (CBR(forgetting=0), "forgetting must be above 0 and at most 1, got 0"),
        (CBR(max_fpr=1.5), "max_fpr must be strictly between 0 and 1, got 1.5"),
        (CBR(threshold_window=2.5), "threshold_window must be a whole number of at least 1, got 2.5"),
        (OAM(update="newton"), "update must be one of 'sequential', 'gradient', got 'newton'"),
        (OAM(C=np.inf), "C must be positive and finite, got inf"),
        (OPAUC(learning_rate=0), "learning_rate must be positive and finite, got 0"),
        (OPAUC(alpha=-1), "alpha must be at least 0 and finite, got -1"),
        (OPAUC(rank=0), "rank must be a whole number of at least 1, got 0"),
        (AdaOAM(learning_rate=1e150), "learning_rate must be at most 1e[+]50, got 1e[+]150"),
        (OAM(update="gradient", C=1e300), "C must be at most 1e[+]50, got 1e[+]300"),
        (AdaOAM(delta=0), "delta must be positive and finite, got 0"),
        (UniExp(learning_rate="fast"), "learning_rate must be positive and finite, got 'fast'"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_bad_parameters(model, message):
    X, y, _ = rows(20)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (CBR(), {"covariance": "diag"}),
        (CBR(covariance="diag"), {"covariance": "full"}),
        (CBR(), {"buffer_size": 7}),
        (CBR(), {"buffer": "reservoir"}),
        (OAM(random_state=0), {"update": "gradient"}),
        (OPAUC(), {"rank": 3}),
        (UniExp(), {"threshold_window": 10}),
    ],
)
def test_what_the_state_depends_on_stays(model, change):
    X, y, _ = rows()
    fitted = clone(model).fit(X, y)
    before = copy.deepcopy(state(fitted))
    fitted.set_params(**change)
    (name,) = change
    with pytest.raises(ValueError, match=f"{name} was .* when this model started"):
        fitted.partial_fit(X, y)
    np.testing.assert_equal(state(fitted), before)
    fitted.fit(X, y)


def test_parameters_are_checked_in_the_middle_of_a_stream():
    X, y, _ = rows()
    model = CBR().fit(X, y).set_params(C=0.1, max_fpr=0.1)
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match="eta must be"):
        model.set_params(eta=7.0).partial_fit(X, y)


def test_a_refused_first_call_leaves_an_unfitted_model():
    X, y, _ = rows()
    model = CBR()
    with pytest.raises(ValueError, match="only one class"):
        model.partial_fit(X, np.zeros(len(y)))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        _ = model.covariance_


@pytest.mark.parametrize("model", [CBR(), CBR(covariance="diag"), OAM(random_state=0)], ids=["full", "diag", "OAM"])
def test_rows_at_the_threshold_are_not_above_it(model):
    """Few different rows, so that the threshold is the score of many: it must not matter how scores are summed."""
    rng = np.random.default_rng(3)
    kinds = rng.integers(0, 2, size=(30, 12)) * rng.normal(size=12)
    quality = kinds @ rng.normal(size=12)
    chosen = rng.integers(0, 30, 4000)
    X, y = kinds[chosen], (quality > np.quantile(quality, 0.8))[chosen].astype(int)
    fitted = clone(model).set_params(max_fpr=0.05).fit(X, y)
    fitted.partial_fit(X, y)
    alarms = fitted.predict(X)
    assert alarms[y == 0].mean() <= 0.06
    scores = fitted.decision_function(X)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], csr_array(X)):
        np.testing.assert_array_equal(fitted.decision_function(other), scores)


def test_bad_data():
    X, y, _ = rows(20)
    model = CBR().fit(X, y)
    with pytest.raises(ValueError, match=r"needs two classes, got only one class: \[1\]; name both by classes="):
        CBR().partial_fit(X, np.ones(20, int))
    with pytest.raises(ValueError, match=r"needs two classes, got only one class: \[1\]$"):
        CBR().fit(X, np.ones(20, int))
    with pytest.raises(ValueError, match=r"Only binary classification is supported.*3 classes"):
        CBR().fit(X, np.arange(20) % 3)
    with pytest.raises(ValueError, match="needs rows of both classes with a positive weight; use partial_fit with"):
        CBR().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match=r"y has the label .*7.*, which is not one of the classes 0, 1$"):
        model.partial_fit(X, np.where(y == 1, 7, 0))
    with pytest.raises(ValueError, match=r"classes=\[0, 2\] is not the same as in the first call, \[0, 1\]"):
        model.partial_fit(X, y, classes=[0, 2])
    with pytest.raises(ValueError, match=r"largest absolute value of X is 1e\+60.*scale the features"):
        model.partial_fit(X * 0 + 1e60, y)
    with pytest.raises(ValueError, match="Negative"):
        model.partial_fit(X, y, sample_weight=-np.ones(20))
    assert_same_bits(model, CBR().fit(X, y))  # a refused batch leaves no trace


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CBR(), "the covariance of 20000 features would take 2.98 GB.*use covariance='diag'"),
        (OPAUC(), "two covariances of 20000 features would take 5.96 GB.*use rank=50"),
        (OPAUC(rank=10000), "20002 numbers for each of 20000 features would take 2.98 GB.*lower rank"),
        (AdaOAM(), "two covariances of 20000 features would take 5.96 GB.*use OPAUC.rank=50."),
    ],
    ids=["CBR", "OPAUC", "OPAUC-rank", "AdaOAM"],
)
def test_too_many_features(model, message):
    X = csr_array(([1.0, 2.0], ([0, 1], [5, 19999])), shape=(2, 20000))
    with pytest.raises(ValueError, match=message):
        model.fit(X, [0, 1])
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(("covariance", "n_after"), [("full", 100), ("diag", 1000)])
@pytest.mark.parametrize("seed", range(3))
def test_forgetting_follows_a_drift(seed, covariance, n_after):
    """The direction turns round after many rows: with forgetting the ranker turns soon, without it not."""
    rng = np.random.default_rng(seed)
    n_before, n = 20000, 20000 + n_after + 1000
    X = rng.normal(size=(n, 5))
    sign = np.where(np.arange(n) < n_before, 1, -1)
    y = (sign * (X @ [2, -1, 1, 0, 0]) + rng.normal(size=n) > 1).astype(int)
    train, test = slice(0, n_before + n_after), slice(n_before + n_after, n)
    auc = {}
    for kept in (1.0, 0.999):
        model = CBR(covariance=covariance, forgetting=kept, C=0.01).fit(X[train], y[train])
        auc[kept] = roc_auc_score(y[test], model.decision_function(X[test]))
    assert auc[1.0] < 0.2
    assert auc[0.999] > 0.85
