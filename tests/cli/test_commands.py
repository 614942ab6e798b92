"""The commands, as a newcomer would use them."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file

import toprank
from cli.support import files_in, run, transactions
from toprank.persistence import load


def test_fit_says_what_it_did(fitted, tmp_path):
    data = fitted / "train.csv"
    result = run("fit", data, "-t", "fraud", "--positive", "yes", "--id", "transaction", "-m", tmp_path / "m")
    assert result.exit_code == 0
    for part in (
        "PatMatNP fitted to 2,400 of 3,000 rows",
        "2 numbers, 1 true/false, 1 category",
        "column       type        missing  what is done with it",
        "missing: the median, and a column that says so",
        "left out: dates are not used",
        "left out: it is text with",
        "the labels; yes is positive",
        "identifies a row",
        "duality gap",
        "measured on the 600 rows held out",
        "95 % interval",
        "a forest often finds more at the top, in more time: try --method forest",
        f"toprank report {data} --model",
    ):
        assert part in result.stdout


def test_from_fit_to_score(fitted, tmp_path):
    model = fitted / "model.toprank"
    evaluated = json.loads(run("evaluate", fitted / "test.csv", "-m", model, "--json").stdout)
    assert (evaluated["rows"], evaluated["positives"]) == (800, (transactions(800, 1)["fraud"] == "yes").sum())
    for one in evaluated["measures"]:
        assert one["lower"] <= one["value"] <= one["upper"], one
    report = run("report", fitted / "test.csv", "-m", model, "-o", tmp_path / "r.html", "--title", "My alerts")
    assert report.exit_code == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>My alerts</h1>" in page
    assert "labelled yes in the column fraud" in page
    assert 'class="hit">yes ●' in page
    scored = run("score", fitted / "new.csv", "-m", model, "-o", tmp_path / "scores.csv", "--json")
    record = json.loads(scored.stdout)
    scores = pl.read_csv(tmp_path / "scores.csv")
    assert scores.columns == ["transaction", "score", "decision"]
    assert scores["transaction"].to_list() == transactions(800, 1)["transaction"].to_list()
    assert scores["decision"].sum() == record["above"] == evaluated["alerts"]
    assert (record["rows"], record["written"]) == (800, 800)
    assert files_in(tmp_path) == ["r.html", "scores.csv"]


def test_a_model_against_a_column_of_scores(fitted, tmp_path):
    table = transactions(800, seed=1)
    random = np.random.default_rng(0)
    table = table.with_columns(incumbent=pl.Series((table["fraud"] == "yes").to_numpy() + random.normal(size=800)))
    table.write_csv(tmp_path / "test.csv")
    options = ("-m", fitted / "model.toprank", "--score", "incumbent")
    record = json.loads(run("evaluate", tmp_path / "test.csv", *options, "--json").stdout)
    alone = json.loads(run("evaluate", tmp_path / "test.csv", *options[:2], "--json").stdout)
    assert record["columns"]["PatMatNP"] == alone["measures"][3:]
    (difference,) = (found[-1] for found in record["differences"].values())
    assert (
        difference["value"] == record["columns"]["PatMatNP"][-1]["value"] - record["columns"]["incumbent"][-1]["value"]
    )
    assert run("report", tmp_path / "test.csv", *options, "-o", tmp_path / "r.html").exit_code == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "PatMatNP − incumbent" in page
    assert "Certificate" in page
    lines = (tmp_path / "test.csv").read_text().splitlines()
    lines[5] = ",".join([*lines[5].split(",")[:-1], ""])
    (tmp_path / "test.csv").write_text("\n".join(lines))
    refused = run("evaluate", tmp_path / "test.csv", *options)
    assert refused.exit_code == 1
    assert "has no score in the column 'incumbent'" in refused.stderr


def test_scores_are_those_of_the_loaded_model(fitted, tmp_path):
    run("score", fitted / "new.csv", "-m", fitted / "model.toprank", "-o", tmp_path / "s.csv")
    model = load(fitted / "model.toprank")
    table = transactions(800, seed=1).with_columns(country=pl.col("country").replace("NA", None))
    scores = pl.read_csv(tmp_path / "s.csv")["score"].to_numpy()
    np.testing.assert_allclose(scores, model.decision_function(table), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "count"), [(("--top", "7"), 7), (("--share", "0.01"), 8), (("--top", "9999"), 800)]
)
def test_only_the_best_rows(fitted, tmp_path, options, count):
    whole, best = tmp_path / "whole.csv", tmp_path / "best.csv"
    run("score", fitted / "new.csv", "-m", fitted / "model.toprank", "-o", whole)
    result = run("score", fitted / "new.csv", "-m", fitted / "model.toprank", "-o", best, *options)
    assert result.exit_code == 0
    expected = pl.read_csv(whole).sort("score", descending=True, maintain_order=True).head(count)
    assert pl.read_csv(best).equals(expected)


def test_scores_on_standard_output(fitted):
    result = run("score", fitted / "new.csv", "-m", fitted / "model.toprank", "-o", "-", "--top", "3")
    assert result.stdout.splitlines()[0] == "transaction,score,decision"
    assert len(result.stdout.splitlines()) == 4


def test_extra_columns_are_noted_and_missing_ones_named(fitted, tmp_path):
    table = transactions(30, seed=2).drop("fraud")
    table.with_columns(more=pl.lit(1)).write_csv(tmp_path / "extra.csv")
    table.drop("amount").write_csv(tmp_path / "missing.csv")
    out = tmp_path / "out.csv"
    extra = run("score", tmp_path / "extra.csv", "-m", fitted / "model.toprank", "-o", out)
    assert extra.exit_code == 0
    assert extra.stderr == "note: the model does not know these columns, and they are not looked at: 'more'\n"
    assert run("score", tmp_path / "extra.csv", "-m", fitted / "model.toprank", "-o", out, "-q").stderr == ""
    missing = run("score", tmp_path / "missing.csv", "-m", fitted / "model.toprank", "-o", tmp_path / "no.csv")
    assert missing.exit_code == 1
    assert "has no column 'amount'" in missing.stderr
    assert "no.csv" not in files_in(tmp_path)


def test_rows_of_the_fit_are_not_tested_with(fitted, tmp_path):
    at_fit = load(fitted / "model.toprank").summary_["held_out"]
    result = run("evaluate", fitted / "train.csv", "-m", fitted / "model.toprank", "--json")
    record = json.loads(result.stdout)
    assert {key: record[key] for key in at_fit} == at_fit
    assert "only the 600 rows that were held out" in record["notes"][0]
    options = ("-t", "fraud", "--positive", "yes", "--id", "transaction", "--holdout", "0")
    asked = run("fit", fitted / "train.csv", *options, "-m", tmp_path / "m", "--method", "linear")
    assert asked.exit_code == 0
    assert "--method forest" not in asked.stdout
    assert "too good" in run("evaluate", fitted / "train.csv", "-m", tmp_path / "m").stderr


def test_guarantee_and_search_in_json(fitted, tmp_path):
    result = run(
        *("fit", fitted / "train.csv", "-t", "fraud", "--positive", "yes", "--method", "TauFPL", "--search"),
        *("--max-fpr", "0.05", "--confidence", "0.9", "--ignore", "note", "-m", tmp_path / "m", "--json"),
    )
    record = json.loads(result.stdout)
    assert record["method"] == "TauFPL"
    assert record["parameters"]["tau"] == 0.05
    assert record["search"]["parameters"]["rank__alpha"] == record["parameters"]["alpha"]
    assert (record["threshold"]["max_fpr"], record["threshold"]["confidence"]) == (0.05, 0.9)
    assert record["threshold"]["fpr_bound"] <= 0.05
    assert "note" not in {**record["columns"], **record["left_out"]}
    assert run("score", fitted / "new.csv", "-m", tmp_path / "m", "-o", tmp_path / "s.csv").exit_code == 0


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "npy", "svm"])
def test_all_formats(tmp_path, ending):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    y = (X[:, 0] + random.normal(size=400) > 1.5).astype(int)
    path, target = tmp_path / f"data.{ending}", ("--target", "y")
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(y=pl.Series(y))
    if ending == "svm":
        dump_svmlight_file(X, y, str(path), zero_based=False)
        target = ()
    elif ending == "npy":
        np.save(path, np.column_stack([X, y]))
        target = ("--target", "3")
    elif ending == "npz":
        np.savez(path, X=X, y=y)
    else:
        frame.write_csv(path) if ending == "csv" else frame.write_parquet(path)
    model, out = tmp_path / "m", tmp_path / "s.csv"
    assert run("fit", path, *target, "-m", model, "--alpha", "0.01").exit_code == 0
    assert run("score", path, "-m", model, "-o", out).exit_code == 0
    scores = pl.read_csv(out)
    assert scores["row"].to_list() == list(range(1, 401))
    assert toprank.metrics.wmw_score(y, scores["score"].to_numpy()) > 0.8
    assert json.loads(run("evaluate", path, "-m", model, "--json").stdout)["rows"] == 80
    assert run("report", path, "-m", model, "-o", tmp_path / "r.html").exit_code == 0


def test_compare(fitted):
    result = run(
        *("compare", fitted / "train.csv", "-t", "fraud", "--positive", "yes", "--id", "transaction", "--folds", "2"),
        *("--method", "PatMatNP", "--method", "LogisticRegression", "--max-fpr", "0.05", "--json"),
    )
    record = json.loads(result.stdout)
    assert {row["estimator"] for row in record["rows"]} == {"PatMatNP", "LogisticRegression"}
    assert all(row["mean"] > 0.3 for row in record["rows"] if row["metric"].startswith("tpr_at_fpr"))
    text = run("compare", fitted / "train.csv", "-t", "fraud", "--positive", "yes", "--folds", "2", "--search")
    assert text.stdout.count("p (Holm)") == 3


def test_stream(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 3)) * [1, 10, 100] + [0, 5, 1000]
    y = (X[:, 0] + random.normal(size=3000) > 2).astype(int)
    frame = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(y=pl.Series(y), name=pl.lit("text"))
    frame.write_csv(tmp_path / "d.csv")
    model, again = tmp_path / "m", tmp_path / "m2"
    options = ("-t", "y", "--ignore", "name", "--window", "1000")
    result = run("stream", tmp_path / "d.csv", *options, "-m", model, "--checkpoint", tmp_path / "run", "--json")
    record = json.loads(result.stdout)
    assert record["rows"] == 3000
    assert record["history"]["auc"][-1] > 0.8
    assert run("score", tmp_path / "d.csv", "-m", model, "-o", tmp_path / "s.csv").exit_code == 0
    assert toprank.metrics.wmw_score(y, pl.read_csv(tmp_path / "s.csv")["score"].to_numpy()) > 0.8
    resumed = run("stream", tmp_path / "d.csv", *options, "-m", model, "--checkpoint", tmp_path / "run")
    assert "after 3,000 rows" in resumed.stderr
    assert run("stream", tmp_path / "d.csv", *options, "-m", again, "--start", model).exit_code == 0
    other = run("stream", tmp_path / "d.csv", *options, "--ignore", "c", "-m", again, "--start", model)
    assert "columns" in other.stderr
    assert "CBR" in run("info", model).stdout


def test_info(fitted):
    text = run("info", fitted / "model.toprank").stdout
    for part in (
        "NeymanPearsonClassifier of ColumnTransformer → PatMatNP",
        "fraud, positive is yes",
        "amount       number",
    ):
        assert part in text
    record = json.loads(run("info", fitted / "model.toprank", "--json").stdout)
    assert record["versions"]["toprank"] == toprank.__version__
    assert record["id"] == "transaction"
    installed = json.loads(run("info", "--json").stdout)
    assert installed["missing"]["cli"] == []


def test_info_of_a_model_from_python(tmp_path):
    toprank.persistence.save(toprank.TopPush(alpha=0.25), tmp_path / "m")
    told = run("info", tmp_path / "m").stdout
    assert "0.25" in told
    assert told.splitlines()[0].endswith("m: TopPush")  # of nothing but itself
    (tmp_path / "d.csv").write_text("a\n1\n")
    result = run("score", tmp_path / "d.csv", "-m", tmp_path / "m", "-o", tmp_path / "s.csv")
    assert result.exit_code == 1
    assert "does not say which columns" in result.stderr


def test_demo(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("toprank.demo.main", lambda arguments: calls.append(arguments) or 0)
    assert run("demo", "-o", tmp_path / "folder").exit_code == 0
    assert calls == [[str(tmp_path / "folder")]]


def test_compile(monkeypatch):
    calls = []
    monkeypatch.setattr("toprank.compilation.main", calls.append)
    assert run("compile", "--only", "CBR").exit_code == 0
    assert run("compile").exit_code == 0
    assert calls == [["--only", "CBR"], ["--only", ""]]


def test_gamma_reaches_the_kernel(tmp_path):
    transactions(200).write_csv(tmp_path / "d.csv")
    fit = ("fit", tmp_path / "d.csv", "-t", "fraud", "--positive", "yes", "--id", "transaction", "-m", tmp_path / "m")
    assert run(*fit, "--kernel", "rbf", "--gamma", "0.125").exit_code == 0
    assert toprank.load(tmp_path / "m").estimator_[-1].gamma == 0.125
    assert "--gamma" in run(*fit, "--kernel", "rbf", "--gamma", "-1").stderr


def test_version_and_help():
    assert run("--version").stdout == f"toprank {toprank.__version__}\n"
    for command in ("fit", "score", "evaluate", "report", "compare", "stream", "export", "info", "compile", "demo"):
        text = run(command, "--help").stdout
        assert "Examples" in text
        assert f"toprank {command}" in text


def test_alerts_a_day_are_said_by_fit_and_evaluate(tmp_path):
    random = np.random.default_rng(0)
    lines = ["seconds,x,money,y"]
    for i in range(4000):
        y = int(random.random() < 0.1)
        lines.append(f"{i * 600},{random.normal() + 2 * y:.4f},{random.integers(1, 99)},{y}")
    path, model = tmp_path / "rows.csv", tmp_path / "m"
    path.write_text("\n".join(lines))
    options = ["-t", "y", "-m", model, "--time", "seconds", "--amount", "money"]
    fitted = run("fit", path, *options, "--budget", 20, "--per", "day")
    for words in (
        "20 alerts a day on average: 14 % of the rows, for rows like the 800 latest rows set aside for it",
        "measured on the last 800 rows by seconds held out:",
        "alerts a day on average over 5.5 days; 4 whole days have",
        "amount of positives caught",
    ):
        assert words in fitted.stdout
    measured = run("evaluate", path, "-m", model, "--per", "hour", "--json")
    assert json.loads(measured.stdout)["per_period"]["per"] == "hour"
    assert json.loads(measured.stdout)["per_period"]["rows"] == pytest.approx(6, rel=0.02)
    refused = run("fit", tmp_path / "none.csv", "-t", "y", "-m", model, "--max-fpr", 1)
    assert refused.exit_code == 2
    assert "--max-fpr must be strictly between 0 and 1" in " ".join(refused.stderr.replace("│", " ").split())


def test_info_of_a_table(fitted, tmp_path):
    result = run("info", fitted / "train.csv")
    assert result.exit_code == 0
    for part in ("3,000 rows", "what is done with it", "left out: dates are not used", "true/false"):
        assert part in result.stdout
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    assert "is a spreadsheet" in run("info", tmp_path / "a.xlsx").stderr
    (tmp_path / "b.csv").write_text("a;b\n" + "1,5;x\n2,25;y\n" * 5)
    record = json.loads(run("info", tmp_path / "b.csv", "--json").stdout)
    assert [one["type"] for one in record["columns"]] == ["number", "category"]
