"""The sets of the benchmarks of what is worth at the top, and the rows of them that are used."""

import functools

import numpy as np

from toprank.datasets import binarize, load, load_task

# Set and number of splits.
SETS = {
    "oil_spill": 10,
    "yeast": 10,
    "abalone": 10,
    "winequality-white": 10,
    "satimage": 10,
    "mammography": 10,
    "hiva": 10,
    "letter": 5,
    "bank_marketing": 3,
    "protein_homo": 3,
    "creditcard_fraud": 3,
}


@functools.cache
def load_set(name):
    """X in float32 and y; of white wine the bad ones, quality 4 or lower."""
    if name == "winequality-white":
        data = load(name)
        return data.X.astype(np.float32), binarize(data.y, positive=(3, 4))
    data = load_task(name)
    return data.X.astype(np.float32), data.y


def some_rows(y, rows, seed, most):
    """All rows, or `most` of them: the positives, up to a half, and random negatives."""
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng(seed)
    positives, negatives = rng.permutation(rows[y[rows] == 1]), rng.permutation(rows[y[rows] == 0])
    positives = positives[: most // 2]
    return np.sort(np.concatenate([positives, negatives[: most - len(positives)]]))
