"""What is not as in the rows that a model learned from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from toprank.files.source import Batch
from toprank.files.strays import Tally, changed_notes, stray_notes
from toprank.files.unseen import Unseen
from toprank.files.watching import Watcher


class FoundInRows:
    """What is not as in the rows that a model learned from: values that are no numbers, categories never seen."""

    def __init__(self, model: Any) -> None:
        self.strays = Tally()
        self.unseen = Unseen(model)

    def tell(self, watcher: Watcher) -> None:
        """Refuse a file whose columns are others; else note what was found."""
        self.strays.refuse_too_many()
        for note in (*stray_notes(self.strays.columns(), learns=False), *self.unseen.notes()):
            watcher.note(note)


class FoundInStream(FoundInRows):
    """The same of rows that are learned from one after the other; and how many values of each column are missing."""

    def __init__(self, model: Any, record: Mapping[str, Any] | None = None) -> None:
        super().__init__(model)
        self.missing: Counter[str] = Counter()
        if record is not None:
            self.strays.restore(record["numbers"])
            self.unseen.restore(record["unseen"])
            self.missing.update(record["missing"])

    def add(self, batch: Batch) -> None:
        """Look at rows."""
        self.strays.add(batch.n_known, batch.strays)
        self.unseen.add(batch.frame)
        for name in batch.frame.columns:
            column = batch.frame[name]
            is_number = name in batch.n_known
            self.missing[name] += int(np.isnan(column.to_numpy()).sum()) if is_number else column.null_count()

    def record(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {"numbers": self.strays.record(), "unseen": self.unseen.record(), "missing": dict(self.missing)}

    def tell_of_stream(self, watcher: Watcher, n_first: int) -> None:
        """Note what was found; the columns were chosen by so many first rows."""
        changed = self.strays.too_many()
        columns = self.strays.columns()
        few = {name: strays for name, strays in columns.items() if name not in changed}
        notes = (*stray_notes(few, learns=True), *changed_notes({name: columns[name] for name in changed}, n_first))
        for note in (*notes, *self.unseen.notes()):
            watcher.note(note)
