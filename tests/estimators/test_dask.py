"""Dask arrays as X: the same model as of one array, and little that travels."""

from __future__ import annotations

import os
import pickle
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import toprank
from toprank.datasets import make_imbalanced
from toprank.matrices.block_vector import BlockVector
from toprank.solvers import working_set_newton as newton
from toprank.solvers.block_problem import BlockProblem
from toprank.solvers.block_row_choice import BlockRowChoice
from toprank.solvers.incumbent import Incumbent

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

N = 400


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def small_working_sets(monkeypatch):
    monkeypatch.setattr(newton, "_SMALL_PART", 40)
    monkeypatch.setattr(newton, "_ALL_ROWS", 50)


@pytest.fixture
def small_windows(small_working_sets, monkeypatch):
    """Few of the rows are next to the threshold, so that those above come in sums and groups."""
    monkeypatch.setattr(newton._WorkingSetSolver, "_first_size", lambda solver: 40)


def rows(n=N, seed=0, share=0.2):
    X, y, _ = make_imbalanced(n, 4, positive_share=share, separation=4.0, random_state=seed)
    return X, y


def in_blocks(X, y, lengths, weights=None, sparse=False):
    blocks = da.from_array(X, chunks=(tuple(lengths), X.shape[1]))
    blocks = blocks.map_blocks(csr_array) if sparse else blocks
    columns = [None if column is None else da.from_array(column, chunks=(tuple(lengths),)) for column in (y, weights)]
    return blocks, *columns


def assert_same(found, expected, tol=1e-8):
    scale = np.abs(expected.coef_).max()
    assert scale > 0.01
    assert found.dual_gap_ <= tol
    assert np.abs(found.coef_ - expected.coef_).max() <= 1e-5 * scale
    assert found.objective_ == pytest.approx(expected.objective_, rel=2e-8)
    trained = [getattr(model, "trained_threshold_", model.threshold_) for model in (found, expected)]
    assert trained[0] == pytest.approx(trained[1], rel=1e-4, abs=1e-5)


FAMILY = [
    ("TopPush", {}, "quadratic"),
    ("TopPushK", {"k": 12}, "hinge"),
    ("TauFPL", {"tau": 0.1}, "quadratic"),
    ("TauFPL", {"tau": 0.1}, "logistic"),
    ("TauFPL", {"tau": 0.1}, "exponential"),
    ("TopMeanK", {"tau": 0.4}, "huber"),
    ("PatMat", {"tau": 0.1}, "quadratic"),
    ("PatMatNP", {"tau": 0.1}, "logistic"),
    ("PatMatNP", {"tau": 0.1, "beta": 1.0}, "exponential"),
]


@pytest.mark.usefixtures("small_windows")
@pytest.mark.parametrize(("name", "parameters", "surrogate"), FAMILY)
def test_the_same_optimum_as_in_memory(name, parameters, surrogate):
    """Uneven blocks, one of them empty, of rows ordered by class: all but one block have one class only."""
    X, y = rows()
    order = np.argsort(y, kind="stable")
    X, y, weights = X[order], y[order], np.random.default_rng(0).integers(0, 4, N).astype(float)
    sparse = surrogate in ("quadratic", "logistic")
    X = np.where(np.abs(X) > 0.3, X, 0.0) if sparse else X
    model = getattr(toprank, name)(**parameters, surrogate=surrogate, alpha=0.01, tol=1e-8)
    if "threshold" in model.get_params():
        model.set_params(threshold="trained")
    expected = toprank.base.clone(model).fit(X, y, weights)
    dX, dy, dw = in_blocks(X, y, (7, 250, 0, 143), weights, sparse)
    found = model.fit(dX, dy, sample_weight=dw)
    assert_same(found, expected)
    assert (found.solver_, found.threshold_from_ if name != "TopPush" else "trained") == ("newton", "trained")


@pytest.mark.slow
def test_the_hinge_of_a_quantile():
    X, y = rows()
    expected = toprank.PatMatNP(tau=0.1, surrogate="hinge", alpha=0.01, tol=1e-8).fit(X, y)
    found = toprank.PatMatNP(tau=0.1, surrogate="hinge", alpha=0.01, tol=1e-8).fit(*in_blocks(X, y, (100, 300))[:2])
    assert_same(found, expected)


@pytest.mark.usefixtures("small_windows")
def test_the_partition_does_not_matter():
    X, y = rows(150)
    model = toprank.TauFPL(tau=0.1, alpha=0.01, tol=1e-8, threshold="trained")
    expected = toprank.base.clone(model).fit(*in_blocks(X, y, (150,))[:2])

    @settings(max_examples=4, deadline=None, derandomize=True)
    @given(st.lists(st.integers(0, 150), min_size=1, max_size=5))
    def check(ends):
        lengths = np.diff([0, *sorted(ends), 150]).tolist()
        found = toprank.base.clone(model).fit(*in_blocks(X, y, lengths)[:2])
        assert np.abs(found.coef_ - expected.coef_).max() <= 1e-6 * np.abs(expected.coef_).max()
        assert found.threshold_ == pytest.approx(expected.threshold_, rel=1e-6)

    check()


def test_scores_and_labels_are_lazy():
    X, y = rows(200)
    labels = np.where(y == 1, "fraud", "good")
    dX, dy, _ = in_blocks(X, labels, (60, 140))
    model = toprank.TauFPL(tau=0.1, alpha=0.01, pos_label="fraud").fit(dX.rechunk((60, 2)), dy)
    scores, found = model.decision_function(dX), model.predict(dX)
    assert isinstance(scores, da.Array)
    assert isinstance(found, da.Array)
    assert scores.compute() == pytest.approx(model.decision_function(X))
    assert found.compute().tolist() == model.predict(X).tolist()
    assert model.threshold_from_ == "out-of-fold scores"
    assert 0 < np.mean(scores.compute()[y == 0] > 0) < 0.2  # about the budget
    assert model.predict(dX).compute()[y == 1].tolist().count("fraud") > 10


def test_lengths_may_be_unknown_and_float32_stays():
    X, y = rows(200)
    dX, dy, _ = in_blocks(X.astype(np.float32), y, (60, 140))
    kept = dX[:, 0] > -10
    found = toprank.PatMatNP(tau=0.1, threshold="trained").fit(dX[kept], dy[kept])
    assert found.coef_.dtype == np.float32
    expected = toprank.PatMatNP(tau=0.1).fit(X.astype(np.float32), y)
    assert found.coef_ == pytest.approx(expected.coef_, rel=1e-4)
    assert found.decision_function(dX[kept]).compute().dtype == np.float32


def test_what_is_wrong_is_named():
    X, y = rows(200)
    dX, dy, _ = in_blocks(X, y, (60, 140))
    fit = toprank.TauFPL(tau=0.1).fit
    holes = X.copy()
    holes[100, 1] = np.nan
    with pytest.raises(ValueError, match="block 1 of X contains NaN"):
        fit(in_blocks(holes, y, (60, 140))[0], dy)
    with pytest.raises(ValueError, match="y has 100 rows, X has 200 rows"):
        fit(dX, y[:100])
    with pytest.raises(ValueError, match=r"block \d of sample_weight"):
        fit(dX, dy, -np.ones(200))
    with pytest.raises(ValueError, match="too far apart"):
        fit(dX, dy, np.where(np.arange(200) % 2, 1.0, 1e-15))
    with pytest.raises(ValueError, match="only one class: "):
        fit(dX, np.zeros(200))
    with pytest.raises(ValueError, match="Only binary classification"):
        fit(dX, np.arange(200))
    with pytest.raises(ValueError, match="TopMeanK, PatMat and PatMatNP do"):
        toprank.GrillNP(tau=0.1).fit(dX, dy)
    with pytest.raises(ValueError, match="one of 'auto', 'newton' for TauFPL on Dask arrays"):
        toprank.TauFPL(tau=0.1, solver="pairs").fit(dX, dy)
    with pytest.raises(ValueError, match="4 features"):
        toprank.TauFPL(tau=0.1).fit(X, y).decision_function(dX[:, :3])


def test_equal_numbers_of_a_block_are_kept_as_one():
    values = [np.full(1000, 2.0), np.zeros(0), np.arange(3.0), np.array([1.0, 3.0, 1.0])]
    vector = BlockVector.of([dask.delayed(part) for part in values], [len(part) for part in values])
    kept = (0.5 * vector).in_short()
    pieces = dask.compute(*kept.pieces)
    for piece, part in zip(pieces, values, strict=True):
        np.testing.assert_array_equal(piece, 0.5 * part)
    assert [piece.strides for piece in pieces if len(piece)] == [(0,), (8,), (8,)]
    assert kept.sum() == 0.5 * sum(part.sum() for part in values)


def test_dask_knows_how_large_the_rows_of_a_working_set_are():
    from dask.sizeof import sizeof

    from toprank.solvers.block_row_choice import _Rows

    X, none = np.zeros((100, 4)), np.zeros(0, np.intp)
    for rows in (X, csr_array(X + 1)):
        assert sizeof((_Rows(none, none, rows, none, none, X[:0]),)) > 3200


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


@pytest.mark.usefixtures("small_working_sets")
def test_what_a_round_sends_does_not_grow_with_the_rows(traffic, monkeypatch):
    monkeypatch.setattr(BlockRowChoice, "largest_part", 400)
    monkeypatch.setattr(newton, "_WINDOWS", (800, 800))  # a small part of the rows of the threshold
    sent = {}
    for n in (16_000, 128_000):
        X, y = rows(n, share=60 / n)
        dX, dy, _ = in_blocks(X, y, (n // 4,) * 4)
        traffic.update(bytes=0, trips=0)
        model = toprank.TauFPL(tau=0.1, alpha=0.01, tol=1e-3, threshold="trained").fit(dX, dy)
        assert model.dual_gap_ <= 1e-3
        rounds = len(model.history_["gap"])
        sent[n] = traffic["bytes"] / rounds
        assert traffic["trips"] <= 40 + 20 * rounds
    assert sent[128_000] <= 1.5 * sent[16_000]


@pytest.mark.usefixtures("small_working_sets")
@pytest.mark.parametrize("sparse", [False, True])
def test_no_row_next_to_the_threshold_is_sent_twice(monkeypatch, sparse):
    monkeypatch.setattr(newton, "_WINDOWS", (60, 60))
    sent, in_sets, put_together = [], [], BlockRowChoice._put_together

    def watched(choice, parts, *others, **options):
        offsets = choice.problem.threshold_weights.offsets
        sent.append(np.concatenate([part.threshold_rows + offsets[b] for b, part in enumerate(parts)]))
        assert not np.intersect1d(sent[-1], choice._held.numbers).size
        assert [part.of_threshold.shape[0] for part in parts] == [len(part.threshold_rows) for part in parts]
        chosen = put_together(choice, parts, *others, **options)
        numbers = chosen.threshold_rows[chosen.threshold_rows < offsets[-1]]
        assert (np.diff(numbers) > 0).all()
        own = chosen.rows.B[len(chosen.positives) :][: len(numbers)]
        np.testing.assert_array_equal(-(own.toarray() if sparse else own), X[~y][numbers])
        in_sets.append(numbers)
        return chosen

    monkeypatch.setattr(BlockRowChoice, "_put_together", watched)
    X, y = rows(3000)
    y = y.astype(bool)
    dX, dy, _ = in_blocks(X, y, (700, 0, 2300), sparse=sparse)
    toprank.TauFPL(tau=0.1, alpha=0.01, tol=1e-6, threshold="trained").fit(dX, dy)
    assert len(sent) > 1
    assert sum(map(len, sent)) < sum(map(len, in_sets))


@pytest.mark.filterwarnings("ignore::toprank.exceptions.DegenerateSolutionWarning")
def test_next_to_a_model_that_is_zero_there_are_no_more_rounds_than_in_memory():
    rng, n, d = np.random.default_rng(0), 50_000, 100
    X, y = rng.standard_normal((n, d)), rng.random(n) < 0.01
    X[y] += 2.5 / np.sqrt(d)
    model = toprank.TauFPL(tau=0.01, alpha=0.01, threshold="trained")
    expected = toprank.base.clone(model).fit(X, y).history_
    found = model.fit(*in_blocks(X, y, (n // 2,) * 2)[:2])
    assert not found.coef_.any()
    assert len(found.history_["gap"]) <= len(expected["gap"])
    assert found.history_["passes"][-1] <= 1.5 * expected["passes"][-1]


@pytest.mark.usefixtures("small_working_sets")
@pytest.mark.parametrize("name", ["TauFPL", "PatMatNP"])
def test_a_killed_client_goes_on_from_its_checkpoint(name, tmp_path, monkeypatch):
    X, y = rows()
    dX, dy, _ = in_blocks(X, y, (100, 300))
    model = getattr(toprank, name)(tau=0.1, alpha=0.01, tol=1e-8, threshold="trained")
    expected, path = toprank.base.clone(model).fit(dX, dy), tmp_path / "fit"
    rounds, record = len(expected.history_["gap"]), Incumbent.record

    class Killed(BaseException):
        pass

    def killed(incumbent):
        record(incumbent)
        if isinstance(incumbent.problem, BlockProblem) and len(incumbent.recorder.rows["gap"]) == max(rounds - 2, 1):
            raise Killed

    monkeypatch.setattr(Incumbent, "record", killed)
    with pytest.raises(Killed):
        toprank.base.clone(model).fit(dX, dy, checkpoint=path)
    monkeypatch.setattr(Incumbent, "record", record)
    with pytest.raises(ValueError, match="another fit, of which parameters differ"):
        toprank.base.clone(model).set_params(alpha=0.1).fit(dX, dy, checkpoint=path)
    found = toprank.base.clone(model).fit(dX, dy, checkpoint=path)
    assert_same(found, expected)
    assert len(found.history_["gap"]) < rounds or rounds < 3
    assert not path.exists()
    path.write_bytes(b"something")
    with pytest.raises(ValueError, match="is no checkpoint"):
        toprank.base.clone(model).fit(dX, dy, checkpoint=path)
    with pytest.raises(ValueError, match="is for Dask arrays"):
        toprank.base.clone(model).fit(X, y, checkpoint=path)


def _fails_in_third(block):
    if block[0, 0] == 7.0:
        raise OSError("the disk is gone")
    return block


def test_an_error_says_of_which_block_it_is():
    X, y = rows(300)
    X[200, 0] = 7.0
    blocks, dy, _ = in_blocks(X, y, (100, 100, 100))
    with pytest.raises(OSError, match="the disk is gone") as caught:
        toprank.TauFPL(tau=0.1).fit(blocks.map_blocks(_fails_in_third, dtype=float, meta=X[:0]), dy)
    assert caught.value.__notes__ == ["in block 2 of the rows"]


def _sent(dask_worker):
    """Bytes that a worker has sent to others than workers, and to workers, by Dask's own record."""
    log = dask_worker.transfer_outgoing_log
    to_workers = sum(entry["total"] for entry in log if str(entry["who"]).startswith("tcp"))
    return dask_worker.transfer_outgoing_bytes_total - to_workers, to_workers


def bytes_a_round(cluster, model, n):
    """Bytes that the workers send to the client in a round of a fit to n rows, 60 of them positive."""
    X, y = rows(n, share=60 / n)
    dX, dy, _ = in_blocks(X, y, (n // 4,) * 4)
    dX, dy = dX.persist(), dy.persist()
    before = np.sum(list(cluster.run(_sent).values()), axis=0)
    model.fit(dX, dy)
    assert model.dual_gap_ <= model.tol
    sent = np.sum(list(cluster.run(_sent).values()), axis=0) - before
    return sent[0] / len(model.history_["gap"])


@pytest.mark.usefixtures("small_working_sets")
def test_a_cluster_of_two_processes(cluster):
    model = toprank.TauFPL(tau=0.1, alpha=0.01, tol=0.03, threshold="trained")
    with dask.config.set(scheduler=None):
        sent = bytes_a_round(cluster, model, 2000)
    X, y = rows(2000, share=60 / 2000)
    dX, dy, _ = in_blocks(X, y, (500,) * 4)
    assert 0 < sent < 250_000
    assert model.coef_ == pytest.approx(toprank.base.clone(model).fit(dX, dy).coef_, rel=1e-9)


def test_features_on_a_cluster_of_two_processes(cluster):
    X, y = rows(600)
    dX, dy, _ = in_blocks(X, y, (100, 300, 0, 200), sparse=True)
    model = toprank.TauFPL(tau=0.1, alpha=0.01, tol=1e-6, kernel="rbf", approximation="nystroem", random_state=0)
    model.set_params(n_components=20, cache_size=0.02, threshold="trained")  # features of the first block are kept
    expected = toprank.base.clone(model).fit(dX, dy)
    with dask.config.set(scheduler=None):
        model.fit(dX.persist(), dy.persist())
        scores = model.decision_function(dX).compute()
    assert scores == pytest.approx(expected.decision_function(X), rel=1e-9, abs=1e-9)


class _Killer:
    """Kills a worker after some trips."""

    def __init__(self, client, after):
        self.client, self.left, self.compute = client, after, dask.compute

    def __call__(self, *tasks, **options):
        self.left -= 1
        if self.left == 0:
            pid = next(iter(self.client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
        return self.compute(*tasks, **options)


@pytest.mark.slow
@pytest.mark.usefixtures("small_working_sets")
@pytest.mark.parametrize(
    ("name", "after"), [("TauFPL", 2), ("TauFPL", 12), ("TauFPL", 25), ("PatMatNP", 12), ("PatMatNP", 25)]
)
def test_a_killed_worker_changes_nothing(cluster, monkeypatch, name, after):
    X, y = rows(2000, share=60 / 2000)
    dX, dy, _ = in_blocks(X, y, (500,) * 4)
    model = getattr(toprank, name)(tau=0.1, alpha=0.01, tol=1e-6, threshold="trained")
    expected = toprank.base.clone(model).fit(dX, dy)
    monkeypatch.setattr(dask, "compute", _Killer(cluster, after))
    with dask.config.set(scheduler=None):
        found = model.fit(dX, dy)
    assert dask.compute.left <= 0
    assert found.coef_ == pytest.approx(expected.coef_, rel=1e-9)
