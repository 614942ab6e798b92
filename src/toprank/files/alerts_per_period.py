"""How many alerts an hour, a day, a week or a month brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from toprank.files.periods import Per, Periods
from toprank.files.times import Times


@dataclass(frozen=True)
class AlertsPerPeriod:
    """How many alerts there are an hour, a day, a week or a month; each period by its start, in the unit of the times.

    Attributes
    ----------
    per : str or float
        The period.
    mean : float
        Alerts a period, over all rows.
    periods : float
        How many periods the rows reach over.
    starts : list of float
        The periods with rows.
    alerts, caught, rows : list of int
        Alerts, positives among them, and all rows of each.
    whole : list of bool
        Whether the rows reach over the whole period.
    """

    per: Per
    mean: float
    periods: float
    starts: list[float]
    alerts: list[int]
    caught: list[int]
    rows: list[int]
    whole: list[bool]

    @classmethod
    def of(cls, times: Times, per: Per, y: NDArray[np.int64], above: NDArray[np.bool_]) -> Self:
        """Count alerts, which are the rows above the threshold."""
        found = Periods.of(times, per)
        return cls(
            per,
            mean=float(above.sum() / found.number),
            periods=float(found.number),
            starts=found.starts.tolist(),
            alerts=found.counts(above),
            caught=found.counts(above & (y == 1)),
            rows=found.counts(np.ones(len(y), dtype=bool)),
            whole=found.whole.tolist(),
        )

    @property
    def spread(self) -> tuple[int, float, int] | None:
        """Smallest, median and largest number of alerts of a whole period; None where fewer than two are whole."""
        counts = [count for count, whole in zip(self.alerts, self.whole, strict=True) if whole]
        return (min(counts), float(np.median(counts)), max(counts)) if len(counts) > 1 else None

    def record(self) -> dict[str, Any]:
        """Plain data, without the single periods."""
        names = ("smallest", "median", "largest")
        spread = {} if self.spread is None else dict(zip(names, self.spread, strict=True))
        return {
            "per": self.per,
            "mean": self.mean,
            "periods": self.periods,
            "rows": sum(self.rows) / self.periods,
            "caught": sum(self.caught) / self.periods,
            "whole_periods": sum(self.whole),
            **spread,
        }
