"""Validated input and the one sorted view that every metric reads.

A ranked list is a sequence of *tie runs*: maximal sets of rows with the same score, best score first. Rows
inside a run are in no order, so a metric may use only two numbers of a run: the weight of its positives and
the weight of its negatives.

Rows of Dask arrays stay in blocks, as `BlockRows` of `block_rows.py`. So a metric asks its rows for the runs around a
cut, or for what a function makes of each part of the list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, column_or_1d

from toprank.arrays import is_dask
from toprank.checks import is_missing, missing_values
from toprank.exceptions import InputError
from toprank.positive_class import did_you_mean, labels_text

if TYPE_CHECKING:
    from toprank.ranking.block_rows import BlockRows

Floats = NDArray[np.float64]
Found = TypeVar("Found")

# A sum of weights carries rounding errors; a bound on a rate is not violated by less than this share.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Rows:
    """Validated rows with positive weight: score, class, weight and group code of each."""

    score: NDArray[Any]
    positive: NDArray[np.bool_]
    weight: Floats
    group: NDArray[Any] | None = None

    def runs_around(self, cut: Cut) -> TieRuns:
        """The tie runs; those far from a cut may be put together, but for rows in one memory none are."""
        return tie_runs(self)

    def over_parts(self, function: Callable[..., Found], *arguments: Any, down_to: Cut | None = None) -> list[Found]:
        """What a function makes of the tie runs of each part of the list, here one; no run below a cut is needed."""
        return [function(tie_runs(self), *arguments)]

    def over_groups(self, function: Callable[..., Found], *arguments: Any) -> list[Found]:
        """What a function makes of the tie runs of some groups, here of all."""
        return [function(tie_runs(self), *arguments)]


@dataclass(frozen=True)
class Cut:
    """Where a metric cuts the list: after a weight of rows, or of negatives, or after a share of it."""

    weight: float = np.inf
    share: float | None = None
    negatives: bool = False


@dataclass(frozen=True)
class TieRuns:
    """Weights of the positives and the negatives in each tie run: group by group, best score first.

    The runs may be a part of the list: `before` and `after` are the weights of positives and negatives around it.
    """

    positives: Floats
    negatives: Floats
    group: NDArray[np.intp]
    before: tuple[float, float] = (0.0, 0.0)
    after: tuple[float, float] = (0.0, 0.0)

    @cached_property
    def true_positives(self) -> Floats:
        """Weight of positives down to and including each run."""
        return np.asarray(self.before[0] + np.cumsum(self.positives))

    @cached_property
    def false_positives(self) -> Floats:
        """Weight of negatives down to and including each run."""
        return np.asarray(self.before[1] + np.cumsum(self.negatives))

    @property
    def all_positives(self) -> float:
        """Weight of the positives of the list."""
        return float(self.true_positives[-1] + self.after[0])

    @property
    def all_negatives(self) -> float:
        """Weight of the negatives of the list."""
        return float(self.false_positives[-1] + self.after[1])

    @cached_property
    def weight(self) -> Floats:
        """Weight of each run."""
        return self.positives + self.negatives

    @cached_property
    def end(self) -> Floats:
        """Position in the list, counted in weight, at which each run ends."""
        return self.true_positives + self.false_positives

    @property
    def start(self) -> Floats:
        """Position in the list at which each run starts."""
        return np.concatenate([[sum(self.before)], self.end[:-1]])

    @property
    def negatives_after(self) -> Floats:
        """Weight of negatives below each run, added from the end: a difference of sums would have lost small ones."""
        return self.after[1] + np.concatenate([np.cumsum(self.negatives[:0:-1])[::-1], [0.0]])


def without(kind: str, share: str) -> ValueError:
    """The error for a list that lacks the rows which a share is of."""
    return ValueError(
        f"y_true has no {kind} row with a positive weight, so {share} is undefined; check pos_label, or evaluate on a "
        "larger or stratified sample"
    )


def no_rows() -> ValueError:
    """The error for an empty list."""
    return ValueError("y_true and y_score are empty; a ranking needs at least one row")


def rows_of(
    y_true: Any,
    y_score: Any,
    sample_weight: Any,
    pos_label: Any,
    groups: Any = None,
    *,
    positives: bool = False,
    negatives: bool = False,
) -> Rows | BlockRows:
    """The rows of a metric, of Dask arrays in blocks, of which some classes are needed."""
    if is_dask(y_true) or is_dask(y_score):
        from toprank.ranking.block_rows import block_rows

        found: Rows | BlockRows = block_rows(y_true, y_score, sample_weight, pos_label, groups)
    else:
        found = as_rows(y_true, y_score, sample_weight, pos_label, groups)
    if positives and not found.positive.any():
        raise without("positive", "the share of positives found")
    if negatives and found.positive.all():
        raise without("negative", "the share of false alarms")
    return found


def as_rows(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
) -> Rows:
    """Validate the input of a binary metric and drop rows of weight zero."""
    labels = label_column(y_true, "y_true")
    score, weight = scores_and_weights(labels, y_score, sample_weight)
    positive = positive_rows(labels, pos_label)
    group = None if groups is None else label_column(groups, "groups")
    if group is not None:
        check_consistent_length(labels, group)
    if weight is None:
        weight = np.ones(len(score))
    elif not weight.all():
        kept = weight > 0
        score, positive, weight = score[kept], positive[kept], weight[kept]
        group = None if group is None else group[kept]
    return Rows(score, positive, weight, None if group is None else group_codes(group))


def label_column(values: ArrayLike, name: str, *, warn: bool = False) -> NDArray[Any]:
    """Labels or groups as a vector that still shows what is missing."""
    column = _column(values, name, warn=warn)
    if column.dtype.kind != "U" or not isinstance(values, list | tuple):
        return column
    # out of nan in a list of texts NumPy makes the text "nan"
    as_given = np.array(values, dtype=object).ravel()
    return as_given if any(is_missing(value) for value in as_given) else column


def _column(values: ArrayLike, name: str, *, warn: bool = False) -> NDArray[Any]:
    """A vector of what was given; scikit-learn takes a tenth of a millisecond to see that numbers are in one."""
    if type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "fiub" and values.flags.c_contiguous:
        return values
    column: NDArray[Any] = column_or_1d(values, input_name=name, warn=warn)
    return column


def score_column(values: ArrayLike, name: str) -> NDArray[Any]:
    """Scores as a vector of finite numbers, of the type they have."""
    score = _column(values, name)
    if score.dtype.kind not in "fiub":
        score = _as_float(score, name)
    _require_finite(score, name, "scores must be finite numbers; impute or drop such rows")
    return score


def scores_and_weights(
    labels: NDArray[Any], y_score: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[Any], Floats | None]:
    """Validate scores and weights against the labels; weights stay None where none were given."""
    score = score_column(y_score, "y_score")
    check_consistent_length(labels, score)
    if len(score) == 0:
        raise no_rows()
    if sample_weight is None:
        return score, None
    weight = weight_column(labels, sample_weight)
    with np.errstate(over="ignore"):
        check_weights(float(weight.sum()), float(weight.max()))
    return score, weight


def weight_column(labels: NDArray[Any], sample_weight: ArrayLike) -> Floats:
    """Weights as a vector of finite numbers, none of them negative, one for each label."""
    weight = _as_float(_column(sample_weight, "sample_weight"), "sample_weight")
    check_consistent_length(labels, weight)
    _require_finite(weight, "sample_weight", "weights must be finite; use 0 to leave a row out")
    if (weight < 0).any():
        row = int(np.argmin(weight))
        raise ValueError(
            f"sample_weight[{row}] is {weight[row]}; weights must not be negative, use 0 to leave a row out"
        )
    return weight


def check_weights(total: float, largest: float) -> None:
    """Check the sum of all weights and the largest one."""
    if not largest > 0:
        raise ValueError("all sample weights are zero; at least one row must have a positive weight")
    if not np.isfinite(total):
        raise ValueError(f"the sum of the sample weights overflows, the largest is {largest:g}; scale them")


def has_label(labels: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    """Which rows carry `pos_label`, by default 1."""
    positive = np.asarray(labels == (1 if pos_label is None else pos_label), dtype=bool)
    return np.full(len(labels), False) if positive.ndim == 0 else positive  # NumPy compares text and number as a whole


def positive_rows(labels: NDArray[Any], pos_label: Any) -> NDArray[np.bool_]:
    """Tell which rows carry `pos_label`, by default 1 where the other label is 0, -1 or False."""
    require_present(labels, "y_true", "drop such rows")
    positive = has_label(labels, pos_label)
    if pos_label is not None and not positive.any():
        found = np.unique(labels).tolist()
        raise ValueError(
            f"pos_label={pos_label!r} does not occur in y_true, whose labels are {labels_text(found)}; "
            + (did_you_mean(pos_label, found) or "name one of them, or evaluate on a larger or stratified sample")
        )
    others = labels[~positive]
    if len(others) == 0:
        return positive
    if not np.all(others == others[0]) and len(np.unique(labels)) > 2:
        raise ValueError(
            f"y_true must have two classes, found {labels_text(np.unique(labels).tolist())}; reduce it with "
            "toprank.datasets.binarize(y, positive=...)"
        )
    if pos_label is None and others[0] not in (0, -1):
        raise ValueError(
            f"y_true has the labels {labels_text(np.unique(labels).tolist())}; without pos_label they must be 0 and 1, "
            "or -1 and 1. Say which one is the positive class by pos_label="
        )
    return positive


def require_present(values: NDArray[Any], name: str, remedy: str) -> None:
    """Raise if a label or a group is nan, None, NaT or the NA of pandas."""
    missing = missing_values(values)
    if missing.any():
        raise ValueError(f"{name} has missing values such as {values[np.argmax(missing)]}; {remedy}")


def tie_runs(rows: Rows) -> TieRuns:
    """Sort the rows by falling score and add up the weights of equal scores: O(n log n)."""
    order = np.argsort(rows.score)[::-1]
    if rows.group is not None:
        order = order[np.argsort(rows.group[order], kind="stable")]
    score = rows.score[order]
    new_run = score[1:] != score[:-1]
    if rows.group is not None:
        group = rows.group[order]
        new_run |= group[1:] != group[:-1]
    starts = np.concatenate([[0], np.flatnonzero(new_run) + 1])
    weight = rows.weight[order]
    positive = rows.positive[order]
    return TieRuns(
        positives=np.add.reduceat(np.where(positive, weight, 0.0), starts),
        negatives=np.add.reduceat(np.where(positive, 0.0, weight), starts),
        group=np.zeros(len(starts), np.intp) if rows.group is None else group[starts].astype(np.intp),
    )


def sums_before(values: Floats, starts: NDArray[np.intp]) -> Floats:
    """Sum of the values before each one in its part, where parts begin at `starts`.

    Each part is added up alone, short parts of one length at a time: in differences of sums over the whole, the large
    values of other parts would leave rounding errors.
    """
    sums = np.zeros(len(values))
    lengths = np.diff(np.append(starts, len(values)))
    for length in np.unique(lengths[lengths > 1]):
        first = starts[lengths == length]
        if len(first) == 1:
            np.cumsum(values[first[0] : first[0] + length - 1], out=sums[first[0] + 1 : first[0] + length])
        else:
            places = first[:, None] + np.arange(length)
            sums[places[:, 1:]] = np.cumsum(values[places[:, :-1]], axis=1)
    return sums


def rounding_errors(first: Floats, second: Floats) -> Floats:
    """What rounding took from first + second, exactly (Knuth)."""
    total = first + second
    kept = total - first
    return np.asarray((first - (total - kept)) + (second - kept))


def check_share(name: str, value: float, *, low_open: bool = False) -> float:
    """Check that a parameter is a share, in [0, 1] or (0, 1]."""
    if not (0 < value <= 1 or (value == 0 and not low_open)):
        interval = "(0, 1]" if low_open else "[0, 1]"
        raise InputError.of(name, value, "must be in {interval}", interval=interval)
    return float(value)


def group_codes(group: NDArray[Any]) -> NDArray[Any]:
    """Number the groups 0, 1, … in the order of their labels."""
    require_present(group, "groups", "give such rows a group of their own or drop them")
    codes = np.unique(group, return_inverse=True)[1]
    # the stable sort of 16-bit integers is a radix sort, linear in n
    return codes.astype(np.uint16) if codes.max() < 2**16 else codes


def _as_float(values: NDArray[Any], name: str) -> Floats:
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, got values of type {values.dtype}") from error


def _require_finite(values: NDArray[Any], name: str, remedy: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that is not finite is only a reason to look closer
        if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"{name} has {len(bad)} values that are not finite, the first is {values[bad[0]]} in row {bad[0]}; {remedy}"
        )
