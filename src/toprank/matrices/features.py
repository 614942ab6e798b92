r"""Features whose inner products approximate a kernel: a model on them predicts without its training rows.

Nyström: with a random part Z of the rows, :math:`\phi(x) = k(x, Z)\, k(Z, Z)^{-1/2}`. Random Fourier features, for the
Gaussian kernel: :math:`\phi(x) = \sqrt{2/D}\, \cos(\omega^\top x + b)` with normal ω and uniform b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.kernel_approximation import RBFSampler

from toprank.arrays import Floats, Rows
from toprank.matrices.kernel import Kernel
from toprank.saved_state import Array, Kind, Schema

# Entries of a block of features or kernel values.
_BLOCK_ENTRIES = 4_000_000
# Rounding errors of a kernel value or a feature, at most.
_ERRORS = 8.0


def in_blocks(function: Callable[[Any], NDArray[Any]], X: Any, width: int) -> NDArray[Any]:
    """Apply a function to blocks of rows, each of which needs `width` numbers a row, and join the results."""
    step = max(1, _BLOCK_ENTRIES // max(width, 1))
    return np.concatenate([function(X[start : start + step]) for start in range(0, X.shape[0], step)])


def both_dense_or_sparse(A: Any, B: Any) -> tuple[Any, Any]:
    """Two matrices as they are, or both dense if one of them is."""
    if issparse(A) == issparse(B):
        return A, B
    return (A.toarray(), B) if issparse(A) else (A, B.toarray())


def kernel_columns(kernel: Kernel, X: Any, terms: Any) -> NDArray[Any]:
    """Kernel values of rows with the rows `terms`, which are numbers of columns where the kernel is precomputed."""
    if kernel.name == "precomputed":
        columns = X[:, terms]
        return np.asarray(columns.toarray() if issparse(columns) else columns)
    return kernel.block(*both_dense_or_sparse(X, terms))


def expansion_scores(kernel: Kernel, X: Any, terms: Any, coefficients: NDArray[Any]) -> NDArray[Any]:
    """Σ cᵢ k(x, zᵢ) for each row x; the zᵢ are given as for `kernel_columns`, and c may have several columns."""
    if not len(coefficients):  # w = 0; a kernel function of a user need not take no rows
        return np.zeros((X.shape[0], *coefficients.shape[1:]), coefficients.dtype)
    if issparse(terms) and not issparse(X):
        terms = terms.toarray()
    return in_blocks(lambda block: kernel_columns(kernel, block, terms) @ coefficients, X, len(coefficients))


def draw_rows(weights: Any, size: int, random_state: np.random.RandomState) -> Rows:
    """Numbers of so many rows, drawn at random one by one with chances in proportion to their weights, and sorted.

    Of exponential waiting times at the rates of the weights the first ones are taken; that of a weight of 2 is the
    first of two of a weight of 1. Equal weights give the first rows of a permutation. Weights of rows in blocks draw
    other ones.
    """
    if not isinstance(weights, np.ndarray):
        return np.asarray(weights.drawn(size, random_state))
    n = len(weights)
    order, waiting = random_state.permutation(n), np.empty(n)
    waiting[order] = np.sort(random_state.standard_exponential(n))
    return np.sort(np.argsort(waiting / (weights / weights.max()), kind="stable")[:size])


def inverse_root(matrix: NDArray[Any]) -> Floats:
    """R with R Rᵀ = K⁻¹ on the eigenvectors of positive eigenvalues, of which there is one column each."""
    values, vectors = np.linalg.eigh(np.asarray(matrix, dtype=np.float64))
    kept = values > 1e-12 * np.abs(values).max()
    if not kept.any():
        raise ValueError("the kernel matrix has no positive eigenvalue; use another kernel or other parameters")
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


@dataclass(frozen=True)
class NystroemFeatures:
    """Features from a random part of the rows."""

    saved_state: ClassVar[Schema] = Schema(
        {
            "kernel": Kind((Kernel,)),
            "components": Array("f", ("n_components", None), sparse=True),
            "normalisation": Array("f8", ("n_components", None)),
        },
        fitted=None,
    )

    kernel: Kernel
    components: Any
    normalisation: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Number of features that it takes and that it gives."""
        return self.components.shape[1], self.normalisation.shape[1]

    @staticmethod
    def fit(
        kernel: Kernel, X: Any, n_components: int, random_state: np.random.RandomState, weights: Any = None
    ) -> NystroemFeatures:
        """Draw the rows, and decompose their kernel matrix; directions that it does not have are left out."""
        weights = np.ones(X.shape[0]) if weights is None else weights
        components = X[draw_rows(weights, n_components, random_state)]
        wide = components.astype(np.float64)
        return NystroemFeatures(kernel, components, inverse_root(kernel.block(wide, wide)))

    def __call__(self, X: Any) -> NDArray[Any]:
        """Features of rows, computed in double precision, as small eigenvalues magnify rounding errors."""
        X, components = both_dense_or_sparse(X, self.components)
        dtype, components = np.result_type(X.dtype, components.dtype), components.astype(np.float64)

        def of_block(block: Any) -> NDArray[Any]:
            values = self.kernel.block(block.astype(np.float64), components)
            return np.asarray(values @ self.normalisation, dtype=dtype)

        return in_blocks(of_block, X, len(self.normalisation))

    def rounding(self, coef: NDArray[Any]) -> float:
        """How much the scores of a row may differ from one block of rows to another."""
        largest = float(np.abs(self.kernel.diagonal(self.components)).max())
        return _ERRORS * float(np.finfo(np.float64).eps) * largest * float(np.abs(self.normalisation @ coef).sum())


@dataclass(frozen=True)
class FourierFeatures:
    """Random Fourier features of the Gaussian kernel."""

    saved_state: ClassVar[Schema] = Schema({"sampler": Kind((RBFSampler,))}, fitted=None)

    sampler: RBFSampler

    @property
    def shape(self) -> tuple[int, int]:
        """Number of features that it takes and that it gives."""
        n_features, n_components = self.sampler.random_weights_.shape
        return n_features, n_components

    @staticmethod
    def fit(gamma: float, X: Any, n_components: int, random_state: np.random.RandomState) -> FourierFeatures:
        """Draw the frequencies, as many numbers each as X has columns, in its precision."""
        sampler = RBFSampler(gamma=gamma, n_components=n_components, random_state=random_state)
        return FourierFeatures(sampler.fit(np.zeros((1, X.shape[1]), X.dtype)))

    def __call__(self, X: Any) -> NDArray[Any]:
        """Features of rows."""
        return in_blocks(self.sampler.transform, X, self.sampler.n_components)

    def rounding(self, coef: NDArray[Any]) -> float:
        """How much the scores of a row may differ from one block of rows to another."""
        size = float(np.sqrt(2 / len(coef)))
        return _ERRORS * float(np.finfo(coef.dtype).eps) * size * float(np.abs(coef).sum())
