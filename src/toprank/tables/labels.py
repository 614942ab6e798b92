"""The target of a table: which rows are positive."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.tables.errors import TableError, excerpt

_USUAL = ({"0", "1"}, {"-1", "1"}, {"false", "true"})
# Longer numbers are written with an exponent.
_LONGEST = 20


def positive_rows(series: Any, positive: str | None) -> tuple[NDArray[np.int64], NDArray[np.bool_], str]:
    """Labels as 1 for positives and 0 for all others, which rows have a label, and the positive label.

    Labels 0 and 1, -1 and 1, or false and true need no `positive`. Numbers are compared as numbers, digit by digit,
    so 1 and 1.0 are the same.

    Parameters
    ----------
    series : polars.Series of strings
        The column of labels, null where missing.
    positive : str or None
        The positive label.

    Returns
    -------
    y : ndarray of shape (n_rows,)
        0 where there is no label.
    known : ndarray of shape (n_rows,)
        Whether there is a label.
    positive : str
        The positive label.
    """
    known = series.is_not_null().to_numpy()
    texts = [str(label) for label in series.drop_nulls().unique().sort()]
    if not texts:
        raise TableError.saying("the target {name!r} has no values; name another column by {target=}", name=series.name)
    canonical = {text: _canonical(text) for text in texts}
    labels = sorted(set(canonical.values()))
    if positive is None:
        positive = _usual_positive(labels, series.name)
    wanted = _canonical(positive.strip())
    if wanted not in labels:
        raise TableError(
            f"no row has the label {positive!r} in the column {series.name!r}; its labels are {_shown(labels)}"
        )
    chosen = [text for text, label in canonical.items() if label == wanted]
    y = series.is_in(chosen).fill_null(False).to_numpy().astype(np.int64)
    return y, known, positive


def _canonical(text: str) -> str:
    """Numbers in one way of writing, with all of their digits; true and false in small letters."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text.lower() if text.lower() in ("true", "false") else text
    if not number.is_finite() or "_" in text:  # 1_0 is a name
        return text
    if not number:
        return "0"
    exact = Context(prec=len(number.as_tuple().digits), Emax=MAX_EMAX, Emin=MIN_EMIN)
    number = number.normalize(exact)
    return format(number, "f") if abs(number.adjusted()) < _LONGEST else str(number)


def _usual_positive(labels: list[str], name: str) -> str:
    if set(labels) in _USUAL:
        return "true" if "true" in labels else "1"
    if len(labels) == 1:
        raise TableError.saying(
            "{found}; rows of both classes are needed, or name another column by {target=}",
            found=f"the target {name!r} has one value only, {excerpt(labels[0])}",
        )
    raise TableError.saying(
        "{found}; say which one is positive, for instance {positive=}",
        found=f"the labels in {name!r} are {_shown(labels)}",
        positive=labels[-1] if len(labels[-1]) < 30 else "LABEL",
    )


def _shown(labels: list[str], most: int = 6) -> str:
    return ", ".join(map(excerpt, labels[:most])) + (f", … ({len(labels)} in all)" if len(labels) > most else "")
