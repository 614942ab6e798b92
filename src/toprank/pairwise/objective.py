r"""The mean logistic loss over all preferred pairs as a function of the scores, with two derivatives, in linear time.

.. math:: F(s) = -\frac1P \sum_{i \succ j} p_{ij} \log \sigma(s_i - s_j), \qquad P = \sum_{i \succ j} p_{ij}

For levels with a preference graph every sum over pairs is a sum over sources at each target (`pair_sum`), where the
sources of a target are the rows of the levels that an edge joins to its own. With boxes the moments of each level are
taken once, those of the joined levels are added up, and each row is evaluated once: the number of levels hardly
matters.

Rows may be in blocks (`block_objective.py`): then scores, weights, levels and derivatives are `BlockVector`s, and there
are no explicit pairs.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from toprank.arrays import Floats, Mask
from toprank.matrices.block_vector import kept
from toprank.pairwise.boxes import Boxes, expansion
from toprank.pairwise.graph import Preferences
from toprank.pairwise.pair_sums import fast_or_direct_sum

# Largest number of boxes of all levels together, each of which takes 128 bytes a few times.
MAX_CELLS = 2_000_000


class PairLoss:
    """The loss of some preferences; call it with scores to get a `LossPoint`.

    With ``summation="erfc"`` the gradient is that of the paper, by its approximation of the sigmoid; value and
    curvature are exact, so that what was found can be judged.
    """

    def __init__(self, preferences: Preferences, summation: str = "exact", eps: float = 1e-6) -> None:
        self.preferences = preferences
        self.summation = summation
        self.eps = eps
        self.total = preferences.total
        strengths = preferences.strengths
        self.worse = strengths  # [a, b] > 0: rows of level a have those of level b below them
        self.better = np.ascontiguousarray(strengths.T)
        self.both = strengths + strengths.T
        self.has_graph = bool(strengths.any())
        self.has_pairs = len(preferences.pairs) > 0

    def __call__(self, scores: Any) -> LossPoint:
        """The loss at the scores of all rows."""
        # only differences count; far from zero they would have fewer digits
        return LossPoint(self, scores - scores.mean())


class LossPoint:
    """Value and derivatives of a `PairLoss` at given scores, each computed on first use."""

    def __init__(self, loss: PairLoss, scores: Any, boxes: Boxes | None = None) -> None:
        self.loss = loss
        self.scores = scores
        self._known_boxes = boxes

    @cached_property
    def value(self) -> float:
        """The loss F."""
        loss, weights = self.loss, self.loss.preferences.weights
        value = -float(loss.preferences.pair_weights @ log_expit(self._margins)) if loss.has_pairs else 0.0
        if loss.has_graph:
            if self._in_boxes:
                polynomials = self._polynomials("log_sigmoid", self._moments, loss.worse)
                value -= float(np.vdot(self._moments, polynomials))
            else:
                value -= float(weights @ self._sum_in_parts("log_sigmoid", weights, loss.worse))
        return value / loss.total

    @cached_property
    def gradient(self) -> Any:
        """The derivative of F by each score."""
        loss, slopes = self.loss, 0.0
        if loss.has_pairs:
            slopes = self._differences(-loss.preferences.pair_weights * expit(-self._margins))
        if loss.has_graph:
            slopes = slopes + loss.preferences.weights * self._graph_slopes()
        return slopes / loss.total

    def _graph_slopes(self) -> Any:
        """At each row: σ(s − s') summed over the better rows s' minus σ(s' − s) summed over the worse ones."""
        loss, weights = self.loss, self.loss.preferences.weights
        if self._in_boxes and loss.summation == "exact":
            return self._at_rows(self._slope_polynomials)
        return self._sum_in_parts("sigmoid", weights, loss.better) - self._sum_in_parts(
            "reversed_sigmoid", weights, loss.worse
        )

    @cached_property
    def curvature(self) -> Any:
        """The diagonal of the Hessian of F."""
        loss = self.loss
        diagonal: Any = 0.0
        if loss.has_pairs:
            both = (np.bincount(of, self._pair_curvature, len(self.scores)) for of in loss.preferences.pairs.T)
            diagonal = np.add(*both)
        if loss.has_graph:
            diagonal = diagonal + loss.preferences.weights * self._own_curvature
        return diagonal / loss.total

    def hessian_product(self, direction: Any) -> Any:
        """The Hessian of F times a direction in the space of scores."""
        loss, weights, product = self.loss, self.loss.preferences.weights, 0.0
        direction = direction - direction.mean()  # the Hessian does not see a constant, but rounding errors would
        if loss.has_pairs:
            better, worse = loss.preferences.pairs.T
            product = self._differences(self._pair_curvature * (direction[better] - direction[worse]))
        if loss.has_graph:
            sums = self._curvature_sums(weights * direction)
            product = product + weights * (self._own_curvature * direction - sums)
        return product / loss.total

    @cached_property
    def _slope_polynomials(self) -> Floats:
        polynomials = self._polynomials("sigmoid", self._moments, self.loss.better)
        polynomials -= self._polynomials("reversed_sigmoid", self._moments, self.loss.worse)
        return polynomials

    @cached_property
    def _own_curvature(self) -> Any:
        """σ'(s − s') summed over all rows s' that an edge joins: the derivative of the slopes by s."""
        if not self._in_boxes or self.loss.summation == "erfc":
            return self._curvature_sums(self.loss.preferences.weights)
        derivative = np.zeros_like(self._slope_polynomials)
        degrees = np.arange(1, derivative.shape[2])
        derivative[:, :, :-1] = self._slope_polynomials[:, :, 1:] * (2 / self._boxes.width * degrees)
        return kept(self._at_rows(derivative))

    def _curvature_sums(self, weights: Any) -> Any:
        """σ'(s − s') summed with given weights over all rows s' that an edge joins."""
        if not self._in_boxes:
            return self._sum_in_parts("sigmoid_derivative", weights, self.loss.both)
        moments = self._moments if weights is self.loss.preferences.weights else self._moments_of(weights)
        return self._at_rows(self._polynomials("sigmoid_derivative", moments, self.loss.both))

    @cached_property
    def _margins(self) -> Floats:
        better, worse = self.loss.preferences.pairs.T
        return np.asarray(self.scores[better] - self.scores[worse])

    @cached_property
    def _pair_curvature(self) -> Floats:
        return np.asarray(self.loss.preferences.pair_weights * expit(self._margins) * expit(-self._margins))

    def _differences(self, by_pair: Floats) -> Any:
        """Of each row the numbers of the pairs where it is the better one, minus those where it is the worse one."""
        better, worse = (np.bincount(of, by_pair, len(self.scores)) for of in self.loss.preferences.pairs.T)
        return better - worse

    @cached_property
    def _boxes(self) -> Boxes:
        return Boxes.of(1.0, self.scores) if self._known_boxes is None else self._known_boxes

    @cached_property
    def _in_boxes(self) -> bool:
        """Whether value and curvature are summed in boxes; wide scores of many levels would take too many of them."""
        n_levels = len(self.loss.preferences.strengths)
        return self.loss.summation != "direct" and n_levels * len(self._boxes.positions) <= MAX_CELLS

    @cached_property
    def _moments(self) -> Floats:
        return self._moments_of(self.loss.preferences.weights)

    def _moments_of(self, weights: Any) -> Floats:
        preferences = self.loss.preferences
        return self._boxes.moments(self.scores, weights, 0, preferences.level, len(preferences.strengths))

    def _polynomials(self, function: str, moments: Floats, joined: Floats) -> Floats:
        """The polynomials of each level from the sources of the levels that `joined` names in its row."""
        return expansion(function).apply(moments, joined, self._boxes, self._occupied)

    @cached_property
    def _occupied(self) -> Mask:
        """Whether a level has rows in a box; weights are positive."""
        return np.asarray(self._moments[:, :, 0] > 0)

    def _at_rows(self, polynomials: Floats) -> Any:
        return self._boxes.values(self.scores, polynomials, 0, self.loss.preferences.level)

    def _sum_in_parts(self, function: str, weights: Floats, joined: Floats) -> Floats:
        """The same without boxes of all levels: one sum for each level; for erfc one for each edge, as in (16)."""
        preferences, sums = self.loss.preferences, np.zeros(len(self.scores))
        summation = self.loss.summation
        if summation == "erfc" and function in ("log_sigmoid", "sigmoid_derivative"):
            summation = "exact"
        rows = [np.flatnonzero(preferences.level == number) for number in range(len(joined))]
        for targets, strengths in zip(rows, joined, strict=True):
            others = [rows[other] for other in np.flatnonzero(strengths)]
            for sources in others if summation == "erfc" or not others else [np.concatenate(others)]:
                if len(targets) and len(sources):
                    q = strengths[preferences.level[sources]] * weights[sources]
                    sums[targets] += fast_or_direct_sum(
                        self.scores[targets], self.scores[sources], q, function, summation, self.loss.eps
                    )
        return sums
