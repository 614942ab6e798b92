"""Products on blocks and compiled loops against plain NumPy; the same bits for any number of cores."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from toprank.datasets import make_imbalanced
from toprank.estimators.top import PatMatNP, TauFPL
from toprank.matrices import dense_or_sparse as matrix
from toprank.matrices import threads
from toprank.matrices.dense_or_sparse import Cholesky, matvec, sandwich, transpose_matvec, weighted_sum


def unsorted_with_duplicates(X):
    """The same matrix in CSR with every entry stored in two parts, in falling order of the columns."""
    columns = np.arange(X.shape[1])[::-1]
    indices = np.tile(np.concatenate([columns, columns]), len(X))
    data = np.hstack([0.25 * X[:, columns], 0.75 * X[:, columns]]).ravel()
    return csr_array((data, indices, np.arange(0, len(indices) + 1, 2 * X.shape[1])), shape=X.shape)


@pytest.fixture(params=[np.asarray, np.asfortranarray, csr_array, unsorted_with_duplicates])
def stored_matrix(request):
    return request.param


@pytest.mark.parametrize("block", [40, 10**6])
@pytest.mark.parametrize("compiled", [False, True])
def test_products(stored_matrix, block, compiled, rng, monkeypatch):
    monkeypatch.setattr(matrix, "_BLOCK_ENTRIES", block)
    if compiled:  # sparse sandwich products by the compiled loop, in as many parts as there may be
        monkeypatch.setattr(matrix, "_cheaper_dense", lambda X: False)
        monkeypatch.setattr(matrix, "_PAIRS_OF_A_PART", 1)
    X = rng.standard_normal((1000, 4))
    stored = stored_matrix(X)
    weights = np.where(rng.random(1000) < 0.3, 0.0, rng.random(1000))
    w, r, centre = rng.standard_normal(4), rng.standard_normal(1000), rng.standard_normal(4)
    np.testing.assert_allclose(matvec(stored, w), X @ w, atol=1e-12)
    np.testing.assert_allclose(transpose_matvec(stored, r), X.T @ r, atol=1e-10)
    for active in (weights, weights + 0.1):
        expected = (X.T * active) @ X
        np.testing.assert_allclose(np.tril(sandwich(stored, active)), np.tril(expected), atol=1e-10)
        centred = ((X - centre).T * active) @ (X - centre)
        np.testing.assert_allclose(np.tril(sandwich(stored, active, centre)), np.tril(centred), atol=1e-9)


@pytest.mark.parametrize("storage", [np.asarray, np.asfortranarray, csr_array])
@pytest.mark.parametrize("entries", [7, 10**6])
def test_products_of_single_precision_are_summed_in_double(storage, entries, rng, monkeypatch):
    monkeypatch.setattr(matrix, "_CONVERTED_ENTRIES", entries)
    X = (rng.standard_normal((1000, 4)) + 1e4).astype(np.float32)
    w, r = rng.standard_normal(4), rng.standard_normal(1000)
    r -= r.mean()  # so that the large part of the rows cancels
    stored, exact = storage(X), X.astype(np.float64)
    np.testing.assert_allclose(matvec(stored, w), exact @ w, rtol=1e-12)
    np.testing.assert_allclose(transpose_matvec(stored, r), exact.T @ r, atol=1e-8)


def test_the_bound_of_single_precision_rows_far_from_the_origin_is_one():
    rng = np.random.default_rng(1310)
    X = (rng.standard_normal((70, 1)) + 300).astype(np.float32)
    y = X[:, 0] > 300.5
    models = [
        PatMatNP(0.2, 1.0, alpha=1e-5, surrogate="logistic").fit(csr_array(rows), y) for rows in (X, X.astype(float))
    ]
    single, double = (model.objective_ for model in models)
    assert single == pytest.approx(double, rel=1e-5)
    assert models[0].dual_objective_ <= double * (1 + 1e-7)


def test_rows_of_weight_zero_only(monkeypatch):
    np.testing.assert_array_equal(sandwich(np.ones((5, 2)), np.zeros(5)), np.zeros((2, 2)))
    monkeypatch.setattr(matrix, "_cheaper_dense", lambda X: False)
    np.testing.assert_array_equal(sandwich(csr_array(np.ones((5, 2))), np.zeros(5)), np.zeros((2, 2)))


def test_what_is_made_dense():
    dense = matrix._cheaper_dense
    assert dense(csr_array((100, 1000)))  # few entries
    assert not dense(csr_array((101, 1000)))  # more, nearly all of them zeros
    assert dense(csr_array(np.ones((101, 1000))))
    assert not dense(csr_array(np.ones((2001, 1000))))  # not within a block


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.usefixtures("trained_thresholds")
def test_number_of_cores_does_not_change_a_bit(storage, monkeypatch):
    X, y, _ = make_imbalanced(4000, 20, separation=3.0, random_state=0)
    X = storage(X)
    monkeypatch.setattr(matrix, "_BLOCK_ENTRIES", 2000)
    monkeypatch.setattr(matrix, "_FEW_ENTRIES", 0)
    monkeypatch.setattr(matrix, "_PAIRS_OF_A_PART", 1e4)
    coefs = []
    for cores in (1, 2, 7):
        monkeypatch.setattr(threads, "n_cores", lambda cores=cores: cores)
        coefs.append([model.fit(X, y).coef_ for model in (TauFPL(), PatMatNP())])
    for other in coefs[1:]:
        for one, two in zip(coefs[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_cholesky_reads_the_lower_triangle_and_survives_singular_matrices(rng):
    A = rng.standard_normal((6, 6))
    H = A @ A.T * np.outer(10.0 ** np.arange(6), 10.0 ** np.arange(6))  # badly scaled
    right = rng.standard_normal(6)
    solution = Cholesky(np.tril(H)).solve(right)
    np.testing.assert_allclose(H @ solution, right, rtol=1e-5, atol=1e-5)
    several = rng.standard_normal((6, 3))
    np.testing.assert_allclose(H @ Cholesky(H).solve(several), several, rtol=1e-5, atol=1e-5)
    singular = np.ones((3, 3))
    assert np.isfinite(Cholesky(singular).solve(np.ones(3))).all()
    assert np.isfinite(Cholesky(np.zeros((2, 2))).solve(np.ones(2))).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_a_sum_of_rows_that_need_not_all_have_a_weight(share, dtype, rng):
    X, weights = rng.standard_normal((600, 7)).astype(dtype), rng.standard_normal(600)
    weights[rng.uniform(size=600) >= share] = 0.0
    weights[:256] = 0.0
    found = weighted_sum(X, weights)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, X.astype(float).T @ weights, atol=1e-12)
