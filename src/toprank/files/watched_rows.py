"""Rows to learn from and to test with, read while a watcher is told of progress and of what is odd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toprank.exceptions import Message
from toprank.files.content import is_pipe, sum_of
from toprank.files.times import Times
from toprank.files.training import LabelledRows, read_to_learn, read_to_test, split_rows, sum_of_labels
from toprank.files.watching import Watcher


def rows_to_learn(source: Any, target: str | None, watcher: Watcher, **options: Any) -> LabelledRows:
    """All rows of a table with labels, as `read_to_learn` gives them."""
    return _watched(read_to_learn, source, target, watcher, **options)


def _watched(
    read: Callable[..., LabelledRows], source: Any, about: Any, watcher: Watcher, **options: Any
) -> LabelledRows:
    """What a function reads, with its progress and its notes."""
    with watcher.progress(f"reading {source.path}", source.size) as advance:
        rows = read(source, about, advance=advance, **options)
    for note in rows.notes:
        watcher.note(note)
    return rows


def rows_to_test(source: Any, model: Any, watcher: Watcher, **options: Any) -> LabelledRows:
    """The rows of a table with labels; of the file of the fit only those held out there.

    A note says so. Which rows were held out depends on the labels; if others are asked for, all rows are taken, and a
    note says that the model learned from some of them.
    """
    rows = _watched(read_to_test, source, model, watcher, **options)
    training = model.summary_.get("data", {})
    if is_pipe(source.path):
        watcher.note(
            f"{source.path!r} is a pipe, so whether the model learned from some of these rows is not known; give a "
            "file for that"
        )
        return rows
    if training.get("sha256") != sum_of(source.path):
        return rows
    rows.of_fit = True
    if not training.get("holdout"):
        watcher.note(
            Message(
                "the model learned from all rows of {path!r}, so these numbers are too good; take other rows, or a "
                "model of fit_file with holdout=0.2",
                elsewhere="the model learned from all rows of {path!r}, so these numbers are too good; take other "
                "rows, or a model of toprank fit --holdout 0.2",
                path=source.path,
            )
        )
        return rows
    by_time = training.get("in_order", False)
    other_time = by_time and model.time is not None and (rows.times is None or rows.times.name != model.time)
    if other_time or training.get("labels_sha256") != sum_of_labels(rows.y):
        watcher.note(
            f"{source.path!r} is the file of the fit, with other {'times' if other_time else 'labels'} than there: "
            "rows that the model learned from are measured too, so these numbers may be too good; take other rows, or "
            f"the {'times' if other_time else 'labels'} of the fit"
        )
        return rows
    times = (Times.in_order(len(rows.y)) if model.time is None else rows.times) if by_time else None
    test = split_rows(rows.y, times, training["holdout"], training["seed"])[1]
    watcher.note(
        f"{source.path!r} is the file of the fit: only the {len(test):,} rows that were held out there are used"
    )
    return rows.part(test)
