"""Metrics of weights from 1e-12 to 1e12, scores up to 1e308 and tiny parameters, against rational arithmetic."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from toprank import metrics

SHARES = [1.0, 0.5, 0.1, 1e-3, 1e-12, 1e-300, 0.999]
ALPHAS = [1e-300, 1e-18, 1e-15, 1e-10, 1e-5, 0.1, 0.5, 1.0, 3.0, 20.0, 1e4]


def hard_lists(seed, n_lists=40):
    """Labels of both classes, scores with and without ties, weights of the same and of very different sizes."""
    rng = np.random.default_rng(seed)
    for number in range(n_lists):
        n = int(rng.integers(2, 9))
        y = rng.permutation(np.concatenate([[0, 1], rng.integers(0, 2, n - 2)]))
        score = [rng.choice([-1e308, 1e308, 9e307, 5e-324, 0.0], n), rng.normal(size=n)][number % 2]
        weight = [10.0 ** rng.uniform(-12, 12, n), rng.choice([1e-12, 1e12, 1e-6, 0.1], n), np.ones(n)][number % 3]
        yield y, score, weight


def runs_of(y, score, weight):
    """Weights of the positives and the negatives of each distinct score, best first."""
    runs = {s: [Fraction(0), Fraction(0)] for s in sorted(set(score.tolist()), reverse=True)}
    for label, s, w in zip(y.tolist(), score.tolist(), weight.tolist(), strict=True):
        runs[s][1 - label] += Fraction(w)
    return list(runs.values())


def found_and_taken(runs, k):
    before = found = taken = Fraction(0)
    for positives, negatives in runs:
        share = min(max((k - before) / (positives + negatives), 0), 1)
        found, taken = found + share * positives, taken + share * (positives + negatives)
        before += positives + negatives
    return found, taken


def decimal(number):
    return Decimal(number.numerator) / Decimal(number.denominator)


def bedroc(runs, alpha):
    """The definition in 150 digits."""
    with localcontext(prec=150):
        rate = Decimal(alpha) / decimal(sum(map(sum, runs)))

        def lost(x):
            return 1 - (-rate * decimal(x)).exp()

        total, before = Decimal(0), Fraction(0)
        for positives, negatives in runs:
            run = positives + negatives
            total += decimal(positives / run) * (-rate * decimal(before)).exp() * lost(run)
            before += run
        largest = lost(sum(p for p, _ in runs))
        smallest = (-rate * decimal(sum(n for _, n in runs))).exp() * largest
        return float((total - smallest) / (largest - smallest))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_bedroc(alpha):
    for y, score, weight in hard_lists(0, 20):
        value = metrics.bedroc_score(y, score, alpha=alpha, sample_weight=weight)
        assert 0 <= value <= 1
        assert value == pytest.approx(bedroc(runs_of(y, score, weight), max(alpha, 1e-40)), abs=1e-12)


def test_bedroc_tends_to_the_area_under_the_curve(rng):
    y, score = rng.integers(0, 2, 200), rng.integers(0, 50, 200)
    area = metrics.wmw_score(y, score)
    for alpha in (1e-14, 1e-15, 1e-18, 1e-300):
        assert metrics.bedroc_score(y, score, alpha=alpha) == pytest.approx(area, abs=1e-13)
    assert metrics.bedroc_score([1, 0], [1, 0], alpha=1e300) == 1


@pytest.mark.parametrize("share", SHARES)
def test_best_share(share):
    for y, score, weight in hard_lists(1):
        runs = runs_of(y, score, weight)
        positives, total = sum(p for p, _ in runs), sum(map(sum, runs))
        found, taken = found_and_taken(runs, Fraction(share) * total)
        value = metrics.precision_at_quantile(y, score, tau=share, sample_weight=weight)
        assert 0 <= value <= 1
        assert value == pytest.approx(float(found / taken), abs=1e-12)
        value = metrics.enrichment_factor(y, score, fraction=share, sample_weight=weight)
        assert value == pytest.approx(float(found / taken / (positives / total)), rel=1e-9, abs=1e-12)


def test_enrichment_of_the_whole_list_is_one():
    assert metrics.enrichment_factor([0, 1], [1, 0], fraction=1.0, sample_weight=[1e12, 1e-6]) == 1
    for y, score, weight in hard_lists(2):
        assert metrics.enrichment_factor(y, score, fraction=1.0, sample_weight=weight) == 1


@pytest.mark.parametrize("k", [1e-12, 1e-6, 0.5, 1.0, 2.0, 1e6])
def test_best_of_groups(k):
    rng = np.random.default_rng(3)
    for y, score, weight in hard_lists(3):
        groups = rng.integers(0, 3, len(y))
        parts = [runs_of(y[rows], score[rows], weight[rows]) for rows in (groups == g for g in np.unique(groups))]
        found, taken = zip(*(found_and_taken(runs, Fraction(k)) for runs in parts), strict=True)
        expected = {
            "micro": sum(found) / sum(taken),
            "macro": sum(map(Fraction.__truediv__, found, taken)) / len(parts),
        }
        for average, exact in expected.items():
            value = metrics.precision_at_k(y, score, k=k, groups=groups, average=average, sample_weight=weight)
            assert 0 <= value <= 1
            assert value == pytest.approx(float(exact), abs=1e-12)
        recall = metrics.recall_at_k(y, score, k=k, groups=groups, sample_weight=weight)
        assert recall == pytest.approx(float(sum(found) / sum(p for runs in parts for p, _ in runs)), abs=1e-12)


def test_other_metrics_stay_in_their_range():
    for y, score, weight in hard_lists(4):
        values = [
            metrics.positives_at_top(y, score, sample_weight=weight),
            metrics.ndcg_score(y, score, sample_weight=weight),
            metrics.wmw_score(y, score, sample_weight=weight),
            metrics.partial_auc_score(y, score, max_fpr=1e-9, standardized=False, sample_weight=weight) * 1e9,
            metrics.optroc_accuracy(y, score, sample_weight=weight),
        ]
        assert all(0 <= value <= 1 for value in values), values


@pytest.mark.parametrize("position", [10, 10**6, 10**9, 10**12, 10**15])
@pytest.mark.parametrize("weight", [1e-6, 1.0, 40.0])
def test_gain_of_a_few_positives_far_down_the_list(weight, position):
    value = metrics.ndcg_score([0, 1], [1, 0], sample_weight=[position, weight])
    gains = [sum(share / np.log2(1 + r) for r, share in cells(start, weight)) for start in (position, 0)]
    assert value == pytest.approx(gains[0] / gains[1], rel=1e-11)


def cells(start, weight):
    """Positions and which part of them is taken."""
    whole = int(weight)
    return [(start + r, 1.0) for r in range(1, whole + 1)] + [(start + whole + 1, weight - whole)]


def test_heavy_rows_of_other_levels_leave_no_rounding_errors():
    y, score, weight = [0, 2, 3], [0.0, 1.0, 2.0], [1e12, 1e-6, 1e-6]
    assert metrics.wmw_score(y, score, graph="chain", labels=[0, 1, 2, 3], sample_weight=weight) == 1
    assert metrics.wmw_score([0, 1], [0, 1], sample_weight=[1e300, 1e300]) == 1


def test_weights_whose_sum_overflows():
    with pytest.raises(ValueError, match=r"sum of the sample weights overflows, the largest is 1e\+308; scale them"):
        metrics.positives_at_top([0, 1], [0, 1], sample_weight=[1e308, 1e308])
