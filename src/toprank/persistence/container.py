r"""The bytes of a model file: a fixed opening, a JSON header, aligned arrays, a checksum.

========  ===========================================================
bytes     content
========  ===========================================================
8         ``b"TOPRANK\n"``
4         format version, unsigned, little endian
8         length h of the header, unsigned, little endian
h         header: strict JSON in ASCII
…         arrays in the order of their nodes, each from the next multiple of 64 on; zero bytes between
32        SHA-256 of all bytes before
========  ===========================================================

Nothing is compressed and an array's place follows from the sizes before it, so the arrays cannot claim more memory than
the file has bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.persistence.atomic import write_atomically
from toprank.persistence.errors import ModelFileError

FORMAT_VERSION = 1
_MAGIC = b"TOPRANK\n"
_OPENING = struct.Struct("<8sIQ")
_DIGEST_SIZE = 32
_ALIGNMENT = 64


def write_container(path: str | os.PathLike[str], header: dict[str, Any], arrays: list[NDArray[Any]]) -> None:
    """Write a file, atomically; see the module for its bytes."""
    write_atomically(path, _with_digest(_blocks(header, arrays)))


def content_sum(header: dict[str, Any], arrays: list[NDArray[Any]]) -> str:
    """The checksum that a file would have, in hexadecimal digits."""
    *_, digest = _with_digest(_blocks(header, arrays))
    return bytes(digest).hex()


def _blocks(header: dict[str, Any], arrays: list[NDArray[Any]]) -> Iterator[Any]:
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    yield _OPENING.pack(_MAGIC, FORMAT_VERSION, len(text))
    yield text
    position = _OPENING.size + len(text)
    for array in arrays:
        yield bytes(-position % _ALIGNMENT)
        position += -position % _ALIGNMENT + array.nbytes
        flat = array.reshape(-1, order="F" if is_fortran(array) else "C")
        yield np.ascontiguousarray(flat).view(np.uint8).data


def _with_digest(blocks: Iterator[Any]) -> Iterator[Any]:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
        yield block
    yield digest.digest()


def is_fortran(array: NDArray[Any]) -> bool:
    """Whether an array is stored column by column; products of it may round differently than by rows.

    The steps decide: some rows of an array in column order, such as the components of a PCA, are in column order too.
    """
    if array.flags.c_contiguous:
        return False
    steps = [abs(step) for step, size in zip(array.strides, array.shape, strict=True) if size > 1]
    return len(steps) > 1 and steps[0] > 0 and steps == sorted(steps)


class Container:
    """A file whose checksum was found right, and a cursor over its arrays."""

    def __init__(self, header: Any, content: bytes, position: int) -> None:
        self.header = header
        self.size = len(content)
        self._content = content
        self._position = position

    def take(self, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any) -> NDArray[Any]:
        """The next array, as a copy of its own, after a look at whether the file is long enough for it."""
        start = self._position + -self._position % _ALIGNMENT
        nbytes = prod(shape) * dtype.itemsize
        end = len(self._content) - _DIGEST_SIZE
        if start + nbytes > end:
            raise ModelFileError(
                f"an array of shape {shape} and type {dtype.str} needs {nbytes} bytes, the file has only "
                f"{max(end - start, 0)} left for it"
            )
        self._position = start + nbytes
        flat = np.frombuffer(self._content, dtype, prod(shape), start)
        return flat.reshape(shape, order=order).copy(order=order)

    def require_end(self) -> None:
        """Check that nothing follows the last array."""
        if self._position != len(self._content) - _DIGEST_SIZE:
            raise ModelFileError("it has bytes that belong to no array")


def read_container(path: str | os.PathLike[str]) -> Container:
    """Read a file and check its opening, its version, its checksum and that the header is JSON."""
    content, header_size = _read(path)
    end = len(content) - _DIGEST_SIZE
    body = memoryview(content)[: max(end, 0)]
    if end < _OPENING.size or hashlib.sha256(body).digest() != content[end:]:
        raise ModelFileError("its checksum does not fit its content: it is truncated or altered; copy it again")
    if _OPENING.size + header_size > end:
        raise ModelFileError(f"its header claims {header_size} bytes, more than the file has")
    position = _OPENING.size + header_size
    try:
        header = json.loads(bytes(body[_OPENING.size : position]), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its header is not valid JSON ({error})") from error
    return Container(header, content, position)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _read(path: str | os.PathLike[str]) -> tuple[bytes, int]:
    """All bytes and the size of the header; what is clearly no model is not read to its end."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # to open a pipe would wait for its writer
        raise ModelFileError("it is not a plain file")
    with open(path, "rb") as stream:
        opening = stream.read(_OPENING.size)
        if opening[: len(_MAGIC)] != _MAGIC[: len(opening)] or not opening:
            raise ModelFileError("it does not start as a file of toprank.save does; load pickles with their own tools")
        if len(opening) < _OPENING.size:
            raise ModelFileError(f"it ends after {len(opening)} bytes: it is truncated; copy it again")
        _, version, header_size = _OPENING.unpack(opening)
        if version > FORMAT_VERSION:
            raise ModelFileError(
                f"its format has version {version}, and this toprank reads versions up to {FORMAT_VERSION}; install a "
                "newer toprank"
            )
        if version < 1:
            raise ModelFileError(f"its format has version {version}, which does not exist: the file is altered")
        return opening + stream.read(), header_size
