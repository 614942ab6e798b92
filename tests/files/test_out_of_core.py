"""Rows that stay in their file: the model of a fit in memory, whatever the blocks are."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toprank import CBR, PatMatNP, TauFPL, TopForest
from toprank.decision import _blocks as blocks
from toprank.files import evaluate_file, fit_file, out_of_core, score_file

pytest.importorskip("dask")


class Notes:
    shows_progress = False

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(str(text))

    def progress(self, title, total=None):
        from contextlib import nullcontext

        return nullcontext(lambda position, title="": None)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    fraud = rng.random(900) < 0.2
    x = rng.standard_normal((900, 3)) + 1.2 * fraud[:, None]
    x[::50, 0] = np.nan
    country = np.where(x[:, 1] > 1, "DE", np.where(x[:, 2] > 0, "FR", "IT"))
    label = [None if i % 97 == 0 else int(positive) for i, positive in enumerate(fraud)]
    columns = {"amount": 40 * x[:, 0] + 7, "age": x[:, 1], "visits": x[:, 2], "country": country}
    return pl.DataFrame({**columns, "when": np.arange(900), "fraud": label}).with_columns(
        pl.col("amount").fill_nan(None)
    )


@pytest.fixture
def parquet(table, tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "BLOCK_VALUES", 2500)
    path = tmp_path / "payments.parquet"
    table.write_parquet(path)
    return path


def scores_of(path, model, folder):
    score_file(path, model, folder / "scores.csv", watcher=Notes())
    return pl.read_csv(folder / "scores.csv")["score"].to_numpy()


@pytest.mark.parametrize(
    "rule",
    [{"id_column": "when"}, pytest.param({"share": 0.1, "time": "when"}, marks=pytest.mark.slow)],
)
def test_the_model_of_a_fit_in_memory(parquet, tmp_path, rule):
    watcher = Notes()
    estimator = PatMatNP(tau=0.1, tol=1e-7, threshold="trained")
    expected = fit_file(parquet, estimator, target="fraud", out_of_core=False, watcher=Notes(), **rule)
    found = fit_file(parquet, estimator, target="fraud", out_of_core=True, watcher=watcher, **rule)
    assert any("its rows stay in the file" in note for note in watcher.notes)
    assert any("passes over" in note for note in watcher.notes)
    assert type(found.estimator_) is type(expected.estimator_)
    first, second = (scores_of(parquet, model, tmp_path) for model in (expected, found))
    # where rows set the threshold, the scales are those of the rows before them
    assert second == pytest.approx(first, abs=(1e-4 if "id_column" in rule else 0.1) * np.abs(first).max())
    assert found.summary_["held_out"]["rows"] == expected.summary_["held_out"]["rows"]
    assert found.columns == expected.columns
    assert found.summary_["table"] == expected.summary_["table"]
    assert found.means_ == pytest.approx(expected.means_, abs=0.2)


@pytest.mark.parametrize("shuffle", [False, True])
def test_rows_that_set_the_threshold_are_new_to_the_preparation(parquet, monkeypatch, shuffle):
    prepared, seen = [], []
    to_prepare, held_out = out_of_core._to_prepare, blocks.held_out_rows

    def watched(X, y, shuffled):
        chosen = to_prepare(X, y, shuffled)
        prepared.append(X.sample_rows[chosen])
        return chosen

    def watched_too(*given):
        found = held_out(*given)
        seen.append(np.concatenate(found[0].on_blocks(np.asarray)))
        return found

    monkeypatch.setattr(out_of_core, "_to_prepare", watched)
    monkeypatch.setattr(blocks, "held_out_rows", watched_too)
    options = {"target": "fraud", "holdout": 0, "out_of_core": True, "in_order": not shuffle, "watcher": Notes()}
    model = fit_file(parquet, TauFPL(tau=0.1), max_fpr=0.1, ignore=["when"], **options)
    labelled = np.array([i for i in range(900) if i % 97])
    rows = np.setdiff1d(labelled, prepared[0]) if shuffle else labelled
    assert len(prepared[0]) >= 80
    assert model.estimator_.n_calibration_ == seen[0].sum() > 150
    assert not np.intersect1d(rows[seen[0]], prepared[0]).size


def test_numpy_files_and_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "BLOCK_VALUES", 1500)
    monkeypatch.setattr(out_of_core, "SAMPLE_ROWS", 600)
    rng = np.random.default_rng(0)
    y = rng.random(1000) < 0.3
    rows = np.column_stack([rng.standard_normal((1000, 3)) + y[:, None], y])
    for name, array in (("rows.npy", rows), ("columns.npy", np.asfortranarray(rows))):
        np.save(tmp_path / name, array)
        estimator = TauFPL(tau=0.1, threshold="trained")
        model = fit_file(tmp_path / name, estimator, target="3", out_of_core=True, watcher=Notes())
        assert 0.8 < model.summary_["held_out"]["measures"][-1]["value"] < 1
        assert model.summary_["held_out"]["rows"] == 200
        in_memory = fit_file(tmp_path / name, estimator, target="3", out_of_core=False)
        directions = [fitted.estimator_[-1].coef_[0] for fitted in (model, in_memory)]
        # the scales are those of 600 of the rows
        assert directions[0] @ directions[1] > 0.995 * np.prod([np.linalg.norm(w) for w in directions])


def test_features_in_place_of_a_kernel(parquet, tmp_path, monkeypatch):
    monkeypatch.setattr(out_of_core, "_BLOCK_FEATURES", 4000)
    estimator = PatMatNP(tau=0.1, kernel="rbf", approximation="fourier", n_components=20, random_state=0)
    estimator.set_params(tol=1e-6, threshold="trained")
    options = {"target": "fraud", "ignore": ["when"], "holdout": 0}
    expected = fit_file(parquet, estimator, out_of_core=False, watcher=Notes(), **options)
    found = fit_file(parquet, estimator, out_of_core=True, watcher=Notes(), **options)
    first, second = (scores_of(parquet, model, tmp_path) for model in (expected, found))
    assert second == pytest.approx(first, abs=1e-4 * np.abs(first).max())


def test_a_forest_whose_sample_has_all_rows_is_that_of_memory(parquet, tmp_path):
    pytest.importorskip("dask.dataframe")
    forest, options = TopForest(tau=0.1, n_estimators=5, random_state=0), {"target": "fraud", "ignore": ["when"]}
    expected = fit_file(parquet, forest, out_of_core=False, watcher=Notes(), **options)
    found = fit_file(parquet, forest, out_of_core=True, watcher=Notes(), **options)
    np.testing.assert_array_equal(*(scores_of(parquet, model, tmp_path) for model in (expected, found)))
    assert found.summary_["held_out"] == expected.summary_["held_out"]


def test_a_forest_of_a_sample_and_a_head_over_all_rows(parquet):
    pytest.importorskip("dask.dataframe")
    forest = TopForest(tau=0.1, n_estimators=5, sample_rows=300, random_state=0)
    model = fit_file(parquet, forest, target="fraud", max_fpr=0.2, confidence=0.5, out_of_core=True, watcher=Notes())
    rows = model.estimator_.estimator_.selection_["rows"]
    assert rows["sample"] == 300 < rows["head"] < rows["all"]
    assert model.estimator_.estimator_.dual_gap_ <= forest.tol
    assert 0.3 < model.summary_["held_out"]["measures"][-1]["value"] <= 1


def test_it_is_chosen_by_size_against_memory(parquet, monkeypatch):
    monkeypatch.setattr(out_of_core, "free_memory", lambda: 1e5)
    watcher = Notes()
    model = fit_file(parquet, TauFPL(tau=0.1), target="fraud", watcher=watcher)
    assert watcher.notes[0].startswith(f"'{parquet}' takes 0.0 GB in memory")
    assert model.estimator_[-1].threshold_from_ == "out-of-fold scores"
    in_file = evaluate_file(parquet, model, watcher=watcher)
    assert any("only the 178 rows that were held out" in note for note in watcher.notes)
    forest = TopForest(n_estimators=5, random_state=0)
    assert fit_file(parquet, forest, target="fraud", watcher=Notes()).summary_["method"] == "TopForest"
    monkeypatch.undo()
    assert evaluate_file(parquet, model, watcher=Notes()) == in_file


def test_what_is_wrong_is_named(parquet, table, tmp_path):
    fit = {"target": "fraud", "out_of_core": True, "watcher": Notes()}
    with pytest.raises(ValueError, match=r"and CBR is here none of these; use one of them"):
        fit_file(parquet, CBR(), **fit)
    with pytest.raises(ValueError, match=r"out_of_core fits one model, and search many"):
        fit_file(parquet, TauFPL(), search=True, **fit)
    table.write_csv(tmp_path / "payments.csv")
    with pytest.raises(ValueError, match=r"is for Parquet and \.npy files, and '.*payments\.csv' is none"):
        fit_file(tmp_path / "payments.csv", TauFPL(), **fit)
    table.sample(fraction=1.0, shuffle=True, seed=0).write_parquet(tmp_path / "shuffled.parquet")
    with pytest.raises(ValueError, match=r"not in the order of time.*sort it by time first"):
        fit_file(tmp_path / "shuffled.parquet", TauFPL(tau=0.1), time="when", **fit)
