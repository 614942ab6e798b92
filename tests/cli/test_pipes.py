"""Rows to score or to measure may come from a pipe."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import threading

import pytest

from cli.support import files_in, run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="named pipes of Unix")


@pytest.fixture
def piped(tmp_path):
    """A function that sends content to a named pipe and runs a command, in whose arguments PIPE is that."""
    threads = {}

    def command(content, *arguments):
        path = tmp_path / f"pipe{len(threads)}"
        os.mkfifo(path)

        def send():
            with open(path, "wb") as stream:
                try:
                    stream.write(content)
                    stream.flush()
                except BrokenPipeError:
                    stream.raw.close()  # the command wants no more

        threads[path] = threading.Thread(target=send, daemon=True)
        threads[path].start()
        return run(*(path if argument == "PIPE" else argument for argument in arguments))

    yield command
    for path, thread in threads.items():
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))  # a sender whose pipe was never opened waits for it
        thread.join(10)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress], ids=["", "gz", "bz2", "xz"])
@pytest.mark.parametrize("options", [(), ("--top", "5")], ids=["all", "top"])
def test_scores_of_a_pipe_are_those_of_the_file(fitted, piped, pack, options):
    arguments = ("-m", fitted / "model.toprank", "-o", "-", *options)
    expected = run("score", fitted / "new.csv", *arguments)
    result = piped(pack((fitted / "new.csv").read_bytes()), "score", "PIPE", *arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout == expected.stdout


def test_standard_input(fitted):
    command = [sys.executable, "-m", "toprank.cli", "score", "-", "-m", fitted / "model.toprank", "-o", "-"]
    done = subprocess.run(command, input=(fitted / "new.csv").read_bytes(), capture_output=True, check=True)
    assert done.stdout == run("score", fitted / "new.csv", *command[5:]).stdout_bytes


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_measures_of_a_pipe(fitted, piped, tmp_path, command):
    page = ("-o", tmp_path / "r.html") if command == "report" else ()
    content = (fitted / "test.csv").read_bytes()
    result = piped(content, command, "PIPE", "-m", fitted / "model.toprank", *page)
    assert result.exit_code == 0, result.output
    assert "800 rows" in result.stdout
    assert "is a pipe, so whether the model learned from some of these rows is not known" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("fit", "PIPE", "-t", "fraud", "-m", "{out}"),
            1,
            "can be read once, and it is needed twice; save it in a file",
        ),
        (("compare", "PIPE", "-t", "fraud"), 1, "can be read once"),
        (("score", "PIPE", "-m", "{model}", "-o", "{out}", "--share", "0.1"), 2, "use --top, or save it"),
        (("score", "PIPE", "-m", "{model}", "-o", "{out}", "--format", "parquet"), 1, "not read from a pipe"),
    ],
    ids=["fit", "compare", "share", "parquet"],
)
def test_what_needs_a_file_says_so(fitted, piped, tmp_path, arguments, code, message):
    names = {"out": tmp_path / "out", "model": fitted / "model.toprank"}
    content = (fitted / "test.csv").read_bytes() if arguments[0] in ("fit", "compare") else b""
    if not content:
        os.mkfifo(tmp_path / "unread")
        arguments = tuple(tmp_path / "unread" if one == "PIPE" else one for one in arguments)
        result = run(*(str(one).format(**names) for one in arguments))
    else:
        result = piped(content, *(one.format(**names) for one in arguments))
    assert result.exit_code == code
    assert message in " ".join(result.stderr.replace("│", " ").split())
    assert "out" not in files_in(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda content: b"", "is empty"),
        (lambda content: content + b"1,2\n", "line 802 of"),
        (lambda content: gzip.compress(content)[:-100], "cannot be unpacked"),
        (lambda content: content.splitlines(keepends=True)[0], "has no rows"),
    ],
    ids=["empty", "bad line", "cut off", "no rows"],
)
def test_errors_of_a_pipe(fitted, piped, tmp_path, change, message):
    content = change((fitted / "new.csv").read_bytes())
    result = piped(content, "score", "PIPE", "-m", fitted / "model.toprank", "-o", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert "out.csv" not in files_in(tmp_path)
