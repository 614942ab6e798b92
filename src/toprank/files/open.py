"""From the name of a file to its table, or to its rows."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from toprank.checks import require_choice, require_count
from toprank.exceptions import InputError, Parameter
from toprank.files.content import ending_of, is_pipe, require_uncompressed
from toprank.files.csv_file import CSVTable
from toprank.files.csv_rows import CSVFile
from toprank.files.errors import TableError
from toprank.files.formats import ENDINGS, FORMATS
from toprank.files.frame_rows import FrameRows
from toprank.files.header import refuse_spreadsheet
from toprank.files.labels import is_finite_number, labels_of
from toprank.files.numpy_file import NumpyTable
from toprank.files.parquet_file import ParquetTable
from toprank.files.rows import RowSource
from toprank.files.spelling import Spelling
from toprank.files.svmlight_file import SvmlightFile, SvmlightTable
from toprank.files.table_rows import CSVTableRows, FrameTableRows

_TYPED: dict[str, Any] = {"parquet": ParquetTable, "numpy": NumpyTable}


def _format_of(path: str, format: str | None, delimiter: str | None, of_pipe: str) -> str:
    """The format of a file that is there: what is given, or what its name says; of a pipe without one `of_pipe`."""
    if not (os.path.exists(path) or is_pipe(path)):
        raise FileNotFoundError(f"there is no file {path!r}; check the path")
    if os.path.isdir(path):
        raise TableError(f"{path!r} is not a plain file; give the path of a file")
    if format is None:
        refuse_spreadsheet(path)
    else:
        require_choice("format", format, FORMATS)
    ending = ending_of(path)
    if format is None and ending not in ENDINGS and not is_pipe(path):
        raise TableError.saying(
            "the format of {path!r} does not follow from its name; pass {format='csv'}, 'parquet', 'svmlight' or "
            "'numpy'",
            path=path,
        )
    kind = format or ENDINGS.get(ending, of_pipe)
    if delimiter is not None and kind != "csv":
        raise TableError(f"a delimiter is for CSV, and {path!r} is read as {kind}; leave it out")
    if kind in _TYPED:
        require_uncompressed(path, kind)
        if is_pipe(path):
            raise TableError(
                f"{kind} files are not read from a pipe such as {path!r}; save it in a file, and give that"
            )
    return kind


def open_table(
    path: str,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    zero_based: bool = False,
    missing: Collection[str] = (),
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
) -> Any:
    r"""A table in a file.

    Parameters
    ----------
    path : str
        The file; ``-`` is standard input.
    format : {"csv", "parquet", "svmlight", "numpy"}, optional
        By default from the name of the file; a pipe without such a name is CSV.
    delimiter : str, optional
        Of CSV; by default found in the first line.
    zero_based : bool, default=False
        Whether the indices of an svmlight file start at 0.
    missing : collection of str
        What else stands for a missing value, such as "-999", besides an empty field, NA, N/A, NaN, None, null, ?, - and
        some more, in small or capital letters.
    decimal, thousands : str, optional
        What stands before decimals and between thousands in the numbers of a CSV file; by default found where it is
        beyond doubt, as in 1,234.56 or 0,64.
    encoding : str, optional
        Of CSV, such as "latin-1"; by default UTF-8.

    Returns
    -------
    CSVTable, ParquetTable, NumpyTable or SvmlightTable
        All but the last have `names`, `kinds` and `batches`.

    Examples
    --------
    >>> import os, tempfile
    >>> from toprank.files import open_table
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
    spelling = Spelling.of(missing, decimal, thousands, encoding)
    return _open(path, format, delimiter, zero_based, spelling)


def open_for_model(
    path: str, model: Any, *, format: str | None = None, delimiter: str | None = None, encoding: str | None = None
) -> Any:
    """A table in a file, read by the rules of the file that a `TableModel` was fitted to."""
    spelling = Spelling.of_model(model.reading)
    if encoding is not None:
        spelling = replace(spelling, encoding=encoding)
    return _open(path, format, delimiter, model.zero_based, spelling)


def _open(path: str, format: str | None, delimiter: str | None, zero_based: bool, spelling: Spelling) -> Any:
    kind = _format_of(path, format, delimiter, "csv")
    if kind == "csv":
        return CSVTable(path, delimiter, spelling=spelling)
    if kind == "svmlight":
        return SvmlightTable(path, zero_based)
    table = _TYPED[kind](path)
    table.spelling = spelling
    return table


def open_rows(
    path: str,
    target: str | None,
    positive: Any,
    features: Sequence[str] | None,
    format: str | None,
    delimiter: str | None,
    n_features: Any,
    zero_based: bool,
    fill_missing: Any,
    ignore: Sequence[str] = (),
    grows: bool = False,
    spelling: Spelling | None = None,
) -> RowSource:
    """The rows that the arguments of `toprank.stream` describe, after a look at whether they fit together.

    `ignore` names columns not to learn from, where `features` is None. With `spelling` columns may hold anything, and
    rows are frames of them, to be read by it.
    """
    kind = _format_of(path, format, delimiter, "svmlight" if target is None else "csv")
    labels = labels_of(positive, numbers_only=kind == "svmlight")
    if not (fill_missing is None or is_finite_number(fill_missing)):
        raise InputError.of("fill_missing", fill_missing, "must be a finite number or None", "use a value such as 0.0")
    if kind == "svmlight":
        for name, value in {"target": target, "features": features, "fill_missing": fill_missing}.items():
            if value is not None:
                raise InputError.saying(
                    "{given} is for columns with names, and {path!r} is read as svmlight; leave it out",
                    given=Parameter(name, f"{name}={value!r}", str(value)),
                    path=path,
                )
        if n_features is not None:
            require_count("n_features", n_features)
        return SvmlightFile(path, labels, n_features, bool(zero_based), grows)
    if target is None:
        raise InputError.saying(
            "{target} is needed for {kind}: the name of the column of labels, such as {target='y'}", kind=kind
        )
    if isinstance(features, str):
        raise ValueError(f"features must be a list of names, got {features!r}; use features=[{features!r}]")
    chosen = None if features is None else [str(name) for name in features]
    if kind == "csv":
        of_text = (path, labels, target, chosen, delimiter, fill_missing, ignore, grows)
        return CSVFile(*of_text) if spelling is None else CSVTableRows(*of_text, spelling.encoding)
    typed = FrameRows if spelling is None else FrameTableRows
    return typed(_TYPED[kind](path), labels, target, chosen, fill_missing, ignore)


def is_svmlight(path: str, format: str | None, delimiter: str | None, target: str | None) -> bool:
    """Whether the rows that the arguments of `open_rows` describe are sparse ones without names."""
    return _format_of(path, format, delimiter, "svmlight" if target is None else "csv") == "svmlight"
