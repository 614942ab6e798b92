"""Which solver is made for what; their modules are imported when they are needed."""

from __future__ import annotations

from collections.abc import Callable

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import PiecewiseQuadratic
from toprank.formulations.thresholds import SurrogateQuantile, TopMean
from toprank.solvers.problem import Solution


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
        from toprank.solvers.descent import solve_grill

        return solve_grill
    if isinstance(formulation.threshold, SurrogateQuantile):
        from toprank.solvers.smooth_newton import solve_smooth_newton

        return solve_smooth_newton
    from toprank.solvers.newton import solve_newton

    return solve_newton
