"""A model that knows its columns on its way through a stream of rows of a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from toprank.exceptions import Message
from toprank.files._lines import IS_MISSING
from toprank.files.columns import CATEGORY, LARGEST, with_missing_category
from toprank.files.found_in_rows import FoundInStream
from toprank.files.rows import MOST_BAD_LINES, BadLine, Batch, Rows, RowSource
from toprank.files.source import TEXT, batch_of
from toprank.files.source import Batch as TableBatch
from toprank.files.spelling import Spelling
from toprank.files.table_rows import places
from toprank.files.text import number_reason
from toprank.streams.learner import Learner


class TableLearner(Learner):
    """A `TableModel`, and what was found in its rows so far that is not as in the first ones."""

    def __init__(self, model: Any, found: FoundInStream) -> None:
        super().__init__(model.estimator_)
        self.model = model
        self.found = found
        self._kinds = {name: TEXT if kind == CATEGORY else kind for name, kind in model.columns.items()}
        self._spelling = Spelling.of_model(model.reading)
        # models of earlier versions may have no step that fills gaps
        steps = getattr(model.estimator_, "steps", [])
        self._takes_gaps = any(name in ("columns", "fill") for name, _ in steps)

    def require_columns_of(self, source: RowSource) -> None:
        """Nothing: columns are chosen by their names."""

    def keep_names(self, names: list[str] | None) -> None:
        """Nothing: the table knows them."""

    def looked_at(self, part: Batch, source: RowSource) -> Batch:
        """The rows as the steps of the model take them; those with numbers that are too large are bad."""
        if part.rows is None:
            return part
        rows, bad, n_bad = part.rows, part.bad, part.n_bad
        table = self._read(rows, source.unit)
        wrong = self._wrong(table, len(rows))
        if wrong:
            new = [BadLine(int(rows.lines[row]), reason) for row, reason in list(wrong.items())[:MOST_BAD_LINES]]
            bad, n_bad = sorted([*bad, *new])[:MOST_BAD_LINES], n_bad + len(wrong)
            rows = rows.without(np.isin(np.arange(len(rows)), list(wrong)))
            if not len(rows):
                return Batch(None, bad, n_bad, part.end)
            table = self._read(rows, source.unit)
        self._table = table
        frame = with_missing_category(table.frame, self.model.columns)
        return Batch(replace(rows, X=frame.to_numpy() if self.model.as_array else frame), bad, n_bad, part.end)

    def score_and_learn(self, rows: Rows) -> Any:
        """Scores before learning, None if nothing was learned before; what was looked at before counts now."""
        self.found.add(self._table)
        return super().score_and_learn(rows)

    def _read(self, rows: Rows, unit: str) -> TableBatch:
        frame = rows.X.select(list(self._kinds))
        return batch_of(frame, self._kinds, self._spelling, places(rows, unit), 0, 0)

    def _wrong(self, table: TableBatch, n_rows: int) -> dict[int, str]:
        """Rows that cannot be learned from, in their order, and why."""
        reasons: dict[int, str] = {}
        for name in table.n_known:
            values = table.frame[name].to_numpy()
            for row in np.flatnonzero(np.abs(np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)) > LARGEST):
                how = "is not finite" if np.isinf(values[row]) else "is too large"
                reasons.setdefault(int(row), f"column {name!r} has {values[row]:g}, which {how}")
            for row in [] if self._takes_gaps else np.flatnonzero(np.isnan(values)):
                reasons.setdefault(int(row), number_reason(IS_MISSING, f"column {name!r}", "", Message("")))
        return dict(sorted(reasons.items()))
