"""From a file to a model and its measures: what the commands ``fit`` and ``evaluate`` do, for Python."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from toprank.exceptions import Message
from toprank.files.content import is_pipe, sum_of
from toprank.files.estimators import complete, pipeline_of, without_search
from toprank.files.measures import Measures, measure, require_lengths
from toprank.files.model import TableModel
from toprank.files.open import open_table
from toprank.files.summary import missing_values, plain, summary_of
from toprank.files.training import LabelledRows, held_out_rows, read_to_learn, read_to_test, sum_of_labels
from toprank.files.watching import Warner, Watcher

Path = str | os.PathLike[str]


def fit_file(
    path: Path,
    estimator: Any,
    *,
    target: str | None = None,
    positive: str | None = None,
    id_column: str | None = None,
    ignore: Collection[str] = (),
    categorical: Collection[str] = (),
    search: bool = False,
    max_fpr: float | None = None,
    confidence: float = 0.95,
    holdout: float = 0.2,
    random_state: int = 0,
    n_jobs: int | None = 1,
    format: str | None = None,
    delimiter: str | None = None,
    zero_based: bool = False,
    watcher: Watcher | None = None,
) -> TableModel:
    r"""Fit a model to a file and measure it on rows held out; the command ``toprank fit``.

    Numbers are scaled, and their missing values are replaced by the median and marked in a column of their own. Text
    becomes one column of 0 and 1 for each value. Dates and free text are left out.

    Parameters
    ----------
    path : path
        CSV, Parquet, svmlight or NumPy; text also compressed.
    estimator : estimator
        What gives scores, such as ``PatMatNP(tau=0.01)``.
    target : str
        Column of the labels; not for svmlight.
    positive : str, optional
        The positive label; not needed for 0 and 1, -1 and 1, false and true.
    id_column : str, optional
        Column that identifies a row; it is not learned from.
    ignore : collection of str
        Columns not to learn from.
    categorical : collection of str
        Columns of numbers that are codes.
    search : bool, default=False
        Choose the penalty by cross-validation.
    max_fpr : float, optional
        Set the threshold so that at most this share of the negatives is above it.
    confidence : float, default=0.95
        Probability with which `max_fpr` holds.
    holdout : float, default=0.2
        Share of the rows to measure on; 0: learn from all.
    random_state : int, default=0
        Seed of splits and folds.
    n_jobs : int, default=1
        Fits at the same time, in a search.
    format, delimiter, zero_based
        As in `open_table`.
    watcher : Watcher, optional
        Who is told of notes and progress; by default notes are warnings.

    Returns
    -------
    TableModel
        It takes tables with named columns, and `summary_` holds all that is known of the fit: the columns, the
        certificate, the measures of the rows held out. Save it by `toprank.save`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from toprank import PatMatNP
    >>> from toprank.files import evaluate_file, fit_file, score_file
    >>> rng = np.random.default_rng(0)
    >>> amount, fraud = rng.normal(size=500), rng.random(500) < 0.2
    >>> lines = [f"{x + 2 * y:.3f},{'DE' if x < 0 else 'FR'},{int(y)}" for x, y in zip(amount, fraud)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, scores = os.path.join(folder, "train.csv"), os.path.join(folder, "scores.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("\n".join(["amount,country,fraud", *lines]))
    ...     model = fit_file(path, PatMatNP(tau=0.05), target="fraud")
    ...     counts = score_file(path, model, scores, top=10)
    >>> model.columns, model.summary_["held_out"]["rows"]
    ({'amount': 'number', 'country': 'category'}, 100)
    >>> counts.rows, counts.written
    (500, 10)
    """
    watcher = watcher or Warner()
    source = open_table(os.fspath(path), format=format, delimiter=delimiter, zero_based=zero_based)
    columns = {"ignore": ignore, "categorical": categorical}
    rows = rows_to_learn(source, target, watcher, positive=positive, id_column=id_column, **columns)
    used = None if rows.columns is None else rows.columns.used
    pipeline = pipeline_of(used, estimator)
    around: dict[str, Any] = {"max_fpr": max_fpr, "confidence": confidence, "search": search, "jobs": n_jobs}
    whole = complete(pipeline, seed=random_state, verbose=watcher.shows_progress, **around)
    known: dict[str, Any] = {"target": target, "positive": rows.positive, "id_column": id_column}
    model = TableModel(pipeline, used, zero_based=getattr(source, "zero_based", False), **known)
    train, test = held_out_rows(rows.y, holdout, random_state)
    if holdout and not len(test):
        watcher.note(
            "one class has too few rows to hold some out, so the model is not measured; it learned from all rows"
        )
    start = time.perf_counter()
    part = rows.part(train)
    with nullcontext() if search else watcher.progress("fitting"):  # a search shows its own progress
        fitted, searched = without_search(whole.fit(model.rows(part.X), part.y))
    seconds = time.perf_counter() - start
    model.estimator = whole if searched is None else pipeline
    model.keep_fitted(fitted)
    tested = _tested(model, rows.part(test), watcher) if len(test) else None
    data = {
        "rows": len(rows.y),
        "positives": int(rows.y.sum()),
        "learned_from": len(train),
        "holdout": holdout if len(test) else 0.0,
        "seed": random_state,
        "labels_sha256": sum_of_labels(rows.y),
    }
    model.summary_ = summary_of(model, type(estimator).__name__, source.path, data) | plain(
        {
            "missing": missing_values(rows),
            "left_out": {} if rows.columns is None else rows.columns.left_out,
            "search": searched,
            "held_out": None if tested is None else tested.record(),
            "seconds": seconds,
        }
    )
    return model


def _tested(model: TableModel, held: LabelledRows, watcher: Watcher) -> Measures:
    measures = measure(held.y, model.decision_function(held.X))
    if measures.alerts == 0:
        watcher.note(
            Message(
                "no held-out row is above the threshold of this model; set one by {max_fpr=0.01}, or take the best by "
                "top= of score_file",
                elsewhere="no held-out row is above the threshold of this model; set one by {max_fpr=0.01}, or take "
                "the best by toprank score --top",
            )
        )
    return measures


def evaluate_file(
    path: Path,
    model: TableModel,
    *,
    target: str | None = None,
    positive: str | None = None,
    k: Sequence[int] | None = None,
    fpr: Sequence[float] | None = None,
    confidence: float = 0.95,
    format: str | None = None,
    delimiter: str | None = None,
    watcher: Watcher | None = None,
) -> Measures:
    """Measure a model on the rows of a file, with confidence intervals; the command ``toprank evaluate``.

    If the file is the one that the model was fitted to, only the rows held out there are used, which a note says.

    Parameters
    ----------
    path : path
        Rows with labels.
    model : TableModel
        Of `fit_file`, or of `toprank.load`.
    target, positive : str, optional
        As in `fit_file`; by default those of the model.
    k : sequence of int, optional
        Lengths of the list, each at most the number of rows; by default 10 and 100, where there are so many rows.
    fpr : sequence of float, optional
        False positive rates; by default 0.01 and 0.05.
    confidence : float, default=0.95
        Of the intervals.
    format, delimiter
        As in `open_table`.
    watcher : Watcher, optional
        As in `fit_file`.

    Returns
    -------
    Measures
        Counts, and `values` with a name, an estimate and the limits of its interval each.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from toprank import TopPush
    >>> from toprank.files import evaluate_file, fit_file
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(400) < 0.3
    >>> table = np.column_stack([rng.normal(size=400) + 2 * y, y])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train, test = os.path.join(folder, "train.csv"), os.path.join(folder, "test.csv")
    ...     for path, rows in ((train, table[:200]), (test, table[200:])):
    ...         np.savetxt(path, rows, delimiter=",", header="x,y", comments="")
    ...     measures = evaluate_file(test, fit_file(train, TopPush(), target="y", holdout=0))
    >>> measures.rows, measures.values[-1].name, measures.values[-1].value > 0.8
    (200, 'auc', True)
    """
    source = open_table(os.fspath(path), format=format, delimiter=delimiter, zero_based=model.zero_based)
    rows = rows_to_test(source, model, watcher or Warner(), target=target, positive=positive)
    require_lengths(k, len(rows.y))
    scores = np.asarray(model.decision_function(rows.X))
    return measure(rows.y, scores, ks=k or (10, 100), rates=fpr or (0.01, 0.05), confidence=confidence)


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
    if training.get("labels_sha256") != sum_of_labels(rows.y):
        watcher.note(
            f"{source.path!r} is the file of the fit, with other labels than there: rows that the model learned from "
            "are measured too, so these numbers may be too good; take other rows, or the labels of the fit"
        )
        return rows
    test = held_out_rows(rows.y, training["holdout"], training["seed"])[1]
    watcher.note(
        f"{source.path!r} is the file of the fit: only the {len(test):,} rows that were held out there are used"
    )
    return rows.part(test)
