"""Standard output gets everything, or the command fails and says so."""

import io
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

from cli.support import files_in, run, transactions
from toprank.cli.standard_streams import BROKEN_PIPE, LostOutput, _Whole, whole_streams

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pipes and signals of Unix")
UNBUFFERED = {**os.environ, "PYTHONUNBUFFERED": "1"}


def start(*arguments, **options):
    """A command in a process of its own, with unbuffered streams."""
    command = [sys.executable, "-m", "toprank.cli", *map(str, arguments)]
    return subprocess.Popen(command, env=UNBUFFERED, stderr=subprocess.PIPE, text=True, **options)


@pytest.fixture(scope="module")
def to_score(fitted, tmp_path_factory):
    """Arguments of a command whose output is several times what a pipe holds, and that output."""
    path = tmp_path_factory.mktemp("large") / "new.csv"
    transactions(12_000, seed=2).drop("fraud").write_csv(path)
    arguments = ("score", path, "-m", fitted / "model.toprank", "-o", "-")
    return arguments, run(*arguments).stdout_bytes


def test_a_stopped_writer_loses_nothing(to_score):
    arguments, expected = to_score
    reader, writer = os.pipe()
    with start(*arguments, stdout=writer) as command, open(reader, "rb") as stream:
        os.close(writer)
        select.select([stream], [], [])
        time.sleep(0.3)  # the pipe is full and the command waits, inside a write
        for number in (signal.SIGSTOP, signal.SIGCONT):
            command.send_signal(number)
        assert stream.read() == expected
    assert command.returncode == 0


def test_a_full_disk_is_no_success(tmp_path):
    """The disk takes a part of what is written at once."""
    limit = 101

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with open(tmp_path / "out.json", "wb") as stream:
        command = start("info", "--json", stdout=stream, preexec_fn=small_files)
        said = command.communicate()[1]
    assert command.returncode == 1
    assert said.startswith("error: standard output cannot be written (File too large)")
    assert said.count("\n") == 1
    assert (tmp_path / "out.json").read_bytes() == run("info", "--json").stdout_bytes[:limit]


def test_a_full_disk_leaves_the_old_file(to_score, tmp_path):
    (tmp_path / "out.csv").write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_001, before[1]))
    try:
        result = run(*to_score[0][:-1], tmp_path / "out.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert result.exit_code == 1
    assert "cannot be written (File too large), and nothing was changed" in result.stderr
    assert (tmp_path / "out.csv").read_text() == "old"
    assert files_in(tmp_path) == ["out.csv"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("--help",), ("info", "--json"), ("--version",)], ids=lambda one: one[0])
def test_nothing_fits(arguments):
    with open("/dev/full", "wb") as stream:
        command = start(*arguments, stdout=stream)
        said = command.communicate()[1]
    assert command.returncode == 1
    assert said.startswith("error: standard output cannot be written (No space left on device)")
    assert said.count("\n") == 1


def test_a_reader_that_leaves_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "wb") as stream:
        command = start("info", "--json", stdout=stream)
        said = command.communicate()[1]
    assert said == ""
    assert command.returncode == BROKEN_PIPE


def test_a_closed_standard_output_is_an_error():
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m toprank.cli --version >&-"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "standard output cannot be written (Bad file descriptor)" in done.stderr


class Sparing(io.RawIOBase):
    """It takes three bytes at once at most, and none at some times."""

    def __init__(self):
        self.content, self.calls = b"", 0

    def writable(self):
        return True

    def write(self, content):
        self.calls += 1
        if self.calls % 5 == 0:
            return 0
        self.content += bytes(content[:3])
        return min(3, len(content))


def test_every_byte_is_written(monkeypatch):
    raw = Sparing()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    with whole_streams():
        sys.stdout.write("0123456789" * 50 + "\n")
        sys.stdout.buffer.write(b"x" * 20_000)
        sys.stdout.write("é → \udcff")  # what the encoding has not is shown, not an error
    assert raw.content == b"0123456789" * 50 + b"\n" + b"x" * 20_000 + rb"\xe9 \u2192 \udcff"
    assert raw.calls > 6000


def test_a_pipe_that_does_not_block():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    content, got = os.urandom(1 << 20), []

    def read():
        with open(reader, "rb", buffering=0) as stream:
            while part := stream.read(5000):
                got.append(part)

    thread = threading.Thread(target=read)
    thread.start()
    with open(writer, "wb", buffering=0) as stream:
        assert _Whole(stream, fails=True).write(content) == len(content)
    thread.join()
    assert b"".join(got) == content


def test_an_error_is_said_once_and_that_of_standard_error_never():
    with open("/dev/null", "rb", buffering=0) as stream:  # not to be written
        whole = _Whole(stream, fails=True)
        with pytest.raises(LostOutput):
            whole.write(b"x")
        assert whole.write(b"xy") == 2
        assert _Whole(stream, fails=False).write(b"xyz") == 3


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (b"thread 'a' panicked at b.rs:1:\nstack backtrace:\n", b"error: said in Python\n"),
        (b"a warning of native code\n", b"error: said in Python\na warning of native code\n"),
    ],
    ids=["panic", "other"],
)
def test_panics_of_native_code_are_not_shown(message, shown):
    program = (
        "import os, sys\n"
        "from toprank.cli.standard_streams import whole_streams\n"
        "with whole_streams():\n"
        f"    os.write(2, {message!r})\n"
        "    sys.stderr.write('error: said in Python\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stderr == shown
    debugged = {**os.environ, "TOPRANK_DEBUG": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=debugged)
    assert done.stderr == message + b"error: said in Python\n"
