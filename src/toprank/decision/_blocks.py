"""Thresholds on Dask arrays and dataframes: who is held out, and order statistics, without gathering rows or scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, has_fit_parameter

from toprank.arrays import Floats, Mask, is_dask
from toprank.decision._labels import Coding, coding_of
from toprank.exceptions import InputError
from toprank.matrices.block_draw import random_numbers, row_numbers
from toprank.matrices.block_order import Order
from toprank.matrices.block_statistics import kth_largest
from toprank.matrices.block_tasks import Pieces, fetched, on_each, stored
from toprank.matrices.block_vector import BlockVector
from toprank.matrices.dask_columns import beside, blocks_of, column_of, is_frame, lengths_of
from toprank.ranking.tie_runs import label_column, require_present

# Labels of a block that are sent: of more than two there is an error.
_MOST_LABELS = 5


@dataclass(frozen=True)
class LabelledBlocks:
    """Rows of a Dask array or dataframe, with their labels."""

    X: Any
    labels: Pieces
    """As an estimator inside gets them."""
    positive: BlockVector
    kept: BlockVector
    """Which rows no weight of zero removes."""
    params: Mapping[str, Any]
    """Arguments of `fit`."""
    coding: Coding

    def fitted(self, estimator: Any, chosen: BlockVector | None = None) -> Any:
        """The estimator, fitted to some rows: the weights of all others are zero."""
        dtype = self.coding.codes(np.asarray(self.coding.classes)).dtype
        labels = column_of(self.labels, self.kept.lengths, dtype)
        params = dict(self.params)
        if chosen is not None:
            if not has_fit_parameter(estimator, "sample_weight"):
                raise InputError.saying(
                    "{name} takes no sample_weight, by which rows of Dask are held out; fit it first, and wrap it in "
                    "sklearn.frozen.FrozenEstimator",
                    name=type(estimator).__name__,
                )
            given = params.get("sample_weight")
            weights = [] if given is None else [beside(self.kept.lengths, given, "sample_weight")]
            pieces = chosen.tasks(_weights_of, weights)
            params["sample_weight"] = column_of(pieces, self.kept.lengths, np.float64)
        return estimator.fit(self.X, labels, **params)


def labelled_blocks(wrapper: Any, X: Any, y: Any, params: Mapping[str, Any]) -> LabelledBlocks:
    """Check labels and weights, each block beside its rows; what is in X is the business of the wrapped estimator."""
    X = X.rechunk({1: -1}) if not is_frame(X) and X.numblocks[1] > 1 else X
    labels = stored(on_each(_checked_labels, [beside(lengths_of(X), y, "y")]))
    facts = fetched(on_each(_label_facts, [labels]))
    lengths = [n for n, _, _ in facts]
    found = [(values, counts) for _, values, counts in facts if len(values)]
    if not found:
        raise InputError.saying("X has no rows")
    values, counts = (np.concatenate(column) for column in zip(*found, strict=True))
    coding = coding_of(wrapper, values, counts)
    given = {name: value for name, value in params.items() if value is not None}
    weights = [
        beside(lengths, value, name)
        for name, value in given.items()
        if name.rsplit("__", 1)[-1] == "sample_weight" and (is_dask(value) or np.ndim(value) == 1)
    ]
    kept = BlockVector.of(stored(on_each(_kept, [labels, *weights])), lengths, np.bool_)
    classes = np.asarray(coding.classes)
    positive = BlockVector.of(stored(on_each(_is_class, [labels], classes[1])), lengths, np.bool_)
    for of, label in zip((~positive, positive), classes.tolist(), strict=True):
        if of.any() and not (kept & of).any():
            raise ValueError(
                f"without the rows whose sample_weight is 0 the class {label!r} is missing; every class needs rows "
                "with a positive weight"
            )
    return LabelledBlocks(X, on_each(_coded, [labels], coding), positive, kept, given, coding)


def held_out_rows(candidates: BlockVector, share: float, shuffle: bool, random_state: Any) -> tuple[BlockVector, float]:
    """Which rows are held out, a share of some, at random or the last; and the number of the first of them.

    The random part of a row depends on the seed and on its number, so the blocks do not matter.
    """
    n = int(np.ceil(share * int(np.count_nonzero(candidates))))
    seed = int(check_random_state(random_state).randint(2**31)) if shuffle else None
    keys = (row_numbers(candidates) if seed is None else random_numbers(candidates, seed)).stored()
    smallest = kth_largest(keys[candidates], n)
    held_out: BlockVector = candidates & (keys >= smallest)
    return held_out.stored(), smallest


def before(rows: BlockVector, number: float) -> BlockVector:
    """Which rows come before that of a number."""
    earlier: BlockVector = row_numbers(rows) < number
    return earlier


def scores_in_blocks(scores: Any, rows: BlockVector) -> BlockVector:
    """The scores of some rows, out of a Dask array of all."""
    vector = BlockVector.of(stored(blocks_of(scores)), rows.lengths, scores.dtype)
    chosen: BlockVector = vector[rows]
    return chosen


def best_in_blocks(scores: Any, k: int | None, share: float | None, rounding: float) -> Any:
    """A Dask array of which rows are among the k best, or the best share; of equal ones the first are taken."""
    pieces = stored(blocks_of(scores))
    lengths = [int(n) for n in fetched(on_each(len, [pieces]))]
    vector, n = BlockVector.of(pieces, lengths, scores.dtype), sum(lengths)
    wanted = min(n, int(np.floor(share * n * (1 + rounding))) if share is not None else int(k or 0))
    counts = Order.of(vector, None).cut(wanted)
    return column_of(on_each(_best, [pieces, counts.tolist()]), lengths, np.bool_)


def _checked_labels(labels: Any) -> Any:
    column = label_column(np.asarray(labels), "y")
    require_present(column, "y", "drop such rows")
    return column


def _label_facts(labels: Any) -> tuple[int, Any, Any]:
    values, counts = np.unique(labels, return_counts=True)
    return len(labels), values[:_MOST_LABELS], counts[:_MOST_LABELS]


def _kept(labels: Any, *weights: Any) -> Mask:
    kept = np.ones(len(labels), dtype=bool)
    for weight in weights:
        check_consistent_length(labels, weight)
        kept &= np.asarray(weight) != 0
    return kept


def _is_class(labels: Any, label: Any) -> Mask:
    return np.asarray(labels == label, dtype=bool)


def _coded(labels: Any, coding: Coding) -> Any:
    return coding.codes(labels)


def _weights_of(chosen: Mask, *weights: Any) -> Floats:
    """Weights of which those of the rows that are not chosen are zero."""
    return np.where(chosen, np.asarray(weights[0], dtype=np.float64) if weights else 1.0, 0.0)


def _best(scores: Any, count: int) -> Mask:
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[np.argsort(-scores, kind="stable")[:count]] = True
    return chosen
