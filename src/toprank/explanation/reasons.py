"""The columns that put a row where it is, in words."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from toprank.checks import is_missing, require_count
from toprank.explanation.contributions import Contributions, contributions

# Numbers that are made at a time: rows with very many columns are explained in blocks.
_MOST_NUMBERS = 10_000_000
_LONGEST_VALUE = 60


class Reason(NamedTuple):
    """A column that raises a row in the list, the value there, and what it adds to the score.

    Examples
    --------
    >>> from toprank.explanation import Reason
    >>> print(Reason("job", "student", 0.4137))
    job = student (+0.414)
    """

    feature: str
    value: Any
    contribution: float

    def __str__(self) -> str:
        return f"{self.feature} = {_text(self.value)} ({self.contribution:+.3g})"


def reasons(model: Any, X: Any, n: int = 3, *, background: Any = None) -> list[list[Reason]]:
    """The columns that raise each row most, by what they add to its score, largest first.

    Parameters
    ----------
    model : estimator
        A fitted linear model or a `TopForest`, also inside pipelines, searches and decision rules.
    X : {array-like, sparse matrix, dataframe} of shape (n_rows, n_columns)
        Rows to explain, as the model takes them.
    n : int, default=3
        Number of reasons, at most; a row has fewer if fewer columns raise it.
    background : rows like X, optional
        Rows to compare with; see `toprank.contributions`, where it is also said how a contribution is measured.

    Returns
    -------
    list of list of Reason
        For each row; as text a reason reads ``job = student (+0.414)``.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import TopForest, reasons
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(500, n_features=4, random_state=0)
    >>> X = pd.DataFrame(X, columns=["age", "amount", "hour", "speed"])
    >>> model = TopForest(tau=0.05, n_estimators=5, random_state=0).fit(X, y)
    >>> best = X.iloc[[model.decision_function(X).argmax()]]
    >>> (found,) = reasons(model, best, n=2)
    >>> len(found), found[0].contribution >= found[1].contribution > 0
    (2, True)
    """
    require_count("n", n)
    shape = getattr(X, "shape", None) or np.shape(X)
    block = max(1, _MOST_NUMBERS // max(1, shape[1]))
    if shape[0] <= block:
        return reasons_of(contributions(model, X, background=background), n)
    starts = range(0, shape[0], block)
    parts = [_safe_indexing(X, np.arange(start, min(start + block, shape[0]))) for start in starts]
    return [row for part in parts for row in reasons_of(contributions(model, part, background=background), n)]


def reasons_of(found: Contributions, n: int) -> list[list[Reason]]:
    """The largest contributions above zero of each row, with the values of the columns."""
    best = np.argsort(-found.values, axis=1, kind="stable")[:, :n]
    rows = found.data.iloc if hasattr(found.data, "iloc") else found.data
    return [
        [Reason(found.names[j], rows[i, j], float(found.values[i, j])) for j in columns if found.values[i, j] > 0]
        for i, columns in enumerate(best.tolist())
    ]


def _text(value: Any) -> str:
    """A value as short text."""
    if is_missing(value):
        return "(missing)"
    if isinstance(value, Real) and not isinstance(value, Integral | bool | np.bool_):
        return f"{float(value):.6g}"
    text = " ".join(str(value).split())
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 1] + "…"
