"""Measures of a model on the rows of a file: what the command ``evaluate`` does, for Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import InputError
from toprank.files.beside import Beside
from toprank.files.measures import About, Measures, measure, require_lengths
from toprank.files.model import TableModel
from toprank.files.open import open_for_model
from toprank.files.out_of_core import is_large
from toprank.files.periods import Per, check_per
from toprank.files.scoring import all_scores
from toprank.files.training import LabelledRows
from toprank.files.watched_rows import rows_to_test
from toprank.files.watching import Warner, Watcher
from toprank.ranking.drift import SURPRISING, ScoreSample

Path = str | os.PathLike[str]


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
