"""Standard output that takes all that is written or fails, and standard error whose loss stops no work."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BROKEN_PIPE = 141
"""The exit code when the reader has left: 128 and the number of SIGPIPE, as a shell reports it of other programs."""


class LostOutput(Exception):  # noqa: N818
    """Standard output did not take what was written; no OSError, as those are handled by who does not know of it."""


class _Whole(io.RawIOBase):
    """Bytes to a raw stream, all of them, however few it takes at once.

    An unbuffered stream (``PYTHONUNBUFFERED``) may take a part of what it gets, and neither text streams nor those who
    write to them look at how much that was.

    Parameters
    ----------
    raw : io.RawIOBase or None
        The stream; None if it is closed.
    fails : bool
        Whether to raise `LostOutput` at an error; else what is written after it is dropped.
    """

    def __init__(self, raw: io.RawIOBase | None, *, fails: bool) -> None:
        super().__init__()
        self._raw = raw
        self._fails = fails
        self._lost = False

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """That of the stream."""
        return super().fileno() if self._raw is None else self._raw.fileno()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._raw is not None and self._raw.isatty()

    def write(self, content: Any) -> int:
        """Write all; after an error nothing more, so that it is said once."""
        rest = memoryview(content).cast("B")
        size = len(rest)
        try:
            while rest and not self._lost:
                if self._raw is None:
                    raise OSError(errno.EBADF, os.strerror(errno.EBADF))
                taken = self._raw.write(rest)
                if taken is None:  # a stream that does not block is full
                    select.select([], [self._raw], [])
                else:
                    rest = rest[taken:]
        except OSError as error:
            self._lost = True
            if self._fails:
                raise LostOutput from error
        return size


@contextmanager
def whole_streams() -> Iterator[None]:
    """Within it standard output and standard error are whole; a loss of output ends the program with its exit code."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _whole(sys.stdout, fails=True), _whole(sys.stderr, fails=False)
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except LostOutput as lost:
        reason = lost.__cause__
        if isinstance(reason, BrokenPipeError):
            raise SystemExit(BROKEN_PIPE) from None
        sys.stderr.write(
            f"error: standard output cannot be written ({getattr(reason, 'strerror', reason)}), and what it got is "
            "not whole; make space, or send it elsewhere\n"
        )
        raise SystemExit(1) from None
    finally:
        sys.stdout, sys.stderr = before


def _whole(stream: Any, *, fails: bool) -> Any:
    """A text stream on a whole one; one that is not of the operating system stays as it is."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if stream is not None and not isinstance(raw, io.RawIOBase):
        return stream
    whole = io.BufferedWriter(_Whole(raw, fails=fails))
    encoding, by_line = ("utf-8", True) if stream is None else (stream.encoding, stream.line_buffering or buffer is raw)
    return io.TextIOWrapper(whole, encoding=encoding, errors="backslashreplace", line_buffering=by_line)
