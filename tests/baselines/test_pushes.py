"""PNormPush and InfinitePush against cvxpy, each other, and TopPush."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import logsumexp

from baselines.oracles import pair_optimum, solved, two_classes
from toprank import TopPush, WMWRanker, load, save
from toprank.baselines import InfinitePush, PNormPush
from toprank.baselines.pnorm_push import SUMS, PNormRisk

LOSSES = {
    "exponential": np.exp,
    "logistic": lambda z: np.logaddexp(0, z) / np.log(2),
    "hinge": lambda z: np.maximum(1 + z, 0),
    "quadratic": lambda z: np.maximum(1 + z, 0) ** 2,
}


@pytest.mark.parametrize("p", [1.0, 4.0, 200.0])
@pytest.mark.parametrize("surrogate", SUMS)
def test_sums_are_those_over_all_pairs(surrogate, p, rng):
    y = np.arange(20) % 3 == 0
    weights, scores, step = rng.random(20) + 0.5, rng.normal(size=20), rng.normal(size=20)
    a, b = weights[y] / weights[y].sum(), weights[~y] / weights[~y].sum()
    risk = PNormRisk(y, weights, surrogate, p)

    def value(scores):
        losses = LOSSES[surrogate](scores[~y][:, None] - scores[y]) @ a
        with np.errstate(divide="ignore"):
            return np.exp(logsumexp(p * np.log(losses), b=b) / p)

    found = risk(scores)
    assert found.value == pytest.approx(value(scores), rel=1e-12)
    slope = (value(scores + 1e-6 * step) - value(scores - 1e-6 * step)) / 2e-6
    assert found.gradient @ step == pytest.approx(slope, rel=1e-5, abs=1e-8)


def norm_optimum(X, y, weights, alpha, surrogate, p):
    w = cp.Variable(X.shape[1])
    a, b = (weights[y == label] / weights[y == label].sum() for label in (1, 0))
    s, t = X[y == 1] @ w, X[y == 0] @ w
    if surrogate == "exponential":
        risk = cp.exp(cp.log_sum_exp(np.log(a) - s) + cp.log_sum_exp(np.log(b) + p * t) / p)
    else:
        means = cp.hstack([a @ cp.pos(1 + t[j] - s) for j in range(len(b))])
        risk = cp.pnorm(cp.multiply(b ** (1 / p), means), p)
    return solved(alpha / 2 * cp.sum_squares(w) + risk)


@pytest.mark.parametrize("surrogate", ["exponential", "hinge"])
def test_optimum_of_the_norm(surrogate):
    X, y, weights = two_classes(24)
    model = PNormPush(p=3, surrogate=surrogate, alpha=0.05, tol=1e-8).fit(X, y, weights)
    assert model.objective_ == pytest.approx(norm_optimum(X, y, weights, 0.05, surrogate, 3), rel=1e-6)
    assert model.dual_gap_ <= 1e-8


def test_with_p_one_all_pairs_count_the_same(rng):
    X, y, weights = two_classes(30, seed=rng.integers(9))
    better, worse = np.nonzero(y[:, None] > y)
    optimum = pair_optimum(X[better] - X[worse], weights[better] * weights[worse], 0.01, 2)
    quadratic = PNormPush(p=1, surrogate="quadratic", alpha=0.01, tol=1e-8).fit(X, y, weights)
    assert quadratic.objective_ == pytest.approx(optimum, rel=1e-6)
    logistic = PNormPush(p=1, surrogate="logistic", alpha=0.01 / np.log(2), tol=1e-8).fit(X, y, weights)
    peer = WMWRanker(alpha=0.01, tol=1e-10).fit(X, y, weights)
    assert logistic.objective_ * np.log(2) == pytest.approx(peer.objective_, rel=1e-7)


@pytest.mark.parametrize("surrogate", SUMS)
def test_it_meets_toppush_as_p_grows(surrogate):
    X, y, _ = two_classes(40, apart=2.0)
    limit, n = TopPush(surrogate=surrogate, alpha=0.05, tol=1e-8).fit(X, y).objective_, np.sum(y == 0)
    values = [PNormPush(surrogate=surrogate, p=p, alpha=0.05, tol=1e-6).fit(X, y).objective_ for p in (1, 8, 64, 1000)]
    assert np.all(np.diff(values) > 0)
    for p, value in zip((1, 8, 64, 1000), values, strict=True):
        assert limit * n ** (-1 / p) * (1 - 1e-6) <= value <= limit * (1 + 1e-6)


@pytest.mark.parametrize("alpha", [0.1, 1e-3])
def test_infinite_push_is_toppush_with_the_hinge(alpha, rng):
    X, y, weights = two_classes(50, seed=rng.integers(9), apart=2.0)
    push = TopPush(surrogate="hinge", alpha=alpha, tol=1e-9).fit(X, y, weights)
    model = InfinitePush(alpha=alpha, tol=1e-8).fit(X, y, weights)
    assert model.objective_ == pytest.approx(push.objective_, rel=1e-7)


@pytest.mark.parametrize("alpha", [0.2, 0.01])
def test_sparse_infinite_push(alpha, monkeypatch, stored):
    monkeypatch.setattr("toprank.baselines.infinite_push._JOINING", 3)  # several programs
    X, y, weights = two_classes(60, 6, apart=2.0)
    X[np.abs(X) < 0.2] = 0
    X[:, :3] = 0.3 * np.random.default_rng(0).normal(size=(60, 3))  # which say nothing of the classes
    w = cp.Variable(6)
    shares = weights[y == 1] / weights[y == 1].sum()
    losses = cp.pos(1 + cp.max(X[y == 0] @ w) - X[y == 1] @ w)
    optimum = solved(alpha * cp.norm1(w) + shares @ losses)
    rows = stored(X)
    model = InfinitePush(penalty="l1", alpha=alpha, tol=1e-7).fit(rows, y, weights)
    exactness = 1e-5 if rows.dtype == np.float32 else 1e-6
    assert model.objective_ == pytest.approx(optimum, rel=exactness)
    assert model.dual_objective_ <= optimum * (1 + exactness)
    assert model.n_iter_ > 1
    if alpha == 0.2:
        assert np.sum(model.coef_ == 0) >= 2


def test_storages_kernels_and_files(stored, tmp_path):
    X, y, _ = two_classes(apart=2.0)
    X[np.abs(X) < 0.3] = 0
    rows = stored(X)
    for model in (PNormPush(alpha=0.01), InfinitePush(alpha=0.01, penalty="l1")):
        exact = model.fit(X, y).objective_
        assert model.fit(rows, y).objective_ == pytest.approx(exact, rel=2e-4)
        save(model, tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").decision_function(rows), model.decision_function(rows))
    assert PNormPush(kernel="rbf", n_components=15, random_state=0).fit(rows, y).coef_.shape == (1, 15)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (PNormPush(p=0.5), "p must be a finite number of at least 1, got 0.5; use TopPush"),
        (PNormPush(p=np.inf), "p must be a finite number of at least 1, got inf"),
        (PNormPush(surrogate="huber"), "surrogate must be one of 'exponential'"),
        (InfinitePush(penalty="l0"), "penalty must be one of 'l2', 'l1', got 'l0'"),
    ],
)
def test_bad_parameters(model, message):
    X, y, _ = two_classes()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
