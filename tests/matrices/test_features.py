"""Features whose inner products are a kernel, or close to it."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import rbf_kernel

from toprank.matrices import features
from toprank.matrices.features import FourierFeatures, NystroemFeatures, both_dense_or_sparse, draw_rows, in_blocks
from toprank.matrices.kernel import Kernel
from toprank.matrices.threads import one_blas_thread

GAMMA = 0.2


@pytest.fixture(autouse=True)
def one_thread():
    """As in the estimators: more threads slow small matrices down."""
    with one_blas_thread():
        yield


def rows(seed=0, n=80):
    return np.random.default_rng(seed).standard_normal((n, 4))


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def seed(number=0):
    return np.random.RandomState(number)


@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_nystroem_features_of_all_rows_give_the_kernel(name, stored):
    X = stored(rows())
    kernel = Kernel.resolve(name, X, GAMMA, 2, 1.0)
    phi = NystroemFeatures.fit(kernel, X, 80, seed())(X)
    K = kernel.block(X, X)
    assert phi.dtype == X.dtype
    single = X.dtype == np.float32
    np.testing.assert_allclose(phi @ phi.T, K, atol=(5e-3 if single else 1e-8) * np.abs(K).max())


def test_nystroem_features_leave_out_directions_that_the_kernel_does_not_have():
    X = rows()
    assert NystroemFeatures.fit(Kernel.resolve("linear", X), X, 50, seed())(X).shape == (80, 4)
    twice = np.vstack([X, X])
    phi = NystroemFeatures.fit(Kernel.resolve("rbf", X, GAMMA), twice, 160, seed())(twice)
    assert phi.shape[1] <= 80
    np.testing.assert_allclose(phi @ phi.T, rbf_kernel(twice, gamma=GAMMA), atol=1e-8)


def test_nystroem_features_approach_the_kernel_from_below():
    """The error is a positive semidefinite matrix; with more rows, of the same order, it can only fall."""
    X = rows()
    kernel, K = Kernel.resolve("rbf", X, GAMMA), rbf_kernel(X, gamma=GAMMA)
    errors = []
    for size in (5, 20, 60):
        phi = NystroemFeatures.fit(kernel, X, size, seed())(X)
        error = K - phi @ phi.T
        assert np.linalg.eigvalsh(error).min() > -1e-8
        errors.append(np.trace(error))
    assert errors[0] > errors[1] > errors[2] > 0


def test_nystroem_features_of_other_rows_keep_their_digits_in_single_precision():
    """A smooth kernel, whose matrix has most of its eigenvalues below the rounding errors of single precision."""
    X, other = rows(n=400).astype(np.float32), rows(1, 50).astype(np.float32)
    features_of = {}
    for dtype in (np.float32, np.float64):
        kernel = Kernel.resolve("rbf", X, 0.02)
        features_of[dtype] = NystroemFeatures.fit(kernel, X.astype(dtype), 300, seed())(other.astype(dtype))
    single, double = (phi @ phi.T for phi in features_of.values())
    np.testing.assert_allclose(double, rbf_kernel(other.astype(float), gamma=0.02), atol=1e-5)
    np.testing.assert_allclose(single, double, atol=3e-4)


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_nystroem_without_any_direction_is_refused(name):
    X = np.zeros((10, 2))
    kernel = Kernel.resolve(name, X)
    if name == "rbf":  # all rows are one
        np.testing.assert_allclose(NystroemFeatures.fit(kernel, X, 5, seed())(X) ** 2, 1.0)
    else:
        with pytest.raises(ValueError, match="no positive eigenvalue; use another kernel"):
            NystroemFeatures.fit(kernel, X, 5, seed())


def test_nystroem_refuses_a_kernel_that_is_not_positive():
    X = rows()
    with pytest.raises(ValueError, match="no positive eigenvalue"):
        NystroemFeatures.fit(Kernel.resolve(lambda A, B: -(dense(A) @ dense(B).T), X), X, 10, seed())


def test_fourier_features_approximate_the_kernel_better_with_more(stored):
    X = stored(rows())
    K = rbf_kernel(dense(X), gamma=GAMMA)
    errors = []
    for size in (50, 800, 12_800):
        phi = FourierFeatures.fit(GAMMA, X, size, seed())(X)
        assert phi.shape == (80, size)
        assert phi.dtype == X.dtype
        errors.append(np.sqrt(np.mean((phi @ phi.T - K) ** 2)))
    # a mean of independent terms of variance at most 1 / 2: a sixteenfold number has a quarter of the error
    assert errors[0] < np.sqrt(1 / 50)
    for i in (0, 1):
        assert 2.5 < errors[i] / errors[i + 1] < 6.5


@pytest.mark.parametrize("kind", ["nystroem", "fourier"])
def test_storages_blocks_and_seeds(kind, monkeypatch):
    X = rows()
    rbf = Kernel.resolve("rbf", X, GAMMA)
    fit = {
        "nystroem": lambda rows, number: NystroemFeatures.fit(rbf, rows, 20, seed(number)),
        "fourier": lambda rows, number: FourierFeatures.fit(GAMMA, rows, 20, seed(number)),
    }[kind]
    phi = fit(X, 0)(X)
    np.testing.assert_array_equal(fit(X, 0)(X), phi)
    assert np.abs(fit(X, 1)(X) - phi).max() > 1e-3
    for fitted_on in (X, csr_array(X)):
        feature_map = fit(fitted_on, 0)
        for asked in (X, csr_array(X)):
            np.testing.assert_allclose(feature_map(asked), phi, atol=1e-6)
    monkeypatch.setattr(features, "_BLOCK_ENTRIES", 20 * 7)
    np.testing.assert_allclose(fit(X, 0)(X), phi, atol=1e-10)
    assert fit(X, 0)(X[:1]).shape == (1, 20)


@pytest.mark.parametrize(("width", "sizes"), [(10, [4, 4, 2]), (40, [1] * 10), (1000, [1] * 10), (0, [10])])
def test_blocks(width, sizes, monkeypatch):
    monkeypatch.setattr(features, "_BLOCK_ENTRIES", 40)
    X, seen = np.arange(10.0)[:, None], []

    def double(block):
        seen.append(len(block))
        return 2 * block[:, 0]

    np.testing.assert_array_equal(in_blocks(double, X, width), 2 * X[:, 0])
    assert seen == sizes


def test_both_dense_or_sparse():
    X = np.eye(2)
    S = csr_array(X)
    for A, B, sparse in ((X, X, False), (S, X, False), (X, S, False), (S, S, True)):
        for result in both_dense_or_sparse(A, B):
            assert hasattr(result, "toarray") == sparse
            np.testing.assert_array_equal(dense(result), X)


def test_rows_are_drawn_by_their_weights():
    """Equal weights give a part of a permutation; a weight of 3 is as often drawn as any of three repeated rows."""
    np.testing.assert_array_equal(draw_rows(np.full(50, 7.0), 9, seed()), np.sort(seed().permutation(50)[:9]))
    weights, times, runs = np.ones(20), np.ones(20, np.intp), 4000
    weights[0], times[0] = 3.0, 3
    copies = np.repeat(np.arange(20), times)
    drawn = sum(0 in draw_rows(weights, 1, np.random.RandomState(i)) for i in range(runs)) / runs
    repeated = sum(0 in copies[draw_rows(np.ones(22), 1, np.random.RandomState(i))] for i in range(runs)) / runs
    assert drawn == pytest.approx(3 / 22, abs=0.02)
    assert repeated == pytest.approx(3 / 22, abs=0.02)
    assert set(draw_rows(np.array([1e-300, 1.0, 1.0]), 2, seed())) == {1, 2}
