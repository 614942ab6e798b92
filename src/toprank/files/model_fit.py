"""From a file to a model, measured on rows held out: what the command ``fit`` does, for Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter
from typing import Any

from toprank.exceptions import Message
from toprank.files.alert_rule import AlertRule
from toprank.files.beside import Beside
from toprank.files.column_list import column_list
from toprank.files.estimators import complete, pipeline_of, without_search
from toprank.files.measures import Measures
from toprank.files.model import TableModel
from toprank.files.model_measures import measured
from toprank.files.open import open_table
from toprank.files.out_of_core import FileRows, fit_in_blocks, is_wanted
from toprank.files.periods import Per
from toprank.files.summary import missing_values, summary_of
from toprank.files.training import LabelledRows, split_rows, sum_of_labels
from toprank.files.watched_rows import rows_to_learn
from toprank.files.watching import Warner, Watcher
from toprank.inspection import scorer_of
from toprank.log import listening
from toprank.plain_data import plain
from toprank.ranking.drift import ScoreSample

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
    types: Mapping[str, str] | None = None,
    search: bool = False,
    max_fpr: float | None = None,
    confidence: float = 0.95,
    share: float | None = None,
    budget: float | None = None,
    per: Per | None = None,
    time: str | None = None,
    in_order: bool = False,
    amount: str | None = None,
    holdout: float = 0.2,
    random_state: int = 0,
    n_jobs: int | None = 1,
    format: str | None = None,
    delimiter: str | None = None,
    zero_based: bool = False,
    missing: Collection[str] = (),
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    out_of_core: bool | None = None,
    watcher: Watcher | None = None,
) -> TableModel:
    r"""Fit a model to a file and measure it on rows held out; the command ``toprank fit``.

    Numbers are scaled, and their missing values are replaced by the median and marked in a column of their own. Text
    becomes one column of 0 and 1 for each value. Dates and free text are left out. A column is one of numbers if at
    most one value in a hundred is something else; such values count as missing, and a note names them, as it does a
    column that alone ranks the rows nearly perfectly.

    Parameters
    ----------
    path : path
        CSV, Parquet, svmlight or NumPy; text also compressed.
    estimator : estimator
        What gives scores, such as ``PatMatNP(tau=0.01)``; or a function that makes it for the share of the rows that
        `share` or `budget` asks for, such as ``lambda share: PatMatNP(tau=share)``.
    target : str
        Column of the labels; not for svmlight.
    positive : str, optional
        The positive label; not needed for 0 and 1, -1 and 1, false and true.
    id_column : str, optional
        Column that identifies a row; it is not learned from.
    ignore : collection of str
        Columns not to learn from; the same as the type "ignore".
    categorical : collection of str
        Columns of numbers that are codes; the same as the type "category".
    types : dict, optional
        What columns are, "number", "category" or "ignore", where that is not what is found.
    search : bool, default=False
        Choose the penalty by cross-validation.
    max_fpr : float, optional
        Set the threshold so that at most this share of the negatives is above it.
    confidence : float, default=0.95
        Probability with which `max_fpr` holds.
    share : float, optional
        Set the threshold so that at most this share of all rows is expected above it.
    budget : float, optional
        Set the threshold so that so many alerts are expected in each period of `per`, by the number of rows in the
        latest of the rows to learn from.
    per : {"hour", "day", "week", "month"} or float, optional
        The period for which alerts are counted, of dates a day where it is not given; a number is a length in the unit
        of `time`, or a number of rows with `in_order`. A word takes times that are numbers as seconds.
    time : str, optional
        Column of the time of a row: dates, times or numbers. The last rows are held out instead of random ones, and of
        the others the latest set the threshold. It is not learned from, unless `types` says that it is a number.
    in_order : bool, default=False
        Rows are in the order of time; the same as `time` where there is no such column.
    amount : str, optional
        Column of an amount, such as money; the part of that of the positives that is found is measured beside the part
        of the positives. It is learned from, unless it is ignored.
    holdout : float, default=0.2
        Share of the rows to measure on, the last ones if their time is known, else random ones; 0: learn from all.
    random_state : int, default=0
        Seed of splits and folds.
    n_jobs : int, default=1
        Fits at the same time, in a search.
    format, delimiter, zero_based, missing, decimal, thousands, encoding
        As in `open_table`; the model reads other files by the same rules.
    out_of_core : bool, optional
        Whether the rows stay in their file, Parquet or .npy, which is read again for each pass; by default where memory
        would not do. For the linear methods with a convex problem, where a sample of at most 100,000 rows decides on
        the columns, medians, scales and categories, and for `TopForest`.
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
    rule = AlertRule(max_fpr, confidence, share, budget, per)
    rule.require_times(time, in_order)
    beside, watcher = Beside(time, amount, in_order), watcher or Warner()
    written: dict[str, Any] = {"missing": missing, "decimal": decimal, "thousands": thousands, "encoding": encoding}
    source = open_table(os.fspath(path), format=format, delimiter=delimiter, zero_based=zero_based, **written)
    columns: dict[str, Any] = {"ignore": ignore, "categorical": categorical, "types": types, "beside": beside}
    made = estimator if hasattr(estimator, "fit") else estimator(0.01)
    in_file = is_wanted(source, made, out_of_core, search, watcher)
    rows = rows_to_learn(source, target, watcher, positive=positive, id_column=id_column, in_file=in_file, **columns)
    if in_file:
        rows.X = replace(rows.X, n_features=getattr(made, "n_features_in_blocks", 0))
    used = None if rows.columns is None else rows.columns.used
    train, test = split_rows(rows.y, rows.times, holdout, random_state)
    if holdout and not len(test):
        watcher.note(
            "one class has too few rows to hold some out, so the model is not measured; it learned from all rows"
        )
    part = rows.part(train)
    if not hasattr(estimator, "fit"):
        estimator = estimator(rule.share_of_rows(part.times))
    pipeline = pipeline_of(used, estimator)
    around: dict[str, Any] = {"rule": rule, "times": part.times, "n_negatives": int((part.y == 0).sum())}
    looks: dict[str, Any] = {"search": search, "jobs": n_jobs, "verbose": watcher.shows_progress}

    def whole(scorer: Any) -> Any:
        return complete(scorer, seed=random_state, **around, **looks)

    known: dict[str, Any] = {"target": target, "positive": rows.positive, "id_column": id_column}
    known |= {"time": time, "amount": amount}
    known["reading"] = None if used is None else source.spelling.record([*used, *beside.names()])
    model = TableModel(pipeline, used, zero_based=getattr(source, "zero_based", False), **known)
    start = perf_counter()
    with _shown(watcher, search, part.X.passes if in_file else None):
        learned_from = model.rows(part.X.sample if in_file else part.X)
        if in_file:
            fitted, searched = fit_in_blocks(pipeline, whole, part.X, part.y), None
            watcher.note(f"the fit took {part.X.passes():.0f} passes over {source.path!r}")
        else:
            fitted, searched = without_search(whole(pipeline).fit(learned_from, part.y))
    seconds = perf_counter() - start
    model.estimator = whole(pipeline) if searched is None else pipeline
    model.keep_fitted(fitted).keep_means(learned_from)
    tested = _tested(model, rows.part(test), per, watcher) if len(test) else None
    frame = rows.X.sample if in_file else rows.X
    data = {
        "rows": len(rows.y),
        "positives": int(rows.y.sum()),
        "learned_from": len(train),
        "holdout": holdout if len(test) else 0.0,
        "seed": random_state,
        "in_order": part.times is not None,
        "labels_sha256": sum_of_labels(rows.y),
    }
    model.summary_ = summary_of(model, type(estimator).__name__, source.path, data, rule.record(part.times)) | plain(
        {
            "missing": missing_values(frame, rows.columns),
            "left_out": {} if rows.columns is None else rows.columns.left_out,
            "table": [] if rows.columns is None else _listed(source, frame, rows.columns, model),
            "search": searched,
            "held_out": None if tested is None else tested.record(),
            "seconds": seconds,
        }
    )
    return model


def _listed(source: Any, frame: Any, known: Any, model: TableModel) -> list[dict[str, Any]]:
    """All columns of the file, with what is done with them."""
    roles = {model.time: "the time of a row", model.amount: "the amount of a row", model.id_column: "identifies a row"}
    roles |= {model.target: f"the labels; {model.positive} is positive"}
    named = {name: role for name, role in roles.items() if name is not None}
    as_it_is = getattr(scorer_of(model.estimator_), "takes_tables", False)
    return column_list(source.names, frame, known, known.kinds, source.spelling, named, as_it_is=as_it_is)


@contextmanager
def _shown(watcher: Watcher, search: bool, passes: Callable[[], float] | None = None) -> Iterator[None]:
    """Show how far the solver is, and how often it has read a file; a search shows its own progress."""
    if search:
        yield
        return

    def show(text: str) -> None:
        advance(0, f"fitting: {text}" + ("" if passes is None else f", {passes():.0f} passes over the file"))

    with watcher.progress("fitting") as advance, listening(show):
        yield


def _tested(model: TableModel, held: LabelledRows, per: Per | None, watcher: Watcher) -> Measures:
    in_file = isinstance(held.X, FileRows)
    scores = held.X.scored(model.decision_function) if in_file else model.decision_function(held.X)
    measures = measured(model, held, scores, watcher, per)
    model.negatives_ = ScoreSample.of(scores[held.y == 0]).record()
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
