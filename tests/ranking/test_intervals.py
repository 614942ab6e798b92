"""Limits against scipy, a formula written out, and simulation."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest, t

from toprank.decision import fpr_upper_bound
from toprank.ranking.intervals import clopper_pearson, fold_band, one_sided_lower, one_sided_upper


@pytest.mark.parametrize("trials", [1, 2, 7, 40])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_limits_are_those_of_the_exact_binomial_test(trials, confidence):
    successes = np.arange(trials + 1)
    lower, upper = clopper_pearson(successes.astype(float), np.full(trials + 1, float(trials)), confidence)
    for s in successes:
        exact = binomtest(int(s), trials).proportion_ci(confidence, method="exact")
        np.testing.assert_allclose([lower[s], upper[s]], exact, atol=1e-12)


def test_one_sided_limits_are_those_of_the_decision_module():
    for n, above in ((300, 0), (1000, 4), (50, 49)):
        upper = one_sided_upper(np.array([float(above)]), np.array([float(n - above)]), 0.95)[0]
        assert upper == pytest.approx(fpr_upper_bound(n, n - above, 0.95), rel=1e-12)
        assert binom.cdf(above, n, upper) == pytest.approx(0.05)
    lower = one_sided_lower(np.array([4.0]), np.array([996.0]), 0.95)[0]
    assert binom.sf(3, 1000, lower) == pytest.approx(0.05)
    assert one_sided_upper(np.array([3.0]), np.array([0.0]), 0.95)[0] == 1
    assert one_sided_lower(np.array([0.0]), np.array([3.0]), 0.95)[0] == 0


def test_band_of_precision_covers_the_mean_probability_of_unequal_rows():
    rng = np.random.default_rng(0)
    probability = np.sort(rng.beta(0.5, 0.5, size=60))[::-1]
    found = (rng.random((4000, 60)) < probability).sum(axis=1).astype(float)
    lower, upper = clopper_pearson(found, np.full(4000, 60.0), 0.9)
    covered = np.mean((lower <= probability.mean()) & (probability.mean() <= upper))
    assert covered >= 0.9


def test_fold_band_is_the_corrected_t_interval():
    values = np.array([[0.5, 0.0, 0.9], [0.7, 0.0, 1.0], [0.6, 0.1, 1.0]])
    band = fold_band(np.arange(3.0), values, test_over_train=0.5, confidence=0.9)
    np.testing.assert_allclose(band.mean, [0.6, 0.1 / 3, 2.9 / 3])
    half = t.ppf(0.95, 2) * 0.1 * np.sqrt(1 / 3 + 0.5)
    assert band.upper[0] == pytest.approx(0.6 + half)
    assert band.lower[0] == pytest.approx(0.6 - half)
    assert (band.lower[1], band.upper[2]) == (0.0, 1.0)
    assert fold_band(np.arange(3.0), values, 0.5, 0.9, highest=np.inf).upper[2] > 1


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -1, np.nan, None])
def test_bad_confidence(confidence):
    with pytest.raises(ValueError, match="confidence must be strictly between 0 and 1"):
        clopper_pearson(np.ones(1), np.ones(1), confidence)
    with pytest.raises(ValueError, match="confidence must be strictly between 0 and 1"):
        fold_band(np.ones(1), np.ones((2, 1)), 0.5, confidence)
