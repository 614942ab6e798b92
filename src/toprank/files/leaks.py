"""Columns that alone rank nearly all positives above the negatives: they may be known only after the outcome.

The area under the ROC curve of a column of numbers is that of its values, large ones first or last, and missing values
lie between. A category is valued by the share of positives among the other half of the rows, so that rare ones, which
would know their own label, do not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import Message, Parameter
from toprank.files.columns import CATEGORY, MISSING
from toprank.files.source import truth_as_number
from toprank.files.spelling import Spelling

SUSPICIOUS_AUC = 0.98
# With fewer rows of a class a column of noise may rank them well.
_LEAST_ROWS = 10
# A look at so many values, and rows of each class, first; a column that passes is looked at as a whole.
_MOST_VALUES, _LEAST_SAMPLE, _MOST_SAMPLE = 2_000_000, 500, 4000
_CLOSE = 0.015


def leak_notes(frame: Any, y: NDArray[np.int64], used: Mapping[str, str]) -> list[str]:
    """A line for each column that ranks the rows nearly perfectly, with its area under the ROC curve."""
    return [
        Message(
            "{found}; if it is known only afterwards, leave it out by {ignored}",
            found=f"column {name!r} alone ranks positives above negatives with an AUC of {auc:.3f}",
            ignored=Parameter("ignore", f"ignore=[{name!r}]", name),
        )
        for name, auc in suspicious_columns(frame, y, used).items()
    ]


def suspicious_columns(frame: Any, y: NDArray[np.int64], used: Mapping[str, str]) -> dict[str, float]:
    """Columns with an area of at least `SUSPICIOUS_AUC`, and this."""
    counts = np.bincount(y, minlength=2)
    if counts.min() < _LEAST_ROWS:
        return {}
    size = int(np.clip(_MOST_VALUES // max(len(used), 1), _LEAST_SAMPLE, _MOST_SAMPLE))
    sample = np.sort(np.concatenate([_spread(np.flatnonzero(y == label), size) for label in (0, 1)]))
    found = {}
    for name, kind in used.items():
        first = _auc_of(frame, name, kind, y, sample)
        if first >= SUSPICIOUS_AUC - _CLOSE:
            auc = first if len(sample) == len(y) else _auc_of(frame, name, kind, y, None)
            if auc >= SUSPICIOUS_AUC:
                found[name] = auc
    return found


def _spread(rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """At most so many of the rows, evenly over all."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]


def _auc_of(frame: Any, name: str, kind: str, y: NDArray[np.int64], rows: NDArray[np.intp] | None) -> float:
    """The area of one column on some rows, or all."""
    column = frame[name] if rows is None else frame[name].gather(rows)
    labels = y if rows is None else y[rows]
    if kind != CATEGORY:
        values = Spelling().numbers(truth_as_number(column))[0].to_numpy()
        known = ~np.isnan(values)
        if not known.any():
            return 0.5
        return _either_way(labels, np.where(known, values, np.median(values[known])))
    codes = column.fill_null(MISSING).rank("dense").to_numpy().astype(np.int64) - 1
    return _either_way(labels, _shares(codes, labels))


def _shares(codes: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each row the share of positives of its category in the other half of the rows; that of all where it is new."""
    half = np.zeros(len(y), bool)
    for label in (0, 1):
        half[np.flatnonzero(y == label)[::2]] = True
    shares, n_codes = np.empty(len(y)), int(codes.max()) + 1
    for part in (half, ~half):
        rows = np.bincount(codes[~part], minlength=n_codes)
        positives = np.bincount(codes[~part], weights=y[~part], minlength=n_codes)
        shares[part] = np.where(rows > 0, positives / np.maximum(rows, 1), y.mean())[codes[part]]
    return shares


def _either_way(y: NDArray[np.int64], values: NDArray[np.float64]) -> float:
    from toprank.metrics import wmw_score

    auc = float(wmw_score(y, values))
    return max(auc, 1 - auc)
