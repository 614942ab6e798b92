"""The band of the false positive rate against brute force and the classifier."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank.datasets import make_imbalanced
from toprank.decision import NeymanPearsonClassifier
from toprank.plots import NeymanPearsonBand, NeymanPearsonDisplay, RankedList


def band_of(scores, **parameters):
    return NeymanPearsonBand.from_ranking(RankedList.from_predictions(np.zeros(len(scores)), scores), **parameters)


@pytest.mark.parametrize("decimals", [0, 1, 8])
@pytest.mark.parametrize(("n", "max_fpr", "confidence"), [(150, 0.05, 0.95), (400, 0.01, 0.9), (60, 0.2, 0.5)])
def test_chosen_threshold_is_the_lowest_that_is_safe(rng, n, max_fpr, confidence, decimals):
    scores = np.round(rng.normal(size=n), decimals)
    band = band_of(scores, max_fpr=max_fpr, confidence=confidence)
    safe = []
    for threshold in scores:
        above = np.count_nonzero(scores > threshold)
        if binom.cdf(above, n, max_fpr) <= 1 - confidence:
            safe.append(threshold)
    assert band.marked == min(safe)
    rate, lower, upper = band.at(band.marked)
    assert rate == np.mean(scores > band.marked)
    assert lower <= rate <= upper <= max_fpr
    lower_thresholds = band.upper[band.thresholds < band.marked]
    assert np.all(lower_thresholds > max_fpr)


def test_all_thresholds_of_a_short_list(rng):
    scores = np.round(rng.normal(size=180), 1)
    band = band_of(scores, max_fpr=0.1)
    np.testing.assert_array_equal(band.thresholds, np.unique(scores))
    np.testing.assert_allclose(band.fpr, [np.mean(scores > threshold) for threshold in band.thresholds])
    counts = np.round(band.fpr * 180)
    np.testing.assert_allclose(binom.cdf(counts, 180, band.upper), 0.05)
    some = counts > 0
    np.testing.assert_allclose(binom.sf(counts[some] - 1, 180, band.lower[some]), 0.05)
    assert np.all(band.lower[~some] == 0)


def test_long_lists_are_thinned_to_exact_steps():
    scores = np.random.default_rng(0).normal(size=100_000)
    band = band_of(scores, max_fpr=0.01)
    assert len(band.thresholds) < 2000
    order = np.sort(scores)
    np.testing.assert_allclose(band.fpr, 1 - np.searchsorted(order, band.thresholds, side="right") / 100_000)
    assert band.thresholds[0] == order[0]
    assert band.thresholds[-1] == order[-1]
    assert band.marked in band.thresholds
    assert set(range(200)) <= set(np.round(band.fpr * 100_000).astype(int))


def test_marked_threshold_has_its_own_rate_among_many():
    scores = np.random.default_rng(1).normal(size=50_000)
    band = band_of(scores, max_fpr=0.01, threshold=0.1234)
    assert not band.is_chosen
    assert band.at(0.1234)[0] == np.mean(scores > 0.1234)
    for rank in (777, 12_345, 33_333, 40_001):
        of_a_row = float(np.sort(scores)[rank])
        assert band_of(scores, threshold=of_a_row).at(of_a_row)[0] == np.mean(scores > of_a_row)
    assert band.at(scores.min() - 1)[0] == 1.0
    assert band.at(scores.max() + 1)[0] == 0.0


def test_positives_play_no_part_and_weights_are_counts(rng):
    scores = rng.normal(size=300)
    alone = band_of(scores, max_fpr=0.05)
    y = np.append(np.zeros(300), np.ones(40))
    ranked = RankedList.from_predictions(y, np.append(scores, rng.normal(size=40)))
    mixed = NeymanPearsonBand.from_ranking(ranked, max_fpr=0.05)
    np.testing.assert_array_equal(alone.upper, mixed.upper)
    assert alone.marked == mixed.marked
    twice = NeymanPearsonBand.from_ranking(
        RankedList.from_predictions(np.zeros(300), scores, sample_weight=np.full(300, 2)), max_fpr=0.05
    )
    repeated = band_of(np.repeat(scores, 2), max_fpr=0.05)
    assert (twice.negatives, twice.marked) == (600, repeated.marked)
    with pytest.raises(ValueError, match="not whole numbers"):
        NeymanPearsonDisplay.from_predictions(np.zeros(300), scores, sample_weight=np.full(300, 0.5))


def test_too_few_negatives_say_how_many_are_needed():
    display = NeymanPearsonDisplay.from_predictions([0, 0, 0, 1], [1.0, 2.0, 3.0, 4.0])
    assert display.data.marked is None
    assert display.point_ is None
    labels = display.ax_.get_legend_handles_labels()[1]
    assert "no threshold: 3 negatives, 299 needed" in labels
    assert band_of(np.arange(299.0)).marked == 298
    assert band_of(np.arange(298.0)).marked is None


def test_drawn_lines_are_the_data(rng):
    display = NeymanPearsonDisplay.from_predictions(np.zeros(500), rng.normal(size=500), name="model")
    np.testing.assert_array_equal(display.line_.get_ydata()[:-1], display.data.fpr)
    np.testing.assert_array_equal(display.upper_.get_ydata()[:-1], display.data.upper)
    assert display.point_.get_xdata()[0] == display.data.marked
    assert display.ax_.get_yscale() == "symlog"
    assert display.ax_.get_xlabel() == "threshold on the score of model"
    left, right = display.ax_.get_xlim()
    assert left < display.data.marked < right


@pytest.mark.parametrize("scores", [[2.0], [2.0] * 400, [0.0] * 300 + [1e-9] * 100])
def test_few_distinct_scores_are_drawn(scores):
    display = NeymanPearsonDisplay.from_predictions(np.zeros(len(scores)), scores)
    display.figure_.draw_without_rendering()
    left, right = display.ax_.get_xlim()
    assert left < min(scores) <= max(scores) < right


def test_classifier_brings_its_threshold():
    X, y, _ = make_imbalanced(6000, separation=2.0, random_state=0)
    model = NeymanPearsonClassifier(LogisticRegression(), max_fpr=0.03, confidence=0.9, random_state=0)
    model.fit(X[:4000], y[:4000])
    display = NeymanPearsonDisplay.from_estimator(model, X[4000:], y[4000:])
    assert (display.data.max_fpr, display.data.confidence, display.data.marked) == (0.03, 0.9, 0.0)
    assert not display.data.is_chosen
    realised = np.mean(model.predict(X[4000:])[y[4000:] == 0])
    assert display.data.at(0.0)[0] == pytest.approx(realised)
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:4000], y[:4000])
    chosen = NeymanPearsonDisplay.from_estimator(other, X[4000:], y[4000:], max_fpr=0.05)
    assert chosen.data.is_chosen
    assert chosen.data.at(chosen.data.marked)[2] <= 0.05


@pytest.mark.parametrize("parameters", [{"max_fpr": 0}, {"max_fpr": 1.0}, {"confidence": 1}, {"confidence": -0.5}])
def test_bad_parameters(parameters):
    with pytest.raises(ValueError, match="must be strictly between 0 and 1"):
        NeymanPearsonDisplay.from_predictions([0, 1], [0.0, 1.0], **parameters)


@pytest.mark.parametrize("threshold", [np.inf, -np.inf, 5.0, -5.0])
def test_thresholds_beyond_the_scores(threshold):
    display = NeymanPearsonDisplay.from_predictions(np.zeros(50), np.linspace(0, 1, 50), threshold=threshold)
    display.figure_.draw_without_rendering()
    assert display.data.at(threshold)[0] == (0.0 if threshold > 0 else 1.0)
    assert np.isfinite(display.ax_.get_xlim()).all()
    with pytest.raises(ValueError, match="threshold is nan"):
        NeymanPearsonDisplay.from_predictions([0, 1], [0.0, 1.0], threshold=np.nan)


def test_negatives_are_needed():
    with pytest.raises(ValueError, match="no negative row"):
        NeymanPearsonDisplay.from_predictions([1, 1], [0.0, 1.0])
