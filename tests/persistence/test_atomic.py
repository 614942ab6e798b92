"""The one writer of files: permissions from the first byte on, and no parts of processes that were killed."""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from toprank.persistence.atomic import write_atomically

pytestmark = pytest.mark.skipif(os.name == "nt", reason="permissions and signals of Unix")


def parts_in(folder):
    return [name for name in os.listdir(folder) if name.endswith(".part")]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o666])
def test_a_part_has_the_permissions_of_the_file_that_it_will_replace(mode, tmp_path):
    target = tmp_path / "private"
    target.write_bytes(b"old")
    target.chmod(mode)
    seen = []

    def blocks():
        for block in (b"a", b"b" * 100_000):
            yield block
            seen.extend(stat.S_IMODE((tmp_path / name).stat().st_mode) for name in parts_in(tmp_path))

    mask = os.umask(0o022)
    try:
        write_atomically(target, blocks())
    finally:
        os.umask(mask)
    assert seen == [mode, mode]
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert target.read_bytes() == b"a" + b"b" * 100_000


KILLED = """
import os, signal, sys
from toprank.persistence.atomic import write_atomically

def blocks():
    yield b"half"
    os.kill(os.getpid(), signal.SIGKILL)

write_atomically(sys.argv[1], blocks())
"""


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / ".toprank.notes.part").write_text("of someone else")
    for _ in range(2):
        killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "model"])
        assert killed.returncode == -signal.SIGKILL
        assert len(parts_in(tmp_path)) == 2  # and those of earlier runs are gone
    write_atomically(tmp_path / "model", [b"whole"])
    assert sorted(os.listdir(tmp_path)) == [".toprank.notes.part", "model"]


def test_a_part_that_is_being_written_stays(tmp_path):
    def blocks():
        yield b"outer"
        write_atomically(tmp_path / "model", [b"inner"])
        subprocess.run([sys.executable, "-c", WRITES, tmp_path / "model"], check=True)
        assert len(parts_in(tmp_path)) == 1
        yield b" one"

    write_atomically(tmp_path / "model", blocks())
    assert (tmp_path / "model").read_bytes() == b"outer one"
    assert parts_in(tmp_path) == []


WRITES = """
import sys
from toprank.persistence.atomic import write_atomically

write_atomically(sys.argv[1], [b"another process"])
"""


def test_many_writers_of_one_file(tmp_path):
    contents = [bytes([65 + i]) * 50_000 for i in range(8)]
    failures = []

    def write(content):
        try:
            for _ in range(20):
                write_atomically(tmp_path / "model", [content[:100], content[100:]])
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=[content]) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if (tmp_path / "model").exists():
            assert (tmp_path / "model").read_bytes() in contents
    for thread in threads:
        thread.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["model"]


def test_a_part_that_was_taken_for_one_left_behind_is_made_anew(tmp_path, monkeypatch):
    from toprank.persistence import atomic

    lock, taken = atomic._lock, []

    def slow(descriptor, *, wait):
        if wait and not taken:  # another process was faster
            taken.extend(parts_in(tmp_path))
            os.unlink(tmp_path / taken[0])
        return lock(descriptor, wait=wait)

    monkeypatch.setattr(atomic, "_lock", slow)
    write_atomically(tmp_path / "model", [b"whole"])
    assert len(taken) == 1
    assert os.listdir(tmp_path) == ["model"]
    assert (tmp_path / "model").read_bytes() == b"whole"
