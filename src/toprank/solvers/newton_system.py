r"""Systems :math:`(\text{diag}(\text{ridge}) + \sum_r h_r (x_r - c)(x_r - c)^\top)\, d = g`: those of Newton's method.

Solved where they are smallest: by Cholesky in feature space or in the space of the rows of positive weight h, or by
preconditioned conjugate gradients when both are large. Of rows in blocks with very many columns, those of positive
weight are sent here, unless products with vectors, which are sent too, are cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from toprank.arrays import Floats
from toprank.matrices.block_matrix import N_ACTIVE, BlockMatrix
from toprank.matrices.dense_or_sparse import Cholesky, products_of_rows, sandwich, scaled_columns, weighted_squares
from toprank.matrices.own_storage import OwnStorage
from toprank.solvers.problem import Recorder

Solve = Callable[[Floats], Floats]

# Largest order of a system that is formed and factorised.
EXPLICIT = 2000
# The same for rows with a storage of their own, whose products with a vector are cheap.
_EXPLICIT_ROWS_OF_OWN = 600
# Rows in blocks whose weight is not zero are sent here if that is no more than so many products with a vector send.
_SENT_AS_PRODUCTS = 50
# Columns whose Gram matrix blocks send at once, without a trip that asks whether few rows have a weight.
_FEW_COLUMNS = 500


def newton_system(
    X: Any, weights: Floats, centre: Floats, ridge: Floats, recorder: Recorder, cg_tolerance: float = 1e-4
) -> Solve:
    """A function that solves the system; `recorder` counts the rows that are read, as parts of a pass."""
    n_features, in_blocks = X.shape[1], isinstance(X, BlockMatrix)
    if in_blocks and 0 < n_features <= _FEW_COLUMNS:
        H = sandwich(X, weights, centre)
        recorder.passes += weights.known(N_ACTIVE) / len(weights)  # type: ignore[attr-defined]
        return _factorised(H, ridge)
    n_active = int(np.count_nonzero(weights))
    recorder.passes += n_active / len(weights)
    if n_active == 0 or n_features == 0:
        return lambda right: right / ridge
    if n_features <= min(EXPLICIT, 4 * n_active):
        return _factorised(sandwich(X, weights, centre), ridge)
    if in_blocks and n_active * X.nnz > _SENT_AS_PRODUCTS * n_features * len(weights):
        return _by_cg(X, weights, centre, ridge, recorder, 1.0, cg_tolerance)
    active = np.flatnonzero(weights)
    rows, weights, n = X.rows((slice(None), active))[0] if in_blocks else X[active], weights[active], len(weights)
    if len(active) <= (min(EXPLICIT, _EXPLICIT_ROWS_OF_OWN) if isinstance(X, OwnStorage) else EXPLICIT):
        return _in_row_space(rows, weights, centre, ridge)
    return _by_cg(rows, weights, centre, ridge, recorder, len(active) / n, cg_tolerance)


def _factorised(H: Floats, ridge: Floats) -> Solve:
    H[np.diag_indices(len(ridge))] += ridge
    return Cholesky(H).solve


def _in_row_space(rows: Any, weights: Floats, c: Floats, ridge: Floats) -> Solve:
    """Woodbury's identity for columns divided by √ridge: (I + ZᵀZ)⁻¹ = I − Zᵀ(I + ZZᵀ)⁻¹Z.

    Z are the centred rows times the roots of their weights.
    """
    root, scale = np.sqrt(weights), 1 / np.sqrt(ridge)
    if not isinstance(rows, np.ndarray):
        rows, c = scaled_columns(rows, scale), c * scale
        mean = np.asarray(rows @ c)
        gram = products_of_rows(rows) - mean[:, None] - mean[None, :] + c @ c
    else:
        rows = rows.astype(np.float64) - c
        rows *= scale
        gram, c = rows @ rows.T, np.zeros_like(c)
    system = root[:, None] * gram * root
    system[np.diag_indices(len(root))] += 1.0
    factor = Cholesky(system)

    def solve(right: Floats) -> Floats:
        scaled = scale * right
        u = root * factor.solve(root * (rows @ scaled - c @ scaled))
        return np.asarray(scale * (scaled - (rows.T @ u - u.sum() * c)))

    return solve


def _by_cg(rows: Any, h: Floats, c: Floats, ridge: Floats, recorder: Recorder, part: float, tolerance: float) -> Solve:
    """Conjugate gradients with the diagonal of the matrix as preconditioner."""
    diagonal = weighted_squares(rows, h) - 2 * c * np.asarray(rows.T @ h) + h.sum() * c**2
    diagonal = ridge + np.maximum(diagonal, 0.0)

    def product(v: Floats) -> Floats:
        recorder.passes += 2 * part
        u = h * (rows @ v - c @ v)
        return np.asarray(ridge * v + rows.T @ u - u.sum() * c)

    shape = (len(c), len(c))
    operator = LinearOperator(shape, matvec=product)
    preconditioner = LinearOperator(shape, matvec=lambda v: v / diagonal)

    def solve(right: Floats) -> Floats:
        return np.asarray(cg(operator, right, rtol=tolerance, maxiter=500, M=preconditioner)[0])

    return solve
