"""Scores that are columns of a file, of whatever made them: what ``evaluate`` and ``report`` do without a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import InputError
from toprank.files.content import is_pipe
from toprank.files.errors import NotANumberError, TableError
from toprank.files.measures import ScoreMeasures, measure_scores, require_lengths
from toprank.files.model import TableModel
from toprank.files.open import open_for_model, open_table
from toprank.files.source import NUMBER, VERBATIM, place_of, read_all, repeated, require_columns
from toprank.files.strays import Strays, strays_of
from toprank.files.svmlight_file import SvmlightTable
from toprank.files.training import LabelledRows, labelled, special_columns
from toprank.files.watched_rows import rows_to_test
from toprank.files.watching import Warner, Watcher
from toprank.inspection import scorer_of


@dataclass(frozen=True)
class ScoredRows:
    """The scores by column, and the rows with their labels; other columns are texts as in the file."""

    scores: dict[str, NDArray[np.float64]]
    rows: LabelledRows


def evaluate_scores(
    path: str | os.PathLike[str],
    scores: Sequence[str],
    *,
    model: TableModel | None = None,
    target: str | None = None,
    positive: str | None = None,
    k: Sequence[int] | None = None,
    fpr: Sequence[float] | None = None,
    confidence: float = 0.95,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    watcher: Watcher | None = None,
) -> ScoreMeasures:
    r"""Measure columns of scores in a file, and compare the first with the others; ``toprank evaluate --score``.

    No model is needed: the scores may come from anything, as long as larger means more likely positive. A row without a
    score is refused, one without a label is left out with a note.

    Parameters
    ----------
    path : path
        Rows with scores and labels: CSV, Parquet or NumPy.
    scores : sequence of str
        Columns of scores.
    model : TableModel, optional
        A model to compare with the columns; its scores come first, under the name of its class. Of the file that it was
        fitted to only the rows held out there are used.
    target, positive : str
        As in `fit_file`; by default those of the model.
    k, fpr, confidence
        As in `evaluate_file`.
    format, delimiter, encoding
        As in `open_table`.
    watcher : Watcher, optional
        As in `fit_file`.

    Returns
    -------
    ScoreMeasures
        `columns` has the measures of each column, and `differences` by how much those of the first are larger than
        those of each other one, with paired limits.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from toprank.files import evaluate_scores
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(500) < 0.2
    >>> table = np.column_stack([rng.normal(size=500) + 2 * y, rng.normal(size=500) + y, y])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scores.csv")
    ...     np.savetxt(path, table, delimiter=",", header="ours,incumbent,fraud", comments="")
    ...     found = evaluate_scores(path, ["ours", "incumbent"], target="fraud")
    >>> found.columns["ours"][-1].name, round(found.columns["ours"][-1].value, 2)
    ('auc', 0.92)
    >>> difference = found.differences["incumbent"][-1]
    >>> round(difference.value, 2), difference.lower > 0
    (0.15, True)
    """
    reading: dict[str, Any] = {"format": format, "delimiter": delimiter, "encoding": encoding}
    labels: dict[str, Any] = {"target": target, "positive": positive}
    watcher = watcher or Warner()
    if model is None:
        found = read_scores(open_table(os.fspath(path), **reading), scores, watcher, **labels)
    else:
        source = open_for_model(os.fspath(path), model, **reading)
        found = scores_beside(source, model, scores, watcher, **labels)
    require_lengths(k, len(found.rows.y))
    return measure_scores(
        found.rows.y, found.scores, ks=k or (10, 100), rates=fpr or (0.01, 0.05), confidence=confidence
    )


def read_scores(
    source: Any,
    scores: Sequence[str],
    watcher: Watcher,
    *,
    target: str | None = None,
    positive: str | None = None,
    id_column: str | None = None,
    all_columns: bool = False,
) -> ScoredRows:
    """The scores of all rows with a label; with `all_columns` the other columns too, as text."""
    names = _check_names(source, scores, target, id_column)
    target, special = special_columns(source, target, id_column)
    kinds = {**dict.fromkeys(names, NUMBER), **special}
    if all_columns:
        known = {*kinds, *repeated(source.names)}
        kinds |= {name: VERBATIM for name in source.names if name not in known}
    if not is_pipe(source.path):
        source.kinds()  # which finds how numbers are written
    with watcher.progress(f"reading {source.path}", source.size) as advance:
        frame, tally = read_all(source, kinds, advance)
    _refuse_strays(source, tally.columns())
    rows = labelled(frame, target, positive, id_column, None, [*source.notes])
    for note in rows.notes:
        watcher.note(note)
    return ScoredRows(_numbers_of(source, rows, names), rows)


def scores_beside(source: Any, model: TableModel, scores: Sequence[str], watcher: Watcher, **labels: Any) -> ScoredRows:
    """The scores of a model, under the name of its class, and those of columns.

    Of the file of the fit only the rows held out there are used. The rows have all columns, those that the model does
    not know as text.
    """
    names = _check_names(source, scores, labels.get("target") or model.target, labels.get("id_column"))
    rows = rows_to_test(source, model, watcher, all_columns=True, **labels)
    own = type(scorer_of(model.estimator_)).__name__
    if own in names:
        raise TableError(f"the column {own!r} has the name of the model, so the two cannot be told apart; rename it")
    return ScoredRows({own: model.decision_function(rows.X), **_numbers_of(source, rows, names)}, rows)


def _numbers_of(source: Any, rows: LabelledRows, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """The scores in some columns."""
    found = {}
    for name in names:
        series, places = source.spelling.numbers(rows.X[name])
        if len(places):
            _refuse_strays(source, {name: strays_of(rows.X[name], places, len(series), _where_of(source, name, rows))})
        found[name] = series.to_numpy()
        _refuse_missing(source, name, found[name], _where_of(source, name, rows))
    return found


def _where_of(source: Any, name: str, rows: LabelledRows) -> Callable[[int], str]:
    """Where in its file a labelled row is."""
    return lambda row: place_of(source, name, int(rows.numbers[row]))


def _refuse_strays(source: Any, columns: Mapping[str, Strays]) -> None:
    """Refuse scores that are no numbers: unlike a feature a score cannot be missing."""
    for name, strays in columns.items():
        raise NotANumberError(
            f"the column {name!r} of {source.path!r} has {strays.told()}, which is not a number, and a score is one; "
            "correct it",
            list(columns),
        )


def _check_names(source: Any, scores: Sequence[str], target: str | None, id_column: str | None) -> list[str]:
    if isinstance(source, SvmlightTable):
        raise TableError(
            f"scores are columns with names, and {source.path!r} is an svmlight file; give CSV, Parquet or NumPy"
        )
    names = [scores] if isinstance(scores, str) else list(scores)
    if not names:
        raise InputError.of("scores", names, "must name a column")
    require_columns(source, names, "correct the name")
    for name in names:
        if names.count(name) > 1 or name in (target, id_column):
            raise TableError(f"the column {name!r} is named twice; a score is neither another one nor target nor id")
    return names


def _refuse_missing(source: Any, name: str, scores: NDArray[np.float64], where: Callable[[int], str]) -> None:
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        first = int(wrong[0])
        what = "no score" if np.isnan(scores[first]) else f"the score {scores[first]}"
        more = f", and {len(wrong) - 1:,} more rows have none" if len(wrong) > 1 else ""
        raise TableError(
            f"{where(first)} of {source.path!r} has {what} in the column {name!r}{more}; every row with a label needs "
            "a finite one: score it, or leave the row out"
        )
