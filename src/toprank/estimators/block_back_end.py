"""What the direction of a model is made of where the rows are in blocks."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from toprank.estimators.back_ends import ERRORS, BackEnd, Features, Kept, Linear, Task
from toprank.estimators.checkpoint import Checkpoint
from toprank.exceptions import InputError
from toprank.matrices.block_tasks import naming_failed
from toprank.solvers.block_problem import BlockProblem
from toprank.solvers.incumbent import saved_by
from toprank.solvers.problem import Solution


class Blocks(Linear):
    """Weights of the features of rows in blocks, which are never in one place."""

    problem: BlockProblem
    matrix = "blocks"

    def __init__(self, task: Task) -> None:
        self.task = task
        alpha = float(task.settings["alpha"])
        self.problem = BlockProblem(task.X, task.positive, task.weights, task.formulation, alpha)
        self.n_coefficients = task.X.shape[1]

    def solve(self, start: Solution | None) -> tuple[Solution, str]:
        """By a solver for blocks; a dual point would be a vector of all rows."""
        checkpoint = self._checkpoint()
        if checkpoint is not None:
            token, start = saved_by.set(checkpoint.save), checkpoint.start() or start
        try:
            with naming_failed(self.problem.X.blocks):
                solution, solver = self._run(self.problem, start)
        finally:
            if checkpoint is not None:
                saved_by.reset(token)
        return replace(solution, dual_point=None), solver

    def finish(self, solution: Solution) -> None:
        """Remove the checkpoint of a fit that has reached its tolerance."""
        checkpoint = self._checkpoint()
        if checkpoint is not None and solution.converged:
            checkpoint.remove()

    def part(self, rows: Any, weights: Any) -> Blocks:
        """The rows stay in their blocks, and a checkpoint is that of the whole."""
        task = self.task.part(rows, weights.stored(), self.problem.threshold_weights)
        positive: Any = task.positive
        return Blocks(replace(task, positive=positive.stored(), settings={**task.settings, "checkpoint": None}))

    def scores_by(self, part: BackEnd, solution: Solution) -> Any:
        """One pass over the data."""
        return self.task.X.stored_scores(solution.coef.astype(self.task.X.dtype))

    def _checkpoint(self) -> Checkpoint | None:
        settings = dict(self.task.settings)
        path, name = settings.pop("checkpoint"), settings.pop("name")
        return None if path is None else Checkpoint(path, name, settings, self.problem)

    def keep(self, solution: Solution) -> Kept:
        """The direction; the scores stay in pieces."""
        coef = solution.coef.astype(self.task.X.dtype)
        scores: Any = self.task.X.stored_scores(coef)
        rounding = ERRORS * float(np.finfo(coef.dtype).eps) * abs(scores).max()
        return Kept({"coef_": coef[None, :]}, scores, rounding)


class BlockFeatures(Features, Blocks):
    """Weights of features in place of a kernel, computed beside the blocks: one more matrix in blocks."""

    def __init__(self, task: Task) -> None:
        seed = task.settings["random_state"]
        if task.settings["checkpoint"] is not None and not isinstance(seed, Integral):
            raise InputError.of(
                "random_state",
                seed,
                "must be a whole number where a fit by features has a {checkpoint}",
                "use {random_state=0}: to go on, the same features have to be drawn again",
            )
        super().__init__(task)

    def _mapped(self, task: Task) -> Any:
        """Kept beside the blocks as far as `cache_size` goes, else computed for each pass."""
        return task.X.mapped(self.feature_map, task.settings["cache_size"] * 2**20)
