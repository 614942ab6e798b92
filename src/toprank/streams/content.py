"""The bytes of a text in their order: a file can be opened again and again, a pipe is read once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from toprank.text_files import content_size, is_pipe, open_content, open_pipe

SAMPLE = 1 << 16
_SKIPPED_AT_ONCE = 1 << 20


class Passage(NamedTuple):
    """A part of a text, and the position at which it starts."""

    start: int
    text: bytes

    def before(self, position: int) -> bytes:
        """The last bytes before a position in it."""
        end = position - self.start
        return self.text[max(0, end - SAMPLE) : end]

    def followed_by(self, more: bytes) -> Passage:
        """What is needed of this part, and the text after it."""
        kept = self.text[-SAMPLE:]
        return Passage(self.start + len(self.text) - len(kept), kept + more)


class Content:
    """A text file, compressed or not, or a pipe.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_pipe = is_pipe(path)
        self.size = content_size(path)
        self._pipe = _Pipe(path) if self.is_pipe else None

    @contextmanager
    def opened(self, position: int = 0) -> Iterator[tuple[Any, bytes]]:
        """A stream at a position, and the last bytes before it; too few if the content is shorter."""
        if self._pipe is None:
            with open_content(self.path) as stream:
                stream.seek(max(position - SAMPLE, 0))
                yield stream, stream.read(min(position, SAMPLE))
            return
        try:
            yield self._pipe, self._pipe.skip_to(position)
        except BaseException:
            if not self._pipe.close(*sys.exc_info()):
                raise

    def first(self, size: int) -> bytes:
        """The first bytes, up to `SAMPLE` of them."""
        if self._pipe is not None:
            return self._pipe.first[:size]
        with self.opened() as (stream, _):
            return bytes(stream.read(size))

    def close(self) -> None:
        """Close a pipe that is read to its end, or as far as it will be."""
        if self._pipe is not None:
            self._pipe.close(None, None, None)


class _Pipe:
    """What can be read once: how far it is read, its first bytes, and the last of those that were given."""

    def __init__(self, path: str) -> None:
        self._opened = open_pipe(path)
        self._stream: Any = self._opened.__enter__()
        self._is_open = True
        self._ahead = b""
        self.path, self.position = path, 0
        self.first = self._last = b""

    def peek(self, size: int) -> bytes:
        """The next bytes, which are given again; fewer at the end."""
        while len(self._ahead) < size and (new := self._stream.read1(size)):
            self._ahead += new
        return self._ahead

    def read(self, size: int) -> bytes:
        """Some bytes, as many as there are by now; none at the end."""
        new, self._ahead = self._ahead[:size] or self._stream.read1(size), self._ahead[size:]
        return self._noted(new)

    def readline(self, size: int) -> bytes:
        """The next line, or what there is of it."""
        cut = self._ahead.find(b"\n") + 1
        if cut:
            line, self._ahead = self._ahead[:cut], self._ahead[cut:]
        else:
            line, self._ahead = self._ahead + self._stream.readline(size), b""
        return self._noted(line)

    def skip_to(self, position: int) -> bytes:
        """Go on to a position; the last bytes before it, none if the pipe ends earlier."""
        if position < self.position:
            raise ValueError(f"{self.path!r} is read once, and byte {position} has passed; write it to a file before")
        while self.position < position and self.read(min(position - self.position, _SKIPPED_AT_ONCE)):
            pass
        return self._last if self.position == position else b""

    def _noted(self, new: bytes) -> bytes:
        self.position += len(new)
        self.first += new[: SAMPLE - len(self.first)]
        self._last = (self._last + new[-SAMPLE:])[-SAMPLE:]
        return new

    def close(self, *error: Any) -> bool:
        """Close it, after an error, which is told in words, or without one; whether the error is dealt with."""
        if not self._is_open:
            return False
        self._is_open = False
        return bool(self._opened.__exit__(*error))
