"""The few operations that the second-order solvers need of a matrix, dense or CSR.

Dense products are BLAS calls; the sparse sandwich product is a compiled loop over the rows that take part.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse import issparse

Floats = NDArray[np.float64]
# Rows of a dense block that is scaled at a time: a few megabytes, whatever the number of rows.
_BLOCK_ENTRIES = 2_000_000


def sandwich(X: Any, weights: Floats, centre: Floats | None = None) -> Floats:
    """Lower triangle of Σ weightᵢ (xᵢ − centre)(xᵢ − centre)ᵀ in float64; rows of weight zero cost nothing.

    The dense product subtracts the centre first, which loses no digits in columns that hardly vary.
    """
    active = np.flatnonzero(weights)
    n_features = X.shape[1]
    if issparse(X):
        H = np.zeros((n_features, n_features))
        from toprank.solvers._kernels import csr_sandwich  # imports numba, which dense data do not need

        csr_sandwich(X.indptr, X.indices, X.data, active, weights, H)
        if centre is not None and len(active):
            mean = np.asarray(X.T @ weights, dtype=np.float64)
            H -= np.outer(mean, centre) + np.outer(centre, mean) - weights.sum() * np.outer(centre, centre)
        return H
    H = np.zeros((n_features, n_features))
    step = max(256, _BLOCK_ENTRIES // n_features)
    everything = len(active) == len(weights)
    for start in range(0, len(active), step):
        block = slice(start, start + step) if everything else active[start : start + step]
        root = np.sqrt(weights[block])[:, None]
        Z = X[block] * root if centre is None else (X[block] - centre) * root
        H += Z.T @ Z
    return H


class Cholesky:
    """Factor of a positive semidefinite matrix, of which the lower triangle is read, guarded against singularity.

    The matrix is scaled to a unit diagonal first. If it is not numerically positive definite, a growing multiple of the
    identity is added: a solver with a line search then takes a safe, slightly shorter step.
    """

    def __init__(self, H: Floats) -> None:
        diagonal = H.diagonal()
        self.scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scaled = H * self.scale * self.scale[:, None]
        guard = 0.0
        while True:
            matrix = scaled if guard == 0 else scaled + guard * np.eye(len(H))
            self.factor, failed = lapack.dpotrf(matrix, lower=1)
            if not failed:
                break
            guard = max(1e-14, 100 * guard)

    def solve(self, right: Floats) -> Floats:
        """Solve for one right-hand side, or for several as columns."""
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        solution, _ = lapack.dpotrs(self.factor, scale * right, lower=1)
        return np.asarray(scale * solution)


_controller: Any = None


def blas_threads(X: Any) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread unless the products with X are large: more threads slow small ones down."""
    global _controller  # looking the libraries up takes milliseconds, so it is done once
    rows, columns = X.shape
    if not issparse(X) and rows * float(columns) ** 2 > 1e10:
        return nullcontext()
    if _controller is None:
        from threadpoolctl import ThreadpoolController

        _controller = ThreadpoolController()
    context: AbstractContextManager[Any] = _controller.limit(limits=1, user_api="blas")
    return context
