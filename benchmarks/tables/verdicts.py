"""Ours beside a published value: within two standard errors, better, worse, or not comparable."""

from typing import NamedTuple

import numpy as np
from benchmarks.tables.design import Measure, Published, Results, Table

SAME, BETTER, WORSE, OTHER, APART = "=", "▲", "▼", "≠", "≁"
LEGEND = (
    f"Ours ± standard deviation over trials, the published value in brackets, and a verdict: {SAME} both agree within "
    f"two standard errors of the difference, {BETTER} ours is better, {WORSE} ours is worse, {OTHER} they differ and "
    f"none is better, {APART} not comparable, as said below the table. Trials of one set share rows, so a standard "
    "error is rather too small than too large; "
    "of a single trial the published deviation is taken."
)


class Entry(NamedTuple):
    """A place in a table: ours over trials, what was published, and the verdict."""

    mean: float | None
    deviation: float | None
    n_trials: int
    published: Published | None
    verdict: str

    def text(self, form: str) -> str:
        """As it is written in a table."""
        if self.mean is None:
            ours = "–"
        else:
            ours = format(self.mean, form) + (f" ± {self.deviation:{form}}" if self.deviation is not None else "")
        if self.published is None:
            return ours
        theirs = format(self.published.mean, form)
        if self.published.deviation is not None:
            theirs += f" ± {self.published.deviation:{form}}"
        return f"{ours} ({theirs}) {self.verdict}".strip()


def verdict(values, published: Published | None, n_published: int, higher_is_better: bool | None) -> str:
    """The mark that compares the mean of our trials with a published mean."""
    if published is None or not len(values):
        return ""
    theirs = published.deviation
    own = float(np.std(values, ddof=1)) if len(values) > 1 else theirs or 0.0
    error = np.hypot(own / np.sqrt(len(values)), (own if theirs is None else theirs) / np.sqrt(n_published))
    difference = float(np.mean(values)) - published.mean
    if abs(difference) <= 2 * error + 0.5e-3:  # printed to three digits
        return SAME
    if higher_is_better is None:
        return OTHER
    return BETTER if (difference > 0) == higher_is_better else WORSE


def entry(table: Table, results: Results, name: str, method: str, measure: Measure) -> Entry:
    """One place of a table; a measure may be shown as a ratio to that of a method."""
    values = table.values(results, name, method, measure.key)
    published = table.published.get((name, method, measure.key))
    if measure.ratio_to is not None:
        unit = table.values(results, name, measure.ratio_to, measure.key)
        values = [float(np.mean(values) / np.mean(unit))] if values and unit else []
        theirs = table.published.get((name, measure.ratio_to, measure.key))
        published = Published(published.mean / theirs.mean) if published and theirs else None
        mark = ""
    elif name in table.apart or method in table.apart:
        mark = APART if published else ""
    else:
        mark = verdict(values, published, table.published_trials, measure.higher_is_better)
    mean = float(np.mean(values)) if values else None
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Entry(mean, deviation, len(values), published, mark if values else "")
