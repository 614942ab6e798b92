"""Scores of all rows of a file, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toprank.checks import require_count
from toprank.exceptions import InputError, Message, Parameter
from toprank.files.best_rows import Best, BestOfPeriods, PeriodBudget
from toprank.files.columns import prepared
from toprank.files.errors import TableError, listed, no_rows
from toprank.files.found_in_rows import FoundInRows
from toprank.files.linear_scorer import NotFiniteError, linear_scorer
from toprank.files.open import open_for_model
from toprank.files.periods import Per
from toprank.files.reason_columns import empty_reasons, reason_names, with_reasons, with_rows
from toprank.files.score_output import require_writable_name, without_formulas, write_tables
from toprank.files.source import DATE, NUMBER, TEXT, VERBATIM, batch_of, numbered, repeated, require_columns
from toprank.files.spelling import polars
from toprank.files.training import check_kind, id_in, needed_kinds, no_id_note
from toprank.files.watching import Warner, Watcher
from toprank.ranking.tie_runs import ROUNDING

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Scores:
    """Scores of some rows, above zero for positives, and how far the file is read.

    Identifiers are a series of polars, as they stand in the file and named by their column; without such a column
    numbers of rows from 1, named "row". `kept` are further columns of the file, as texts that stand there. `rows` are
    those that were scored, as the model takes them.
    """

    ids: Any
    scores: NDArray[np.float64]
    position: int
    kept: Any = None
    rows: Any = None

    def frame(self, n_reasons: int = 0) -> Any:
        """A table with the identifier, the score, the decision as 1 or 0, and the columns that are kept.

        A kept column of a name that is taken has "original_" before it. For reasons there are columns that
        `with_reasons` fills in.
        """
        name = "id" if self.ids.name in ("score", "decision", *reason_names(n_reasons)) else self.ids.name
        columns = {name: self.ids, "score": self.scores, "decision": (self.scores > 0).astype(np.int8)}
        columns |= empty_reasons(n_reasons, len(self.scores))
        for column in () if self.kept is None else self.kept:
            name = column.name
            while name in columns:
                name = f"original_{name}"
            columns[name] = column
        frame = polars().DataFrame(columns)
        return with_rows(frame, self.rows) if n_reasons else frame


def score_rows(
    source: Any,
    model: Any,
    id_column: str | None = None,
    keep: Sequence[str] | str = (),
    found: FoundInRows | None = None,
) -> Iterator[Scores]:
    """Score a table batch by batch; the next batch is read while one is scored.

    Without `id_column` it is that of the model, where the file has it. `keep` names columns to keep besides it, or is
    "all". What the user should know of the rows is added to `found`.
    """
    if check_kind(source, model):
        for name, value in (("id_column", id_column), ("keep", keep)):
            if value:
                _require_names(model, source, name)
        for batch in _ahead(source.batches(model.n_features_in_, 0.0)):
            scores = model.decision_function(batch.X)
            yield Scores(_numbers(batch.first_row, len(scores)), scores, batch.position)
        return
    kinds = needed_kinds(source, model)
    id_column = id_column or id_in(source, model)
    if id_column is not None:
        require_columns(source, [id_column], "correct the name")
    kept = [name for name in kept_columns(source, keep) if name != id_column]
    special = dict.fromkeys(kept if id_column is None else [id_column, *kept], VERBATIM)
    learned = {name: kinds[name] for name in special if name in kinds}
    score, found = _scorer(model), found or FoundInRows(model)
    for batch in _ahead(source.batches({**kinds, **special})):
        frame, where = batch.frame, numbered(batch.first_row)
        found.strays.add(batch.n_known, batch.strays)
        if learned:  # columns that the model uses too
            also = batch_of(frame.select(list(learned)), learned, source.spelling, where, 0, 0)
            frame = frame.with_columns(also.frame)
            found.strays.add(also.n_known, also.strays)
        found.unseen.add(frame)
        try:
            scores = score(frame)
        except NotFiniteError as error:
            raise TableError(
                f"{where(error.row)} of {source.path!r} has an infinite or too large value in the column "
                f"{error.column!r}; correct it, or leave it empty if it is missing"
            ) from None
        ids = _numbers(batch.first_row, len(scores)) if id_column is None else batch.frame[id_column]
        rows = frame.select(list(model.columns))
        yield Scores(ids, scores, batch.position, batch.frame.select(kept) if kept else None, rows)


def all_scores(source: Any, model: Any, watcher: Watcher) -> NDArray[np.float64]:
    """The scores of all rows of a table, in its order; what they are made of is never in memory at once."""
    found, parts = FoundInRows(model), []
    with watcher.progress(f"scoring {source.path}", source.size) as advance:
        for scored in score_rows(source, model, found=found):
            parts.append(scored.scores)
            advance(scored.position)
    found.tell(watcher)
    return np.concatenate(parts)


def _require_names(model: Any, source: Any, parameter: str) -> None:
    """Refuse what needs names of columns for an svmlight file."""
    if check_kind(source, model):
        raise TableError.saying(
            "{given} is for columns with names, and {path!r} is an svmlight file; leave it out",
            given=Parameter(parameter, parameter),
            path=source.path,
        )


def kept_columns(source: Any, keep: Sequence[str] | str) -> list[str]:
    """The columns of a table that `keep` names, each once; "all" are those whose names are their own."""
    if keep == "all":
        several = {*repeated(source.names)}
        names = [name for name in source.names if name not in several]
    elif isinstance(keep, str):
        raise InputError.of("keep", keep, "must be 'all' or a list of columns", "put the name into a list")
    else:
        names = list(dict.fromkeys(keep))
        require_columns(source, names, "correct the name in what to keep")
    types = getattr(source, "types", {})
    wrong = next((name for name in names if types.get(name, TEXT) not in (NUMBER, TEXT, DATE)), None)
    if wrong is not None:
        raise TableError.saying(
            "the column {name!r} of {path!r} has values of the type {type}, which CSV does not hold; name the columns "
            "to {keep}",
            name=wrong,
            path=source.path,
            type=types[wrong],
        )
    return names


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


@dataclass
class Scored:
    """How many rows were scored, how many are above the threshold, and how many were written."""

    rows: int = 0
    above: int = 0
    written: int = 0


def score_file(
    path: str | os.PathLike[str],
    model: Any,
    output: Any,
    *,
    id_column: str | None = None,
    top: int | None = None,
    share: float | None = None,
    budget: int | None = None,
    per: Per | None = None,
    time: str | None = None,
    keep: Sequence[str] | str = (),
    reasons: int = 0,
    safe_text: bool = False,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    watcher: Watcher | None = None,
) -> Scored:
    r"""Score the rows of a file into a CSV or Parquet file, in constant memory; the command ``toprank score``.

    A line has the identifier of a row (or its number), its score, the decision: 1 if the score is above zero, and the
    columns of the file that are kept.

    Parameters
    ----------
    path : path
        Rows with at least the columns of the model; ``-`` is standard input.
    model : TableModel
        Of `fit_file`, or of `toprank.load`.
    output : path or binary stream
        Where to write; a file appears when it is complete. It is Parquet if its name ends in .parquet or .pq, else CSV,
        which is compressed if the name ends in .gz, .bz2 or .xz. A stream gets CSV.
    id_column : str, optional
        Column of identifiers; by default that of the model, where the file has it.
    top : int, optional
        Write so many rows only, best first.
    share : float, optional
        Write this share of the rows only, best first; they are counted before.
    budget : int, optional
        Write so many rows of each period only, period by period, best first, with the time of each; the times of all
        rows are read before. Rows without a time are left out, which a note says.
    per : {"hour", "day", "week", "month"} or float, optional
        The period of `budget`; by default that of the model, see `fit_file`.
    time : str, optional
        Column of the time of a row; by default that of the model.
    keep : "all" or sequence of str
        Columns of the file to write too, as they stand there. One named like a column before it, as "score", is written
        as "original_score".
    reasons : int, default=0
        Number of columns reason_1, reason_2, … with what raises a row most, such as "job = student (+0.414)"; see
        `toprank.reasons`. With `top`, `share` or `budget` all rows that are written have them, else those above the
        threshold.
    safe_text : bool, default=False
        Put ' before identifiers and kept texts that a spreadsheet would take for a formula.
    format, delimiter
        As in `open_table`.
    encoding : str, optional
        As in `open_table`; by default that of the file of the fit.
    watcher : Watcher, optional
        As in `fit_file`.

    Returns
    -------
    Scored
        Counts of rows.

    Examples
    --------
    >>> import io, os, tempfile
    >>> from toprank import TopPush
    >>> from toprank.files import fit_file, score_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("x,y\n" + "1.5,1\n0.25,0\n0.5,0\n" * 5)
    ...     model = fit_file(path, TopPush(), target="y", holdout=0)
    ...     counts = score_file(path, model, stream := io.BytesIO(), top=3)
    >>> counts.written, [line.split(",")[0] for line in stream.getvalue().decode().splitlines()]
    (3, ['row', '1', '4', '7'])
    """
    watcher = watcher or Warner()
    if not hasattr(output, "write"):
        require_writable_name(os.fspath(output))
    periods = PeriodBudget.of(model, budget, per, time, top, share)
    source = open_for_model(os.fspath(path), model, format=format, delimiter=delimiter, encoding=encoding)
    if periods is not None:
        _require_names(model, source, "budget")
        keep = keep if keep == "all" or periods.time in keep else [*keep, periods.time]
    _note_extra_columns(source, model, id_column, keep, watcher)
    require_count("reasons", reasons, 0)
    if reasons:
        _require_names(model, source, "reasons")
    count, found = Scored(), FoundInRows(model)
    with watcher.progress(f"scoring {source.path}", source.size) as advance:
        best = _best(source, model, top, share, watcher) if periods is None else periods.best(source, watcher)
        scored = score_rows(source, model, id_column, keep, found)
        finished = _finisher(model, reasons, safe_text, all_rows=best is not None)
        frames = ((batch.frame(reasons), batch.position) for batch in scored)
        write_tables(_written(source, frames, best, finished, count, found, advance), output)
    found.tell(watcher)
    return count


def _note_extra_columns(
    source: Any, model: Any, id_column: str | None, keep: Sequence[str] | str, watcher: Watcher
) -> None:
    if model.columns is None:
        return
    for note in [] if id_column is not None else no_id_note(source, model):
        watcher.note(note)
    if keep == "all":
        return
    known = {*model.columns, model.target, model.id_column, id_column, *model.summary_.get("left_out", {}), *keep}
    extra = [name for name in source.names if name not in known]
    if extra:
        watcher.note(f"the model does not know these columns, and they are not looked at: {listed(extra)}")


def _best(source: Any, model: Any, top: int | None, share: float | None, watcher: Watcher) -> Best | None:
    """What keeps the best rows, if not all are written; a share needs a look at how many rows there are."""
    if share is None:
        return None if top is None else Best(top)
    n_rows = _count_rows(source, model)
    count = int(share * n_rows * (1 + ROUNDING))
    if not count:
        watcher.note(
            Message(
                "{share=:g} of {n:,} rows is less than one row, so none is written; use {top=1}", share=share, n=n_rows
            )
        )
    return Best(count)


def _count_rows(source: Any, model: Any) -> int:
    if check_kind(source, model):
        return sum(batch.X.shape[0] for batch in source.batches(model.n_features_in_, 0.0))
    first = next(iter(needed_kinds(source, model)))
    return sum(len(batch.frame) for batch in source.batches({first: VERBATIM}))


def _written(
    source: Any,
    frames: Iterator[tuple[Any, int]],
    best: Best | BestOfPeriods | None,
    finished: Callable[[Any], Any],
    count: Scored,
    found: FoundInRows,
    advance: Callable[[int], Any],
) -> Iterator[Any]:
    """The tables that are written; a file whose columns are not those of the model is refused before the end."""
    for frame, position in frames:
        count.rows += len(frame)
        count.above += int(frame["decision"].sum())
        if best is None:
            count.written += len(frame)
            yield finished(frame)
        else:
            best.add(frame)
        advance(position)
    if count.rows == 0:
        raise no_rows(source.path)
    found.strays.refuse_too_many()
    if best is not None:
        count.written = len(best.frame)
        yield finished(best.frame)


def _finisher(model: Any, n_reasons: int, safe_text: bool, *, all_rows: bool) -> Callable[[Any], Any]:
    """What is done with rows that are written."""

    def finished(frame: Any) -> Any:
        frame = with_reasons(frame, model, n_reasons, all_rows=all_rows) if n_reasons else frame
        return without_formulas(frame) if safe_text else frame

    return finished
