r"""Scores of any model on one scale: how rare false alarms are from there upwards.

.. math:: z(s) = -\log \frac{W(> s) + \frac12 W(= s)}{W}

with the weight W of the held-out negatives that are above s, at s, or anywhere. Two models with the same z for a row
promise the same false positive rate above it, whatever their own scores are: probabilities, votes or distances. The
scale stretches the top of the list, where the decision is.
"""

from __future__ import annotations

import numpy as np

from toprank.arrays import Floats, Mask

# Knots: so many of the highest negatives one by one, below them those whose number from above grows by this factor.
_SINGLE, _GROWTH = 100, 1.01


def alarm_scale(scores: Floats, positive: Mask, weights: Floats) -> Floats:
    """The scale of some held-out scores: rows of knots s and z(s), both rising; a few hundred, however many scores.

    It ends at the highest score of all rows, where half as much counts as at the highest negative.
    """
    negatives, share = scores[~positive], weights[~positive]
    order = np.argsort(-negatives, kind="stable")
    falling, reached = negatives[order], np.cumsum(share[order])
    last = np.append(np.flatnonzero(np.diff(falling)), len(falling) - 1)  # of each run of ties
    middle = (reached[last] + np.append(0.0, reached[last[:-1]])) / 2
    chosen = _thinned(len(last))[::-1]
    knots, counted = falling[last[chosen]], middle[chosen]
    if scores.max() > knots[-1]:
        knots, counted = np.append(knots, scores.max()), np.append(counted, counted[-1] / 2)
    return np.vstack([knots, -np.log(counted / reached[-1])])


def on_scale(scores: Floats, scale: Floats) -> Floats:
    """z(s), by lines between the knots and the same slopes beyond them, so that no order is lost at the top."""
    knots, values = scale
    z = np.interp(scores, knots, values)
    if len(knots) > 1:
        for side, (end, inner) in ((scores < knots[0], (0, 1)), (scores > knots[-1], (-1, -2))):
            slope = (values[end] - values[inner]) / (knots[end] - knots[inner])
            z[side] += slope * (scores[side] - knots[end])
    return np.asarray(z)


def _thinned(n: int) -> Floats:
    """Numbers of the runs that become knots, from above, the last one included."""
    steps = int(np.ceil(np.log(max(n / _SINGLE, 1.0)) / np.log(_GROWTH)))
    numbers = np.append(np.arange(min(_SINGLE, n)), (_SINGLE * _GROWTH ** np.arange(1, steps)).astype(np.int64))
    return np.unique(np.append(numbers[numbers < n], n - 1))
