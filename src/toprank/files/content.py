"""Text files, compressed or not, and pipes, as the bytes of their content in their order."""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import IO, Any, NamedTuple

from toprank.exceptions import InputError

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_COMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": partial(zlib.compressobj, wbits=31),
    ".bz2": bz2.BZ2Compressor,
    ".xz": lzma.LZMACompressor,
}


def is_compressed(path: str) -> bool:
    """Whether the name of a file says that it is compressed: .gz, .bz2 or .xz."""
    return os.path.splitext(path)[1].lower() in _OPENERS


def ending_of(path: str) -> str:
    """The ending of a name in small letters, without that of a compression: ".csv" for "rows.CSV.gz"."""
    return os.path.splitext(os.path.splitext(path)[0] if is_compressed(path) else path)[1].lower()


def compressed_for(path: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks of a file to write, compressed if its name says so."""
    if not is_compressed(path):
        yield from blocks
        return
    compressor = _COMPRESSORS[os.path.splitext(path)[1].lower()]()
    for block in blocks:
        yield compressor.compress(block)
    yield compressor.flush()


def content_size(path: str) -> int | None:
    """Number of bytes of the content, if that is known without reading it."""
    return None if is_pipe(path) or is_compressed(path) else os.path.getsize(path)


def require_uncompressed(path: str, format: str) -> None:
    """Refuse a compressed file of a format that is no text."""
    if is_compressed(path):
        raise ValueError(f"{path!r} is compressed, which only CSV and svmlight files may be; unpack this {format} file")


@contextmanager
def open_content(path: str) -> Iterator[IO[bytes]]:
    """The content of a file, to read; one that ends in .gz, .bz2 or .xz is unpacked on the way.

    Positions are those of the content. A compressed file that is cut off or damaged is a `ValueError` when that is met.
    """
    if not is_compressed(path):
        with open(path, "rb") as stream:
            yield stream
        return
    with _told(path), _OPENERS[os.path.splitext(path)[1].lower()](path, "rb") as stream:
        yield stream


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Errors of unpacking, in words."""
    try:
        yield
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if getattr(error, "errno", None) is not None:  # of the operating system
            raise
        raise ValueError(
            f"{path!r} cannot be unpacked ({error}): it is cut off, damaged, or not compressed as its name says; get "
            "it again, or rename it"
        ) from error


STANDARD_INPUT = "-"
_AT_ONCE = 1 << 20
_FIRST_BYTES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}


def is_pipe(path: str) -> bool:
    """Whether a path is ``-`` for standard input, a named pipe, or anything else that can be read once only."""
    return path == STANDARD_INPUT or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


def sum_of(path: str) -> str | None:
    """The SHA-256 sum of a file; None of a pipe, which cannot be read again."""
    if is_pipe(path):
        return None
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(_AT_ONCE):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def open_pipe(path: str) -> Iterator[IO[bytes]]:
    """The content of a pipe, to read once; it is unpacked on the way if its first bytes say that it is compressed."""
    if path == STANDARD_INPUT and sys.stdin is None:
        raise ValueError("standard input is closed; send rows to it, or name a file")
    raw: Any = sys.stdin.buffer if path == STANDARD_INPUT else open(path, "rb")  # noqa: SIM115
    stream = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    try:
        first = stream.peek(6)
        ending = next((ending for start, ending in _FIRST_BYTES.items() if first.startswith(start)), "")
        with _told(path), _OPENERS[ending](stream, "rb") if ending else nullcontext(stream) as content:
            yield content
    finally:
        if path != STANDARD_INPUT:
            raw.close()


SAMPLE = 1 << 16


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
    """A text file, compressed or not, or a pipe, in UTF-8 or from another encoding; ``-`` is standard input."""

    def __init__(self, path: str, encoding: str | None = None) -> None:
        self.path = path
        self.encoding = _known_encoding(encoding)
        self.is_pipe = is_pipe(path)
        self.size = content_size(path) if self.encoding is None else None
        self._pipe = _Pipe(path, self.encoding) if self.is_pipe else None

    @contextmanager
    def opened(self, position: int = 0) -> Iterator[tuple[Any, bytes]]:
        """A stream at a position, and the last bytes before it; too few if the content is shorter."""
        if self._pipe is None:
            with open_content(self.path) as content:
                stream = content if self.encoding is None else io.BufferedReader(_Recoded(content, self.encoding))
                _skip(stream, max(position - SAMPLE, 0))
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


def _known_encoding(encoding: str | None) -> str | None:
    """An encoding by its own name, None for UTF-8."""
    if encoding is None:
        return None
    try:
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError):
        raise InputError.of(
            "encoding", encoding, "must be the name of an encoding", "use 'latin-1', 'cp1252' or 'utf-16'"
        ) from None
    return None if name in ("utf-8", "utf-8-sig", "ascii") else name


def _skip(stream: Any, position: int) -> None:
    """Go to a position of a stream that is at its start."""
    if stream.seekable():
        stream.seek(position)
        return
    while position and (passed := stream.read(min(position, _AT_ONCE))):
        position -= len(passed)


class _Recoded(io.RawIOBase):
    """The text of a stream, from another encoding, in UTF-8."""

    def __init__(self, content: Any, encoding: str) -> None:
        super().__init__()
        self._content = content
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._encoding = encoding
        self._ready = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or a part of it."""
        while not self._ready:
            new = self._content.read(_AT_ONCE)
            try:
                self._ready = self._decoder.decode(new, final=not new).encode()
            except UnicodeError as error:
                raise InputError.of(
                    "encoding", self._encoding, "must be that of the file", "it has other bytes ({error})", error=error
                ) from None
            if not new:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


class _Pipe:
    """What can be read once: how far it is read, its first bytes, and the last of those that were given."""

    def __init__(self, path: str, encoding: str | None = None) -> None:
        self._opened = open_pipe(path)
        self._stream: Any = self._opened.__enter__()
        if encoding is not None:
            self._stream = io.BufferedReader(_Recoded(self._stream, encoding))
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
        while self.position < position and self.read(min(position - self.position, _AT_ONCE)):
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
