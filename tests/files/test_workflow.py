"""Fitting, measuring and scoring from Python, as the commands do it."""

import io

import numpy as np
import polars as pl
import pytest

import toprank.streams.run as run_module
import toprank.streams.table_stream as table_stream_module
from cli.support import run
from toprank import CBR, TauFPL
from toprank.exceptions import InputError
from toprank.files import TableError, content, evaluate_file, fit_file, score_file
from toprank.persistence import load, save
from toprank.streams import stream_table


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.3
    columns = {"id": range(400), "x": rng.normal(size=400) + 2 * y, "c": rng.choice(["a", "b"], 400), "y": y}
    frame = pl.DataFrame(columns)
    frame.write_csv(tmp_path / "train.csv")
    return frame


def test_a_model_of_python_is_that_of_the_command(table, tmp_path):
    model = fit_file(tmp_path / "train.csv", TauFPL(tau=0.05, random_state=0), target="y", id_column="id")
    command = ["fit", tmp_path / "train.csv", "-t", "y", "--id", "id", "--method", "TauFPL", "--tau", "0.05"]
    assert run(*command, "-m", tmp_path / "m").exit_code == 0
    other = load(tmp_path / "m")
    np.testing.assert_array_equal(model.decision_function(table), other.decision_function(table))
    changing = {"fitted", "seconds"}
    left, right = ({k: v for k, v in one.summary_.items() if k not in changing} for one in (model, other))
    assert left == right


def test_notes_are_warnings(table, tmp_path):
    with pytest.warns(UserWarning, match="another whole number in every row"):
        model = fit_file(tmp_path / "train.csv", TauFPL(tau=0.05), target="y")
    with pytest.warns(UserWarning, match="only the 80 rows that were held out"):
        measures = evaluate_file(tmp_path / "train.csv", model, k=[5])
    assert measures.record() == model.summary_["held_out"] | {"measures": measures.record()["measures"]}
    assert "precision_at_5" in [one.name for one in measures.values]
    with (
        pytest.warns(UserWarning, match="held out"),
        pytest.raises(InputError, match="k must not be more than the 80 rows, got 81"),
    ):
        evaluate_file(tmp_path / "train.csv", model, k=[5, 81])


def test_scores_in_a_file_and_in_a_stream(table, tmp_path):
    model = fit_file(tmp_path / "train.csv", TauFPL(tau=0.05), target="y", id_column="id", holdout=0)
    counts = score_file(tmp_path / "train.csv", model, tmp_path / "scores.csv")
    scores = pl.read_csv(tmp_path / "scores.csv")
    np.testing.assert_allclose(scores["score"], model.decision_function(table), rtol=1e-12, atol=1e-12)
    assert (counts.rows, counts.written, counts.above) == (400, 400, int(scores["decision"].sum()))
    stream = io.BytesIO()
    assert score_file(tmp_path / "train.csv", model, stream, share=0.05).written == 20
    best = pl.read_csv(stream.getvalue())
    assert best["id"].to_list() == scores.sort("score", descending=True).head(20)["id"].to_list()


def test_a_stream_with_its_columns(table, tmp_path):
    model, result = stream_table(str(tmp_path / "train.csv"), CBR(), target="y", id_column="id", ignore=["c"])
    assert (result.n_rows, model.columns, model.summary_["method"]) == (400, {"x": "number"}, "CBR")
    save(model, tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").decision_function(table), model.decision_function(table))
    again, _ = stream_table(str(tmp_path / "train.csv"), CBR(), target="y", ignore=["c", "id"], start=model)
    assert again.estimator_[-1].n_samples_seen_ == 800
    with pytest.warns(UserWarning, match="the model does not know these columns, and they are not looked at: 'id'"):
        extra, _ = stream_table(str(tmp_path / "train.csv"), CBR(), target="y", ignore=["c"], start=model)
    np.testing.assert_array_equal(extra.estimator_[-1].coef_, again.estimator_[-1].coef_)
    with pytest.raises(TableError, match=r"others than those of .*, which has no 'x' to learn from"):
        stream_table(str(tmp_path / "train.csv"), CBR(), target="y", ignore=["x"], start=model)
    with pytest.raises(ValueError, match="decimal is not for a model that goes on"):
        stream_table(str(tmp_path / "train.csv"), CBR(), target="y", decimal=",", start=model)


def test_header_and_checkpoint_are_read_once(table, tmp_path, monkeypatch):
    options = {"target": "y", "ignore": ["c"], "checkpoint": str(tmp_path / "run"), "id_column": "id"}
    stream_table(str(tmp_path / "train.csv"), CBR(), **options)
    read = {"checkpoint": 0, "header": 0}

    def counted(name, function):
        def call(*arguments, **keywords):
            read[name] += 1
            return function(*arguments, **keywords)

        return call

    for module in (table_stream_module, run_module):
        monkeypatch.setattr(module, "content_of", counted("checkpoint", module.content_of))
    monkeypatch.setattr(content.Content, "__init__", counted("header", content.Content.__init__))
    _, result = stream_table(str(tmp_path / "train.csv"), CBR(), **options)
    assert result.resumed_at == 400
    assert read == {"checkpoint": 1, "header": 1}
