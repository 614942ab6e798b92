"""The buffers, the generator and the threshold."""

import numpy as np
import pytest
from numba import njit
from scipy.stats import binom, chisquare

from online.oracles import SplitMix64
from toprank.base import balanced_threshold
from toprank.online import CBR, OAM, UniExp
from toprank.online._rows import random_bits, random_share
from toprank.online.threshold import threshold_at


def numbered_rows(n):
    """One feature that numbers the rows from one; every third row is positive."""
    return np.arange(1.0, n + 1)[:, None], (np.arange(n) % 3 == 0).astype(int)


def buffered(model, label):
    filled = min(model.buffer_inserted_[label], model.buffer_size_[label])
    return model.buffer_values_[label, :filled, 0].astype(int)


@pytest.mark.parametrize("sizes", [(10, 4), (1, 1), (300, 7)])
def test_fifo_keeps_the_latest(sizes):
    X, y = numbered_rows(200)
    model = OAM(buffer="fifo", buffer_size=sizes).fit(X, y)
    for label in (0, 1):
        assert sorted(buffered(model, label)) == X[y == label, 0][-sizes[label] :].tolist()


def test_reservoir_is_uniform():
    """Each of 60 rows is in a buffer of 12 as often as any other: 400 fixed seeds, hypergeometric counts."""
    X, y = numbered_rows(90)
    counts = np.zeros(91)
    for seed in range(400):
        kept = buffered(OAM(buffer="reservoir", buffer_size=12, random_state=seed).fit(X, y), 0)
        assert len(set(kept)) == 12
        counts[kept] += 1
    counts = counts[1:][y == 0]
    assert counts.sum() == 400 * 12
    # Rows of one buffer exclude each other, which makes the counts less spread than independent ones.
    assert chisquare(counts).pvalue > 0.01
    assert chisquare(counts).statistic > 25


def test_reservoir_prefers_heavy_rows():
    X, y = numbered_rows(90)
    weights = np.where(np.arange(90) < 45, 1.0, 3.0)
    late = [
        np.mean(buffered(OAM(buffer="reservoir", buffer_size=5, random_state=seed).fit(X, y, weights), 0) > 45)
        for seed in range(200)
    ]
    # 30 rows of weight one and 30 of weight three: three quarters of the weight.
    assert np.mean(late) == pytest.approx(0.75, abs=0.05)


def test_forgetting_makes_a_reservoir_prefer_late_rows():
    X, y = numbered_rows(600)
    ages = []
    for seed in range(100):
        model = CBR(buffer="reservoir", buffer_size=5, forgetting=0.95, random_state=seed).fit(X, y)
        ages.extend(600 - buffered(model, 0))
    # Two thirds of the rows are negative: seen tends to 2/3 / 0.05, and 5 slots live 20 rows on average.
    assert np.mean(ages) == pytest.approx(20, rel=0.2)


def test_generator_is_splitmix64():
    """The first numbers for the seed 1234567, as published with the generator."""
    bits, share = njit(lambda state: random_bits(state)), njit(lambda state: random_share(state))
    state = np.array([1234567], np.uint64)
    assert [int(bits(state)) for _ in range(3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]
    oracle, state = SplitMix64(5), np.array([5], np.uint64)
    assert [share(state) for _ in range(100)] == [oracle.share() for _ in range(100)]


@pytest.mark.parametrize("max_fpr", [0.01, 0.1, 0.5])
def test_false_positive_rate_of_the_next_negative(max_fpr):
    """With exchangeable scores the rate is at most max_fpr, and more than max_fpr − 1/(n + 1)."""
    for n in (int(1 / max_fpr) - 1, 200):
        scores = np.arange(n, dtype=float)
        above = n - 1 - threshold_at(scores, max_fpr)  # scores above the threshold, of those seen
        rate = (above + 1) / (n + 1)  # of the n + 1 places of the next one
        assert max_fpr - 1 / (n + 1) < rate <= max_fpr + 1e-12
    assert threshold_at(np.array([3.0, 1.0, 2.0]), 0.01) == 3.0


def balanced(negatives, positives):
    scores, positive = np.append(negatives, positives), np.repeat([False, True], [len(negatives), len(positives)])
    found = balanced_threshold(scores, positive)
    copies = np.repeat(np.arange(len(scores)), 1 + np.arange(len(scores)) % 3)
    repeated = balanced_threshold(scores[copies], positive[copies])
    assert balanced_threshold(scores, positive, 1.0 + np.arange(len(scores)) % 3) == repeated
    return found


def test_balanced_threshold_is_the_best_one(rng):
    negatives, positives = rng.normal(size=30).round(1), rng.normal(1, 1, size=12).round(1)

    def error(t):
        return (negatives > t).mean() + (positives <= t).mean()

    found = balanced(negatives, positives)
    assert error(found) == pytest.approx(min(error(t) for t in np.concatenate([negatives, positives])), abs=1e-12)
    assert not np.isin(found, np.concatenate([negatives, positives]))
    assert balanced(np.ones(3), np.ones(2)) == 1.0
    assert balanced(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 3.0  # none is better than any cut
    assert balanced(np.array([0.0, 1.0]), np.array([4.0, 5.0])) == 2.5


def test_threshold_on_a_stream():
    """A stream of normal scores: the rate among later negatives agrees with the target, within its binomial spread."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(9000, 4)), rng.normal(1, 1, size=(1000, 4))])
    y = np.repeat([0, 1], [9000, 1000])
    order = rng.permutation(10000)
    X, y = X[order], y[order]
    # Small steps: the model changes little over the window.
    model = UniExp(max_fpr=0.05, learning_rate=1e-4).fit(X, y)
    negatives = rng.normal(size=(20000, 4))
    low, high = binom.interval(0.999, 1000, 0.05)
    assert low / 1000 < (model.predict(negatives) == 1).mean() < high / 1000
    balanced = UniExp(learning_rate=1e-4).fit(X, y)
    assert (balanced.predict(X)[y == 1] == 1).mean() > 0.75
    assert (balanced.predict(X)[y == 0] == 0).mean() > 0.75
    # The window and the later half of a short stream.
    short = UniExp(threshold_window=7, max_fpr=0.5).fit(X[:100], y[:100])
    latest = short.recent_scores_[0]
    assert short.threshold_ == np.sort(latest)[3]
    assert UniExp().partial_fit(X[:5], [0] * 5, classes=[0, 1]).threshold_ == 0.0
