"""Thresholds on Dask arrays: those of one array, without its rows or scores in one place."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from toprank import AlertShareClassifier, NeymanPearsonClassifier, TauFPL, TopKClassifier
from toprank.datasets import make_imbalanced

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

LENGTHS = (100, 0, 350, 150)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def rows():
    X, y, _ = make_imbalanced(600, 3, positive_share=0.2, separation=3.0, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, 600).astype(float)
    return X.astype(np.float32), np.where(y == 1, "fraud", "ok"), weights


def in_blocks(X, *columns):
    return da.from_array(X, chunks=(LENGTHS, 2)), *(da.from_array(column, chunks=(LENGTHS,)) for column in columns)


def wrappers(estimator, **options):
    return [
        NeymanPearsonClassifier(estimator, max_fpr=0.1, pos_label="fraud", **options),
        AlertShareClassifier(estimator, share=0.1, pos_label="fraud", **options),
    ]


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("method", ["decision_function", "predict_proba"])
def test_a_frozen_model_gets_the_same_threshold(rows, number, method):
    X, y, weights = rows
    frozen = FrozenEstimator(LogisticRegression().fit(np.round(X), y != "ok"))
    frozen.classes_ = np.array(["ok", "fraud"])
    dX, dy, dw = in_blocks(np.round(X), y, weights)
    expected = wrappers(frozen, response_method=method)[number].fit(np.round(X), y, sample_weight=weights)
    found = wrappers(frozen, response_method=method)[number].fit(dX, dy, sample_weight=dw)
    assert found.threshold_ == expected.threshold_
    assert (found.n_calibration_, found.rank_) == (expected.n_calibration_, expected.rank_)
    predicted = found.predict(dX)
    assert isinstance(predicted, da.Array)
    assert predicted.compute().tolist() == expected.predict(np.round(X)).tolist()


@pytest.mark.parametrize("number", [0, 1])
def test_the_last_rows_are_held_out_as_in_memory(rows, number):
    X, y, weights = rows
    dX, dy, dw = in_blocks(X.astype(float), y, weights)
    model = TauFPL(tau=0.2, alpha=0.01, tol=1e-6)
    expected = wrappers(model, shuffle=False)[number].fit(X.astype(float), y, sample_weight=weights)
    found = wrappers(model, shuffle=False)[number].fit(dX, dy, sample_weight=dw)
    assert (found.n_calibration_, found.rank_) == (expected.n_calibration_, expected.rank_)
    assert found.threshold_ == pytest.approx(expected.threshold_, rel=1e-4)


def test_rows_drawn_at_random_do_not_depend_on_the_blocks(rows):
    X, y, _ = rows
    dX, dy = in_blocks(X.astype(float), y)
    models = [
        NeymanPearsonClassifier(TauFPL(tau=0.2), max_fpr=0.1, random_state=seed, pos_label="fraud").fit(*blocks)
        for seed, blocks in ((0, (dX, dy)), (0, (dX.rechunk((200, 3)), dy.rechunk(200))), (1, (dX, dy)))
    ]
    assert models[0].threshold_ == pytest.approx(models[1].threshold_, rel=1e-6)
    assert models[0].threshold_ != pytest.approx(models[2].threshold_, rel=1e-3)
    assert models[0].n_calibration_ == -(-np.sum(y == "ok") // 2)
    held_out = X[y == "ok"]
    assert 0 < np.mean(models[0].decision_function(held_out) > 0) < 0.1


@pytest.mark.parametrize("size", [{"k": 40}, {"share": 0.001}])
def test_the_best_rows_of_a_batch(rows, size):
    X, y, _ = rows
    coarse = np.round(X)  # ties
    dX, dy = in_blocks(coarse, y)
    model = TopKClassifier(FrozenEstimator(TauFPL(tau=0.2, pos_label="fraud").fit(X, y)), **size).fit(dX, dy)
    found = model.predict(dX)
    assert isinstance(found, da.Array)
    assert found.compute().tolist() == model.predict(coarse).tolist()


def test_what_is_wrong_is_named(rows):
    X, y, _ = rows
    dX, dy = in_blocks(X, y)
    with pytest.raises(ValueError, match="cv=5 is for rows in one memory"):
        NeymanPearsonClassifier(TauFPL(), cv=5, pos_label="fraud").fit(dX, dy)
    with pytest.raises(ValueError, match="needs at least 299 held-out negatives, got 240"):
        NeymanPearsonClassifier(TauFPL(), max_fpr=0.01, pos_label="fraud").fit(dX, dy)
    with pytest.raises(ValueError, match=r"share=0\.001 needs at least 999 held-out rows, got 150"):
        AlertShareClassifier(TauFPL(), share=0.001, pos_label="fraud").fit(dX, dy)
    with pytest.raises(ValueError, match="the class 'fraud' is missing"):
        AlertShareClassifier(TauFPL(), pos_label="fraud").fit(dX, dy, sample_weight=(y == "ok").astype(float))
    with pytest.raises(ValueError, match="groups are for rows in one memory"):
        TopKClassifier(TauFPL(tau=0.2), k=5, pos_label="fraud").fit(dX, dy).predict(dX, groups=y)
