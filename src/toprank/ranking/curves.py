"""The curves of a ranked list as arrays; the displays draw them, and anything else may read them.

Every curve can be read at any place by `at`, which gives the value of the metric named in its docstring.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from toprank.ranking.intervals import clopper_pearson
from toprank.ranking.ranked_list import OperatingPoint, RankedList
from toprank.ranking.tie_runs import ROUNDING, Floats

# List lengths at which a curve over k is computed: each up to the first number, then by steps of this ratio.
EVERY_K = 200
RATIO = 1.005


@dataclass(frozen=True)
class TopCurve:
    """A curve of a ranked list and, if a rule was given, the operating point on it."""

    needs_negatives: ClassVar[bool] = False
    axes: ClassVar[tuple[str, str]]
    """The attributes that say where the curve has its corners, and the values there."""
    place: ClassVar[tuple[str, str]]
    """The attributes of an operating point that say where it lies in the plane of the curve."""

    ranked: RankedList
    point: OperatingPoint | None

    @classmethod
    def from_ranking(
        cls, ranked: RankedList, *, max_fpr: float | None = None, k: float | None = None, threshold: float | None = None
    ) -> Self:
        """Compute the curve; at most one of the rules chooses the operating point."""
        ranked.require(positives=True, negatives=cls.needs_negatives)
        return cls._computed(ranked, ranked.operating_point(max_fpr=max_fpr, k=k, threshold=threshold))

    @classmethod
    def _computed(cls, ranked: RankedList, point: OperatingPoint | None) -> Self:
        return cls(ranked, point)

    @property
    def x(self) -> Floats:
        """Where the curve has its corners."""
        return np.asarray(getattr(self, self.axes[0]))

    @property
    def y(self) -> Floats:
        """The values there."""
        return np.asarray(getattr(self, self.axes[1]))

    @abstractmethod
    def at(self, x: Floats) -> Floats:
        """The values at other places."""

    def locate(self, point: OperatingPoint) -> tuple[float, float]:
        """Where an operating point lies in the plane of the curve."""
        return getattr(point, self.place[0]), getattr(point, self.place[1])


class RocCurve(TopCurve):
    """True positive rate by false positive rate, one corner a distinct score; `at` is `tpr_at_fpr`.

    The first corner, at the threshold infinity, takes no row. Between corners the curve is a step to the right and up:
    a threshold takes all rows of a score or none.

    Examples
    --------
    >>> from toprank.plots import RankedList, RocCurve
    >>> ranked = RankedList.from_predictions([1, 0, 1, 0, 0], [0.9, 0.7, 0.5, 0.5, 0.1])
    >>> RocCurve.from_ranking(ranked).at([0.0, 0.4, 0.7])  # tpr_at_fpr
    array([0.5, 0.5, 1. ])
    """

    needs_negatives = True
    axes = ("fpr", "tpr")
    place = ("fpr", "recall")

    @property
    def fpr(self) -> Floats:
        """False positive rates."""
        return np.append(0.0, self.ranked.runs.false_positives / self.ranked.negatives)

    @property
    def tpr(self) -> Floats:
        """True positive rates."""
        return np.append(0.0, self.ranked.runs.true_positives / self.ranked.positives)

    @property
    def thresholds(self) -> NDArray[Any]:
        """Scores down to which rows are taken, those of this score included."""
        return np.append(np.inf, self.ranked.scores)

    def at(self, x: Floats) -> Floats:
        """`tpr_at_fpr` for each bound on the false positive rate."""
        last = np.searchsorted(self.fpr, np.asarray(x) * (1 + ROUNDING), side="right") - 1
        return np.asarray(self.tpr[last])


class PrecisionRecallCurve(TopCurve):
    """Precision by recall, one corner a distinct score, nothing interpolated.

    `at` is the precision of the shortest list that finds the share asked for. The best precision of this and any longer
    list is `precision_at_recall`.

    Examples
    --------
    >>> from toprank.plots import PrecisionRecallCurve, RankedList
    >>> ranked = RankedList.from_predictions([1, 0, 1, 0, 0], [0.9, 0.7, 0.5, 0.5, 0.1])
    >>> PrecisionRecallCurve.from_ranking(ranked).precision
    array([1. , 0.5, 0.5, 0.4])
    """

    axes = place = ("recall", "precision")

    @property
    def recall(self) -> Floats:
        """Shares of the positives that are found."""
        return np.asarray(self.ranked.runs.true_positives / self.ranked.positives)

    @property
    def precision(self) -> Floats:
        """Shares of positives among the rows taken."""
        return np.asarray(self.ranked.runs.true_positives / self.ranked.runs.end)

    @property
    def thresholds(self) -> NDArray[Any]:
        """Scores down to which rows are taken, those of this score included."""
        return self.ranked.scores

    def at(self, x: Floats) -> Floats:
        """Precision of the shortest list with at least this recall."""
        first = np.searchsorted(self.recall, np.asarray(x) * (1 - ROUNDING), side="left")
        return np.asarray(self.precision[np.minimum(first, len(self.precision) - 1)])


class GainCurve(TopCurve):
    """Recall by the share of the list that is taken; `at` is `recall_at_k` with k = share times n.

    A run of equal scores is a straight line: the expected value over random tie-breaking.

    Examples
    --------
    >>> from toprank.plots import GainCurve, RankedList
    >>> ranked = RankedList.from_predictions([1, 0, 1, 0, 0], [0.9, 0.7, 0.5, 0.5, 0.1])
    >>> GainCurve.from_ranking(ranked).at([0.2, 0.6])  # recall_at_k with k = 1 and 3
    array([0.5 , 0.75])
    """

    axes = place = ("share", "recall")

    @property
    def share(self) -> Floats:
        """Shares of the list."""
        return np.append(0.0, self.ranked.runs.end / self.ranked.total)

    @property
    def recall(self) -> Floats:
        """Shares of the positives that are found."""
        return np.append(0.0, self.ranked.runs.true_positives / self.ranked.positives)

    def at(self, x: Floats) -> Floats:
        """Recall among each share of the list."""
        return np.asarray(self.ranked.found_at(np.asarray(x) * self.ranked.total) / self.ranked.positives)


@dataclass(frozen=True)
class PrecisionAtKCurve(TopCurve):
    """Precision by the length k of the list, with exact confidence limits; `at` is `precision_at_k`.

    Computed at each k up to 200, then at steps of at most 0.5 %, at n and at the operating point. A list that is longer
    by a share of 0.005 has a precision that differs by no more than 0.005, so nothing is hidden between two places.

    Examples
    --------
    >>> from toprank.plots import PrecisionAtKCurve, RankedList
    >>> ranked = RankedList.from_predictions([1, 0, 1, 0, 0], [0.9, 0.7, 0.5, 0.5, 0.1])
    >>> PrecisionAtKCurve.from_ranking(ranked).precision
    array([1. , 0.5, 0.5, 0.5, 0.4])
    """

    axes = ("k", "precision")
    place = ("alerts", "precision")

    k: Floats
    precision: Floats
    lower: Floats
    upper: Floats
    confidence: float

    @classmethod
    def from_ranking(
        cls,
        ranked: RankedList,
        *,
        confidence: float = 0.95,
        max_fpr: float | None = None,
        k: float | None = None,
        threshold: float | None = None,
    ) -> Self:
        """Compute the curve and its band, see `toprank.ranking.intervals.clopper_pearson`."""
        ranked.require(positives=True)
        point = ranked.operating_point(max_fpr=max_fpr, k=k, threshold=threshold)
        lengths = list_lengths(ranked.total, point)
        found = ranked.found_at(lengths)
        lower, upper = clopper_pearson(found, lengths, confidence)
        return cls(ranked, point, lengths, found / lengths, lower, upper, confidence)

    def at(self, x: Floats) -> Floats:
        """`precision_at_k` for each k."""
        return np.asarray(self.ranked.found_at(x) / np.asarray(x))


@dataclass(frozen=True)
class LiftCurve(TopCurve):
    """Precision over that of a random list, by the share of the list; `at` is `enrichment_factor`.

    Computed at the same places as `PrecisionAtKCurve`.

    Examples
    --------
    >>> from toprank.plots import LiftCurve, RankedList
    >>> ranked = RankedList.from_predictions([1, 0, 1, 0, 0], [0.9, 0.7, 0.5, 0.5, 0.1])
    >>> LiftCurve.from_ranking(ranked).lift
    array([2.5 , 1.25, 1.25, 1.25, 1.  ])
    """

    axes = place = ("share", "lift")

    share: Floats
    lift: Floats

    @classmethod
    def _computed(cls, ranked: RankedList, point: OperatingPoint | None) -> Self:
        lengths = list_lengths(ranked.total, point)
        return cls(ranked, point, lengths / ranked.total, _lift(ranked, lengths))

    def at(self, x: Floats) -> Floats:
        """`enrichment_factor` for each fraction."""
        return _lift(self.ranked, np.asarray(x) * self.ranked.total)


def _lift(ranked: RankedList, lengths: Floats) -> Floats:
    """Precision at some lengths over that of the whole list."""
    return np.asarray(ranked.found_at(lengths) / lengths * ranked.total / ranked.positives)


def list_lengths(total: float, point: OperatingPoint | None = None) -> Floats:
    """Lengths k from 1 to the total at which a curve over k is computed."""
    steps = int(np.ceil(np.log(max(total / EVERY_K, 1.0)) / np.log(RATIO)))
    lengths = np.floor(np.append(np.arange(1.0, EVERY_K + 1), EVERY_K * RATIO ** np.arange(1, steps + 1)))
    chosen = [] if point is None or not point.alerts else [point.alerts]
    lengths = np.unique(np.concatenate([lengths, chosen, [total]]))
    return np.asarray(lengths[lengths <= total])
