"""What `solver="auto"` asks of the data; each answer is computed once, and only if it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import issparse

from toprank.arrays import Rows
from toprank.matrices.dense_or_sparse import column_squares, largest_eigenvalue
from toprank.matrices.working_rows import MOST_FEATURES
from toprank.solvers.problem import Problem
from toprank.solvers.proximal_newton import has_proximal_points

# Unevenness up to which columns are alike, and the rows from which on that is asked.
_ALIKE, _MANY_ROWS = 4.0, 2000
# Rows whose products with each other are kept in memory.
ROWS_IN_MEMORY = 8000
# Dense rows, and their features, from which on a system in the features takes longer than all else.
_ROWS_TO_FACTORISE, _FEATURES_TO_FACTORISE = 1000, 300
# Rows of a sample of a kernel matrix, at least and at most; what its directions may leave of the largest diagonal one;
# how many of them are few where the matrix does not fit into memory, and how many rows for each are many where it does.
_LEAST_SAMPLE, _SAMPLE, _LITTLE, _FEW_DIRECTIONS, _ROWS_A_DIRECTION = 250, 500, 1e-3, 400, 25
# Rows below which pairs take no time to speak of.
_ROWS_OF_PAIRS = 2000


@dataclass(frozen=True)
class Traits:
    """Answers about a problem; some are for rows of features only, `has_low_rank` is for kernels."""

    problem: Any

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.problem.positive)

    @property
    def has_few_rows(self) -> bool:
        """Whether the products of all rows with each other are kept in memory."""
        return self.n <= ROWS_IN_MEMORY

    @property
    def of_maximum(self) -> bool:
        """Whether the threshold is a maximum, so that only rows at the top have multipliers."""
        return bool(self.problem.formulation.threshold.is_maximum)

    @property
    def is_wide(self) -> bool:
        """Whether the data are not dense, of more columns than a system in them may have."""
        return not isinstance(self.problem.X, np.ndarray) and self.problem.X.shape[1] > MOST_FEATURES

    @property
    def has_few_multipliers(self) -> bool:
        """Whether dense rows have hundreds of features, more than positives twice or with the rows of the top."""
        X, (n, d), m = self.problem.X, self.problem.X.shape, len(self.problem.positives)
        if not isinstance(X, np.ndarray) or n < _ROWS_TO_FACTORISE or d < max(_FEATURES_TO_FACTORISE, 2 * m):
            return False
        caps = self.problem.formulation.threshold.caps(self.problem.threshold_weights)
        return bool(m + (1.0 if caps is None else 1 / caps.mean()) <= d)

    @cached_property
    def is_even(self) -> bool:
        """Whether no direction weighs much more than in random data."""
        return self.n >= _MANY_ROWS and unevenness(self.problem.X) <= _ALIKE

    @property
    def has_low_rank(self) -> bool:
        """Whether the kernel is known to have few directions, at most half as many as rows."""
        kernel, d = self.problem.gram.kernel, self.problem.gram.X.shape[1]
        return bool(kernel.name == "poly" and 2 * comb(d + int(kernel.degree), d) <= self.n)

    @cached_property
    def has_few_directions(self) -> bool:
        """Whether few directions have nearly all of the kernel matrix, for a problem that has proximal points.

        Then these and programs on a factor of it are the way. Where the matrix fits into memory, they have to be very
        few: only then do many rows share the threshold that no pair could tell apart.
        """
        gram = self.problem.gram
        if (gram.fits and gram.n < _ROWS_OF_PAIRS) or not has_proximal_points(self.problem):
            return False
        if (known := gram.remembered.get("has few directions")) is not None:
            return bool(known)
        few = gram.n // _ROWS_A_DIRECTION if gram.fits else _FEW_DIRECTIONS
        some = np.unique(np.linspace(0, gram.n - 1, min(_SAMPLE, max(_LEAST_SAMPLE, 2 * few))).astype(np.intp))
        values, largest = gram.between(some, some).astype(np.float64), float(gram.diagonal.max(initial=0.0))
        rank = lapack.dpstrf(values, lower=1, tol=_LITTLE * largest, overwrite_a=1)[2]
        gram.remembered["has few directions"] = is_of_few = bool(rank <= few and rank < len(some))
        return is_of_few


def unevenness(X: Any) -> float:
    """The largest eigenvalue of XᵀX for an X that is not dense, over that of independent entries of equal variance.

    It is bounded from below by the heaviest column and, unless that says enough, by the power method. The iterations of
    a gradient method grow with its root.
    """
    squares = column_squares(X)
    n_used = max(int(np.count_nonzero(squares)), 1)
    share = float(1 / np.sqrt(X.shape[0]) + 1 / np.sqrt(n_used)) ** 2
    independent = max(share * float(squares.sum()), float(np.finfo(float).tiny))
    by_column = float(squares.max()) / independent
    return by_column if by_column > _ALIKE else max(by_column, largest_eigenvalue(X) / independent)


def without_empty_columns(problem: Problem) -> tuple[Problem, Rows | None]:
    """The problem on the columns in use, and which they are, where that makes wide sparse data narrow; else itself."""
    X = problem.X
    if not issparse(X) or X.shape[1] <= MOST_FEATURES:
        return problem, None
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    return (replace(problem, X=X[:, used]), used) if len(used) <= MOST_FEATURES else (problem, None)
