"""Tables of the command line: progress while they are read, and notes about them."""

from __future__ import annotations

from typing import Any

from toprank.cli.model_files import held_out_rows, sum_of, sum_of_labels
from toprank.cli.output import Output
from toprank.files.content import is_pipe


def rows_to_learn(source: Any, target: str | None, output: Output, **options: Any) -> Any:
    """All rows of a table with labels, as `read_to_learn` gives them."""
    from toprank.files.training import read_to_learn

    with output.progress(f"reading {source.path}", source.size) as advance:
        rows = read_to_learn(source, target, advance=advance, **options)
    for note in rows.notes:
        output.note(note)
    return rows


def rows_to_test(source: Any, model: Any, output: Output, **options: Any) -> Any:
    """The rows of a table with labels; of the file of the fit only those held out there.

    A note says so. Which rows were held out depends on the labels; if others are asked for, all rows are taken, and a
    note says that the model learned from some of them.
    """
    from toprank.files.training import read_to_test

    with output.progress(f"reading {source.path}", source.size) as advance:
        rows = read_to_test(source, model, advance=advance, **options)
    for note in rows.notes:
        output.note(note)
    training = model.summary_.get("data", {})
    if is_pipe(source.path):
        output.note(
            f"{source.path!r} is a pipe, so whether the model learned from some of these rows is not known; give a "
            "file for that"
        )
        return rows
    if training.get("sha256") != sum_of(source.path):
        return rows
    if not training.get("holdout"):
        output.note(
            f"the model learned from all rows of {source.path!r}, so these numbers are too good; take other rows, or "
            "a model of toprank fit --holdout 0.2"
        )
        return rows
    if training.get("labels_sha256") != sum_of_labels(rows.y):
        output.note(
            f"{source.path!r} is the file of the fit, with other labels than there: rows that the model learned from "
            "are measured too, so these numbers may be too good; take other rows, or the labels of the fit"
        )
        return rows
    test = held_out_rows(rows.y, training["holdout"], training["seed"])[1]
    output.note(
        f"{source.path!r} is the file of the fit: only the {len(test):,} rows that were held out there are used"
    )
    return rows.part(test)
