"""Scores of all rows of a file, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toprank.files.columns import prepared
from toprank.files.errors import TableError
from toprank.files.linear_scorer import NotFiniteError, linear_scorer
from toprank.files.parquet_file import converted
from toprank.files.source import VERBATIM, polars, require_columns
from toprank.files.training import check_kind, id_in, needed_kinds

_Item = TypeVar("_Item")
_FORMULA = "^[=+@＝＋－＠\\t\\r\\n-]"
_PLAIN_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class Scores:
    """Scores of some rows.

    Attributes
    ----------
    ids : polars.Series
        Identifiers as they stand in the file, named by their column; without such a column numbers of rows from 1,
        named "row".
    scores : ndarray of shape (n_rows,)
        The decision function: above zero means positive.
    position : int
        How far the file is read.
    """

    ids: Any
    scores: NDArray[np.float64]
    position: int

    def frame(self) -> Any:
        """A table with the identifier, the score, and the decision as 1 or 0."""
        pl = polars()
        name = "id" if self.ids.name in ("score", "decision") else self.ids.name
        return pl.DataFrame({name: self.ids, "score": self.scores, "decision": (self.scores > 0).astype(np.int8)})


def without_formulas(frame: Any) -> Any:
    """A table in which ' stands before each text, also a name, that a spreadsheet would take for a formula."""
    pl = polars()
    text = pl.col(pl.String)
    formula = text.str.contains(_FORMULA) & ~text.str.contains(_PLAIN_NUMBER)
    names = {name: f"'{name}" for name in frame.columns if re.match(_FORMULA, name)}
    return frame.with_columns(pl.when(formula).then(pl.lit("'") + text).otherwise(text).name.keep()).rename(names)


def score_rows(source: Any, model: Any, id_column: str | None = None) -> Iterator[Scores]:
    """Score a file batch by batch; the next batch is read while one is scored.

    Parameters
    ----------
    source : table
        Of `open_table`.
    model : TableModel
        The model.
    id_column : str, optional
        Column of identifiers; by default that of the model, where the file has it.

    Yields
    ------
    Scores
        Of the rows in their order.
    """
    if check_kind(source, model):
        if id_column is not None:
            raise TableError(f"--id is for columns with names, and {source.path!r} is an svmlight file; leave it out")
        for batch in _ahead(source.batches(model.n_features_in_, 0.0)):
            scores = model.decision_function(batch.X)
            yield Scores(_numbers(batch.first_row, len(scores)), scores, batch.position)
        return
    kinds = needed_kinds(source, model)
    id_column = id_column or id_in(source, model)
    if id_column is not None:
        require_columns(source, [id_column], "correct the name")
    special = {} if id_column is None else {id_column: VERBATIM}
    learned = {name: kinds[name] for name in special if name in kinds}
    score = _scorer(model)
    for batch in _ahead(source.batches({**kinds, **special})):
        frame = batch.frame
        if learned:  # an identifier that the model uses too
            frame = frame.with_columns(converted(frame.select(list(learned)), learned, source.path, batch.first_row))
        try:
            scores = score(frame)
        except NotFiniteError as error:
            raise TableError(
                f"row {batch.first_row + error.row + 1} of {source.path!r} has an infinite or too large value in the "
                f"column {error.column!r}; correct it, or leave it empty if it is missing"
            ) from None
        ids = _numbers(batch.first_row, len(scores)) if id_column is None else batch.frame[id_column]
        yield Scores(ids, scores, batch.position)


def _scorer(model: Any) -> Callable[[Any], NDArray[np.float64]]:
    """A function of a frame: the fast way for linear models, else that of the model."""
    linear = linear_scorer(model)
    if linear is not None:
        return lambda frame: linear(prepared(frame, model.columns))

    def score(frame: Any) -> NDArray[np.float64]:
        for name, kind in frame.schema.items():
            if kind.is_float() and name in model.columns and frame[name].is_infinite().any():
                raise NotFiniteError(int(frame[name].is_infinite().arg_max()), name)
        return np.asarray(model.decision_function(frame))

    return score


def _numbers(first_row: int, count: int) -> Any:
    return polars().Series("row", np.arange(first_row + 1, first_row + count + 1))


def _ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """The items, each made while the one before is used."""
    end: Any = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item


class Best:
    """The best rows of those that were added, the first ones among equals.

    Parameters
    ----------
    count : int
        How many to keep.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._frame: Any = None

    def add(self, frame: Any) -> None:
        """Add rows that come after all others; they have a column "score"."""
        pl = polars()
        if self._frame is not None and len(self._frame) == self.count:
            least = self._frame["score"][-1] if self.count else np.inf
            frame = frame.filter(pl.col("score") > least)
        both = frame if self._frame is None else pl.concat([self._frame, frame])
        self._frame = both.sort("score", descending=True, maintain_order=True).head(self.count)

    def frame(self) -> Any:
        """The best rows, best first."""
        return self._frame
