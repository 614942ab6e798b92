"""RankSVM against all pairs at hand."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from baselines.oracles import pair_optimum, two_classes
from toprank import load, save
from toprank.baselines import RankSVM
from toprank.baselines.cutting_planes import solve_cutting_planes
from toprank.baselines.hinge_pairs import HingePairLoss
from toprank.baselines.smoothed_pairs import SmoothedHinge
from toprank.pairwise.graph import Preferences

LOSSES = {"hinge": 1, "squared_hinge": 2}


def preferences(levels, weights, rng):
    strengths = np.tri(3, k=-1) * [[1, 1, 1], [2, 1, 1], [0.5, 1, 1]]
    pairs = np.array([[0, 1], [5, 2], [3, 7]])
    return Preferences(levels, strengths, weights, pairs, rng.random(3))


def all_pairs(preferences):
    """Numbers of the better and the worse row, and the weight, of each pair."""
    level, weights = preferences.level, preferences.weights
    strengths = preferences.strengths[level[:, None], level] * weights[:, None] * weights
    better, worse = np.nonzero(strengths)
    better, worse = (np.append(rows, preferences.pairs[:, k]) for k, rows in enumerate((better, worse)))
    return better, worse, np.append(strengths[strengths > 0], preferences.pair_weights)


@pytest.mark.parametrize("squared", [False, True])
def test_sums_over_sorted_scores_are_sums_over_pairs(squared, rng):
    """With ties, and margins that are exactly one."""
    n = 32  # so that scores minus their mean are exact
    chosen = preferences(rng.integers(0, 3, n), rng.random(n) + 0.1, rng)
    better, worse, weights = all_pairs(chosen)
    scores, direction, shares = rng.integers(-3, 4, n) / 2, rng.normal(size=n), weights / weights.sum()
    lacks = np.maximum(1 - scores[better] + scores[worse], 0)
    D = np.zeros((len(better), n))
    D[np.arange(len(better)), better], D[np.arange(len(better)), worse] = 1, -1
    point = HingePairLoss(chosen, squared)(scores)
    assert point.value == pytest.approx(shares @ lacks ** (2 if squared else 1), rel=1e-12)
    slopes = 2 * lacks if squared else lacks > 0
    np.testing.assert_allclose(point.gradient, -D.T @ (shares * slopes), atol=1e-13)
    if squared:
        H = D.T @ ((2 * shares * (lacks > 0))[:, None] * D)
        np.testing.assert_allclose(point.hessian_product(direction), H @ direction, atol=1e-12)
        np.testing.assert_allclose(point.curvature, H.diagonal(), atol=1e-13)


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("loss", LOSSES)
def test_optimum_of_all_pairs(loss, alpha):
    X, y, weights = two_classes()
    y = y + (np.arange(len(y)) % 3 == 0)  # three levels
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    better, worse = np.transpose(pairs)
    optimum = pair_optimum(X[better] - X[worse], weights[better] * weights[worse], alpha, LOSSES[loss])
    model = RankSVM(loss=loss, alpha=alpha, tol=1e-9).fit(X, y, weights)
    assert model.objective_ == pytest.approx(optimum, rel=1e-7)
    assert model.dual_objective_ <= optimum * (1 + 1e-7)
    assert model.dual_gap_ <= 1e-9
    by_pairs = RankSVM(loss=loss, alpha=alpha, tol=1e-9).fit(
        X, pairs=pairs, pair_weight=weights[better] * weights[worse]
    )
    np.testing.assert_allclose(by_pairs.coef_, model.coef_, atol=1e-3)
    assert by_pairs.objective_ == pytest.approx(optimum, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_kernel_is_the_linear_one_on_a_root_of_its_matrix(loss):
    X, y, _ = two_classes(30)
    K = rbf_kernel(X, gamma=0.3)
    better, worse = np.nonzero(y[:, None] > y)
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0))
    optimum = pair_optimum(root[better] - root[worse], np.ones(len(better)), 0.01, LOSSES[loss])
    model = RankSVM(kernel="rbf", gamma=0.3, loss=loss, alpha=0.01, tol=1e-8).fit(X, y)
    assert model.kernel_form_ == "exact"
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    few = RankSVM(kernel="rbf", gamma=0.3, loss=loss, alpha=0.01, n_components=10, random_state=0).fit(X, y)
    assert few.kernel_form_ == "nystroem"
    assert few.objective_ >= optimum


@pytest.mark.parametrize("loss", LOSSES)
def test_storages_and_files(loss, stored, tmp_path):
    X, y, weights = two_classes()
    X[np.abs(X) < 0.3] = 0
    reference = RankSVM(loss=loss, alpha=0.01, tol=1e-10).fit(X, y, weights)
    rows = stored(X)
    model = RankSVM(loss=loss, alpha=0.01, tol=1e-7).fit(rows, y, weights)
    assert model.coef_.dtype == rows.dtype
    assert model.objective_ == pytest.approx(reference.objective_, rel=1e-5)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(rows), model.predict(rows))


def test_certificate_history_and_warning():
    X, y, _ = two_classes()
    model = RankSVM(alpha=1e-3).fit(csr_array(X), y)
    assert model.history_["primal"][0] == pytest.approx(1.0)
    assert model.history_["gap"][-1] == model.dual_gap_ <= 1e-4
    assert len(model.history_["iteration"]) == model.n_iter_ + 1
    for loss in LOSSES:
        with pytest.warns(ConvergenceWarning, match=r"RankSVM stopped after 1 iterations at .*increase max_iter"):
            RankSVM(alpha=1e-4, loss=loss, max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "alpha must be positive and finite, got 0"),
        ({"loss": "logistic"}, "loss must be one of 'hinge', 'squared_hinge', got 'logistic'"),
        ({"tol": 0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be a whole number"),
        ({"n_components": 0}, "n_components must be"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y, _ = two_classes()
    with pytest.raises(ValueError, match=message):
        RankSVM(**parameters).fit(X, y)


def test_smoothed_hinge_is_a_sum_over_pairs(rng):
    n, width = 32, 0.25  # so that scores minus their mean are exact
    chosen = preferences(rng.integers(0, 3, n), rng.random(n) + 0.1, rng)
    better, worse, weights = all_pairs(chosen)
    scores, direction, shares = rng.integers(-12, 13, n) / 16, rng.normal(size=n), weights / weights.sum()
    lacks = 1 - scores[better] + scores[worse]
    slopes, inside = np.clip(lacks / width, 0, 1), (lacks > 0) & (lacks <= width)
    D = np.zeros((len(better), n))
    D[np.arange(len(better)), better], D[np.arange(len(better)), worse] = 1, -1
    point = SmoothedHinge(chosen, width)(scores)
    assert inside.any()
    assert point.value == pytest.approx(shares @ np.where(lacks < width, width * slopes**2 / 2, lacks - width / 2))
    assert point.plain_value == pytest.approx(shares @ np.maximum(lacks, 0))
    assert point.mean_slope == pytest.approx(shares @ slopes)
    np.testing.assert_allclose(point.gradient, -D.T @ (shares * slopes), atol=1e-13)
    H = D.T @ ((shares * inside / width)[:, None] * D)
    np.testing.assert_allclose(point.hessian_product(direction), H @ direction, atol=1e-12)
    np.testing.assert_allclose(point.curvature, H.diagonal(), atol=1e-12)


def test_newton_goes_on_where_planes_are_many(rng):
    X = rng.normal(size=(300, 40))
    y = np.digitize(X[:, :5].sum(axis=1) + 2 * rng.normal(size=300), [-1, 1])
    chosen = Preferences(y, np.tri(3, k=-1), np.ones(300), np.zeros((0, 2), np.int64), np.zeros(0))
    by_planes = solve_cutting_planes(X, HingePairLoss(chosen, squared=False), 1e-5, tol=1e-5, max_iter=2000)
    model = RankSVM(alpha=1e-5, tol=1e-5).fit(X, y)
    assert 100 < model.n_iter_ < by_planes.n_iter
    assert by_planes.converged
    assert model.dual_gap_ <= 1e-5
    assert model.dual_objective_ <= by_planes.objective * (1 + 1e-9)
    assert by_planes.bound <= model.objective_ * (1 + 1e-9)
    assert len(model.history_["iteration"]) == model.n_iter_ + 1
    single = RankSVM(alpha=1e-5, tol=1e-4).fit(csr_array(X.astype(np.float32)), y)
    assert single.dual_gap_ <= 1e-4
    assert single.objective_ == pytest.approx(model.objective_, rel=2e-4)
    with pytest.warns(ConvergenceWarning, match="RankSVM stopped after 101 iterations"):
        RankSVM(alpha=1e-5, max_iter=101).fit(X, y)


def test_planes_take_over_where_smoothing_ends(rng):
    X = rng.normal(size=(150, 20))
    y = (X[:, :5].sum(axis=1) + 2 * rng.normal(size=150) > 0).astype(int)
    exact = RankSVM(alpha=1e-5, tol=1e-9).fit(X, y)
    assert exact.n_iter_ > 100
    assert exact.dual_gap_ <= 1e-9
    D = X[y == 1][:, None] - X[y == 0]
    losses = np.maximum(1 - D @ exact.coef_[0], 0)
    assert exact.objective_ == pytest.approx(5e-6 * exact.coef_[0] @ exact.coef_[0] + losses.mean(), rel=1e-12)
