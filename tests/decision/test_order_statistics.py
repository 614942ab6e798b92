"""The rank of the order statistic against exact sums, and the coverage that follows from it."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, comb, exp, log, log1p

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from toprank.decision import fpr_upper_bound, negatives_needed, threshold_rule, violation_probability

SHARES = st.integers(1, 99).map(lambda percent: percent / 100)


def exact_tails(n, percent):
    """Σ_{j ≥ k} C(n, j) (1 − τ)^j τ^{n−j} for k = 1, …, n, in rational numbers."""
    terms = [Fraction(comb(n, j) * (100 - percent) ** j * percent ** (n - j), 100**n) for j in range(n + 1)]
    return {k: sum(terms[k:]) for k in range(1, n + 1)}


@given(n=st.integers(1, 60), percent=st.integers(1, 99), sure=st.integers(1, 99))
def test_rank_is_that_of_exact_sums(n, percent, sure):
    tails, delta = exact_tails(n, percent), Fraction(100 - sure, 100)
    safe = [k for k, tail in tails.items() if tail <= delta]
    if not safe:
        needed = negatives_needed(percent / 100, sure / 100)
        with pytest.raises(ValueError, match=f"at least {needed} held-out negatives, got {n}"):
            threshold_rule(n, percent / 100, sure / 100)
        return
    rule = threshold_rule(n, percent / 100, sure / 100)
    # where a tail is the allowed probability but for rounding, the next rank is as good
    assert rule.rank == safe[0] or (delta - tails[safe[0]] < 1e-12 and rule.rank == safe[0] + 1)
    assert rule.violation_probability == pytest.approx(float(tails[rule.rank]), rel=1e-9)


@given(n=st.integers(1, 10**6), tau=st.floats(1e-5, 0.99), confidence=st.floats(0.01, 0.9999))
def test_rank_is_the_smallest_that_is_safe(n, tau, confidence):
    if n < negatives_needed(tau, confidence):
        return
    rule = threshold_rule(n, tau, confidence)
    assert 1 <= rule.rank <= n
    assert binom.sf(rule.rank - 1, n, 1 - tau) <= (1 - confidence) * (1 + 1e-6)
    if rule.rank > 1:
        assert binom.sf(rule.rank - 2, n, 1 - tau) > (1 - confidence) * (1 - 1e-6)
    assert rule.fpr_upper_bound <= tau * (1 + 1e-9)


@given(tau=st.floats(1e-4, 0.99), confidence=st.floats(0.01, 0.9999))
def test_number_of_negatives_needed(tau, confidence):
    n = negatives_needed(tau, confidence)
    assert (1 - tau) ** n <= (1 - confidence) * (1 + 1e-9)
    assert n == 1 or (1 - tau) ** (n - 1) > (1 - confidence) * (1 - 1e-9)
    assert abs(n - ceil(log(1 - confidence) / log(1 - tau))) <= 1
    assert threshold_rule(n, tau, confidence).rank == n


@given(
    tau=st.tuples(st.floats(0.1, 0.99), st.integers(0, 40)).map(lambda pair: pair[0] * 10.0 ** -pair[1]),
    confidence=st.one_of(st.floats(0.01, 0.9999), st.floats(1e-30, 1e-3)),
)
def test_number_of_negatives_needed_over_many_magnitudes(tau, confidence):
    with localcontext() as context:
        context.prec = 200  # enough for all digits of 1 - tau
        exact = Fraction((1 - Decimal(confidence)).ln() / (1 - Decimal(tau)).ln())
    # the logarithms are rounded; below a million million the two ends are the same but for ties
    assert ceil(exact * (1 - Fraction(3, 10**15))) <= negatives_needed(tau, confidence) <= ceil(exact)


def test_number_of_negatives_needed_for_whole_percents():
    # with ties, such as 0.7² = 1 - 0.51, which hold for the numbers but not for their rounded values
    for percent in range(1, 100):
        power, n = 100 - percent, 1  # (1 - τ)^n is power / 100^n
        for sure in range(1, 100):
            while power > (100 - sure) * 100 ** (n - 1):
                power, n = power * (100 - percent), n + 1
            assert negatives_needed(percent / 100, sure / 100) == n


def test_rates_of_any_size():
    assert negatives_needed(1e-12, 0.95) == 2_995_732_273_553
    assert negatives_needed(5e-324, 0.95) > 10**323
    n = 3 * 10**12
    none = exp(n * log1p(-1e-12))
    assert violation_probability(n, n, 1e-12) == pytest.approx(none, rel=1e-12)
    assert violation_probability(n, n - 1, 1e-12) == pytest.approx(4 * none, rel=1e-11)
    # five false alarms where ten are expected have a probability of 6.7 %, four of 2.9 %
    assert threshold_rule(10**13, 1e-12, 0.95).rank == 10**13 - 4


def test_numbers_of_the_literature():
    # Tong, Feng and Li (2018): 59 negatives for 5 % at 95 %
    assert negatives_needed(0.05, 0.95) == 59
    assert negatives_needed(0.01, 0.95) == 299
    assert negatives_needed(0.001, 0.95) == 2995


@given(n=st.integers(1, 5000), data=st.data(), confidence=SHARES)
def test_upper_bound_inverts_the_tail(n, data, confidence):
    rank = data.draw(st.integers(1, n))
    bound = fpr_upper_bound(n, rank, confidence)
    assert bound == pytest.approx(beta.ppf(confidence, n - rank + 1, rank), rel=1e-6)
    if 1e-6 < bound < 1 - 1e-6:
        assert violation_probability(n, rank, bound) == pytest.approx(1 - confidence, rel=1e-6)


def allowed_violations(repetitions, delta):
    """So many are exceeded by chance in one run of 10,000."""
    return binom.ppf(1 - 1e-4, repetitions, delta)


# Scores of uniform numbers u, and their distribution function P(score ≤ t).
DISTRIBUTIONS = {
    "continuous": (lambda u: u, lambda t: t),
    "five values": (lambda u: np.floor(5 * u), lambda t: np.floor(t + 1) / 5),
    "mostly zero": (lambda u: np.maximum(u, 0.97), lambda t: np.where(t < 0.97, 0.0, t)),
    # ties from the quantile of 85 % to that of 99.5 %, around all thresholds
    "an atom": (
        lambda u: np.where((u > 0.85) & (u < 0.995), 0.9, u),
        lambda t: np.where((t >= 0.9) & (t < 0.995), 0.995, np.minimum(t, np.where(t < 0.9, 0.85, 1.0))),
    ),
}


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
@pytest.mark.parametrize(("n", "tau", "confidence"), [(60, 0.05, 0.95), (299, 0.01, 0.95), (1000, 0.1, 0.9)])
def test_coverage(kind, n, tau, confidence):
    scores, distribution = DISTRIBUTIONS[kind]
    rule = threshold_rule(n, tau, confidence)
    draws = scores(np.random.default_rng(7).random((2000, n)))
    rates = 1 - distribution(np.array([rule.threshold(row) for row in draws]))
    violations = np.sum(rates > tau + 1e-9)
    assert violations <= allowed_violations(2000, rule.violation_probability)
    if kind == "continuous":  # the tail is exact: not fewer either
        assert violations >= binom.ppf(1e-4, 2000, rule.violation_probability)


def test_one_rank_lower_breaks_the_guarantee():
    rng = np.random.default_rng(0)
    rule = threshold_rule(299, 0.01, 0.95)
    below = np.sort(rng.random((2000, 299)), axis=1)[:, rule.rank - 2]
    assert np.sum(1 - below > 0.01) > 2 * allowed_violations(2000, 0.05)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_threshold_is_the_order_statistic_and_some_rounding(dtype, scale):
    scores = (np.random.default_rng(0).normal(size=500) * scale).astype(dtype)
    rule = threshold_rule(500, 0.05, 0.95)
    kth = float(np.sort(scores)[rule.rank - 1])
    threshold = rule.threshold(scores)
    assert kth < threshold < kth + 100 * np.finfo(dtype).eps * abs(scale)
    assert np.sum(scores > threshold) == 500 - rule.rank


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(np.asarray, id="integers"),
        pytest.param(lambda scores: scores.astype(np.uint16), id="unsigned"),
        pytest.param(lambda scores: scores.astype(object), id="objects"),
        pytest.param(np.ndarray.tolist, id="list"),
        pytest.param(pd.Series, id="series"),
        pytest.param(lambda scores: scores[:, None].astype(float), id="column"),
    ],
)
def test_threshold_of_any_numbers(given):
    scores = np.random.default_rng(0).permutation(300)
    rule = threshold_rule(300, 0.01, 0.95)
    assert rule.threshold(given(scores)) == rule.threshold(scores.astype(np.float64))
    assert 299 < rule.threshold(given(scores)) < 299.001


def test_threshold_of_an_outlier_or_of_one_value():
    rule = threshold_rule(500, 0.05, 0.95)
    scores = np.random.default_rng(0).normal(size=500)
    scores[0] = 1e30  # a margin relative to the largest score would swallow all others
    assert rule.threshold(scores) < 10
    assert 0 < rule.threshold(np.zeros(500)) < 1e-300


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: threshold_rule(10, 0.0, 0.95), "max_fpr must be strictly between 0 and 1, got 0.0"),
        (lambda: threshold_rule(10, 0.1, 1.0), "confidence must be strictly between 0 and 1, got 1.0"),
        (lambda: negatives_needed(np.nan, 0.5), "max_fpr must be strictly between 0 and 1, got nan"),
        (lambda: negatives_needed("small", 0.5), "max_fpr must be strictly between 0 and 1, got 'small'"),
        (lambda: violation_probability(5, 6, 0.5), "rank must be between 1 and the number of negatives, 5, got 6"),
        (lambda: fpr_upper_bound(5, 0, 0.5), "rank must be between 1 and the number of negatives, 5, got 0"),
        (
            lambda: threshold_rule(100, 0.01, 0.95),
            "needs at least 299 held-out negatives, got 100; hold out more of them, raise max_fpr to 0.0296, "
            "or lower confidence to 0.6339",
        ),
        (lambda: threshold_rule(0, 0.01, 0.95), "needs at least 299 held-out negatives, got 0; hold out more of them$"),
        (lambda: threshold_rule(100, 0.1, 0.9).threshold(np.zeros(99)), "the rule is for 100 scores, got 99"),
        (lambda: threshold_rule(100, 0.1, 0.9).threshold([0.0] * 99 + [np.nan]), "first is nan in row 99"),
        (lambda: threshold_rule(100, 0.1, 0.9).threshold(["high"] * 100), "scores must be numeric"),
    ],
    ids=["zero", "one", "nan", "text", "rank-high", "rank-low", "few", "none", "length", "nan-score", "text-score"],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_remedies_of_the_error_are_enough():
    assert threshold_rule(100, 0.0296, 0.95).rank == 100
    assert threshold_rule(100, 0.01, 0.6339).rank == 100
