"""Drift of the scores of negatives: the sample that is kept, and the tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact, ks_2samp

from toprank.exceptions import InputError
from toprank.ranking.drift import ScoreDrift, ScoreSample


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60), st.integers(-6, 6))
def test_a_small_sample_is_kept_whole(scores, at):
    sample = ScoreSample.of(scores, threshold=at)
    assert sample.above == sum(score > at for score in scores)
    assert sample.share_above([at])[0] == pytest.approx(sample.share)
    assert sample.step == 0


@pytest.mark.parametrize("n", [999, 1000, 1001, 1500, 40_000])
def test_a_large_sample_is_bounded_and_exact_at_the_top(n):
    scores = np.random.default_rng(n).normal(size=n)
    sample = ScoreSample.of(scores)
    assert len(sample.quantiles) <= 1000
    at = np.sort(scores)[-500:]
    exact = np.array([(scores > one).mean() for one in at])
    np.testing.assert_allclose(sample.share_above(at), exact, atol=1e-12)
    everywhere = np.linspace(-4, 4, 200)
    exact = np.array([(scores > one).mean() for one in everywhere])
    assert np.abs(sample.share_above(everywhere) - exact).max() <= sample.step + 1e-12 <= 1 / 499


def test_the_record_comes_back_and_a_damaged_one_is_refused():
    sample = ScoreSample.of(np.random.default_rng(0).normal(size=3000))
    again = ScoreSample.from_record(sample.record())
    np.testing.assert_array_equal(again.quantiles, sample.quantiles)
    assert (again.rows, again.above) == (sample.rows, sample.above)
    for damage in ({"rows": 500}, {"quantiles": sample.quantiles[::-1]}):
        with pytest.raises(InputError, match="fit the model again"):
            ScoreSample.from_record(sample.record() | damage)
    with pytest.raises(InputError, match="there are no negatives"):
        ScoreSample.of([])


def test_against_scipy():
    random = np.random.default_rng(0)
    before, now = random.normal(size=300), random.normal(0.4, size=400)
    drift = ScoreDrift.of(before, now, threshold=1.0)
    counts = [[int((one > 1).sum()), int((one <= 1).sum())] for one in (before, now)]
    assert drift.p_value == pytest.approx(fisher_exact(counts).pvalue)
    whole = ks_2samp(before, now, method="asymp")
    assert drift.distance == pytest.approx(whole.statistic)
    assert drift.distance_p_value == pytest.approx(whole.pvalue)


def test_false_alarms_of_the_test_itself_are_rare():
    """Of samples of one distribution at most about one in a hundred is called drifted."""
    random = np.random.default_rng(0)
    drifted = [ScoreDrift.of(*random.normal(-2, size=(2, 2000))).is_surprising for _ in range(300)]
    assert np.mean(drifted) <= 0.02


def test_what_is_told():
    random = np.random.default_rng(0)
    before = random.normal(-2, size=5000)
    risen = ScoreDrift.of(before, random.normal(-1, size=5000))
    assert risen.is_surprising
    assert "has risen from 2.2 % to 16 % (Fisher's exact test, p = " in risen.sentence()
    moved = ScoreDrift.of(before - 3, before - 3.5)  # no alarms then and now, but other scores
    assert moved.is_surprising
    assert not moved.alarms_differ
    assert "have moved since the fit" in moved.sentence()
    same = ScoreDrift.of(before, before)
    assert not same.is_surprising
    assert "not moved much" in same.sentence()
