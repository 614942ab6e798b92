"""From the arguments of a stream to its source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from toprank.checks import require_choice, require_count
from toprank.exceptions import InputError, Parameter
from toprank.streams._lines import NUMERIC, TEXTUAL, ZERO_ONE, Labels
from toprank.streams.parquet import ParquetFile
from toprank.streams.rows import Source
from toprank.streams.text import CSVFile, SvmlightFile
from toprank.text_files import ending_of, is_pipe, require_uncompressed

_ENDINGS = {
    **dict.fromkeys([".csv", ".tsv", ".txt"], "csv"),
    **dict.fromkeys([".svm", ".svmlight", ".libsvm"], "svmlight"),
    **dict.fromkeys([".parquet", ".pq"], "parquet"),
}
_FORMATS = ("csv", "svmlight", "parquet")


def open_source(
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
) -> Source:
    """The source that the arguments of `toprank.stream` describe, after a look at whether they fit together.

    `ignore` names columns not to learn from, where `features` is None.
    """
    if not (os.path.isfile(path) or is_pipe(path)):
        raise FileNotFoundError(f"there is no file {path!r}; give the path of a CSV, svmlight or Parquet file")
    kind = _format_of(path, format, "svmlight" if target is None else "csv")
    labels = _labels(positive, kind)
    if not (fill_missing is None or _is_finite(fill_missing)):
        raise InputError.of("fill_missing", fill_missing, "must be a finite number or None", "use a value such as 0.0")
    if kind == "svmlight":
        given = {"target": target, "features": features, "delimiter": delimiter, "fill_missing": fill_missing}
        for name, value in given.items():
            if value is not None:
                raise InputError.saying(
                    "{given} is for CSV and Parquet, and {path!r} is read as svmlight; leave it out",
                    given=Parameter(name, f"{name}={value!r}", str(value)),
                    path=path,
                )
        if n_features is not None:
            require_count("n_features", n_features)
        elif is_pipe(path):
            raise InputError.saying(
                "{path!r} is read once, which does not tell the largest index in time; pass {n_features=} for svmlight",
                path=path,
            )
        return SvmlightFile(path, labels, n_features, bool(zero_based), grows)
    if target is None:
        raise InputError.saying(
            "{target} is needed for {kind}: the name of the column of labels, such as {target='y'}", kind=kind
        )
    if isinstance(features, str):
        raise ValueError(f"features must be a list of names, got {features!r}; use features=[{features!r}]")
    chosen = None if features is None else [str(name) for name in features]
    if kind == "parquet":
        require_uncompressed(path, kind)
        if is_pipe(path):
            raise ValueError(f"Parquet is not read from a pipe such as {path!r}; write it to a file before")
        return ParquetFile(path, labels, target, chosen, fill_missing, ignore)
    if delimiter is not None and not (len(delimiter) == 1 and delimiter.isascii() and delimiter not in '"\r\n'):
        raise InputError.of("delimiter", delimiter, "must be one character such as ',' or ';'")
    return CSVFile(path, labels, target, chosen, delimiter, fill_missing, ignore, grows)


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and bool(np.isfinite(float(value)))


def _format_of(path: str, format: str | None, of_pipe: str) -> str:
    """What is given, or what the name says; of a pipe without such a name `of_pipe`."""
    if format is not None:
        require_choice("format", format, _FORMATS)
    ending = ending_of(path)
    if format is None and ending not in _ENDINGS and is_pipe(path):
        return of_pipe
    if format is None and ending not in _ENDINGS:
        raise InputError.saying(
            "the format of {path!r} does not follow from its name; pass {format='csv'}, 'svmlight' or 'parquet'",
            path=path,
        )
    return format or _ENDINGS[ending]


def _labels(positive: Any, kind: str) -> Labels:
    none = np.zeros(0, np.uint8)
    if positive is None:
        return Labels(ZERO_ONE, 1.0, none)
    if isinstance(positive, str) and kind != "svmlight" and positive.strip():
        return Labels(TEXTUAL, 0.0, np.frombuffer(bytearray(positive.strip().encode()), np.uint8))
    if _is_finite(positive):
        return Labels(NUMERIC, float(positive), none)
    or_text = "" if kind == "svmlight" else " or a text"
    raise InputError.of(
        "positive", positive, "must be a finite number{or_text}", "leave it out for labels 1 and 0", or_text=or_text
    )
