"""WMWRanker on Dask arrays: the model of one array, whatever the blocks are, and little that travels."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank.pairwise import WMWRanker
from toprank.pairwise.block_levels import BlockPreferences
from toprank.pairwise.graph import Preferences, strength_matrix
from toprank.pairwise.objective import PairLoss

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from toprank.matrices.block_vector import BlockVector  # noqa: E402
from toprank.pairwise import block_objective  # noqa: E402

N = 400
EDGES = [(2, 0), (1, 3, 2.5), (0, 1, 0.5), (2, 0, 1.0)]
GRAPHS = {"full": "full", "chain": "chain", "edges": EDGES}


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def ordinal(n=N, d=5, seed=0, levels=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noisy = X @ np.arange(1, d + 1) + 4 * rng.normal(size=n)
    return X, np.digitize(noisy, np.quantile(noisy, np.arange(1, levels) / levels))


def column(values, lengths):
    return None if values is None else da.from_array(values, chunks=(tuple(lengths),))


def in_blocks(X, lengths, *columns, sparse=False):
    blocks = da.from_array(X, chunks=(tuple(lengths), X.shape[1]))
    return blocks.map_blocks(csr_array) if sparse else blocks, *(column(values, lengths) for values in columns)


def assert_same(found, expected, rel=1e-8):
    """Both are within tol of the same optimum; the way there is the same too, but for rounding errors."""
    scale = np.abs(expected.coef_).max()
    assert scale > 0.01
    assert np.abs(found.coef_ - expected.coef_).max() <= rel * scale
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    assert found.suboptimality_ <= found.tol * found.objective_
    assert found.suboptimality_ == pytest.approx(found.gradient_norm_**2 / (2 * found.alpha))
    # what rounding errors leave of a gradient is not that of another order of sums
    assert found.gradient_norm_ == pytest.approx(expected.gradient_norm_, rel=0.01, abs=1e-13)
    assert found.classes_.tolist() == expected.classes_.tolist()


@pytest.mark.covering
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("solver", ["newton-cg", "ncg"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_optimum_as_in_memory(graph, solver, sparse, weighted, rng):
    """Uneven blocks, one of them empty, of rows ordered by level: a block has one level only."""
    X, y = ordinal(seed=rng.integers(1000))
    order = np.argsort(y, kind="stable")
    X, y, weights = X[order], y[order], rng.integers(0, 4, N) * rng.random(N) if weighted else None
    X = np.where(np.abs(X) > 0.3, X, 0.0) if sparse else X
    model = WMWRanker(alpha=1e-3, graph=GRAPHS[graph], solver=solver, tol=1e-12)
    expected = clone(model).fit(csr_array(X) if sparse else X, y, weights)
    dX, dy, dw = in_blocks(X, (7, 250, 0, 143), y, weights, sparse=sparse)
    found = model.fit(dX, dy, sample_weight=dw)
    assert_same(found, expected)
    assert found.n_iter_ == expected.n_iter_
    assert found.history_["passes"].tolist() == expected.history_["passes"].tolist()
    score = found.score(dX, dy, sample_weight=dw)
    assert score == pytest.approx(expected.score(X, y, weights), rel=1e-12)


def test_the_partition_does_not_matter():
    X, y = ordinal(150, 3)
    weights = np.random.default_rng(1).integers(0, 3, 150)
    model = WMWRanker(alpha=1e-2, tol=1e-9)
    expected = clone(model).fit(X, y, weights)

    @settings(max_examples=4, deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, 150), min_size=1, max_size=4), st.booleans())
    def check(ends, by_level):
        order = np.argsort(y, kind="stable") if by_level else np.arange(150)
        lengths = np.diff([0, *sorted(ends), 150]).tolist()
        assert_same(model.fit(*in_blocks(X[order], lengths, y[order], weights[order])), expected)

    check()


def block_preferences(preferences, lengths):
    ends = np.cumsum(lengths)[:-1]
    level, weights = (
        BlockVector.of([dask.delayed(part) for part in np.split(values, ends)], lengths, values.dtype)
        for values in (preferences.level, preferences.weights)
    )
    return BlockPreferences(level, preferences.strengths, weights, preferences.pairs, preferences.pair_weights)


def gathered(vector):
    return np.concatenate(vector.on_blocks(np.asarray))


@pytest.mark.covering
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("lengths", [(90,), (31, 0, 8, 51)])
def test_the_loss_is_that_of_one_array(graph, spread, lengths, rng):
    """Where scores are wide, empty boxes are left out."""
    n = 90
    strengths = strength_matrix(GRAPHS[graph], np.arange(4))
    none = np.zeros((0, 2), np.int64), np.zeros(0)
    preferences = Preferences(rng.integers(0, 4, n), strengths, rng.random(n) + 0.5, *none)
    scores, direction = spread * rng.normal(size=n) + 1000, rng.normal(size=n) + 5
    loss = block_objective.BlockPairLoss(block_preferences(preferences, lengths))
    pieces = [np.split(values, np.cumsum(lengths)[:-1]) for values in (scores, direction)]
    s, d = (BlockVector.of([dask.delayed(part) for part in of], lengths) for of in pieces)
    found, expected = loss(s), PairLoss(preferences)(scores)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    for name in ("gradient", "curvature"):
        np.testing.assert_allclose(gathered(getattr(found, name)), getattr(expected, name), rtol=1e-9, atol=1e-15)
    product = gathered(found.hessian_product(d))
    np.testing.assert_allclose(product, expected.hessian_product(direction), rtol=1e-8, atol=1e-14)
    assert len(found._boxes.positions) <= (n if spread == 1e4 else 512)


def test_scores_are_lazy_and_float32_stays():
    X, y = ordinal(200)
    names = np.array(["low", "middle", "high", "top"])[y]
    order = ["low", "middle", "high", "top"]
    dX, dy = in_blocks(X.astype(np.float32), (60, 0, 140), names)
    model = WMWRanker(labels=order).fit(dX.rechunk((60, 2)), names)
    for found in (model.decision_function(dX), model.predict(dX)):
        assert isinstance(found, da.Array)
        assert found.dtype == found.compute().dtype == model.coef_.dtype == np.float32
        np.testing.assert_allclose(found.compute(), model.predict(X.astype(np.float32)))
    expected = WMWRanker(labels=order).fit(X.astype(np.float32), names)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-5)
    assert model.score(dX, dy) == pytest.approx(model.score(X.astype(np.float32), names))
    kept = dX[:, 0] > -10  # lengths may be unknown
    np.testing.assert_allclose(WMWRanker(labels=order).fit(dX[kept], dy[kept]).coef_, expected.coef_, rtol=1e-5)
    kernel = WMWRanker(kernel="rbf", labels=order).fit(X, names)  # a model of one memory scores blocks too
    np.testing.assert_allclose(kernel.predict(in_blocks(X, (60, 140))[0]).compute(), kernel.predict(X))


def test_dataframes():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe", exc_type=ImportError)
    X, y = ordinal(200, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(level=y, weight=np.arange(200) % 3)
    blocks = dd.from_pandas(frame, npartitions=3)
    columns = ["a", "b", "c"]
    expected = WMWRanker(tol=1e-12).fit(frame[columns], y, frame["weight"])
    found = WMWRanker(tol=1e-12).fit(blocks[columns], blocks["level"], blocks["weight"])
    assert_same(found, expected)
    assert found.feature_names_in_.tolist() == columns
    assert found.score(blocks[columns], blocks["level"]) == pytest.approx(expected.score(frame[columns], y), rel=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        found.predict(blocks[["a", "b", "weight"]])


def test_what_is_wrong_is_named():
    X, y = ordinal(200)
    dX, dy = in_blocks(X, (60, 140), y)
    fit, holes = WMWRanker().fit, X.copy()
    holes[100, 1] = np.nan
    with pytest.raises(ValueError, match="block 1 of X contains NaN"):
        fit(in_blocks(holes, (60, 140))[0], dy)
    with pytest.raises(ValueError, match="y has 100 rows, X has 200 rows"):
        fit(dX, y[:100])
    with pytest.raises(ValueError, match="sample_weight has 100 rows in 1 blocks, X has 200 rows in 2"):
        fit(dX, dy, column(np.ones(100), (100,)))
    with pytest.raises(ValueError, match=r"block \d of sample_weight"):
        fit(dX, dy, -np.ones(200))
    with pytest.raises(ValueError, match=r"no row is preferred to another.*levels: \[0\.\]"):
        fit(dX, np.zeros(200))
    with pytest.raises(ValueError, match="no row is preferred to another"):
        fit(dX, dy, y == 0)
    with pytest.raises(ValueError, match="no row is preferred to another"):
        fit(dX, dy, np.zeros(200))
    with pytest.raises(ValueError, match="y_true has missing values such as nan"):
        fit(dX, np.where(y == 0, np.nan, y))
    with pytest.raises(ValueError, match="X has no rows"):
        fit(*in_blocks(X[:0], (0,), y[:0]))
    with pytest.raises(ValueError, match="levels, more than 1000; cut it into fewer"):
        fit(*in_blocks(np.ones((1100, 1)), (1100,), np.arange(1100)))
    with pytest.raises(ValueError, match="StandardScaler"):
        fit(1e100 * dX, dy)
    with pytest.raises(ValueError, match=r"not in labels=\[0, 1\]"):
        WMWRanker(labels=[0, 1]).fit(dX, dy)
    for options in ({"pairs": [[0, 1]]}, {"pairs": [[0, 1]], "y": dy}, {"pair_weight": [1.0], "y": dy}):
        with pytest.raises(ValueError, match=r"pairs= are of rows in one memory.*levels as y, or gather"):
            fit(dX, **options)
    with pytest.raises(ValueError, match="kernel must be 'linear' for rows of Dask, got 'rbf'; map the blocks"):
        WMWRanker(kernel="rbf").fit(dX, dy)
    with pytest.raises(ValueError, match="summation must be 'exact' for rows of Dask, got 'direct'"):
        WMWRanker(summation="direct").fit(dX, dy)
    with pytest.raises(ValueError, match="5 features"):
        WMWRanker().fit(X, y).predict(dX[:, :3])


def test_a_failed_fit_changes_nothing_and_a_fit_that_stops_says_so():
    X, y = ordinal(200)
    dX, dy = in_blocks(X, (60, 140), y)
    model = WMWRanker().fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="no row is preferred"):
        model.fit(dX, np.zeros(200))
    np.testing.assert_array_equal(model.coef_, before)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 iterations.*increase max_iter") as caught:
        WMWRanker(max_iter=1, tol=1e-10).fit(dX, dy)
    assert caught[0].filename == __file__


def _fails_in_second(block):
    if len(block) and block[0, 0] == 7.0:
        raise OSError("the disk is gone")
    return block


def test_an_error_says_of_which_block_it_is():
    X, y = ordinal(300)
    X[100, 0] = 7.0
    dX, dy = in_blocks(X, (100, 200), y)
    with pytest.raises(OSError, match="the disk is gone") as caught:
        WMWRanker().fit(dX.map_blocks(_fails_in_second, dtype=float, meta=X[:0]), dy)
    assert caught.value.__notes__ == ["in block 1 of the rows"]


def test_scores_in_too_many_boxes_are_an_error(monkeypatch):
    X, y = ordinal(200)
    monkeypatch.setattr(block_objective, "MAX_CELLS", 10)
    for spread in (1.0, 1e5):  # of wide scores each block names some boxes only
        with pytest.raises(ValueError, match=r"intervals of length one, with 4 levels too many.*larger alpha"):
            WMWRanker(alpha=1e-9).fit(*in_blocks(spread * X, (60, 140), y))


def test_constant_columns_and_tiny_weights():
    X, y = ordinal(120)
    X[:, 2] = 3.0
    weights = np.where(np.arange(120) % 2, 1.0, 1e-250) * 1e200
    expected = WMWRanker(tol=1e-12).fit(X, y, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(WMWRanker(tol=1e-12).fit(*in_blocks(X, (50, 70), y, weights)), expected)


@pytest.fixture
def traffic(monkeypatch):
    """Bytes of what is sent to the client, and the number of trips."""
    counted, compute = {"bytes": 0, "trips": 0}, dask.compute

    def counting(*tasks, **options):
        found = compute(*tasks, **options)
        counted["bytes"] += sum(len(pickle.dumps(part, 5)) for part in found)
        counted["trips"] += 1
        return found

    monkeypatch.setattr(dask, "compute", counting)
    return counted


def test_what_is_sent_does_not_grow_with_the_rows(traffic):
    sent = {}
    for n in (2_000, 40_000):
        X, y = ordinal(n)
        dX, dy = in_blocks(X, (n // 4,) * 4, y)
        traffic.update(bytes=0, trips=0)
        model = WMWRanker(alpha=0.01, tol=1e-4).fit(dX, dy)
        assert model.suboptimality_ <= model.tol * model.objective_
        sent[n] = traffic["bytes"] / traffic["trips"]
        assert traffic["trips"] <= 2 * model.history_["passes"][-1] + 10
    assert sent[40_000] <= 1.5 * sent[2_000]


def test_a_cluster_of_two_processes(cluster):
    X, y = ordinal(200, 3)
    dX, dy = in_blocks(X, (50, 150), y)
    model = WMWRanker(alpha=0.1, tol=1e-5)
    expected = clone(model).fit(X, y)
    with dask.config.set(scheduler=None):
        found = model.fit(dX.persist(), dy.persist())
        score = found.score(dX, dy)
    assert_same(found, expected)
    assert score == pytest.approx(expected.score(X, y), rel=1e-12)
    assert len(cluster.scheduler_info()["workers"]) == 2
