"""The generalised Wilcoxon-Mann-Whitney statistic for ordinal labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import fsum
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from toprank.exceptions import InputError, Message
from toprank.metrics._metric import Weights, metric
from toprank.positive_class import in_order, warn_user
from toprank.ranking.level_rows import LevelPart, level_rows
from toprank.ranking.tie_runs import Floats, require_present, sums_before

Graph = Literal["full", "chain"] | Sequence[tuple[Any, ...]]


@metric
def wmw_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    graph: Graph = "full",
    labels: ArrayLike | None = None,
    sample_weight: Weights = None,
    pos_label: Any = None,
) -> float:
    r"""Share of preferred pairs that the scores put in the right order.

    .. math:: \mathrm{WMW} = \frac{\sum_{(a, b)} e_{ab} \sum_{i \in a} \sum_{j \in b}
              ([s_i > s_j] + \frac12 [s_i = s_j])}{\sum_{(a, b)} e_{ab}\, |a|\, |b|}

    over the edges :math:`(a, b)` of a preference graph: level a is better than level b, with strength
    :math:`e_{ab}`. With two levels it is the area under the ROC curve. O(N log N + N log S) for the full graph of S
    levels, O(N log N) for the chain and O(N log N + N E) at most for E edges; pairs are never enumerated.

    Ties: the expected value over random tie-breaking, so a tie counts one half. (The RankNCG paper's definition
    counts a tie as correct, which would give a constant score the value 1.)

    Parameters
    ----------
    y_true : array-like or Dask array of shape (n,)
        Ordinal labels, larger for better.
    y_score : array-like or Dask array of shape (n,)
        Scores, larger for better.
    graph : {"full", "chain"} or list of edges, default="full"
        "full": every level against every lower one. "chain": every level against the next lower one. Edges:
        tuples ``(better, worse)`` or ``(better, worse, strength)`` of labels.
    labels : array-like of shape (S,), optional
        The levels from worst to best; by default the sorted labels, of words with a `PositiveClassWarning`.
    {sample_weight}
    pos_label : label, optional
        Of two levels the better one, instead of `labels`.

    Returns
    -------
    float
        In [0, 1]; 0.5 for a random order.

    Examples
    --------
    >>> from toprank.metrics import wmw_score
    >>> wmw_score([0, 1, 2, 2], [0.1, 0.5, 0.3, 0.9])
    0.8
    >>> wmw_score([0, 1, 2, 2], [0.1, 0.5, 0.3, 0.9], graph=[(2, 1)])
    0.5
    """
    choose = partial(_levels_by, labels=labels, pos_label=pos_label, graph=graph)
    by_order = labels is None and pos_label is None and isinstance(graph, str) and graph == "full"
    rows = level_rows(y_true, y_score, sample_weight, choose, labels is not None, by_order)
    inside = rows.over_bands(_pairs_of_band)
    pairs = fsum([_pairs_of_levels(rows.masses, graph, rows.levels), *(pairs for _, pairs in inside)])
    if pairs == 0:
        raise ValueError(
            "no pair of rows is ordered by the graph: y_true needs rows of positive weight in two levels that an "
            f"edge joins, found the levels {rows.levels[rows.masses > 0].tolist()}"
        )
    right = fsum([*rows.over_parts(_right_pairs, graph, rows.levels), *(right for right, _ in inside)])
    return min(1.0, right / pairs)


def _levels_by(
    y: NDArray[Any], levels: NDArray[Any] | None, labels: ArrayLike | None, pos_label: Any, graph: Graph
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The levels and the level number of each row; if the levels are not known, as the user orders them."""
    return levels_of(y, ordered_levels(y, labels, pos_label, graph, "wmw_score") if levels is None else levels)


def _pairs_of_levels(masses: Floats, graph: Graph, levels: NDArray[Any]) -> float:
    """Weight of all pairs that a graph compares, of the weight of each level."""
    every = LevelPart(np.zeros(len(levels)), np.arange(len(levels)), masses)
    return sum(_all_pairs(*one) for one in _comparisons(graph, levels, every))


def _pairs_of_band(band: LevelPart) -> tuple[float, float]:
    """Weights of the pairs in the right order and of all pairs in a band of labels."""
    masses = np.asarray(np.bincount(band.level, band.weight), dtype=np.float64)
    levels = np.arange(len(masses))
    return _right_pairs(band, "full", levels), _pairs_of_levels(masses, "full", levels)


def _right_pairs(part: LevelPart, graph: Graph, levels: NDArray[Any]) -> float:
    """Weight of the pairs in the right order whose better row is in a part of the list."""
    right = 0.0
    for block, better, worse in _comparisons(graph, levels, part):
        better[: part.n_below] = 0.0
        right += _pairs_in_order(part.score, block, better, worse)
    return right


def ordered_levels(
    y: NDArray[Any], labels: ArrayLike | None, pos_label: Any, graph: Graph, owner: str
) -> ArrayLike | None:
    """The levels from worst to best as the user named them; None for the sorted labels, with a warning for words."""
    require_present(y, "y_true", "drop such rows")
    found = np.unique(y)
    if pos_label is None:
        if labels is None and isinstance(graph, str) and isinstance(found.tolist()[0], str):
            warn_user(
                Message(
                    "{owner} takes the levels in sorted order, from {first!r} to {last!r} as the best; say it by "
                    "labels=, the levels from worst to best, or of two levels by {pos_label=}",
                    owner=owner,
                    first=found.tolist()[0],
                    last=found.tolist()[-1],
                )
            )
        return labels
    if labels is None and len(found) > 2:
        raise InputError.of(
            "pos_label",
            pos_label,
            "is for two levels, and there are {n}",
            "give labels=, all levels from worst to best",
            n=len(found),
        )
    if labels is None:
        return in_order(found, pos_label) if len(found) == 2 else None
    levels = np.asarray(labels).tolist()
    if not levels or levels[-1] != pos_label:
        raise InputError.of(
            "pos_label",
            pos_label,
            "must be the last of labels={levels}",
            "leave one of them out",
            levels=levels,
        )
    return labels


def levels_of(y: NDArray[Any], labels: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the levels from worst to best and the level number of each row."""
    found, code = np.unique(y, return_inverse=True)
    if labels is None:
        return found, code
    levels = column_or_1d(labels, input_name="labels")
    number = {label: i for i, label in enumerate(levels.tolist())}
    if len(number) < len(levels):
        raise ValueError(f"labels must be distinct, got {levels.tolist()}")
    missing = [label for label in found.tolist() if label not in number]
    if missing:
        raise ValueError(f"y_true has the labels {missing}, which are not in labels={levels.tolist()}")
    return levels, np.array([number[label] for label in found.tolist()], dtype=np.intp)[code]


def _comparisons(
    graph: Graph, levels: NDArray[Any], rows: LevelPart
) -> Iterator[tuple[NDArray[Any] | None, Floats, Floats]]:
    """Yield (block, better, worse): in each block, rows of weight `better` against rows of weight `worse`.

    The full graph needs one comparison for each binary digit of the level number: two levels are compared at the
    highest digit in which they differ, among the rows that agree in all higher digits. The chain needs two:
    levels 0-1, 2-3, … and levels 1-2, 3-4, …
    """
    level, weight = rows.level, rows.weight
    if isinstance(graph, str):
        if graph == "full":
            splits = [(level >> digit) for digit in range((len(levels) - 1).bit_length())]
        elif graph == "chain":
            splits = [level, level + 1]
        else:
            raise ValueError(f"graph must be 'full', 'chain' or a list of edges, got {graph!r}")
        for number in splits:
            upper = number % 2 == 1
            yield number // 2, np.where(upper, weight, 0.0), np.where(upper, 0.0, weight)
        return
    for better, worse_levels in edge_strengths(graph, levels).items():
        strength = np.zeros(len(levels))
        for worse, value in worse_levels.items():
            strength[worse] = value
        yield None, np.where(level == better, weight, 0.0), strength[level] * weight


def edge_strengths(edges: Iterable[Any], levels: NDArray[Any]) -> dict[int, dict[int, float]]:
    """Read the edges as better level -> worse level -> strength; a repeated edge adds up."""
    number = {label: i for i, label in enumerate(levels.tolist())}
    strengths: dict[int, dict[int, float]] = {}
    for edge in edges:
        if len(edge) not in (2, 3):
            raise ValueError(f"an edge is (better, worse) or (better, worse, strength), got {edge!r}")
        better, worse = edge[:2]
        strength = float(edge[2]) if len(edge) == 3 else 1.0
        for label in (better, worse):
            if label not in number:
                raise ValueError(
                    f"edge {edge!r} names the label {label!r}, which is not among {levels.tolist()}; give all "
                    "levels by labels= if some may be absent from y_true"
                )
        if better == worse:
            raise ValueError(f"edge {edge!r} prefers a level to itself")
        if not 0 < strength < np.inf:
            raise ValueError(f"edge {edge!r} must have a positive and finite strength")
        row = strengths.setdefault(number[better], {})
        row[number[worse]] = row.get(number[worse], 0.0) + strength
    return strengths


def _all_pairs(block: NDArray[Any] | None, better: Floats, worse: Floats) -> float:
    """Weight of all pairs (better, worse) of equal block."""
    if block is None:
        return float(better.sum() * worse.sum())
    return float(np.bincount(block, better) @ np.bincount(block, worse))


def _pairs_in_order(score: NDArray[Any], block: NDArray[Any] | None, better: Floats, worse: Floats) -> float:
    """Weight of the pairs (better, worse) of equal block in the right order: O(n log n).

    The rows come in rising order of the score. Within a block and a tie run the sum is
    better · (worse before the run + worse in the run / 2).
    """
    new_run = score[1:] != score[:-1]
    if block is None or not block.any():
        new_block = np.zeros(1, np.intp)
    else:
        narrow = block.astype(np.uint16) if block.max() < 2**16 else block  # 16 bits sort by radix
        order = np.argsort(narrow, kind="stable")
        score, block, better, worse = score[order], block[order], better[order], worse[order]
        changes = block[1:] != block[:-1]
        new_run = (score[1:] != score[:-1]) | changes
        new_block = np.concatenate([[0], np.flatnonzero(changes) + 1])
    run = np.concatenate([[0], np.flatnonzero(new_run) + 1])
    run_better, run_worse = np.add.reduceat(better, run), np.add.reduceat(worse, run)
    below = sums_before(run_worse, np.searchsorted(run, new_block))
    return float(run_better @ (below + run_worse / 2))
