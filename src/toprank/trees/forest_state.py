"""What a saved `TopForest` must be: compiled loops follow its trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.saved_state import (
    FEATURES,
    HISTORY,
    TWO_CLASSES,
    Array,
    Items,
    Kind,
    Known,
    Number,
    Part,
    Schema,
    Table,
    count,
)
from toprank.trees.grove import Grove
from toprank.trees.plain_trees import PlainTrees
from toprank.trees.table_columns import TableColumns


def has_leaves_of(models: Sequence[Any], n_leaves: NDArray[Any]) -> bool:
    """Whether trees of ensembles have these numbers of leaves; compiled loops trust the numbers of leaves."""
    return bool(models) and np.array_equal(Grove.of_fitted(models).n_leaves, n_leaves)


def _splits_by_features(known: Known) -> bool:
    trees = known["trees_"]
    return trees is None or bool(trees.feature.max(initial=-1) < known["n_features_in_"])


def _has_its_leaves(known: Known) -> bool:
    if known["trees_"] is None:
        return has_leaves_of(known["sources_"], known["n_leaves_"])
    return np.array_equal(known["trees_"].n_leaves, known["n_leaves_"])


def _categories_of_features(known: Known) -> bool:
    return bool(max(known["_columns"].categories, default=-1) < known["n_features_in_"])


FOREST_STATE = Schema(
    {
        **FEATURES,
        "classes_": TWO_CLASSES,
        "_columns": Kind((TableColumns,)),
        "trees_": Kind((PlainTrees,), none=True),
        "sources_": Items(Part(("predict",))),
        "n_leaves_": Array("i8", (None,), low=1),
        "leaf_values_": Array("f8", (lambda known: int(known["n_leaves_"].sum()),)),
        "threshold_": Number(),
        "intercept_": Array("f8", (1,)),
        "objective_": Number(),
        "dual_objective_": Number(finite=False),
        "dual_gap_": Number(low=0, finite=False),
        "n_iter_": count(),
        "history_": HISTORY,
        "selection_": Table({"worth": Number(), "why": Kind((str,)), "candidates": Items(Kind((dict,)))}),
    },
    relations={
        "splits by its features": _splits_by_features,
        "categories of its features": _categories_of_features,
        "the leaves of its trees": _has_its_leaves,
    },
)
