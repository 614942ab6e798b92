"""Paired limits against brute force, an independent maximum of the likelihood, and simulations."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from toprank.metrics import partial_auc_score, precision_at_k, recall_at_k, tpr_at_fpr, wmw_score
from toprank.ranking.paired import (
    Budget,
    area_half_width,
    found_differences,
    given_limits,
    independent_limits,
    paired_share_limits,
)

BUDGETS = [Budget("max_fpr", 0.0), Budget("max_fpr", 0.02), Budget("max_fpr", 0.1), Budget("k", 5), Budget("k", 40)]


def two_scores(m, n, shift_1, shift_2, common, random, *, ties=False):
    """Normal scores with unit variance; the positives are higher by the shifts, and a share of both is common."""
    positive = np.arange(m + n) < m
    shared = random.normal(size=m + n)
    scores = [
        np.sqrt(common) * shared + np.sqrt(1 - common) * random.normal(size=m + n) + shift * positive
        for shift in (shift_1, shift_2)
    ]
    return positive, *(np.round(2 * one) / 2 if ties else one for one in scores)


def found(positive, scores, budget):
    """Positives found, by the metrics."""
    if budget.kind == "k":
        return recall_at_k(positive, scores, k=budget.value) * positive.sum()
    return tpr_at_fpr(positive, scores, max_fpr=budget.value) * positive.sum()


@pytest.mark.parametrize("ties", [False, True])
def test_differences_are_those_of_the_metrics(ties):
    positive, first, second = two_scores(60, 500, 2.0, 1.5, 0.5, np.random.default_rng(0), ties=ties)
    differences = found_differences(positive, first, second, BUDGETS, n_draws=200)
    for budget, one in zip(BUDGETS, differences, strict=True):
        expected = found(positive, first, budget) - found(positive, second, budget)
        assert one.value == pytest.approx(expected, abs=1e-9), budget
        assert one.lower <= one.value <= one.upper
    turned = found_differences(positive, second, first, BUDGETS, n_draws=200)
    for one, other in zip(differences, turned, strict=True):
        assert (one.value, one.lower, one.upper) == pytest.approx((-other.value, -other.upper, -other.lower), abs=1e-6)


@pytest.mark.parametrize("ties", [False, True])
def test_bootstrap_against_draws_of_whole_rows(ties):
    """Only rows within reach are drawn; that gives the quantiles of drawing all rows and asking the metrics."""
    random = np.random.default_rng(1)
    positive, first, second = two_scores(80, 3000, 2.0, 1.2, 0.3, random, ties=ties)
    budgets = [Budget("max_fpr", 0.01), Budget("k", 50)]
    ours = found_differences(positive, first, second, budgets, n_draws=1500)
    draws = []
    for _ in range(400):
        rows = np.concatenate([random.integers(0, 80, 80), random.integers(80, 3080, 3000)])
        draws.append([found(positive, first[rows], b) - found(positive, second[rows], b) for b in budgets])
    quantiles = np.quantile(draws, [0.025, 0.975], axis=0)
    for i, (budget, one) in enumerate(zip(budgets, ours, strict=True)):
        lower, upper = given_limits(positive, first, second, budget, 0.95)
        assert one.lower == pytest.approx(min(lower, quantiles[0, i]), abs=3)
        assert one.upper == pytest.approx(max(upper, quantiles[1, i]), abs=3)


def test_same_seed_same_limits_and_other_level_other_limits():
    positive, first, second = two_scores(30, 300, 2.0, 1.5, 0.5, np.random.default_rng(2))
    once, again = (found_differences(positive, first, second, BUDGETS, n_draws=100) for _ in range(2))
    assert once == again
    wide = found_differences(positive, first, second, BUDGETS, n_draws=100, confidence=0.99)
    assert all(a.lower >= b.lower and a.upper <= b.upper for a, b in zip(once, wide, strict=True))
    assert once != wide


@pytest.mark.parametrize(
    ("b", "c", "n"), [(12, 3, 100), (0, 0, 30), (5, 0, 20), (0, 7, 7), (2.5, 1.25, 10), (9, 9, 18)]
)
def test_tango_against_the_likelihood(b, c, n):
    """At the limits the score statistic is z, with the share under the null found by a search, not by the formula."""
    z = ndtri(0.975)
    lower, upper = paired_share_limits(b, c, n, 0.95)
    assert -1 <= lower <= (b - c) / n <= upper <= 1
    for limit in (lower, upper):
        if abs(limit) > 1 - 1e-9:
            continue

        def loss(q, delta=limit):
            """Minus the likelihood of b successes of the first alone (share q + δ), c of the second, the rest both."""
            logs = [k * np.log(max(p, 1e-300)) for k, p in ((b, q + delta), (c, q), (n - b - c, 1 - 2 * q - delta))]
            return -sum(logs)

        low, high = max(0.0, -limit), (1 - limit) / 2
        q = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
        statistic = abs(b - c - n * limit) / np.sqrt(n * (2 * q + limit * (1 - limit)))
        assert statistic == pytest.approx(z, rel=1e-4)


def test_tango_without_a_difference():
    z2 = ndtri(0.975) ** 2
    assert paired_share_limits(0, 0, 30, 0.95) == pytest.approx((-z2 / (30 + z2), z2 / (30 + z2)))


def test_newcombe_covers_two_independent_counts():
    """Exact coverage over all pairs of counts."""
    from scipy.stats import binom

    trials = 25
    limits = {(a, b): independent_limits(a, b, trials, 0.95) for a in range(26) for b in range(26)}
    for p, q in ((0.5, 0.5), (0.9, 0.7), (0.1, 0.3), (0.95, 0.9)):
        chance = np.outer(*(binom.pmf(np.arange(26), trials, share) for share in (p, q)))
        covers = np.array(
            [[limits[a, b][0] <= trials * (p - q) <= limits[a, b][1] for b in range(26)] for a in range(26)]
        )
        assert chance[covers].sum() > 0.93, (p, q)
    assert independent_limits(0, 0, 0, 0.95) == (0, 0)


def test_equal_lists_do_not_differ():
    positive, first, _ = two_scores(20, 100, 1.0, 1.0, 0.5, np.random.default_rng(3))
    for one in found_differences(positive, first, first.copy(), BUDGETS, n_draws=50):
        assert one.value == 0
        assert one.lower <= 0 <= one.upper
    assert area_half_width(positive, first, first.copy()) == 0


@pytest.mark.parametrize("ties", [False, True])
def test_area_against_all_pairs(ties):
    positive, first, second = two_scores(40, 90, 1.5, 1.0, 0.5, np.random.default_rng(4), ties=ties)
    ahead = [np.sign(one[positive][:, None] - one[~positive]) / 2 + 0.5 for one in (first, second)]
    difference = ahead[0] - ahead[1]
    variance = difference.mean(axis=1).var(ddof=1) / 40 + difference.mean(axis=0).var(ddof=1) / 90
    assert area_half_width(positive, first, second) == pytest.approx(ndtri(0.975) * np.sqrt(variance))
    assert np.isnan(area_half_width(np.arange(5) == 0, np.arange(5.0), np.arange(5.0)))


@pytest.mark.parametrize("max_fpr", [0.1, 1.0])
def test_area_limits_have_the_spread_of_fresh_rows(max_fpr):
    random = np.random.default_rng(5)
    differences, widths = [], []
    for _ in range(300):
        positive, first, second = two_scores(100, 400, 1.5, 1.2, 0.5, random)
        scores = (partial_auc_score(positive, one, max_fpr=max_fpr) for one in (first, second))
        differences.append(np.subtract(*scores))
        widths.append(area_half_width(positive, first, second, max_fpr=max_fpr))
    assert np.mean(widths) / 1.96 == pytest.approx(np.std(differences), rel=0.12)
    assert wmw_score(positive, first) == pytest.approx(partial_auc_score(positive, first))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("m", "n", "shift_1", "shift_2", "common"),
    [(30, 1000, 2.0, 1.7, 0.5), (100, 1000, 2.0, 1.7, 0.5), (300, 1000, 2.0, 1.7, 0.5), (100, 1000, 2.0, 2.0, 0.95)],
)
def test_limits_cover_what_other_rows_give(m, n, shift_1, shift_2, common):
    """The true difference, of the population at a rate and on average at a number of alerts, is within the limits."""
    budgets = [Budget("max_fpr", 0.01), Budget("max_fpr", 0.05), Budget("k", 20), Budget("k", 100)]
    random = np.random.default_rng(6)
    truth = [m * (ndtr(shift_1 - ndtri(1 - b.value)) - ndtr(shift_2 - ndtri(1 - b.value))) for b in budgets[:2]]
    lists = [two_scores(m, n, shift_1, shift_2, common, random) for _ in range(2000)]
    truth += [np.mean([found(p, a, budget) - found(p, b, budget) for p, a, b in lists]) for budget in budgets[2:]]
    covered = np.zeros(len(budgets))
    for positive, first, second in lists[:300]:
        differences = found_differences(positive, first, second, budgets, n_draws=300)
        covered += [one.lower <= true <= one.upper for one, true in zip(differences, truth, strict=True)]
    assert (covered / 300 >= 0.92).all(), covered / 300


def test_precision_and_recall_are_the_same_difference():
    positive, first, second = two_scores(60, 500, 2.0, 1.5, 0.5, np.random.default_rng(7))
    (one,) = found_differences(positive, first, second, [Budget("k", 40)], n_draws=50)
    difference = precision_at_k(positive, first, k=40) - precision_at_k(positive, second, k=40)
    assert one.times(1 / 40).value == pytest.approx(difference)
