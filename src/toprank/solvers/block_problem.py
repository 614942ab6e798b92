"""A problem on rows in blocks: what is a number for each row stays in pieces, see `toprank.matrices.block_vector`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from toprank.arrays import Floats, Mask
from toprank.formulations.surrogates import Surrogate
from toprank.matrices.block_matrix import BlockMatrix
from toprank.matrices.block_selection import ROUNDING, End, Search, find, top_mean
from toprank.matrices.block_vector import BlockVector, applied
from toprank.solvers.problem import Matrix, Problem
from toprank.solvers.row_choice import RowChoice

# Shares of a new point at which objectives are asked for together.
_ENDS, _COARSE, _FINE = (1.0, 0.9), np.arange(5) / 5, np.array([-3, -2, -1, 1, 2, 3]) / 25


@dataclass(frozen=True)
class BlockProblem(Problem):
    """As `Problem`, with rows in blocks; the roles of rows are masks in pieces.

    What follows from the rows alone is noted beside their labels and weights, and so is known to a problem with another
    loss too.
    """

    matrix: ClassVar[Matrix] = "blocks"
    passes_for_both: ClassVar[int] = 1
    X: BlockMatrix
    positive: Any
    weights: Any

    @property
    def positives(self) -> Any:
        """A mask of the positive rows."""
        return self.positive

    @property
    def negatives(self) -> BlockVector:
        """A mask of the negative rows."""
        mask: BlockVector = self.positive.noted("negatives", lambda: (~self.positive).stored())
        return mask

    @property
    def threshold_rows(self) -> Any:
        """A mask of the rows that the threshold looks at, or all rows."""
        return slice(None) if self.formulation.over == "all" else self.negatives

    @property
    def positive_share(self) -> Any:
        """Weights of the positives, of sum 1."""
        return self.weights.noted("positive share", lambda: _share(self.of_positives(self.weights)))

    @property
    def threshold_weights(self) -> Any:
        """Weights of the threshold rows, as given."""
        return self.of_threshold(self.weights)

    @property
    def threshold_share(self) -> Any:
        """Weights of the threshold rows, of sum 1."""
        return self.weights.noted("threshold share", lambda: _share(self.threshold_weights))

    @cached_property
    def caps(self) -> Any:
        """Upper bounds of the threshold rows, or None for the plain maximum."""
        caps = self.formulation.threshold.caps(self.threshold_weights)
        return None if caps is None else caps.in_short()  # type: ignore[attr-defined]

    def of_positives(self, values: BlockVector) -> BlockVector:
        """The numbers of the positives, which are kept."""
        part: BlockVector = values.noted("positives", lambda: values[self.positives].in_short())
        return part

    def of_threshold(self, values: BlockVector) -> BlockVector:
        """The numbers of the threshold rows, which are kept."""
        part: BlockVector = values.noted("threshold rows", lambda: values[self.threshold_rows].in_short())
        return part

    def scores(self, w: Floats) -> Any:
        """All scores, in pieces: one pass over the data."""
        return self.X.matvec(w)

    def zero_scores(self) -> Any:
        """The scores of all rows at w = 0."""
        return (0.0 * self.weights).in_short()

    def settled(self, scores: Any) -> Any:
        """The same, computed and kept in pieces."""
        return scores.stored()

    def mixed(self, old: Any, new: Any, share: float) -> Any:
        """As in one memory, computed and kept in pieces."""
        return new if share == 1 else ((1 - share) * old + share * new).stored()

    def combine(self, row_weights: Any) -> Floats:
        """The sum of the rows with given weights: one pass over the data."""
        return self.X.transpose_matvec(row_weights)

    def combine_both(self, one: Any, other: Any) -> tuple[Floats, Floats]:
        """The sums of the rows with two lists of weights: one pass over the data."""
        return self.X.transpose_matvec_of_two(one, other)

    def row_weights(self, on_positives: Any, on_threshold: Any) -> Any:
        """Weights of all rows, of which a row may have two roles."""
        rows = None if self.formulation.over == "all" else self.negatives
        found = applied(_row_weights, self.positive, on_positives, rows, on_threshold)
        found.lengths = self.positive.lengths
        return found

    def row_choice(self, caps: Any) -> RowChoice:
        """The choice of rows for a working set."""
        from toprank.solvers.block_row_choice import BlockRowChoice

        return BlockRowChoice(self, caps)

    # Thresholds and objectives.

    def end_of_top(self, scores: BlockVector) -> End:
        """Where the top of the threshold rows ends."""
        return scores.noted("end", lambda: find([Search(self.of_threshold(scores), self.caps, 1 - ROUNDING)])[0])  # type: ignore[no-any-return]

    def threshold_at(self, scores: Any) -> float:
        """The threshold t of the scores of all rows."""
        threshold = self.formulation.threshold
        if threshold.is_implicit:  # it is noted for these rows, and so found once
            return threshold.implicit.solve(scores[self.threshold_rows], self.threshold_share)
        if not threshold.is_maximum:
            return threshold.value(self.of_threshold(scores), self.threshold_weights)  # type: ignore[arg-type]
        return self.of_threshold(scores).max() if self.caps is None else top_mean(self.end_of_top(scores))

    def best_between(self, squares: tuple[float, float, float], old: Any, new: Any) -> tuple[float, float]:
        """As in one memory, but the objectives at several points are asked for together."""
        seen = dict(zip(_ENDS, self._objectives_between(squares, old, new, _ENDS), strict=True))
        if seen[1.0] <= seen[0.9]:
            return 1.0, seen[1.0]
        for shares in (_COARSE, _FINE):
            centre = 0.0 if shares is _COARSE else min(seen, key=lambda share: seen[share])
            wanted = [s for s in (centre + shares).tolist() if 0 <= s <= 1 and s not in seen]
            seen |= zip(wanted, self._objectives_between(squares, old, new, wanted), strict=True)
        value, share = min((value, share) for share, value in seen.items())
        return share, value

    def _objectives_between(
        self, squares: tuple[float, float, float], old: Any, new: Any, shares: Sequence[float]
    ) -> list[float]:
        """The objectives at some points between two."""
        aa, ab, bb = squares
        thresholds = self._thresholds_between(old, new, shares)
        points = self.positive_share, self.of_positives(old), self.of_positives(new)
        losses = applied(_losses_between, *points, tuple(shares), tuple(thresholds), self.formulation.surrogate)
        sums = np.sum(losses.on_blocks(_itself), axis=0)
        squared = [(1 - share) ** 2 * aa + 2 * share * (1 - share) * ab + share**2 * bb for share in shares]
        return [0.5 * self.alpha * square + float(loss) for square, loss in zip(squared, sums, strict=True)]

    def _thresholds_between(self, old: Any, new: Any, shares: Sequence[float]) -> list[float]:
        at_old, at_new = self.of_threshold(old), self.of_threshold(new)
        if self.caps is None:
            highest = applied(_highest_between, at_old, at_new, tuple(shares)).on_blocks(_itself)
            return [float(value) for value in np.max(highest, axis=0)]
        first, last = self.end_of_top(old), new.known("end")
        if first.n_equal == len(at_old) and first.value == 0:  # scores between w = 0 and new ones are parts of these
            return [share * top_mean(self.end_of_top(new)) for share in shares]
        searches = []
        for share in shares:
            guess = first.guess
            if last is not None:
                centre = (1 - share) * first.value + share * last.value
                guess = centre, max(first.guess[1], last.guess[1])
            values = at_new if share == 1 else (1 - share) * at_old + share * at_new
            searches.append(Search(values, self.caps, 1 - ROUNDING, guess=guess))
        ends = find(searches)
        if 1.0 in shares:
            new.note("end", ends[list(shares).index(1.0)])
        return [top_mean(end) for end in ends]


def _share(weights: BlockVector) -> BlockVector:
    share: BlockVector = (weights / weights.sum()).in_short()
    return share


def _itself(value: Any) -> Any:
    return value


def _losses_between(
    share: Floats, old: Floats, new: Floats, shares: Sequence[float], thresholds: Sequence[float], surrogate: Surrogate
) -> list[float]:
    points = zip(shares, thresholds, strict=True)
    return [float(share @ surrogate.value(t - ((1 - part) * old + part * new))) for part, t in points]


def _highest_between(old: Floats, new: Floats, shares: Sequence[float]) -> list[float]:
    return [float(((1 - share) * old + share * new).max(initial=-np.inf)) for share in shares]


def _row_weights(positive: Mask, on_positives: Any, rows: Mask | None, on_threshold: Any) -> Floats:
    weights = np.zeros(len(positive))
    weights[positive] = on_positives
    weights[slice(None) if rows is None else rows] += on_threshold
    return weights
