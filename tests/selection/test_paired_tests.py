"""The corrected t-test and Holm's correction against their definitions and by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, t, ttest_1samp

from toprank.selection.paired_tests import corrected_t_test, holm


def test_without_correction_it_is_the_paired_t_test(rng):
    differences = rng.normal(0.3, 1.0, size=12)
    assert corrected_t_test(differences, 0.0) == pytest.approx(ttest_1samp(differences, 0).pvalue)


def test_formula(rng):
    d = rng.normal(0.3, 1.0, size=10)
    statistic = d.mean() / np.sqrt((1 / 10 + 1 / 9) * d.var(ddof=1))
    assert corrected_t_test(d, 1 / 9) == pytest.approx(2 * (1 - t.cdf(abs(statistic), 9)))
    assert corrected_t_test(d, 1 / 9) == pytest.approx(corrected_t_test(-d, 1 / 9))
    assert corrected_t_test(d, 1 / 9) > corrected_t_test(d, 0.0)


def test_constant_differences():
    assert corrected_t_test(np.zeros(5), 0.25) == 1.0
    assert corrected_t_test(np.full(5, 0.1), 0.25) == 0.0
    with pytest.raises(ValueError, match="at least two folds, got 1"):
        corrected_t_test([0.1], 0.25)


def by_definition(p):
    """Holm's procedure by its rejections: the adjusted value is the smallest level at which a test is rejected."""
    order, adjusted, running = sorted(range(len(p)), key=lambda i: p[i]), [0.0] * len(p), 0.0
    for place, i in enumerate(order):
        running = max(running, (len(p) - place) * p[i])
        adjusted[i] = min(1.0, running)
    return adjusted


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm(p):
    adjusted = holm(p)
    np.testing.assert_allclose(adjusted, by_definition(p))
    assert np.all(adjusted >= np.array(p))
    assert np.all(adjusted <= np.minimum(1.0, len(p) * np.array(p)) + 1e-15)


def test_false_discoveries_of_repeated_splits_are_rare():
    """Two models of the same quality, scored on ten random test sets out of the same 300 rows.

    Their differences share rows, which the plain test does not know.
    """
    rng = np.random.default_rng(0)
    found = {"corrected": 0, "plain": 0}
    for _ in range(300):
        right = rng.random((2, 300)) < 0.8
        tests = [rng.choice(300, 100, replace=False) for _ in range(10)]
        differences = [right[0, rows].mean() - right[1, rows].mean() for rows in tests]
        found["corrected"] += corrected_t_test(differences, 100 / 200) < 0.05
        found["plain"] += corrected_t_test(differences, 0.0) < 0.05
    assert found["corrected"] <= binom.ppf(1 - 1e-4, 300, 0.05)
    assert found["plain"] > 5 * found["corrected"]
