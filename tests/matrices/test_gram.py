"""The kernel matrix on demand against the dense matrix, in caches of every size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from toprank.matrices import gram as module
from toprank.matrices import threads
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel

N = 90
ROW = N * 8 / 2**20  # megabytes of a row in float64
SIZES = {"nothing": 1e-9, "five rows": 5 * ROW, "fifty rows": 50 * ROW, "all": 2 * N * ROW}


def product_of_sines(A, B):
    return np.cos(A[:, None] - B[None]).sum(axis=2)


def make(size, kernel="rbf", storage=np.asarray, seed=0):
    X = storage(np.random.default_rng(seed).standard_normal((N, 4)))
    kernel = Kernel.resolve(kernel, X)
    return Gram(kernel, X, SIZES[size]), kernel.block(X, X)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid", product_of_sines])
def test_everything_agrees_with_the_dense_matrix(size, kernel, rng, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_ROWS", 16)
    monkeypatch.setattr(module, "_TILE_COLUMNS", 32)
    gram, K = make(size, kernel)
    assert (gram.n, gram.dtype) == (N, np.float64)
    np.testing.assert_allclose(gram.diagonal, K.diagonal(), atol=1e-12)
    for share in (0.0, 0.05, 0.3, 1.0, 0.1):
        indices = rng.integers(N, size=rng.integers(1, N))
        np.testing.assert_allclose(gram.rows(indices), K[indices], atol=1e-11)
        i, j = rng.integers(N, size=2)
        row_i, row_j = gram.row(i), gram.row(j)
        np.testing.assert_allclose(row_i, K[i], atol=1e-11)
        np.testing.assert_allclose(row_j, K[j], atol=1e-11)
        np.testing.assert_allclose(gram.between(indices[:5], [j]), K[np.ix_(indices[:5], [j])], atol=1e-11)
        c = rng.standard_normal(N) * (rng.random(N) < share)
        np.testing.assert_allclose(gram.product(c), K @ c, atol=1e-9)
        np.testing.assert_allclose(gram.quadratic(c), c @ K @ c, atol=1e-9)
    np.testing.assert_allclose(gram.products(c, c[::-1]), [K @ c, K @ c[::-1]], atol=1e-9)
    full = gram.full
    if size == "all":
        np.testing.assert_allclose(full, K, atol=1e-11)
    else:
        assert full is None


@given(st.lists(st.lists(st.integers(0, N - 1), min_size=1, max_size=8), min_size=1, max_size=12))
@settings(max_examples=40)
def test_any_sequence_of_requests(requests):
    gram, K = make("five rows")
    for indices in requests:
        np.testing.assert_allclose(gram.rows(indices), K[indices], atol=1e-12)
        np.testing.assert_allclose(gram.row(indices[0]), K[indices[0]], atol=1e-12)
    assert gram._cache.nbytes <= SIZES["five rows"] * 2**20


def test_the_whole_matrix_is_symmetric_and_computed_by_halves(stored):
    X = stored(np.random.default_rng(0).standard_normal((300, 5)))
    gram = Gram(Kernel.resolve("rbf", X), X, 10)
    full = gram.full
    assert full.dtype == X.dtype
    np.testing.assert_array_equal(full, full.T)
    np.testing.assert_array_equal(full.diagonal(), 1.0)
    np.testing.assert_allclose(full, gram.kernel.block(X, X), atol=1e-6 if X.dtype == np.float32 else 1e-14)
    assert gram.evaluations <= 300 * 301 / 2
    c = np.random.default_rng(1).standard_normal(300)
    assert gram.product(c).dtype == np.float64
    np.testing.assert_allclose(gram.product(c), full.astype(float) @ c, atol=1e-4 if X.dtype == np.float32 else 1e-12)


def test_the_least_recently_used_row_makes_room():
    gram, _ = make("five rows")
    gram.rows([0, 1, 2, 3, 4])
    gram.row(0)
    assert gram.evaluations == 5 * N
    gram.row(5)  # in place of 1, 2, 3 or 4, which were asked for together
    gram.rows([0, 5])
    assert gram.evaluations == 6 * N
    gram.rows([1, 2, 3, 4])
    assert gram.evaluations == 7 * N
    gram.rows([6, 7, 8])
    gram.rows([1, 2])  # of the four rows two were kept at most
    assert gram.evaluations <= 12 * N


def test_a_product_fills_free_slots_only():
    gram, K = make("fifty rows")
    c = np.zeros(N)
    c[:40] = 1.0
    np.testing.assert_allclose(gram.product(c), K @ c, atol=1e-12)
    np.testing.assert_allclose(gram.product(c), K @ c, atol=1e-12)
    assert gram.evaluations == 40 * N
    c[:] = 1.0
    gram.product(c)
    assert gram.evaluations == 90 * N  # 40 from the cache, 50 computed and not kept
    gram.rows(np.arange(40))
    assert gram.evaluations == 90 * N


def test_a_product_reads_no_memory_that_was_not_written(rng):
    """Rows in between that have no weight are read, too, as that needs no copy; they are in the first slots."""
    gram, K = make("all")
    gram._cache[:] = np.nan
    known = rng.permutation(N)[:60]
    gram.rows(known)
    asked, c = gram.evaluations, np.zeros(N)
    c[known[2::3]] = rng.standard_normal(20)  # with gaps
    c[known[:20]] = 1.0
    np.testing.assert_allclose(gram.product(c), K @ c, atol=1e-12)
    assert gram.evaluations == asked
    assert np.isnan(gram._cache[60:]).all()


@pytest.mark.parametrize("kernel", ["rbf", product_of_sines])
@pytest.mark.parametrize("n_known", [N - 1, N])
def test_rows_in_any_order_become_the_whole_matrix(n_known, kernel, rng):
    """A row that was given stays what it is while the next one is asked for, and values are computed once."""
    gram, K = make("all", kernel)
    previous, last = gram.row(0), 0
    for number in [*rng.permutation(np.arange(1, N))[: n_known - 1]]:
        row = gram.row(number)
        np.testing.assert_allclose(previous, K[last], atol=1e-12)
        previous, last = row, number
    c = rng.standard_normal(N)
    np.testing.assert_allclose(gram.product(c), K @ c, atol=1e-11)
    np.testing.assert_allclose(gram.full, K, atol=1e-12)
    np.testing.assert_allclose(gram.product(c), K @ c, atol=1e-11)
    assert gram.evaluations <= (N + 2) * N


@pytest.mark.parametrize("size", ["nothing", "all"])
@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_any_number_of_cores_gives_the_same_bits(size, storage, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_ROWS", 16)
    monkeypatch.setattr(module, "_TILE_COLUMNS", 32)
    c = np.random.default_rng(1).standard_normal(N)
    results = []
    for n_cores in (1, 4):
        monkeypatch.setattr(threads, "n_cores", lambda n_cores=n_cores: n_cores)
        gram, _ = make(size, storage=storage)
        results.append((gram.rows([3, 1, 70]), gram.product(c), gram.quadratic(c), gram.full))
    for first, second in zip(*results, strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_precomputed_matrix_is_used_as_it_is(rng):
    Z = rng.standard_normal((30, 3))
    K = Z @ Z.T
    gram = Gram(Kernel.resolve("precomputed", K), K, 1e-9)
    assert gram.full is K
    np.testing.assert_array_equal(gram.rows([3, 3, 7]), K[[3, 3, 7]])
    np.testing.assert_array_equal(gram.diagonal, K.diagonal())
    c = rng.standard_normal(30) * (rng.random(30) < 0.2)
    np.testing.assert_allclose(gram.product(c), K @ c, atol=1e-12)
    np.testing.assert_allclose(gram.quadratic(c), c @ K @ c, atol=1e-12)
    assert gram.evaluations == 0
    integers = Gram(Kernel.resolve("precomputed", K), np.eye(3, dtype=int), 1.0)
    assert integers.dtype == np.float64


def with_entry(value):
    K = np.eye(4)
    K[1, 3] = value
    return K


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((3, 2)), r"square matrix .* shape \(3, 2\)"),
        (with_entry(np.nan), "NaN or infinite"),
        (with_entry(np.inf), "NaN or infinite"),
        (with_entry(0.5), r"symmetric matrix, but the entries \(1, 3\) and \(3, 1\) differ by 5.0e-01"),
        (csr_array(np.eye(3)), "dense matrix; use K.toarray"),
    ],
)
def test_what_is_no_kernel_matrix_is_refused(K, message):
    with pytest.raises(ValueError, match=message):
        Gram(Kernel.resolve("precomputed", K), K, 1.0)


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, 1e19), (np.float64, 1e30)])
@pytest.mark.parametrize(
    ("kernel", "remedy"),
    [
        ("poly", "scale the features, or lower gamma=1 or degree=1"),
        ("linear", "scale the features"),
        ("precomputed", "divide the kernel by a constant"),
        (lambda A, B: A @ B.T, "divide the kernel by a constant"),
    ],
    ids=["poly", "linear", "precomputed", "callable"],
)
def test_values_too_large_to_compute_with_are_refused(kernel, remedy, dtype, largest):
    def gram(value):
        rows = np.eye(3, dtype=dtype) * dtype(value if kernel == "precomputed" else value**0.5)
        return Gram(Kernel.resolve(kernel, rows, gamma=1.0, degree=1), rows, 1.0)

    assert gram(0.9 * largest).full.max() == pytest.approx(0.9 * largest, rel=1e-6)
    with pytest.raises(ValueError, match=rf"values of up to \de\+{int(np.log10(largest))} on these rows.*{remedy}"):
        gram(3 * largest)


def test_rounding_does_not_make_a_matrix_asymmetric(rng):
    Z = rng.standard_normal((40, 30)).astype(np.float32)
    K = Z @ Z.T
    K[np.triu_indices(40, 1)] *= np.float32(1 + 1e-6)
    Gram(Kernel.resolve("precomputed", K), K, 1.0)


@pytest.mark.parametrize("size", [0, -1.0, float("nan")])
def test_a_cache_needs_a_size(size):
    with pytest.raises(ValueError, match="cache_size must be a positive number of megabytes, got"):
        Gram(Kernel.resolve("linear", np.eye(2)), np.eye(2), size)
