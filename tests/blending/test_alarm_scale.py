"""Scores on the scale of false alarms, against counting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.blending.alarm_scale import alarm_scale, on_scale


@given(seed=st.integers(0, 10_000), n=st.integers(3, 60), ties=st.booleans())
@settings(max_examples=60, deadline=None)
def test_at_negatives_it_counts_those_at_or_above(seed, n, ties):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=n), 1 if ties else 15)
    positive = np.arange(n) < 1 + n // 4
    scale = alarm_scale(scores, positive, np.ones(n))
    negatives = scores[~positive]
    counted = [
        -np.log((np.sum(negatives > score) + np.sum(negatives == score) / 2) / len(negatives)) for score in negatives
    ]
    np.testing.assert_allclose(on_scale(negatives, scale), counted, atol=1e-12)
    if scores.max() > negatives.max():
        best = np.log(4 * len(negatives) / np.sum(negatives == negatives.max()))
        assert on_scale(np.array([scores.max()]), scale)[0] == pytest.approx(best)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_it_keeps_the_order_beyond_both_ends(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=40)
    scale = alarm_scale(scores, np.arange(40) < 10, np.ones(40))
    new = np.sort(np.concatenate([3 * rng.normal(size=50), scores]))
    assert np.all(np.diff(on_scale(new, scale))[np.diff(new) > 0] > 0)


def test_a_weight_is_repetition():
    rng = np.random.default_rng(0)
    scores, positive = rng.normal(size=30), np.arange(30) < 8
    weights = rng.integers(1, 4, size=30)
    repeated = np.repeat(np.arange(30), weights)
    plain = alarm_scale(scores[repeated], positive[repeated], np.ones(len(repeated)))
    np.testing.assert_allclose(alarm_scale(scores, positive, weights.astype(float)), plain, atol=1e-12)
    np.testing.assert_allclose(alarm_scale(scores, positive, 1e-9 * weights), plain, atol=1e-12)


def test_many_scores_need_few_knots_and_lose_little():
    rng = np.random.default_rng(0)
    scores, positive = rng.normal(size=200_000), np.arange(200_000) < 10
    scale = alarm_scale(scores, positive, np.ones(200_000))
    assert scale.shape[1] < 1200
    negatives = np.sort(scores[~positive])[::-1]
    exact = -np.log((0.5 + np.arange(len(negatives))) / len(negatives))
    assert np.abs(on_scale(negatives, scale) - exact).max() < 0.01


def test_one_distinct_score_is_one_level():
    scale = alarm_scale(np.zeros(5), np.arange(5) < 2, np.ones(5))
    np.testing.assert_allclose(on_scale(np.array([-1.0, 0.0, 2.0]), scale), np.log(2) * np.ones(3))
