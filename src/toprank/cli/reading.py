"""Tables of the command line: progress while they are read, and notes about them."""

from __future__ import annotations

from typing import Any

from toprank.cli.model_files import held_out_rows, sum_of
from toprank.cli.output import Output


def rows_to_learn(source: Any, target: str | None, output: Output, **options: Any) -> Any:
    """All rows of a table with labels, as `read_to_learn` gives them."""
    from toprank.tables.training import read_to_learn

    with output.progress(f"reading {source.path}", source.size) as advance:
        rows = read_to_learn(source, target, advance=advance, **options)
    for note in rows.notes:
        output.note(note)
    return rows


def rows_to_test(source: Any, model: Any, output: Output, **options: Any) -> Any:
    """The rows of a table with labels that the model has not learned from; a note says which these are."""
    from toprank.tables.training import read_to_test

    with output.progress(f"reading {source.path}", source.size) as advance:
        rows = read_to_test(source, model, advance=advance, **options)
    for note in rows.notes:
        output.note(note)
    training = model.summary_.get("data", {})
    if training.get("sha256") != sum_of(source.path):
        return rows
    test = held_out_rows(rows.y, training["holdout"], training["seed"])[1]
    if not len(test):
        output.note(
            f"the model was fitted to all rows of {source.path!r}, so these numbers are too good; take other rows, or "
            "fit with --holdout 0.2"
        )
        return rows
    output.note(
        f"{source.path!r} is the file of the fit: only the {len(test):,} rows that were held out there are used"
    )
    return rows.part(test)
