"""Dask arrays as rows: what is learned from, and scores of them that Dask computes when they are asked for."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import _check_feature_names, _check_n_features

from toprank.arrays import Floats, Mask, Rows
from toprank.base import check_largest, is_positive, two_classes
from toprank.exceptions import InputError
from toprank.matrices.block_matrix import BlockMatrix, entries
from toprank.matrices.block_tasks import fetched, naming_failed, on_each, stored
from toprank.matrices.block_vector import BlockVector
from toprank.matrices.dask_columns import beside, blocks_of, is_frame, lengths_of, numbers_of_frame, row_by_row

# Labels of a block that are sent: of more than two classes there is an error.
_MOST_LABELS = 5
# The smallest weight as a part of the largest.
_SMALLEST_WEIGHT = 1e-12


@dataclass(frozen=True)
class Labelled:
    """Rows in blocks, with which are positive and their weights."""

    X: BlockMatrix
    positive: Any
    weights: Any


def labelled_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Labelled:
    """Check the blocks, in one pass for the labels and one for all, and set `classes_` of the estimator."""
    X = _checked_columns(estimator, X, reset=True)
    blocks, labels = blocks_of(X), beside(lengths_of(X), y, "y")
    weights = [None] * len(blocks) if sample_weight is None else beside(lengths_of(X), sample_weight, "sample_weight")
    estimator.classes_ = _classes(estimator, labels)
    numbers = list(range(len(blocks)))
    with naming_failed(blocks):
        pieces = stored(on_each(_checked, [blocks, labels, weights, numbers], estimator.classes_, X.shape[1]))
        facts = fetched(on_each(_facts, [pieces]))
    _check_all(facts)
    lengths = [fact.n_rows for fact in facts]
    dtype = np.result_type(*(fact.dtype for fact in facts))
    nnz = sum(fact.nnz for fact in facts)
    matrix = BlockMatrix(blocks, on_each(_used, [pieces]), tuple(lengths), X.shape[1], nnz, dtype)
    positive = BlockVector.of(stored(on_each(_positive, [pieces])), lengths, np.bool_)
    return Labelled(matrix, positive, BlockVector.of(stored(on_each(_weights, [pieces])), lengths))


def lazy_scores(model: Any, X: Any) -> Any:
    """A Dask array of what `decision_function` gives for each block."""
    X = _checked_columns(model, X, reset=False)
    light = copy(model)
    for name in ("_solution", "feature_names_in_"):  # the names are checked here, once for all blocks
        vars(light).pop(name, None)
    return row_by_row(_scored, X, light, dtype=model.intercept_.dtype)


def _scored(block: Any, model: Any) -> Any:
    return model.decision_function(block)


def _checked_columns(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A Dask array whose blocks have all columns; number and names of these are set or checked, as with pandas."""
    _check_feature_names(estimator, X._meta if is_frame(X) else X, reset=reset)
    X = _rows(numbers_of_frame(X) if is_frame(X) else X)
    _check_n_features(estimator, X, reset=reset)
    return X


def _rows(X: Any) -> Any:
    if not hasattr(X, "to_delayed") or not hasattr(X, "rechunk"):
        raise InputError.saying(
            "X is a {kind} of Dask; use a Dask array or dataframe of two dimensions", kind=type(X).__name__
        )
    if X.ndim != 2:
        raise InputError.saying("X must have two dimensions, got a Dask array of {ndim}", ndim=X.ndim)
    if np.isnan(X.shape[1]):
        raise InputError.saying("X must have a known number of columns; use compute_chunk_sizes() on it")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _classes(estimator: Any, labels: list[Any]) -> Any:
    """The two classes, of the labels of all blocks."""
    found = [part for part in fetched(on_each(_distinct, [labels])) if len(part[0])]
    if not found:
        raise InputError.saying("X has no rows")
    values, counts = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return two_classes(values, estimator, estimator.pos_label, counts=counts)


def _distinct(labels: Any) -> tuple[Any, Any]:
    values, counts = np.unique(np.asarray(labels), return_counts=True)
    return values[:_MOST_LABELS], counts[:_MOST_LABELS]


@dataclass(frozen=True)
class _Facts:
    n_rows: int
    n_positive: int
    nnz: int
    dtype: Any
    largest: float
    weights: tuple[float, float]
    """The smallest and the largest weight above zero."""


@dataclass(frozen=True)
class _Checked:
    used: Rows | None
    positive: Mask
    weights: Floats
    facts: _Facts


def _checked(block: Any, labels: Any, weights: Any, number: int, classes: Any, n_features: int) -> _Checked:
    """The rows of a block that have a weight, and what is known of them; an error names the block."""
    X, labels = entries(block, None), np.asarray(labels)
    if X.shape != (len(labels), n_features):
        raise ValueError(f"block {number} of X has the shape {X.shape}, its y has {len(labels)} rows of {n_features}")
    values = X.data if issparse(X) else X
    if not np.isfinite(values).all():
        raise ValueError(f"block {number} of X contains NaN or infinity; fill the gaps first")
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != labels.shape or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"block {number} of sample_weight must have {len(labels)} numbers, none negative or NaN")
    positive, kept = is_positive(labels, classes), weights > 0
    used = None if kept.all() else np.flatnonzero(kept)
    positive, weights = positive[kept], weights[kept]
    largest = float(max(values.max(), -values.min())) if values.size else 0.0
    ends = (float(weights.min()), float(weights.max())) if len(weights) else (np.inf, 0.0)
    nnz = int(X.nnz) if issparse(X) else X.size
    facts = _Facts(len(weights), int(positive.sum()), nnz, X.dtype, largest, ends)
    return _Checked(used, positive, weights, facts)


def _check_all(facts: list[_Facts]) -> None:
    n, m = sum(fact.n_rows for fact in facts), sum(fact.n_positive for fact in facts)
    if m in (0, n):
        raise ValueError("rows of both classes with a weight above zero are needed; only one class is left")
    check_largest(max(fact.largest for fact in facts))
    smallest, largest = min(fact.weights[0] for fact in facts), max(fact.weights[1] for fact in facts)
    if smallest < _SMALLEST_WEIGHT * largest or not 1e-100 <= largest <= 1e100:
        raise InputError.saying(
            "the weights above zero are from {smallest:.0e} to {largest:.0e}, too far apart or from 1 for rows in "
            "blocks; scale them, or set the smallest to zero",
            smallest=smallest,
            largest=largest,
        )


def _facts(checked: _Checked) -> _Facts:
    return checked.facts


def _used(checked: _Checked) -> Rows | None:
    return checked.used


def _positive(checked: _Checked) -> Mask:
    return checked.positive


def _weights(checked: _Checked) -> Floats:
    return checked.weights
