"""What the library says about its parameters, in the words of the command that runs."""

import re
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import ConvergenceWarning

from cli.support import run, transactions
from templates import templates
from toprank import PatMatNP, TauFPL
from toprank.cli import output
from toprank.cli.app import app
from toprank.exceptions import Message
from toprank.persistence.model_file import _other_kind

COMMANDS = {command.callback.__name__: command.callback.__wrapped__ for command in app.registered_commands
            if hasattr(command.callback, "__wrapped__")}  # fmt: skip


def told(command, message):
    """A message as a command says it."""
    before = output._running.set(COMMANDS[command])
    try:
        return output.told(message)
    finally:
        output._running.reset(before)


def keywords(command, text):
    """Options of a command that a text names as Python does."""
    names = "|".join(output._options_of(COMMANDS[command]))
    return re.findall(rf"(?<![\w-])(?:{names})=", text)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_template_names_an_option_as_python_does(command):
    for place, _, outside, values in templates():
        for template in outside:
            assert keywords(command, told(command, Message(template, **dict.fromkeys(values, 1.0)))) == [], place


@pytest.mark.parametrize(
    ("command", "message", "expected"),
    [
        ("fit", Message("{k=}, {tau=}, {cv=}", k=3, tau=0.5, cv=0.5), "--k 3, --tau 0.5, cv=0.5"),
        ("stream", Message("{k=}, {tau=}, {cv=}", k=3, tau=0.5, cv=0.5), "k=3, tau=0.5, cv=0.5"),
        ("fit", Message("{n_features=} or {positive=}, {resume=False}"), "n_features= or --positive, resume=False"),
        ("stream", Message("{features=}", elsewhere="{ignore=}, {resume=False}"), "--ignore, --no-resume"),
        ("stream", Message("{zero_based=True}, {format='csv'}, 'x'"), "--zero-based, --format csv, 'x'"),
        ("stream", Message("{max_fpr} must be {id_column=}", id_column="a"), "--max-fpr must be --id a"),
        ("fit", Message("{path!r} k=4, {tau}", path="tau=1"), "'tau=1' k=4, --tau"),
        ("fit", Message("{ignore=}", ignore="k=2, $(max_fpr)"), "--ignore 'k=2, $(max_fpr)'"),
        ("fit", "k=3, max_fpr of another package", "k=3, max_fpr of another package"),
    ],
)
def test_only_options_of_the_running_command_are_named(command, message, expected):
    assert told(command, message) == expected


def test_remedies_that_are_no_options():
    """The messages are taken from where they are made."""
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    with pytest.warns(ConvergenceWarning) as caught:
        PatMatNP(tau=0.1, max_iter=1).fit(X, X[:, 0] + random.normal(size=300) > 1)
    collapsed = TauFPL()._collapse_message(SimpleNamespace(gap=1e-3, dual=0.5))
    for message, remedy in (
        (caught[0].message, "; a larger --alpha is easier to fit"),
        (collapsed, "lower --alpha, or use a larger --tau or"),
        (_other_kind("model", "checkpoint"), "look at it by toprank info"),
    ):
        said = told("fit", message)
        assert remedy in said
        for word in ("max_iter", "lower tol", "toprank.load"):
            assert word not in said


FIT = ("fit", "train.csv", "-t", "fraud", "--positive", "yes", "--id", "transaction", "-m", "m")
COMPARE = ("compare", "train.csv", "-t", "fraud", "--positive", "yes", "--id", "transaction")
STREAM = ("stream", "numbers.csv", "-t", "y", "-m", "m")


@pytest.fixture
def folder(fitted, tmp_path, monkeypatch):
    """Files in the current folder."""
    monkeypatch.chdir(tmp_path)
    transactions(300, seed=1).write_csv("train.csv")
    random = np.random.default_rng(0)
    a = random.normal(size=300)
    numbers = pl.DataFrame({"a": a, "b": random.normal(size=300), "y": (a > 1).astype(int)})
    numbers.write_csv("numbers.csv")
    (tmp_path / "bad.csv").write_text((tmp_path / "numbers.csv").read_text() + "1,2,0,9\n")
    numbers.with_columns(y=pl.col("y") + 1).write_csv("labels.csv")
    (tmp_path / "cut.csv").write_text((tmp_path / "numbers.csv").read_text() + "1,2")
    (tmp_path / "zero.svm").write_text("1 0:1\n0 1:1\n" * 20)
    (tmp_path / "numbers").write_text("a,y\n1,0\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*FIT, "--tau", "2"), "--tau must be strictly between 0 and 1, got 2.0"),
        ((*FIT, "--tau", "1e-13"), "--tau must be at least 1e-12"),
        ((*FIT, "--alpha", "1e99"), "--alpha must be between 1e-40 and 1e+40"),
        ((*FIT, "--kernel", "cubic"), "--kernel must be"),
        ((*FIT, "--kernel", "precomputed"), "--kernel precomputed needs the square matrix"),
        ((*FIT, "--surrogate", "cubic"), "--surrogate must be one of"),
        ((*FIT, "--method", "TopPushK", "--k", "1e6"), "the --k 1e+06 largest scores"),
        ((*FIT, "--method", "TopPushK", "--k", "-1"), "--k must be positive"),
        ((*FIT, "--max-fpr", "2"), "--max-fpr must be strictly between 0 and 1"),
        ((*FIT, "--max-fpr", "0.001"), "give more rows, raise --max-fpr to"),
        (("fit", "zero.svm", "-m", "m"), "pass --zero-based if indices start at 0"),
        ((*COMPARE, "--max-fpr", "2"), "--max-fpr must be strictly between 0 and 1"),
        ((*COMPARE, "--alpha", "-1", "--jobs", "2", "--method", "TopPush"), "InputError: --alpha must be positive"),
        (("score", "zero.svm", "-m", "{model}", "-o", "s"), "give a file of that kind"),
        (("evaluate", "train.csv", "-m", "numbers.csv"), "cannot be loaded"),
        (("report", "train.csv", "-m", "numbers.csv", "-o", "r"), "cannot be loaded"),
        (("info", "numbers"), "cannot be loaded"),
        (("stream", "numbers.csv", "-m", "m"), "--target is needed for csv"),
        (("stream", "numbers", "-t", "y", "-m", "m"), "--format csv"),
        (("stream", "bad.csv", "-t", "y", "-m", "m"), "leave such lines out by --on-bad-line skip"),
        (("stream", "labels.csv", "-t", "y", "-m", "m"), "name the positive label by --positive"),
        (("stream", "numbers.csv", "-t", "y", "-m", "m", "--positive", "7"), "check the labels and --positive"),
        (("stream", "cut.csv", "-t", "y", "-m", "m", "--grows"), "or pass --no-grows"),
        (("stream", "zero.svm", "-m", "m"), "pass --zero-based if indices start at 0"),
        (("stream", "zero.svm", "-m", "m", "--fill-missing", "0"), "--fill-missing 0.0 is for columns with names"),
        ((*STREAM, "--delimiter", "ab"), "delimiter must be one character"),
        ((*STREAM, "--ignore", "a", "--ignore", "b"), "leave out fewer columns by --ignore"),
    ],
)
def test_commands_name_their_options(fitted, folder, arguments, message):
    result = run(*(argument.format(model=fitted / "model.toprank") for argument in arguments))
    said = " ".join(result.stderr.replace("│", " ").split())
    assert message in said
    assert keywords(arguments[0], said) == []


def test_after_a_checkpoint(folder):
    options = ("-t", "y", "-m", "m", "--checkpoint", "run", "--on-bad-line", "skip")
    first = run("stream", "bad.csv", *options)
    assert first.exit_code == 0
    assert "302" in first.stderr
    with open("bad.csv", "a") as stream:
        stream.write("1,2,0\n")
    second = run("stream", "bad.csv", *options)
    assert second.exit_code == 0
    assert "after 300 rows" in second.stderr
    other = run("stream", "bad.csv", *options, "--max-fpr", "0.5")
    assert "begun with --max-fpr 0.01, and now --max-fpr is 0.5; run with" in other.stderr
    assert "start anew by --no-resume or another checkpoint" in other.stderr


def test_what_a_stream_does_with_numbers_and_gaps(folder):
    (folder / "gaps.csv").write_text("a,y\n" + "1.5,1\n0.5,0\n,1\n,0\n" * 20)
    plain = run("stream", "gaps.csv", "-t", "y", "-m", "m")
    assert "scaled; missing: the median" in plain.stdout
    other = run("stream", "gaps.csv", "-t", "y", "-m", "m", "--fill-missing", "0.5", "--no-scale")
    assert "as it is; missing: 0.5" in other.stdout
