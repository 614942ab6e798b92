"""`TopForest` on Dask arrays and dataframes: the sample, the head over all rows, thresholds, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack, vstack
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator

import toprank
from toprank import PatMatNP, TauFPL, TopForest, reasons
from toprank.datasets import make_imbalanced
from toprank.persistence.allowed import later_parameters
from toprank.solvers.block_problem import BlockProblem
from toprank.solvers.incumbent import Incumbent
from toprank.trees import leaf_files
from toprank.trees.forest_blocks import ForestBlocks, SampledBlocks

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe", exc_type=ImportError)

N, SAMPLE = 900, 300


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def rows(n=N, seed=0):
    """Rows with gaps, ordered by class: most blocks have one class only."""
    X, y, _ = make_imbalanced(n, 5, positive_share=0.1, separation=2.0, random_state=seed)
    X[::7, 2] = np.nan
    order = np.argsort(y, kind="stable")
    return X[order], y[order]


def in_blocks(X, y, lengths, weights=None):
    columns = [da.from_array(X, chunks=(tuple(lengths), 2)), da.from_array(y, chunks=(tuple(lengths),))]
    return columns if weights is None else [*columns, da.from_array(weights, chunks=(tuple(lengths),))]


def forest(**parameters):
    usual = {"tau": 0.05, "n_estimators": 4, "alpha": 0.1, "tol": 1e-8, "sample_rows": SAMPLE, "random_state": 0}
    return TopForest(**{**usual, **parameters})


def quick_forest(**parameters):
    """One ensemble of few trees and nothing boosted."""
    return forest(trees=ExtraTreesClassifier(4, min_samples_leaf=5, bootstrap=True), **parameters)


@pytest.fixture(scope="module")
def model():
    with dask.config.set(scheduler="synchronous"):
        return forest().fit(*in_blocks(*rows(), (500, 0, 300, 100)))


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_few_rows_give_the_model_of_one_memory(weighted):
    X, y = rows(200)
    weights = np.random.default_rng(0).integers(0, 3, 200).astype(float) if weighted else None
    expected = forest(alpha="auto", tol=1e-4).fit(X, y, weights)
    found = forest(alpha="auto", tol=1e-4).fit(*in_blocks(X, y, (120, 0, 80), weights))
    np.testing.assert_array_equal(found.leaf_values_, expected.leaf_values_)
    assert found.threshold_ == expected.threshold_
    assert found.selection_ == expected.selection_


@pytest.mark.parametrize("lengths", [pytest.param((N,), marks=pytest.mark.slow), (0, 50, 0, 20, N - 70)])
def test_the_partition_does_not_matter(model, lengths):
    found = forest().fit(*in_blocks(*rows(), lengths))
    np.testing.assert_array_equal(found.trees_.threshold, model.trees_.threshold)
    assert found.selection_["rows"] == model.selection_["rows"]
    np.testing.assert_allclose(found.leaf_values_, model.leaf_values_, atol=1e-6 * np.abs(model.leaf_values_).max())
    assert found.threshold_ == pytest.approx(model.threshold_, abs=1e-6)


def test_what_is_drawn_follows_from_seed_and_numbers_of_rows():
    X, y = rows()
    weights = (np.arange(N) % 5 > 0).astype(float)
    expected = None
    for lengths in ((N,), (400, 0, 500)):
        blocks = ForestBlocks.of(forest(), *in_blocks(X, y, lengths, weights))
        sampled = blocks.drawn(SAMPLE, 0.05, np.random.RandomState(3))
        masks = [np.concatenate(dask.compute(*one.pieces)) for one in (sampled.sample, sampled.rest, sampled.held_out)]
        expected = masks if expected is None else expected
        np.testing.assert_array_equal(masks, expected)
    sample, rest, held_out = expected
    np.testing.assert_array_equal(sample + rest + held_out, weights > 0)  # each row in one of them
    assert sample.sum() == SAMPLE
    assert (sample & (y == 1)).sum() == ((y == 1) & (weights > 0)).sum()  # all positives
    assert held_out.sum() == ((y == 0) & (weights > 0)).sum() // 10
    assert not y[held_out].any()
    few = blocks.drawn(100, 0.05, np.random.RandomState(3)).told()
    assert (few["sample"], few["positives_in_sample"]) == (100, 50)  # more positives than half of the sample
    assert blocks.drawn(int((weights > 0).sum()), 0.05, np.random.RandomState(3)) is None


@pytest.mark.parametrize(
    ("head", "parameters"),
    [
        (None, {}),
        pytest.param(None, {"honest": False}, marks=pytest.mark.slow),
        (TauFPL(tau=0.1), {}),
        (None, {"sent": 50}),
        pytest.param(None, {"sent": 0}, marks=pytest.mark.slow),
    ],
    ids=["usual", "all leaves", "TauFPL", "many columns", "many columns and active rows"],
)
def test_the_head_is_that_of_one_memory_over_the_same_leaves(head, parameters, monkeypatch):
    """Of the sample honest leaves and priors, of the rest those in all trees, as CSR, in one fit."""
    parameters, known = dict(parameters), {}
    if "sent" in parameters:  # the rows of positive weight are sent, or only products
        monkeypatch.setattr("toprank.solvers.newton_system.EXPLICIT", 10)
        monkeypatch.setattr("toprank.solvers.newton_system._SENT_AS_PRODUCTS", parameters.pop("sent"))
        monkeypatch.setattr("toprank.matrices.block_tasks._SENT_ONCE", 0)
    fitted = SampledBlocks.fitted

    def noting(sampled, head, candidate, rows, grove, priors, forest):
        known.update(sampled=sampled, candidate=candidate, rows=rows, grove=grove, priors=priors)
        known["head"] = fitted(sampled, head, candidate, rows, grove, priors, forest)
        return known["head"]

    monkeypatch.setattr(SampledBlocks, "fitted", noting)
    X, y = rows()
    weights = np.random.default_rng(0).integers(1, 3, N).astype(float)
    model = forest(head=head, **parameters).fit(*in_blocks(X, y, (500, 300, 100), weights))
    sampled, grove, candidate = known["sampled"], known["grove"], known["candidate"]
    sample, rest = (np.concatenate(dask.compute(*one.pieces)) for one in (sampled.sample, sampled.rest))
    first, *others = grove.parts
    assert candidate.honest is (parameters.get("honest") is not False)
    numbers = first.source.leaf_numbers(X[rest].astype(np.float32)) + np.cumsum(first.source.n_leaves)
    n_trees = len(first.source.n_leaves)
    columns = (numbers - first.source.n_leaves).ravel()
    leaves = csr_array((np.full(columns.size, n_trees**-0.5), columns, np.arange(0, columns.size + 1, n_trees)),
                       shape=(int(rest.sum()), int(first.source.n_leaves.sum())))  # fmt: skip
    trees = others[0].source.trees
    shares = trees.scores(X[rest].astype(np.float32), trees.node_values(others[0].source.leaf_values()))
    # in single precision, as the trees were grown
    boosted = others[1].source.model.decision_function(X[rest].astype(np.float32))
    boosted -= others[1].source.model._baseline_prediction.ravel()
    scores = [(one - prior.centre) / prior.scale for one, prior in zip((shares, boosted), known["priors"], strict=True)]
    of_rest = hstack([leaves, candidate.freedom * np.stack(scores, axis=1)])
    of_sample = known["rows"].honest if candidate.honest else known["rows"].whole
    together = csr_array(vstack([of_rest, of_sample.with_extra(candidate.freedom * known["rows"].prior).tocsr()]))
    oracle = (PatMatNP(tau=0.05) if head is None else clone(head)).set_params(alpha=0.1, tol=1e-8, threshold="trained")
    oracle.fit(together, np.concatenate([y[rest], y[sample]]), np.concatenate([weights[rest], weights[sample]]))
    largest = np.abs(oracle.coef_).max()
    np.testing.assert_allclose(known["head"].coef_, oracle.coef_, atol=2e-4 * largest)
    assert model.objective_ == pytest.approx(oracle.objective_, rel=1e-7)
    assert model.dual_gap_ <= 1e-8


def test_the_threshold_spends_the_budget_on_the_rows_that_were_held_out(monkeypatch):
    X, y = rows()
    known, quantile = {}, SampledBlocks.quantile

    def noting(sampled, model):
        known["held_out"] = np.concatenate(dask.compute(*sampled.held_out.pieces))
        return quantile(sampled, model)

    monkeypatch.setattr(SampledBlocks, "quantile", noting)
    weights = np.random.default_rng(0).integers(0, 3, N).astype(float)
    model = quick_forest().fit(*in_blocks(X, y, (500, 300, 100), weights))
    scores, of_rows = model.decision_function(X[known["held_out"]]), weights[known["held_out"]]
    share = of_rows[scores > 1e-9].sum() / of_rows.sum()
    at = of_rows[np.abs(scores) <= 1e-9].sum() / of_rows.sum()
    assert share <= 0.05 < share + at


def test_scores_and_decisions_of_dask_arrays_are_lazy(model):
    X, y = rows(300, seed=1)
    dX, _ = in_blocks(X, y, (100, 0, 200))
    scores = model.decision_function(dX)
    assert scores.chunks == ((100, 0, 200),)
    np.testing.assert_array_equal(scores.compute(), model.decision_function(X))
    np.testing.assert_array_equal(model.predict(dX).compute(), model.predict(X))
    with pytest.raises(ValueError, match="4 features"):
        model.decision_function(dX[:, :4])


def test_leaves_are_in_files_where_there_is_no_cluster(tmp_path, monkeypatch):
    """As small integers, mapped into memory, and gone after the fit."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    read, seen = leaf_files._read, []

    def noting(matrix, path):
        found = read(matrix, path)
        seen.append((found.leaves.dtype, found.leaves.base is not None, matrix.leaves.size))
        return found

    monkeypatch.setattr(leaf_files, "_read", noting)
    model = quick_forest(tol=0.01).fit(*in_blocks(*rows(), (500, 400)))
    assert set(seen) == {(np.dtype(np.uint8), True, 0)}
    assert not list(tmp_path.iterdir())
    assert model.dual_gap_ <= 0.01


def test_it_is_a_usual_forest(model, tmp_path):
    X, _ = rows(60, seed=1)
    expected = model.decision_function(X)
    toprank.save(model, tmp_path / "forest")
    again = toprank.load(tmp_path / "forest")
    np.testing.assert_array_equal(again.decision_function(X), expected)
    assert again.selection_ == model.selection_
    earlier = set(vars(model)) - {"sample_rows"}  # what files have from before there were samples
    assert later_parameters(TopForest, earlier) == {"sample_rows": 200_000}
    pytest.importorskip("lightgbm")
    np.testing.assert_allclose(model.to_lightgbm().predict(X, raw_score=True), expected, atol=1e-9)
    assert len(reasons(model, X[:2], n=2)) == 2
    contributions, base = model.contributions(X[:2])
    np.testing.assert_allclose(contributions.sum(axis=1) + base, expected[:2], atol=1e-9)
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    graph = toprank.to_onnx(model)
    assert isinstance(graph, onnx.ModelProto)
    session = runtime.InferenceSession(graph.SerializeToString())
    outputs = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})
    assert any(np.allclose(np.ravel(one), expected, atol=1e-6) for one in outputs if np.size(one) == len(X))


def frame(n=600, seed=0):
    """A table of numbers with gaps, words and categories, with its labels."""
    rng = np.random.default_rng(seed)
    amount, kind = rng.exponential(100, n), rng.choice(["card", "cash", "wire"], n)
    y = ((amount > 150) & (kind == "wire")) | (rng.random(n) < 0.02)
    amount[rng.random(n) < 0.1] = np.nan
    words = pd.Series([None if rng.random() < 0.1 else word for word in kind], dtype=object)
    place = pd.Categorical(rng.choice(["here", "there"], n), categories=["there", "here", "nowhere"])
    night = pd.Series(rng.integers(0, 2, n), dtype="Int64").where(rng.random(n) < 0.9)
    columns = {"amount": amount, "kind": words, "place": place, "night": night}
    return pd.DataFrame({**columns, "label": np.where(y, "fraud", "fine")})


@pytest.mark.parametrize("sample_rows", [1000, 200])
def test_dataframes_with_gaps_and_categories(sample_rows):
    table, new = frame(), frame(seed=1)
    X, y = table.drop(columns="label"), table["label"]
    blocks = dd.concat([dd.from_pandas(table[:400], npartitions=3), dd.from_pandas(table[400:], npartitions=1)])
    model = forest(sample_rows=sample_rows, pos_label="fraud", tol=1e-4)
    found = clone(model).fit(blocks.drop(columns="label"), blocks["label"])
    new_X = new.drop(columns="label")
    scores = found.decision_function(new_X)
    assert found.feature_names_in_.tolist() == X.columns.tolist()
    assert found.categories_ == {1: ("card", "cash", "wire"), 2: ("here", "there")}
    assert toprank.metrics.tpr_at_fpr(new["label"], scores, max_fpr=0.05, pos_label="fraud") > 0.5
    lazily = found.decision_function(dd.from_pandas(new_X, npartitions=2))
    np.testing.assert_array_equal(lazily.compute(), scores)
    assert set(found.predict(dd.from_pandas(new_X, npartitions=2)).compute()) == {"fine", "fraud"}
    if sample_rows == 1000:
        np.testing.assert_array_equal(scores, clone(model).fit(X, y).decision_function(new_X))
    with pytest.raises(ValueError, match="feature names should match"):
        found.decision_function(dd.from_pandas(new_X.rename(columns={"kind": "way"}), npartitions=2))
    with (
        pytest.warns(UserWarning, match="X does not have valid feature names"),
        pytest.raises(ValueError, match=r"columns \[1, 2\] held text or categories"),
    ):
        found.decision_function(da.zeros((4, 4), chunks=(2, 4))).compute()


def test_trees_that_were_given():
    X, y = rows()
    X = np.nan_to_num(X)
    old = RandomForestClassifier(5, min_samples_leaf=5, random_state=0).fit(X[::2], y[::2])
    model = forest(trees=FrozenEstimator(old)).fit(*in_blocks(X, y, (500, 0, 400)))
    assert model.dual_gap_ <= 1e-8
    assert model.selection_["rows"]["head"] + model.selection_["rows"]["held_out"] == N
    with pytest.raises(ValueError, match="all trees of HistGradientBoostingClassifier have"):
        forest(trees=HistGradientBoostingClassifier(max_iter=2)).fit(*in_blocks(X, y, (500, 400)))


@pytest.mark.slow
def test_a_cluster_of_two_processes(cluster):
    X, y = rows()
    model = quick_forest(tol=0.03, alpha=1.0, head=TauFPL(tau=0.1))
    expected = clone(model).fit(*in_blocks(X, y, (500, 0, 400)))
    with dask.config.set(scheduler=None):
        dX, dy = (column.persist() for column in in_blocks(X, y, (500, 0, 400)))
        found = clone(model).fit(dX, dy)
        np.testing.assert_allclose(found.leaf_values_, expected.leaf_values_, rtol=1e-9, atol=1e-12)
        assert found.threshold_ == pytest.approx(expected.threshold_, rel=1e-9)
        np.testing.assert_array_equal(found.decision_function(dX).compute(), found.decision_function(X))


def test_a_killed_client_goes_on_with_the_head(tmp_path, monkeypatch):
    blocks, path = in_blocks(*rows(), (500, 0, 300, 100)), tmp_path / "fit"
    expected, record, n_recorded = quick_forest(tol=1e-10).fit(*blocks), Incumbent.record, [0]

    class Killed(BaseException):
        pass

    def killed(incumbent):
        record(incumbent)
        n_recorded[0] += isinstance(incumbent.problem, BlockProblem)
        if n_recorded[0] == 3:
            raise Killed

    monkeypatch.setattr(Incumbent, "record", killed)
    with pytest.raises(Killed):
        quick_forest(tol=1e-10).fit(*blocks, checkpoint=path)
    monkeypatch.setattr(Incumbent, "record", record)
    assert path.exists()
    with pytest.raises(ValueError, match="another fit"):
        quick_forest(tol=1e-10, alpha=1.0).fit(*blocks, checkpoint=path)
    found = quick_forest(tol=1e-10).fit(*blocks, checkpoint=path)
    assert not path.exists()
    assert len(found.history_["gap"]) < len(expected.history_["gap"])
    largest = np.abs(expected.leaf_values_).max()
    np.testing.assert_allclose(found.leaf_values_, expected.leaf_values_, rtol=0, atol=1e-5 * largest)
    with pytest.raises(ValueError, match="where a forest has a checkpoint, got None"):
        quick_forest(random_state=None).fit(*blocks, checkpoint=path)
    with pytest.raises(ValueError, match="is for Dask arrays"):
        quick_forest().fit(*rows(), checkpoint=path)


def test_what_cannot_be_used_says_where_and_what_can():
    X, y = rows()
    lengths = (500, 400)
    with pytest.raises(ValueError, match="sample_rows must be a whole number of at least 10, got 5"):
        forest(sample_rows=5).fit(*in_blocks(X, y, lengths))
    wrong = X.copy()
    wrong[600, 1] = np.inf
    with pytest.raises(ValueError, match="block 1 of X has infinity"):
        forest().fit(*in_blocks(wrong, y, lengths))
    infinite = pd.DataFrame(wrong).rename(columns=str)
    with pytest.raises(ValueError, match="block 1 of X has infinity"):
        forest().fit(dd.from_pandas(infinite, npartitions=2), dd.from_pandas(pd.Series(y), npartitions=2))
    weights = np.ones(N)
    weights[10] = -1
    with pytest.raises(ValueError, match="block 0 of sample_weight must have 500 numbers, none negative"):
        forest().fit(*in_blocks(X, y, lengths, weights))
    sparse = in_blocks(np.nan_to_num(X), y, lengths)[0].map_blocks(csr_array)
    with pytest.raises(ValueError, match=r"block [01] of X is sparse, and trees read dense rows"):
        forest().fit(sparse, y)
    with pytest.raises(ValueError, match="only one class"):
        forest().fit(*in_blocks(X, np.zeros(N), lengths))
    with pytest.raises(ValueError, match="only one class is left"):
        forest().fit(*in_blocks(X, y, lengths, (y == 0).astype(float)))
    with pytest.raises(ValueError, match="y has 899 rows"):
        forest().fit(in_blocks(X, y, lengths)[0], y[1:])
    dates = pd.DataFrame({"when": pd.date_range("2026-01-01", periods=N), "x": np.arange(N)})
    with pytest.raises(ValueError, match="column 'when' holds dates or times"):
        forest().fit(dd.from_pandas(dates, npartitions=2), dd.from_pandas(pd.Series(y), npartitions=2))
    untouched = forest(alpha=0.5)
    before = dict(vars(untouched))
    with pytest.raises(ValueError, match="block 1 of X"):
        untouched.fit(*in_blocks(wrong, y, lengths))
    assert vars(untouched) == before


@pytest.mark.slow
@pytest.mark.parametrize("head", [None, TauFPL(tau=0.02)], ids=["PatMatNP", "TauFPL"])
def test_many_rows_in_threads_and_in_several_blocks_of_the_sample(head, monkeypatch):
    """Better than the sample alone, and close to all rows in one memory."""
    monkeypatch.setattr("toprank.trees.forest_blocks._SAMPLE_BLOCK", 700)
    X, y, _ = make_imbalanced(60_000, 10, positive_share=0.03, random_state=0)
    X, y, new, labels = X[:40_000], y[:40_000], X[40_000:], y[40_000:]
    model = forest(tau=0.02, n_estimators=50, alpha="auto", tol=1e-4, sample_rows=4000, head=head)
    with dask.config.set(scheduler="threads"):
        found = clone(model).fit(*in_blocks(X, y, (10_000,) * 4))
    assert found.dual_gap_ <= 1e-4
    held_out = int(0.1 * (y == 0).sum())
    assert found.selection_["rows"] == {
        "all": 40_000, "sample": 4000, "positives_in_sample": int(y.sum()), "head": 40_000 - held_out,
        "held_out": held_out,
    }  # fmt: skip
    in_memory = clone(model).fit(X, y)
    rates = [toprank.metrics.tpr_at_fpr(labels, one.decision_function(new), max_fpr=0.02) for one in (found, in_memory)]
    assert rates[0] > rates[1] - 0.05
    assert 0.014 < (found.decision_function(new)[labels == 0] > 0).mean() < 0.026
