"""Dask arrays as users give them: checked block by block, and scores of them that Dask computes when asked for."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import _check_feature_names, _check_n_features

from toprank.arrays import Floats, Rows
from toprank.exceptions import InputError
from toprank.matrices.block_matrix import BlockMatrix, entries
from toprank.matrices.block_tasks import Counted, Pieces, fetched, naming_failed, on_each, places_of, sent, stored
from toprank.matrices.block_vector import BlockVector, in_short
from toprank.matrices.dask_columns import beside, blocks_of, is_frame, lengths_of, numbers_of_frame, row_by_row
from toprank.matrices.own_storage import OwnStorage


@dataclass(frozen=True)
class Facts:
    """What is known of the rows in use of a block, or of all."""

    n_rows: int
    takes_all: bool
    """Whether no row was left out."""
    codes: NDArray[Any]
    """The different codes of their labels."""
    nnz: int
    dtype: Any
    largest: float
    """The largest absolute value of all rows of the block."""
    weights: tuple[float, float]
    """The smallest and the largest weight above zero."""


@dataclass(frozen=True)
class CheckedRows:
    """The rows that have a weight, in blocks, with a code of each label."""

    X: BlockMatrix
    codes: BlockVector
    weights: BlockVector
    facts: Facts


@dataclass(frozen=True)
class GivenRows:
    """Blocks of rows, with pieces of labels and weights beside them; nothing is computed yet."""

    blocks: Pieces
    labels: Pieces
    weights: Pieces
    n_features: int

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> GivenRows:
        """The arguments of `fit`; number and names of the columns are kept by the estimator."""
        X = checked_columns(estimator, X, reset=True)
        blocks, lengths = blocks_of(X), lengths_of(X)
        labels = beside(lengths, y, "y")
        weights = [None] * len(blocks) if sample_weight is None else beside(lengths, sample_weight, "sample_weight")
        return cls(blocks, labels, weights, X.shape[1])

    def checked(self, code: Callable[[Any], Any], dtype: Any) -> CheckedRows:
        """Check all in one pass; `code` makes numbers of a type of the labels of a block."""
        numbers = list(range(len(self.blocks)))
        with naming_failed(self.blocks):
            # where the labels are, so that little is sent if the rows are elsewhere
            coded = on_each(_coded, [self.labels], code)
            columns = [self.blocks, coded, self.weights, numbers]
            # all that follows is made of these pieces, and so is where the rows are
            pieces = stored(on_each(_checked, columns, self.n_features, at=places_of(self.blocks)))
            of_blocks = fetched(on_each(_facts, [pieces]))
        lengths, facts = [fact.n_rows for fact in of_blocks], _of_all(of_blocks)
        used = [None] * len(pieces) if facts.takes_all else stored(on_each(_used, [pieces]))
        matrix = BlockMatrix(self.blocks, used, tuple(lengths), self.n_features, facts.nnz, facts.dtype)
        codes = BlockVector.of(stored(on_each(_codes, [pieces])), lengths, dtype)
        return CheckedRows(matrix, codes, BlockVector.of(stored(on_each(_weights, [pieces])), lengths), facts)


def lazy_scores(model: Any, X: Any, dtype: Any) -> Any:
    """A Dask array of what `decision_function` gives for each block."""
    X = checked_columns(model, X, reset=False)
    light = copy(model)
    for name in ("_solution", "feature_names_in_"):  # the names are checked here, once for all blocks
        vars(light).pop(name, None)
    return row_by_row(_scored, X, sent(light), dtype, dtype=dtype)


def _scored(block: Any, model: Any, dtype: Any) -> Any:
    return model.decision_function(block) if block.shape[0] else np.zeros(0, dtype)  # no model scores no rows


def checked_columns(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A Dask array whose blocks have all columns; number and names of these are set or checked, as with pandas."""
    _check_feature_names(estimator, X._meta if is_frame(X) else X, reset=reset)
    X = whole_rows(numbers_of_frame(X) if is_frame(X) else X)
    _check_n_features(estimator, X, reset=reset)
    return X


def whole_rows(X: Any) -> Any:
    """A Dask array of two dimensions whose blocks have all columns."""
    if not hasattr(X, "to_delayed") or not hasattr(X, "rechunk"):
        raise InputError.saying(
            "X is a {kind} of Dask; use a Dask array or dataframe of two dimensions", kind=type(X).__name__
        )
    if X.ndim != 2:
        raise InputError.saying("X must have two dimensions, got a Dask array of {ndim}", ndim=X.ndim)
    if np.isnan(X.shape[1]):
        raise InputError.saying("X must have a known number of columns; use compute_chunk_sizes() on it")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


@dataclass(frozen=True)
class _Coded(Counted):
    """Codes of labels in few bytes: a bit each where there are two."""

    packed: NDArray[Any]
    length: int
    dtype: Any

    def codes(self) -> NDArray[Any]:
        """The codes themselves."""
        if self.dtype == np.bool_:
            return np.unpackbits(self.packed, count=self.length).view(np.bool_)
        return self.packed.astype(self.dtype)


def _coded(labels: Any, code: Callable[[Any], Any]) -> _Coded:
    codes = code(np.asarray(labels))
    if codes.dtype == np.bool_:
        return _Coded(np.packbits(codes), len(codes), codes.dtype)
    return _Coded(codes.astype(np.min_scalar_type(codes.max(initial=0))), len(codes), codes.dtype)


@dataclass(frozen=True)
class _CheckedBlock(Counted):
    used: Rows | None
    codes: NDArray[Any]
    weights: Floats
    facts: Facts


def _checked(block: Any, coded: _Coded, weights: Any, number: int, n_features: int) -> _CheckedBlock:
    """The rows of a block that have a weight, and what is known of them; an error names the block."""
    X, n = entries(block, None), coded.length
    if X.shape != (n, n_features):
        raise ValueError(f"block {number} of X has the shape {X.shape}, its y has {n} rows of {n_features}")
    # a storage of our own holds what was checked when it was made
    values = np.ones(1) if isinstance(X, OwnStorage) else X.data if issparse(X) else X
    if not np.isfinite(values).all():
        raise ValueError(f"block {number} of X contains NaN or infinity; fill the gaps first")
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"block {number} of sample_weight must have {n} numbers, none negative or NaN")
    codes, kept = coded.codes(), weights > 0
    used = None if kept.all() else np.flatnonzero(kept)
    codes, weights = codes[kept], weights[kept]
    largest = float(max(values.max(), -values.min())) if values.size else 0.0
    ends = (float(weights.min()), float(weights.max())) if len(weights) else (np.inf, 0.0)
    nnz = X.size if isinstance(X, np.ndarray) else int(X.nnz)
    return _CheckedBlock(
        used, codes, in_short(weights), Facts(len(weights), used is None, np.unique(codes), nnz, X.dtype, largest, ends)
    )


def _of_all(facts: list[Facts]) -> Facts:
    return Facts(
        sum(fact.n_rows for fact in facts),
        all(fact.takes_all for fact in facts),
        np.unique(np.concatenate([fact.codes for fact in facts])),
        sum(fact.nnz for fact in facts),
        np.result_type(*(fact.dtype for fact in facts)),
        max(fact.largest for fact in facts),
        (min(fact.weights[0] for fact in facts), max(fact.weights[1] for fact in facts)),
    )


def _facts(checked: _CheckedBlock) -> Facts:
    return checked.facts


def _used(checked: _CheckedBlock) -> Rows | None:
    return checked.used


def _codes(checked: _CheckedBlock) -> Any:
    return checked.codes


def _weights(checked: _CheckedBlock) -> Floats:
    return checked.weights
