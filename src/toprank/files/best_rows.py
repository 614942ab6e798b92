"""The best rows of a file that is scored in parts: of all of them, or of each day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from toprank.arrays import Rows
from toprank.checks import require_count
from toprank.exceptions import InputError
from toprank.files.alert_rule import AlertRule
from toprank.files.periods import Per, Periods
from toprank.files.source import VERBATIM, require_columns
from toprank.files.spelling import polars
from toprank.files.times import Times
from toprank.files.watching import Watcher

# Where a table holds the period of each row; no column of a file has this name.
_PERIOD = "\0period"


class Best:
    """The best rows of those that were added, so many, best first, and the first ones among equals."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.frame: Any = None

    def add(self, frame: Any) -> None:
        """Add rows that come after all others; they have a column "score"."""
        pl = polars()
        if self.frame is not None and len(self.frame) == self.count:
            least = self.frame["score"][-1] if self.count else np.inf
            frame = frame.filter(pl.col("score") > least)
        both = frame if self.frame is None else pl.concat([self.frame, frame])
        self.frame = both.sort("score", descending=True, maintain_order=True).head(self.count)


class BestOfPeriods:
    """The best rows of each period, so many, period by period, best first; rows of no period are left out.

    `periods` are those of all rows in their order, -1 for none.
    """

    def __init__(self, count: int, periods: Rows) -> None:
        self.count = count
        self.periods = periods
        self._seen = 0
        self._kept: Any = None

    def add(self, frame: Any) -> None:
        """Add rows that come after all others; they have a column "score"."""
        pl = polars()
        periods = self.periods[self._seen : self._seen + len(frame)]
        self._seen += len(frame)
        frame = frame.with_columns(pl.Series(_PERIOD, periods)).filter(pl.col(_PERIOD) >= 0)
        both = frame if self._kept is None else pl.concat([self._kept, frame])
        ordered = both.sort(_PERIOD, "score", descending=[False, True], maintain_order=True)
        self._kept = ordered.filter(pl.int_range(pl.len()).over(_PERIOD) < self.count)

    @property
    def frame(self) -> Any:
        """The rows that are kept."""
        return self._kept.drop(_PERIOD)


@dataclass(frozen=True)
class PeriodBudget:
    """So many rows of each period, by a column of times."""

    count: int
    per: Per
    time: str

    @classmethod
    def of(cls, model: Any, budget: int | None, per: Any, time: str | None, top: Any, share: Any) -> Self | None:
        """What is asked for, with what the model knows where it is not said; None without a budget."""
        if budget is None:
            if per is not None or time is not None:
                raise InputError.saying(
                    "{per} and {time} are for so many rows of each period; say how many by {budget=200}, or leave them "
                    "out"
                )
            return None
        require_count("budget", budget)
        if top is not None or share is not None:
            raise InputError.saying(
                "{budget} counts rows of each period, {top} and {share} those of all; keep one of them"
            )
        rule = AlertRule(budget=budget, per=model.summary_.get("threshold", {}).get("per") if per is None else per)
        time = model.time if time is None else time
        rule.require_times(time, in_order=False)
        assert rule.per is not None
        assert time is not None
        return cls(int(budget), rule.per, time)

    def best(self, source: Any, watcher: Watcher) -> BestOfPeriods:
        """What keeps the rows of a table; their times are read first, all of them."""
        require_columns(source, [self.time], "name another one for the times")
        texts = [batch.frame[self.time] for batch in source.batches({self.time: VERBATIM})]
        if not texts:
            return BestOfPeriods(self.count, np.zeros(0, dtype=np.intp))
        times = Times.of(polars().concat(texts))
        known, codes = times.known, np.full(len(times.values), -1, dtype=np.intp)
        codes[known] = Periods.of(times[known], self.per).codes
        if not known.all():
            watcher.note(f"{int((~known).sum())} rows without a time in {self.time!r} are left out")
        return BestOfPeriods(self.count, codes)
