"""Each ranker against a plain version of its formulas, and the step of CBR against an exact solver."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.sparse import csr_array
from scipy.stats import norm

from online import oracles
from toprank.online import CBR, OAM, OPAUC, AdaOAM, UniExp


def rows(seed, n=300, d=7):
    """Rows with zeros and duplicates, two noisy classes of different size, and weights of which some are zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    X[50] = X[49]
    X[60] = 0
    y = (X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.7).astype(int)
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.5], size=n)


@pytest.mark.covering
@pytest.mark.parametrize("storage", [np.asarray, csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize("covariance", ["full", "diag"])
@pytest.mark.parametrize(("C", "growing", "kept"), [(0.01, False, 1.0), (1.0, True, 1.0), (0.1, False, 0.9)])
def test_cbr(covariance, policy, storage, C, growing, kept, rng):
    X, y, weights = rows(rng.integers(1000))
    mu, sigma = oracles.cbr(
        X, y, weights, covariance=covariance, policy=policy, size=9, C=C, growing=growing, kept=kept
    )
    model = CBR(
        covariance=covariance,
        buffer=policy,
        buffer_size=9,
        C=C,
        growing_penalty=growing,
        forgetting=kept,
        random_state=0,
    ).fit(storage(X), y, weights)
    np.testing.assert_allclose(model.coef_[0], mu, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(model.covariance_, sigma, rtol=1e-7, atol=1e-10)


@pytest.mark.covering
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize("update", ["sequential", "gradient"])
@pytest.mark.parametrize("C", [0.001, 0.1])
def test_oam(update, policy, C, rng):
    X, y, weights = rows(rng.integers(1000))
    w = oracles.oam(X, y, weights, update=update, policy=policy, size=9, C=C)
    model = OAM(update=update, buffer=policy, buffer_size=9, C=C, random_state=0).fit(X, y, weights)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rate", [0.01, 10.0])
def test_square_loss(rate, rng):
    X, y, weights = rows(rng.integers(1000))
    w = oracles.square_loss(X, y, weights, rate=rate, alpha=0.01)
    np.testing.assert_allclose(OPAUC(learning_rate=rate, alpha=0.01).fit(X, y, weights).coef_[0], w, rtol=1e-8)
    w = oracles.square_loss(X, y, weights, rate=rate, alpha=0.01, delta=0.5)
    np.testing.assert_allclose(AdaOAM(learning_rate=rate, alpha=0.01).fit(X, y, weights).coef_[0], w, rtol=1e-6)


# 300 rows pass the point at which the products are computed anew.
@pytest.mark.parametrize(("rank", "rate", "alpha"), [(3, 0.01, 0.01), (70, 0.1, 0.0), (1, 10.0, 1.0)])
def test_low_rank(rank, rate, alpha, rng):
    X, y, weights = rows(rng.integers(1000), n=600)
    w = oracles.square_loss(X, y, weights, rate=rate, alpha=alpha, rank=rank)
    model = OPAUC(learning_rate=rate, alpha=alpha, rank=rank, random_state=0).fit(X, y, weights)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(model.decision_function(X) + model.threshold_, X @ w, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rate", [0.01, 1.0, 1e4])
def test_uniexp(rate, rng):
    X, y, weights = rows(rng.integers(1000))
    w = oracles.uniexp(X, y, weights, rate=rate, alpha=0.01)
    np.testing.assert_allclose(UniExp(learning_rate=rate, alpha=0.01).fit(X, y, weights).coef_[0], w, rtol=1e-7)


def exact_step(mu, sigma, z, label, C, phi, *, diagonal=False):
    """The minimum of problem (5), or (6), by an interior-point method; convex in μ and the root Υ of Σ."""
    d = len(mu)
    mean = cp.Variable(d)
    variances = cp.Variable(d)
    root = cp.diag(variances) if diagonal else cp.Variable((d, d), PSD=True)
    inverse_root = np.linalg.inv(np.real(sqrtm(sigma)))
    divergence = -(cp.sum(cp.log(variances)) if diagonal else cp.log_det(root))
    divergence += (cp.sum_squares(inverse_root @ root) + cp.sum_squares(inverse_root @ (mean - mu))) / 2
    loss = cp.pos(phi * cp.norm(root @ z) - label * (z @ mean))
    cp.Problem(cp.Minimize(divergence + C * loss)).solve(solver=cp.CLARABEL)
    return mean.value, root.value @ root.value


def model_and_pair(covariance, seed, C, eta, n_entries):
    """A model that has learned something, with buffers of one row; the pair of a new row, and the model after it."""
    rng = np.random.default_rng(seed)
    X, y, _ = rows(seed, n=70, d=4)
    model = CBR(covariance=covariance, buffer_size=1, C=0.5, eta=eta).fit(X, y)
    mu, sigma = model.coef_[0], model.covariance_
    label = int(rng.integers(2))
    other = X[np.flatnonzero(y == 1 - label)[-1]]
    z = rng.normal(size=4) * (np.arange(4) < n_entries)
    if seed == 3:  # a pair in the right order by far: no step
        z = 9 * (2 * label - 1) * mu / np.linalg.norm(mu) * (np.arange(4) < n_entries)
    model.set_params(C=C).partial_fit([other + z], [label])
    return mu, sigma, z, 2 * label - 1, model


@pytest.mark.parametrize("eta", [0.55, 0.7, 0.95])
@pytest.mark.parametrize("C", [0.01, 0.3, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_step_solves_the_divergence_problem(seed, C, eta):
    mu, sigma, z, label, model = model_and_pair("full", seed, C, eta, 4)
    mean, matrix = exact_step(mu, sigma, z, label, C, norm.ppf(eta))
    np.testing.assert_allclose(model.coef_[0], mean, atol=2e-4 * max(1, np.abs(mean).max()))
    np.testing.assert_allclose(model.covariance_, matrix, atol=2e-4)


@pytest.mark.parametrize("C", [0.01, 0.3, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_diagonal_step_is_the_divergence_problem_and_the_nearest_diagonal(seed, C):
    mu, variances, z, label, model = model_and_pair("diag", seed, C, 0.7, 4)
    mean, matrix = exact_step(mu, np.diag(variances), z, label, C, norm.ppf(0.7))
    nearest = cp.Variable(4)
    cp.Problem(cp.Minimize(np.diag(np.linalg.inv(matrix)) @ nearest - cp.sum(cp.log(nearest)))).solve(cp.CLARABEL)
    np.testing.assert_allclose(model.coef_[0], mean, atol=2e-4 * max(1, np.abs(mean).max()))
    np.testing.assert_allclose(model.covariance_, nearest.value, atol=2e-4)


@pytest.mark.parametrize("seed", range(4))
def test_diagonal_step_solves_the_diagonal_problem_of_one_feature(seed):
    mu, variances, z, label, model = model_and_pair("diag", seed, 0.3, 0.7, 1)
    mean, matrix = exact_step(mu, np.diag(variances), z, label, 0.3, norm.ppf(0.7), diagonal=True)
    np.testing.assert_allclose(model.coef_[0], mean, atol=2e-4)
    np.testing.assert_allclose(model.covariance_, np.diag(matrix), atol=2e-4)


def test_steps_of_all_kinds_occur_in_the_cases_above():
    bound, free, none = 0, 0, 0
    for seed in range(4):
        for C in (0.01, 0.3, 100.0):
            mu, sigma, z, label, _ = model_and_pair("full", seed, C, 0.7, 4)
            alpha, _ = oracles.confidence_weighted(z @ sigma @ z, label * mu @ z, norm.ppf(0.7), C)
            bound, free, none = bound + (alpha == C), free + (0 < alpha < C), none + (alpha == 0)
    assert min(bound, free) >= 3
    assert none >= 1
