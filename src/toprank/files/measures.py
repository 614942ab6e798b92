"""Measures of the top of a list with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Measure:
    """An estimate with a name for machines, a title for people, and the limits of its interval, which may be nan."""

    name: str
    title: str
    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Measures:
    """What scores are worth on rows with labels."""

    rows: int
    positives: int
    alerts: int
    caught: int
    confidence: float
    values: list[Measure]

    def record(self) -> dict[str, Any]:
        """For machines."""
        record = asdict(self)
        values = record.pop("values")
        return {**record, "false_alarms": self.alerts - self.caught, "measures": values}


def measure(
    y: NDArray[np.int64],
    scores: NDArray[np.float64],
    *,
    ks: Sequence[int] = (10, 100),
    rates: Sequence[float] = (0.01, 0.05),
    confidence: float = 0.95,
) -> Measures:
    """Measure scores of rows with labels 0 and 1; above zero means positive.

    Shares of counted rows have the exact limits of Clopper and Pearson, with the negatives as they are; the area under
    the curve has the approximate limits of DeLong. They are those of the report page. Of the list's lengths `ks`, those
    longer than the table are left out.
    """
    from toprank.metrics import wmw_score
    from toprank.ranking.intervals import delong
    from toprank.ranking.ranked_list import RankedList

    above = scores > 0
    caught, alerts, positives = int(y[above].sum()), int(above.sum()), int(y.sum())
    ranked: Any = RankedList.from_predictions(y, scores)
    values = [
        _share("precision", "precision of the alerts", caught, alerts, confidence),
        _share("tpr", "positives caught", caught, positives, confidence),
        _share("fpr", "false positive rate", alerts - caught, len(y) - positives, confidence),
    ]
    for k in ks:
        if k <= len(y):
            found = ranked.operating_point(k=k).true_positives
            values.append(_share(f"precision_at_{k}", f"precision of the best {k}", found, k, confidence))
    for rate in (0.0, *rates):
        found = ranked.operating_point(max_fpr=rate).true_positives
        name = f"tpr_at_fpr_{rate:g}" if rate else "positives_at_top"
        title = (
            f"positives caught at {100 * rate:g} % false positives" if rate else "positives above the first negative"
        )
        values.append(_share(name, title, found, positives, confidence))
    lower, upper = delong(ranked, confidence)
    values.append(Measure("auc", "area under the ROC curve", wmw_score(y, scores), lower, upper))
    return Measures(len(y), positives, alerts, caught, confidence, values)


def _share(name: str, title: str, successes: float, trials: int, confidence: float) -> Measure:
    from toprank.ranking.intervals import share_limits

    if not trials:
        return Measure(name, title, np.nan, np.nan, np.nan)
    return Measure(name, title, float(successes / trials), *share_limits(successes, trials, confidence))
