"""``toprank stream``: bad lines, files that grow, files that must not be overwritten, advice that can be followed."""

import json

import numpy as np
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler

from cli.support import files_in, run
from toprank.online import CBR
from toprank.persistence import load


@pytest.fixture
def rows(tmp_path):
    """Lines of a table with the columns a, b and y."""
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 2)) * [1, 100] + [0, 1000]
    y = (X[:, 0] + random.normal(size=100) > 0.5).astype(int)
    return [f"{a!r},{b!r},{label}" for (a, b), label in zip(X.tolist(), y.tolist(), strict=True)]


def write(path, lines, header="a,b,y"):
    path.write_text("".join(f"{line}\n" for line in [header, *lines]))
    return path


def values(lines):
    table = np.array([line.split(",") for line in lines], dtype=float)
    return table[:, :-1], table[:, -1].astype(int)


def scaler_of(model):
    """The step that scales the numbers of a model."""
    return model.estimator_[0].named_transformers_["number"].named_steps["scale"]


def error_of(result):
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_bad_lines_among_the_rows_to_scale_by(tmp_path, rows):
    spoiled = write(tmp_path / "d.csv", [*rows[:19], "oops", *rows[19:], "oops"])
    options = ("-t", "y", "-m", tmp_path / "m", "--batch", 5, "--checkpoint", tmp_path / "run")
    message = error_of(run("stream", spoiled, *options))
    assert files_in(tmp_path) == [
        "d.csv"
    ]  # no run has begun, whose scaler would not know the line when it is corrected
    assert "line 21 of" in message
    assert "its number of fields is 1, and that of the first line is 3" in message
    assert "leave such lines out by --on-bad-line skip" in message
    # a bad line after the rows to scale by stops the run there
    assert "line 21 of" in error_of(run("stream", spoiled, *options, "--first-rows", 10))
    write(spoiled, rows)
    assert "after 15 rows" in run("stream", spoiled, *options, "--first-rows", 10).stderr
    write(spoiled, [*rows[:19], "oops", *rows[19:], "oops"])
    result = run("stream", spoiled, "-t", "y", "-m", tmp_path / "m", "--on-bad-line", "skip")
    assert result.exit_code == 0
    assert "2 bad lines were left out; the first: line 21, its number of fields is 1" in result.stderr
    X, y = values(rows)
    scaler = StandardScaler().fit(X)
    model = load(tmp_path / "m")
    expected = CBR(random_state=0).partial_fit(scaler.transform(X), y, classes=[0, 1])
    np.testing.assert_allclose(model.estimator_[-1].coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_of_text(tmp_path, rows, form):
    """They are categories, as of a fit; and one that is the same in all rows is left out."""
    countries = ["DE", "FR"] * 50
    path = write(tmp_path / "d.csv", [f"{row},{one},x" for row, one in zip(rows, countries, strict=True)], "a,b,y,c,d")
    if form == "parquet":
        path = tmp_path / "d.parquet"
        pl.read_csv(tmp_path / "d.csv").write_parquet(path)
    result = run("stream", path, "-t", "y", "-m", tmp_path / "m")
    assert result.exit_code == 0, result.stderr
    assert load(tmp_path / "m").columns == {"a": "number", "b": "number", "c": "category"}
    assert "left out: it has the value 'x' in every row" in result.stdout
    assert run("stream", path, "-t", "y", "-m", tmp_path / "m", "--types", "c=ignore").exit_code == 0
    assert load(tmp_path / "m").columns == {"a": "number", "b": "number"}
    assert "has no column 'e'" in error_of(run("stream", path, "-t", "y", "-m", tmp_path / "m", "--types", "e=number"))


def test_skipped_lines_come_with_the_options_of_the_command(tmp_path, rows):
    path = write(tmp_path / "d.csv", [*rows, "1,2,", "1,x,0"])
    result = run("stream", path, "-t", "y", "-m", tmp_path / "m", "--on-bad-line", "skip")
    assert "1 bad lines were left out; the first: line 102, the label is missing" in result.stderr
    assert "column 'b' is a number but for 'x' (1, in line 103), which counts as missing" in result.stderr
    assert run("stream", path, "-t", "y", "-m", tmp_path / "m", "--ignore", "a", "--ignore", "b").exit_code == 1


def test_windows_that_are_not_shown_are_counted(tmp_path, rows):
    """Of a hundred rows, ten in a batch, the first ten have no score before they are learned from."""
    path = write(tmp_path / "d.csv", rows)
    result = run("stream", path, "-t", "y", "-m", tmp_path / "m", "--batch", 10, "--window", 5)
    lines = result.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if "up to row" in line)
    shown = lines[start + 1 : -2]
    assert [int(line.split()[0]) for line in shown] == list(range(45, 101, 5))
    assert lines[-2] == "  and 6 windows before these, which --json has"
    as_json = run("stream", path, "-t", "y", "-m", tmp_path / "m", "--batch", 10, "--window", 5, "--json")
    history = json.loads(as_json.stdout)
    assert history["history"]["rows"] == list(range(15, 101, 5))
    few = run("stream", path, "-t", "y", "-m", tmp_path / "m", "--batch", 10, "--window", 30)
    assert "windows before these" not in few.stdout


def test_a_file_that_has_grown_keeps_the_scaler_of_the_first_run(tmp_path, rows):
    path = write(tmp_path / "d.csv", rows[:40])
    options = ("-t", "y", "-m", tmp_path / "m", "--checkpoint", tmp_path / "run")
    assert run("stream", path, *options).exit_code == 0
    write(path, rows)
    grown = run("stream", path, *options)
    assert grown.exit_code == 0
    assert "after 40 rows" in grown.stderr
    X, y = values(rows)
    scaler = StandardScaler().fit(X[:40])
    model = load(tmp_path / "m").estimator_
    expected = CBR(random_state=0).partial_fit(scaler.transform(X), y, classes=[0, 1])
    np.testing.assert_allclose(scaler_of(load(tmp_path / "m")).mean_, scaler.mean_, rtol=1e-12)
    np.testing.assert_allclose(model[-1].coef_, expected.coef_, rtol=1e-9)
    assert "begun with another model" in error_of(run("stream", path, *options, "--method", "OAM"))
    assert "begun with --scale True, and now --scale is False" in error_of(run("stream", path, *options, "--no-scale"))
    other = ("--first-rows", 39)
    assert "begun with --first-rows 10000, and now --first-rows is 39" in error_of(
        run("stream", path, *options, *other)
    )
    assert "begun with --types {}, and now" in error_of(run("stream", path, *options, "--ignore", "a"))
    assert "begun with --missing []" in error_of(run("stream", path, *options, "--missing", "-9"))
    anew = run("stream", path, *options, "--no-resume")
    assert anew.exit_code == 0
    np.testing.assert_allclose(scaler_of(load(tmp_path / "m")).mean_, StandardScaler().fit(X).mean_, rtol=1e-12)


def test_svmlight_files_that_grow(tmp_path):
    path = tmp_path / "d.svm"
    path.write_text("1 1:1 2:2\n0 1:3\n" * 10)
    options = ("-m", tmp_path / "m", "--checkpoint", tmp_path / "run")
    assert run("stream", path, *options).exit_code == 0
    path.write_text("1 1:1 2:2\n0 1:3\n" * 10 + "1 1:2\n")
    assert "after 20 rows" in run("stream", path, *options).stderr
    path.write_text("1 1:1 2:2\n0 1:3\n" * 10 + "1 1:2\n1 3:2\n")
    starting = ("-m", tmp_path / "m2", "--start", tmp_path / "m")
    for arguments in (options, starting):
        message = error_of(run("stream", path, *arguments))
        assert "line 22 of" in message
        assert "'3:2' has the index 3, and there are 2 features; start a new model for more" in message


def test_files_that_would_be_overwritten(tmp_path, rows):
    path = write(tmp_path / "d.csv", rows)
    content = path.read_bytes()
    assert run("stream", path, "-t", "y", "-m", tmp_path / "m").exit_code == 0
    model = (tmp_path / "m").read_bytes()
    for arguments, message in (
        (("-m", path), "is the file that is read, and would replace it; name another path"),
        (("-m", tmp_path / "m2", "--checkpoint", path), "is the file that is read"),
        (("-m", tmp_path / "m2", "--checkpoint", tmp_path / "m2"), "--checkpoint and --model are the same file"),
        (
            ("-m", tmp_path / "m2", "--start", tmp_path / "m", "--checkpoint", tmp_path / "m", "--no-resume"),
            "is the file that is read",
        ),
    ):
        assert message in error_of(run("stream", path, "-t", "y", *arguments))
    assert files_in(tmp_path) == ["d.csv", "m"]
    assert (path.read_bytes(), (tmp_path / "m").read_bytes()) == (content, model)
    assert run("stream", path, "-t", "y", "-m", tmp_path / "m", "--start", tmp_path / "m").exit_code == 0


def test_an_error_of_the_model_comes_with_its_lines(tmp_path, rows):
    path = write(tmp_path / "d.csv", [*rows, "1e60,1,0"])
    options = ("-t", "y", "-m", tmp_path / "m", "--batch", 30, "--no-scale", "--on-bad-line", "skip")
    assert "this happened in lines 92 to 102 of" in error_of(run("stream", path, *options))
    write(path, [*rows, "1e200,1,0", "1,-inf,1"])
    skipped = run("stream", path, *options)
    assert "2 bad lines were left out; the first: line 102, column 'a' has 1e+200, which is too large" in skipped.stderr
    assert "line 102 of" in error_of(run("stream", path, *options[:-2], "--first-rows", 50))


def test_no_rows(tmp_path):
    path = write(tmp_path / "d.csv", [])
    message = error_of(run("stream", path, "-t", "y", "-m", tmp_path / "m"))
    assert "has no rows; give a file with rows" in message
    assert files_in(tmp_path) == ["d.csv"]


def test_a_positive_label_that_never_occurs(tmp_path, rows):
    path = write(tmp_path / "d.csv", rows)
    result = run("stream", path, "-t", "y", "-m", tmp_path / "m", "--positive", "fraud", "--json")
    (note,) = json.loads(result.stdout)["notes"]
    assert "none of the 100 rows of" in note
    assert "with 'fraud' as the positive label" in note
    assert note.endswith("check the labels and --positive")


def test_the_method_that_learned_is_named(tmp_path, rows):
    path = write(tmp_path / "d.csv", rows)
    first = run("stream", path, "-t", "y", "-m", tmp_path / "m", "--method", "OAM")
    assert first.stdout.startswith("OAM learned from 100 rows")
    second = run("stream", path, "-t", "y", "-m", tmp_path / "m2", "--start", tmp_path / "m")
    assert second.stdout.startswith("OAM learned from 100 rows")


def test_a_saved_model_scores_without_warnings(tmp_path, rows):
    """Its columns are known to the table, which gives arrays to the steps."""
    path = write(tmp_path / "d.csv", rows)
    run("stream", path, "-t", "y", "-m", tmp_path / "m")
    assert load(tmp_path / "m").decision_function(pl.read_csv(path)).shape == (100,)


@pytest.mark.parametrize("label", ["nan", "inf"])
def test_labels_that_only_look_like_numbers(tmp_path, rows, label):
    path = write(tmp_path / "d.csv", [row[:-1] + (label if row[-1] == "1" else "no") for row in rows])
    result = run("stream", path, "-t", "y", "-m", tmp_path / "m", "--positive", label, "--json")
    assert json.loads(result.stdout)["notes"] == []


@pytest.mark.parametrize("scale", ["--scale", "--no-scale"])
def test_gaps_are_filled_in_rows_to_score_too(tmp_path, rows, scale):
    gaps = write(tmp_path / "d.csv", [*rows, ",5.0,1", "0.5,,0"])
    filled = write(tmp_path / "f.csv", [*rows, "7.0,5.0,1", "0.5,7.0,0"])
    options = ("-t", "y", "-m", tmp_path / "m", "--fill-missing", 7, scale)
    assert run("stream", gaps, *options).exit_code == 0
    written = []
    for path in (gaps, filled):
        assert run("score", path, "-m", tmp_path / "m", "-o", tmp_path / "s.csv").exit_code == 0
        written.append((tmp_path / "s.csv").read_text())
    assert written[0] == written[1]


def test_a_last_line_without_its_end_waits_for_the_next_run(tmp_path, rows):
    path = write(tmp_path / "d.csv", rows)
    path.write_text(path.read_text()[:-1])
    options = ("-t", "y", "-m", tmp_path / "m", "--first-rows", 50)
    assert run("stream", path, *options).stdout.startswith("CBR learned from 100 rows")
    waiting = run("stream", path, *options, "--checkpoint", tmp_path / "run")
    assert waiting.stdout.startswith("CBR learned from 99 rows")
    assert "is left for the next run; if the file is complete, end the line, or pass --no-grows" in waiting.stderr
    taken = run("stream", path, *options, "--checkpoint", tmp_path / "run", "--no-grows")
    assert taken.stdout.startswith("CBR learned from 100 rows")
    assert "after 99 rows" in taken.stderr
