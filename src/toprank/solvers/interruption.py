"""Ctrl-C during a solver: the best point so far becomes its solution, if it has one.

The first `Incumbent` that a solver makes is its own; those of problems inside it come later. An interrupt comes
anywhere, also between two assignments, so what belongs to the point is computed again. It is raised as usual where
nothing better than w = 0 is known, and where the fit is one of several that joblib runs, such as those of a search or a
cross-validation: the whole is then stopped, and not one of its parts cut short. A second Ctrl-C is raised too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toprank.solvers.incumbent import Incumbent, made
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.problem import Problem, Solution


def solved_or_interrupted(solve: Callable[..., Solution], problem: Any, *, tol: float, **options: Any) -> Solution:
    """The solution, or at an interrupt the best point so far."""
    incumbents: list[Incumbent] = []
    token = made.set(incumbents)
    try:
        return solve(problem, tol=tol, **options)
    except KeyboardInterrupt:
        if is_one_of_several() or not incumbents or not incumbents[0].coef.any():
            raise
        best = _best_so_far(problem, incumbents[0], tol)
        if not best.coef.any():
            raise
        return best
    finally:
        made.reset(token)


def is_one_of_several() -> bool:
    """Whether joblib runs this, as one of several tasks."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if str(frame.f_globals.get("__name__", "")).startswith("joblib."):
            return True
    return False


def _best_so_far(problem: Problem | KernelProblem, incumbent: Incumbent, tol: float) -> Solution:
    """The best point, with its objective and certificate."""
    coef = incumbent.coef
    if incumbent.of_rows and isinstance(problem, Problem):
        coef = problem.combine(coef)
    recorder = incumbent.recorder
    complete = min(map(len, recorder.rows.values()))
    recorder.rows = {name: values[:complete] for name, values in recorder.rows.items()}
    incumbent.record()
    solution = replace(incumbent.solution(converged=False), coef=coef, interrupted=True)
    if isinstance(problem, KernelProblem):
        return replace(problem.certified(solution, coef.dtype, tol), converged=False)
    primal = problem.primal(coef, problem.scores(coef))
    return replace(solution.recertified(primal, solution.dual, tol), converged=False)
