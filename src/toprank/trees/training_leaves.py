"""What the head of a `TopForest` learns from: leaves of the training rows, and priors that no own label has shaped.

A prior is the score of an ensemble itself: of a frozen one as it is, of a forest by the trees that did not draw a row.
Where all trees have seen all rows, as in boosting, ensembles are grown without each fold, and score its rows; their
leaves take the place of the final ones when heads are compared on that fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing, gen_batches

from toprank.arrays import Floats, Mask, Rows
from toprank.log import tell
from toprank.matrices.leaves import LeafMatrix
from toprank.trees.grove import Grove, Part, Say, said_with

# Folds for ensembles of which all trees have seen all rows.
_FOLDS = 5
# Rows whose leaves are found at a time for the scores of an ensemble.
_BLOCK_ROWS = 50_000


@dataclass(frozen=True)
class TrainingLeaves:
    """Leaves of the training rows and their priors, with labels and weights."""

    whole: LeafMatrix
    """The leaves in all trees."""
    honest: LeafMatrix
    """Those in the trees that the row has not helped to grow; of boosting all of them."""
    prior: Floats
    """A column for each prior, of mean 0 and deviation 1."""
    positive: Mask
    weights: Floats
    can_be_honest: bool = True
    """Whether there are such trees in every ensemble."""
    fold_of: Rows | None = None
    """The fold of each row, where ensembles were grown without each fold; else None."""
    of_folds: tuple[tuple[LeafMatrix, LeafMatrix], ...] = ()
    """All and honest leaves in these."""

    @property
    def honesty(self) -> tuple[bool, ...]:
        """Whether heads may learn from honest leaves, from all, or from both because they differ."""
        if not self.can_be_honest:
            return (False,)
        return (True,) if self.honest is self.whole else (True, False)

    def in_fold(self, fold: int) -> TrainingLeaves:
        """The same with leaves of trees that have not seen the rows of the fold."""
        if not self.of_folds:
            return self
        whole, honest = self.of_folds[fold]
        return replace(self, whole=whole, honest=honest, of_folds=())

    def __getitem__(self, rows: Rows) -> TrainingLeaves:
        whole, honest = _some_rows(self.whole, self.honest, rows)
        return replace(
            self, whole=whole, honest=honest, prior=self.prior[rows], positive=self.positive[rows],
            weights=self.weights[rows], fold_of=None if self.fold_of is None else self.fold_of[rows],
            of_folds=tuple(_some_rows(*matrices, rows) for matrices in self.of_folds),
        )  # fmt: skip


def _some_rows(whole: LeafMatrix, honest: LeafMatrix, rows: Rows) -> tuple[LeafMatrix, LeafMatrix]:
    some = whole[rows]
    return some, some if honest is whole else honest[rows]


@dataclass(frozen=True)
class Prior:
    """The score of an ensemble as a column of mean 0 and deviation 1."""

    leaf_values: Floats
    centre: float
    scale: float


def training_leaves(
    grove: Grove, X: Any, positive: Mask, weights: Floats, random: np.random.RandomState, say: Say = tell
) -> tuple[TrainingLeaves, list[Prior]]:
    """The leaves of the training rows, and the priors of the ensembles that are one."""
    fold_of, regrown = _without_each_fold(grove, X, positive, weights, random, say)
    priors, columns = [], []
    for number, part in enumerate(grove.parts):
        if not part.is_prior:
            continue
        scores = _scores(part, X)
        for fold, other in [] if part.has_unseen else enumerate(regrown):
            out = np.flatnonzero(fold_of == fold)
            scores[out] = _scores(other.parts[number], _safe_indexing(X, out))
        priors.append(Prior(part.source.leaf_values(), float(scores.mean()), float(scores.std()) or 1.0))
        columns.append((scores - priors[-1].centre) / priors[-1].scale)
    whole, honest = _leaves_with_values(grove, X)
    found = TrainingLeaves(whole, honest, np.stack(columns, axis=1), positive, weights)
    if not all(part.has_unseen for part in grove.parts if part.gets_values):
        # heads are judged by trees that were grown without the fold
        of_folds = tuple(_leaves_with_values(other, X) for other in regrown)
        found = replace(found, can_be_honest=False, fold_of=fold_of, of_folds=of_folds)
    return found, priors


def unseen_leaves(grove: Grove, X: Any, priors: Sequence[Prior]) -> tuple[LeafMatrix, Floats]:
    """Leaves and priors of rows that no tree has seen: all trees count."""
    parts = tuple(replace(part, is_frozen=True) for part in grove.parts)
    scores = [_scores(part, X) for part in parts if part.is_prior]
    columns = [(score - prior.centre) / prior.scale for score, prior in zip(scores, priors, strict=True)]
    return _leaves_with_values(Grove(parts), X)[0], np.stack(columns, axis=1)


def fold_numbers(positive: Mask, n_folds: int, random: np.random.RandomState) -> Rows:
    """The fold of each row; each has rows of both classes."""
    fewest = int(min(positive.sum(), (~positive).sum()))
    if fewest < 2:
        raise ValueError("TopForest needs two rows of each class at least, so that some can judge what others say")
    folds = StratifiedKFold(min(n_folds, fewest), shuffle=True, random_state=random.randint(2**31 - 1))
    numbers = np.empty(len(positive), np.intp)
    for number, (_, test) in enumerate(folds.split(positive, positive)):
        numbers[test] = number
    return numbers


def _without_each_fold(
    grove: Grove, X: Any, positive: Mask, weights: Floats, random: np.random.RandomState, say: Say
) -> tuple[Rows | None, list[Grove]]:
    """The fold of each row, and the groves grown without each fold; none where every row has trees to be judged by."""
    if all(part.has_unseen for part in grove.parts):
        return None, []
    numbers, found = fold_numbers(positive, _FOLDS, random), []
    n_folds = int(numbers.max()) + 1
    for fold in range(n_folds):
        kept, place = np.flatnonzero(numbers != fold), f" without fold {fold + 1} of {n_folds}"
        of_kept = weights[kept] if np.ptp(weights) else None
        labels = positive[kept].astype(np.int64)
        found.append(grove.regrown(_safe_indexing(X, kept), labels, of_kept, said_with(say, place)))
    return numbers, found


def _scores(part: Part, X: Any) -> Floats:
    """The scores of an ensemble itself, by the trees that count, times the number of all trees over theirs.

    Some rows at a time: their leaves are not needed again.
    """
    source, unseen = part.source, part.unseen(X.shape[0])
    values = source.leaf_values() * np.sqrt(len(source.n_leaves))
    scores, drawn_always = np.empty(X.shape[0]), np.empty(X.shape[0], bool)
    for rows in gen_batches(X.shape[0], _BLOCK_ROWS):
        numbers = source.leaf_numbers(_safe_indexing(X, rows))
        matrix = LeafMatrix.of(numbers, source.n_leaves, None if unseen is None else unseen[rows])
        scores[rows], drawn_always[rows] = matrix @ values, matrix.squared_norms() == 0
    # where no tree is left, the mean says nothing, and nothing wrong
    scores[drawn_always] = scores[~drawn_always].mean() if not drawn_always.all() else 0.0
    return scores


def _leaves_with_values(grove: Grove, X: Any) -> tuple[LeafMatrix, LeafMatrix]:
    """All and honest leaves in the trees of the ensembles whose leaves get values."""
    chosen = Grove(tuple(part for part in grove.parts if part.gets_values))
    whole = LeafMatrix.of(chosen.leaf_numbers(X), chosen.n_leaves)
    unseen = chosen.unseen(len(whole))
    return whole, whole if unseen is None else LeafMatrix.of(whole.leaves, chosen.n_leaves, unseen)


def new_leaf_values(grove: Grove, coef: NDArray[Any], freedom: float, priors: Sequence[Prior]) -> tuple[Floats, float]:
    """What each leaf adds to the score, and what the sum is above the score of the head.

    A leaf adds its own value, and the slope of the prior times what it adds to that.
    """
    of_leaves, of_priors = np.split(coef.astype(np.float64), [len(coef) - len(priors)])
    slopes = [freedom * v / prior.scale for v, prior in zip(of_priors, priors, strict=True)]
    root = np.sqrt(sum(len(part.source.n_leaves) for part in grove.parts if part.gets_values))
    starts = np.cumsum([0, *(part.source.n_leaves.sum() for part in grove.parts)])
    values = np.zeros(int(starts[-1]))
    used, of_prior = 0, iter(zip(slopes, priors, strict=True))
    for part, first, last in zip(grove.parts, starts, starts[1:], strict=False):
        if part.gets_values and len(of_leaves):  # none of the prior alone
            values[first:last] += of_leaves[used : used + last - first] / root
            used += last - first
        if part.is_prior:
            slope, prior = next(of_prior)
            values[first:last] += slope * prior.leaf_values
    return values, float(sum(slope * prior.centre for slope, prior in zip(slopes, priors, strict=True)))
