r"""The mean hinge loss over all preferred pairs, plain or squared, as a function of the scores.

.. math:: F(s) = \frac1P \sum_{i \succ j} p_{ij} \max(0, c - s_i + s_j)^q, \qquad q = 1, 2

with a margin c, usually 1. Let aᵢⱼ = q·max(0, c − sᵢ + sⱼ)^(q−1) be the slope of a pair, zero where it has no loss.
Then ∇F·s is the mean of aᵢⱼ·(sⱼ − sᵢ), so the value follows from the slopes: q·F = c·(mean a) + ∇F·s.

The rows that are worse than those of a level are sorted once. The pairs of row i with a loss are then those from some
place on, so that sums over them are ends of cumulative sums, and the rows i of a worse row are those whose place is not
behind it: O(N log N) for a level, without a pair at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toprank.arrays import Floats, Rows
from toprank.pairwise.graph import Preferences


@dataclass(frozen=True)
class ActivePairs:
    """The pairs with a loss, of a set of better rows and a set of worse ones with weights, at given scores.

    `place` says for each better row from where on, in the order of their scores, the worse ones are in a pair with it.
    """

    better: Rows
    worse: Rows
    better_weights: Floats
    worse_weights: Floats
    place: Rows

    @classmethod
    def at(
        cls,
        scores: Floats,
        better: Rows,
        worse: Rows,
        better_weights: Floats,
        worse_weights: Floats,
        margin: float = 1.0,
    ) -> ActivePairs:
        """The pairs whose scores differ by less than the margin."""
        order = np.argsort(scores[worse], kind="stable")
        worse = worse[order]
        place = np.searchsorted(scores[worse], scores[better] - margin, side="right")
        return cls(better, worse, better_weights, worse_weights[order], place)

    @cached_property
    def weight_of_worse(self) -> Floats:
        """For each better row the weight of its worse ones."""
        return self.over_worse()

    @cached_property
    def weight_of_better(self) -> Floats:
        """For each worse row the weight of its better ones."""
        return self.over_better()

    def over_worse(self, values: Floats | None = None) -> Floats:
        """For each better row the sum over its worse ones, of numbers of all rows or of weights alone."""
        terms = self.worse_weights if values is None else self.worse_weights * values[self.worse]
        return np.append(np.cumsum(terms[::-1])[::-1], 0.0)[self.place]

    def over_better(self, values: Floats | None = None) -> Floats:
        """For each worse row the sum over its better ones."""
        terms = self.better_weights if values is None else self.better_weights * values[self.better]
        ends: Floats = np.bincount(self.place, terms, len(self.worse) + 1).astype(np.float64, copy=False)
        return np.cumsum(ends)[: len(self.worse)]


class HingePairLoss:
    """The loss of some preferences; call it with scores to get a `HingePoint`."""

    def __init__(self, preferences: Preferences, squared: bool, margin: float = 1.0) -> None:
        self.preferences = preferences
        self.squared = squared
        self.margin = margin
        self.total = preferences.total
        level, weights = preferences.level, preferences.weights
        self._groups: list[tuple[Rows, Rows, Floats, Floats]] = []
        for number, strengths in enumerate(preferences.strengths):
            better, worse = np.flatnonzero(level == number), np.flatnonzero(strengths[level] > 0)
            if len(better) and len(worse):
                of_worse = strengths[level[worse]] * weights[worse]
                self._groups.append((better, worse, weights[better], of_worse))

    def active(self, scores: Floats) -> Iterator[ActivePairs]:
        """The pairs with a loss, level by level."""
        return (ActivePairs.at(scores, *group, self.margin) for group in self._groups)

    def __call__(self, scores: Floats) -> HingePoint:
        """The loss at the scores of all rows."""
        # only differences count; far from zero they would have fewer digits
        return HingePoint(self, scores - scores.mean())


class HingePoint:
    """Value and derivatives of a `HingePairLoss` at given scores; at a kink, those of the side without a loss."""

    def __init__(self, loss: HingePairLoss, scores: Floats) -> None:
        self.loss = loss
        self.scores = scores

    @cached_property
    def _active(self) -> list[ActivePairs]:
        return list(self.loss.active(self.scores))

    @cached_property
    def _lacks(self) -> Floats:
        """How much each explicit pair lacks of the margin, at least 0."""
        better, worse = self.loss.preferences.pairs.T
        return np.asarray(np.maximum(self.loss.margin - self.scores[better] + self.scores[worse], 0.0))

    @cached_property
    def _slopes(self) -> tuple[Floats, float]:
        """The derivative of F by each score, and the mean slope of a pair."""
        s, loss, slopes = self.scores, self.loss, np.zeros(len(self.scores))
        of_pairs = loss.preferences.pair_weights * (2 * self._lacks if loss.squared else self._lacks > 0)
        self._add_differences(slopes, -of_pairs)
        total = float(of_pairs.sum())
        for pairs in self._active:
            of_better, of_worse = pairs.weight_of_worse, pairs.weight_of_better
            if loss.squared:
                of_better = 2 * ((loss.margin - s[pairs.better]) * of_better + pairs.over_worse(s))
                of_worse = 2 * ((loss.margin + s[pairs.worse]) * of_worse - pairs.over_better(s))
            slopes[pairs.better] -= pairs.better_weights * of_better
            slopes[pairs.worse] += pairs.worse_weights * of_worse
            total += float(pairs.better_weights @ of_better)
        return slopes / loss.total, total / loss.total

    @property
    def mean_slope(self) -> float:
        """The mean over all pairs of the slope of the loss of a pair."""
        return self._slopes[1]

    @property
    def gradient(self) -> Floats:
        """The derivative of F by each score."""
        return self._slopes[0]

    @cached_property
    def value(self) -> float:
        """The loss F."""
        along = self.loss.margin * self.mean_slope + float(self.gradient @ self.scores)
        return max(along / 2 if self.loss.squared else along, 0.0)

    @cached_property
    def curvature(self) -> Floats:
        """The diagonal of the Hessian of the squared loss."""
        diagonal = np.zeros(len(self.scores))
        for rows in self.loss.preferences.pairs.T:
            diagonal += np.bincount(rows, 2 * self.loss.preferences.pair_weights * (self._lacks > 0), len(diagonal))
        for pairs in self._active:
            diagonal[pairs.better] += 2 * pairs.better_weights * pairs.weight_of_worse
            diagonal[pairs.worse] += 2 * pairs.worse_weights * pairs.weight_of_better
        return diagonal / self.loss.total

    def hessian_product(self, direction: Floats) -> Floats:
        """The Hessian of the squared loss times a direction in the space of scores."""
        direction = direction - direction.mean()  # the Hessian does not see a constant, but rounding errors would
        product, preferences = np.zeros(len(direction)), self.loss.preferences
        if len(preferences.pairs):
            better, worse = preferences.pairs.T
            active = 2 * preferences.pair_weights * (self._lacks > 0)
            self._add_differences(product, active * (direction[better] - direction[worse]))
        for pairs in self._active:
            of_better = direction[pairs.better] * pairs.weight_of_worse - pairs.over_worse(direction)
            of_worse = direction[pairs.worse] * pairs.weight_of_better - pairs.over_better(direction)
            product[pairs.better] += 2 * pairs.better_weights * of_better
            product[pairs.worse] += 2 * pairs.worse_weights * of_worse
        return product / self.loss.total

    def _add_differences(self, rows: Floats, by_pair: Floats) -> None:
        """Add a number of each explicit pair to its better row and subtract it from its worse row."""
        better, worse = self.loss.preferences.pairs.T
        if len(better):
            rows += np.bincount(better, by_pair, len(rows)) - np.bincount(worse, by_pair, len(rows))
