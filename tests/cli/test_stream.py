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
    y = (X[:, 0] > 0.5).astype(int)
    return [f"{a!r},{b!r},{label}" for (a, b), label in zip(X.tolist(), y.tolist(), strict=True)]


def write(path, lines, header="a,b,y"):
    path.write_text("".join(f"{line}\n" for line in [header, *lines]))
    return path


def values(lines):
    table = np.array([line.split(",") for line in lines], dtype=float)
    return table[:, :-1], table[:, -1].astype(int)


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
    assert "line 21 of" in error_of(run("stream", spoiled, *options, "--scale-rows", 10))
    write(spoiled, rows)
    assert "after 15 rows" in run("stream", spoiled, *options, "--scale-rows", 10).stderr
    write(spoiled, [*rows[:19], "oops", *rows[19:], "oops"])
    result = run("stream", spoiled, "-t", "y", "-m", tmp_path / "m", "--on-bad-line", "skip")
    assert result.exit_code == 0
    assert "2 bad lines were left out; the first: line 21, its number of fields is 1" in result.stderr
    X, y = values(rows)
    scaler = StandardScaler().fit(X)
    model = load(tmp_path / "m")
    expected = CBR(random_state=0).partial_fit(scaler.transform(X), y, classes=[0, 1])
    np.testing.assert_array_equal(model.estimator_[-1].coef_, expected.coef_)


@pytest.mark.parametrize("scale_rows", [0, 50])
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_of_text(tmp_path, rows, scale_rows, form):
    path = write(tmp_path / "d.csv", [f"{row},DE" for row in rows], header="a,b,y,the country")
    if form == "parquet":
        path = tmp_path / "d.parquet"
        pl.read_csv(tmp_path / "d.csv").write_parquet(path)
    arguments = ("stream", path, "-t", "y", "-m", tmp_path / "m", "--scale-rows", scale_rows)
    message = error_of(run(*arguments))
    assert "column 'the country'" in message
    assert "out by --ignore 'the country'" in message
    assert "features" not in message
    assert run(*arguments, "--ignore", "the country").exit_code == 0
    if form == "csv":
        skipping = error_of(run(*arguments, "--on-bad-line", "skip"))
        assert "has no rows but bad lines, the first: line 2, column 'the country' has 'DE'" in skipping
        assert "--ignore 'the country'" in skipping


def test_skipped_lines_come_with_the_options_of_the_command(tmp_path, rows):
    path = write(tmp_path / "d.csv", [*rows, "1,,0", "1,x,0"])
    result = run("stream", path, "-t", "y", "-m", tmp_path / "m", "--on-bad-line", "skip")
    assert "line 102, column 'b' has no value; pass --fill-missing for a number" in result.stderr
    assert run("stream", path, "-t", "y", "-m", tmp_path / "m", "--ignore", "a", "--ignore", "b").exit_code == 1


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
    np.testing.assert_array_equal(model[0].mean_, scaler.mean_)
    np.testing.assert_array_equal(model[-1].coef_, expected.coef_)
    for other in (("--scale-rows", 0), ("--scale-rows", 39), ("--method", "OAM")):
        assert "begun with another model" in error_of(run("stream", path, *options, *other))
    assert "begun with features ['a', 'b'], and now" in error_of(run("stream", path, *options, "--ignore", "a"))
    anew = run("stream", path, *options, "--no-resume")
    assert anew.exit_code == 0
    np.testing.assert_array_equal(load(tmp_path / "m").estimator_[0].mean_, StandardScaler().fit(X).mean_)


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
    path = write(tmp_path / "d.csv", [*rows, "1e200,1,0"])
    options = ("-t", "y", "-m", tmp_path / "m", "--batch", 30, "--scale-rows", 0, "--on-bad-line", "skip")
    assert "this happened in lines 92 to 102 of" in error_of(run("stream", path, *options))


@pytest.mark.parametrize("scale_rows", [0, 50])
def test_no_rows(tmp_path, scale_rows):
    path = write(tmp_path / "d.csv", [])
    message = error_of(run("stream", path, "-t", "y", "-m", tmp_path / "m", "--scale-rows", scale_rows))
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


@pytest.mark.parametrize("scale_rows", [0, 50])
def test_gaps_are_filled_in_rows_to_score_too(tmp_path, rows, scale_rows):
    gaps = write(tmp_path / "d.csv", [*rows, ",5.0,1", "0.5,,0"])
    filled = write(tmp_path / "f.csv", [*rows, "7.0,5.0,1", "0.5,7.0,0"])
    options = ("-t", "y", "-m", tmp_path / "m", "--fill-missing", 7, "--scale-rows", scale_rows)
    assert run("stream", gaps, *options).exit_code == 0
    written = []
    for path in (gaps, filled):
        assert run("score", path, "-m", tmp_path / "m", "-o", tmp_path / "s.csv").exit_code == 0
        written.append((tmp_path / "s.csv").read_text())
    assert written[0] == written[1]


def test_a_last_line_without_its_end_waits_for_the_next_run(tmp_path, rows):
    path = write(tmp_path / "d.csv", rows)
    path.write_text(path.read_text()[:-1])
    options = ("-t", "y", "-m", tmp_path / "m", "--scale-rows", 50)
    assert run("stream", path, *options).stdout.startswith("CBR learned from 100 rows")
    waiting = run("stream", path, *options, "--checkpoint", tmp_path / "run")
    assert waiting.stdout.startswith("CBR learned from 99 rows")
    assert "is left for the next run; if the file is complete, end the line, or pass --no-grows" in waiting.stderr
    taken = run("stream", path, *options, "--checkpoint", tmp_path / "run", "--no-grows")
    assert taken.stdout.startswith("CBR learned from 100 rows")
    assert "after 99 rows" in taken.stderr
