"""A file as rows to learn from or to test with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.files.beside import NOTHING, Beside
from toprank.files.column_reading import read_columns, types_of
from toprank.files.columns import CATEGORY, IGNORE, Columns, choose_columns
from toprank.files.errors import TableError
from toprank.files.labels import positive_rows
from toprank.files.leaks import leak_notes
from toprank.files.out_of_core import FileRows, Sample
from toprank.files.source import NUMBER, TEXT, TRUTH, VERBATIM, Source, read_all, repeated, require_columns
from toprank.files.strays import stray_notes
from toprank.files.svmlight_file import SvmlightTable
from toprank.files.times import Times, latest_rows
from toprank.files.unseen import Unseen

Advance = Callable[[int], Any]


@dataclass
class LabelledRows:
    """Rows, a frame of polars or a CSR array, with labels 0 and 1 and what the user should know.

    `labels` are those of the file, a series of texts, where it has such, and `numbers` those of the rows there, from 0.
    There are no columns for svmlight and where a
    model knows them.
    """

    X: Any
    y: NDArray[np.int64]
    positive: str
    columns: Columns | None = None
    ids: Any = None
    notes: list[str] = field(default_factory=list)
    labels: Any = None
    numbers: Any = None
    times: Times | None = None
    amounts: NDArray[np.float64] | None = None
    of_fit: bool = False
    """Whether they are rows of the file that a model was fitted to."""

    def part(self, rows: NDArray[np.intp]) -> LabelledRows:
        """Some of the rows."""
        of_rows = ("ids", "labels", "numbers", "times", "amounts")
        given: dict[str, Any] = {name: getattr(self, name) for name in of_rows if getattr(self, name) is not None}
        beside = {name: values[rows] for name, values in given.items()}
        return replace(self, X=self.X[rows], y=self.y[rows], **beside)


def read_to_learn(
    source: Any,
    target: str | None,
    *,
    positive: str | None = None,
    id_column: str | None = None,
    ignore: Collection[str] = (),
    categorical: Collection[str] = (),
    types: Mapping[str, str] | None = None,
    beside: Beside = NOTHING,
    in_file: bool = False,
    advance: Advance = lambda position: None,
) -> LabelledRows:
    """All rows of a table with a label, and how to use its columns; `advance` gets the position now and then.

    With `in_file` the rows stay in their file, as `FileRows`, and a sample of them decides on the columns.
    """
    if isinstance(source, SvmlightTable):
        return _read_sparse(source, target, positive, None, advance, beside)
    types = types_of(types, categorical, ignore)
    target, special = special_columns(source, target, id_column, [*types, *beside.names()])
    if target in (id_column, *beside.names()) or types.get(target) == IGNORE:
        raise TableError(
            f"the target {target!r} cannot be the identifier, the time, the amount or ignored too; name another column"
        )
    unasked = {beside.time} - {name for name, kind in types.items() if kind == NUMBER}
    special |= beside.kinds(learned=lambda name: types.get(name) != IGNORE and name not in unasked)
    table = Sample(source) if in_file else source
    found = read_columns(table, special, types, advance)
    left_out = dict.fromkeys(repeated(source.names), "several columns have this name")
    categories = [name for name, kind in types.items() if kind == CATEGORY]
    columns = choose_columns(found.frame.drop(list(special)), found.kinds, categories, left_out)
    columns.strays, columns.kinds = found.strays, found.kinds
    notes = [*found.notes, *stray_notes(found.strays, learns=True), *columns.notes]
    if not in_file:
        rows = labelled(found.frame, target, positive, id_column, columns, notes, beside)
        rows.notes += leak_notes(rows.X, rows.y, columns.used)
        return rows
    kinds = {target: VERBATIM, **beside.kinds(learned=lambda name: False)}
    rows = labelled(read_all(source, kinds, advance)[0], target, positive, None, columns, notes, beside)
    known = np.isin(table.rows, rows.numbers)
    sample, numbers = found.frame.drop(target).filter(known), table.rows[known]
    rows.X = FileRows(source, columns.used, rows.numbers, sample, numbers)
    y = rows.y[np.searchsorted(rows.numbers, numbers)]
    if 0 < y.sum() < len(y):
        rows.notes += leak_notes(sample, y, columns.used)
    return rows


def read_to_test(
    source: Any,
    model: Any,
    *,
    target: str | None = None,
    positive: str | None = None,
    id_column: str | None = None,
    beside: Beside = NOTHING,
    all_columns: bool = False,
    in_file: bool = False,
    advance: Advance = lambda position: None,
) -> LabelledRows:
    """All rows of a table with a label and at least the columns of a model; with `all_columns` the others too, as text.

    With `in_file` the columns of the model are not read.

    The model knows the target, the positive label and the identifier where they are not given, and what is beside, if
    the file has it.
    """
    positive = positive or model.positive
    if check_kind(source, model):
        return _read_sparse(source, target, positive, model.n_features_in_, advance, beside)
    beside = beside.or_of(model, source.names)
    target, id_column = target or model.target, id_column or id_in(source, model)
    target, special = special_columns(source, target, id_column, beside.names())
    special |= beside.kinds(learned=lambda name: name in model.columns)
    if target in model.columns:
        raise TableError(f"the model learned from the column {target!r}, so it cannot be the target; name another one")
    kinds = needed_kinds(source, model)
    if in_file:
        special |= beside.kinds(learned=lambda name: False)
        frame, notes = read_all(source, special, advance)[0], _other_than_in_fit(source, model, target, id_column)
        return labelled(frame, target, positive, id_column, None, notes, beside)
    if all_columns:  # to be shown as they are
        known = {*kinds, *special, *repeated(source.names)}
        kinds |= {name: VERBATIM for name in source.names if name not in known}
        kinds |= {name: TEXT for name, kind in kinds.items() if kind == TRUTH}
    frame, tally = read_all(source, kinds | special, advance)
    tally.refuse_too_many()
    notes = [*_other_than_in_fit(source, model, target, id_column), *stray_notes(tally.columns(), learns=False)]
    unseen = Unseen(model)
    unseen.add(frame)
    return labelled(frame, target, positive, id_column, None, [*notes, *unseen.notes()], beside)


def check_kind(source: Any, model: Any) -> bool:
    """Whether the rows are sparse; the model and the file must agree on it."""
    sparse = isinstance(source, SvmlightTable)
    if sparse != (model.columns is None):
        needs = (
            "svmlight files, in which columns have no names" if model.columns is None else "tables with named columns"
        )
        raise TableError(f"the model was fitted to {needs}, and {source.path!r} is none; give a file of that kind")
    return sparse


def needed_kinds(source: Source, model: Any) -> dict[str, str]:
    """The columns of a model, as they are read from a file; an error names those that the file has not."""
    there = {*source.names}
    absent = [name for name in model.columns if name not in there]
    if absent:
        also = f" and {len(absent) - 1} more of the model's columns" if len(absent) > 1 else ""
        raise TableError(
            f"{source.path!r} has no column {absent[0]!r}{also}; add what is missing (empty fields are fine), or fit a "
            "model without it"
        )
    require_columns(source, list(model.columns), "the model needs one of that name")
    return {name: TEXT if kind == CATEGORY else kind for name, kind in model.columns.items()}


def id_in(source: Source, model: Any) -> str | None:
    """The identifier of the model, if the file has it."""
    return model.id_column if model.id_column in source.names else None


def no_id_note(source: Source, model: Any) -> list[str]:
    """What to say if a file lacks the identifier of the model."""
    if model.id_column is None or model.id_column in source.names:
        return []
    return [
        f"{source.path!r} has no column {model.id_column!r}, by which the model knows its rows, so they are known by "
        "their numbers"
    ]


def _other_than_in_fit(source: Source, model: Any, target: str, id_column: str | None) -> list[str]:
    """What to say of a target and an identifier that are not those of the fit."""
    notes = [] if id_column is not None else no_id_note(source, model)
    if model.target is not None and target != model.target:
        notes.append(f"the labels are those of {target!r}, and the model was fitted to {model.target!r}")
    return notes


def special_columns(
    source: Source, target: str | None, id_column: str | None, others: Collection[str] = ()
) -> tuple[str, dict[str, str]]:
    """The target, and how it and the identifier are read; all columns that are named must be there."""
    if target is None:
        raise TableError.saying("the column of labels has no name yet; name it, for instance {target='fraud'}")
    special = dict.fromkeys((target,) if id_column is None else (target, id_column), VERBATIM)
    require_columns(source, [*special, *others], "correct the name")
    return target, special


def labelled(
    frame: Any,
    target: str,
    positive: str | None,
    id_column: str | None,
    columns: Columns | None,
    notes: list[str],
    beside: Beside = NOTHING,
) -> LabelledRows:
    """The rows that have a label; a note says how many have none."""
    y, known, positive = positive_rows(frame[target], positive)
    if not known.all():
        notes.append(f"{int((~known).sum())} rows without a label in {target!r} are left out")
        frame, y = frame.filter(known), y[known]
    times, numbers = beside.times(frame), np.flatnonzero(known)
    if times is not None and not times.known.all():
        notes.append(f"{int((~times.known).sum())} rows without a time in {times.name!r} are left out")
        frame, y, numbers, times = frame.filter(times.known), y[times.known], numbers[times.known], times[times.known]
    _require_both(y, f"in the column {target!r}")
    ids = frame[id_column] if id_column else None
    labels = frame[target].str.strip_chars()
    amounts = beside.amounts(frame, notes)
    return LabelledRows(frame.drop(target), y, positive, columns, ids, notes, labels, numbers, times, amounts)


def _read_sparse(
    source: SvmlightTable,
    target: str | None,
    positive: str | None,
    n_features: int | None,
    advance: Advance,
    beside: Beside,
) -> LabelledRows:
    from scipy.sparse import vstack

    if target is not None:
        text = "{target} is for columns with names; the labels of {path!r} come first in each line"
        raise TableError.saying(text, path=source.path)
    if beside.names():
        text = "{time} and {amount} are for columns with names, and {path!r} has none; use {in_order} for rows in order"
        raise TableError.saying(text, path=source.path)
    try:
        label = None if positive is None else float(positive)
    except ValueError:
        raise TableError.saying(
            "labels of svmlight files are numbers, got {positive=}; give one such as 1", positive=positive
        ) from None
    parts, labels = [], []
    for batch in source.batches(n_features, label):
        parts.append(batch.X)
        labels.append(batch.y)
        advance(batch.position)
    y = np.concatenate(labels)
    _require_both(y, f"in {source.path!r}")
    times = Times.in_order(len(y)) if beside.in_order else None
    return LabelledRows(vstack(parts, format="csr"), y, "1" if positive is None else positive, times=times)


def _require_both(y: NDArray[np.int64], where: str) -> None:
    if y.min() == y.max():
        raise TableError.saying(
            "{found}, and rows of both classes are needed; give more rows, or another label by {positive=}",
            found=f"all {len(y)} labels {where} are {'positive' if y[0] else 'negative'}",
        )


def sum_of_labels(y: NDArray[np.int64]) -> str:
    """The SHA-256 sum of labels 0 and 1, to tell whether others are asked for than those of a fit."""
    return hashlib.sha256(y.astype(np.uint8).tobytes()).hexdigest()


def split_rows(
    y: NDArray[np.int64], times: Times | None, share: float, seed: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from and rows to test with: the latest where their times are known, else random ones."""
    return held_out_rows(y, share, seed) if times is None else latest_rows(times, y, share)


def held_out_rows(y: NDArray[np.int64], share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from and rows to test with, the same for the same labels, share and seed.

    Both classes are in both parts; a class of one row stays whole in the first.
    """
    random = np.random.default_rng(seed)
    held = []
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        count = min(round(share * len(rows)), len(rows) - 1)
        held.append(random.permutation(rows)[: max(count, 0)])
    if any(len(rows) == 0 for rows in held):
        return np.arange(len(y)), np.zeros(0, np.intp)
    test = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(y)), test), test
