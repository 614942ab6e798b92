"""Scores of any model as columns of a file: measured, compared, and refused where one is missing."""

import json

import numpy as np
import polars as pl
import pytest

from cli.support import files_in, run
from toprank.files import TableError, evaluate_scores
from toprank.files.measures import measure, measure_scores
from toprank.metrics import precision_at_k, tpr_at_fpr, wmw_score


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    y = random.random(600) < 0.15
    ours = (random.normal(size=600) + 2 * y).round(4)
    theirs = (ours + random.normal(size=600)).round(2)
    return pl.DataFrame(
        {
            "payment": [f"P{i}" for i in range(600)],
            "ours": ours,
            "incumbent": theirs,
            "amount": random.lognormal(3, 1, 600).round(2),
            "fraud": np.where(y, "yes", "no"),
        }
    )


@pytest.fixture
def path(table, tmp_path):
    table.write_csv(tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


def test_measures_are_the_metrics(table, path):
    found = evaluate_scores(path, ["ours", "incumbent"], target="fraud", positive="yes", k=[20], fpr=[0.05])
    y = (table["fraud"] == "yes").to_numpy()
    assert (found.rows, found.positives) == (600, y.sum())
    for name in ("ours", "incumbent"):
        scores = table[name].to_numpy()
        values = {one.name: one.value for one in found.columns[name]}
        expected = {
            "precision_at_20": precision_at_k(y, scores, k=20),
            "positives_at_top": tpr_at_fpr(y, scores, max_fpr=0),
            "tpr_at_fpr_0.05": tpr_at_fpr(y, scores, max_fpr=0.05),
            "auc": wmw_score(y, scores),
        }
        assert values == pytest.approx(expected)
    for one, mine, other in zip(found.differences["incumbent"], *found.columns.values(), strict=True):
        assert one.value == pytest.approx(mine.value - other.value)
        assert one.lower <= one.value <= one.upper
        assert one.upper - one.lower < mine.upper - mine.lower + other.upper - other.lower  # pairs tell more


def test_one_column_has_the_measures_of_a_model(table):
    y, scores = (table["fraud"] == "yes").to_numpy().astype(int), table["ours"].to_numpy()
    (values,) = measure_scores(y, {"ours": scores}).columns.values()
    assert values == measure(y, scores).values[3:]  # but for those of a threshold


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_all_formats(table, tmp_path, ending):
    path = tmp_path / f"scores.{ending}"
    y = (table["fraud"] == "yes").to_numpy().astype(int)
    if ending == "npz":
        np.savez(path, ours=table["ours"], fraud=y)
    else:
        getattr(table.with_columns(fraud=pl.Series(y)), f"write_{ending}")(path)
    found = evaluate_scores(path, "ours" if ending == "csv" else ["ours"], target="fraud")
    assert found.columns["ours"][-1].value == pytest.approx(wmw_score(y, table["ours"].to_numpy()))
    assert found.differences == {}


def test_rows_without_a_label_need_no_score(table, tmp_path):
    gaps = pl.Series(np.arange(600) % 7 == 3)
    there = table.with_columns(
        fraud=pl.when(gaps).then(None).otherwise(pl.col("fraud")), ours=pl.when(gaps).then(None).otherwise("ours")
    )
    there.write_csv(tmp_path / "gaps.csv")
    with pytest.warns(UserWarning, match="86 rows without a label in 'fraud' are left out"):
        found = evaluate_scores(tmp_path / "gaps.csv", ["ours"], target="fraud", positive="yes")
    rest = table.filter(~gaps)
    assert found.columns["ours"][-1].value == pytest.approx(wmw_score(rest["fraud"] == "yes", rest["ours"]))


@pytest.mark.parametrize(
    ("value", "said"), [("", "has no score in the column 'ours'"), ("inf", "has the score inf in the column 'ours'")]
)
def test_missing_scores_are_refused_with_their_place(table, tmp_path, value, said):
    lines = table.write_csv().splitlines()
    for row in (41, 300):
        cells = lines[row].split(",")
        lines[row] = ",".join([cells[0], value, *cells[2:]])
    (tmp_path / "missing.csv").write_text("\n".join(lines))
    with pytest.raises(TableError, match=rf"line 42 of .*{said}, and 1 more rows have none; every row with a label"):
        evaluate_scores(tmp_path / "missing.csv", ["incumbent", "ours"], target="fraud", positive="yes")


def test_lines_are_those_of_the_file(table, tmp_path):
    """Blank lines and fields over several lines count; a stray mark is named too, beside a model as well."""
    lines = table.write_csv().splitlines()
    lines[1] = lines[1].replace("P0", '"P\n0"')
    lines[3] += "\n"
    cells = lines[7].split(",")
    for value, said in (("", "line 10 of .* has no score"), ("?!", r"'\?!' \(1, in line 10\), which is not a number")):
        changed = [*lines[:7], ",".join([cells[0], value, *cells[2:]]), *lines[8:]]
        (tmp_path / "odd.csv").write_text("\n".join(changed))
        with pytest.raises(TableError, match=said):
            evaluate_scores(tmp_path / "odd.csv", ["ours"], target="fraud", positive="yes")


def test_decimal_commas(table, tmp_path):
    text = table.select("ours", "fraud").write_csv(separator=";").replace(".", ",")
    (tmp_path / "commas.csv").write_text(text)
    found = evaluate_scores(tmp_path / "commas.csv", ["ours"], target="fraud", positive="yes")
    y = (table["fraud"] == "yes").to_numpy()
    assert found.columns["ours"][-1].value == wmw_score(y, table["ours"].to_numpy())


REFUSED = {
    "unknown": ((["our"],), "has no column 'our'"),
    "none": (([],), "scores must name a column"),
    "twice": ((["ours", "ours"],), "the column 'ours' is named twice"),
    "target": ((["fraud"],), "the column 'fraud' is named twice"),
    "text": ((["payment"],), "'P0'"),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_refused(path, case):
    (scores,), message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        evaluate_scores(path, scores, target="fraud", positive="yes")


def test_svmlight_has_no_columns_of_scores(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\n-1 1:3\n")
    with pytest.raises(TableError, match="svmlight file; give CSV, Parquet or NumPy"):
        evaluate_scores(tmp_path / "rows.svm", ["ours"])


def test_evaluate_command(path):
    options = ("--target", "fraud", "--positive", "yes")
    one = run("evaluate", path, "--score", "ours", *options)
    assert one.exit_code == 0
    assert "600 rows of" in one.stdout
    assert "differences" not in one.stdout
    assert "are positive (fraud is yes):" in one.stdout
    both = run("evaluate", path, "--score", "ours", "--score", "incumbent", *options)
    assert "ours - incumbent" in both.stdout
    record = json.loads(run("evaluate", path, "--score", "ours", "--score", "incumbent", *options, "--json").stdout)
    assert list(record["columns"]) == ["ours", "incumbent"]
    difference = record["differences"]["incumbent"][-1]
    assert f"{difference['value']:+.4f} ({difference['lower']:+.4f} to {difference['upper']:+.4f})" in both.stdout


def test_report_command(table, path, tmp_path):
    options = ("--target", "fraud", "--positive", "yes", "--id", "payment", "-o", tmp_path / "r.html")
    result = run("report", path, "--score", "ours", "--score", "incumbent", *options)
    assert result.exit_code == 0
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    n = (table["fraud"] == "yes").sum()
    assert f"<h1>Of {n} cases of fraud, {n} alerts find " in page
    assert "labelled yes in the column fraud" in page
    assert "ours − incumbent" in page
    best = table.sort("ours", descending=True).row(0, named=True)
    assert f"<td>{best['payment']}</td>" in page
    assert f'data-label="amount">{best["amount"]:g}</td>' in page


def test_a_model_or_scores(path, tmp_path):
    for command in ("evaluate", "report"):
        nothing = run(command, path, "--target", "fraud")
        assert nothing.exit_code == 1
        assert "say what to judge: a model by --model, or columns of scores in the file by --score" in nothing.stderr
    assert files_in(tmp_path) == ["scores.csv"]
