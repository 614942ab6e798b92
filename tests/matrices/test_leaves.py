"""The matrix of leaves against the same matrix in CSR: products to the bit, the rest to rounding, and fits on it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression

from exact import optimum
from toprank import GrillNP, PatMat, PatMatNP, TauFPL, TopPush
from toprank.matrices import leaves as module
from toprank.matrices.dense_or_sparse import matvec, products_of_rows, sandwich, transpose_matvec, weighted_squares
from toprank.matrices.leaves import LeafMatrix
from toprank.matrices.operand import squared_norms
from toprank.matrices.row_products import RowProducts
from toprank.solvers.newton_system import newton_system
from toprank.solvers.problem import Recorder


def random_leaves(rng, n=40, n_leaves=(3, 1, 5, 2), share=None, n_extra=0):
    """Leaf numbers at random; `share` of the trees counts for a row."""
    numbers = np.array([rng.integers(0, count, n) for count in n_leaves], dtype=int).T.reshape(n, len(n_leaves))
    used = None if share is None else rng.random(numbers.shape) < share
    return LeafMatrix.of(numbers, n_leaves, used).with_extra(rng.standard_normal((n, n_extra)))


@pytest.fixture(params=[(None, 0), (0.4, 0), (None, 2), (0.4, 2)], ids=["all", "masked", "extra", "masked extra"])
def matrix(request, rng):
    share, n_extra = request.param
    return random_leaves(rng, share=share, n_extra=n_extra)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(0, 37),
    n_leaves=st.lists(st.integers(1, 300), min_size=1, max_size=20),
    share=st.sampled_from([None, 0.0, 0.3, 1.0]),
    n_extra=st.integers(0, 3),
)
def test_products_are_those_of_csr_to_the_bit(seed, n, n_leaves, share, n_extra):
    rng = np.random.default_rng(seed)
    X = random_leaves(rng, n, n_leaves, share, n_extra)
    csr = X.tocsr()
    assert (X.shape, X.nnz) == (csr.shape, csr.nnz)
    assert csr.has_sorted_indices
    w = rng.standard_normal(X.shape[1]) * 10.0 ** rng.integers(-8, 8, X.shape[1])
    r = rng.standard_normal(n) * 10.0 ** rng.integers(-8, 8, n) * (rng.random(n) < 0.8)
    np.testing.assert_array_equal(X @ w, csr @ w)
    np.testing.assert_array_equal(matvec(X, w), csr @ w)
    np.testing.assert_array_equal(X.T @ r, csr.T @ r)
    np.testing.assert_array_equal(transpose_matvec(X, r), csr.T @ r)


def test_the_bits_do_not_depend_on_the_blocks(rng, monkeypatch):
    X = random_leaves(rng, 500, [7] * 50, 0.4, 1)
    w, r = rng.standard_normal(X.shape[1]), rng.standard_normal(500)
    expected = X @ w, X.T @ r
    monkeypatch.setattr(module, "_ENTRIES_OF_A_PART", 300)
    monkeypatch.setattr(module, "_COLUMNS_OF_A_PART", 20)
    for found, before in zip((X @ w, X.T @ r), expected, strict=True):
        np.testing.assert_array_equal(found, before)


def test_entries(rng):
    X = LeafMatrix.of(np.array([[0, 1], [2, 0]]), [3, 2], np.array([[True, True], [False, True]]))
    root = np.sqrt(0.5)
    np.testing.assert_allclose(X.tocsr().toarray(), [[root, 0, 0, 0, root], [0, 0, 0, 2 * root, 0]])
    assert LeafMatrix.of(np.array([[0, 1], [2, 0]]), [3, 2]).leaves.dtype == np.uint8


def test_a_row_has_norm_one_and_products_are_shares_of_meetings(rng):
    X = random_leaves(rng, 30, [4] * 25)
    np.testing.assert_allclose(X.squared_norms(), 1.0)
    meetings = (X.leaves[:, None, :] == X.leaves[None, :, :]).mean(axis=2)
    np.testing.assert_allclose(products_of_rows(X), meetings, atol=1e-12)


@pytest.mark.parametrize("n_leaves", [255, 256, 257, 65536, 65537])
def test_numbers_are_as_small_as_they_can_be(n_leaves, rng):
    numbers = np.array([[0, n_leaves - 1], [n_leaves - 1, 0]])
    whole = LeafMatrix.of(numbers, [n_leaves, n_leaves])
    X = LeafMatrix.of(numbers, [n_leaves, n_leaves], np.array([[True, False], [True, True]]))
    assert whole.leaves.dtype == (np.uint8 if n_leaves <= 256 else np.uint16 if n_leaves <= 65536 else np.uint32)
    csr, w = X.tocsr(), rng.standard_normal(X.shape[1])
    np.testing.assert_array_equal(X @ w, csr @ w)
    np.testing.assert_allclose(products_of_rows(X), (csr @ csr.T).toarray())


def test_the_other_operations(matrix, rng, monkeypatch):
    X = matrix
    monkeypatch.setattr(module, "_PRODUCTS_OF_A_PART", 100)
    dense = X.tocsr().toarray()
    weights = np.where(rng.random(len(X)) < 0.3, 0.0, rng.random(len(X)))
    centre = rng.standard_normal(X.shape[1])
    np.testing.assert_allclose(np.tril(sandwich(X, weights)), np.tril((dense.T * weights) @ dense), atol=1e-12)
    centred = dense - centre
    np.testing.assert_allclose(
        np.tril(sandwich(X, weights, centre)), np.tril((centred.T * weights) @ centred), atol=1e-10
    )
    np.testing.assert_allclose(weighted_squares(X, weights), (dense**2).T @ weights, atol=1e-12)
    np.testing.assert_allclose(squared_norms(X), (dense**2).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(abs(X).tocsr().toarray(), np.abs(dense))
    a, b = np.array([3, 0, 7]), np.array([7, 7, 1, 2])
    np.testing.assert_allclose(X.products_between(a, b), dense[a] @ dense[b].T, atol=1e-12)
    np.testing.assert_allclose(products_of_rows(X), dense @ dense.T, atol=1e-12)
    products = RowProducts(X)
    np.testing.assert_allclose(products.between(a, b), dense[a] @ dense[b].T, atol=1e-12)
    np.testing.assert_allclose(products.diagonal, (dense**2).sum(axis=1), atol=1e-12)
    for rows in (slice(3, 20, 2), b, rng.random(len(X)) < 0.5, np.zeros(0, np.intp)):
        np.testing.assert_array_equal(X[rows].tocsr().toarray(), dense[rows])
    for scale in (np.full(X.shape[1], 0.3), rng.random(X.shape[1])):
        scaled = X.scaled_columns(scale)
        scaled = scaled if issparse(scaled) else scaled.tocsr()
        np.testing.assert_allclose(scaled.toarray(), dense * scale, atol=1e-15)


@pytest.mark.parametrize("explicit", [0, 35, 2000])
def test_newton_systems_are_solved_in_every_space(matrix, rng, explicit, monkeypatch):
    X = matrix
    monkeypatch.setattr("toprank.solvers.newton_system.EXPLICIT", explicit)
    weights, d = np.where(rng.random(len(X)) < 0.3, 0.0, rng.random(len(X))), X.shape[1]
    centre, right, ridge = rng.standard_normal(d), rng.standard_normal(d), np.full(d, 0.3)
    centred = X.tocsr().toarray() - centre
    expected = np.linalg.solve(np.diag(ridge) + (centred.T * weights) @ centred, right)
    found = newton_system(X, weights, centre, ridge, Recorder(0), 1e-12)(right)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def labelled_leaves(rng, share=None, n_extra=1):
    """Rows whose leaves say something about the label."""
    y = (rng.random(400) < 0.3).astype(int)
    numbers = np.minimum(rng.integers(0, 6, (400, 12)) + y[:, None] * rng.integers(0, 2, (400, 12)), 5)
    used = None if share is None else rng.random(numbers.shape) < share
    return LeafMatrix.of(numbers, [6] * 12, used).with_extra(y[:, None] + rng.standard_normal((400, n_extra))), y


@pytest.mark.covering(1)
@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize(
    "model",
    [
        PatMatNP(tau=0.1),
        PatMatNP(tau=0.1, surrogate="hinge"),
        PatMat(tau=0.1, surrogate="exponential", beta=0.5, alpha=1.0),
        TauFPL(tau=0.1),
        TauFPL(tau=0.1, solver="pairs"),
        TauFPL(tau=0.1, solver="apg", max_iter=20),
        TopPush(surrogate="hinge"),
        PatMatNP(tau=0.1, solver="sgd", random_state=0, max_iter=30, threshold="trained"),
        GrillNP(tau=0.1, random_state=0, max_iter=3, threshold="trained"),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_solver_fits_leaves_as_it_fits_csr(model, share):
    X, y = labelled_leaves(np.random.default_rng(0), share)
    on_csr = model.fit(X.tocsr(), y).decision_function(X.tocsr())
    objective = model.objective_
    on_leaves = model.fit(X, y).decision_function(X)
    np.testing.assert_allclose(model.objective_, objective, rtol=2 * model.tol)
    if model.max_iter is None:
        assert model.dual_gap_ <= model.tol
    assert np.corrcoef(on_leaves, on_csr)[0, 1] > 0.99
    assert model.n_features_in_ == X.shape[1]


def test_wide_leaves_go_the_ways_of_wide_sparse_data(rng):
    n, n_trees = 2500, 40
    y = (rng.random(n) < 0.2).astype(int)
    numbers = np.minimum(rng.integers(0, 100, (n, n_trees)) + 20 * y[:, None], 99)
    X = LeafMatrix.of(numbers, [100] * n_trees)
    for model in (TauFPL(tau=0.05), PatMatNP(tau=0.05)):
        assert model.fit(X, y).dual_gap_ <= model.tol
        objective = model.objective_
        assert model.fit(X.tocsr(), y).objective_ == pytest.approx(objective, rel=2e-4)


@pytest.mark.parametrize("share", [None, 0.5])
def test_the_optimum_is_that_of_an_exact_solver(share):
    X, y = labelled_leaves(np.random.default_rng(0), share)
    X, y = X[:80], y[:80]
    dense, weights = X.tocsr().toarray(), np.ones(80)
    model = PatMatNP(tau=0.1, alpha=0.1, tol=1e-7).fit(X, y)
    expected = optimum(dense, y == 1, weights, 0.1, "quadratic", tau=0.1, beta=0.1)
    assert model.objective_ == pytest.approx(expected, rel=1e-5)
    model = TauFPL(tau=0.1, alpha=0.1, tol=1e-7).fit(X, y)
    assert model.objective_ == pytest.approx(optimum(dense, y == 1, weights, 0.1, "quadratic", share=0.1), rel=1e-5)


def test_weights_of_zero_remove_rows(rng):
    X, y = labelled_leaves(rng)
    weights = (rng.random(400) < 0.7).astype(float)
    kept = weights > 0
    whole = PatMatNP(tau=0.1).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(whole.coef_, PatMatNP(tau=0.1).fit(X[kept], y[kept]).coef_)


def test_who_cannot_read_leaves_says_so(rng):
    X, y = labelled_leaves(rng)
    with pytest.raises(TypeError, match="output='csr'"):
        LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="LeafMatrix is for linear models"):
        TauFPL(kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="LeafMatrix is for linear models"):
        TauFPL(solver="dual-cd").fit(X, y)
    model = TauFPL().fit(X, y)
    with pytest.raises(ValueError, match="73 features"):
        model.decision_function(replace(X, extra=X.extra[:, :0]))
    with pytest.raises(ValueError, match="inconsistent"):
        TauFPL().fit(X, y[:-1])


def test_memory_is_less_than_half_of_csr(rng):
    X = random_leaves(rng, 1000, [60] * 100, 0.37)
    csr = X.tocsr()
    assert X.nbytes <= 0.5 * (csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes)
