"""How the threshold of a model is chosen: a bound on false alarms, a share of the rows, or alerts a day."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from toprank.checks import require_confidence, require_positive, require_share
from toprank.exceptions import InputError, Parameter
from toprank.files.errors import TableError
from toprank.files.periods import Per, Periods, check_per, per_words
from toprank.files.times import Times

# The share of the rows to learn from that sets the threshold for a share of all rows, or in the order of time.
_CALIBRATION = 0.25


@dataclass(frozen=True)
class AlertRule:
    """At most one of `max_fpr`, `share` and `budget`, which are checked; none leaves the threshold of the method."""

    max_fpr: float | None = None
    confidence: float = 0.95
    share: float | None = None
    budget: float | None = None
    per: Per | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("max_fpr", "share", "budget") if getattr(self, name) is not None]
        if len(given) > 1:
            first, second = (Parameter(name, f"{name}={getattr(self, name)!r}", str(getattr(self, name)))
                             for name in given[:2])  # fmt: skip
            raise InputError.saying(
                "one rule sets the threshold, and there are {first} and {second}; keep one", first=first, second=second
            )
        require_confidence(self.confidence)
        for name in ("max_fpr", "share"):
            if getattr(self, name) is not None:
                require_share(name, getattr(self, name))
        if self.per is not None:
            object.__setattr__(self, "per", check_per(self.per))
        if self.budget is not None:
            require_positive("budget", self.budget, "give a number of alerts, such as 200")
            if self.per is None:
                raise InputError.saying(
                    "{budget=} alerts, and not in which time; say it by {per='day'}", budget=self.budget
                )

    def require_times(self, time: str | None, in_order: bool) -> None:
        """Refuse a period of rows whose times are not known."""
        if self.per is not None and time is None and not (in_order and not isinstance(self.per, str)):
            raise InputError.saying("{per=} needs the time of each row; name its column by {time=}", per=self.per)

    def around(self, model: Any, times: Times | None, n_negatives: int, seed: int) -> Any:
        """A model with a classifier around it that keeps the rule; of rows in the order of time the latest set it."""
        from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier, negatives_needed

        how: dict[str, Any] = {"shuffle": times is None, "random_state": seed}
        if self.max_fpr is not None:
            # the latest quarter is more like what comes than the latest half
            enough = _CALIBRATION * n_negatives >= negatives_needed(self.max_fpr, self.confidence)
            cv = _CALIBRATION if times is not None and enough else 0.5
            return NeymanPearsonClassifier(model, max_fpr=self.max_fpr, confidence=self.confidence, cv=cv, **how)
        share = self.share_of_rows(times)
        return model if share is None else AlertShareClassifier(model, share, holdout=_CALIBRATION, **how)

    def share_of_rows(self, times: Times | None) -> float | None:
        """The share of all rows that shall be alerts, of a budget by how many rows the latest periods have, if any."""
        if self.budget is None or self.per is None or times is None:
            return self.share
        per_period = rows_per_period(times, self.per)
        if self.budget >= per_period:
            raise TableError.saying(
                "{budget=} alerts {per} are no choice, as {found}; give a smaller budget",
                budget=self.budget,
                per=per_words(self.per),
                found=f"there are {per_period:,.0f} rows {per_words(self.per)}",
            )
        return float(self.budget / per_period)

    def record(self, times: Times | None) -> dict[str, Any]:
        """What is asked for, in plain data; `times` are those of the rows to learn from, in order."""
        record = {"share": self.share, "budget": self.budget, "per": self.per, "latest": times is not None}
        if self.budget is not None and times is not None and self.per is not None:
            record["rows_per_period"] = rows_per_period(times, self.per)
        return record


def rows_per_period(times: Times, per: Per) -> float:
    """Rows a period among those that set the threshold, the latest of rows in the order of time."""
    n_latest = ceil(_CALIBRATION * len(times.values))
    latest = times[np.arange(len(times.values) - n_latest, len(times.values))]
    return n_latest / Periods.of(latest, per).number
