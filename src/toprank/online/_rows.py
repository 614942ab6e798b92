"""Rows as the compiled loops get them, and the small steps that all loops share.

No loop of this package allows the compiler to reorder or fuse sums: the bits of a model depend on its rows alone, not
on the machine nor on whether the code was compiled a moment ago or came from the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from toprank.arrays import Floats, Mask
from toprank.compiled import compiled, part
from toprank.saved_state import Array

SMALLEST_SCALE = 1e-100
_STEP = 2.0**-53  # between two shares
# Rules for a factor that `discount` changes, and for the state of the generator.
SCALE = Array("f8", (1,), low=SMALLEST_SCALE, high=1.0)
RANDOM = Array("u8", (1,))


class Rows(NamedTuple):
    """A batch of rows in CSR form: sorted columns, no zeros, no duplicates; weights are positive."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: Floats
    positive: Mask
    weights: Floats


class Scores(NamedTuple):
    """The last scores of each class, given before the model learned from the row.

    `recent` is a ring for each class, `number` the number of scores that were put there.
    """

    recent: Floats
    number: NDArray[np.int64]


@part()
def record(recent: Any, number: Any, label: Any, score: Any) -> None:
    """Put a score into the ring of its class."""
    recent[label, number[label] % recent.shape[1]] = score
    number[label] += 1


@part()
def sparse_dot(dense: Any, indices: Any, values: Any) -> Any:
    """dense[indices] @ values."""
    total = 0.0
    for k in range(len(indices)):
        total += dense[indices[k]] * values[k]
    return total


@part()
def discount(base: Any, scale: Any, factor: Any) -> None:
    """Multiply scale·base by a factor, which costs one multiplication but for once in a long while."""
    scale[0] *= factor
    if scale[0] < SMALLEST_SCALE:
        for i in range(len(base)):
            base[i] *= scale[0]
        scale[0] = 1.0


def scores_of(X: Any, weights: Floats) -> Floats:
    """X·w by the sums of the loops, so that a row has the score, to the last bit, that it had when it was learned."""
    scores = np.zeros(X.shape[0])
    if issparse(X):
        X = csr_array(X, dtype=np.float64)
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False)
        _add_sparse_scores(indptr, indices, X.data, weights, scores)
    elif X.flags.f_contiguous and not X.flags.c_contiguous:
        _add_column_scores(X, weights, scores)
    else:
        _add_dense_scores(np.ascontiguousarray(X), weights, scores)
    return scores


@compiled(nogil=True)
def _add_sparse_scores(indptr: Any, indices: Any, values: Any, weights: Any, scores: Any) -> None:
    for t in range(len(scores)):
        scores[t] = sparse_dot(weights, indices[indptr[t] : indptr[t + 1]], values[indptr[t] : indptr[t + 1]])


@compiled(nogil=True)
def _add_dense_scores(X: Any, weights: Any, scores: Any) -> None:
    for t in range(len(scores)):
        total = 0.0
        for i in range(len(weights)):
            total += weights[i] * X[t, i]
        scores[t] = total


@compiled(nogil=True)
def _add_column_scores(X: Any, weights: Any, scores: Any) -> None:
    """The same sums, in the order in which the columns are in memory."""
    for i in range(len(weights)):
        for t in range(len(scores)):
            scores[t] += weights[i] * X[t, i]


@part()
def random_bits(state: Any) -> Any:
    """The next 64 bits of the generator splitmix64, whose state is one number."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@part()
def random_share(state: Any) -> Any:
    """A number in [0, 1) with 53 random bits."""
    return np.float64(random_bits(state) >> np.uint64(11)) * _STEP
