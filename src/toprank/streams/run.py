"""Learn from a file that need not fit in memory, and go on after an interruption."""

from __future__ import annotations

import copy
import logging
import os
import signal
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from typing import Any

from numpy.typing import NDArray

from toprank import log
from toprank.checks import require_count
from toprank.exceptions import InputError, Message
from toprank.files.found_in_rows import FoundInStream
from toprank.files.model import TableModel
from toprank.files.open import open_rows
from toprank.files.rows import BadLine, Batch, RowSource, batches, stop_at
from toprank.persistence.atomic import same_file
from toprank.persistence.model_file import fingerprint
from toprank.streams.checkpoint import Checkpoint, State, content_of
from toprank.streams.learner import Learner
from toprank.streams.prequential import Prequential
from toprank.streams.progress import progress
from toprank.streams.table_learner import TableLearner


@dataclass(frozen=True)
class StreamResult:
    r"""What a stream gave.

    Attributes
    ----------
    model : estimator
        The trained copy of the model.
    history : dict of arrays
        One entry a window: `rows` read up to its end, `auc` and `tpr_at_fpr` of the scores that its rows had before the
        model learned from them, and the number of `positives`; nan where a class is missing. The last window may be
        shorter. ``pandas.DataFrame(result.history)`` is a table.
    n_rows : int
        Rows learned from, those before an interruption included.
    n_positives : int
        The positive ones among them.
    n_bad_lines : int
        Lines left out.
    bad_lines : list of BadLine
        Number and reason of the first hundred of them.
    resumed_at : int
        Rows that had been learned from when this call started, by an earlier one; 0 if it started anew.
    last_line_waits : bool
        Whether the last line had no end and was left for the next run; see `grows` of `stream`.
    found : FoundInStream or None
        Of `stream_table`: missing values of each column, values that are no numbers, and categories never seen before.

    Examples
    --------
    >>> import os, tempfile
    >>> from toprank import CBR, stream
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("x,y\n" + "1.5,1\n0.5,0\noops\n" * 20)
    ...     result = stream(path, CBR(), target="y", on_bad_line="skip", batch=10, window=30)
    >>> result.n_rows, result.n_bad_lines, result.history["auc"].tolist()
    (40, 20, [1.0])
    """

    model: Any
    history: dict[str, NDArray[Any]]
    n_rows: int
    n_positives: int
    n_bad_lines: int
    bad_lines: list[BadLine]
    resumed_at: int
    last_line_waits: bool = False
    found: FoundInStream | None = None


def stream(
    path: str | os.PathLike[str],
    model: Any,
    *,
    target: str | None = None,
    positive: Any = None,
    features: Sequence[str] | None = None,
    format: str | None = None,
    delimiter: str | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    fill_missing: float | None = None,
    on_bad_line: str = "stop",
    batch: int = 1000,
    window: int = 10_000,
    max_fpr: float = 0.01,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int = 100_000,
    resume: bool = True,
    grows: bool | None = None,
    trusted: Iterable[type] = (),
    verbose: int = 0,
) -> StreamResult:
    """Learn from a file row by row, in constant memory, and measure on the way.

    Each batch of rows is scored first and then learned from, so that every row is a test row once; the scores are
    measured in windows. With `checkpoint`, the state is saved now and then, and the same call goes on from there after
    an interruption, with the same result as without one, to the last bit: nothing is lost or counted twice.

    Parameters
    ----------
    path : path
        The file: CSV (with a line of names), svmlight, Parquet or NumPy; text also compressed, as .gz, .bz2 or .xz, or
        from a pipe. ``"-"`` is standard input.
    model : estimator
        It needs `partial_fit` and `decision_function`; or a `Pipeline` whose last step has them and whose other steps
        are fitted. It is copied, not changed. A fitted model goes on learning.
    target : str
        Column of the labels; not for svmlight.
    positive : label, optional
        The positive label; all others are negative. By default labels are 1, and 0 or -1, or true and false. The model
        learns 1 and 0.
    features : list of str, optional
        Columns to learn from; by default all but the target and those that share a name. All must be numbers.
    format : {"csv", "svmlight", "parquet", "numpy"}, optional
        By default from the name of the file; of a pipe without such a name "csv" with `target`, else "svmlight".
    delimiter : str, optional
        Of CSV; by default found in the first line.
    n_features : int, optional
        Of svmlight; by default that of a fitted model, or else the file is read once to find the largest index. A pipe
        cannot be read twice, so there it is needed.
    zero_based : bool, default=False
        Whether indices of svmlight start at 0.
    fill_missing : float, optional
        Stands for missing values (an empty field, NA, NaN, null). By default a line with a missing value is bad.
    on_bad_line : {"stop", "skip"}, default="stop"
        Stop with a `BadLineError` at the first bad line, or leave bad lines out and count them.
    batch : int, default=1000
        Rows scored and then learned from at once.
    window : int, default=10_000
        Scored rows in a window of the metrics.
    max_fpr : float, default=0.01
        False-alarm budget of the true positive rate.
    checkpoint : path, optional
        File to save the state in. It is also written when the run ends, and when it stops at a bad line or by Ctrl-C.
    every : int, default=100_000
        Rows between checkpoints; they are written at the end of a batch.
    resume : bool, default=True
        Go on from the checkpoint if it exists; False: start anew and replace it. A checkpoint of another file, model or
        setting is refused. A pipe must give the same rows from the start; those that were learned from are passed over.
    grows : bool, optional
        Whether the file may still be written to. A last line without its end may then be cut off in the middle of a
        number: it is left for the next run, and the log says so. If False it counts as a line. By default True with a
        checkpoint, else False.
    trusted : iterable of classes, optional
        Classes of your own in the model, as in `toprank.save`.
    verbose : int, default=0
        With 1, show a progress bar (with rich installed) or log lines.

    Returns
    -------
    StreamResult
        The trained model, the history of the metrics, and the bad lines. The model knows the names of the columns as
        `feature_names_in_`, and goes on learning only from a file with the same in the same order.

    Raises
    ------
    BadLineError
        At a bad line, unless these are skipped.
    ValueError
        If the arguments do not fit together, or the file or the checkpoint to the model. An error of the model itself
        comes with a note between which lines it happened.

    Warns
    -----
    UserWarning
        If the file has no rows of one of the classes.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from toprank import CBR, stream
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(5000, separation=3.0, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clicks.csv")
    ...     names = ",".join([*(f"x{i}" for i in range(X.shape[1])), "y"])
    ...     np.savetxt(path, np.column_stack([X, y]), delimiter=",", header=names, comments="")
    ...     result = stream(path, CBR(), target="y", window=1000)
    >>> result.n_rows, bool(result.history["auc"][-1] > 0.9)
    (5000, True)
    """
    measuring = checked_settings(path, checkpoint, every, on_bad_line, batch, window, max_fpr)
    reading = {"target": target, "positive": positive, "zero_based": zero_based, "fill_missing": fill_missing}
    source = open_rows(
        os.fspath(path),
        features=features,
        format=format,
        delimiter=delimiter,
        n_features=Learner(model).n_features if n_features is None else n_features,
        grows=checkpoint is not None if grows is None else bool(grows),
        **reading,
    )
    result = stream_from(source, model, reading | measuring, checkpoint, int(every), resume, tuple(trusted), verbose)
    if result.last_line_waits:
        logging.getLogger("toprank").warning("%s", last_line_waits(source.path))
    return result


def last_line_waits(path: str) -> Message:
    """The warning about a last line without its end."""
    return Message(
        "the last line of {path!r} has no end, so it may be cut off, and is left for the next run; if the file is "
        "complete, end the line, or pass {grows=False}",
        path=path,
    )


def stream_from(
    source: RowSource,
    model: Any,
    settings: dict[str, Any],
    checkpoint: str | os.PathLike[str] | None,
    every: int,
    resume: bool,
    trusted: tuple[type, ...],
    verbose: int,
    earlier: dict[str, Any] | None = None,
) -> StreamResult:
    """Learn from a source; `settings` are those arguments of `stream` that the result depends on.

    `earlier` is the content of the checkpoint, if it has been read.
    """
    model = copy.deepcopy(model)
    state = State(model, source.start(), found=FoundInStream(model) if isinstance(model, TableModel) else None)
    learner = _learner(state)
    learner.require_columns_of(source)
    metrics = Prequential(settings["window"], settings["max_fpr"])
    settings = settings | {"features": source.feature_names, "n_features": source.n_features}
    saved = None
    if checkpoint is not None:
        saved = Checkpoint(os.fspath(checkpoint), settings, fingerprint(learner.model, trusted), trusted)
    if saved is not None and resume and os.path.exists(saved.path):
        state, measured = saved.restored(earlier or content_of(saved.path, trusted), source)
        metrics.restore(measured)
        learner = _learner(state)
    run = _Run(source, learner, metrics, saved, state, settings["on_bad_line"] == "skip")
    with log.verbose(verbose):
        result = run.to_the_end(settings["batch"], every, verbose)
    if not source.unended:  # else there is more to come
        _warn_of_one_class(source.path, state, settings["positive"])
    return result


def _learner(state: State) -> Learner:
    return Learner(state.model) if state.found is None else TableLearner(state.model, state.found)


@dataclass
class _Run:
    """One call of `stream`."""

    source: RowSource
    learner: Learner
    metrics: Prequential
    checkpoint: Checkpoint | None
    state: State
    skips: bool
    whole: bool = True
    """Whether model, metrics and place belong together; not so while a batch is learned."""

    def to_the_end(self, batch: int, every: int, verbose: int) -> StreamResult:
        resumed_at = saved_at = self.state.n_rows
        parts = batches(self.source.blocks(self.state.place, stops=not self.skips), batch)
        with _interrupts() as interrupted, progress(verbose, self.source.size, self.state.place.position) as shown:
            self._save()  # a path that cannot be written is told at once
            try:
                for part in parts:
                    self._take(part)
                    shown.update(self.state.place.position, self.state.n_rows, self.metrics.last_auc)
                    if interrupted:
                        raise KeyboardInterrupt
                    if self.state.n_rows - saved_at >= every:
                        self._save()
                        saved_at = self.state.n_rows
            finally:
                if self.whole:
                    self._save()
        if interrupted:  # while the last state was saved
            raise KeyboardInterrupt
        state = self.state
        self.learner.keep_names(self.source.feature_names)
        history = self.metrics.history(state.n_rows)
        counts = state.n_rows, state.n_positives, state.n_bad
        return StreamResult(state.model, history, *counts, state.bad, resumed_at, self.source.unended, state.found)

    def _take(self, part: Batch) -> None:
        """Score a batch, learn from it, and move on; or stop before it."""
        if not part.bad or self.skips:
            part = self.learner.looked_at(part, self.source)
        if part.bad and not self.skips:
            raise stop_at(part.bad[0], self.source)
        self.whole = False
        if part.rows is not None:
            try:
                scores = self.learner.score_and_learn(part.rows)
            except Exception as error:
                first, last = part.rows.lines[[0, -1]]
                error.add_note(f"this happened in {self.source.unit}s {first} to {last} of {self.source.path!r}")
                raise
            if scores is not None:
                self.metrics.add(part.rows.y, scores, self.state.n_rows)
            self.state.count_rows(part.rows)
        self.state.count_bad(part.n_bad, part.bad)
        self.state.place = part.end
        self.source.passed(part.end.position)
        self.whole = True

    def _save(self) -> None:
        if self.checkpoint is not None and self.source.is_begun:
            self.checkpoint.write(self.state, self.metrics.state(), self.source)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """A list that gets an entry at Ctrl-C, so that no batch is left half learned; a second Ctrl-C stops at once."""
    received: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    if usual in (None, signal.SIG_IGN) or threading.current_thread() is not threading.main_thread():
        yield received
        return

    def note(number: int, frame: Any) -> None:
        received.append(number)
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, usual)


def _warn_of_one_class(path: str, state: State, positive: Any) -> None:
    """Say so if the whole file has rows of one class only, or none: perhaps the positive label is not the right one."""
    if 0 < state.n_positives < state.n_rows:
        return
    which = "positive" if state.n_positives == 0 else "negative"
    label = "1" if positive is None else repr(positive)
    text = Message(
        "{found}; a model learns to rank from both classes, so check the labels and {positive=}",
        found=f"none of the {state.n_rows:,} rows of {path!r} is {which}, with {label} as the positive label",
    )
    warnings.warn(text if state.n_rows else f"{path!r} has no rows, so nothing was learned", UserWarning, stacklevel=4)


def checked_settings(
    path: str | os.PathLike[str],
    checkpoint: str | os.PathLike[str] | None,
    every: Any,
    on_bad_line: Any,
    batch: Any,
    window: Any,
    max_fpr: Any,
) -> dict[str, Any]:
    """How a stream learns and measures, for `stream_from`, after a look at whether that can be."""
    if on_bad_line not in ("stop", "skip"):
        raise InputError.of("on_bad_line", on_bad_line, "must be 'stop' or 'skip'")
    for name, value in {"batch": batch, "window": window, "every": every}.items():
        require_count(name, value)
    if checkpoint is not None and same_file(path, checkpoint):
        raise InputError.saying(
            "{checkpoint=} is the file of the rows and would replace it; name another", checkpoint=os.fspath(checkpoint)
        )
    if not (isinstance(max_fpr, Real) and 0 <= float(max_fpr) <= 1):
        raise InputError.of("max_fpr", max_fpr, "must be in [0, 1]", "use a share such as 0.01")
    return {"on_bad_line": on_bad_line, "batch": int(batch), "window": int(window), "max_fpr": float(max_fpr)}
