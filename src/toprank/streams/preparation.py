"""How the columns of a table are used in a stream: decided by its first rows, as a fit does it by all, and kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import InputError, Parameter
from toprank.files.column_list import column_list
from toprank.files.column_reading import FoundColumns, read_columns, types_of
from toprank.files.columns import CATEGORY, LARGEST, choose_columns, prepared
from toprank.files.errors import TableError, listed
from toprank.files.estimators import table_pipeline
from toprank.files.leaks import leak_notes
from toprank.files.model import TableModel
from toprank.files.rows import Rows
from toprank.files.source import NUMBER, repeated, require_columns
from toprank.files.spelling import Spelling
from toprank.files.strays import Tally
from toprank.files.watching import Watcher


@dataclass(frozen=True)
class Asked:
    """What the user says of a table and its columns."""

    target: str
    positive: str | None = None
    id_column: str | None = None
    ignore: Collection[str] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    scale: bool = True
    fill_missing: float | None = None
    first_rows: int = 10_000
    skips: bool = False
    """Whether bad lines are left out."""

    def said(self) -> dict[str, str]:
        """The types of columns."""
        return types_of(self.types, (), self.ignore)

    def left_out(self) -> list[str]:
        """Columns that are not read, each once."""
        ignored = [name for name, kind in self.said().items() if kind == "ignore"]
        names = [name for name in (self.id_column, *ignored) if name is not None]
        return list(dict.fromkeys(names))

    def settings(self) -> dict[str, Any]:
        """What a checkpoint compares."""
        said = {"id_column": self.id_column, "types": self.said()}
        return said | {"scale": self.scale, "first_rows": self.first_rows}


def model_by_first_rows(
    source: Any, rows: Rows, online: Any, asked: Asked, spelling: Spelling, watcher: Watcher
) -> Any:
    """A `TableModel` whose preparation is fitted to these rows, and which has learned nothing else yet."""
    types = asked.said()
    require_columns(source, [name for name in types if name not in source.feature_names], "correct the name")
    first = source.first_table(rows, spelling)
    ignored = {name for name, kind in types.items() if kind == "ignore"}
    of_features = {name: kind for name, kind in types.items() if name not in ignored and name in first.names}
    found = read_columns(first, {}, of_features, lambda position: None)
    y = rows.y
    if asked.skips:
        usable = _usable(found)
        found.frame, y = found.frame.filter(usable), y[usable]
    left_out = dict.fromkeys(repeated(source.names), "several columns have this name")
    categories = [name for name, kind in of_features.items() if kind == CATEGORY]
    columns = choose_columns(found.frame, found.kinds, categories, left_out)
    columns.strays = found.strays
    frame = prepared(found.frame, columns.used, first.spelling, Tally())
    preparation: dict[str, Any] = {"scale": asked.scale, "fill": asked.fill_missing}
    pipeline = table_pipeline(columns.used, online, **preparation)
    pipeline[0].fit(frame)
    roles = {asked.target: f"the labels; {asked.positive or '1'} is positive"}
    if asked.id_column is not None:
        roles[asked.id_column] = "identifies a row"
    table = column_list(source.names, found.frame, columns, found.kinds, first.spelling, roles, **preparation)
    for note in (*found.notes, *columns.notes):
        watcher.note(note)
    if 0 < y.sum() < len(y):
        for note in leak_notes(found.frame, y, columns.used):
            watcher.note(note)
    reading = first.spelling.record(columns.used)
    return _model(pipeline, columns.used, reading, asked, {"left_out": columns.left_out, "table": table})


def _usable(found: FoundColumns) -> NDArray[np.bool_]:
    """Rows without numbers that are too large, which the stream leaves out."""
    usable = np.ones(len(found.frame), bool)
    for name, kind in found.kinds.items():
        if kind == NUMBER:
            usable &= ~(np.abs(found.frame[name].to_numpy()) > LARGEST)
    return usable


def model_of_checkpoint(earlier: TableModel, online: Any, asked: Asked) -> TableModel:
    """A new model with the preparation of a checkpoint."""
    from sklearn.pipeline import Pipeline

    pipeline = Pipeline([*earlier.estimator_.steps[:-1], ("rank", online)])
    return _model(pipeline, earlier.columns, earlier.reading, asked, earlier.summary_, earlier.as_array)


def model_that_goes_on(start: TableModel, source: Any, asked: Asked, given: Mapping[str, Any], watcher: Watcher) -> Any:
    """A model of an earlier stream; the file must have its columns, and is read by its rules."""
    columns: dict[str, str] = start.columns or {}
    for name, value in given.items():
        if value:
            raise InputError.saying(
                "{given} is not for a model that goes on, which reads files as the first one was read; leave it out",
                given=Parameter(name, name),
            )
    absent = [name for name in columns if name not in source.feature_names]
    if start.columns is None or absent:
        raise TableError(
            f"the columns of the model to start with are others than those of {source.path!r}"
            f"{f', which has no {listed(absent)} to learn from' if absent else ''}; give a file with the same columns"
        )
    extra = [name for name in source.feature_names if name not in columns and name not in start.summary_["left_out"]]
    if extra:
        watcher.note(f"the model does not know these columns, and they are not looked at: {listed(extra)}")
    said: dict[str, Any] = {name: start.summary_[name] for name in ("left_out", "table") if name in start.summary_}
    return _model(start.estimator_, columns, start.reading, asked, said, start.as_array)


def _model(
    estimator: Any,
    columns: Any,
    reading: dict[str, Any] | None,
    asked: Asked,
    said: dict[str, Any],
    as_array: bool = False,
) -> TableModel:
    known: dict[str, Any] = {"target": asked.target, "positive": asked.positive, "id_column": asked.id_column}
    model = TableModel(estimator, dict(columns), as_array=as_array, reading=reading, **known).keep_fitted(estimator)
    model.summary_ = dict(said)
    return model
