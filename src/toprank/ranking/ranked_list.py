"""A ranked list, the points at which it may be cut, and what is found there. No matplotlib is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.exceptions import InputError
from toprank.ranking.tie_runs import ROUNDING, Floats, TieRuns, as_rows, check_share, tie_runs, without


@dataclass(frozen=True)
class OperatingPoint:
    """What a rule takes from a list: the weight of positives and negatives that become alerts, and that of all.

    `kind` is the rule and `value` its parameter. Rows with a score above `threshold` are alerts; those equal to it are
    not, but where k alerts end inside a tie run, its score is the threshold and a random part of its rows are alerts.

    Examples
    --------
    >>> from toprank.plots import RankedList
    >>> ranked = RankedList.from_predictions([1, 0, 1, 0, 0], [0.9, 0.7, 0.6, 0.5, 0.1])
    >>> point = ranked.operating_point(max_fpr=0.4)
    >>> point.rule, point.threshold, point.recall, point.alerts
    ('FPR ≤ 0.4', 0.5, 1.0, 3.0)
    """

    kind: Literal["max_fpr", "k", "threshold"]
    value: float
    threshold: float
    true_positives: float
    false_positives: float
    positives: float
    negatives: float

    @property
    def rule(self) -> str:
        """The rule in words."""
        if self.kind == "k":
            return "1 alert" if self.value == 1 else f"{self.value:g} alerts"
        return f"FPR ≤ {self.value:g}" if self.kind == "max_fpr" else f"score > {self.value:.3g}"

    @property
    def alerts(self) -> float:
        """Weight of the rows taken."""
        return self.true_positives + self.false_positives

    @property
    def share(self) -> float:
        """Share of the list that is taken."""
        return self.alerts / (self.positives + self.negatives)

    @property
    def recall(self) -> float:
        """Share of the positives that are taken, the true positive rate."""
        return self.true_positives / self.positives

    @property
    def fpr(self) -> float:
        """Share of the negatives that are taken; nan if there are none."""
        return self.false_positives / self.negatives if self.negatives else np.nan

    @property
    def precision(self) -> float:
        """Share of positives among the rows taken; nan if none is taken."""
        return self.true_positives / self.alerts if self.alerts else np.nan

    @property
    def lift(self) -> float:
        """How many times richer in positives the rows taken are than the whole list; nan if none is taken."""
        return self.precision * (self.positives + self.negatives) / self.positives


@dataclass(frozen=True)
class RankedList:
    """The tie runs of a list, best score first, with the score of each: all that the displays read.

    Examples
    --------
    >>> from toprank.plots import RankedList
    >>> ranked = RankedList.from_predictions([1, 0, 1, 0, 0], [0.9, 0.7, 0.5, 0.5, 0.1])
    >>> ranked.scores
    array([0.9, 0.7, 0.5, 0.1])
    >>> float(ranked.found_at(3))  # of two rows with score 0.5, one fits
    1.5
    """

    scores: NDArray[Any]
    runs: TieRuns

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, pos_label: Any = None
    ) -> RankedList:
        """Validate and sort, as the metrics do; rows of weight zero are dropped."""
        rows = as_rows(y_true, y_score, sample_weight, pos_label)
        return cls(np.unique(rows.score)[::-1], tie_runs(rows))

    @property
    def positives(self) -> float:
        """Weight of the positives."""
        return float(self.runs.true_positives[-1])

    @property
    def negatives(self) -> float:
        """Weight of the negatives."""
        return float(self.runs.false_positives[-1])

    @property
    def total(self) -> float:
        """Length of the list, counted in weight."""
        return float(self.runs.end[-1])

    def require(self, *, positives: bool = False, negatives: bool = False) -> None:
        """Raise if a class is missing that is divided by."""
        for wanted, weight, kind in ((positives, self.positives, "positive"), (negatives, self.negatives, "negative")):
            if wanted and not weight:
                raise without(kind, f"a share of the {kind}s")

    def found_at(self, k: float | Floats) -> Floats:
        """Expected weight of positives among the k best rows, over random tie-breaking."""
        return np.asarray(
            np.interp(k, np.append(0.0, self.runs.end), np.append(0.0, self.runs.true_positives)), dtype=np.float64
        )

    def operating_point(
        self, *, max_fpr: float | None = None, k: float | None = None, threshold: float | None = None
    ) -> OperatingPoint | None:
        """The point that one rule chooses, or None without a rule.

        Parameters
        ----------
        max_fpr : float, optional
            The lowest threshold whose false positive rate is at most this; its recall is
            ``tpr_at_fpr(max_fpr=max_fpr)``.
        k : float, optional
            The k best rows, ties broken at random: ``precision_at_k(k=k)`` and ``recall_at_k(k=k)``.
        threshold : float, optional
            All rows with a score above this one, as in `predict`.
        """
        given = {"max_fpr": max_fpr, "k": k, "threshold": threshold}
        rules = [name for name, value in given.items() if value is not None]
        if len(rules) > 1:
            raise ValueError(f"one rule chooses the operating point, but {' and '.join(rules)} are given; keep one")
        if max_fpr is not None:
            return self._within_fpr(check_share("max_fpr", max_fpr))
        if k is not None:
            return self._best(k)
        return None if threshold is None else self._above(threshold)

    def _within_fpr(self, max_fpr: float) -> OperatingPoint:
        self.require(negatives=True)
        allowed = max_fpr * self.negatives * (1 + ROUNDING)
        n_runs = int(np.searchsorted(self.runs.false_positives, allowed, side="right"))
        return self._point("max_fpr", max_fpr, self._score_of(n_runs), *self._first(n_runs))

    def _above(self, threshold: float) -> OperatingPoint:
        value = check_threshold(threshold)
        n_runs = int(np.count_nonzero(self.scores > value))
        return self._point("threshold", value, value, *self._first(n_runs))

    def _first(self, n_runs: int) -> tuple[float, float]:
        """Weights of the positives and the negatives in the first runs."""
        if not n_runs:
            return 0.0, 0.0
        return float(self.runs.true_positives[n_runs - 1]), float(self.runs.false_positives[n_runs - 1])

    def _best(self, k: float) -> OperatingPoint:
        if not 0 < k <= self.total * (1 + ROUNDING):
            rule = "must be in (0, {total:g}], the length of the list (sum of weights)"
            raise InputError.of("k", k, rule, total=self.total)
        found = float(self.found_at(k))
        n_whole = int(np.searchsorted(self.runs.end, k * (1 + ROUNDING), side="right"))
        return self._point("k", float(k), self._score_of(n_whole), found, k - found)

    def _point(self, kind: Any, value: float, threshold: float, found: float, false_alarms: float) -> OperatingPoint:
        return OperatingPoint(kind, value, threshold, found, false_alarms, self.positives, self.negatives)

    def _score_of(self, run: int) -> float:
        """The score of a run, minus infinity after the last."""
        return float(self.scores[run]) if run < len(self.scores) else -np.inf


def check_threshold(threshold: float) -> float:
    """Check that a threshold is a number, infinities included."""
    if np.isnan(threshold):
        raise ValueError("threshold is nan; give a number, or inf to take no row")
    return float(threshold)
