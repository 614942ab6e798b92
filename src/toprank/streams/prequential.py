"""Test, then train: how well the scores given before learning rank, window by window."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.metrics import tpr_at_fpr, wmw_score

COLUMNS = ("rows", "auc", "tpr_at_fpr", "positives")


class Prequential:
    """Metrics of consecutive windows of so many scored rows; `max_fpr` is the budget of the true positive rate."""

    def __init__(self, window: int, max_fpr: float) -> None:
        self.window = window
        self.max_fpr = max_fpr
        self._scores = np.empty(window)
        self._labels = np.empty(window, np.int64)
        self._filled = 0
        self._history: list[tuple[float, ...]] = []

    def add(self, labels: NDArray[np.int64], scores: NDArray[Any], n_before: int) -> None:
        """Add rows in their order; before them, the stream had `n_before` rows, scored or not."""
        start = 0
        while start < len(labels):
            stop = min(len(labels), start + self.window - self._filled)
            place = slice(self._filled, self._filled + stop - start)
            self._labels[place], self._scores[place] = labels[start:stop], scores[start:stop]
            self._filled, start = place.stop, stop
            if self._filled == self.window:
                self._history.append(self._measured(n_before + stop))
                self._filled = 0

    def _measured(self, n_rows: int) -> tuple[float, ...]:
        labels, scores = self._labels[: self._filled], self._scores[: self._filled]
        positives = int(labels.sum())
        if not 0 < positives < len(labels):
            return n_rows, np.nan, np.nan, positives
        return n_rows, wmw_score(labels, scores), tpr_at_fpr(labels, scores, max_fpr=self.max_fpr), positives

    @property
    def last_auc(self) -> float:
        """The area under the curve of the last whole window; nan before it."""
        return self._history[-1][1] if self._history else np.nan

    def history(self, n_rows: int) -> dict[str, NDArray[Any]]:
        """One entry a window; the last may be a part of one, of the rows since the last whole window."""
        entries = [*self._history, self._measured(n_rows)] if self._filled else self._history
        table = np.array(entries, dtype=np.float64).reshape(-1, len(COLUMNS))
        whole = ("rows", "positives")
        return {name: table[:, i].astype(np.int64 if name in whole else float) for i, name in enumerate(COLUMNS)}

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {
            "history": np.array(self._history, dtype=np.float64).reshape(-1, len(COLUMNS)),
            "scores": self._scores[: self._filled].copy(),
            "labels": self._labels[: self._filled].copy(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self._history = [tuple(row) for row in state["history"].tolist()]
        self._filled = len(state["scores"])
        self._scores[: self._filled], self._labels[: self._filled] = state["scores"], state["labels"]
