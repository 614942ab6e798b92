"""What the direction w of a model is made of: weights of features, of features in place of a kernel, or of kernel rows.

An estimator takes a back end for each fit. It makes the problem of the rows, solves it, and says what the model keeps:

1. `Linear`: w itself; of rows in blocks by `toprank.estimators.block_back_end`.
2. `Features`: w in the space of Nyström or Fourier features.
3. `Expansion`: w = Σ cᵢ φ(xᵢ), of which the rows with a coefficient are kept; of a linear kernel w itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from toprank.arrays import Floats, Mask, Rows
from toprank.exceptions import InputError
from toprank.formulations.formulation import Formulation
from toprank.matrices.dense_or_sparse import matvec, transpose_matvec, without_offset
from toprank.matrices.features import FourierFeatures, NystroemFeatures, in_blocks
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.matrices.shared_values import kernel_matrix, scores_by_kernel
from toprank.saved_state import LARGEST_COUNT, Array, Kind, Known
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.phases import solve_in_phases
from toprank.solvers.problem import DualPoint, Matrix, Problem, Solution
from toprank.solvers.registry import SOLVERS, phases_for
from toprank.solvers.traits import without_empty_columns

# Rounding errors of a score, at most.
ERRORS = 8.0
# Rounding of kernel values, as a part of alpha, with which single precision is no use.
_MOST_ROUNDING = 0.1
# Share of an objective by which two ways to compute it may differ.
_SAME_OBJECTIVE = 1e-6
# Share of the tolerance that leaves room for what rounding of the coefficients adds to the gap.
_BEFORE_ROUNDING = 0.3


@dataclass(frozen=True)
class Task:
    """Rows of positive weight, with their numbers in the data of the user, and what to fit to them.

    `settings` are the parameters of the estimator.
    """

    X: Any
    positive: Mask
    weights: Floats
    numbers: Rows
    formulation: Formulation
    settings: Mapping[str, Any]

    def part(self, rows: Any, weights: Any, of_threshold: Any) -> Task:
        """The same of some of the rows, numbered as they are here, with other weights, and without a word.

        `of_threshold` are the weights of all rows that the threshold looks at.
        """
        threshold, settings = self.formulation.threshold.of_parts(of_threshold), {**self.settings, "verbose": 0}
        formulation = replace(self.formulation, threshold=threshold)
        return Task(self.X[rows], self.positive[rows], weights, rows, formulation, settings)


@dataclass(frozen=True)
class Kept:
    """What a model keeps of a solution: attributes, the scores of the rows of the problem, and their rounding."""

    attributes: dict[str, Any]
    scores: Any
    rounding: float


class BackEnd(ABC):
    """The way from rows to what a model keeps."""

    matrix: ClassVar[Matrix]
    """What its solvers work on."""
    coefficients_of: ClassVar[str]
    """What the coefficients of a solution belong to."""

    problem: Problem | KernelProblem
    n_coefficients: int

    def __init__(self, task: Task) -> None:
        self.task = task

    @abstractmethod
    def solve(self, start: Solution | None) -> tuple[Solution, str]:
        """The solution, and the name of the solver that ran last."""

    @abstractmethod
    def keep(self, solution: Solution) -> Kept:
        """What the model keeps."""

    def finish(self, solution: Solution) -> None:
        """Do what is left to do when the model is complete: here nothing."""
        return

    @abstractmethod
    def part(self, rows: Any, weights: Any) -> BackEnd:
        """The back end of some rows of the problem, with other weights."""

    @abstractmethod
    def start_of_part(self, solution: Solution, rows: Any) -> Solution:
        """Where the solver of a part starts from, if the solution of the whole is known."""

    def scores_by(self, part: BackEnd, solution: Solution) -> Any:
        """Scores of the rows of the problem by the solution of a part of them."""
        return scores_of(SimpleNamespace(**part.keep(solution).attributes), self.task.X)

    def _run(
        self, problem: Any, start: Solution | None, after: str | None = None, share: float = 1.0
    ) -> tuple[Solution, str]:
        """Run the solvers in turn to a share of the tolerance; with `after`, those before that one are over."""
        settings = self.task.settings
        phases = phases_for(settings["solver"], problem, settings)
        while after not in (None, phases[0].name):
            del phases[0]
        common: dict[str, Any] = {name: settings[name] for name in ("verbose", "max_iter")}
        return solve_in_phases(phases, problem, start=start, tol=share * settings["tol"], **common)

    def _keep_direction(self, X: Any, coef: NDArray[Any]) -> Kept:
        """A model with `coef_`; X are the rows of the problem without any shift."""
        coef = coef.astype(X.dtype)
        scores = np.asarray(X @ coef)
        rounding = ERRORS * float(np.finfo(scores.dtype).eps) * float(np.abs(scores).max())
        return Kept({"coef_": coef[None, :]}, scores, rounding)


class Linear(BackEnd):
    """Weights of the features."""

    matrix: ClassVar[Matrix] = "rows"
    coefficients_of = "features"
    problem: Problem

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        alpha = float(task.settings["alpha"])
        self.problem = Problem(without_offset(task.X), task.positive, task.weights, task.formulation, alpha)
        self.n_coefficients = task.X.shape[1]

    def solve(self, start: Solution | None) -> tuple[Solution, str]:
        """By a solver for rows; "auto" leaves out columns without entries."""
        problem, used = self.problem, None
        if self.task.settings["solver"] == "auto":
            problem, used = without_empty_columns(problem)
        if used is None:
            return self._run(problem, start)
        solution, solver = self._run(problem, start and replace(start, coef=start.coef[used]))
        coef = np.zeros(self.n_coefficients)
        coef[used] = solution.coef
        return replace(solution, coef=coef), solver

    def keep(self, solution: Solution) -> Kept:
        """The direction."""
        return self._keep_direction(self.task.X, solution.coef)

    def part(self, rows: Any, weights: Any) -> Linear:
        """Of features in place of a kernel, the same features."""
        return Linear(self.task.part(rows, weights, self.problem.threshold_weights))

    def start_of_part(self, solution: Solution, rows: Any) -> Solution:
        """The direction."""
        return replace(solution, state=None, dual_point=None, scores=None)


class Features(Linear):
    """Weights of features whose products are about those of the kernel."""

    def __init__(self, task: Task) -> None:
        self.feature_map = _drawn_map(task)
        super().__init__(replace(task, X=self._mapped(task)))

    def _mapped(self, task: Task) -> Any:
        """The features of all rows."""
        return self.feature_map(task.X)

    def keep(self, solution: Solution) -> Kept:
        """The direction and the features."""
        kept = super().keep(solution)
        rounding = kept.rounding + self.feature_map.rounding(kept.attributes["coef_"][0])
        return replace(kept, attributes=kept.attributes | {"feature_map_": self.feature_map}, rounding=rounding)


class Expansion(BackEnd):
    """Coefficients of rows, positives first, which keeps the rows of a class together in memory."""

    matrix = "kernel"
    coefficients_of = "rows"
    problem: KernelProblem

    def __init__(self, task: Task) -> None:
        order = np.argsort(~task.positive, kind="stable")
        X, weights = task.X, task.weights[order]
        if task.settings["kernel"] == "precomputed":
            if issparse(X):
                raise InputError.saying(
                    "{kernel='precomputed'} needs a dense matrix, got a sparse one; use X.toarray()"
                )
            X = X[:, task.numbers][np.ix_(order, order)]
        else:
            X = X[order]
        positive, numbers = task.positive[order], task.numbers[order]
        super().__init__(replace(task, X=X, positive=positive, weights=weights, numbers=numbers))
        self.rows = X = without_offset(X) if task.settings["kernel"] == "linear" else X
        gram = self._gram(_kernel(task.settings, X, weights), X)
        self.n_coefficients, self.dtype = X.shape[0], X.dtype
        alpha, precision = float(task.settings["alpha"]), 0.5 * float(np.finfo(X.dtype).eps)
        given = precision if gram.is_precomputed else 0.0
        self.problem = KernelProblem(gram, positive, weights, task.formulation, alpha, given)
        gram.check_definite()

    def _gram(self, kernel: Kernel, X: Any) -> Gram:
        """The kernel matrix; in double precision if that fits, or if single precision leaves no digit of the dual."""
        settings = self.task.settings
        n, room = X.shape[0], settings["cache_size"] * 2**20
        if X.dtype == np.float32:
            rounding = float(np.finfo(np.float32).eps) * float(np.abs(kernel.diagonal(X)).max())
            if 8 * n * (n + X.shape[1]) <= room or rounding > _MOST_ROUNDING * settings["alpha"]:
                X = X.astype(np.float64)
        # The pair method keeps products of its own; rows of the whole matrix are of use to it only if all fit.
        is_of_use = n**2 * X.dtype.itemsize <= room or any(
            solver.reads_rows for solver in SOLVERS if solver.name == settings["solver"]
        )
        return kernel_matrix(kernel, X, float(settings["cache_size"]) if is_of_use else 1.0)

    def solve(self, start: Solution | None) -> tuple[Solution, str]:
        """By a solver for kernels, with a certificate in double precision for the coefficients as they are stored."""
        solution, solver = self._run(self.problem, start)
        if self.dtype != np.float64:
            solution, solver = self._certified(solution, solver)
        gram = self.problem.gram
        if gram.kernel.name == "linear":
            solution = self._of_direction(solution)
        if solution.excess > 0 and not gram.is_definite:
            raise gram.not_definite("the lower bound is above the objective")
        return solution, solver

    def _certified(self, solution: Solution, solver: str) -> tuple[Solution, str]:
        """A solution in single precision; where it did not reach the tolerance, double precision goes on from there."""
        problem, tol, max_iter = self.problem, self.task.settings["tol"], self.task.settings["max_iter"]
        gram = problem.gram
        dtype = np.dtype(np.float64) if gram.kernel.name == "linear" else self.dtype  # not c is stored, but w
        if gram.dtype == np.float32:
            problem = replace(problem, gram=self._gram(gram.kernel, gram.X.astype(np.float64)))
        stored = problem.certified(solution, dtype, tol)
        if stored.converged or solution.interrupted or solution.n_iter >= (max_iter or np.inf):
            return stored, solver
        further, solver = self._run(problem, solution, after=solver, share=_BEFORE_ROUNDING)
        solution = replace(further, n_iter=solution.n_iter + further.n_iter)
        return problem.certified(solution, dtype, tol), solver

    def _of_direction(self, solution: Solution) -> Solution:
        """The solution with the objective of the w that is kept, where the one of its kernel values is another.

        The exponential loss makes much of the last digits of a score. Where w is worse than w = 0, it is w = 0.
        """
        w = transpose_matvec(self.rows, solution.coef)
        primal = self.problem.objective(float(w @ w), matvec(self.rows, w))
        if abs(primal - solution.primal) <= _SAME_OBJECTIVE * solution.primal:
            return solution
        zeros = np.zeros(self.n_coefficients)
        at_zero, tol = self.problem.primal(zeros, zeros), self.task.settings["tol"]
        if at_zero <= primal:
            return solution.recertified(at_zero, solution.dual, tol, coef=zeros, scores=zeros)
        return solution.recertified(primal, solution.dual, tol)

    def keep(self, solution: Solution) -> Kept:
        """The rows that w is made of; of a linear kernel w itself."""
        c, gram, task = solution.coef, self.problem.gram, self.task
        if gram.kernel.name == "linear":
            return self._keep_direction(task.X, transpose_matvec(self.rows, c))
        support = np.flatnonzero(c)
        support = support[np.argsort(task.numbers[support])]
        attributes = {
            "support_": task.numbers[support],
            "dual_coef_": c[support].astype(self.dtype)[None, :],
            "support_vectors_": np.zeros((0, 0), self.dtype) if gram.is_precomputed else task.X[support],
            "_kernel": gram.kernel,
        }
        scores = self.problem.scores(c) if solution.scores is None else solution.scores
        rounding = ERRORS * float(np.finfo(self.dtype).eps) * float(np.abs(c).sum())
        return Kept(attributes, scores.astype(self.dtype), rounding * float(np.abs(gram.diagonal).max()))

    def part(self, rows: Any, weights: Any) -> Expansion:
        """With the same kernel matrix, of which the other rows take no part; of a linear kernel, rows centred anew."""
        problem = self.problem
        task = self.task.part(rows, weights, problem.threshold_weights)
        if problem.gram.kernel.name == "linear":
            return Expansion(task)
        part, of_all = copy(self), np.zeros(self.n_coefficients)
        of_all[rows] = weights
        part.task = replace(self.task, weights=of_all, formulation=task.formulation, settings=task.settings)
        part.problem = replace(problem, weights=of_all, formulation=task.formulation)
        return part

    def scores_by(self, part: BackEnd, solution: Solution) -> Any:
        """Those of the solution, where it has them of all rows."""
        if len(solution.coef) != self.n_coefficients:
            return super().scores_by(part, solution)
        return self.problem.scores(solution.coef) if solution.scores is None else solution.scores

    def start_of_part(self, solution: Solution, rows: Any) -> Solution:
        """The coefficients and multipliers of the rows."""
        state, taken, coef = solution.state, np.zeros(self.n_coefficients, dtype=bool), solution.coef
        taken[rows] = True
        if isinstance(state, DualPoint):
            problem = self.problem
            state = DualPoint(state.y[taken[problem.positives]], state.p[taken[problem.threshold_rows]])
        if self.problem.gram.kernel.name == "linear":
            return replace(solution, coef=coef[rows], state=state, dual_point=None, scores=None)
        return replace(solution, coef=np.where(taken, coef, 0.0), state=state, dual_point=None)


def scores_of(model: Any, X: Any) -> NDArray[Any]:
    """Scores of validated rows by what a model keeps."""
    if hasattr(model, "dual_coef_"):
        return scores_by_kernel(model._kernel, X, model.support_, model.support_vectors_, model.dual_coef_[0])
    coef = model.coef_[0]
    if hasattr(model, "feature_map_"):
        return in_blocks(lambda block: model.feature_map_(block) @ coef, X, len(coef))
    return np.asarray(X @ coef)


def _drawn_map(task: Task) -> Any:
    """Features in place of the kernel, of which landmarks or frequencies are drawn."""
    settings, X = task.settings, task.X
    kernel = _kernel(settings, X, task.weights)
    random_state, size = check_random_state(settings["random_state"]), int(settings["n_components"])
    if settings["approximation"] == "fourier":
        return FourierFeatures.fit(kernel.gamma, X, size, random_state)
    weights = _balanced(task.weights, task.positive)
    return NystroemFeatures.fit(kernel, X, min(size, X.shape[0]), random_state, weights)


def _balanced(weights: Any, positive: Any) -> Any:
    """Weights by which both classes have the same chances: of rare positives hardly any would be drawn otherwise."""
    return weights / np.where(positive, weights[positive].sum(), weights[~positive].sum())


def _kernel(settings: Mapping[str, Any], X: Any, weights: Floats) -> Kernel:
    shape = {name: settings[name] for name in ("gamma", "degree", "coef0")}
    return Kernel.resolve(settings["kernel"], X, weights=weights, **shape)


def _is_expansion(known: Known) -> bool:
    return "dual_coef_" in known


def _is_direction(known: Known) -> bool:
    return not _is_expansion(known)


def _is_precomputed(known: Known) -> bool:
    return bool(known["_kernel"].name == "precomputed")


def _n_of_direction(known: Known) -> int:
    return int(known["feature_map_"].shape[1] if "feature_map_" in known else known["n_features_in_"])


def _map_is_for_the_features(known: Known) -> bool:
    return "feature_map_" not in known or known["feature_map_"].shape[0] == known["n_features_in_"]


# What a model keeps by a back end, for its schema.
KEPT = {
    "dual_coef_": Array("f", (1, "n_support"), optional=True),
    "_kernel": Kind((Kernel,), when=_is_expansion),
    "support_": Array(
        "i",
        ("n_support",),
        low=0,
        below=lambda known: known["n_features_in_"] if _is_precomputed(known) else LARGEST_COUNT,
        when=_is_expansion,
    ),
    "support_vectors_": Array(
        "f",
        (
            lambda known: 0 if _is_precomputed(known) else known["n_support"],
            lambda known: 0 if _is_precomputed(known) else known["n_features_in_"],
        ),
        sparse=True,
        when=_is_expansion,
    ),
    "feature_map_": Kind((NystroemFeatures, FourierFeatures), optional=True, when=_is_direction),
    "coef_": Array("f", (1, _n_of_direction), when=_is_direction),
}
KEPT_RELATIONS = {"a feature map for its number of features": _map_is_for_the_features}
