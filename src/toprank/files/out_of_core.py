"""Files that are larger than memory: the rows stay in the file, and each pass over them reads it again in blocks.

What the columns are, medians, scales and categories are decided by a sample, evenly spread over the file. Labels, times
and amounts of all rows are in memory, and so are their scores while a model is fitted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse

from toprank.exceptions import InputError, Message
from toprank.files.columns import CATEGORY, prepared
from toprank.files.errors import TableError
from toprank.files.source import BLOCK_VALUES, TEXT, Batch, TypedTable
from toprank.files.strays import Tally
from toprank.files.watching import Watcher

SAMPLE_ROWS = 100_000
"""Rows by which columns are decided, at most."""
_SAMPLE_VALUES = 10_000_000
_SAMPLE_PIECES = 100
# A fit in memory takes about so many copies of the numbers; it may take this part of the free memory.
_COPIES, _MOST_OF_MEMORY = 4, 0.5
# Features in place of a kernel that a block has: more than numbers of the file, as fewer rows would mean more reading.
_BLOCK_FEATURES = 16_000_000


def is_wanted(source: Any, estimator: Any, asked: bool | None, search: bool, watcher: Watcher) -> bool:
    """Whether a fit leaves the rows in their file: if that is asked for, or if they are too many for memory."""
    if asked is False or (asked is None and not is_large(source)):
        return False
    reason = _refusal(source, estimator, search)
    if reason is not None:
        if asked is None:
            return False  # as it was before: memory may do
        raise InputError.saying("{out_of_core} {reason}", reason=reason)
    watcher.note(
        f"{source.path!r} takes {_gigabytes(_needed(source))} in memory, of which {_gigabytes(free_memory())} are "
        f"free: its rows stay in the file and are read again for each pass. Columns, medians and scales are decided by "
        f"{_sample_size(source):,} of its {source.size:,} rows"
    )
    return True


def is_large(source: Any) -> bool:
    """Whether a table that can be read in blocks is too large for memory."""
    return _has_blocks(source) and bool(_needed(source) > _MOST_OF_MEMORY * free_memory())


def _refusal(source: Any, estimator: Any, search: bool) -> str | None:
    """Why a fit needs all rows in memory."""
    if not _has_blocks(source):
        return Message(
            "is for Parquet and .npy files, and {path!r} is none; write it as one, or learn from it by toprank.stream",
            path=source.path,
            elsewhere="is for Parquet and .npy files, and {path!r} is none; write it as one, or use toprank stream",
        )
    if not getattr(estimator, "takes_blocks", False):
        return Message(
            "is for TopPush, TopPushK, TauFPL, TopMeanK, PatMat and PatMatNP, linear or by features in place of a "
            "kernel, and for TopForest, and {name} is here none of these; use one of them",
            name=type(estimator).__name__,
        )
    if search:
        return Message("fits one model, and {search} many; leave it out, and choose the penalty on fewer rows")
    if find_spec("dask") is None:
        return "needs Dask: pip install 'toprank[dask]'"
    if _takes_tables(estimator) and (find_spec("pandas") is None or find_spec("pyarrow") is None):
        return Message(
            "of {name} needs Dask's dataframes: pip install 'dask[dataframe]'", name=type(estimator).__name__
        )
    return None


def _takes_tables(estimator: Any) -> bool:
    return bool(getattr(estimator, "takes_tables", False))


def _has_blocks(source: Any) -> bool:
    return isinstance(source, TypedTable) and source.has_blocks


def _needed(source: Any) -> float:
    return float(8 * _COPIES * source.size * len(source.names))


def _sample_size(source: Any) -> int:
    """Rows of the sample: fewer of a wide table, as it is in memory."""
    most = max(_SAMPLE_PIECES, min(SAMPLE_ROWS, _SAMPLE_VALUES // len(source.names)))
    return int(source.size if source.size <= most else most // _SAMPLE_PIECES * _SAMPLE_PIECES)


def free_memory() -> float:
    """Bytes of memory that are free, or may be."""
    with suppress(OSError, ValueError), open("/proc/meminfo") as lines:
        for line in lines:
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return 1024.0 * int(value.split()[0])
    with suppress(AttributeError, OSError, ValueError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return np.inf


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"


class Sample(TypedTable):
    """Some rows of a table, in pieces that are evenly spread over it."""

    def __init__(self, source: Any) -> None:
        self.source, self.path, self.names, self.types = source, source.path, source.names, source.types
        self.numbers, self.spelling, self.notes = source.numbers, source.spelling, source.notes
        self.size = _sample_size(source)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """The numbers of the rows in the table."""
        return np.concatenate([np.arange(first, first + count) for first, count in self._pieces()])

    def _pieces(self) -> list[tuple[int, int]]:
        n_pieces = 1 if self.size == self.source.size else _SAMPLE_PIECES
        count = self.size // n_pieces
        return [(i * (self.source.size - count) // max(1, n_pieces - 1), count) for i in range(n_pieces)]

    def batches(self, kinds: Mapping[str, str], first_row: int = 0) -> Iterator[Batch]:
        """The pieces."""
        for first, count in self._pieces():
            yield self.source.block(kinds, first, count)


@dataclass(frozen=True)
class FileRows:
    """Rows of a table that stay in its file: numbers of rows, in rising order, and the columns that a model uses."""

    source: Any
    used: Mapping[str, str]
    numbers: NDArray[np.intp]
    sample: Any
    """A frame of some rows of the file."""
    sample_rows: NDArray[np.intp]
    """Their numbers."""
    n_features: int = 0
    """Features that a row gets in place of a kernel, if any."""
    n_read: list[int] = field(default_factory=lambda: [0])
    """How many blocks were read."""

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: NDArray[Any]) -> FileRows:
        numbers = self.numbers[rows]
        if (np.diff(numbers) <= 0).any():
            raise TableError.saying(
                "the rows of {path!r} are not in the order of time, and they stay in the file; sort it by time first",
                path=self.source.path,
            )
        return replace(self, numbers=numbers)

    @cached_property
    def ends(self) -> NDArray[np.intp]:
        """Places among the numbers at which the rows of another block of the file begin, and the last."""
        most = BLOCK_VALUES // max(1, len(self.used)), _BLOCK_FEATURES // max(1, self.n_features)
        step = max(1, min(most))
        return np.searchsorted(self.numbers, np.append(np.arange(0, self.source.size, step), self.source.size))

    def frame(self, number: int) -> Any:
        """The rows of a block, as a model takes them."""
        rows = self.numbers[self.ends[number] : self.ends[number + 1]]
        self.n_read[0] += 1
        kinds = {name: TEXT if kind == CATEGORY else kind for name, kind in self.used.items()}
        if not len(rows):
            return self.source.block(kinds, 0, 1).frame[:0]
        first = int(rows[0])
        return self.source.block(kinds, first, int(rows[-1]) - first + 1).frame[rows - first]

    def scored(self, score: Callable[[Any], Any]) -> NDArray[np.float64]:
        """What a function gives for each row, block after block."""
        frames = (self.frame(number) for number in range(len(self.ends) - 1))
        return np.concatenate([np.asarray(score(frame), dtype=np.float64) for frame in frames if len(frame)])

    def passes(self) -> float:
        """How often all blocks were read."""
        return self.n_read[0] / (len(self.ends) - 1)


def fit_in_blocks(pipeline: Any, around: Callable[[Any], Any], X: FileRows, y: NDArray[np.int64]) -> Any:
    """A preparation and an estimator of scores, fitted to the rows of a file; and a rule for the threshold around it.

    `around` puts the rule around an estimator. The preparation is fitted to rows of the sample which do not set the
    threshold: that must not have seen them.
    """
    import dask
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline

    from toprank.decision._rows import take_names
    from toprank.matrices.block_tasks import on_each
    from toprank.matrices.dask_columns import array_of

    if _takes_tables(pipeline):
        return _fit_to_tables(around(clone(pipeline)), X, y)
    (_, preparation), (_, ranker) = [(name, clone(step)) for name, step in pipeline.steps]
    model = around(ranker)
    chosen = _to_prepare(X, y, None if model is ranker else model.shuffle)
    sample = _prepared(X, X.sample.filter(chosen))
    preparation.fit(sample)
    if model is not ranker and model.shuffle:
        others = ~np.isin(X.numbers, X.sample_rows[chosen])
        X, y = X[others], y[others]
    no_rows = np.zeros((0, _transformed(preparation, sample[:1]).shape[1]))
    with dask.config.set(scheduler="threads"):
        pieces = on_each(_features, [list(range(len(X.ends) - 1))], X, preparation, no_rows)
        model.fit(array_of(pieces, np.diff(X.ends).tolist(), no_rows), y)
    names = [name for name, _ in pipeline.steps]
    whole = Pipeline(list(zip(names, (preparation, getattr(model, "estimator_", model)), strict=True)))
    if model is ranker:
        return whole
    model.estimator, model.estimator_ = clone(pipeline), whole
    if hasattr(model, "estimators_"):
        model.estimators_ = [whole]
    take_names(model, whole)
    return model


def _fit_to_tables(model: Any, X: FileRows, y: NDArray[np.int64]) -> Any:
    """A model that takes tables as they are, fitted to the rows of a file: nothing is prepared."""
    import dask
    from dask import array, dataframe

    meta = _prepared(X, X.sample[:0]).to_pandas()
    with dask.config.set({"scheduler": "threads", "dataframe.convert-string": False}):
        rows = dataframe.from_map(partial(_table, X=X), range(len(X.ends) - 1), meta=meta)
        return model.fit(rows, array.from_array(y, chunks=(tuple(np.diff(X.ends).tolist()),)))


def _to_prepare(X: FileRows, y: NDArray[np.int64], shuffled: bool | None) -> NDArray[np.bool_]:
    """Which rows of the sample the preparation is fitted to; `shuffled` tells which rows set the threshold, if any.

    Those of rows in order are the last half of the negatives at most. Of random ones it is not known here: the rows of
    the preparation are left out of the rest, and so at most a tenth of all.
    """
    chosen = np.isin(X.sample_rows, X.numbers)
    if shuffled is None:
        return chosen
    if not shuffled:
        negatives = X.numbers[y == 0]
        return np.asarray(chosen & (X.sample_rows < negatives[len(negatives) // 2]))
    places = np.flatnonzero(chosen)
    step = -(-10 * len(places) // len(X))
    return np.isin(np.arange(len(chosen)), places[::step])


def _prepared(X: FileRows, frame: Any) -> Any:
    return prepared(frame, X.used, X.source.spelling, Tally())


def _table(number: int, X: FileRows) -> Any:
    return _prepared(X, X.frame(number)).to_pandas()


def _features(number: int, X: FileRows, preparation: Any, no_rows: Any) -> Any:
    frame = X.frame(number)
    return _transformed(preparation, _prepared(X, frame)) if len(frame) else no_rows


def _transformed(preparation: Any, frame: Any) -> Any:
    """What a `ColumnTransformer` gives; its own way changes the filters of warnings, which threads have in common."""
    parts = [
        transformer.transform(frame[:, columns])
        for name, transformer, columns in preparation.transformers_
        if name != "remainder" and len(columns)
    ]
    if preparation.sparse_output_:
        return hstack(parts, format="csr")
    return np.hstack([part.toarray() if issparse(part) else part for part in parts])
