"""How often values occur, in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

MOST_VALUES = 1000
_LONGEST = 200


class ValueCounts:
    """Counts of the first thousand different values, by their first characters, and of all others together."""

    def __init__(self, counts: Mapping[str, int] | None = None, n_other: int = 0) -> None:
        self.counts: Counter[str] = Counter(dict(counts or {}))
        self.n_other = n_other

    def add(self, new: Mapping[str, int] | Iterable[str]) -> None:
        """Count more values."""
        for value, count in Counter(new).items():
            short = value[:_LONGEST]
            if short in self.counts or len(self.counts) < MOST_VALUES:
                self.counts[short] += count
            else:
                self.n_other += count

    def record(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {"counts": dict(self.counts), "n_other": self.n_other}
