"""A `TopForest` on rows in blocks: the sample that its trees grow on, the head over all rows, and scores.

1. Of the negatives a few are held out for the threshold: no tree and no head sees them.
2. Of the other rows a sample is drawn: all positives, up to a half of it, and random negatives. The trees are grown on
   it, and the head is chosen by it, as in one memory.
3. The head is fitted to all rows but those held out. A row of the sample has its honest leaves and priors, in trees
   that did not draw it; for all others, which no tree has seen, all trees count. So no label has shaped the features of
   its own row.

Who is drawn depends on the seed and on the numbers of the rows, not on the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_feature_names, _check_n_features

from toprank.arrays import Floats, Mask
from toprank.base import is_positive
from toprank.estimators._blocks import classes_of_blocks
from toprank.matrices.block_draw import drawn, random_numbers
from toprank.matrices.block_input import whole_rows
from toprank.matrices.block_order import Order
from toprank.matrices.block_tasks import Pieces, fetched, naming_failed, on_each, sent, stored
from toprank.matrices.block_vector import BlockVector
from toprank.matrices.dask_columns import array_of, beside, blocks_of, column_of, is_frame, lengths_of
from toprank.trees.forest_rows import rows_to_score
from toprank.trees.grove import Grove
from toprank.trees.head_choice import Candidate, to_fit, with_prior
from toprank.trees.leaf_files import kept
from toprank.trees.training_leaves import Prior, TrainingLeaves, unseen_leaves

# The share of the negatives that is held out for the threshold, and how many above it are enough.
_HELD_OUT, _ENOUGH_ABOVE = 0.1, 1000
# Rows of the sample in a block of the head.
_SAMPLE_BLOCK = 20_000


@dataclass(frozen=True)
class ForestBlocks:
    """Rows in blocks, with their labels, which of them are positive, and weights."""

    X: Any
    labels: Pieces
    positive: BlockVector
    weights: BlockVector

    @classmethod
    def of(cls, forest: Any, X: Any, y: Any, sample_weight: Any) -> ForestBlocks:
        """Check the blocks, in one pass for the labels and one for all, and set `classes_` of the forest."""
        X = X if is_frame(X) else whole_rows(X)
        lengths, blocks = lengths_of(X), blocks_of(X)
        labels = beside(lengths, y, "y")
        weights = [None] * len(blocks) if sample_weight is None else beside(lengths, sample_weight, "sample_weight")
        forest.classes_ = classes_of_blocks(forest, labels)
        columns, common = [blocks, labels, weights, range(len(blocks))], (forest.classes_, forest.trees is None)
        with naming_failed(blocks):
            pieces = stored(on_each(_checked, columns, *common))
            found = [int(n) for n in fetched(on_each(_length, [pieces]))]
        positive = BlockVector.of(stored(on_each(_positive, [pieces])), found, np.bool_)
        return cls(X, labels, positive, BlockVector.of(stored(on_each(_weights, [pieces])), found))

    def __len__(self) -> int:
        return len(self.positive)

    def rows(self, chosen: BlockVector) -> tuple[Any, Any, Floats]:
        """Rows, labels and weights under a mask, in their order, sent here."""
        blocks = blocks_of(self.X)
        with naming_failed(blocks):
            parts = fetched(chosen.tasks(_rows_with_labels, [blocks, self.labels, self.weights.pieces]))
        X, y, weights = zip(*parts, strict=True)
        return _one_below_the_other(X), np.concatenate(y), np.concatenate(weights)

    def everything(self) -> tuple[Any, Any, Floats]:
        """All rows, labels and weights."""
        return self.rows((self.weights >= 0).stored())

    def drawn(
        self, n_rows: int, budget: float, random: np.random.RandomState, checkpoint: Any = None
    ) -> SampledBlocks | None:
        """A sample of so many rows, and who is held out; None where there are no more rows than that."""
        counted = (self.weights > 0).stored()
        if np.count_nonzero(counted) <= n_rows:
            return None
        keys = random_numbers(self.positive, int(random.randint(2**31))).stored()
        positives, negatives = (counted & self.positive).stored(), (counted & ~self.positive).stored()
        n_negatives = int(np.count_nonzero(negatives))
        n_held_out = max(1, min(int(_HELD_OUT * n_negatives), int(np.ceil(_ENOUGH_ABOVE / budget))))
        held_out = drawn(negatives, n_held_out, keys)
        others = (negatives & ~held_out).stored()
        of_positives = drawn(positives, max(n_rows // 2, n_rows - n_negatives + n_held_out), keys)
        of_negatives = drawn(others, n_rows - int(np.count_nonzero(of_positives)), keys)
        rest = (counted & ~held_out & ~of_positives & ~of_negatives).stored()
        return SampledBlocks(self, (of_positives | of_negatives).stored(), rest, held_out, checkpoint)


@dataclass(frozen=True)
class SampledBlocks:
    """Rows in blocks, and which of them are the sample, held out for the threshold, or the rest."""

    blocks: ForestBlocks
    sample: BlockVector
    rest: BlockVector
    held_out: BlockVector
    checkpoint: Any
    """Where the head writes how far it is, or None."""

    def restored(self, rows: TrainingLeaves) -> Floats:
        """Weights of the sample by which each class has the weight that it has among all rows."""
        total, of_positives = self.blocks.weights.sum(), self.blocks.weights[self.blocks.positive].sum()
        weights, positive = rows.weights, rows.positive
        factors = of_positives / weights[positive].sum(), (total - of_positives) / weights[~positive].sum()
        return np.asarray(weights * np.where(positive, *factors))

    def fitted(
        self, head: Any, candidate: Candidate, rows: TrainingLeaves, grove: Grove, priors: Sequence[Prior], forest: Any
    ) -> Any:
        """A head with the parameters of a candidate, fitted to the sample, whose leaves are known, and to the rest."""
        of_sample = to_fit(rows, candidate)
        n, n_columns = of_sample.shape
        parts = [slice(start, start + _SAMPLE_BLOCK) for start in range(0, n, _SAMPLE_BLOCK)]
        lengths = [*self.rest.n_true, *(len(rows.weights[part]) for part in parts)]
        positive = [*self.blocks.positive[self.rest].pieces, *_pieces(rows.positive, parts)]
        weights = [*self.blocks.weights[self.rest].pieces, *_pieces(rows.weights, parts)]
        with TemporaryDirectory() as folder:
            of_rest = kept(self._leaves_of_rest(sent((grove, priors, candidate, forest)), n_columns), folder)
            X = array_of([*of_rest, *_pieces(of_sample, parts)], lengths, np.zeros((0, n_columns)))
            labels, of_rows = column_of(positive, lengths, np.bool_), column_of(weights, lengths, np.float64)
            head.set_params(**candidate.parameters)
            return head.fit(X, labels, sample_weight=of_rows, checkpoint=self.checkpoint)

    def _leaves_of_rest(self, tools: Any, n_columns: int) -> Pieces:
        """Leaves and priors of the rows that are neither in the sample nor held out, beside their blocks."""
        blocks = blocks_of(self.blocks.X)
        return self.rest.tasks(_leaves, [blocks, [tools] * len(blocks)], n_columns)

    def quantile(self, forest: Any) -> float:
        """The value of the decision function above which is the share τ of the negatives that were held out."""
        pieces = stored(blocks_of(lazy_scores(forest, self.blocks.X)))
        scores = BlockVector.of(pieces, self.blocks.positive.lengths)[self.held_out]
        weights = self.blocks.weights[self.held_out].stored()
        return Order.of(scores.stored(), weights).first_beyond(forest.tau * weights.sum())

    def told(self) -> dict[str, int]:
        """How many rows there are, and what for."""
        positive = self.blocks.positive
        return {
            "all": len(self.blocks),
            "sample": int(np.count_nonzero(self.sample)),
            "positives_in_sample": int(np.count_nonzero((self.sample & positive).stored())),
            "head": int(np.count_nonzero(self.sample)) + int(np.count_nonzero(self.rest)),
            "held_out": int(np.count_nonzero(self.held_out)),
        }


def lazy_scores(forest: Any, X: Any) -> Any:
    """A Dask array of what `decision_function` gives for each block."""
    X = X if is_frame(X) else whole_rows(X)
    _check_feature_names(forest, X._meta if is_frame(X) else X, reset=False)
    _check_n_features(forest, X, reset=False)
    light, blocks = copy(forest), blocks_of(X)
    if not is_frame(X):
        vars(light).pop("feature_names_in_", None)  # checked here, once for all blocks
    pieces = on_each(_scored, [blocks, [sent(light)] * len(blocks)])
    return column_of(pieces, lengths_of(X), np.float64)


@dataclass(frozen=True)
class _Checked:
    positive: Mask
    weights: Floats


def _checked(block: Any, labels: Any, weights: Any, number: int, classes: Any, reads_numbers: bool) -> _Checked:
    """Which rows of a block are positive, and their weights; an error names the block."""
    labels = np.asarray(labels)
    if issparse(block):
        raise ValueError(f"block {number} of X is sparse, and trees read dense rows; use map_blocks to make it dense")
    if len(block) != len(labels):
        raise ValueError(f"block {number} of X has {len(block)} rows, its y has {len(labels)}")
    if reads_numbers and _has_infinity(block):
        raise ValueError(f"block {number} of X has infinity or a number too large for float32; use NaN for gaps")
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != labels.shape or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"block {number} of sample_weight must have {len(labels)} numbers, none negative or NaN")
    return _Checked(is_positive(labels, classes), weights)


def _has_infinity(block: Any) -> bool:
    """Whether a number is infinite in single precision."""
    if hasattr(block, "select_dtypes"):
        block = block.select_dtypes("number").to_numpy(dtype=np.float64, na_value=np.nan)
    with np.errstate(over="ignore"):
        return bool(np.isinf(np.asarray(block).astype(np.float32)).any())


def _length(checked: _Checked) -> int:
    return len(checked.positive)


def _positive(checked: _Checked) -> Mask:
    return checked.positive


def _weights(checked: _Checked) -> Floats:
    return checked.weights


def _some(block: Any, chosen: Mask) -> Any:
    """Rows of an array or a frame under a mask."""
    return block.iloc[np.flatnonzero(chosen)] if hasattr(block, "iloc") else np.asarray(block)[chosen]


def _rows_with_labels(chosen: Mask, block: Any, labels: Any, weights: Floats) -> tuple[Any, Any, Floats]:
    return _some(block, chosen), np.asarray(labels)[chosen], weights[chosen]


def _one_below_the_other(parts: Sequence[Any]) -> Any:
    if not hasattr(parts[0], "iloc"):
        return np.concatenate(parts)
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]

    return pd.concat(parts)


def _pieces(rows: Any, parts: Sequence[slice]) -> Pieces:
    """Rows of this memory in blocks, sent once."""
    return stored([sent(rows[part]) for part in parts])


def _leaves(rest: Mask, block: Any, tools: Any, n_columns: int) -> Any:
    """Leaves and priors of some rows of a block, as the head reads them."""
    grove, priors, candidate, forest = tools
    if not rest.any():
        return np.zeros((0, n_columns))
    rows = _some(block, rest)
    leaves, prior = unseen_leaves(grove, rows_to_score(forest, rows) if forest.trees is None else rows, priors)
    return with_prior(leaves, prior, candidate)


def _scored(block: Any, forest: Any) -> Floats:
    return np.asarray(forest.decision_function(block)) if len(block) else np.zeros(0)
