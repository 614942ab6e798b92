"""The one rule for sample weights in the top family: linear, kernels and PatMat alike."""

from __future__ import annotations

import warnings

import numpy as np

from toprank.arrays import Floats, Mask
from toprank.formulations.formulation import Formulation

# Weights in between are taken as they are.
_SMALL, _LARGE = 1e-100, 1e100


def usable_weights(weights: Floats, positive: Mask, formulation: Formulation) -> Floats:
    """Weights of a moderate scale, and zero for rows that cannot change the result at double precision.

    1. Only their ratios count, unless a number of rows k is given: scale them by a power of two, which is exact, if the
       largest is far from 1.
    2. A weight is negligible where it moves neither the mean loss nor the threshold by a rounding error, whatever the
       scores. How small that is depends on how fast the loss grows; to a largest score every row counts.
    """
    largest = float(weights.max())
    threshold = formulation.threshold
    if not _SMALL <= largest <= _LARGE:
        if threshold.k is not None:
            raise ValueError(
                f"the largest sample weight is {largest:.0e}, too far from 1 for k={threshold.k:g} rows; divide the "
                "weights by it"
            )
        weights = np.ldexp(weights, -int(np.frexp(largest)[1]))
    used = weights > 0
    if not (used & positive).any() or not (used & ~positive).any():
        return weights
    negligible = np.flatnonzero(used)[formulation.negligible(positive[used], weights[used])]
    if len(negligible):
        warnings.warn(
            f"{len(negligible)} of {np.count_nonzero(used)} rows were left out: their sample weights, at most "
            f"{weights[negligible].max() / weights.max():.0e} of the largest, cannot change the result at double "
            "precision",
            UserWarning,
            stacklevel=5,
        )
        weights = weights.copy()
        weights[negligible] = 0.0
    return weights
