"""Several solvers in turn: where one does not arrive within its budget, the next goes on from what it found.

1. Run a solver with a budget of iterations, counted and not timed, so that the same data give the same model anywhere.
2. Keep the smaller objective, with its point, and the larger lower bound: both hold for the problem, whoever found
   them.
3. Stop when their relative gap is at most `tol`, when the iterations of all together reach `max_iter`, or at Ctrl-C if
   there is a point. Otherwise the next solver starts from the point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toprank.solvers.interruption import is_one_of_several, solved_or_interrupted
from toprank.solvers.problem import Solution, relative_gap


@dataclass(frozen=True)
class Phase:
    """A solver by its name and function, the iterations after which the next one takes over, and its own options."""

    name: str
    solve: Callable[..., Solution]
    budget: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


def solve_in_phases(
    phases: Sequence[Phase],
    problem: Any,
    *,
    tol: float,
    max_iter: int | None = None,
    start: Solution | None = None,
    **common: Any,
) -> tuple[Solution, str]:
    """What the phases found together, and the name of the last one that ran; `common` are options of all."""
    found: Solution | None = None
    for phase in phases:
        done = 0 if found is None else found.n_iter
        limits = [phase.budget] if phase.budget is not None else []
        if max_iter is not None:
            limits.append(max_iter - done)
        limit = {"max_iter": min(limits)} if limits else {}
        options = {**common, **phase.options, **limit}
        try:
            solution = solved_or_interrupted(phase.solve, problem, tol=tol, start=start, **options)
        except KeyboardInterrupt:
            if found is None or not found.coef.any() or is_one_of_several():
                raise
            return replace(found, interrupted=True), phase.name
        found = solution if found is None else joined(found, solution, tol)
        if found.converged or found.interrupted or (max_iter is not None and found.n_iter >= max_iter):
            break
        start = found
    assert found is not None
    return found, phase.name


def joined(first: Solution, second: Solution, tol: float) -> Solution:
    """The better point and the better bound of two runs, the second of which came later."""
    best = first if first.primal < second.primal else second
    bound = first if first.dual > second.dual else second
    return replace(
        best,
        dual=bound.dual,
        dual_point=bound.dual_point,
        n_iter=first.n_iter + second.n_iter,
        converged=relative_gap(best.primal, bound.dual) <= tol,
        history=_joined_history(first, second),
        state=second.state,
        interrupted=second.interrupted,
    )


def _joined_history(first: Solution, second: Solution) -> dict[str, list[float]]:
    """The rows of both, counted on, with the best objective and bound so far."""
    history = {name: list(values) for name, values in first.history.items()}
    for name in ("iteration", "passes", "seconds"):
        last = history[name][-1] if history[name] else 0.0
        history[name] += [last + value for value in second.history[name]]
    history["primal"] += [min(first.primal, value) for value in second.history["primal"]]
    history["dual"] += [max(first.dual, value) for value in second.history["dual"]]
    history["gap"] = [relative_gap(*pair) for pair in zip(history["primal"], history["dual"], strict=True)]
    return history
