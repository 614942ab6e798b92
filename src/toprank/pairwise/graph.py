"""Which rows are preferred to which: levels with a preference graph, explicit pairs of rows, weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.arrays import Floats
from toprank.metrics.pairwise import Graph, edge_strengths

Ints = NDArray[np.int64]
MAX_LEVELS = 1000


def strength_matrix(graph: Graph, levels: NDArray[Any]) -> Floats:
    """Strength of the preference of level a to level b at [a, b]; levels count from worst to best."""
    n_levels = len(levels)
    if n_levels > MAX_LEVELS:
        raise ValueError(
            f"y has {n_levels} levels, more than {MAX_LEVELS}; cut it into fewer with toprank.datasets.discretize"
        )
    if isinstance(graph, str):
        if graph == "full":
            return np.tri(n_levels, k=-1)
        if graph == "chain":
            return np.eye(n_levels, k=-1)
        raise ValueError(f"graph must be 'full', 'chain' or a list of edges, got {graph!r}")
    matrix = np.zeros((n_levels, n_levels))
    for better, row in edge_strengths(graph, levels).items():
        for worse, strength in row.items():
            matrix[better, worse] = strength
    return matrix


@dataclass(frozen=True)
class Preferences:
    """Preferences between the rows of a data set, all of positive weight.

    A row i of level a is preferred to a row j of level b with the weight ``strengths[a, b] * weights[i] * weights[j]``;
    besides, ``pairs[p, 0]`` is preferred to ``pairs[p, 1]`` with the weight ``pair_weights[p]``, which includes those
    of the rows.
    """

    level: Ints
    strengths: Floats
    weights: Floats
    pairs: Ints
    pair_weights: Floats

    @property
    def masses(self) -> Floats:
        """The sum of the weights of each level."""
        return level_masses(self.level, self.weights, len(self.strengths))

    @property
    def total(self) -> float:
        """The sum of the weights of all pairs."""
        masses = self.masses
        return float(masses @ self.strengths @ masses) + float(self.pair_weights.sum())


def level_masses(level: Ints, weights: Floats, n_levels: int) -> Floats:
    """The sum of the weights of each level."""
    return np.asarray(np.bincount(level, weights, minlength=n_levels), dtype=np.float64)


def check_pairs(pairs: ArrayLike | None, pair_weight: ArrayLike | None, n_rows: int) -> tuple[Ints, Floats]:
    """Explicit pairs (better row, worse row) as an integer array of two columns, with their weights."""
    if pairs is None:
        if pair_weight is not None:
            raise ValueError("pair_weight was given without pairs")
        return np.zeros((0, 2), np.int64), np.zeros(0)
    array = np.asarray(pairs)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            "pairs must be integers of shape (n_pairs, 2), the numbers of the better and the worse row; got "
            f"{array.dtype} of shape {array.shape}"
        )
    wrong = array[(array < 0) | (array >= n_rows)]
    if wrong.size:
        raise ValueError(f"pairs name row {wrong[0]}, but X has the rows 0 to {n_rows - 1}")
    if np.any(array[:, 0] == array[:, 1]):
        raise ValueError(f"pairs prefer row {array[array[:, 0] == array[:, 1]][0, 0]} to itself")
    weights = np.ones(len(array)) if pair_weight is None else np.asarray(pair_weight, dtype=np.float64)
    if weights.shape != (len(array),) or not np.all((weights >= 0) & (weights < np.inf)):
        raise ValueError(
            f"pair_weight must be {len(array)} finite numbers of at least 0, one for each pair; got an array of shape "
            f"{weights.shape}"
        )
    return array.astype(np.int64), weights
