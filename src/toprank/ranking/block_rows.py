"""The rows of a metric in blocks: Dask arrays of labels and scores, never gathered in one place.

What a metric reads at one place of the list needs the score there, which is an exact cut over the blocks, and a sum of
each block above, at and below it. What reads a part of the list, or all of it, works on parts by score: every block
sends each part its tie runs, and who has a part knows what is before and after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_consistent_length

from toprank.arrays import Floats, is_dask
from toprank.matrices.block_order import Order
from toprank.matrices.block_tasks import Piece, Pieces, fetched, on_each, stored
from toprank.matrices.block_vector import BlockVector
from toprank.matrices.dask_columns import beside, blocks_of, distinct, lengths_of
from toprank.ranking import block_parts
from toprank.ranking.block_parts import SortedRuns, ends_of_parts, slices_of_parts, together
from toprank.ranking.tie_runs import (
    ROUNDING,
    Cut,
    Rows,
    TieRuns,
    check_weights,
    group_codes,
    has_label,
    label_column,
    no_rows,
    positive_rows,
    require_present,
    score_column,
    tie_runs,
    weight_column,
)

Found = TypeVar("Found")

# Labels of a block that are sent: of more than two there is an error.
_MOST_LABELS = 100
# From here on not every integer is a float.
_LARGEST_INTEGER = 2**53


@dataclass(frozen=True)
class BlockRows:
    """Validated rows with positive weight in blocks: what `Rows` is in one memory."""

    pieces: Pieces
    """`Rows` of each block; their groups are labels, not codes."""
    score: BlockVector
    positive: BlockVector
    weight: BlockVector
    totals: tuple[float, float]
    """Weights of all positives and of all negatives."""
    group: bool | None
    """Whether the rows have groups; None if not."""

    def runs_around(self, cut: Cut) -> TieRuns:
        """Three runs: all rows above the score at which the list is cut, those that have it, and all below."""
        sums = np.sum(fetched(on_each(_sums_around, [self.pieces], self._score_at(cut))), axis=0)
        positives, negatives = sums[:, sums.sum(axis=0) > 0]
        return TieRuns(positives, negatives, np.zeros(len(positives), np.intp))

    def over_parts(self, function: Callable[..., Found], *arguments: Any, down_to: Cut | None = None) -> list[Found]:
        """What a function makes of the tie runs of each part of the list, the best first, beside the part."""
        lowest = None if down_to is None else self._score_at(down_to)
        return fetched(on_each(function, [_parts_by_score(self.pieces, lowest)], *arguments))

    def over_groups(self, function: Callable[..., Found], *arguments: Any) -> list[Found]:
        """What a function makes of the tie runs of some groups, which are put together in one place."""
        return fetched(on_each(function, [_parts_by_group(self.pieces)], *arguments))

    def _score_at(self, cut: Cut) -> float:
        """The largest score with more weight from there on than is before the cut; the smallest if there is none."""
        chosen = ~self.positive if cut.negatives else slice(None)
        weight = cut.weight
        if cut.share is not None:
            weight = cut.share * (self.totals[1] if cut.negatives else sum(self.totals)) * (1 + ROUNDING)
        return Order.of(self.score[chosen], self.weight[chosen]).first_beyond(weight)


def block_rows(y_true: Any, y_score: Any, sample_weight: Any, pos_label: Any, groups: Any) -> BlockRows:
    """Validate the input of a metric, each block beside its rows; an error names the block."""
    columns = (sample_weight, "sample_weight"), (groups, "groups")
    labels, scores, weights, group = columns_beside(y_true, y_score, *columns)
    found = distinct(labels, _MOST_LABELS, checked_labels)
    if not len(found):
        raise no_rows()
    positive_rows(found, pos_label)
    pieces = stored(on_each(_checked, [labels, scores, weights, group], pos_label))
    facts = np.array(fetched(on_each(_facts, [pieces])))
    totals = fsum(facts[:, 1]), fsum(facts[:, 2])
    check_weights(sum(totals), facts[:, 3].max())
    kept = facts[:, 0].astype(int).tolist()
    return BlockRows(
        pieces,
        BlockVector.of(on_each(_score, [pieces]), kept),
        BlockVector.of(on_each(_positive, [pieces]), kept, np.bool_),
        BlockVector.of(on_each(_weight, [pieces]), kept),
        totals,
        None if groups is None else True,
    )


def columns_beside(y_true: Any, y_score: Any, *others: tuple[Any, str]) -> list[Pieces]:
    """Pieces of the columns of a metric, one beside each other; what is not given is None in each."""
    name = "y_score" if is_dask(y_score) else "y_true"
    lengths = lengths_of(y_score if is_dask(y_score) else y_true)
    columns = (y_true, "y_true"), (y_score, "y_score"), *others
    return [[None] * len(lengths) if column is None else beside(lengths, column, of, name) for column, of in columns]


def different_labels(labels: Any, most: int) -> Any:
    """The different labels of a Dask column; of each block at most so many."""
    return distinct(blocks_of(labels), most)


def checked_labels(labels: Any) -> Any:
    """The labels of a block, none of which is missing."""
    column = label_column(np.asarray(labels), "y_true")
    require_present(column, "y_true", "drop such rows")
    return column


def checked_columns(labels: Any, scores: Any, weights: Any) -> tuple[Any, Any, Floats]:
    """Labels, scores and weights of a block."""
    labels, score = label_column(np.asarray(labels), "y_true"), score_column(np.asarray(scores), "y_score")
    check_consistent_length(labels, score)
    score = score if score.dtype.kind == "f" else as_floats(score, "scores")
    return labels, score, np.ones(len(labels)) if weights is None else weight_column(labels, np.asarray(weights))


def as_floats(column: Any, what: str) -> Floats:
    """A column of a block in double precision, if that holds all of its integers; `what` is its name in an error."""
    is_whole = column.dtype.kind != "f" and len(column)
    if is_whole and max(abs(int(column.max())), abs(int(column.min()))) > _LARGEST_INTEGER:
        raise ValueError(f"{what} in blocks must be floats, or integers up to 2**53")
    found: Floats = column.astype(np.float64)
    return found


def _checked(labels: Any, scores: Any, weights: Any, groups: Any, pos_label: Any) -> Rows:
    """The rows of a block that have a weight."""
    labels, score, weight = checked_columns(labels, scores, weights)
    positive = has_label(labels, pos_label)
    group = None if groups is None else label_column(np.asarray(groups), "groups")
    if group is not None:
        check_consistent_length(labels, group)
        require_present(group, "groups", "give such rows a group of their own or drop them")
    return _some(Rows(score, positive, weight, group), weight > 0)


def _some(rows: Rows, chosen: Any) -> Rows:
    group = None if rows.group is None else rows.group[chosen]
    return Rows(rows.score[chosen], rows.positive[chosen], rows.weight[chosen], group)


def _facts(rows: Rows) -> tuple[float, float, float, float]:
    """Number of rows, weight of the positives and of the negatives, and the largest weight."""
    with np.errstate(over="ignore"):
        positives, negatives = rows.weight[rows.positive].sum(), rows.weight[~rows.positive].sum()
    return len(rows.score), float(positives), float(negatives), float(np.max(rows.weight, initial=0.0))


def _score(rows: Rows) -> Any:
    return rows.score


def _positive(rows: Rows) -> Any:
    return rows.positive


def _weight(rows: Rows) -> Any:
    return rows.weight


def _sums_around(rows: Rows, score: float) -> Floats:
    """Weights of the positives and of the negatives above, at and below a score."""
    place = 1 - (rows.score > score).astype(np.intp) + (rows.score < score)
    return np.array([np.bincount(place[of], rows.weight[of], 3) for of in (rows.positive, ~rows.positive)])


# Parts of the list by score.


def _parts_by_score(pieces: Pieces, lowest: float | None) -> list[Piece]:
    """Tie runs of parts of the list, the best first, down to a score."""
    runs = stored(on_each(_scored_runs, [pieces]))
    ends = ends_of_parts(runs, lowest)
    sums = np.sum(fetched(on_each(_sums_of_parts, [runs], ends)), axis=0)
    before = np.cumsum(sums, axis=1) - sums
    after = np.cumsum(sums[:, ::-1], axis=1)[:, ::-1] - sums
    columns = [[tuple(part) for part in of.T.tolist()][: len(ends)] for of in (before, after)]
    return on_each(_put_together, [*slices_of_parts(runs, ends), *columns])


def _sorted(score: Any, positives: Floats, negatives: Floats) -> SortedRuns:
    """Sort, and add up what has the same score."""
    order = np.argsort(score)[::-1]
    score = score[order]
    starts = np.flatnonzero(np.append(True, score[1:] != score[:-1])) if len(score) else np.zeros(0, np.intp)
    sums = tuple(np.add.reduceat(of[order], starts) if len(starts) else of[:0] for of in (positives, negatives))
    return SortedRuns(score[starts], sums)


def _scored_runs(rows: Rows) -> SortedRuns:
    positives, negatives = np.where(rows.positive, rows.weight, 0.0), np.where(rows.positive, 0.0, rows.weight)
    return _sorted(rows.score.astype(np.float64), positives, negatives)


def _sums_of_parts(runs: SortedRuns, ends: Floats) -> Floats:
    """Weights of the positives and of the negatives in each part, and after the last one."""
    before = [np.append(0.0, np.cumsum(of)) for of in runs.columns]
    return np.array([np.diff(of[runs.bounds(ends)]) for of in before])


def _put_together(*parts_and_ends: Any) -> TieRuns:
    """The tie runs of a part out of those of all blocks."""
    *parts, before, after = parts_and_ends
    whole = together(tuple(parts))
    runs = _sorted(whole.score, *whole.columns)
    positives, negatives = runs.columns
    return TieRuns(positives, negatives, np.zeros(len(runs.score), np.intp), before, after)


# Parts by group.


def _parts_by_group(pieces: Pieces) -> list[Piece]:
    """Tie runs of whole groups, in the order of their labels."""
    found = fetched(on_each(_groups, [pieces]))
    labels, codes = np.unique(np.concatenate([names for names, _ in found if len(names)]), return_inverse=True)
    n_rows = np.bincount(codes, np.concatenate([counts for _, counts in found]))
    part = (np.cumsum(n_rows) - n_rows) // block_parts.PART
    firsts = np.flatnonzero(np.append(True, part[1:] != part[:-1]))
    members = np.split(labels, firsts[1:])
    slices = [on_each(_rows_of_groups, [[block] * len(members), members]) for block in pieces]
    return on_each(_groups_together, slices)


def _groups(rows: Rows) -> Any:
    return np.unique(np.asarray(rows.group), return_counts=True)


def _rows_of_groups(rows: Rows, labels: Any) -> Rows:
    return _some(rows, np.isin(np.asarray(rows.group), labels))


def _groups_together(*parts: Rows) -> TieRuns:
    score, positive, weight, group = (
        np.concatenate([getattr(part, name) for part in parts if len(part.score)])
        for name in ("score", "positive", "weight", "group")
    )
    return tie_runs(Rows(score, positive, weight, group_codes(group)))
