"""From a file to a model and its measures: what the commands ``fit`` and ``evaluate`` do, for Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import InputError, Message
from toprank.files.alert_rule import AlertRule
from toprank.files.beside import Beside
from toprank.files.column_list import column_list
from toprank.files.content import is_pipe, sum_of
from toprank.files.estimators import complete, pipeline_of, without_search
from toprank.files.measures import About, Measures, measure, require_lengths
from toprank.files.model import TableModel
from toprank.files.open import open_for_model, open_table
from toprank.files.out_of_core import FileRows, fit_in_blocks, is_large, is_wanted
from toprank.files.periods import Per, check_per
from toprank.files.scoring import all_scores
from toprank.files.summary import missing_values, summary_of
from toprank.files.times import Times
from toprank.files.training import LabelledRows, read_to_learn, read_to_test, split_rows, sum_of_labels
from toprank.files.watching import Warner, Watcher
from toprank.inspection import scorer_of
from toprank.log import listening
from toprank.plain_data import plain
from toprank.ranking.drift import SURPRISING, ScoreSample

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
        would not do. For the linear methods with a convex problem; a sample of 100,000 rows decides on the columns,
        medians, scales and categories.
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


def evaluate_file(
    path: Path,
    model: TableModel,
    *,
    target: str | None = None,
    positive: str | None = None,
    k: Sequence[int] | None = None,
    fpr: Sequence[float] | None = None,
    confidence: float = 0.95,
    per: Per | None = None,
    time: str | None = None,
    amount: str | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    watcher: Watcher | None = None,
) -> Measures:
    """Measure a model on the rows of a file, with confidence intervals; the command ``toprank evaluate``.

    If the file is the one that the model was fitted to, only the rows held out there are used, which a note says. Of
    another file a note warns if the scores of the negatives have drifted since the fit; see `toprank.plots.ScoreDrift`.

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
    per, time, amount
        As in `fit_file`; by default those of the model.
    format, delimiter
        As in `open_table`.
    encoding : str, optional
        As in `open_table`; by default that of the file of the fit.
    watcher : Watcher, optional
        As in `fit_file`.

    Returns
    -------
    Measures
        Counts, and `values` with a name, an estimate and the limits of its interval each; `per_period` with the alerts
        of each day, and `drift`, where these are known.

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
    source = open_for_model(os.fspath(path), model, format=format, delimiter=delimiter, encoding=encoding)
    watcher = watcher or Warner()
    labels: dict[str, Any] = {"target": target, "positive": positive}
    in_file = is_large(source)
    rows = rows_to_test(source, model, watcher, beside=Beside(time, amount), in_file=in_file, **labels)
    require_lengths(k, len(rows.y))
    if in_file:
        scores = all_scores(source, model, watcher)[rows.numbers]
    else:
        scores = np.asarray(model.decision_function(rows.X))
    cuts: dict[str, Any] = {"ks": k or (10, 100), "rates": fpr or (0.01, 0.05), "confidence": confidence}
    return measured(model, rows, scores, watcher, per, **cuts)


def measured(
    model: TableModel,
    rows: LabelledRows,
    scores: NDArray[np.float64],
    watcher: Watcher,
    per: Per | None = None,
    **cuts: Any,
) -> Measures:
    """Measure the scores of rows; notes tell of a drift, and of a promise that is not kept."""
    measures = measure(rows.y, scores, about=_about(model, rows, per), **cuts)
    _note_promise(model, measures, watcher)
    return measures


def _about(model: TableModel, rows: LabelledRows, per: Per | None) -> About:
    """What is known of rows beside their labels; the period is that of the model, or a day for dates, if not given."""
    per = model.summary_.get("threshold", {}).get("per") if per is None else check_per(per)
    if per is not None and rows.times is None:
        raise InputError.saying("{per=} needs the time of each row; name its column by {time=}", per=per)
    if per is None and rows.times is not None and rows.times.has_clock:
        per = "day"
    before: Any = None if rows.of_fit else getattr(model, "negatives_", None)
    return About(rows.times, per, rows.amounts, None if before is None else ScoreSample.from_record(before))


def _note_promise(model: TableModel, measures: Measures, watcher: Watcher) -> None:
    """Say that the negatives have drifted, or that more of them are above the threshold than was promised."""
    if measures.drift is not None and measures.drift.is_surprising:
        watcher.note(f"{measures.drift.sentence()}; set the threshold anew on fresh rows")
    bound = model.summary_.get("threshold", {}).get("max_fpr") or getattr(model.estimator_, "max_fpr", None)
    surprise = None if bound is None else measures.surprise_at(bound)
    if bound is not None and surprise is not None and surprise < SURPRISING:
        watcher.note(
            f"the false positive rate here is {100 * measures.fpr:.2g} %, and at most {100 * bound:g} % were promised "
            f"for negatives like those that the threshold was set on: these are others (binomial test, p = "
            f"{surprise:.1g}); fit again with fresh rows, and in the order of time if it was not"
        )


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
