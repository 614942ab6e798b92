"""Names and values in files do nothing: not in terminals, not in shells, not in spreadsheets."""

import csv
import datetime
import io
import json
import shlex

import numpy as np
import polars as pl
import pytest

from cli.support import run
from toprank.cli.output import Output

RED, OVERRIDE, LINE = "\x1b[31mred", "\u202eevil\x9b2J", "two\nsaved to nowhere"
LABEL = "yes\x1b]0;title\x07"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model whose file, columns, labels and identifiers hold what terminals obey, and its table."""
    folder = tmp_path_factory.mktemp("hostile")
    random = np.random.default_rng(0)
    a = random.normal(size=200)
    columns = {
        RED: a,
        OVERRIDE: [None, *random.normal(size=199)],
        LINE: [datetime.date(2026, 1, 2)] * 200,
        "$(touch x)": np.arange(200),
        "[/b]": random.normal(size=200),
        "kind": np.where(a > 1, LABEL, "no"),
    }
    data = folder / "q[" / "x].parquet"
    data.parent.mkdir()
    pl.DataFrame(columns).write_parquet(data)
    fitted = run("fit", data, "-t", "kind", "--positive", LABEL, "-m", folder / "m\x1b[1m")
    assert fitted.exit_code == 0
    return fitted, data, folder / "m\x1b[1m"


def printed(result):
    """All that a command wrote, line by line."""
    return (result.stdout + result.stderr).split("\n")


def test_nothing_is_obeyed(hostile, tmp_path):
    fitted, data, model = hostile
    commands = {
        "info": run("info", model),
        "info --json": run("info", model, "--json"),
        "evaluate": run("evaluate", data, "-m", model),
        "report": run("report", data, "-m", model, "-o", tmp_path / "r\x1b.html"),
        "score": run("score", data, "-m", model, "-o", tmp_path / "s\x1b.csv"),
        "absent": run("evaluate", f"{data}\x1b", "-m", model),
        "label": run("fit", data, "-t", "kind", "-m", tmp_path / "n"),
    }
    for name, result in {"fit": fitted, **commands}.items():
        assert all(line.isprintable() for line in printed(result)), name
        assert not any(line.startswith("saved to nowhere") for line in printed(result))
    listed = [line.split() for line in commands["info"].stdout.splitlines()]
    assert ["\\x1b[31mred", "number"] in [words[:2] for words in listed]
    assert "\\u202eevil\\x9b2J (1 rows)" in commands["info"].stdout
    assert ["two\\nsaved", "to", "nowhere", "date"] in [words[:4] for words in listed]
    summary = json.loads(commands["info --json"].stdout)["summary"]
    assert [*summary["columns"]] == [RED, OVERRIDE, "$(touch x)", "[/b]"]
    assert "--positive $'yes\\x1b]0;title\\x07'" in commands["label"].stderr


def test_hints_are_safe_to_copy(hostile):
    fitted, data, _ = hostile
    note = next(line for line in printed(fitted) if "another whole number in every row" in line)
    assert "--id '$(touch x)', or leave it out by --ignore '$(touch x)'" in note
    hint = fitted.stdout.rstrip().rpartition("next: ")[2]
    assert shlex.split(hint)[:3] == ["toprank", "report", str(data)]
    assert hint.endswith("m\\x1b[1m'")


def test_values_after_options_are_no_keywords(tmp_path):
    pl.DataFrame({"k=2, tau=3": np.r_[1e300, np.arange(39)], "y": np.arange(40) % 2}).write_csv(tmp_path / "d.csv")
    result = run("fit", tmp_path / "d.csv", "-t", "y", "-m", tmp_path / "m")
    assert result.stderr.endswith("leave the column out by --ignore 'k=2, tau=3'\n")


@pytest.mark.parametrize("title", ["reading q[/x].csv", "[bold]", "[link=x]", "a\\", ":smile:", "\x1b[31m"])
def test_titles_of_bars_are_no_markup(monkeypatch, capsys, title):
    monkeypatch.setattr(Output, "shows_progress", True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with Output().progress(title, 10) as advance:
        advance(5)
    assert title.replace("\x1b", "\\x1b") in capsys.readouterr().err


IDS = [
    "=cmd|' /C calc'!A0",
    "+1-2",
    "-3",
    "+4.5e6",
    "@SUM(1)",
    "\tx",
    "\rx",
    "-x",
    "x=1",
    "",
    "'",
    "=1,2",
    "-.5",
    "-",
    None,
]
SAFE = [
    "'=cmd|' /C calc'!A0",
    "'+1-2",
    "-3",
    "+4.5e6",
    "'@SUM(1)",
    "'\tx",
    "'\rx",
    "'-x",
    "x=1",
    "",
    "'",
    "'=1,2",
    "-.5",
]


def test_safe_text(tmp_path):
    a = np.arange(len(IDS), dtype=float)
    pl.DataFrame({"=id": IDS, "a": a, "y": a > 10}).write_parquet(tmp_path / "d.parquet")
    fit = run("fit", tmp_path / "d.parquet", "-t", "y", "--id", "=id", "-m", tmp_path / "m", "--holdout", "0")
    assert fit.exit_code == 0, fit.output
    for options, name, expected in (((), "=id", IDS), (("--safe-text",), "'=id", [*SAFE, "'-", None])):
        result = run("score", tmp_path / "d.parquet", "-m", tmp_path / "m", "-o", "-", *options)
        header, *rows = csv.reader(io.StringIO(result.stdout, newline=""))
        assert header == [name, "score", "decision"]
        assert [row[0] for row in rows] == ["" if one is None else one for one in expected]
        assert [float(row[1]) > 0 for row in rows] == [row[2] == "1" for row in rows]
