"""What puts rows at the top, over all rows there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from toprank.arrays import Floats, Rows
from toprank.checks import is_count, require_count
from toprank.exceptions import InputError
from toprank.explanation.contributions import contributions


class TopImportance(NamedTuple):
    """Columns by how much they move the rows at the top, most important first.

    Attributes
    ----------
    names : list of str
        The columns.
    at_the_top : ndarray of shape (n_columns,)
        Mean size of the contributions of a column to the scores of rows at the top.
    of_all : ndarray of shape (n_columns,)
        The same over all rows.
    raised : ndarray of shape (n_columns,)
        Mean of the contributions at the top, with their signs: by how much the column raises rows there.
    n_top : int
        Number of rows at the top.
    """

    names: list[str]
    at_the_top: Floats
    of_all: Floats
    raised: Floats
    n_top: int


def importance_at_the_top(
    model: Any, X: Any, *, top: int | None = None, background: Any = None, max_rows: int | None = 200
) -> TopImportance:
    """How much each column moves the scores of the rows at the top, beside how much it moves those of all rows.

    It is the mean of the absolute contributions of a column over the rows above the threshold of the model; a column
    may say little about most rows and much about those at the top.

    Parameters
    ----------
    model : estimator
        A fitted linear model or a `TopForest`, also inside pipelines, searches and decision rules.
    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_columns)
        Rows like those that will be scored; test rows rather than training rows.
    top : int, optional
        Number of best rows that are the top, in place of those above the threshold.
    background : rows like X, optional
        Rows to compare with; see `toprank.contributions`.
    max_rows : int or None, default=200
        Of more rows at the top, and of more rows in all, so many are looked at, evenly spread over the list; None: all.

    Returns
    -------
    TopImportance
        Names and means, most important at the top first.

    Examples
    --------
    >>> from toprank import PatMatNP, importance_at_the_top
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, n_features=4, random_state=0)
    >>> found = importance_at_the_top(PatMatNP(tau=0.05).fit(X, y), X, background=X)
    >>> sorted(found.names), bool(found.at_the_top[0] >= found.at_the_top[1])
    (['x0', 'x1', 'x2', 'x3'], True)
    """
    if max_rows is not None:
        require_count("max_rows", max_rows)
    X = X if hasattr(X, "shape") else np.asarray(X)
    scores = np.asarray(model.decision_function(X))
    return importance_by_scores(model, X, scores, _n_top(scores, top), background, max_rows)


def importance_by_scores(
    model: Any, X: Any, scores: Floats, n_top: int, background: Any, max_rows: int | None
) -> TopImportance:
    """The importance of columns for rows whose scores are known."""
    order = np.argsort(-scores, kind="stable")
    best = order[:n_top]
    looked_at = [spread(rows, max_rows) for rows in (best, order)]
    at_the_top, of_all = (contributions(model, _safe_indexing(X, rows), background=background) for rows in looked_at)
    means = np.abs(at_the_top.values).mean(axis=0)
    by_importance = np.argsort(-means, kind="stable")
    return TopImportance(
        [at_the_top.names[j] for j in by_importance.tolist()],
        means[by_importance],
        np.abs(of_all.values).mean(axis=0)[by_importance],
        at_the_top.values.mean(axis=0)[by_importance],
        len(best),
    )


def _n_top(scores: Floats, top: int | None) -> int:
    """How many rows are the top."""
    if top is not None:
        if not (is_count(top) and top <= len(scores)):
            raise InputError.of("top", top, "must be a whole number from 1 to {n}, the number of rows", n=len(scores))
        return int(top)
    above = int((scores > 0).sum())
    if not above:
        raise InputError.saying("no row is above the threshold of the model; say by {top=10} how many are the top")
    return above


def spread(rows: Rows, most: int | None) -> Rows:
    """Some of the rows, evenly spread."""
    if most is None or len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).round().astype(np.intp)]
