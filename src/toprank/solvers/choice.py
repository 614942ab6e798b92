"""Which solver is made for what; their modules are imported when they are needed.

What `solver="auto"` stands for is a chain of phases (`toprank.solvers.phases`), by what the data are:

1. Wide sparse data, of more than 3000 columns in use, in which no direction weighs much more than in random data:
   accelerated gradients, whose number of passes grows with the root of the largest curvature. Thousands of rows then
   share the threshold, too many for the pairs.
2. Other wide sparse data, as text: the pair method, if it is made for the formulation. It is slow where fewer columns
   than rows carry most of the weight, and ends after so many moves a row, or where its products leave the memory.
3. All else, and where 1 or 2 did not arrive: the interior-point method.
4. Where that fails on few rows: the pair method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import PiecewiseQuadratic
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean
from toprank.matrices.dense_or_sparse import largest_eigenvalue
from toprank.solvers.phases import Phase
from toprank.solvers.problem import Problem, Solution
from toprank.solvers.working_rows import MOST_FEATURES

# Unevenness up to which columns are alike, and the rows from which on that is asked.
_ALIKE, _MANY_ROWS = 4.0, 2000
# Iterations of accelerated gradients that have to halve the gap.
_PATIENCE = 50
# Moves of the pair method, in all and for each row, and the rows whose products with each other fit into memory.
_MOVES, _MOVES_A_ROW, _ROWS_IN_MEMORY = 5000, 40, 8000


def supports_pairs(formulation: Formulation) -> bool:
    """Whether the pair method is made for a formulation."""
    surrogate, threshold = formulation.surrogate, formulation.threshold
    if isinstance(threshold, SurrogateQuantile):
        return surrogate.name == "quadratic"
    return isinstance(surrogate, PiecewiseQuadratic) and isinstance(threshold, TopMean)


def linear_solver(name: str, formulation: Formulation) -> Callable[..., Solution]:
    """The function that solves a linear problem."""
    if name == "pairs":
        from toprank.solvers.pair_ascent import solve_linear_pairs

        return solve_linear_pairs
    if name == "sgd":
        from toprank.solvers.sgd import solve_sgd

        return solve_sgd
    if name == "apg":
        from toprank.solvers.apg import solve_apg

        return solve_apg
    if name == "restarts":
        from toprank.solvers.quantile_descent import solve_grill

        return solve_grill
    if isinstance(formulation.threshold, SurrogateQuantile):
        from toprank.solvers.smooth_newton import solve_smooth_newton

        return solve_smooth_newton
    from toprank.solvers.working_set_newton import solve_newton

    return solve_newton


def solve_linear(name: str, problem: Problem, **options: Any) -> Solution:
    """Solve a linear problem by the solver of that name."""
    return linear_solver(name, problem.formulation)(problem, **options)


def linear_phase(name: str, budget: int | None = None, **options: Any) -> Phase:
    """A phase of a linear problem; the solver is imported when its turn comes."""
    return Phase(name, partial(solve_linear, name), budget, options)


def automatic_phases(problem: Problem) -> list[Phase]:
    """The solvers that "auto" stands for, in turn."""
    formulation, n = problem.formulation, problem.X.shape[0]
    if isinstance(formulation.threshold, Quantile):
        return [linear_phase("restarts")]
    newton = linear_phase("newton")
    if isinstance(formulation.threshold, SurrogateQuantile):
        return [newton]
    moves = _MOVES + _MOVES_A_ROW * min(n, _ROWS_IN_MEMORY)
    pairs = [linear_phase("pairs", moves, within_memory=True)] if supports_pairs(formulation) else []
    if not (issparse(problem.X) and problem.X.shape[1] > MOST_FEATURES):
        return [newton, *(pairs if n <= _ROWS_IN_MEMORY else [])]
    if n >= _MANY_ROWS and unevenness(problem.X) <= _ALIKE:
        return [linear_phase("apg", adaptive=True, patience=_PATIENCE), newton]
    return [*pairs, newton]


def unevenness(X: Any) -> float:
    """The largest eigenvalue of XᵀX for a CSR matrix, as a multiple of that of independent entries of equal variance.

    It is bounded from below by the heaviest column and, unless that says enough, by the power method. The iterations of
    a gradient method grow with its root.
    """
    squares = np.bincount(X.indices, weights=X.data.astype(np.float64) ** 2, minlength=1)
    n_used = max(int(np.count_nonzero(squares)), 1)
    share = float(1 / np.sqrt(X.shape[0]) + 1 / np.sqrt(n_used)) ** 2
    independent = max(share * float(squares.sum()), float(np.finfo(float).tiny))
    by_column = float(squares.max()) / independent
    return by_column if by_column > _ALIKE else max(by_column, largest_eigenvalue(X) / independent)


def without_empty_columns(problem: Problem) -> tuple[Problem, NDArray[np.intp] | None]:
    """The problem on the columns in use, and which they are, where that makes wide sparse data narrow; else itself."""
    X = problem.X
    if not issparse(X) or X.shape[1] <= MOST_FEATURES:
        return problem, None
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    return (replace(problem, X=X[:, used]), used) if len(used) <= MOST_FEATURES else (problem, None)
