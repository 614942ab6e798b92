"""From held-out rows, with a fitted model or with scores, to one HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples, column_or_1d

from toprank.checks import require_confidence
from toprank.exceptions import InputError
from toprank.persistence.atomic import write_atomically
from toprank.ranking.drift import ScoreDrift


def write_report(
    path: str | os.PathLike[str], model: Any = None, X: Any = None, y: ArrayLike | None = None, **options: Any
) -> None:
    """Write a report on a fitted model, or on scores, to one HTML file, which opens in any browser without a network.

    The file is written whole or not at all. It holds the scores of the rows (without names) and the best rows with
    their columns: treat it as you treat the data, or leave rows out by ``n_top_rows=0``.

    Parameters
    ----------
    path : path
        The file to write or to replace.
    model, X, y, **options
        The parameters of `build_report`, such as `scores`, `ids`, `table` and `title`.

    Raises
    ------
    OSError
        If the file cannot be written; a file that was there before is left as it was.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import PatMatNP
    >>> from toprank.datasets import load_bundled
    >>> from toprank.report import write_report
    >>> data = load_bundled("breast_cancer")
    >>> X, X_test, y, y_test = train_test_split(data.X, data.y, stratify=data.y, random_state=0)
    >>> model = make_pipeline(StandardScaler(), PatMatNP(tau=0.05)).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(os.path.join(folder, "report.html"), model, X_test, y_test, title="Breast cancer")
    ...     os.listdir(folder)
    ['report.html']

    Without a model, one column of scores or several side by side:

    >>> ours, theirs = model.decision_function(X_test), X_test[:, 0]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = os.path.join(folder, "report.html")
    ...     write_report(page, y_true=y_test, scores={"ours": ours, "incumbent": theirs})
    """
    write_atomically(path, [build_report(model, X, y, **options).encode("utf-8")])


def build_report(
    model: Any = None,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    y_true: ArrayLike | None = None,
    scores: Any = None,
    labels: Sequence[Any] | None = None,
    ids: Sequence[Any] | None = None,
    table: Any = None,
    title: str | None = None,
    data_name: str | None = None,
    target_name: str | None = None,
    pos_label: Any = None,
    k: int | None = None,
    max_fpr: float | None = None,
    confidence: float = 0.95,
    n_top_rows: int = 50,
    training_rows: int | None = None,
    intended_use: str | None = None,
    limits: Sequence[str] | None = None,
    per_period: Any = None,
    amounts: ArrayLike | None = None,
    drift: ScoreDrift | None = None,
    background: Any = None,
) -> str:
    """A report on a fitted model, or on scores of whatever made them, as the text of one HTML page.

    Summary, a slider for the alert budget, curves, metrics with limits, the best rows and a card; of a model also
    what puts rows at the top, the most important features and the certificate of the fit. Several scores stand side by
    side, with paired limits of the differences between the first and each other one, see `toprank.ranking.paired`.

    What the slider shows is counted on all rows, not on the thinned curves, and is exact at each number of alerts,
    false positive rate and precision. Thresholds are exact for the 100,000 best distinct scores; below them an interval
    is shown. At most 20 million rows.

    Parameters
    ----------
    model : fitted classifier or ranker, optional
        A classifier with `decision_function` or `predict_proba`, or a ranker; also in pipelines, searches,
        `NeymanPearsonClassifier` and `TopKClassifier`.
    X : {array-like, sparse matrix, dataframe} of shape (n, n_features), optional
        Held-out rows, as the model takes them; needed with a model.
    y, y_true : array-like of shape (n,)
        Labels of the rows, of both classes, under one of the two names.
    scores : array-like of shape (n,), or a mapping or DataFrame of names to such, optional
        Scores of the rows, larger for more likely positives: instead of a model, or to compare it with. At most six.
    labels : sequence of length n, optional
        The labels as people know them, where `y` has codes such as 0 and 1 for them.
    ids : sequence of length n, optional
        What to call the rows in the list of the best; by default their numbers, from 0.
    table : DataFrame of pandas or polars with n rows, optional
        Columns to show in the list of the best rows; by default those of X if it is a DataFrame.
    title : str, optional
        Title of the page; by default what the first budget finds.
    data_name : str, optional
        What the held-out rows are called.
    target_name : str, optional
        What the column of labels is called.
    pos_label : label, optional
        The positive class; by default the second of the classes of the model, and 1 without a model.
    k : int, optional
        The budget that is shown first: so many alerts.
    max_fpr : float, optional
        The budget that is shown first: so high a false positive rate. Without `k` and `max_fpr` the budget is what the
        model was made for, else as many alerts as there are positives.
    confidence : float, default=0.95
        Of the limits, strictly between 0 and 1.
    n_top_rows : int, default=50
        How many of the best rows to list.
    training_rows : int, optional
        Number of rows that the model was trained on, for the model card.
    intended_use : str, optional
        A text for the model card.
    limits : sequence of str, optional
        Sentences for the model card on what the model must not be used for.
    per_period : AlertsPerPeriod, optional
        Alerts of each day, as `toprank.files.evaluate_file` finds them.
    amounts : array-like of shape (n,), optional
        An amount of each row, such as money; the page says what part of that of the positives is found.
    drift : toprank.plots.ScoreDrift, optional
        The scores of negatives at the fit and now.
    background : rows like X, optional
        Rows, such as those of the training, from whose mean the reasons of a linear model are measured; by default the
        means that the model knows, else those of the held-out rows. See `toprank.contributions`.

    Returns
    -------
    str
        A complete HTML document, without references to other files.

    Examples
    --------
    >>> from toprank import TauFPL
    >>> from toprank.datasets import make_imbalanced
    >>> from toprank.report import build_report
    >>> X, y, _ = make_imbalanced(2000, separation=3.0, random_state=0)
    >>> html = build_report(TauFPL(tau=0.05).fit(X[:1000], y[:1000]), X[1000:], y[1000:])
    >>> html.startswith("<!DOCTYPE html>"), "http://" in html
    (True, False)
    """
    _check_arguments(k, max_fpr, confidence, n_top_rows, training_rows)
    _check_given(model, X, y, y_true, scores)
    given = column_or_1d(np.asarray(y if y_true is None else y_true), input_name="y")
    lengths = {"y": given, "ids": ids, "table": table, "labels": labels, "amounts": amounts}
    if model is None:
        _check_lengths("y", len(given), lengths)
    else:
        X = X if hasattr(X, "shape") else np.asarray(X)
        table = X if table is None and hasattr(X, "columns") else table
        _check_lengths("X", _num_samples(X), lengths)
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ImportError("a report needs jinja2; install it by: pip install 'toprank[report]'") from error
    from toprank.report.contents import contents
    from toprank.report.evaluation import Evaluation
    from toprank.report.rendering import render
    from toprank.report.sections import About

    about = About(
        ids=ids,
        table=table,
        title=title,
        data_name=data_name,
        target_name=target_name,
        confidence=confidence,
        n_top_rows=int(n_top_rows),
        training_rows=training_rows,
        intended_use=intended_use,
        limits=limits,
        per_period=per_period,
        amounts=amounts,
        drift=drift,
        background=background,
    )
    return render(contents(Evaluation.of(model, X, given, pos_label, scores, labels), about, k, max_fpr))


def _check_given(model: Any, X: Any, y: Any, y_true: Any, scores: Any) -> None:
    if model is None and scores is None:
        raise InputError.saying("a report needs a fitted {model} with rows {X}, or {scores}; give one of them")
    if (y is None) == (y_true is None):
        given = "both are" if y is not None else "none is"
        raise InputError.saying("the labels are given as {y} or as {y_true}, but {given} there; keep one", given=given)
    if model is not None and X is None:
        raise InputError.saying("the model needs rows; give them as {X}")
    if model is None and X is not None:
        raise InputError.saying("{X} is for a model, and there is none; leave it out, and show columns by {table}")


def _check_arguments(k: Any, max_fpr: float | None, confidence: float, n_top_rows: Any, training_rows: Any) -> None:
    require_confidence(confidence)
    if k is not None and max_fpr is not None:
        raise ValueError(f"one budget is shown first, but k={k!r} and max_fpr={max_fpr!r} are given; keep one")
    for name, value, least in (("k", k, 1), ("n_top_rows", n_top_rows, 0), ("training_rows", training_rows, 1)):
        if value is not None and not (isinstance(value, int | np.integer) and value >= least):
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _check_lengths(of: str, n_rows: int, given: dict[str, Any]) -> None:
    if n_rows == 0:
        raise ValueError(f"{of} has no rows; a report needs held-out rows of both classes")
    for name, values in given.items():
        if values is None:
            continue
        if name == "table" and not hasattr(values, "columns"):
            raise TypeError(f"table must be a DataFrame of pandas or polars, got {type(values).__name__}")
        if len(values) != n_rows:
            raise ValueError(
                f"{of} has {n_rows} rows and {name} has {len(values)}; give one entry of {name} for each row of {of}"
            )
