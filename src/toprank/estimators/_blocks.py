"""Dask arrays as rows of two classes: what the top family learns from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from toprank.base import check_largest, is_positive, two_classes
from toprank.exceptions import InputError
from toprank.matrices.block_input import Facts, GivenRows
from toprank.matrices.block_matrix import BlockMatrix
from toprank.matrices.block_tasks import Pieces, fetched, on_each

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
    given = GivenRows.of(estimator, X, y, sample_weight)
    estimator.classes_ = classes_of_blocks(estimator, given.labels)
    rows = given.checked(partial(is_positive, classes=estimator.classes_), np.bool_)
    _check_all(rows.facts)
    return Labelled(rows.X, rows.codes, rows.weights)


def classes_of_blocks(estimator: Any, labels: Pieces) -> Any:
    """The two classes, of the labels of all blocks."""
    found = [part for part in fetched(on_each(_distinct, [labels])) if len(part[0])]
    if not found:
        raise InputError.saying("X has no rows")
    values, counts = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return two_classes(values, estimator, estimator.pos_label, counts=counts)


def _distinct(labels: Any) -> tuple[Any, Any]:
    values, counts = np.unique(np.asarray(labels), return_counts=True)
    return values[:_MOST_LABELS], counts[:_MOST_LABELS]


def _check_all(facts: Facts) -> None:
    if len(facts.codes) < 2:
        raise ValueError("rows of both classes with a weight above zero are needed; only one class is left")
    check_largest(facts.largest)
    smallest, largest = facts.weights
    if smallest < _SMALLEST_WEIGHT * largest or not 1e-100 <= largest <= 1e100:
        raise InputError.saying(
            "the weights above zero are from {smallest:.0e} to {largest:.0e}, too far apart or from 1 for rows in "
            "blocks; scale them, or set the smallest to zero",
            smallest=smallest,
            largest=largest,
        )
