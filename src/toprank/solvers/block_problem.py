"""A problem on rows in blocks: what is a number for each row stays in pieces, see `toprank.matrices.block_vector`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from toprank.arrays import Floats, Mask, Rows
from toprank.matrices.block_matrix import BlockMatrix, stacked
from toprank.matrices.block_order import next_to_cut
from toprank.matrices.block_vector import BlockVector, applied
from toprank.matrices.working_rows import WorkingRows
from toprank.solvers.problem import Matrix, Problem
from toprank.solvers.row_choice import RowChoice, drawn

# Rows of the random part that the first point is made of.
_LARGEST_PART = 30_000


@dataclass(frozen=True)
class BlockProblem(Problem):
    """As `Problem`, with rows in blocks; the roles of rows are masks in pieces."""

    matrix: ClassVar[Matrix] = "blocks"
    X: BlockMatrix
    positive: Any
    weights: Any

    @cached_property
    def positives(self) -> Any:
        """A mask of the positive rows."""
        return self.positive

    @cached_property
    def negatives(self) -> BlockVector:
        """A mask of the negative rows."""
        mask: BlockVector = (~self.positive).stored()
        return mask

    @cached_property
    def threshold_rows(self) -> Any:
        """A mask of the rows that the threshold looks at, or all rows."""
        return slice(None) if self.formulation.over == "all" else self.negatives

    @cached_property
    def positive_share(self) -> Any:
        """Weights of the positives, of sum 1."""
        return _share(self.weights[self.positives])

    @cached_property
    def threshold_weights(self) -> Any:
        """Weights of the threshold rows, as given."""
        return self.weights[self.threshold_rows].stored()

    @cached_property
    def threshold_share(self) -> Any:
        """Weights of the threshold rows, of sum 1."""
        return _share(self.threshold_weights)

    def scores(self, w: Floats) -> Any:
        """All scores, in pieces: one pass over the data."""
        return self.X.matvec(w)

    def zero_scores(self) -> Any:
        """The scores of all rows at w = 0."""
        return (0.0 * self.weights).stored()

    def settled(self, scores: Any) -> Any:
        """The same, computed and kept in pieces."""
        return scores.stored()

    def combine(self, row_weights: Any) -> Floats:
        """The sum of the rows with given weights: one pass over the data."""
        return self.X.transpose_matvec(row_weights)

    def row_weights(self, on_positives: Any, on_threshold: Any) -> Any:
        """Weights of all rows, of which a row may have two roles."""
        rows = None if self.formulation.over == "all" else self.negatives
        found = applied(_row_weights, self.positive, on_positives, rows, on_threshold)
        found.lengths = self.positive.lengths
        return found

    def row_choice(self, caps: Any) -> RowChoice:
        """The choice of rows for a working set."""
        return BlockRowChoice(self, caps)


class BlockRowChoice(RowChoice):
    """The choice among rows in blocks: what is chosen is sent here, and the rows above stay where they are."""

    problem: BlockProblem
    grows_with_top = False
    largest_part = _LARGEST_PART

    def next_to_threshold(self, points: list[Any], size: int, keep: Rows) -> tuple[Rows, Any]:
        """As in one memory; the rows above are a mask in pieces."""
        rows = self.problem.threshold_rows
        return next_to_cut([scores[rows] for scores in points], self.caps, size, keep)  # type: ignore[arg-type]

    def rows(self, positives: Rows, threshold_rows: Rows) -> WorkingRows:
        """A copy of positives and threshold rows, sent here."""
        problem = self.problem
        parts = problem.X.rows((problem.positives, positives), (problem.threshold_rows, threshold_rows))
        return WorkingRows.of_rows(stacked(parts), len(positives))

    def sum_above(self, above: Any) -> tuple[Floats, float, int]:
        """The same by one pass, if there are such rows."""
        if self.caps is None or isinstance(above, np.ndarray) or not (count := int(np.count_nonzero(above))):
            return np.zeros(self.problem.X.shape[1]), 0.0, 0
        weights = above * self.caps
        return self.problem.combine(self.problem.row_weights(0.0, weights)), weights.sum(), count

    def listed(self, above: Any) -> Rows:
        """None: they may be as many as there are rows in the top."""
        return np.zeros(0, np.intp)

    def dual_point(self, restricted: Any, y_inside: Floats, p_inside: Floats) -> None:
        """None: it would be a vector of all rows."""
        return

    def thinned(self, smallest: int, size: int) -> tuple[Problem, float]:
        """The same rows as in one memory, sent here."""
        problem, rng = self.problem, np.random.default_rng(0)
        requests, weights = [], []
        for role in (problem.positives, problem.negatives):
            of_class = problem.weights[role]
            wanted = max(smallest, size * len(of_class) // len(problem.positive))
            numbers = np.sort(drawn(rng, len(of_class), wanted))
            chosen = of_class[numbers]
            requests.append((role, numbers))
            weights.append(of_class.sum() / chosen.sum() * chosen)
        X, positive = stacked(problem.X.rows(*requests)), np.repeat([True, False], [len(part) for part in weights])
        thinned = Problem(X, positive, np.concatenate(weights), problem.formulation, problem.alpha)
        return thinned, len(positive) / len(problem.positive)


def _share(weights: BlockVector) -> BlockVector:
    share: BlockVector = (weights / weights.sum()).stored()
    return share


def _row_weights(positive: Mask, on_positives: Any, rows: Mask | None, on_threshold: Any) -> Floats:
    weights = np.zeros(len(positive))
    weights[positive] = on_positives
    weights[slice(None) if rows is None else rows] += on_threshold
    return weights
