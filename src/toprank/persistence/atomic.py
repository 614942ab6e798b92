"""Files that are either the old ones or the new ones, whole, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from typing import Any


def write_atomically(path: str | os.PathLike[str], blocks: Iterable[Any]) -> None:
    """Write blocks of bytes to a file by way of a temporary file in the same folder.

    The temporary file is flushed to the disk before it takes the name of the target, so a reader never meets a part of
    it, and neither does anyone after a power cut. An existing file keeps its permissions; a link stays a link.

    Parameters
    ----------
    path : path
        The file to write or to replace.
    blocks : iterable of bytes-like
        Its content. If taking a block raises, the target stays as it was.

    Raises
    ------
    OSError
        If the folder does not exist or is not writable, the disk is full, or the path is no plain file.
    """
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    mode = _mode_of(target)
    # a name of its own: one with an addition to the name of the target may be too long
    part = os.path.join(folder, f".toprank-{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                for block in blocks:
                    stream.write(block)
                stream.flush()
                os.fsync(stream.fileno())
            if mode is not None:
                os.chmod(part, mode)
            os.replace(part, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
    except OSError as error:
        raise OSError(
            error.errno,
            f"{target!r} cannot be written ({error.strerror}), and nothing was changed; use a path in an existing "
            "folder that you may write to, with enough space",
        ) from error
    _flush_folder(folder)


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
