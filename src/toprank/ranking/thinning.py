"""Fewer vertices for the same picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toprank.ranking.tie_runs import Floats

# A line as wide as a page at 300 dots an inch has about this many columns of pixels.
COLUMNS = 2000


def thin(x: Floats, y: Floats, *, logarithmic: bool = False, columns: int = COLUMNS) -> NDArray[np.intp]:
    """Numbers of the vertices that a line with rising x needs at a given width.

    The width is cut into columns, and of the vertices in a column the first, the last, a lowest and a highest one are
    kept: between them lies everything that the line does there. All kept vertices are exact, the first and the last
    one are among them, and a line of at most 4 vertices a column stays as it is.

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        The vertices, x not falling.
    logarithmic : bool, default=False
        Whether the columns have equal width in log x; zeros are a column of their own.
    columns : int, default=2000
        Number of columns.

    Examples
    --------
    >>> x = np.arange(1_000_000.0)
    >>> kept = thin(x, np.sqrt(x), columns=100)
    >>> len(kept), int(kept[0]), int(kept[-1])
    (200, 0, 999999)
    """
    if len(x) <= 4 * columns:
        return np.arange(len(x))
    column = _columns(x, logarithmic, columns)
    starts = np.append(0, np.flatnonzero(np.diff(column)) + 1)
    ends = np.append(starts[1:], len(x)) - 1
    lowest = _first_with(y, np.minimum.reduceat(y, starts), starts)
    highest = _first_with(y, np.maximum.reduceat(y, starts), starts)
    return np.unique(np.concatenate([starts, ends, lowest, highest]))


def _columns(x: Floats, logarithmic: bool, columns: int) -> Floats:
    """The column of each vertex."""
    place = x
    if logarithmic:
        if not x[-1] > 0:
            raise ValueError(f"a logarithmic axis needs a positive x, but the largest is {x[-1]:g}")
        place = np.log(np.maximum(x, x[np.searchsorted(x, 0.0, side="right")]))
    width = place[-1] - place[0]
    column = np.zeros(len(x)) if width == 0 else np.minimum(np.floor((place - place[0]) / width * columns), columns - 1)
    return np.where(x > 0, column, -1.0) if logarithmic else column


def _first_with(y: Floats, extreme: Floats, starts: NDArray[np.intp]) -> NDArray[np.intp]:
    """Number of the first vertex of each column that has its extreme value."""
    lengths = np.diff(np.append(starts, len(y)))
    has = np.flatnonzero(y == np.repeat(extreme, lengths))
    return np.asarray(has[np.searchsorted(has, starts)])
