"""Files that are either the old ones or the new ones, whole, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable
from typing import IO, Any

if sys.platform != "win32":
    import fcntl

# A name of its own: one with an addition to the name of the target may be too long.
_PART = ".toprank.{}.part"
_IS_PART = re.compile(r"\.toprank\.[0-9a-f]{16}\.part")
_being_written: set[str] = set()


def write_atomically(path: str | os.PathLike[str], blocks: Iterable[Any]) -> None:
    """Write blocks of bytes to a file by way of a temporary file, its part, in the same folder.

    The part is flushed to the disk before it takes the name of the target, so a reader never meets an unfinished file,
    and neither does anyone after a power cut. An existing file keeps its permissions, which the part has before its
    first byte; a link stays a link. Parts that killed processes left in the folder are removed: a part is locked while
    it is written, and the system takes the lock from a process that ends (not on Windows). Where the path cannot be
    written, or taking a block raises, the target stays as it was.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    mode = _mode_of(target)
    _remove_left_behind(folder)
    try:
        part, stream = _new_part(folder, 0o666 if mode is None else 0o600)
        try:
            with stream:
                if mode is not None:
                    os.chmod(stream.fileno() if os.chmod in os.supports_fd else part, mode)
                for block in blocks:
                    stream.write(block)
                stream.flush()
                os.fsync(stream.fileno())
                if sys.platform == "win32":
                    stream.close()  # an open file cannot be renamed there
                os.replace(part, target)  # while it is locked
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        finally:
            _being_written.discard(part)
    except OSError as error:
        raise OSError(
            error.errno,
            f"{target!r} cannot be written ({error.strerror}), and nothing was changed; use a path in an existing "
            "folder that you may write to, with enough space",
        ) from error
    _flush_folder(folder)


def _new_part(folder: str, mode: int) -> tuple[str, IO[bytes]]:
    """A new file, locked."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        part = os.path.join(folder, _PART.format(secrets.token_hex(8)))
        stream = os.fdopen(os.open(part, flags, mode), "wb")
        _being_written.add(part)
        _lock(stream.fileno(), wait=True)
        if os.path.exists(part):  # else another process took it for one left behind, as it was not locked yet
            return part, stream
        stream.close()
        _being_written.discard(part)


def _remove_left_behind(folder: str) -> None:
    """Remove the parts that no one writes any more."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(folder) if _IS_PART.fullmatch(name)]
        for part in {os.path.join(folder, name) for name in names} - _being_written:
            with contextlib.suppress(OSError):
                descriptor = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if _lock(descriptor, wait=False):
                        os.unlink(part)
                finally:
                    os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Take the lock of an open file; False if another process has it, or the disk has no locks."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _mode_of(target: str) -> int | None:
    """The permissions of an existing file; None if there is none."""
    try:
        mode = os.stat(target).st_mode
    except OSError:
        return None
    if not stat.S_ISREG(mode):
        raise OSError(f"{target!r} exists and is not a plain file, so it is not replaced; use another path")
    return stat.S_IMODE(mode)


def _flush_folder(folder: str) -> None:
    """Make the new name itself last; where folders cannot be opened, as on Windows, the system sees to it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def same_file(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file, by links too; it need not exist."""
    try:
        return os.path.samefile(a, b)
    except OSError:
        return os.path.realpath(a) == os.path.realpath(b)
