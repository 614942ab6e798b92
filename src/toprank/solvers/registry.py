"""The solvers: what each works on and needs, and when `solver="auto"` takes it.

A new solver is a file and a record in `SOLVERS`. From the records follow the choice of `solver="auto"`, the error for a
solver that does not fit, the docstrings of the estimators and the table of the documentation.

"auto" is a chain of phases (`toprank.solvers.phases`): of the solvers that fit, those whose turn it is with these data.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import SURROGATES
from toprank.formulations.thresholds import Threshold
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.phases import Phase
from toprank.solvers.problem import Matrix, Problem, Solution
from toprank.solvers.traits import ROWS_IN_MEMORY, Traits

MATRICES: dict[Matrix, str] = {"rows": "rows of features", "kernel": "kernel values", "blocks": "rows in blocks"}
# Places in the chain: what may be quick, what always arrives, what helps where that fails.
_QUICK, _SURE, _RESCUE = range(3)
# Moves of the pair method with a kernel, in all and for each row, after which it has stalled.
_MOVES, _MOVES_A_ROW = 50_000, 100


@dataclass(frozen=True)
class Need:
    """What a solver needs of a formulation, in words and as a test."""

    words: str
    holds: Callable[[Formulation], bool]


CONVEX = Need(
    "a convex problem of a mean of the largest scores or of the surrogate quantile",
    lambda f: f.is_convex and (f.threshold.is_maximum or f.threshold.is_implicit),
)
QUANTILE = Need(
    "a true quantile with a loss of the false positives", lambda f: f.false_positives and not f.threshold.is_convex
)
MAXIMUM = Need(
    "a threshold that is the largest score or the mean of the k largest",
    lambda f: f.is_convex and f.threshold.is_maximum,
)
IMPLICIT = Need("the surrogate quantile as threshold", lambda f: f.is_convex and f.threshold.is_implicit)
PIECES = Need(
    "a piecewise quadratic surrogate ('quadratic' for the surrogate quantile)",
    lambda f: f.surrogate.is_piecewise_quadratic and (f.surrogate.is_parabola or not f.threshold.is_implicit),
)
ONE_PIECE = Need("the surrogate 'quadratic' or 'hinge'", lambda f: f.surrogate.is_parabola or not f.surrogate.is_smooth)


@dataclass(frozen=True)
class Turn:
    """When "auto" takes a solver, in words and as a test of the data, and the iterations and options it has then."""

    place: int
    words: str
    comes: Callable[[Traits], bool] = lambda data: True
    budget: Callable[[Traits], int | None] = lambda data: None
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Solver:
    """A solver by its public name.

    `function` is "module.function" in this package, imported when its turn comes; `options` are the parameters of the
    estimator that it takes beside `tol`, `max_iter`, `verbose` and `start`. One that is not `public` has no name that a
    user could ask for; one that `reads_rows` asks for rows of a kernel matrix again and again, so that a cache of some
    of them is of use.
    """

    name: str
    matrix: Matrix
    function: str
    idea: str
    stops: str = "duality gap"
    needs: tuple[Need, ...] = ()
    options: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()
    public: bool = True
    reads_rows: bool = False

    def lacks(self, formulation: Formulation) -> str:
        """What it needs and the formulation does not have, in words; empty if it fits."""
        return ", and ".join(need.words for need in self.needs if not need.holds(formulation))

    def load(self) -> Callable[..., Solution]:
        """The function."""
        module, name = self.function.split(".")
        function: Callable[..., Solution] = getattr(importlib.import_module(f"toprank.solvers.{module}"), name)
        return function

    def phase(self, settings: Mapping[str, Any], budget: int | None = None, **options: Any) -> Phase:
        """A phase; of the settings of an estimator it takes its options."""

        def solve(*args: Any, **kwargs: Any) -> Solution:
            return self.load()(*args, **kwargs)

        return Phase(self.name, solve, budget, {name: settings[name] for name in self.options} | options)


def _linear_moves(data: Traits) -> int:
    return 5000 + 40 * min(data.n, ROWS_IN_MEMORY)


def _has_pairs(data: Traits) -> bool:
    return data.of_maximum and (not data.is_even if data.is_wide else data.has_few_multipliers)


def _has_kernel_pairs(data: Traits) -> bool:
    return not data.has_low_rank and (data.of_maximum or data.has_few_rows) and not data.has_few_directions


_ALWAYS = Turn(_SURE, "always")
_IN_MEMORY = {"within_memory": True}
SOLVERS = (
    Solver("newton", "rows", "working_set_newton.solve_newton",
           "primal-dual interior point on a working set of rows", needs=(MAXIMUM,), turns=(_ALWAYS,)),
    Solver("newton", "blocks", "working_set_newton.solve_newton",
           "the same; scores stay with the blocks, the rows of a working set are gathered",
           needs=(MAXIMUM,), turns=(_ALWAYS,)),
    Solver("newton", "rows", "smooth_newton.solve_smooth_newton",
           "Newton's method; for the hinge on Huberised hinges of falling width, then an interior-point method",
           needs=(IMPLICIT,), turns=(_ALWAYS,)),
    Solver("newton", "blocks", "smooth_newton.solve_smooth_newton",
           "the same; scores stay with the blocks, sums over them are gathered", needs=(IMPLICIT,), turns=(_ALWAYS,)),
    Solver("pairs", "rows", "pair_ascent.solve_linear_pairs",
           "ascent of the dual by two multipliers at a time, with a working set and Newton steps",
           needs=(CONVEX, PIECES), turns=(
               Turn(_QUICK, 'for means of the largest scores, before "newton" on other wide sparse data and on dense '
                    "rows of hundreds of features, more than positives twice or with the rows of the top", _has_pairs,
                    _linear_moves, _IN_MEMORY),
               Turn(_RESCUE, f"after it on up to {ROWS_IN_MEMORY:,} other rows that are dense or narrow",
                    lambda data: data.has_few_rows and data.of_maximum and not data.is_wide and not _has_pairs(data),
                    _linear_moves, _IN_MEMORY),
           )),
    Solver("pairs", "kernel", "pair_ascent.solve_kernel_pairs",
           "the same, as products of rows are all that it needs",
           needs=(CONVEX, PIECES), options=("cache_size",), turns=(
               Turn(_QUICK, 'before "low-rank", but not for polynomial kernels of few directions, nor with the '
                    f"surrogate quantile for more than {ROWS_IN_MEMORY:,} rows, nor with the largest score and a "
                    "curved loss where few directions have nearly all of the kernel matrix", _has_kernel_pairs,
                    lambda data: _MOVES + _MOVES_A_ROW * data.n),
           )),
    Solver("apg", "rows", "apg.solve_apg",
           "the TopPush paper: accelerated gradients on the dual, exact projection in linear time",
           needs=(MAXIMUM,), turns=(
               Turn(_QUICK, 'before "newton" on wide sparse data whose columns are alike, with adapted steps',
                    lambda data: data.is_wide and data.is_even, options={"adaptive": True, "patience": 50}),
           )),
    Solver("restarts", "rows", "quantile_descent.solve_grill",
           "smoothed quantile, then descent along shortest subgradients, from several starts",
           "a stationary point, no certificate",
           needs=(QUANTILE,), options=("random_state",), turns=(_ALWAYS,), public=False),
    Solver("sgd", "rows", "sgd.solve_sgd",
           "the framework paper: stochastic gradients on minibatches, with delayed scores for the surrogate quantile",
           options=("random_state",)),
    Solver("low-rank", "kernel", "low_rank.solve_low_rank",
           '"newton" on a growing factor of the kernel matrix; for a largest score proximal points, then programs',
           "duality gap of the true kernel",
           needs=(CONVEX,), turns=(_ALWAYS,)),
    Solver("dual-cd", "kernel", "dual_cd.solve_dual_cd",
           "the kernel paper: a random multiplier and its best partner", "duality gap, where it gets there",
           needs=(CONVEX, ONE_PIECE), options=("random_state",), reads_rows=True),
)  # fmt: skip


def solver_names(formulation: Formulation, matrices: Iterable[Matrix]) -> tuple[str, ...]:
    """What `solver=` may be for a formulation, where these matrices are to be had."""
    fitting = [s.name for s in SOLVERS if s.public and s.matrix in matrices and not s.lacks(formulation)]
    return ("auto", *dict.fromkeys(fitting))


def check_solver(name: str, formulation: Formulation, matrices: Iterable[Matrix], owner: str) -> None:
    """Refuse a name that is none, or that of a solver that does not fit, and say why and which ones do."""
    names = solver_names(formulation, matrices)
    if name in names:
        return
    asked = [s for s in SOLVERS if s.public and s.name == name]
    needs = dict.fromkeys(s.lacks(formulation) for s in asked if s.matrix in matrices)
    why = f", which needs {' or '.join(needs)}" if needs else ""
    if asked and not needs:
        why = f", which works on {MATRICES[asked[0].matrix]}"
    raise ValueError(f"solver must be one of {', '.join(map(repr, names))} for {owner}, got {name!r}{why}")


def require_fit(name: str, problem: Problem | KernelProblem) -> None:
    """Refuse a problem that the solver of that name is not made for."""
    formulation = problem.formulation
    (lacks,) = (s.lacks(formulation) for s in SOLVERS if s.name == name and s.matrix == problem.matrix)
    if lacks:
        given = f"{formulation.surrogate.name!r} with the threshold {formulation.threshold}"
        false_positives = " and a loss of the false positives" if formulation.false_positives else ""
        raise ValueError(f"solver={name!r} needs {lacks}, got {given}{false_positives}; use solver='auto'")


def phases_for(name: str, problem: Problem | KernelProblem, settings: Mapping[str, Any]) -> list[Phase]:
    """The solvers that `solver=name` stands for, in turn; `settings` are the parameters of the estimator."""
    fitting = [s for s in SOLVERS if s.matrix == problem.matrix and not s.lacks(problem.formulation)]
    if name != "auto":
        return [next(s for s in fitting if s.name == name).phase(settings)]
    data = Traits(problem)
    chain = [(turn, s) for s in fitting for turn in s.turns if turn.comes(data)]
    chain.sort(key=lambda entry: entry[0].place)
    return [s.phase(settings, turn.budget(data), **turn.options) for turn, s in chain]


def solver_notes(threshold: Threshold, matrices: Iterable[Matrix]) -> str:
    """The names that `solver=` may have with a threshold and some surrogate, and what they stand for."""
    formulations = [Formulation(loss, threshold, "all", not threshold.is_convex) for loss in SURROGATES.values()]
    ideas: dict[str, str] = {}
    for s in SOLVERS:
        if s.matrix in matrices and not all(map(s.lacks, formulations)):
            ideas.setdefault(s.name if s.public else "auto", s.idea)
    return ", ".join(f'"{name}" ({idea})' for name, idea in ideas.items())


def solver_table() -> str:
    """The table of the documentation, in Markdown."""
    rows = [["solver", "works on", "needs", "idea", "stops at", '"auto" takes it'], ["---"] * 6]
    for s in SOLVERS:
        needs, turns = "; ".join(need.words for need in s.needs), "; ".join(turn.words for turn in s.turns)
        shown = f'"{s.name}"' if s.public else "(auto)"
        rows.append([shown, MATRICES[s.matrix], needs or "nothing", s.idea, s.stops, turns or "never"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
