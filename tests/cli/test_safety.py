"""Inputs are never overwritten, training rows are never called held out, and errors name what there is."""

import json
import os

import numpy as np
import polars as pl
import pytest
from sklearn.datasets import dump_svmlight_file

from cli.support import files_in, run, transactions
from toprank.cli.model_files import check_writable
from toprank.files.summary import summary_of
from toprank.persistence import load, save

FIT = ("-t", "fraud", "--positive", "yes", "--id", "transaction")


def words(result):
    """Standard error without the frame of usage errors."""
    return " ".join(result.stderr.replace("│", " ").split())


def write_numbers(path, n_rows=400, **columns):
    """A small table of numbers with labels y."""
    random = np.random.default_rng(0)
    a = random.normal(size=n_rows)
    y = (a + random.normal(size=n_rows) > 1.5).astype(int)
    pl.DataFrame({"a": a, "b": random.normal(size=n_rows), **columns, "y": y}).write_csv(path)
    return y


@pytest.fixture
def copies(fitted, tmp_path):
    """The files of `fitted` in a folder where they may be lost, with links to them."""
    for name in ("train.csv", "new.csv", "model.toprank"):
        (tmp_path / name).write_bytes((fitted / name).read_bytes())
        (tmp_path / f"link-{name}").symlink_to(tmp_path / name)
    os.link(tmp_path / "train.csv", tmp_path / "hard.csv")
    return tmp_path


@pytest.mark.skipif(os.name == "nt", reason="links of Unix")
@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "train.csv", *FIT, "-m", "train.csv"),
        ("fit", "train.csv", *FIT, "-m", "./link-train.csv"),
        ("fit", "link-train.csv", *FIT, "-m", "train.csv"),
        ("fit", "train.csv", *FIT, "-m", "hard.csv"),
        ("score", "new.csv", "-m", "model.toprank", "-o", "new.csv"),
        ("score", "new.csv", "-m", "model.toprank", "-o", "model.toprank"),
        ("score", "new.csv", "-m", "link-model.toprank", "-o", "model.toprank"),
        ("report", "train.csv", "-m", "model.toprank", "-o", "train.csv"),
        ("report", "train.csv", "-m", "model.toprank", "-o", "link-model.toprank"),
    ],
    ids=lambda arguments: "-".join((arguments[0], arguments[1], arguments[-1])),
)
def test_an_output_never_replaces_an_input(copies, monkeypatch, arguments):
    monkeypatch.chdir(copies)
    before = {name: (copies / name).read_bytes() for name in files_in(copies)}
    result = run(*arguments)
    assert result.exit_code == 1
    assert f"{arguments[-1]!r} is the file that is read, and would replace it; name another path" in result.stderr
    assert {name: (copies / name).read_bytes() for name in files_in(copies)} == before


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs the files of Unix")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "--model is empty; name a file"),
        ("/dev/null", "'/dev/null' is not a plain file"),
        ("m" * 300, "File name too long"),
        ("dangling", "in a folder that does not exist"),
    ],
    ids=["empty", "device", "long", "dangling"],
)
def test_paths_that_cannot_be_written_are_refused_before_the_work(tmp_path, monkeypatch, path, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "none" / "m")
    result = run("fit", "absent.csv", "-t", "y", "-m", path)  # without the check the file would be missed first
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_outputs_beside_inputs_are_fine(tmp_path):
    (tmp_path / "old").write_text("old")
    check_writable(str(tmp_path / "old"), "--output", str(tmp_path / "absent"), None)
    check_writable(str(tmp_path / "new"), "--output", str(tmp_path / "old"))


@pytest.fixture(scope="module")
def two_targets(tmp_path_factory):
    """A table with two targets, a model of the first one, and its name for the second."""
    folder = tmp_path_factory.mktemp("targets")
    random = np.random.default_rng(1)
    table = transactions(1500, seed=6)
    table = table.with_columns(
        returned=pl.Series(random.permutation(table["fraud"].to_numpy())),
        checked=pl.Series(np.where(random.random(1500) < 0.9, table["fraud"].to_numpy(), None)),
    )
    table.write_csv(folder / "d.csv")
    options = (*FIT, "--ignore", "returned", "--ignore", "checked", "-m", folder / "m")
    assert run("fit", folder / "d.csv", *options).exit_code == 0
    return folder


@pytest.mark.parametrize(
    ("options", "n_rows"),
    [(("--target", "returned"), 1500), (("--positive", "no"), 1500), (("--target", "checked"), None)],
    ids=["target", "positive", "some-without-label"],
)
@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_with_other_labels_no_row_is_called_held_out(two_targets, tmp_path, command, options, n_rows):
    page = ("-o", tmp_path / "r.html") if command == "report" else ()
    record = json.loads(run(command, two_targets / "d.csv", "-m", two_targets / "m", *options, *page, "--json").stdout)
    assert record["rows"] == n_rows or (n_rows is None and 1300 < record["rows"] < 1400)
    assert "held out" not in " ".join(record["notes"])
    assert "rows that the model learned from are measured too" in record["notes"][-1]


def test_the_labels_of_the_fit_may_be_named_again(two_targets):
    at_fit = load(two_targets / "m").summary_["held_out"]
    record = json.loads(run("evaluate", two_targets / "d.csv", "-m", two_targets / "m", *FIT[:4], "--json").stdout)
    assert {key: record[key] for key in at_fit} == at_fit
    assert "only the 300 rows that were held out" in record["notes"][0]


def test_a_model_without_held_out_rows_says_so_for_any_labels(tmp_path):
    write_numbers(tmp_path / "d.csv")
    assert run("fit", tmp_path / "d.csv", "-t", "y", "-m", tmp_path / "m", "--holdout", "0").exit_code == 0
    result = run("evaluate", tmp_path / "d.csv", "-m", tmp_path / "m", "--positive", "0")
    assert "learned from all rows" in result.stderr


def test_a_summary_of_few_entries_is_enough_for_info(tmp_path):
    """What a stream knows of its model."""
    write_numbers(tmp_path / "d.csv")
    assert run("fit", tmp_path / "d.csv", "-t", "y", "-m", tmp_path / "m", "--holdout", "0").exit_code == 0
    model = load(tmp_path / "m")
    counts = {"rows": 400, "positives": 50, "learned_from": 400, "holdout": 0.0, "seed": 0}
    model.summary_ = summary_of(model, "CBR", str(tmp_path / "d.csv"), counts)
    save(model, tmp_path / "m")
    text = run("info", tmp_path / "m").stdout
    assert "400 of 400 rows of d.csv" in text
    assert "target       y, positive is 1" in text
    assert "learned from all rows" in run("evaluate", tmp_path / "d.csv", "-m", tmp_path / "m").stderr


def test_long_numbers_are_different_labels(tmp_path):
    random = np.random.default_rng(0)
    kind = random.integers(0, 3, 300)
    frame = pl.DataFrame({"a": kind + random.normal(size=300), "y": 1234567 + kind})
    frame.write_csv(tmp_path / "d.csv")
    options = ("-t", "y", "--positive", "1234568", "-m", tmp_path / "m", "--json")
    record = json.loads(run("fit", tmp_path / "d.csv", *options).stdout)
    assert record["data"]["positives"] == (kind == 1).sum()


def test_identifiers_are_written_as_they_stand_in_the_file(tmp_path):
    write_numbers(tmp_path / "d.csv", code=[f"{i:04d}" for i in range(400)])
    assert run("fit", tmp_path / "d.csv", "-t", "y", "-m", tmp_path / "m").exit_code == 0
    assert "code" in load(tmp_path / "m").columns
    assert (
        run("score", tmp_path / "d.csv", "-m", tmp_path / "m", "-o", tmp_path / "s.csv", "--id", "code").exit_code == 0
    )
    scores = (tmp_path / "s.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in scores[:3]] == ["code", "0000", "0001"]
    assert run("score", tmp_path / "d.csv", "-m", tmp_path / "m", "-o", tmp_path / "rows.csv").exit_code == 0
    numbered = pl.read_csv(tmp_path / "rows.csv")["score"]
    np.testing.assert_array_equal(pl.read_csv(tmp_path / "s.csv")["score"], numbered)


def test_a_share_of_less_than_one_row_is_noted(fitted, tmp_path):
    options = ("-m", fitted / "model.toprank", "-o", tmp_path / "s.csv")
    result = run("score", fitted / "new.csv", *options, "--share", "0.0001")
    assert result.exit_code == 0
    assert "note: --share 0.0001 of 800 rows is less than one row, so none is written; use --top 1" in result.stderr
    assert run("score", fitted / "new.csv", *options, "--share", "0.01").stderr == ""


def test_tiny_numbers_are_named(tmp_path):
    write_numbers(tmp_path / "d.csv", tiny=np.linspace(0, 1e-200, 400))
    result = run("fit", tmp_path / "d.csv", "-t", "y", "-m", tmp_path / "m")
    assert result.exit_code == 1
    assert "column 'tiny' has no value larger than 1e-200" in result.stderr
    assert "StandardScaler" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("--max-fpr", "0.1", "--confidence", "1"),
            2,
            "--confidence must be strictly between 0 and 1, got 1.0; use one such as 0.95",
        ),
        (("--confidence", "nan"), 2, "--confidence must be strictly between 0 and 1"),
        (("--method", "LogisticRegression", "--search"), 2, "leave it out, or use another method"),
        (("--max-fpr", "2"), 2, "--max-fpr must be strictly between 0 and 1"),
    ],
)
def test_remedies_of_options(fitted, tmp_path, arguments, code, message):
    result = run("fit", fitted / "train.csv", *FIT, "-m", tmp_path / "m", *arguments)
    assert result.exit_code == code
    assert message in words(result)


def test_too_few_negatives(fitted, tmp_path):
    result = run("fit", fitted / "train.csv", *FIT, "-m", tmp_path / "m", "--max-fpr", "0.001")
    assert result.exit_code == 1
    for part in ("give more rows, raise --max-fpr to 0.00", "or lower --confidence to 0.", "are set aside for the"):
        assert part in result.stderr
    for part in ("cv", "hold out more", "max_fpr"):
        assert part not in result.stderr


def test_one_negative_only(tmp_path):
    pl.DataFrame({"a": np.arange(31.0) ** 2, "y": [0] + [1] * 30}).write_csv(tmp_path / "d.csv")
    options = ("--max-fpr", "0.6", "--confidence", "0.5")
    result = run("fit", tmp_path / "d.csv", "-t", "y", "-m", tmp_path / "m", *options)
    assert result.exit_code == 1
    assert "note: one class has too few rows to hold some out" in result.stderr
    assert "setting negatives aside for --max-fpr leaves only one class" in result.stderr
    assert "give more rows" in result.stderr
    assert "cv" not in result.stderr


@pytest.mark.parametrize("command", ["fit", "score", "evaluate"])
@pytest.mark.parametrize("name", ["k=3/none.csv", "a  b, tau=0.5, max_fpr.csv"])
def test_paths_are_shown_as_they_are(fitted, tmp_path, monkeypatch, command, name):
    monkeypatch.chdir(tmp_path)
    options = {"fit": ("-t", "y", "-m", "m"), "score": ("-m", fitted / "model.toprank", "-o", "s.csv")}
    result = run(command, name, *options.get(command, ("-m", fitted / "model.toprank")))
    assert result.stderr == f"error: there is no file {name!r}; check the path\n"
    assert "'tau=1/m' is in a folder" in run("fit", name, "-t", "y", "-m", "tau=1/m").stderr


def test_svmlight_rows_with_more_features_than_the_model(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    y = (X[:, 0] > 1).astype(int)
    dump_svmlight_file(X, y, str(tmp_path / "d.svm"), zero_based=False)
    assert run("fit", tmp_path / "d.svm", "-m", tmp_path / "m").exit_code == 0
    (tmp_path / "e.svm").write_text("1 1:0.5\n0 7:1\n")
    result = run("score", tmp_path / "e.svm", "-m", tmp_path / "m", "-o", tmp_path / "s.csv")
    assert result.exit_code == 1
    assert "line 2" in result.stderr
    assert "--n-features" not in result.stderr


def test_a_checkpoint_is_no_model(tmp_path):
    write_numbers(tmp_path / "d.csv")
    options = ("-t", "y", "-m", tmp_path / "m", "--checkpoint", tmp_path / "run")
    assert run("stream", tmp_path / "d.csv", *options).exit_code == 0
    assert "go on with it by toprank stream --checkpoint" in run("info", tmp_path / "run").stderr


def test_a_kernel_without_a_convex_problem(tmp_path):
    write_numbers(tmp_path / "d.csv", n_rows=80)
    result = run("fit", tmp_path / "d.csv", "-t", "y", "-m", tmp_path / "m", "--kernel", "sigmoid")
    assert result.exit_code == 1
    assert "use --kernel rbf or --kernel linear" in result.stderr
    assert "approximation" not in result.stderr
