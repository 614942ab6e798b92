"""Kernel blocks against scikit-learn and plain double loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC

from toprank.matrices import kernel as module
from toprank.matrices import threads
from toprank.matrices.kernel import Kernel

REFERENCE = {
    "linear": lambda A, B, g, d, c: linear_kernel(A, B),
    "poly": lambda A, B, g, d, c: polynomial_kernel(A, B, degree=d, gamma=g, coef0=c),
    "rbf": lambda A, B, g, d, c: rbf_kernel(A, B, gamma=g),
    "sigmoid": lambda A, B, g, d, c: sigmoid_kernel(A, B, gamma=g, coef0=c),
}
every_name = pytest.mark.parametrize("name", REFERENCE)


def dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


@every_name
@pytest.mark.parametrize(("m", "n"), [(1, 50), (50, 1), (7, 50), (50, 7), (40, 40)])
def test_blocks_agree_with_scikit_learn(name, m, n, stored, rng):
    A, B = stored(rng.standard_normal((m, 6))), stored(rng.standard_normal((n, 6)))
    kernel = Kernel.resolve(name, B, 0.3, 3, 0.5)
    block = kernel.block(A, B)
    assert block.dtype == A.dtype
    expected = REFERENCE[name](dense(A), dense(B), 0.3, 3, 0.5)
    np.testing.assert_allclose(block, expected, atol=(3e-6 if A.dtype == np.float32 else 1e-13) * abs(expected).max())


@every_name
def test_diagonal_is_that_of_the_block(name, stored, rng):
    A = stored(rng.standard_normal((20, 4)))
    kernel = Kernel.resolve(name, A, "auto", 2, 1.0)
    assert kernel.diagonal(A).dtype == A.dtype
    np.testing.assert_allclose(kernel.diagonal(A), kernel.block(A, A).diagonal(), rtol=1e-5)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5, 17])
def test_whole_powers(degree, rng):
    A = rng.standard_normal((9, 3))
    np.testing.assert_allclose(
        Kernel.resolve("poly", A, 0.7, degree, 0.2).block(A, A), (0.7 * A @ A.T + 0.2) ** degree, rtol=1e-12
    )


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 30.0])
def test_single_precision_keeps_its_digits(offset, gamma, rng):
    """Near and far pairs, rows far from the origin, and a γ for which the product must be done in double precision."""
    X = rng.standard_normal((200, 20)) + offset
    X[100:] = X[:100] + 0.01 * rng.standard_normal((100, 20))
    X = X.astype(np.float32)
    exact = np.exp(-gamma * ((X[:, None].astype(float) - X[None].astype(float)) ** 2).sum(axis=2))
    kernel = Kernel.resolve("rbf", X, gamma)
    single, double = kernel.block(X, X), kernel.block(X.astype(np.float64), X.astype(np.float64))
    assert single.dtype == np.float32
    assert abs(single - exact).max() < 3e-6
    assert abs(double - exact).max() < 1e-13 * (1 + 20 * gamma)
    assert single.max() <= 1.0


def test_single_precision_of_sparse_rows(rng):
    X = (rng.standard_normal((80, 30)) * (rng.random((80, 30)) < 0.3)).astype(np.float32)
    X[40:] = X[:40] * np.float32(1.001)
    exact = np.exp(-5.0 * ((X[:, None].astype(float) - X[None].astype(float)) ** 2).sum(axis=2))
    assert abs(Kernel.resolve("rbf", X, 5.0).block(csr_array(X), csr_array(X)) - exact).max() < 1e-6


@every_name
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_any_number_of_cores_gives_the_same_bits(name, storage, monkeypatch, rng):
    monkeypatch.setattr(module, "_TILE_ENTRIES", 512)
    X = storage(rng.standard_normal((300, 5)))
    kernel = Kernel.resolve(name, X)
    blocks = []
    for n_cores in (1, 4):
        monkeypatch.setattr(threads, "n_cores", lambda n_cores=n_cores: n_cores)
        blocks.append((kernel.block(X[:37], X), kernel.block(X, X[:37])))
    np.testing.assert_array_equal(blocks[0][0], blocks[1][0])
    np.testing.assert_array_equal(blocks[0][1], blocks[1][1])
    np.testing.assert_allclose(blocks[0][0], blocks[0][1].T, rtol=1e-10, atol=1e-14)
    one_tile = kernel.between(kernel.prepare(X[:37]), kernel.prepare(X), parallel=False) if name != "rbf" else None
    if one_tile is not None:
        np.testing.assert_array_equal(one_tile, blocks[0][0])


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.25])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_gamma_is_that_of_scikit_learn(gamma, storage, rng):
    X = 3 * rng.standard_normal((60, 5)) * (rng.random((60, 5)) < 0.6) + 1.0 * (storage is np.asarray)
    y = np.arange(60) % 2
    X = storage(X)
    assert Kernel.resolve("rbf", X, gamma).gamma == pytest.approx(SVC(gamma=gamma).fit(X, y)._gamma, rel=1e-12)
    assert Kernel.resolve("rbf", storage(np.ones((4, 2))), "scale").gamma == 1.0  # no variance


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gamma_takes_a_weight_for_a_repeated_row(storage, dtype, rng):
    X = (3 * rng.standard_normal((60, 5)) * (rng.random((60, 5)) < 0.6) + 100 * (storage is np.asarray)).astype(dtype)
    times = rng.integers(1, 9, 60)
    repeated = np.repeat(X.astype(np.float64), times, axis=0)
    kernel = Kernel.resolve("rbf", storage(X), "scale", weights=times / 7)
    assert kernel.gamma == pytest.approx(1 / (5 * repeated.var()), rel=1e-9)


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1])
def test_rounding_is_no_variance(value):
    for dtype in (np.float32, np.float64):
        assert Kernel.resolve("rbf", np.full((61, 3), value, dtype), "scale").gamma == 1.0


def distances(A, B):
    """Squared distances from differences, in extended precision."""
    A, B = (dense(X).astype(np.longdouble) for X in (A, B))
    return ((A[:, None] - B) ** 2).sum(axis=-1)


@pytest.mark.parametrize("width", [1.0, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("spread", [1e-3, 1e8])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_a_gaussian_of_rows_far_apart_keeps_its_digits(width, spread, share, stored, rng):
    """Clusters of a given width as a part of their distances, dense rows and rows of many zeros."""
    centres = rng.standard_normal((30, 6)) * (rng.random((30, 6)) < share)
    X = centres[np.arange(90) % 30]
    X[30:] += width * rng.standard_normal((60, 6)) * (X[30:] != 0)
    X = stored(spread * X)
    A, B, gamma = X[:50], X[20:], 0.1 / (width * spread) ** 2
    squared = distances(A, B)
    block = Kernel.resolve("rbf", B, gamma).block(A, B)
    np.testing.assert_allclose(block, np.exp(-gamma * squared).astype(float), atol=2e-6 if X.dtype == "f" else 2e-12)
    if width < 1e-2:
        assert np.all(block[np.asarray(squared == 0)] == 1.0)


@given(
    st.lists(st.lists(st.floats(-1e3, 1e3, width=32), min_size=3, max_size=3), min_size=1, max_size=6),
    st.floats(1e-6, 1e3),
)
@settings(max_examples=60)
def test_a_gaussian_block_is_a_correlation_matrix(rows, gamma):
    X = np.array(rows)
    K = Kernel.resolve("rbf", X, gamma).block(X, X)
    assert np.all((K >= 0) & (K <= 1))
    np.testing.assert_allclose(K.diagonal(), 1.0, atol=1e-15 * gamma * (1 + (X**2).sum(axis=1).max()) * 20)


def test_callables_and_precomputed_blocks(rng):
    A, B = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))

    def minimum(P, Q):
        return np.minimum(P[:, None], Q[None]).sum(axis=2)

    kernel = Kernel.resolve(minimum, B)
    np.testing.assert_array_equal(kernel.block(A, B), minimum(A, B))
    np.testing.assert_allclose(kernel.diagonal(A), A.sum(axis=1))
    assert kernel.block(A.astype(np.float32), B.astype(np.float32)).dtype == np.float32
    K = rng.standard_normal((3, 3))
    precomputed = Kernel.resolve("precomputed", K)
    assert precomputed.block(K, None) is K
    np.testing.assert_array_equal(precomputed.diagonal(K), K.diagonal())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda A, B: np.ones((2, 2)), r"shape \(2, 2\) for 4 and 4 rows.*shape \(4, 4\)"),
        (lambda A, B: np.ones(4), r"shape \(4,\)"),
        (lambda A, B: np.full((4, 4), np.nan), "not finite numbers"),
        (lambda A, B: np.full((4, 4), "a"), "not finite numbers"),
    ],
)
def test_a_wrong_kernel_function_is_refused(function, message):
    X = np.ones((4, 2))
    with pytest.raises(ValueError, match=message):
        Kernel.resolve(function, X).block(X, X)


def test_a_kernel_function_too_large_for_single_precision_is_refused():
    X = np.ones((4, 2), np.float32)
    kernel = Kernel.resolve(lambda A, B: np.full((len(A), len(B)), 1e50), X)
    for compute in (lambda: kernel.block(X, X), lambda: kernel.diagonal(X)):
        with pytest.raises(ValueError, match="not finite numbers; check it on these rows of float32"):
            compute()
    assert kernel.block(X.astype(float), X.astype(float)).max() == 1e50


@pytest.mark.parametrize(("dtype", "degree"), [(np.float32, 8), (np.float64, 30)])
@pytest.mark.parametrize("storage", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_a_polynomial_that_overflows_is_refused(dtype, degree, storage):
    X = storage(1e6 * np.eye(3, dtype=dtype))
    kernel = Kernel.resolve("poly", X, gamma=1.0, degree=degree)
    message = f"values of up to inf on these rows.*scale the features, or lower gamma=1 or degree={degree}"
    for compute in (lambda: kernel.block(X, X), lambda: kernel.diagonal(X)):
        with pytest.raises(ValueError, match=message):
            compute()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "gauss"}, "callable or one of 'linear'.*'gauss'"),
        ({"gamma": "big"}, "gamma must be 'scale', 'auto' or a finite number >= 0, got 'big'"),
        ({"gamma": -1.0}, "got -1.0"),
        ({"gamma": np.nan}, "got nan"),
        ({"gamma": True}, "got True"),
        ({"gamma": None}, "got None"),
        ({"degree": -1}, "degree .* got -1"),
        ({"degree": 2.5}, "degree=2.5 takes roots of negative numbers; use a whole number"),
        ({"coef0": np.inf}, "coef0 .* got inf"),
    ],
)
def test_wrong_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Kernel.resolve(**{"kernel": "poly", "X": np.ones((3, 2)), **arguments})


@every_name
def test_dense_with_sparse_rows_is_refused(name):
    A, B = np.ones((2, 2)), csr_array(np.ones((2, 2)))
    for left, right in ((A, B), (B, A)):
        with pytest.raises(ValueError, match="both sides dense or both sparse"):
            Kernel.resolve(name, right).block(left, right)


@every_name
def test_mixed_types_integers_and_entries_stored_in_two_parts(name, rng):
    A = rng.integers(-3, 4, (12, 4))
    kernel = Kernel.resolve(name, A, 0.1)
    expected = kernel.block(A.astype(float), A.astype(float))
    np.testing.assert_allclose(kernel.block(A, A.astype(np.float32)), expected, rtol=1e-12)
    parts = csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 4))
    whole = csr_array(parts.toarray())
    np.testing.assert_allclose(
        kernel.block(parts, csr_array(1.0 * A)), kernel.block(whole, csr_array(1.0 * A)), rtol=1e-12
    )
    np.testing.assert_allclose(kernel.diagonal(parts), kernel.diagonal(whole), rtol=1e-12)
    assert Kernel.resolve("rbf", parts).gamma == pytest.approx(Kernel.resolve("rbf", whole).gamma)
