"""Every metric equals its brute-force oracle on small lists with many ties and weights."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from toprank import metrics


@st.composite
def weighted_lists(draw, labels=(0, 1), size=6, most_rows=7):
    """Labels, scores of four values and weights 0, 1, 2; two labels at least have a positive weight.

    The last entry is the same list with the rows repeated, short enough to enumerate its tie-breakings.
    """
    n = draw(st.integers(2, size))
    first = draw(st.sampled_from(labels))
    second = draw(st.sampled_from([label for label in labels if label != first]))
    y = [first, second, *draw(st.lists(st.sampled_from(labels), min_size=n - 2, max_size=n - 2))]
    score = draw(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 3.0]), min_size=n, max_size=n))
    weight = [1, 1]
    for wanted in draw(st.lists(st.integers(0, 2), min_size=n - 2, max_size=n - 2)):
        weight.append(min(wanted, most_rows - sum(weight)))
    return y, score, weight, naive.repeated(weight, y, score)


shares = st.sampled_from([Fraction(i, 12) for i in range(13)])
positive_shares = st.sampled_from([Fraction(i, 12) for i in range(1, 13)])

without_parameters = {
    metrics.positives_at_top: naive.positives_at_top,
    metrics.optroc_accuracy: naive.optroc_accuracy,
    metrics.ndcg_score: naive.ndcg,
}


@pytest.mark.parametrize("metric", without_parameters)
@given(data=weighted_lists())
def test_metric_without_parameters(metric, data):
    y, score, weight, rows = data
    exact = float(without_parameters[metric](*rows))
    assert metric(y, score, sample_weight=weight) == pytest.approx(exact, abs=1e-12)


@given(data=weighted_lists(), share=shares)
def test_tpr_at_fpr(data, share):
    y, score, weight, rows = data
    value = metrics.tpr_at_fpr(y, score, max_fpr=float(share), sample_weight=weight)
    assert value == pytest.approx(float(naive.tpr_at_fpr(*rows, share)), abs=1e-12)


@given(data=weighted_lists(), share=shares)
def test_precision_at_recall(data, share):
    y, score, weight, rows = data
    value = metrics.precision_at_recall(y, score, min_recall=float(share), sample_weight=weight)
    assert value == pytest.approx(float(naive.precision_at_recall(*rows, share)), abs=1e-12)


@given(data=weighted_lists(), k=st.sampled_from([Fraction(i, 4) for i in range(1, 29)]))
def test_precision_and_recall_at_k(data, k):
    y, score, weight, rows = data
    if k > len(rows[0]):
        with pytest.raises(ValueError, match="longer than the list"):
            metrics.precision_at_k(y, score, k=float(k), sample_weight=weight)
        return
    precision = metrics.precision_at_k(y, score, k=float(k), sample_weight=weight)
    recall = metrics.recall_at_k(y, score, k=float(k), sample_weight=weight)
    assert precision == pytest.approx(float(naive.precision_at_k(*rows, k)), abs=1e-12)
    assert recall == pytest.approx(float(naive.recall_at_k(*rows, k)), abs=1e-12)


@given(data=weighted_lists(), share=positive_shares)
def test_precision_at_quantile_and_enrichment(data, share):
    y, score, weight, rows = data
    exact = naive.precision_at_k(*rows, share * len(rows[0]))
    base_rate = Fraction(sum(rows[0]), len(rows[0]))
    precision = metrics.precision_at_quantile(y, score, tau=float(share), sample_weight=weight)
    factor = metrics.enrichment_factor(y, score, fraction=float(share), sample_weight=weight)
    assert precision == pytest.approx(float(exact), abs=1e-12)
    assert factor == pytest.approx(float(exact / base_rate), abs=1e-12)


@given(days=st.lists(weighted_lists(size=4), min_size=1, max_size=3), k=st.sampled_from([1, 2, 2.5]))
def test_groups_are_lists_of_their_own(days, k):
    columns = [np.concatenate([day[i] for day in days]) for i in range(3)]
    day_names = np.repeat(["c", "a", "b"][: len(days)], [len(day[0]) for day in days])
    shuffled = np.random.default_rng(len(day_names)).permutation(len(day_names))
    y, score, weight = (column[shuffled] for column in columns)
    taken = [min(Fraction(k), len(rows[0])) for *_, rows in days]
    precision = [naive.precision_at_k(*rows, size) for (*_, rows), size in zip(days, taken, strict=True)]
    recall = [naive.recall_at_k(*rows, size) for (*_, rows), size in zip(days, taken, strict=True)]
    positives = [sum(rows[0]) for *_, rows in days]
    given_to_both = {"k": k, "groups": day_names[shuffled], "sample_weight": weight}

    def pooled(values, sizes):
        return float(sum(v * s for v, s in zip(values, sizes, strict=True)) / sum(sizes))

    def mean(values):
        return float(sum(values) / len(values))

    for metric, values, sizes in [
        (metrics.precision_at_k, precision, taken),
        (metrics.recall_at_k, recall, positives),
    ]:
        assert metric(y, score, **given_to_both) == pytest.approx(pooled(values, sizes), abs=1e-12)
        assert metric(y, score, average="macro", **given_to_both) == pytest.approx(mean(values), abs=1e-12)


@given(data=weighted_lists(), max_fpr=positive_shares, min_tpr=positive_shares.map(lambda share: 1 - share))
def test_partial_auc(data, max_fpr, min_tpr):
    y, score, weight, rows = data
    value = metrics.partial_auc_score(
        y, score, max_fpr=float(max_fpr), min_tpr=float(min_tpr), standardized=False, sample_weight=weight
    )
    area = naive.partial_auc(*rows, max_fpr, min_tpr)
    assert value == pytest.approx(float(area), abs=1e-12)
    # standardised: one half for the curve of a single tie, the diagonal, and 1 for a perfect order
    chance = naive.partial_auc([1, 0], [0, 0], max_fpr, min_tpr)
    best = naive.partial_auc([1, 0], [1, 0], max_fpr, min_tpr)
    value = metrics.partial_auc_score(y, score, max_fpr=float(max_fpr), min_tpr=float(min_tpr), sample_weight=weight)
    assert value == pytest.approx(float((1 + (area - chance) / (best - chance)) / 2), abs=1e-9)


@given(data=weighted_lists(), k=st.integers(1, 8))
def test_ndcg_at_k(data, k):
    y, score, weight, rows = data
    assert metrics.ndcg_score(y, score, k=k, sample_weight=weight) == pytest.approx(naive.ndcg(*rows, k), abs=1e-12)


@given(data=weighted_lists(), alpha=st.sampled_from([0.5, 5.0, 20.0, 80.0]))
def test_bedroc(data, alpha):
    y, score, weight, rows = data
    value = metrics.bedroc_score(y, score, alpha=alpha, sample_weight=weight)
    assert value == pytest.approx(naive.bedroc(*rows, alpha), abs=1e-9)


LEVELS = (0, 1, 2, 3, 4, 5)
full = [(a, b, 1) for a in LEVELS for b in LEVELS if a > b]
chain = [(a + 1, a, 1) for a in LEVELS[:-1]]
own = [(3, 0, 2), (1, 2, 1), (5, 4, Fraction(1, 2)), (3, 1, 1), (0, 5, 3), (3, 0, 1)]


@pytest.mark.parametrize(("graph", "edges"), [("full", full), ("chain", chain), (own, own)])
@given(data=weighted_lists(labels=LEVELS, size=12, most_rows=16))
def test_wmw(graph, edges, data):
    y, score, weight, rows = data
    present = set(rows[0])
    if any(better in present and worse in present for better, worse, _ in edges):
        value = metrics.wmw_score(y, score, graph=graph, labels=LEVELS, sample_weight=weight)
        assert value == pytest.approx(float(naive.wmw(*rows, edges)), abs=1e-12)
    else:
        with pytest.raises(ValueError, match="no pair of rows"):
            metrics.wmw_score(y, score, graph=graph, labels=LEVELS, sample_weight=weight)
