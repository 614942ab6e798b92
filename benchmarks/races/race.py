"""One race: a contender with growing limits of iterations, timed, and judged afterwards."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from benchmarks.races.contenders import SMALLEST, Entrant, Toprank
from benchmarks.races.problems import PROBLEMS, Point

# Seconds of the processor for all runs of a contender, and how limits grow.
BUDGET, GROWTH = 10.0, 1.5
# Where a race is won: this far above the optimum, relative to it.
TARGET = 1e-4


@lru_cache(maxsize=1)
def judged(name: str):
    """A problem, its optimum, how far from it that may be by its certificate, and the objective at w = 0."""
    problem = PROBLEMS[name]()
    contender = Toprank(problem)
    found = contender.read(contender.model.set_params(tol=1e-10).fit(problem.X, problem.y))
    at_zero = problem.objective(Point(np.zeros(len(problem.y)), 0.0))
    return problem, problem.objective(found), found.gap, at_zero


def timed(contender, limit: int) -> tuple[float, Any]:
    """The fewest seconds of up to three runs, fewer where they are long, and what the last one found."""
    best, spent = np.inf, 0.0
    for _ in range(3):
        start = time.process_time()
        found = contender.run(limit)
        taken = time.process_time() - start
        best, spent = min(best, taken), spent + taken
        if spent > 0.5:
            break
    return best, found


def race(name: str, contenders: dict[str, Entrant], method: str) -> dict[str, Any]:
    """How a contender fares: all of its runs, where it came within the target, and how it ended."""
    problem, optimum, certified, at_zero = judged(name)
    entrant = contenders[method]
    entrant.make(problem.part()).run(1000)  # loads what was compiled
    contender, first = entrant.make(problem), entrant.first_limit(problem)
    numbers = {"optimum": float(optimum), "optimum_gap": short(certified), "zero": short(at_zero / optimum - 1)}
    if contender.read is None:
        return numbers | {"last_seconds": short(timed(contender, first)[0])}
    curves = run_curves(contender, first, lambda point: problem.objective(point) / optimum - 1)
    return numbers | curves | won(curves)


def short(value: float | None) -> float | None:
    """A number with the digits that matter, for the file."""
    return value if value is None or isinstance(value, int) else float(f"{value:.4g}")


def run_curves(contender, limit: int, excess_of: Callable[[Point], float]) -> dict[str, list]:
    """By limit: seconds, passes, the contender's own gap, and how far above the optimum it is, relative to it."""
    curves: dict[str, list] = {"limits": [], "seconds": [], "passes": [], "gaps": [], "excess": []}
    spent = 0.0
    while True:
        seconds, found = timed(contender, limit)
        point = contender.read(found)
        excess = excess_of(point)
        for curve, value in zip(curves.values(), (limit, seconds, point.passes, point.gap, excess), strict=True):
            curve.append(short(value))
        spent += seconds
        if excess <= SMALLEST or point.n_iter < limit or spent + GROWTH * seconds > BUDGET:
            return curves
        limit = max(limit + 1, int(GROWTH * limit))


def won(curves: dict[str, list]) -> dict[str, Any]:
    """Seconds and passes of the first run within the target, if there is one, and how the last one ended."""
    ended = {"last_seconds": curves["seconds"][-1], "last_excess": max(curves["excess"][-1], 0.0)}
    if curves["gaps"][-1] is not None:
        ended["last_gap"] = max(curves["gaps"][-1], 0.0)
    within = [i for i, excess in enumerate(curves["excess"]) if excess <= TARGET]
    if not within:
        return ended
    first = within[0]
    passes = {} if curves["passes"][first] is None else {"passes_to_target": curves["passes"][first]}
    return ended | {"seconds_to_target": curves["seconds"][first]} | passes
