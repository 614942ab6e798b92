"""Histograms of scores: every row once, the threshold an edge, no row on the wrong side of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.plots import RankedList, ScoreDensityDisplay, ScoreHistogram

finite = st.floats(-1e6, 1e6, allow_subnormal=False)


@settings(max_examples=200)
@given(st.lists(finite, min_size=2, max_size=30), st.integers(1, 60), st.one_of(st.none(), finite))
def test_bars_right_of_the_threshold_are_the_alerts(scores, bins, threshold):
    y = np.arange(len(scores)) % 2
    ranked = RankedList.from_predictions(y, scores)
    histogram = ScoreHistogram.from_ranking(ranked, bins=bins, threshold=threshold)
    edges = histogram.edges
    assert np.all(np.diff(edges) > 0)
    assert edges[0] < min(scores)
    assert max(scores) <= edges[-1]
    assert histogram.positives.sum() == ranked.positives
    assert histogram.negatives.sum() == ranked.negatives
    assert len(histogram.positives) <= bins + 2
    if threshold is not None:
        right = edges[:-1] >= threshold
        if min(scores) <= threshold <= max(scores):
            assert threshold in edges
        assert histogram.positives[right].sum() == histogram.point.true_positives
        assert histogram.negatives[right].sum() == histogram.point.false_positives


def test_counts_are_those_of_numpy():
    rng = np.random.default_rng(0)
    score, y = rng.normal(size=1000), rng.integers(0, 2, 1000)
    edges = np.linspace(-6, 6, 25)
    weight = rng.integers(1, 4, 1000)
    ranked = RankedList.from_predictions(y, score, sample_weight=weight)
    histogram = ScoreHistogram.from_ranking(ranked, bins=edges)
    for values, label in ((histogram.positives, 1), (histogram.negatives, 0)):
        np.testing.assert_array_equal(values, np.histogram(score[y == label], edges, weights=weight[y == label])[0])


def test_a_score_that_many_share_is_one_bar():
    y = np.array([0] * 900 + [1] * 100)
    score = np.concatenate([np.zeros(800), np.linspace(-1, 1, 200)])
    histogram = ScoreHistogram.from_ranking(RankedList.from_predictions(y, score))
    assert histogram.negatives.max() >= 800
    assert np.sort(histogram.negatives)[-2] < 10


@pytest.mark.parametrize("value", [0.0, 1.0, -3e8, 1e-300, 1e300])
def test_all_scores_equal(value):
    histogram = ScoreHistogram.from_ranking(RankedList.from_predictions([0, 1, 1], [value] * 3))
    assert histogram.positives.max() == 2
    assert histogram.negatives.sum() == 1


@pytest.mark.parametrize("scores", [[-1e300, 0.0, 1e300], [1e9, 1e9 + 2e-7, 1e9 + 4e-7], [1e-310, 2e-310, 3e-310]])
def test_extreme_scales(scores):
    histogram = ScoreHistogram.from_ranking(RankedList.from_predictions([0, 1, 1], scores), threshold=scores[1])
    assert np.isfinite(histogram.edges).all()
    assert histogram.positives[histogram.edges[:-1] >= scores[1]].sum() == 1


def test_too_large_for_an_axis():
    with pytest.raises(ValueError, match=r"the largest score is 2e\+308, too large"):
        ScoreDensityDisplay.from_predictions([0, 1], [-1.7e308, 1.7e308])


def test_drawing():
    y, score = np.array([1, 1, 0, 1, 0, 0]), np.array([0.9, 0.8, 0.7, 0.6, 0.4, 0.2])
    display = ScoreDensityDisplay.from_predictions(y, score, name="model", threshold=0.5)
    assert np.nansum(display.positives_.get_data().values) == pytest.approx(1)
    assert np.nansum(display.negatives_.get_data().values) == pytest.approx(1)
    assert display.line_.get_xdata()[0] == 0.5
    assert "TPR 1, FPR 0.33" in display.line_.get_label()
    assert display.ax_.get_xlabel() == "score of model"
    positive_rug, negative_rug = display.rugs_
    assert sorted(segment[0][0] for segment in positive_rug.get_segments()) == [0.6, 0.8, 0.9]
    assert sorted(segment[0][0] for segment in negative_rug.get_segments()) == [0.2, 0.4, 0.7]
    count = display.plot(stat="count", rug=2)
    assert count.ax_.get_yscale() == "log"
    assert np.nansum(count.positives_.get_data().values) == 3
    assert count.rugs_ == []
    without = ScoreDensityDisplay.from_predictions(y, score)
    assert without.line_ is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bins": 0}, "bins must be at least 1, got 0"),
        ({"bins": [1.0]}, "at least two rising edges"),
        ({"bins": [1.0, 0.0]}, "at least two rising edges"),
        ({"bins": [0.5, 2.0]}, "the scores from 0 to 1"),
        ({"plot_kwargs": {"stat": "density"}}, "stat must be 'share' or 'count', got 'density'"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ScoreDensityDisplay.from_predictions([0, 1], [0.0, 1.0], **parameters)


def test_both_classes_are_needed():
    with pytest.raises(ValueError, match="no negative row"):
        ScoreDensityDisplay.from_predictions([1, 1], [0.0, 1.0])
