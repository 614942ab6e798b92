"""SVMpAUC and SVMMAP against all rankings, one by one."""

import numpy as np
import pytest

from baselines.oracles import average_precision_planes, largest_plane, partial_auc_planes, two_classes
from toprank import DegenerateSolutionWarning, TopPush, load, save
from toprank.baselines import SVMMAP, SVMpAUC, cutting_planes
from toprank.baselines._risk import RiskValue
from toprank.baselines.cutting_planes import simplex_minimum
from toprank.baselines.svm_map import AveragePrecisionRisk
from toprank.baselines.svm_pauc import PartialAUCRisk

METHODS = {
    "SVMpAUC": SVMpAUC(min_fpr=0.2, max_fpr=0.6, alpha=0.01),
    "SVMMAP": SVMMAP(alpha=1e-3),
}


def largest(planes, scores):
    return max(constant + slopes @ scores for constant, slopes in planes)


def is_subgradient(risk, scores, rng):
    value, slopes = risk(scores)
    for scale in (0.01, 1.0, 10.0):
        others = scores + scale * rng.normal(size=len(scores))
        assert risk(others).value >= value + slopes @ (others - scores) - 1e-12 * (1 + scale)


@pytest.mark.parametrize(("before", "until"), [(0, 1), (0, 2), (1, 3), (2, 3), (0, 4)])
def test_partial_area_finds_the_most_violated_constraint(before, until, rng):
    y = np.array([1, 0, 0, 1, 0, 0])
    planes = partial_auc_planes(y, before, until)
    risk = PartialAUCRisk(y == 1, np.ones(6), before / 4, until / 4)
    for scores in (np.zeros(6), rng.normal(size=6), rng.integers(-2, 3, 6) / 2):
        assert risk(scores).value == pytest.approx(largest(planes, scores), abs=1e-12)
        is_subgradient(risk, scores, rng)


def test_average_precision_finds_the_most_violated_constraint(rng):
    y = np.array([1, 0, 1, 0, 0, 1])
    planes, risk = average_precision_planes(y), AveragePrecisionRisk(y == 1, np.ones(6))
    for scores in (np.zeros(6), rng.normal(size=6), rng.integers(-2, 3, 6) / 2):
        assert risk(scores).value == pytest.approx(largest(planes, scores), abs=1e-12)
        is_subgradient(risk, scores, rng)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 9), (9, 1), (7, 16), (20, 13), (30, 64)])
def test_average_precision_takes_the_best_place_of_each_negative(m, n, rng):
    y, scores = rng.permutation(np.arange(m + n) < m), rng.integers(-9, 10, m + n) / rng.choice([1, 7, 100])
    s, t = np.sort(scores[y])[::-1], np.sort(scores[~y])[::-1]
    i, j = np.arange(1, m + 1), np.arange(1, n + 1)[:, None]
    gains = i / ((i + j - 1) * (i + j) * m) - 2 / (m * n) * (s - t[:, None])
    sums = np.hstack([np.cumsum(gains[:, ::-1], axis=1)[:, ::-1], np.zeros((n, 1))])
    risk = AveragePrecisionRisk(y, np.ones(m + n))
    assert risk(scores).value == pytest.approx(sums.max(axis=1).sum(), rel=1e-9, abs=1e-12)
    is_subgradient(risk, scores, rng)


@pytest.mark.parametrize("alpha", [0.1, 1e-2])
def test_optimum_over_all_rankings(alpha, rng):
    y = np.array([1, 0, 0, 1, 0, 0])
    X = rng.normal(size=(6, 2)) + y[:, None]
    for model, planes in (
        (SVMpAUC(min_fpr=0.25, max_fpr=0.75, alpha=alpha, tol=1e-8), partial_auc_planes(y, 1, 3)),
        (SVMMAP(alpha=alpha, tol=1e-8), average_precision_planes(y)),
    ):
        optimum = largest_plane(planes, X, alpha)
        assert model.fit(X, y).objective_ == pytest.approx(optimum, rel=1e-6)
        assert model.dual_objective_ <= optimum * (1 + 1e-6)


@pytest.mark.parametrize("alpha", [0.1, 1e-3])
def test_the_highest_negative_alone_is_toppush(alpha):
    X, y, weights = two_classes(60)
    X[y == 1] += 1
    push = TopPush(surrogate="hinge", alpha=alpha, tol=1e-8).fit(X, y, weights)
    model = SVMpAUC(alpha=alpha, tol=1e-8).fit(X, y, weights)
    assert model.objective_ == pytest.approx(push.objective_, rel=1e-7)
    one = SVMpAUC(alpha=alpha, tol=1e-8, max_fpr=1 / np.sum(y == 0)).fit(X, y)
    assert one.objective_ == pytest.approx(SVMpAUC(alpha=alpha, tol=1e-8).fit(X, y).objective_, rel=1e-7)


def test_weights_are_repeated_rows(rng):
    X, y, weights = two_classes(40, 3, rng.integers(9), apart=2.0)
    copies = np.repeat(np.arange(40), weights.astype(int))
    for options in ({"max_fpr": 0.3}, {"min_fpr": 0.15, "max_fpr": 0.55}):
        weighted = SVMpAUC(alpha=0.01, tol=1e-8, **options).fit(X, y, weights)
        repeated = SVMpAUC(alpha=0.01, tol=1e-8, **options).fit(X[copies], y[copies])
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-7)
        assert weighted.threshold_ == pytest.approx(repeated.threshold_, abs=1e-3)


@pytest.mark.parametrize("name", METHODS)
def test_storages_kernels_and_files(name, stored, tmp_path):
    X, y, _ = two_classes(25, apart=2.0)
    X[np.abs(X) < 0.3] = 0
    rows, model = stored(X), METHODS[name]
    exact = model.set_params(tol=1e-6).fit(X, y).objective_
    model.fit(rows, y)
    assert model.objective_ == pytest.approx(exact, rel=1e-5)
    assert model.coef_.dtype == model.decision_function(rows).dtype == rows.dtype
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(rows), model.decision_function(rows))
    with_kernel = type(model)(kernel="rbf", gamma=0.5, alpha=1e-3, n_components=20, random_state=0).fit(rows, y)
    assert with_kernel.coef_.shape == (1, 20)
    assert np.mean(with_kernel.predict(rows) == y) > 0.7


def test_the_quadratic_program_of_the_planes(rng):
    A, b = rng.normal(size=(30, 8)), rng.normal(size=30)
    A[5] = A[4]  # two planes that are the same
    b[5] = b[4]
    G = A @ A.T
    mu = simplex_minimum(G, b, np.eye(30)[0])
    slack = G @ mu - b
    assert mu.min() >= 0
    assert mu.sum() == pytest.approx(1)
    assert mu @ slack - slack.min() <= 1e-10


def test_planes_in_the_place_of_forgotten_ones(rng, monkeypatch):
    monkeypatch.setattr(cutting_planes, "_PATIENCE", 6)
    planes, w = cutting_planes.Planes(60), np.zeros(60)
    for n in range(100):
        planes.add(rng.normal(size=60), rng.normal())
        w, bound = planes.minimum(0.5)
        assert len(planes.share) <= n + 2
    n = len(planes.share)
    assert 32 < n < 100  # more than there was room for at first, and some were forgotten
    slopes, offsets = planes.slopes[:n], planes.offsets[:n]
    np.testing.assert_allclose(planes.products[:n, :n], slopes @ slopes.T, atol=1e-12)
    assert not slopes[0].any()
    assert offsets[0] == 0.0
    assert 0.25 * w @ w + np.max(slopes @ w + offsets) == pytest.approx(bound, rel=1e-9)


def test_an_outlier_that_no_direction_gets_below_leaves_nothing():
    X = np.array([[0.0], [1.0], [2.0], [-9.0], [9.0]])
    with pytest.warns(DegenerateSolutionWarning, match="ranks nothing: lower alpha, or raise max_fpr"):
        assert SVMpAUC().fit(X, [0, 1, 1, 0, 0]).coef_ == 0
    SVMpAUC(max_fpr=1.0).fit(X, [0, 1, 1, 0, 0])


def test_zero_is_not_left_for_a_gain_by_rounding():
    def risk(scores):  # a constant, but for rounding at zero
        return RiskValue(1.0 if scores.any() else 1.0 + 4e-16, np.full(1, -1e-9))

    found = cutting_planes.solve_cutting_planes(np.ones((1, 1)), risk, 1000.0, tol=1e-4, max_iter=9)
    assert found.w == 0.0
    assert found.objective == 1.0 + 4e-16


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_fpr": 1.5}, "max_fpr must be above min_fpr and at most 1, got 1.5"),
        ({"min_fpr": 0.5, "max_fpr": 0.5}, "max_fpr must be above min_fpr"),
        ({"min_fpr": 0.5}, "max_fpr must be given where min_fpr is above 0, got None"),
        ({"min_fpr": -1}, "min_fpr must be at least 0 and below 1, got -1"),
        ({"kernel": "precomputed"}, "kernel must be one that takes rows, got 'precomputed'"),
        ({"alpha": -1}, "alpha must be positive"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y, _ = two_classes()
    with pytest.raises(ValueError, match=message):
        SVMpAUC(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="only one class is left"):
        SVMpAUC().fit(X, y, y == 1)
