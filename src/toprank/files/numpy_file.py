"""NumPy files: .npy with one array, .npz with several; read in parts, without unpickling."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from toprank.files.errors import TableError
from toprank.files.source import BLOCK_VALUES, NUMBER, TEXT, Batch, TypedTable, batch_of, numbered
from toprank.files.spelling import polars

_MOST_COLUMNS = 1_000_000
# An array may unpack to this many bytes, or to so many times the size of the file.
_LARGE, _LARGEST_RATIO = 1 << 30, 100


class NumpyTable(TypedTable):
    """Arrays with a row each.

    Columns of an .npy file are named by their numbers from 0, or by the fields of a structured array. In an .npz file
    an array of one dimension is a column of its name, and one of two dimensions, such as X, the columns X_0, X_1, ….
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._columns: dict[str | None, list[tuple[str, np.dtype[Any]]]] = {}
        lengths = {}
        with ExitStack() as stack, _Readable(self.path):
            for member, array in self._open(stack).items():
                self._columns[member] = _columns_of(array, member)
                lengths[member] = array.n_rows
        if len(set(lengths.values())) != 1:
            shown = ", ".join(f"{_label(member)}: {n}" for member, n in lengths.items()) or "there is none"
            raise TableError(f"the arrays of {path!r} must have the same number of rows ({shown}); save such arrays")
        self.size = next(iter(lengths.values()))
        columns = [column for columns in self._columns.values() for column in columns]
        self.names = [name for name, _ in columns]
        self.types = {name: _kind(dtype) for name, dtype in columns}
        self.numbers = frozenset(name for name, dtype in columns if dtype.kind in "iufb")

    def _open(self, stack: ExitStack, chosen: Collection[str | None] | None = None) -> dict[str | None, _Array]:
        """The arrays of the file, or some of them, each at its first row."""
        if not self.path.lower().endswith(".npz"):
            stream = stack.enter_context(open(self.path, "rb"))  # noqa: SIM115
            return {None: _Array(stream, os.path.getsize(self.path))}
        archive = stack.enter_context(zipfile.ZipFile(self.path))
        members = {member.filename: member for member in archive.infolist() if member.filename.endswith(".npy")}
        _check_unpacked(list(members.values()), os.path.getsize(self.path))
        return {
            name: _Array(stack.enter_context(archive.open(member)), member.file_size)
            for name, member in members.items()
            if chosen is None or name in chosen
        }

    @property
    def has_blocks(self) -> bool:  # type: ignore[override]
        """Whether any rows are read without those before them: not those of an archive."""
        return not self.path.lower().endswith(".npz")

    def block(self, kinds: Mapping[str, str], first: int, count: int) -> Batch:
        """Some rows with the named columns, of the file as a part of memory."""
        with _Readable(self.path):
            rows = np.load(self.path, mmap_mode="r", allow_pickle=False)[first : first + count]
        series = {name: values for name, values in _split(rows, self._columns[None]) if name in kinds}
        frame = polars().DataFrame({name: _as_series(name, series[name]) for name in kinds})
        return batch_of(frame, kinds, self.spelling, numbered(first), first, first + len(frame))

    def batches(self, kinds: Mapping[str, str], first_row: int = 0) -> Iterator[Batch]:
        """Rows with the named columns from one on, some two million values at a time."""
        step = max(1, BLOCK_VALUES // max(1, len(self.names)))
        needed = [member for member, columns in self._columns.items() if any(name in kinds for name, _ in columns)]
        with ExitStack() as stack:
            with _Readable(self.path):
                arrays = self._open(stack, needed)
                for array in arrays.values():
                    array.skip(first_row)
            for first in range(first_row, self.size, step):
                series: dict[str, Any] = {}
                for member, array in arrays.items():
                    with _Readable(self.path):
                        rows = array.take(min(step, self.size - first))
                    series |= {name: values for name, values in _split(rows, self._columns[member]) if name in kinds}
                frame = polars().DataFrame({name: _as_series(name, series[name]) for name in kinds})
                where = numbered(first)
                yield batch_of(frame, kinds, self.spelling, where, first, first + len(frame))


class _Readable:
    """Errors of reading as those of a table."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        # the parsers of headers and archives raise many kinds of errors; those of the system name the file
        of_system = isinstance(error, OSError) and error.filename is not None
        if isinstance(error, Exception) and not (isinstance(error, TableError) or of_system):
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TableError(
                f"{self.path!r} cannot be read as a NumPy file ({reason[:120]}); write it again by numpy.save or "
                "numpy.savez, without objects"
            ) from None


def _check_unpacked(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse an archive that is small and would unpack to much."""
    unpacked, limit = sum(member.file_size for member in members), max(_LARGE, _LARGEST_RATIO * size)
    if unpacked > limit:
        raise ValueError(
            f"its {size} bytes unpack to {unpacked}, and the limit is {limit}; save it without compression"
        )


class _Array:
    """An array in a stream of some bytes, row after row."""

    def __init__(self, stream: Any, size: int) -> None:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"format version {version}")
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, self.dtype = read_header(stream)
        if self.dtype.hasobject:
            raise ValueError("it holds objects")
        is_table = (
            len(shape) in (1, 2)
            and not (len(shape) == 2 and self.dtype.names)
            and min(shape) >= 0
            and 0 not in shape[1:]
        )
        if not is_table or self.dtype.subdtype is not None or not self.dtype.itemsize:
            raise ValueError(f"an array of shape {shape} of {self.dtype} is no table")
        if len(shape) == 2 and shape[1] > _MOST_COLUMNS:
            raise ValueError(f"it has {shape[1]} columns, and the limit is {_MOST_COLUMNS}; use svmlight for so many")
        needed = stream.tell() + math.prod(shape) * self.dtype.itemsize
        if needed > size:
            raise ValueError(
                f"it is truncated or altered: an array of shape {shape} of {self.dtype} needs {needed} bytes of {size}"
            )
        self.n_rows = int(shape[0])
        self.n_columns = int(shape[1]) if len(shape) == 2 else None
        self._row_size = math.prod(shape[1:]) * self.dtype.itemsize
        self._stream = stream
        self._rows: NDArray[Any] | None = None
        self._next = 0
        self._fortran = fortran and len(shape) == 2

    def take(self, count: int) -> NDArray[Any]:
        """The next rows."""
        if self._fortran:  # stored by columns: there is no row before the end
            if self._rows is None:
                self._rows = self._read(self.n_rows).reshape(self.n_columns or 1, self.n_rows).T
            self._next += count
            return self._rows[self._next - count : self._next]
        rows = self._read(count)
        return rows if self.n_columns is None else rows.reshape(count, self.n_columns)

    def skip(self, count: int) -> None:
        """Pass over rows."""
        if self._fortran:
            self._next += count
        elif count:
            self._stream.seek(count * self._row_size, os.SEEK_CUR)

    def _read(self, count: int) -> NDArray[Any]:
        wanted = count * self._row_size
        content = self._stream.read(wanted)
        if len(content) != wanted:
            raise ValueError("it is truncated")
        return np.frombuffer(content, self.dtype)


def _label(member: str | None) -> str:
    return "" if member is None else member.removesuffix(".npy")


def _columns_of(array: _Array, member: str | None) -> list[tuple[str, np.dtype[Any]]]:
    if array.dtype.names:
        return [(name, array.dtype[name]) for name in array.dtype.names]
    if member is None:
        return [(str(i), array.dtype) for i in range(array.n_columns or 1)]
    name = _label(member)
    if array.n_columns is None:
        return [(name, array.dtype)]
    return [(f"{name}_{i}", array.dtype) for i in range(array.n_columns)]


def _split(rows: NDArray[Any], columns: list[tuple[str, np.dtype[Any]]]) -> list[tuple[str, NDArray[Any]]]:
    """Names and values of the columns of an array."""
    if rows.dtype.names:
        return [(name, rows[name]) for name, _ in columns]
    if rows.ndim == 1:
        return [(columns[0][0], rows)]
    return [(name, rows[:, i]) for i, (name, _) in enumerate(columns)]


def _as_series(name: str, values: NDArray[Any]) -> Any:
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    if values.dtype.kind == "f":  # half precision and big-endian numbers too
        values = values.astype(np.float64)
    elif values.dtype.kind in "iu":
        values = values.astype(values.dtype.newbyteorder("="))
    return polars().Series(name, values.tolist() if values.dtype.kind == "U" else np.ascontiguousarray(values))


def _kind(dtype: np.dtype[Any]) -> str:
    if dtype.kind in "iuf":
        return NUMBER
    return TEXT if dtype.kind in "bUS" else str(dtype)
