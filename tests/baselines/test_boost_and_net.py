"""RankBoost and RankNet against direct implementations over all pairs."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from baselines.oracles import two_classes
from toprank import WMWRanker, load, save
from toprank.baselines import RankBoost, RankNet
from toprank.baselines.rank_net import Network
from toprank.pairwise.graph import Preferences
from toprank.pairwise.objective import PairLoss


def levels(n=30, d=3, seed=0):
    X, y, weights = two_classes(n, d, seed)
    return X.round(1), y + (np.arange(n) % 3 == 0), weights  # three levels, and ties


def direct_boosting(X, pairs, pair_weights, n_rounds):
    """The algorithm as printed, with a weight for each pair and every threshold tried."""
    better, worse = np.transpose(pairs)
    D = pair_weights / pair_weights.sum()
    H = np.zeros(len(X))
    for _ in range(n_rounds):
        best = (0.0, None)
        for f in range(X.shape[1]):
            values = np.unique(X[:, f])[::-1]
            for high, low in pairwise(values):
                h = (X[:, f] > (high + low) / 2).astype(float)
                r = D @ (h[better] - h[worse])
                if abs(r) > abs(best[0]) + 1e-12:
                    best = (r, h)
        r, h = best
        step = 0.5 * np.log((1 + r) / (1 - r))
        H += step * h
        D *= np.exp(step * (h[worse] - h[better]))
        D /= D.sum()
    return H


def test_boosting_is_that_over_all_pairs(rng):
    X, y, weights = levels(seed=rng.integers(9))
    pairs = np.array([(i, j) for i in range(30) for j in range(30) if y[i] > y[j]])
    pair_weights = weights[pairs].prod(axis=1)
    H = direct_boosting(X, pairs, pair_weights, 8)
    fast = RankBoost(n_estimators=8).fit(X, y, weights)
    np.testing.assert_allclose(fast.predict(X), H, atol=1e-9)
    general = RankBoost(n_estimators=8).fit(X, pairs=pairs, pair_weight=pair_weights)
    np.testing.assert_allclose(general.predict(X), H, atol=1e-9)
    sparse = RankBoost(n_estimators=8).fit(csr_array(X), y, weights)
    np.testing.assert_allclose(sparse.predict(csr_array(X)), H, atol=1e-9)
    losses = np.exp(H[pairs[:, 1]] - H[pairs[:, 0]])
    assert fast.objective_ == pytest.approx(pair_weights @ losses / pair_weights.sum(), rel=1e-9)
    assert np.all(np.diff(fast.history_["objective"]) < 0)


def test_boosting_with_a_graph_and_with_pairs_besides(rng):
    X, y, weights = levels(seed=rng.integers(9))
    edges = [(2, 0, 3.0), (1, 0, 0.5)]
    more = np.array([[0, 1], [4, 9]])
    pairs = [(i, j) for i in range(30) for j in range(30) for a, b, _ in edges if (y[i], y[j]) == (a, b)]
    strength = {(a, b): s for a, b, s in edges}
    pair_weights = [strength[y[i], y[j]] * weights[i] * weights[j] for i, j in pairs]
    pair_weights += weights[more].prod(axis=1).tolist()
    H = direct_boosting(X, np.vstack([pairs, more]), np.array(pair_weights), 5)
    model = RankBoost(n_estimators=5, graph=edges).fit(X, y, weights, pairs=more)
    np.testing.assert_allclose(model.predict(X), H, atol=1e-9)


def test_boosting_ends_where_nothing_is_left():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    separable = RankBoost(n_estimators=1000).fit(X, [0, 0, 1, 1])
    assert separable.score(X, [0, 0, 1, 1]) == 1
    assert np.isfinite(separable.predict(X)).all()
    nothing = RankBoost().fit(np.ones((4, 1)), [0, 0, 1, 1])
    assert nothing.n_iter_ == 0
    np.testing.assert_array_equal(nothing.predict(X), np.zeros(4))


@pytest.mark.parametrize("n_hidden", [0, 3])
def test_gradient_of_the_network(n_hidden, rng):
    X, y, weights = levels(seed=rng.integers(9))
    pairs = np.array([[0, 1], [4, 9]])
    preferences = Preferences(y.astype(np.int64), np.tri(3, k=-1), weights, pairs, np.ones(2))
    network = Network(3, n_hidden)
    start = rng.normal(size=len(network.start(np.random.RandomState(0))))
    value, gradient = network.value_and_gradient(start, X, PairLoss(preferences), 0.1)

    def direct(theta):
        if n_hidden:
            V, b, u = theta[:9].reshape(3, 3), theta[9:12], theta[12:]
            s, penalty = np.tanh(X @ V.T + b) @ u, np.sum(V**2) + u @ u
        else:
            s, penalty = X @ theta, theta @ theta
        better, worse = np.nonzero(y[:, None] > y)
        p = np.append(weights[better] * weights[worse], np.ones(2))
        better, worse = np.append(better, pairs[:, 0]), np.append(worse, pairs[:, 1])
        return 0.05 * penalty + p @ np.logaddexp(0, s[worse] - s[better]) / p.sum()

    assert value == pytest.approx(direct(start), rel=1e-12)
    np.testing.assert_allclose(gradient, approx_fprime(start, direct, 1e-7), atol=1e-5)
    by_rows = network.value_and_gradient(start, csr_array(X), PairLoss(preferences), 0.1)
    np.testing.assert_allclose(by_rows[1], gradient, atol=1e-12)


def test_a_linear_network_is_the_wmw_ranker():
    X, y, weights = levels(60)
    net = RankNet(hidden_units=0, alpha=0.01, tol=1e-14).fit(X, y, weights)
    peer = WMWRanker(alpha=0.01, tol=1e-12).fit(X, y, weights)
    assert net.objective_ == pytest.approx(peer.objective_, rel=1e-9)
    assert net.objective_ - peer.objective_ <= net.suboptimality_ + 1e-12
    np.testing.assert_allclose(net.coef_, peer.coef_, rtol=1e-3, atol=1e-4)


def test_a_hidden_layer_ranks_what_no_direction_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (np.abs(X[:, 0]) > 1).astype(int)
    assert RankNet(random_state=0).fit(X, y).score(X, y) > 0.95 > RankNet(hidden_units=0).fit(X, y).score(X, y) + 0.2
    same = [RankNet(random_state=1, max_iter=30, tol=1e-2).fit(X, y).predict(X) for _ in range(2)]
    np.testing.assert_array_equal(*same)


def test_storages_and_files(stored, tmp_path):
    X, y, weights = levels()
    rows = stored(X)
    for model in (RankBoost(n_estimators=5), RankNet(hidden_units=2, random_state=0), RankNet(hidden_units=0)):
        exact = model.fit(X, y, weights).objective_
        assert model.fit(rows, y, weights).objective_ == pytest.approx(exact, rel=1e-3)
        save(model, tmp_path / "model")
        np.testing.assert_array_equal(load(tmp_path / "model").predict(rows), model.predict(rows))


def test_warning_and_bad_parameters():
    X, y, _ = levels()
    with pytest.warns(ConvergenceWarning, match=r"RankNet stopped after 1 iterations; increase max_iter or tol"):
        RankNet(hidden_units=0, max_iter=1, tol=1e-12).fit(X, y)
    for model, message in (
        (RankBoost(n_estimators=0), "n_estimators must be a whole number of at least 1, got 0"),
        (RankNet(hidden_units=-1), "hidden_units must be a whole number of at least 0, got -1"),
        (RankNet(alpha=0), "alpha must be positive"),
        (RankNet(tol="a"), "tol must be a finite number"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
