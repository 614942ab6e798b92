"""Measures of the top of a list with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toprank.exceptions import InputError
from toprank.files.alerts_per_period import AlertsPerPeriod
from toprank.files.periods import Per
from toprank.files.times import Times
from toprank.ranking.drift import ScoreDrift, ScoreSample
from toprank.ranking.paired import Budget, area_half_width, found_differences


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
    per_period: AlertsPerPeriod | None = None
    drift: ScoreDrift | None = None

    @property
    def fpr(self) -> float:
        """The share of the negatives above the threshold."""
        return (self.alerts - self.caught) / (self.rows - self.positives)

    def surprise_at(self, rate: float) -> float:
        """The probability of so many false alarms or more if their rate is this one."""
        from scipy.stats import binom

        return float(binom.sf(self.alerts - self.caught - 1, self.rows - self.positives, rate))

    def record(self) -> dict[str, Any]:
        """For machines."""
        record = {one.name: getattr(self, one.name) for one in fields(self)}
        values = [asdict(one) for one in record.pop("values")]
        for name in ("per_period", "drift"):
            record[name] = None if record[name] is None else record[name].record()
        return {**record, "false_alarms": self.alerts - self.caught, "measures": values}


@dataclass(frozen=True)
class About:
    """What is known of rows beside their labels: the time and the amount of each, if there are any.

    Alerts are counted for each period of `per`; `before` are the scores of negatives of the fit.
    """

    times: Times | None = None
    per: Per | None = None
    amounts: NDArray[np.float64] | None = None
    before: ScoreSample | None = None


@dataclass(frozen=True)
class ScoreMeasures:
    """What the scores of several columns are worth on the same rows.

    `differences` has, for each column but the first, by how much the measures of the first are larger, with paired
    limits.
    """

    rows: int
    positives: int
    confidence: float
    columns: dict[str, list[Measure]]
    differences: dict[str, list[Measure]]

    def record(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


class _Counted(NamedTuple):
    """A measure that counts the positives found at a budget, as a share of the trials."""

    name: str
    title: str
    budget: Budget
    trials: int


AUC = ("auc", "area under the ROC curve")


def measure(
    y: NDArray[np.int64],
    scores: NDArray[np.float64],
    *,
    ks: Sequence[int] = (10, 100),
    rates: Sequence[float] = (0.01, 0.05),
    confidence: float = 0.95,
    about: About | None = None,
) -> Measures:
    """Measure scores of rows with labels 0 and 1; above zero means positive.

    Shares of counted rows have the exact limits of Clopper and Pearson, with the negatives as they are; the area under
    the curve has the approximate limits of DeLong. They are those of the report page. Of the list's lengths `ks`, those
    longer than the table are left out. An amount has no interval: the largest few decide on it.
    """
    about, counted = about or About(), _counted(y, ks, rates)
    above = scores > 0
    caught, alerts, positives = int(y[above].sum()), int(above.sum()), int(y.sum())
    values = [
        _share("precision", "precision of the alerts", caught, alerts, confidence),
        _share("tpr", "positives caught", caught, positives, confidence),
        _share("fpr", "false positive rate", alerts - caught, len(y) - positives, confidence),
        *_at_the_top(y, scores, counted, confidence),
    ]
    if about.amounts is not None:
        values += _amounts(y, scores, about.amounts, counted)
    per_period = None
    if about.times is not None and about.per is not None:
        per_period = AlertsPerPeriod.of(about.times, about.per, y, above)
    drift = None if about.before is None else ScoreDrift.of(about.before, scores[y == 0])
    return Measures(len(y), positives, alerts, caught, confidence, values, per_period, drift)


def _amounts(
    y: NDArray[np.int64], scores: NDArray[np.float64], amounts: NDArray[np.float64], counted: Sequence[_Counted]
) -> list[Measure]:
    """The share of the amount of the positives that is found above the threshold and at the budgets.

    Of rows of one score at the end of a list it is the part that is expected.
    """
    from toprank.ranking.ranked_list import RankedList

    ranked: Any = RankedList.from_predictions(y, scores)
    amounts = np.where(y == 1, amounts, 0.0)
    total = float(amounts.sum()) or np.nan
    values = [Measure("amount", "amount of positives caught", float(amounts[scores > 0].sum()) / total, np.nan, np.nan)]
    for one in counted:
        point = ranked.operating_point(**{one.budget.kind: one.budget.value})
        above, tied = scores > point.threshold, scores == point.threshold
        found = float(amounts[above].sum())
        if one.budget.kind == "k":
            found += float(amounts[tied].sum()) * (point.value - int(above.sum())) / max(int(tied.sum()), 1)
        at = f"among the best {one.trials}" if one.budget.kind == "k" else one.title.removeprefix("positives ")
        title = f"amount {at}" if at.startswith("caught") else f"amount caught {at}"
        values.append(Measure(f"amount_{one.name.partition('_')[2]}", title, found / total, np.nan, np.nan))
    return values


def measure_scores(
    y: NDArray[np.int64],
    scores: Mapping[str, NDArray[np.float64]],
    *,
    ks: Sequence[int] = (10, 100),
    rates: Sequence[float] = (0.01, 0.05),
    confidence: float = 0.95,
) -> ScoreMeasures:
    """Measure columns of scores, which have no threshold, and compare the first with each other one.

    Limits are those of `measure`; those of differences are explained in `toprank.ranking.paired`.
    """
    counted = _counted(y, ks, rates)
    columns = {name: _at_the_top(y, one, counted, confidence) for name, one in scores.items()}
    (first, mine), *others = scores.items()
    differences = {
        name: _differences(y == 1, mine, other, counted, columns[first], columns[name], confidence)
        for name, other in others
    }
    return ScoreMeasures(len(y), int(y.sum()), confidence, columns, differences)


def require_lengths(k: Sequence[int] | None, n_rows: int) -> None:
    """Check that no list is longer than the table."""
    for length in k or ():
        if length > n_rows:
            raise InputError.of("k", length, "must not be more than the {n} rows", "use a smaller number", n=n_rows)


def _counted(y: NDArray[np.int64], ks: Sequence[int], rates: Sequence[float]) -> list[_Counted]:
    positives = int(y.sum())
    found = [_Counted(f"precision_at_{k}", f"precision of the best {k}", Budget("k", k), k) for k in ks if k <= len(y)]
    for rate in (0.0, *rates):
        name = f"tpr_at_fpr_{rate:g}" if rate else "positives_at_top"
        title = (
            f"positives caught at {100 * rate:g} % false positives" if rate else "positives above the first negative"
        )
        found.append(_Counted(name, title, Budget("max_fpr", rate), positives))
    return found


def _at_the_top(
    y: NDArray[np.int64], scores: NDArray[np.float64], counted: Sequence[_Counted], confidence: float
) -> list[Measure]:
    from toprank.metrics import wmw_score
    from toprank.ranking.intervals import delong
    from toprank.ranking.ranked_list import RankedList

    ranked: Any = RankedList.from_predictions(y, scores)
    values = []
    for one in counted:
        found = ranked.operating_point(**{one.budget.kind: one.budget.value}).true_positives
        values.append(_share(one.name, one.title, found, one.trials, confidence))
    return [*values, Measure(*AUC, wmw_score(y, scores), *delong(ranked, confidence))]


def _differences(
    positive: NDArray[np.bool_],
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    counted: Sequence[_Counted],
    of_first: Sequence[Measure],
    of_second: Sequence[Measure],
    confidence: float,
) -> list[Measure]:
    budgets = [one.budget for one in counted]
    found = found_differences(positive, first, second, budgets, confidence=confidence)
    shares = [
        Measure(one.name, one.title, *difference.times(1 / one.trials))
        for one, difference in zip(counted, found, strict=True)
    ]
    area = of_first[-1].value - of_second[-1].value
    half = area_half_width(positive, first, second, confidence=confidence)
    return [*shares, Measure(*AUC, area, area - half, area + half)]


def _share(name: str, title: str, successes: float, trials: int, confidence: float) -> Measure:
    from toprank.ranking.intervals import share_limits

    if not trials:
        return Measure(name, title, np.nan, np.nan, np.nan)
    return Measure(name, title, float(successes / trials), *share_limits(successes, trials, confidence))
