"""The threshold that spends a budget, on Dask: exact without all scores in one place, whatever the blocks are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import toprank
from toprank.datasets import make_imbalanced
from toprank.estimators import block_folds, budget_threshold
from toprank.estimators.block_folds import near_threshold
from toprank.estimators.budget_threshold import FOLDS, RowFolds, Scales, spending_threshold, spread

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def in_memory(weights, numbers, of_whole, of_parts):
    """All rows of all folds."""
    for number, of_part in enumerate(of_parts):
        held_out, both = numbers == number, numbers != number
        part, whole = (of_part[both], weights[both]), (of_whole[both], weights[both])
        yield Scales(of_part[held_out], weights[held_out], *part, *whole, spread(*whole) / (spread(*part) or 1.0))


@st.composite
def rows_of_folds(draw):
    n, rng = draw(st.integers(FOLDS, 120)), np.random.default_rng(draw(st.integers(0, 10**6)))
    of_whole = rng.standard_t(draw(st.sampled_from([1, 30])), n)
    scales = rng.uniform(0.5, 2.0, FOLDS)
    of_parts = [scale * of_whole + draw(st.sampled_from([0.0, 0.3])) * rng.standard_normal(n) for scale in scales]
    digits = draw(st.sampled_from([None, 1, 0]))
    if digits is not None:
        of_whole, *of_parts = (np.round(values, digits) for values in (of_whole, *of_parts))
    weights = draw(st.sampled_from([np.ones(n), rng.integers(1, 4, n).astype(float), rng.random(n) + 0.1]))
    numbers = rng.permutation(np.arange(n) % FOLDS)
    ends = np.sort(rng.integers(0, n + 1, draw(st.integers(0, 3))))
    return (weights, numbers, of_whole, of_parts), ends


@pytest.mark.parametrize("few", [20, *(pytest.param(few, marks=pytest.mark.slow) for few in (3, 5000))])
def test_a_few_rows_decide(few, monkeypatch):
    monkeypatch.setattr(block_folds, "_FEW", few)
    monkeypatch.setattr(block_folds, "_EDGES", 7)

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(rows_of_folds(), st.sampled_from([1e-4, 0.01, 0.05, 0.3, 0.9]))
    def check(given_rows, share):
        (weights, numbers, of_whole, of_parts), ends = given_rows
        expected = list(in_memory(weights, numbers, of_whole, of_parts))
        columns = [np.split(column, ends) for column in (weights, numbers, of_whole)]
        columns.append([list(block) for block in zip(*(np.split(part, ends) for part in of_parts), strict=True)])
        found = near_threshold(columns, [fold.ratio for fold in expected], share)
        threshold = spending_threshold(expected, share)
        assert spending_threshold(found, share) == pytest.approx(threshold, rel=1e-9, abs=1e-12)
        for some, all_of_fold in zip(found, expected, strict=True):
            outside = some.held_out_above + some.held_out_below
            assert some.held_out_weights.sum() + outside == pytest.approx(all_of_fold.held_out_weights.sum())

    check()


@pytest.mark.parametrize("share", [1e-4, 0.01, 0.5])
def test_of_many_rows_few_are_fetched(share, rng, monkeypatch):
    n, trips = 40_000, []
    of_whole = rng.standard_t(2, n)
    of_parts = [scale * of_whole + 0.1 * rng.standard_normal(n) for scale in (0.5, 0.8, 1.0, 1.1, 2.0)]
    given_rows = np.ones(n), rng.integers(0, FOLDS, n), of_whole, of_parts
    expected = list(in_memory(*given_rows))
    combined = block_folds.combined
    monkeypatch.setattr(block_folds, "combined", lambda *given: trips.append(1) or combined(*given))
    found = near_threshold([[column] for column in given_rows], [fold.ratio for fold in expected], share)
    assert spending_threshold(found, share) == pytest.approx(spending_threshold(expected, share), rel=1e-12)
    fetched = sum(len(fold.held_out) + len(fold.of_part) + len(fold.of_whole) for fold in found)
    assert fetched <= block_folds._FEW
    assert len(trips) <= 8


def rows(n=200, d=4):
    X, y, _ = make_imbalanced(n, d, separation=3.0, positive_share=0.2, random_state=0)
    return X, y


def in_blocks(X, y, lengths, weights=None):
    columns = [None if column is None else da.from_array(column, chunks=(tuple(lengths),)) for column in (y, weights)]
    return da.from_array(X, chunks=(tuple(lengths), X.shape[1])), *columns


@pytest.fixture
def same_folds(monkeypatch):
    """Rows in one memory are dealt as those in blocks."""

    class Dealt(RowFolds):
        def __init__(self, whole, kept):
            super().__init__(whole, kept)
            positive = whole.problem.positive
            numbers = block_folds._dealt(positive, 0, 0, whole.problem.formulation.over == "all")
            self.in_folds = np.where(numbers[:, None] == np.arange(FOLDS), self.weights[:, None], 0.0)

    monkeypatch.setattr(budget_threshold, "RowFolds", Dealt)


MODELS = [
    toprank.TauFPL(0.1),
    toprank.TopMeanK(0.4, kernel="rbf", approximation="fourier", n_components=15, random_state=0),
    *(
        pytest.param(model, marks=pytest.mark.slow)
        for model in (toprank.TopPushK(12), toprank.PatMat(0.2), toprank.PatMatNP(0.1))
    ),
]


@pytest.mark.usefixtures("same_folds")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{type(model).__name__}-{model.kernel}")
def test_the_threshold_of_one_memory(model, monkeypatch):
    monkeypatch.setattr(block_folds, "_FEW", 100)
    X, y = rows()
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    model = clone(model).set_params(alpha=0.01, tol=1e-8)
    expected = clone(model).fit(X, y, weights)
    found = clone(model).fit(*in_blocks(X, y, (7, 150, 0, 43), weights))
    assert found.threshold_from_ == expected.threshold_from_ == "out-of-fold scores"
    scale = np.abs(expected.decision_function(X)).max()
    assert found.threshold_ == pytest.approx(expected.threshold_, abs=1e-5 * scale)
    assert abs(found.threshold_ - found.trained_threshold_) > 1e-3 * scale


def test_the_partition_does_not_matter_and_folds_are_filled():
    X, y = rows()
    model = toprank.TauFPL(0.1, alpha=0.01, tol=1e-8)
    found = [clone(model).fit(*in_blocks(X, y, lengths)[:2]).threshold_ for lengths in ((200,), (1, 99, 0, 100))]
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    positive = np.random.default_rng(0).random(203) < 0.3
    whole = block_folds._dealt(positive, 0, 0, True)
    parts, ends = [], [0, 11, 11, 80, 203]
    for first, last in pairwise(ends):
        before = positive[:first]
        parts.append(block_folds._dealt(positive[first:last], int((~before).sum()), int(before.sum()), True))
    assert whole.tolist() == np.concatenate(parts).tolist()
    for members in (positive, ~positive):
        counts = np.bincount(whole[members], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
        assert any(np.diff(np.flatnonzero(whole[members] == 0)) != FOLDS)  # not every fifth row
    assert set(block_folds._dealt(positive, 0, 0, False)[positive]) == {-1}


def test_the_budget_is_spent_on_new_rows_and_few_rows_keep_the_trained_one():
    X, y = rows(6200, d=60)
    model = toprank.TauFPL(0.1, alpha=1e-3, tol=1e-3).fit(*in_blocks(X[:200], y[:200], (120, 80))[:2])
    spent = np.mean(model.decision_function(X[200:][y[200:] == 0]) > 0)
    learned = np.mean(model.decision_function(X[:200][y[:200] == 0]) > 0)
    assert spent == pytest.approx(0.1, abs=0.06)
    assert learned < 0.5 * spent  # those that were learned from are no measure
    few = np.concatenate([np.flatnonzero(y == 0)[:4], np.flatnonzero(y == 1)[:4]])
    model = toprank.PatMatNP(0.3).fit(*in_blocks(X[few, :3], y[few], (3, 5))[:2])
    assert (model.threshold_from_, model.threshold_) == ("trained", model.trained_threshold_)


def test_a_checkpoint_is_there_until_the_threshold_is_known(tmp_path, monkeypatch):
    X, y = rows()
    blocks, path, scored = in_blocks(X, y, (100, 100))[:2], tmp_path / "fit.npz", []

    def dies(*arguments):
        scored.append(path.exists())
        raise MemoryError

    monkeypatch.setattr(block_folds, "near_threshold", dies)
    with pytest.raises(MemoryError):
        toprank.TauFPL(0.1).fit(*blocks, checkpoint=path)
    assert scored == [True]
    monkeypatch.undo()
    with dask.config.set(scheduler="synchronous"):
        model = toprank.TauFPL(0.1).fit(*blocks, checkpoint=path)
    assert (model.threshold_from_, path.exists()) == ("out-of-fold scores", False)
