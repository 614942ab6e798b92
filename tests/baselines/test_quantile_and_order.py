"""AATP, OWPC and CostSensitive against cvxpy, scikit-learn and their kin."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from baselines.oracles import pair_optimum, solved, two_classes
from toprank import Grill, TopPush, load, save
from toprank.baselines import AATP, OWPC, CostSensitive, SVMpAUC
from toprank.baselines.aatp import CandidateRisk
from toprank.baselines.owpc import WEIGHTINGS, OrderedPairRisk


def candidate_optimum(X, y, weights, alpha, k):
    """The least objective of the problem of row k, and w there."""
    w = cp.Variable(X.shape[1])
    a, b = (weights[y == label] / weights[y == label].sum() for label in (1, 0))
    losses = a @ cp.pos(1 + (X[k] - X[y == 1]) @ w) + b @ cp.pos(1 + (X[y == 0] - X[k]) @ w)
    return solved(alpha / 2 * cp.sum_squares(w) + losses), w.value


def quantile_objective(w, X, y, weights, alpha, tau):
    scores = X @ w
    t = max(t for t in scores if weights[scores >= t].sum() >= tau * weights.sum() * (1 - 1e-9))
    a, b = (weights[y == label] / weights[y == label].sum() for label in (1, 0))
    losses = a @ np.maximum(1 + t - scores[y == 1], 0) + b @ np.maximum(1 + scores[y == 0] - t, 0)
    return alpha / 2 * w @ w + losses


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of the descent
def test_all_candidates_of_the_quantile():
    X, y, weights = two_classes(14, 2)
    alpha, tau = 0.1, 0.3
    optima = [candidate_optimum(X, y, weights, alpha, k) for k in range(14)]
    expected = min(quantile_objective(w, X, y, weights, alpha, tau) for _, w in optima)
    model = AATP(tau=tau, alpha=alpha, tol=1e-9).fit(X, y, weights)
    assert (model.search_, model.n_iter_) == ("all", 14)
    assert model.objective_ == pytest.approx(expected, rel=1e-4)
    assert model.objective_ == pytest.approx(quantile_objective(model.coef_[0], X, y, weights, alpha, tau), rel=1e-7)
    assert model.dual_objective_ == pytest.approx(min(value for value, _ in optima), rel=1e-6)
    assert model.predict(X) @ weights <= tau * weights.sum()
    descent = Grill(tau=tau, alpha=alpha, surrogate="hinge", random_state=0, threshold="trained", max_iter=50)
    assert descent.fit(X, y, weights).objective_ >= model.dual_objective_ * (1 - 1e-6)


def test_a_part_of_the_candidates_says_so():
    X, y, _ = two_classes(60)
    whole, part = (AATP(tau=0.3, max_candidates=n).fit(X, y) for n in (60, 6))
    assert (part.search_, part.n_iter_, part.dual_objective_, part.dual_gap_) == ("part", 6, 0.0, 1.0)
    assert whole.search_ == "all"
    assert whole.objective_ <= part.objective_ <= 1.1 * whole.objective_
    assert whole.dual_objective_ > 0
    again = AATP(tau=0.3, max_candidates=6).fit(X, y)
    np.testing.assert_array_equal(again.coef_, part.coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_the_row_at_the_quantile_is_not_in_the_top(storage, dtype):
    """Nor by another rounding of its score, as that of a few rows."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = storage(rng.normal(size=(15, 10)).astype(dtype)), np.arange(15) % 2
        model = AATP(tau=0.3, max_candidates=2, tol=1e-3).fit(X, y)
        for rows in (np.arange(15), rng.permutation(15)):
            assert sum(model.predict(X[rows[i : i + 1]])[0] for i in range(15)) <= 4
            assert model.predict(X[rows]).sum() <= 4


@pytest.mark.parametrize("candidate", [0, 1])
def test_slopes_of_a_candidate(candidate, rng):
    y, weights, scores = np.arange(10) % 2 == 0, rng.random(10) + 0.5, rng.normal(size=10)
    risk, step = CandidateRisk(y, weights, candidate), rng.normal(size=10)
    slope = (risk(scores + 1e-7 * step).value - risk(scores - 1e-7 * step).value) / 2e-7
    assert risk(scores).gradient @ step == pytest.approx(slope, abs=1e-5)


@pytest.mark.parametrize("weighting", ["reciprocal", [3.0, 1.0, 1.0, 0.5]])
def test_optimum_of_the_ordered_loss(weighting):
    X, y, _ = two_classes(24, apart=2.0)
    n, alpha = np.sum(y == 0), 0.01
    b = 1 / np.arange(1, n + 1) if weighting == "reciprocal" else np.append(weighting, np.zeros(n - 4))
    b, w = b / b.sum(), cp.Variable(3)
    falls = b - np.append(b[1:], 0)
    losses = [cp.pos(1 + X[y == 0] @ w - x @ w) for x in X[y == 1]]
    ordered = [falls[k] * cp.sum_largest(each, k + 1) for each in losses for k in np.flatnonzero(falls > 0)]
    optimum = solved(alpha / 2 * cp.sum_squares(w) + sum(ordered) / len(losses))
    model = OWPC(weighting=weighting, alpha=alpha, tol=1e-8).fit(X, y)
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    assert model.dual_gap_ <= 1e-8


def test_the_ends_of_the_ordered_loss_are_its_kin(rng):
    X, y, weights = two_classes(40, 3, rng.integers(9), apart=2.0)
    better, worse = np.nonzero(y[:, None] > y)
    optimum = pair_optimum(X[better] - X[worse], weights[better] * weights[worse], 0.01, 1)
    assert OWPC(weighting="uniform", alpha=0.01, tol=1e-8).fit(X, y, weights).objective_ == pytest.approx(optimum, 1e-6)
    push = TopPush(surrogate="hinge", alpha=0.01, tol=1e-8).fit(X, y).objective_
    assert OWPC(weighting=[1.0], alpha=0.01, tol=1e-8).fit(X, y).objective_ == pytest.approx(push, rel=1e-6)
    n_top = np.sum(y == 0) // 4
    partial = SVMpAUC(max_fpr=n_top / np.sum(y == 0), alpha=0.01, tol=1e-8).fit(X, y).objective_
    assert OWPC(weighting=np.ones(n_top), alpha=0.01, tol=1e-8).fit(X, y).objective_ == pytest.approx(partial, rel=1e-6)


@pytest.mark.parametrize("weighting", [*WEIGHTINGS, [2.0, 1.0]], ids=str)
def test_weights_are_repeated_rows(weighting, rng):
    y, scores, weights = np.arange(12) % 3 == 0, rng.integers(-3, 4, 12) / 2, rng.integers(1, 4, 12).astype(float)
    cumulative = OWPC(weighting=weighting)._cumulative()
    copies = np.repeat(np.arange(12), weights.astype(int))
    weighted = OrderedPairRisk(y, weights, cumulative)(scores)
    repeated = OrderedPairRisk(y[copies], np.ones(len(copies)), cumulative)(scores[copies])
    assert weighted.value == pytest.approx(repeated.value, rel=1e-12)
    np.testing.assert_allclose(weighted.gradient, np.bincount(copies, repeated.gradient), atol=1e-12)


def test_costs_are_those_of_scikit_learn():
    X, y, weights = two_classes(60)
    words = np.where(y == 1, "bad", "good")
    costs = weights * np.where(y == 1, 5.0, 1.0)
    for loss, peer in (
        ("squared_hinge", LinearSVC(C=100.0, tol=1e-9, max_iter=10**5)),
        ("hinge", LinearSVC(C=100.0, loss="hinge", tol=1e-9, max_iter=10**6)),
        ("logistic", LogisticRegression(C=100.0, tol=1e-9)),
    ):
        model = CostSensitive(loss=loss, alpha=0.01, positive_cost=5.0, tol=1e-9, max_iter=10**6, pos_label="bad")
        peer.fit(X, y, costs / costs.sum())
        np.testing.assert_allclose(model.fit(X, words, weights).coef_, peer.coef_, rtol=1e-3, atol=1e-3)
        assert model.classes_.tolist() == ["good", "bad"]


def test_storages_kernels_and_files(stored, tmp_path):
    X, y, _ = two_classes(apart=2.0)
    X[np.abs(X) < 0.3] = 0
    rows = stored(X)
    for model in (AATP(tau=0.4, max_candidates=3), OWPC(), CostSensitive(loss="logistic")):
        exact = model.fit(X, y).decision_function(X)
        found = model.fit(rows, y).decision_function(rows)
        assert np.corrcoef(exact, found)[0, 1] > 0.999
        save(model, tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").decision_function(rows), found)
    assert OWPC(kernel="rbf", n_components=15, random_state=0).fit(rows, y).coef_.shape == (1, 15)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AATP(tau=1.0), "tau must be strictly between 0 and 1"),
        (AATP(max_candidates=0), "max_candidates must be a whole number"),
        (OWPC(weighting="linear"), "weighting must be 'reciprocal', 'uniform' or finite numbers .* got 'linear'"),
        (OWPC(weighting=[1.0, 2.0]), "weighting must be .* do not rise"),
        (OWPC(weighting=[0.0]), "weighting must be .* the first above 0"),
        (CostSensitive(loss="l1"), "loss must be one of"),
        (CostSensitive(positive_cost=0), "positive_cost must be positive"),
    ],
)
def test_bad_parameters(model, message):
    X, y, _ = two_classes()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
