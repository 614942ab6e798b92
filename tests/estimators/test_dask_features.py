"""Features in place of a kernel on Dask: the model of one memory with the same landmarks, whatever the blocks are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

import toprank
from deployment.running import run
from toprank.datasets import make_imbalanced
from toprank.exceptions import ApproximationWarning
from toprank.matrices import features
from toprank.matrices.kernel import Kernel
from toprank.persistence import load, save
from toprank.solvers import working_set_newton as newton

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

N, D = 400, 25
# Uneven blocks, one of them empty; of rows ordered by class all but one have one class only.
LENGTHS = (7, 250, 0, 143)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def same_landmarks(monkeypatch):
    """Each fit takes evenly spread rows; the number of rows is that of those with a weight."""
    monkeypatch.setattr(features, "draw_rows", lambda weights, size, _: np.arange(size) * len(weights) // size)


def rows(n=N, seed=0):
    X, y, _ = make_imbalanced(n, 4, positive_share=0.2, separation=4.0, random_state=seed)
    order = np.argsort(y, kind="stable")
    return np.where(np.abs(X) > 0.3, X, 0.0)[order], y[order]


def in_blocks(X, y, lengths=LENGTHS, weights=None, sparse=False):
    blocks = da.from_array(X, chunks=(tuple(lengths), X.shape[1]))
    blocks = blocks.map_blocks(csr_array) if sparse else blocks
    columns = [None if column is None else da.from_array(column, chunks=(tuple(lengths),)) for column in (y, weights)]
    return blocks, *columns


def by_features(name="TauFPL", approximation="nystroem", **parameters):
    common = {"kernel": "rbf", "n_components": D, "random_state": 0, "alpha": 0.01, "tol": 1e-8}
    model = getattr(toprank, name)(approximation=approximation, **common | parameters)
    return model.set_params(threshold="trained") if "threshold" in model.get_params() else model


FAMILY = [
    ("TopPushK", {"k": 12, "approximation": "fourier"}, False),
    ("TauFPL", {"tau": 0.1}, False),
    ("TopMeanK", {"tau": 0.4, "kernel": "poly", "coef0": 1.0}, True),
    ("PatMatNP", {"tau": 0.1}, True),
    pytest.param("TopPush", {}, True, marks=pytest.mark.slow),
    pytest.param("TauFPL", {"tau": 0.1, "approximation": "fourier"}, True, marks=pytest.mark.slow),
    pytest.param("PatMat", {"tau": 0.1, "approximation": "fourier"}, False, marks=pytest.mark.slow),
]
EACH = ["nystroem", pytest.param("fourier", marks=pytest.mark.slow)]


@pytest.mark.usefixtures("same_landmarks")
@pytest.mark.parametrize(("name", "parameters", "sparse"), FAMILY)
def test_the_model_of_one_memory(name, parameters, sparse, monkeypatch):
    monkeypatch.setattr(newton, "_SMALL_PART", 40)
    monkeypatch.setattr(newton, "_ALL_ROWS", 50)
    X, y = rows()
    weights = np.random.default_rng(0).integers(0, 4, N).astype(float)
    model = by_features(name, **parameters)
    expected = clone(model).fit(csr_array(X) if sparse else X, y, weights)
    dX, dy, dw = in_blocks(X, y, weights=weights, sparse=sparse)
    found = model.fit(dX, dy, sample_weight=dw)
    assert found.dual_gap_ <= 1e-8
    assert np.abs(found.coef_ - expected.coef_).max() <= 1e-5 * np.abs(expected.coef_).max()
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-8)
    scores = expected.decision_function(X)
    lazy = found.decision_function(dX)
    assert isinstance(lazy, da.Array)
    assert np.abs(lazy.compute() - scores).max() <= 1e-5 * np.abs(scores).max()
    assert found.predict(dX).compute().tolist() == found.predict(X).tolist()
    assert set(vars(found)) == set(vars(expected))


@pytest.mark.parametrize("approximation", EACH)
def test_the_partition_does_not_matter(approximation):
    X, y = rows(150)
    weights = np.random.default_rng(1).integers(0, 4, 150).astype(float)
    model = by_features(tau=0.1, approximation=approximation)
    expected = clone(model).fit(*in_blocks(X, y, (150,), weights))

    @settings(max_examples=3, deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, 150), min_size=1, max_size=5), st.sampled_from([0.001, 0.02, 500]))
    def check(ends, cache_size):
        blocks = in_blocks(X, y, np.diff([0, *sorted(ends), 150]).tolist(), weights)
        found = clone(model).set_params(cache_size=cache_size).fit(*blocks)
        scores = expected.decision_function(X)
        assert found.decision_function(X) == pytest.approx(scores, abs=1e-6 * np.abs(scores).max())
        if approximation == "nystroem":
            assert found.feature_map_.components.tolist() == expected.feature_map_.components.tolist()

    check()


def test_features_are_kept_as_far_as_the_cache_goes(monkeypatch):
    X, y = rows(200)
    dX, dy, _ = in_blocks(X, y, (50, 50, 100))
    calls, mapped = [], features.NystroemFeatures.__call__

    def counted(feature_map, block):
        calls.append(block.shape[0])
        return mapped(feature_map, block)

    monkeypatch.setattr(features.NystroemFeatures, "__call__", counted)
    megabyte_a_row = D * 8 / 2**20
    for n_kept, cache_size in ((3, 200), (2, 199), (0, 49)):
        calls.clear()
        by_features(tau=0.1, cache_size=cache_size * megabyte_a_row).fit(dX, dy)
        assert calls.count(50) >= 2
        assert (calls.count(100) == 1) == (n_kept == 3)
        assert (calls.count(50) == 2) == (n_kept >= 2)


@pytest.mark.parametrize("approximation", EACH)
def test_single_precision_stays(approximation):
    X, y = rows()
    dX, dy, _ = in_blocks(X.astype(np.float32), y)
    found = by_features(tau=0.1, approximation=approximation, tol=1e-6).fit(dX, dy)
    assert found.coef_.dtype == found.decision_function(dX).compute().dtype == np.float32
    expected = by_features(tau=0.1, approximation=approximation, tol=1e-6).fit(*in_blocks(X, y)[:2])
    scores = expected.decision_function(X)
    assert found.decision_function(X) == pytest.approx(scores, abs=1e-3 * np.abs(scores).max())


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_it_is_saved_and_exported(approximation, tmp_path):
    X, y = rows(200)
    model = by_features(approximation=approximation, tau=0.1, tol=1e-4).fit(*in_blocks(X, y, (60, 140))[:2])
    save(model, tmp_path / "model.toprank")
    scores = model.decision_function(X)
    np.testing.assert_array_equal(load(tmp_path / "model.toprank").decision_function(X), scores)
    assert run(model, X)[0] == pytest.approx(scores, abs=1e-9 * np.abs(scores).max())


def test_gamma_is_that_of_all_blocks(rng):
    X = 3.0 + 5.0 * rng.standard_normal((90, 3)) * (rng.random((90, 3)) < 0.5)
    weights, lengths = rng.integers(1, 4, 90).astype(float), (20, 0, 1, 69)
    for sparse in (False, True):
        dX, dw, _ = in_blocks(X, weights, lengths, sparse=sparse)
        labelled = toprank.estimators._blocks.labelled_blocks(toprank.TauFPL(), dX, rng.random(90) < 0.5, dw)
        found = Kernel.resolve("rbf", labelled.X, weights=labelled.weights).gamma
        variance = np.cov(X.ravel(), fweights=np.repeat(weights, 3).astype(int), ddof=0)
        assert found == pytest.approx(1 / (3 * variance), rel=1e-12)


def test_auto_takes_features_and_says_so():
    X, y = rows(200)
    dX, dy, _ = in_blocks(X, y, (60, 140))
    with pytest.warns(ApproximationWarning, match="of rows of Dask has no exact form.* 25 Nyström features") as caught:
        found = by_features(tau=0.1, approximation="auto").fit(dX, dy)
    assert caught[0].filename == __file__
    asked = by_features(tau=0.1).fit(dX, dy)
    np.testing.assert_array_equal(found.coef_, asked.coef_)
    linear = by_features(tau=0.1, approximation="auto", kernel="linear").fit(dX, dy)
    assert linear.coef_.shape == (1, 4)
    assert by_features(tau=0.1, kernel="linear").fit(dX, dy).feature_map_.shape[0] == 4


def distances(A, B):
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))


def test_a_kernel_of_the_user_and_fewer_rows_than_components():
    X, y = rows(40)
    weights = np.where(np.arange(40) % 4 == 0, 0.0, 1.0)
    model = by_features(tau=0.2, kernel=distances, n_components=50)
    found = clone(model).fit(*in_blocks(X, y, (15, 25), weights))
    assert found.feature_map_.components.tolist() == X[weights > 0].tolist()
    scores = clone(model).fit(X, y, weights).decision_function(X)
    assert found.decision_function(X) == pytest.approx(scores, abs=1e-5 * np.abs(scores).max())


def test_what_is_wrong_is_named(tmp_path):
    X, y = rows(60)
    dX, dy, _ = in_blocks(X, y, (20, 40))
    with pytest.raises(ValueError, match=r"'poly' of rows of Dask has no exact form, .* use approximation='nystroem'"):
        by_features(approximation=None, kernel="poly").fit(dX, dy)
    for approximation in ("auto", None):
        with pytest.raises(ValueError, match="kernel='precomputed' is a matrix in one memory"):
            by_features(approximation=approximation, kernel="precomputed").fit(dX, dy)
    with pytest.raises(ValueError, match="approximation needs rows, but kernel='precomputed' has none"):
        by_features(kernel="precomputed").fit(dX, dy)
    with pytest.raises(ValueError, match="approximation must be 'auto', None, 'nystroem' or 'fourier', got 'svd'"):
        by_features(approximation="svd").fit(dX, dy)
    with pytest.raises(ValueError, match="'fourier' is for kernel='rbf' only"):
        by_features(approximation="fourier", kernel="poly").fit(dX, dy)
    with pytest.raises(ValueError, match="'newton' for TauFPL on Dask arrays"):
        by_features(solver="apg").fit(dX, dy)
    with pytest.raises(ValueError, match="GrillNP takes no Dask arrays"):
        toprank.GrillNP().fit(dX, dy)
    with pytest.raises(ValueError, match=r"random_state must be a whole number .* has a checkpoint, got None"):
        by_features(random_state=None).fit(dX, dy, checkpoint=tmp_path / "fit.npz")


def test_dataframes():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", exc_type=ImportError)
    X, y = rows(200)
    frame = pd.DataFrame(X, columns=list("abcd"))
    blocks = dd.from_pandas(frame.assign(label=y), npartitions=3)
    dX = blocks[list("abcd")]
    found = by_features(tau=0.1).fit(dX, blocks["label"])
    expected = by_features(tau=0.1).fit(*in_blocks(X, y, (200,))[:2])
    scores = expected.decision_function(X)
    assert found.decision_function(dX).compute() == pytest.approx(scores, abs=1e-6 * np.abs(scores).max())
    assert found.feature_names_in_.tolist() == list("abcd")
