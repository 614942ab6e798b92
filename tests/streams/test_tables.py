"""Streams of tables with text, gaps and messy numbers: used as by a fit, decided by the first rows."""

import json

import numpy as np
import polars as pl
import pytest

import messy
from cli.support import run
from toprank.files import value_counts
from toprank.files.columns import prepared
from toprank.files.estimators import table_pipeline
from toprank.files.rows import Rows
from toprank.online import OAM
from toprank.persistence import load, save
from toprank.streams import BadLineError, stream_table

OPTIONS = {"target": "label", "positive": "fraud", "id_column": "payment", "batch": 50, "window": 100}
USED = {
    **dict.fromkeys(("amount", "balance", "age", "minutes_since_last", "merchant_code"), "number"),
    "country": "category",
    "channel": "category",
    "abroad": "truth",
}


class Notes:
    """Who is told, and remembers it."""

    shows_progress = False

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(str(text))


@pytest.fixture(scope="module")
def cards():
    return messy.cards(600, share=0.2)


@pytest.fixture(scope="module")
def clean(cards, tmp_path_factory):
    path = tmp_path_factory.mktemp("clean") / "clean.csv"
    messy.write(path, cards)
    return stream_table(str(path), OAM(), first_rows=200, **OPTIONS)[0]


def learned(path, **options):
    told = Notes()
    model, result = stream_table(str(path), OAM(), **({"first_rows": 200, "watcher": told} | OPTIONS | options))
    return model, result, told.notes


def test_it_is_the_preparation_of_a_fit(cards, clean):
    """The same steps, fitted to the first rows, and then one batch after the other."""
    frame = pl.DataFrame(cards)
    y = (frame["label"] == "fraud").to_numpy().astype(int)
    X = prepared(frame, USED)
    steps = table_pipeline(USED, OAM(random_state=0))
    transformer, model = steps[0].fit(X[:200]), steps[1]
    for start in range(0, 600, 50):
        model.partial_fit(transformer.transform(X[start : start + 50]), y[start : start + 50], classes=[0, 1])
    assert clean.columns == USED
    np.testing.assert_array_equal(clean.estimator_[-1].coef_, model.coef_)
    np.testing.assert_array_equal(clean.decision_function(frame), model.decision_function(transformer.transform(X)))


def test_messy_files_give_the_model_of_the_clean_one(cards, clean, tmp_path):
    numbers = ("amount", "balance", "minutes_since_last")
    ways = {
        "crlf": (cards, {"crlf": True}, {}),
        "semicolon": (messy.with_separators(cards, numbers, thousands=".", decimal=","), {"delimiter": ";"}, {}),
        "asked": (messy.with_separators(cards, ("amount",)), {}, {"thousands": ","}),
        "latin": (cards | {"name": ["Müller", "Ng"] * 300}, {"encoding": "latin-1"}, {"encoding": "latin-1"}),
    }
    for name, (table, how, options) in ways.items():
        messy.write(tmp_path / f"{name}.csv", table, **how)
        model, _, _ = learned(tmp_path / f"{name}.csv", **options | ({"ignore": ["name"]} if name == "latin" else {}))
        np.testing.assert_array_equal(model.estimator_[-1].coef_, clean.estimator_[-1].coef_, err_msg=name)
    pl.read_csv(tmp_path / "crlf.csv").write_parquet(tmp_path / "p.parquet")
    model, _, _ = learned(tmp_path / "p.parquet")
    np.testing.assert_array_equal(model.estimator_[-1].coef_, clean.estimator_[-1].coef_)


@pytest.fixture(scope="module")
def changing(cards):
    """Five spellings of missing from the start; later new categories, stray marks, and a column that becomes text."""
    table = messy.with_missing(cards, ("amount", "country"))
    table["age"] = [*table["age"][:300], "?!", *table["age"][301:]]
    table["channel"] = [*table["channel"][:400], *["phone"] * 200]
    table["balance"] = [*table["balance"][:500], *["closed"] * 100]
    return table


def test_what_changes_later_is_named(changing, tmp_path):
    messy.write(tmp_path / "f.csv", changing)
    model, result, notes = learned(tmp_path / "f.csv")
    (age,) = [note for note in notes if "'age'" in note]
    assert "is a number but for '?!' (1, in line 302), which counts as missing" in age
    (balance,) = [note for note in notes if "'balance'" in note]
    assert "holds numbers in the first 200 rows, but 100 of its 600 values are none: 'closed' (100, first in line " in (
        balance
    )
    assert "502), which count as missing; if it holds text, start anew with types={'balance': 'category'}" in balance
    (channel,) = [note for note in notes if "'channel'" in note]
    assert "has values that the model has never seen: 'phone' (200 rows)" in channel
    absent = [value in messy.FIVE_MISSING for value in changing["amount"]]
    assert result.found.missing["amount"] == sum(absent) == model.summary_["missing"]["amount"]
    assert model.summary_["missing"]["balance"] == 100
    by_name = {one["name"]: one for one in model.summary_["table"]}
    assert by_name["country"]["missing"] == sum(value in messy.FIVE_MISSING for value in changing["country"])
    assert by_name["time"]["done"].startswith("left out: dates are not used")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_interrupted_and_resumed_is_the_same(changing, tmp_path, form):
    """A line that is bad stops the run; when it is corrected, the next run gives what one run gives."""
    spoiled = dict(changing)
    spoiled["label"] = [*changing["label"][:470], "", *changing["label"][471:]]
    paths = []
    for name, table in (("good", changing), ("spoiled", spoiled)):
        messy.write(tmp_path / f"{name}.csv", table)
        if form == "parquet":
            pl.read_csv(tmp_path / f"{name}.csv", infer_schema=False).write_parquet(tmp_path / f"{name}.parquet")
        paths.append(tmp_path / f"{name}.{form}")
    good, spoiled = paths
    types = {} if form == "csv" else {"types": {name: "number" for name, kind in USED.items() if kind == "number"}}
    whole, result, notes = learned(good, **types)
    checkpoint = str(tmp_path / "run")
    if form == "csv":
        with pytest.raises(BadLineError, match="line 472"):
            learned(spoiled, checkpoint=checkpoint)
        good.rename(spoiled)
        resumed, second, told = learned(spoiled, checkpoint=checkpoint)
        assert second.resumed_at == 450
    else:  # it is known by its end: a run to the end, and once more
        learned(good, checkpoint=checkpoint, **types)
        resumed, second, told = learned(good, checkpoint=checkpoint, **types)
        assert second.resumed_at == 600
    assert told == [note for note in notes if note in told]  # those of the first rows were said before
    assert {note for note in notes if "never seen" in note or "are none" in note} <= {*told}
    np.testing.assert_array_equal(resumed.estimator_[-1].coef_, whole.estimator_[-1].coef_)
    assert resumed.columns == whole.columns
    assert second.found.record() == result.found.record()
    assert resumed.summary_["table"] == whole.summary_["table"]
    for name in result.history:
        np.testing.assert_array_equal(second.history[name], result.history[name])


def test_a_pipe_and_the_model_that_it_gives(changing, tmp_path):
    """From the terminal: the same from a pipe, and the saved model scores, evaluates and reports on raw files."""
    path = tmp_path / "f.csv"
    messy.write(path, changing)
    options = ("-t", "label", "--positive", "fraud", "--id", "payment", "--method", "OAM", "--batch", 50, "-q")
    options = (*options, "--first-rows", 200, "-m")
    assert run("stream", path, *options, tmp_path / "m").exit_code == 0
    piped = run("stream", "-", *options, tmp_path / "p", "--format", "csv", input=path.read_bytes())
    assert piped.exit_code == 0, piped.stderr
    model = load(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "p").estimator_[-1].coef_, model.estimator_[-1].coef_)
    messy.write(tmp_path / "raw.csv", messy.part(changing, slice(0, 300)))
    assert run("score", tmp_path / "raw.csv", "-m", tmp_path / "m", "-o", tmp_path / "s.csv").exit_code == 0
    scores = pl.read_csv(tmp_path / "s.csv")["score"].to_numpy()
    np.testing.assert_allclose(scores, model.decision_function(pl.DataFrame(changing)[:300]), rtol=1e-9)
    measured = json.loads(run("evaluate", tmp_path / "raw.csv", "-m", tmp_path / "m", "--json").stdout)
    assert measured["rows"] == 300
    assert run("report", tmp_path / "raw.csv", "-m", tmp_path / "m", "-o", tmp_path / "r.html").exit_code == 0
    shown = run("info", tmp_path / "m").stdout
    assert "country             category" in shown
    assert "learned_from" not in shown
    again = run("stream", path, *options, tmp_path / "n", "--start", tmp_path / "m")
    assert again.exit_code == 0, again.stderr
    assert load(tmp_path / "n").estimator_[-1].n_samples_seen_ == 1200


def test_a_model_of_an_earlier_version_goes_on(tmp_path):
    """It has arrays of numbers, without a step for gaps: lines with gaps are bad, as they were."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from toprank.files import TableModel

    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 2)), np.arange(40) % 2
    steps = Pipeline([("scale", StandardScaler().fit(X)), ("rank", OAM().fit(X, y))])
    old = TableModel(steps, {"a": "number", "b": "number"}, as_array=True, target="y").keep_fitted(steps)
    save(old, tmp_path / "m")
    lines = [f"{b!r},{a!r},{label}" for (a, b), label in zip(X.tolist(), y.tolist(), strict=True)]
    (tmp_path / "f.csv").write_text("\n".join(["b,a,y", *lines, "1,,0", ""]))
    start = load(tmp_path / "m")
    with pytest.raises(BadLineError, match="column 'a' has no value"):
        stream_table(str(tmp_path / "f.csv"), OAM(), target="y", start=start)
    model, result = stream_table(str(tmp_path / "f.csv"), OAM(), target="y", start=start, on_bad_line="skip")
    assert (result.n_rows, result.n_bad_lines) == (40, 1)
    expected = load(tmp_path / "m").estimator_
    expected[-1].partial_fit(expected[0].transform(X), y)
    np.testing.assert_array_equal(model.estimator_[-1].coef_, expected[-1].coef_)


def test_rows_without_some_count_them_as_bad_lines():
    random = np.random.default_rng(0)
    for _ in range(50):
        n_rows = int(random.integers(1, 8))
        skipped, wrong = random.integers(0, 3, n_rows), random.random(n_rows) < 0.4
        rows = Rows(np.arange(n_rows)[:, None], *(np.arange(n_rows) for _ in range(3)), skipped)
        left, waiting, expected = rows.without(wrong), 0, []
        for i in range(n_rows):
            waiting += skipped[i] + wrong[i]
            if not wrong[i]:
                expected.append(waiting)
                waiting = 0
        assert left.skipped.tolist() == expected
        assert left.y.tolist() == np.flatnonzero(~wrong).tolist()


def test_counts_of_values_stay_small(monkeypatch):
    monkeypatch.setattr(value_counts, "MOST_VALUES", 3)
    counts = value_counts.ValueCounts()
    counts.add(["a", "b", "a", "c", "d", "e", "x" * 500])
    counts.add({"a": 2, "d": 5})
    assert (dict(counts.counts), counts.n_other) == ({"a": 4, "b": 1, "c": 1}, 8)
    again = value_counts.ValueCounts(**counts.record())
    assert again.record() == counts.record()
