"""From the name of a file to its table."""

from __future__ import annotations

import os
from typing import Any

from toprank.tables.csv_file import CSVTable
from toprank.tables.errors import TableError
from toprank.tables.numpy_file import NumpyTable
from toprank.tables.parquet_file import ParquetTable
from toprank.tables.svmlight_file import SvmlightTable
from toprank.text_files import ending_of, is_pipe, require_uncompressed

_ENDINGS = {
    **dict.fromkeys([".csv", ".tsv", ".txt"], "csv"),
    **dict.fromkeys([".svm", ".svmlight", ".libsvm"], "svmlight"),
    **dict.fromkeys([".parquet", ".pq"], "parquet"),
    **dict.fromkeys([".npy", ".npz"], "numpy"),
}
FORMATS = ("csv", "parquet", "svmlight", "numpy")


def format_of(path: str, format: str | None = None) -> str:
    """The format of a file: what is given, or what its name says; a pipe without such a name is CSV."""
    if format is not None:
        if format not in FORMATS:
            raise TableError(f"the format must be one of {', '.join(FORMATS)}, got {format!r}")
        return format
    ending = ending_of(path)
    if ending not in _ENDINGS and is_pipe(path):
        return "csv"
    if ending not in _ENDINGS:
        raise TableError.saying(
            "the format of {path!r} does not follow from its name; name it by {format='csv'}, parquet, svmlight or "
            "numpy",
            path=path,
        )
    return _ENDINGS[ending]


def open_table(path: str, *, format: str | None = None, delimiter: str | None = None, zero_based: bool = False) -> Any:
    r"""A table in a file.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input.
    format : {"csv", "parquet", "svmlight", "numpy"}, optional
        By default from the name of the file.
    delimiter : str, optional
        Of CSV; by default found in the first line.
    zero_based : bool, default=False
        Whether the indices of an svmlight file start at 0.

    Returns
    -------
    CSVTable, ParquetTable, NumpyTable or SvmlightTable
        All but the last have `names`, `kinds` and `batches`.

    Examples
    --------
    >>> import os, tempfile
    >>> from toprank.tables import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.csv")
    ...     with open(path, "w") as stream:
    ...         _ = stream.write("amount,country,fraud\n1.5,DE,0\n,FR,1\n")
    ...     table = open_table(path)
    ...     kinds = table.kinds()
    ...     [batch.frame.shape for batch in table.batches(kinds)]
    [(2, 3)]
    >>> kinds
    {'amount': 'number', 'country': 'text', 'fraud': 'number'}
    """
    if not (os.path.exists(path) or is_pipe(path)):
        raise TableError(f"there is no file {path!r}; check the path")
    if os.path.isdir(path):
        raise TableError(f"{path!r} is not a plain file; give the path of a file")
    kind = format_of(path, format)
    if kind == "csv":
        return CSVTable(path, delimiter)
    if delimiter is not None:
        raise TableError(f"a delimiter is for CSV, and {path!r} is read as {kind}; leave it out")
    if kind == "svmlight":
        return SvmlightTable(path, zero_based)
    require_uncompressed(path, kind)
    if is_pipe(path):
        raise TableError(f"{kind} files are not read from a pipe such as {path!r}; save it in a file, and give that")
    return ParquetTable(path) if kind == "parquet" else NumpyTable(path)
