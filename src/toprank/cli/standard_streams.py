"""Standard output that takes all that is written or fails, and standard error whose loss stops no work."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

BROKEN_PIPE = 141
"""The exit code when the reader has left: 128 and the number of SIGPIPE, as a shell reports it of other programs."""


DEBUG = "TOPRANK_DEBUG"
"""The variable of the environment that shows where errors come from."""
_ERRORS = 2


class LostOutput(Exception):  # noqa: N818
    """Standard output did not take what was written; no OSError, as those are handled by who does not know of it."""


class _Whole(io.RawIOBase):
    """Bytes to a raw stream (None: a closed one), all of them, however few it takes at once.

    An unbuffered stream (``PYTHONUNBUFFERED``) may take a part of what it gets, and neither text streams nor those who
    write to them look at how much that was. With `fails` an error is `LostOutput`; else what is written after it is
    dropped.
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
    with _native_messages_apart() as errors:
        sys.stdout, sys.stderr = _whole(sys.stdout, fails=True), _whole(sys.stderr, fails=False, raw=errors)
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
            sys.stderr.flush()
            sys.stdout, sys.stderr = before


def _whole(stream: Any, *, fails: bool, raw: Any = None) -> Any:
    """A text stream on a whole one, to `raw` if that is given; one that is not of the operating system stays."""
    buffer = getattr(stream, "buffer", None)
    own = getattr(buffer, "raw", buffer)
    if stream is not None and not isinstance(own, io.RawIOBase):
        return stream
    whole = io.BufferedWriter(_Whole(raw or own, fails=fails))
    encoding, by_line = ("utf-8", True) if stream is None else (stream.encoding, stream.line_buffering or buffer is own)
    return io.TextIOWrapper(whole, encoding=encoding, errors="backslashreplace", line_buffering=by_line)


@contextmanager
def _native_messages_apart() -> Iterator[io.RawIOBase | None]:
    """A way to standard error for Python alone; what native code writes there is shown at the end, but for a panic.

    At a damaged file polars panics: to Python that is an exception, which becomes an error message, and besides it
    writes pages about its inner life. Nothing is set apart, and there is no such way, while `DEBUG` is set.
    """
    try:
        number = None if sys.stderr is None or os.environ.get(DEBUG) else sys.stderr.fileno()
        kept = tempfile.TemporaryFile() if number == _ERRORS and os.name == "posix" else None  # noqa: SIM115
    except OSError:  # a stream of Python, or no place for temporary files
        kept = None
    if kept is None:
        yield None
        return
    with kept, open(os.dup(_ERRORS), "wb", buffering=0) as shown:
        os.dup2(kept.fileno(), _ERRORS)
        try:
            yield shown
        finally:
            os.dup2(shown.fileno(), _ERRORS)
            kept.seek(0)
            messages = kept.read()
            if b"panicked at" not in messages:
                with suppress(OSError):
                    shown.write(messages)
