"""Text files, compressed or not, as the bytes of their content."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def is_compressed(path: str) -> bool:
    """Whether the name of a file says that it is compressed: .gz, .bz2 or .xz."""
    return os.path.splitext(path)[1].lower() in _OPENERS


def ending_of(path: str) -> str:
    """The ending of a name in small letters, without that of a compression: ".csv" for "rows.CSV.gz"."""
    return os.path.splitext(os.path.splitext(path)[0] if is_compressed(path) else path)[1].lower()


def content_size(path: str) -> int | None:
    """Number of bytes of the content, if that is known without reading it."""
    return None if is_pipe(path) or is_compressed(path) else os.path.getsize(path)


def require_uncompressed(path: str, format: str) -> None:
    """Refuse a compressed file of a format that is no text."""
    if is_compressed(path):
        raise ValueError(f"{path!r} is compressed, which only CSV and svmlight files may be; unpack this {format} file")


@contextmanager
def open_content(path: str) -> Iterator[IO[bytes]]:
    """The content of a file, to read; positions in it are those of the content.

    Parameters
    ----------
    path : str
        A file; one that ends in .gz, .bz2 or .xz is unpacked on the way.

    Raises
    ------
    ValueError
        If a compressed file is cut off or damaged, when that is met.

    Examples
    --------
    >>> import gzip, os, tempfile
    >>> from toprank.text_files import open_content
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.csv.gz")
    ...     with gzip.open(path, "wb") as stream:
    ...         _ = stream.write(b"x,y")
    ...     with open_content(path) as stream:
    ...         stream.read()
    b'x,y'
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
_FIRST_BYTES = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}


def is_pipe(path: str) -> bool:
    """Whether a path is ``-`` for standard input, a named pipe, or anything else that can be read once only."""
    return path == STANDARD_INPUT or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path))


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
