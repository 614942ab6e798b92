"""Differences between two lists of the same rows, with paired confidence limits.

Two scores of the same rows find mostly the same positives, so their shares are not independent, and the limits of each
alone say little about the difference. Which method serves depends on what is compared:

- Positives found at a budget (`found_differences`): a paired bootstrap. Positives and negatives are drawn separately,
  each row with both of its scores, and in each draw both thresholds are set anew, as they would be on other rows.
  Where few rows differ, a bootstrap knows nothing of what it has not seen and may even say "0 to 0", so its limits
  are never inside those of `given_limits`, which take both lists as they are cut.
- Areas (`area_half_width`): DeLong's variance of a difference, which needs no draws; for a part of the area with the
  influence of the negatives on where the part ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from toprank.checks import require_confidence
from toprank.ranking.tie_runs import ROUNDING, Floats

N_DRAWS = 1000
SEED = 0
# A draw reaches further down the list than the budget by at most so many standard deviations, and so many rows.
_DEVIATIONS, _ROWS = 8, 40
_STEPS = 60

Mask = NDArray[np.bool_]


class Budget(NamedTuple):
    """How far a list is taken: the k best rows, or down to a false positive rate."""

    kind: Literal["k", "max_fpr"]
    value: float


class Difference(NamedTuple):
    """What the first has more than the second, with the limits of the interval."""

    value: float
    lower: float
    upper: float

    def times(self, factor: float) -> Difference:
        """The same in another unit."""
        return Difference(*(factor * part for part in self))


@dataclass(frozen=True)
class _List:
    """Some rows in the order of their scores: their numbers, and where tie runs end."""

    order: NDArray[np.intp]
    ends: NDArray[np.intp]

    @classmethod
    def of(cls, scores: NDArray[Any]) -> _List:
        order = np.argsort(-scores, kind="stable")
        return cls(order, np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1))

    def found(self, positives: Floats, negatives: Floats, budgets: Sequence[Budget], n_negatives: int) -> Floats:
        """Positives found at each budget where the rows have these weights."""
        tp = np.cumsum(positives[self.order])[self.ends]
        fp = np.cumsum(negatives[self.order])[self.ends]
        rates = [budget.value for budget in budgets if budget.kind == "max_fpr"]
        allowed = np.asarray(rates) * n_negatives * (1 + ROUNDING)
        at_rates = iter(np.append(0.0, tp)[np.searchsorted(fp, allowed, side="right")])
        lengths = [budget.value for budget in budgets if budget.kind == "k"]
        at_lengths = iter(np.interp(lengths, np.append(0.0, tp + fp), np.append(0.0, tp)))
        return np.array([next(at_rates if budget.kind == "max_fpr" else at_lengths) for budget in budgets])


def found_differences(
    positive: Mask,
    first: NDArray[Any],
    second: NDArray[Any],
    budgets: Sequence[Budget],
    *,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = SEED,
) -> list[Difference]:
    """How many positives more the first scores find than the second, at each budget.

    Limits are the quantiles of a paired bootstrap within each class, widened to those of `given_limits`. They cover
    the difference that lists of as many other rows have on average, for each budget alone; the same seed gives the
    same limits. One draw costs O(rows down to the largest budget).

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([True, True, True, False, False, False, False, False])
    >>> ours = np.array([9.0, 8, 7, 6, 5, 4, 3, 2])
    >>> theirs = np.array([9.0, 3, 2, 8, 7, 6, 5, 4])
    >>> found_differences(y, ours, theirs, [Budget("k", 3)])[0].value
    2.0
    """
    require_confidence(confidence)
    m, n = int(positive.sum()), int((~positive).sum())
    taken = _within_reach(positive, (first, second), budgets)
    pair = [_List.of(scores[taken]) for scores in (first, second)]
    is_positive, is_negative = positive[taken].astype(np.float64), (~positive[taken]).astype(np.float64)
    found = [one.found(is_positive, is_negative, budgets, n) for one in pair]
    random = np.random.default_rng(seed)
    draws = np.empty((n_draws, len(budgets)))
    for draw in draws:
        weights = _drawn(positive[taken], m, n, random)
        drawn = [one.found(is_positive * weights, is_negative * weights, budgets, n) for one in pair]
        draw[:] = drawn[0] - drawn[1]
    tail = (1 - confidence) / 2
    quantiles = np.quantile(draws, [tail, 1 - tail], axis=0)
    differences = []
    for i, budget in enumerate(budgets):
        lower, upper = given_limits(positive, first, second, budget, confidence)
        value, low, high = float(found[0][i] - found[1][i]), float(quantiles[0, i]), float(quantiles[1, i])
        differences.append(Difference(value, min(lower, low), max(upper, high)))
    return differences


def _within_reach(positive: Mask, both: tuple[NDArray[Any], NDArray[Any]], budgets: Sequence[Budget]) -> Mask:
    """The rows that can be inside a budget in a draw, in either list."""
    lengths = [budget.value for budget in budgets if budget.kind == "k"]
    negatives = [budget.value * int((~positive).sum()) for budget in budgets if budget.kind == "max_fpr"]
    taken = np.zeros(len(positive), dtype=bool)
    for scores in both:
        for counts, rows in ((lengths, scores), (negatives, scores[~positive])):
            if not counts:
                continue
            depth = int(max(counts) + _DEVIATIONS * np.sqrt(max(counts) + 1) + _ROWS)
            taken |= True if depth >= len(rows) else scores >= np.partition(rows, len(rows) - depth)[len(rows) - depth]
    return taken


def _drawn(positive: Mask, m: int, n: int, random: np.random.Generator) -> Floats:
    """How often each of some rows is among m positives and n negatives drawn from all."""
    weights = np.zeros(len(positive))
    for rows, total in ((np.flatnonzero(positive), m), (np.flatnonzero(~positive), n)):
        if len(rows):
            inside = random.binomial(total, len(rows) / total)
            weights[rows] = np.bincount(random.integers(len(rows), size=inside), minlength=len(rows))
    return weights


def given_limits(
    positive: Mask, first: NDArray[Any], second: NDArray[Any], budget: Budget, confidence: float
) -> tuple[float, float]:
    """Limits of the difference of positives found where both lists are cut as they are.

    At a false positive rate the thresholds are given, and the positives are the chance: `paired_share_limits`. At a
    number of alerts the rows in the lists are given, and their labels are the chance: `independent_limits` of the
    rows that are in one list alone. Of a tie run that fits in part, expected numbers are taken.
    """
    a, b = (_held(positive, scores, budget) for scores in (first, second))
    only_first, only_second = float(np.sum(a * (1 - b))), float(np.sum(b * (1 - a)))
    if budget.kind == "k":
        return independent_limits(only_first, only_second, budget.value - float(a @ b), confidence)
    m = len(a)
    lower, upper = paired_share_limits(only_first, only_second, m, confidence)
    return m * lower, m * upper


def independent_limits(first: float, second: float, trials: float, confidence: float) -> tuple[float, float]:
    """Limits of the difference of two independent binomial counts of as many trials each (Newcombe, 1998, method 10).

    Wilson's limits of both shares are joined. For two lists of k rows the trials are the rows that are in one list
    alone; at most k less the positives in both, which is on the safe side where negatives are in both too.

    Examples
    --------
    >>> [round(limit, 1) for limit in independent_limits(56, 48, 70, 0.95)]
    [-2.2, 17.7]
    """
    require_confidence(confidence)
    if trials <= 0:
        return 0.0, 0.0
    z = float(ndtri(0.5 + confidence / 2))
    first, second = min(first, trials), min(second, trials)  # but for rounding
    (low_1, high_1), (low_2, high_2) = (_wilson(successes, trials, z) for successes in (first, second))
    down = np.hypot(first - low_1, high_2 - second)
    up = np.hypot(high_1 - first, second - low_2)
    return float(first - second - down), float(first - second + up)


def _wilson(successes: float, trials: float, z: float) -> tuple[float, float]:
    """Score limits of a binomial count."""
    middle = successes + z**2 / 2
    half = z * np.sqrt(successes * (trials - successes) / trials + z**2 / 4)
    share = trials / (trials + z**2)
    return float((middle - half) * share), float((middle + half) * share)


def _held(positive: Mask, scores: NDArray[Any], budget: Budget) -> Floats:
    """The share of each positive that is inside the budget."""
    if budget.kind == "k":
        lowest = np.partition(scores, len(scores) - int(budget.value))[len(scores) - int(budget.value)]
        above, tied = int(np.sum(scores > lowest)), int(np.sum(scores == lowest))
        part = (budget.value - above) / tied
        return np.where(scores[positive] > lowest, 1.0, np.where(scores[positive] == lowest, part, 0.0))
    negatives = np.sort(scores[~positive])[::-1]
    allowed = int(budget.value * len(negatives) * (1 + ROUNDING))
    threshold = negatives[allowed] if allowed < len(negatives) else -np.inf
    return (scores[positive] > threshold).astype(np.float64)


def paired_share_limits(only_first: float, only_second: float, trials: float, confidence: float) -> tuple[float, float]:
    r"""Score limits of the difference of two shares of the same rows (Tango, 1998).

    Of the trials, `only_first` and `only_second` are successes of one side alone, b and c. The limits are the
    differences δ at which

    .. math:: (b - c - n \delta) \big/ \sqrt{n (2 \hat q + \delta (1 - \delta))} = \pm z,

    where :math:`\hat q` is the likeliest share of successes of the second alone if the difference is δ. They do not
    shrink to a point where no row differs: 0 of n gives :math:`\pm z^2 / (n + z^2)`.

    Examples
    --------
    >>> [round(limit, 3) for limit in paired_share_limits(12, 3, 100, 0.95)]
    [0.016, 0.174]
    """
    require_confidence(confidence)
    z = float(ndtri(0.5 + confidence / 2))
    estimate = (only_first - only_second) / trials

    def statistic(delta: float) -> float:
        linear = (2 * trials - only_first + only_second) * delta - only_first - only_second
        constant = -only_second * delta * (1 - delta)
        q = (np.sqrt(max(linear**2 - 8 * trials * constant, 0.0)) - linear) / (4 * trials)
        variance = trials * (2 * q + delta * (1 - delta))
        distance = only_first - only_second - trials * delta
        return float(distance / np.sqrt(variance)) if variance > 0 else float(np.copysign(np.inf, distance))

    return _crossing(statistic, z, -1.0, estimate), _crossing(statistic, -z, estimate, 1.0)


def _crossing(falling: Any, level: float, low: float, high: float) -> float:
    """Where a falling function crosses a level; an end if it does not."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if falling(middle) > level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def area_half_width(
    positive: Mask, first: NDArray[Any], second: NDArray[Any], *, max_fpr: float = 1.0, confidence: float = 0.95
) -> float:
    r"""Half the width of the paired interval of the difference of two areas under the ROC curve.

    .. math:: z \sqrt{\mathrm{var}(V_1 - V_2) / m + \mathrm{var}(U_1 - U_2) / n}

    with a component V for each positive and U for each negative (DeLong, DeLong and Clarke-Pearson, 1988). For the area
    left of a false positive rate u, standardised as `partial_auc_score`, V = max(0, u − share of negatives above), and
    U is the share of positives above the negative less that above the threshold of u, where the negative is above it;
    nan with fewer than two rows of a class.
    """
    require_confidence(confidence)
    m, n = int(positive.sum()), int((~positive).sum())
    if min(m, n) < 2:
        return np.nan
    (v1, u1), (v2, u2) = (_components(scores[positive], scores[~positive], max_fpr) for scores in (first, second))
    variance = float(np.var(v1 - v2, ddof=1) / m + np.var(u1 - u2, ddof=1) / n)
    return float(ndtri(0.5 + confidence / 2) * np.sqrt(variance)) / (2 * max_fpr - max_fpr**2)


def _components(positives: NDArray[Any], negatives: NDArray[Any], max_fpr: float) -> tuple[Floats, Floats]:
    up, down = np.sort(positives), np.sort(negatives)
    above_positive = _share_above(down, positives)
    above_negative = _share_above(up, negatives)
    last = len(down) - 1 - int(max_fpr * len(down) * (1 + ROUNDING))
    if last < 0:
        return np.maximum(0.0, max_fpr - above_positive), above_negative
    threshold = down[last]
    at_end = float(_share_above(up, threshold[None])[0])
    return np.maximum(0.0, max_fpr - above_positive), np.where(negatives > threshold, above_negative - at_end, 0.0)


def _share_above(rising: NDArray[Any], values: NDArray[Any]) -> Floats:
    """The share of sorted scores above each value, equal ones half."""
    below = (np.searchsorted(rising, values, side="left") + np.searchsorted(rising, values, side="right")) / 2
    return np.asarray(1 - below / len(rising))
