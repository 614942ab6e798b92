"""Wrong input: one sentence with a remedy, an exit code, no output file."""

import subprocess
import sys

import polars as pl
import pytest

from cli.support import files_in, run, transactions

FIT = ("fit", "{data}", "--model", "{folder}/m", "--target", "fraud", "--positive", "yes")
SCORE = ("score", "{data}", "--model", "{model}", "--output", "{folder}/m")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("fit", "{data}", "--model", "{folder}/m"), 1, "--target fraud"),
        (("fit", "{data}", "--model", "{folder}/m", "-t", "fraud"), 1, "--positive yes"),
        (("fit", "{data}", "--model", "{folder}/m", "-t", "Fraud"), 1, "has no column 'Fraud'"),
        (("fit", "{folder}/absent.csv", "--model", "{folder}/m", "-t", "y"), 1, "there is no file"),
        (("fit", "{data}", "-t", "fraud"), 2, "--model"),
        ((*FIT, "--id", "fraud"), 1, "cannot be the identifier"),
        ((*FIT, "--method", "SVM"), 2, "PatMatNP"),
        ((*FIT, "--method", "TopPush", "--tau", "0.1"), 2, "TopPush has no --tau"),
        ((*FIT, "--tau", "2"), 1, "tau must be strictly between 0 and 1"),
        ((*FIT, "--alpha", "-1"), 1, "alpha must be positive"),
        ((*FIT, "--max-fpr", "0.0001"), 1, "--max-fpr 0.0001 with --confidence 0.95 needs at least"),
        ((*FIT, "--kernel", "cubic"), 1, "cubic"),
        ((*FIT, "--holdout", "1.5"), 2, "0.9"),
        ((*FIT, "--delimiter", "ab"), 1, "one character"),
        (("fit", "{data}", "--model", "{folder}/no/m", "-t", "fraud"), 1, "folder that does not exist"),
        (("fit", "{data}", "--model", "{folder}", "-t", "fraud"), 1, "is a folder"),
        ((*SCORE, "--top", "3", "--share", "0.1"), 2, "either --top or --share"),
        ((*SCORE, "--top", "0"), 2, "--top"),
        ((*SCORE, "--share", "0"), 2, "--share 0"),
        ((*SCORE, "--id", "nothing"), 1, "has no column 'nothing'"),
        (("score", "{data}", "--model", "{model}", "--output", "-", "--json"), 2, "name a file"),
        (("score", "{data}", "--model", "{data}", "--output", "{folder}/m"), 1, "cannot be loaded"),
        (("score", "{data}", "--model", "{folder}/absent", "--output", "{folder}/m"), 1, "toprank fit"),
        (("evaluate", "{data}", "--model", "{model}", "--k", "5000"), 2, "more than the 200 rows"),
        (("evaluate", "{data}", "--model", "{model}", "--positive", "no way"), 1, "no row has the label"),
        (("compare", "{data}", "-t", "fraud", "--positive", "yes", "--folds", "150"), 1, "150 folds need"),
        (("stream", "{data}", "-t", "fraud", "-m", "{folder}/m", "--on-bad-line", "cry"), 2, "skip"),
        (("info", "{folder}/m"), 1, "there is no model"),
        (("info", "{folder}/m.csv"), 1, "there is no file"),
        (("nothing",), 2, "nothing"),
    ],
)
def test_one_sentence(fitted, tmp_path, arguments, code, message):
    folder = tmp_path / "folder"
    folder.mkdir()
    transactions(200, seed=3).write_csv(tmp_path / "data.csv")
    names = {"data": tmp_path / "data.csv", "folder": folder, "model": fitted / "model.toprank"}
    result = run(*(argument.format(**names) for argument in arguments))
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""
    assert files_in(folder) == []
    if code == 1:
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1


def test_an_old_file_survives_a_failure(fitted, tmp_path):
    """The last block is bad, when most of the output is already written."""
    lines = transactions(3000, seed=4).write_csv().splitlines()
    lines[-1] = lines[-1].replace("2026", "2026,too,many")
    (tmp_path / "data.csv").write_text("\n".join(lines))
    out = tmp_path / "out.csv"
    out.write_text("old")
    result = run("score", tmp_path / "data.csv", "-m", fitted / "model.toprank", "-o", out)
    assert result.exit_code == 1
    assert "line 3001" in result.stderr
    assert out.read_text() == "old"
    assert files_in(tmp_path) == ["data.csv", "out.csv"]


def test_defects_say_so_and_show_themselves_on_demand(fitted, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("broken")

    monkeypatch.setattr("toprank.persistence.glance.glance", broken)
    with pytest.raises(AssertionError):
        run("info", fitted / "model.toprank")
    monkeypatch.setenv("TOPRANK_DEBUG", "1")
    with pytest.raises(RuntimeError, match="broken"):
        run("info", fitted / "model.toprank")


def test_unlabelled_rows_are_noted(fitted, tmp_path):
    table = transactions(300, seed=5).with_columns(
        fraud=pl.when(pl.int_range(pl.len()) < 11).then(None).otherwise(pl.col("fraud"))
    )
    table.write_csv(tmp_path / "data.csv")
    result = run("evaluate", tmp_path / "data.csv", "-m", fitted / "model.toprank")
    assert result.exit_code == 0
    assert "note: 11 rows without a label in 'fraud' are left out" in result.stderr
    assert "on 289 rows" in result.stdout


def test_without_the_extra_the_way_to_it_is_named(tmp_path):
    program = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'typer' else find(name, *rest)\n"
        "from toprank.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "error: the command line needs typer; run: pip install 'toprank[cli]'\n"


def test_help_is_quick_to_come():
    """Nothing heavy is loaded to show the help."""
    program = (
        "import sys\n"
        "sys.argv = ['toprank', '--help']\n"
        "from toprank.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(name for name in ('sklearn', 'scipy', 'numba', 'polars') if name in sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert "score" in done.stdout
