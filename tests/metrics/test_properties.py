"""Agreement with other libraries, hand-computed cases, and what must not change a value."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import somersd
from sklearn import metrics as sklearn_metrics

from toprank import metrics

PARAMETERS = {
    "bedroc_score": {"alpha": 10.0},
    "enrichment_factor": {"fraction": 0.1},
    "ndcg_score": {"k": 7},
    "optroc_accuracy": {},
    "partial_auc_score": {"max_fpr": 0.3, "min_tpr": 0.2},
    "positives_at_top": {},
    "precision_at_k": {"k": 7},
    "precision_at_quantile": {"tau": 0.1},
    "precision_at_recall": {"min_recall": 0.4},
    "recall_at_k": {"k": 7},
    "tpr_at_fpr": {"max_fpr": 0.2},
    "roc_auc_score": {},
    "wmw_score": {},
}
# the values of these do not change when all weights are multiplied by one number
SCALE_FREE = sorted(set(PARAMETERS) - {"ndcg_score", "precision_at_k", "recall_at_k"})

everywhere = pytest.mark.parametrize("name", sorted(PARAMETERS))


def evaluate(name, y, score, **more):
    return getattr(metrics, name)(y, score, **PARAMETERS[name], **more)


def sample(rng, n=300, distinct=40):
    """Labels, tied scores that know something of them, and weights of which some are zero."""
    y = (rng.random(n) < 0.3).astype(int)
    score = np.round(distinct / 6 * (rng.normal(size=n) + y))
    return y, score, rng.integers(0, 4, size=n).astype(float)


def test_every_metric_is_listed():
    names = {name for name in metrics.__all__ if not name.startswith("get_")}
    assert names == set(PARAMETERS)


@everywhere
def test_row_order_does_not_matter(name, rng):
    y, score, weight = sample(rng)
    shuffled = rng.permutation(len(y))
    value = evaluate(name, y, score, sample_weight=weight)
    again = evaluate(name, y[shuffled], score[shuffled], sample_weight=weight[shuffled])
    assert value == pytest.approx(again, abs=1e-12)


@everywhere
def test_rising_transformation_of_scores_does_not_matter(name, rng):
    y, score, weight = sample(rng)
    assert evaluate(name, y, score, sample_weight=weight) == evaluate(name, y, np.exp(score / 10), sample_weight=weight)


@everywhere
def test_weight_is_repetition_and_zero_is_removal(name, rng):
    y, score, weight = sample(rng)
    times = weight.astype(int)
    assert evaluate(name, y, score, sample_weight=weight) == pytest.approx(
        evaluate(name, np.repeat(y, times), np.repeat(score, times)), abs=1e-12
    )


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("scale", [1e-9, 0.1, 1e9])
def test_scale_of_weights_does_not_matter(name, scale, rng):
    y, score, weight = sample(rng)
    assert evaluate(name, y, score, sample_weight=weight) == pytest.approx(
        evaluate(name, y, score, sample_weight=scale * weight), abs=1e-9
    )


@everywhere
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "object"])
def test_type_of_scores_does_not_matter(name, dtype, rng):
    y, score, _ = sample(rng)
    typed = (score - score.min()).astype(dtype)
    assert evaluate(name, y, typed) == evaluate(name, y, typed.astype("float64"))


@everywhere
@pytest.mark.parametrize("column", [pd.Series, pl.Series, list, lambda v: np.asarray(v)[:, None]])
def test_containers(name, column, rng):
    y, score, weight = sample(rng)
    value = evaluate(name, column(y), column(score), sample_weight=column(weight))
    assert value == evaluate(name, y, score, sample_weight=weight)


@everywhere
def test_labels_of_any_type(name, rng):
    y, score, weight = sample(rng)
    value = evaluate(name, y, score, sample_weight=weight)
    words = np.where(y == 1, "fraud", "fine")
    named = {"labels": ["fine", "fraud"]} if name == "wmw_score" else {"pos_label": "fraud"}
    assert value == evaluate(name, words, score, sample_weight=weight, **named)
    assert value == evaluate(name, words.astype(object), score, sample_weight=weight, **named)
    assert value == evaluate(name, 2 * y - 1, score, sample_weight=weight)
    assert value == evaluate(name, y == 1, score, sample_weight=weight)


@everywhere
def test_perfect_and_worst_order(name):
    y = np.repeat([1, 0], [10, 90])
    best = {"enrichment_factor": 10.0, "recall_at_k": 0.7}.get(name, 1.0)
    worst = {"optroc_accuracy": 0.9, "precision_at_recall": 0.1}.get(name, 0.0)
    if name == "partial_auc_score":  # two-way, the chance level is not subtracted to zero but to one half
        worst = 0.5 * (1 - 0.005 / (0.3 * 0.8 - 0.005))
    assert evaluate(name, y, -np.arange(100.0)) == pytest.approx(best)
    assert evaluate(name, y, np.arange(100.0)) == pytest.approx(worst, abs=1e-12)


def test_partial_auc_agrees_with_scikit_learn(rng):
    y, score, weight = sample(rng)
    for max_fpr in (0.01, 0.1, 0.5, 1.0):
        assert metrics.partial_auc_score(y, score, max_fpr=max_fpr, sample_weight=weight) == pytest.approx(
            sklearn_metrics.roc_auc_score(y, score, max_fpr=max_fpr, sample_weight=weight), abs=1e-12
        )


def test_tpr_and_precision_agree_with_the_curves_of_scikit_learn(rng):
    y, score, weight = sample(rng)
    fpr, tpr, _ = sklearn_metrics.roc_curve(y, score, sample_weight=weight, drop_intermediate=False)
    precision, recall, _ = sklearn_metrics.precision_recall_curve(y, score, sample_weight=weight)
    for level in np.linspace(0.013, 0.987, 50):
        assert metrics.tpr_at_fpr(y, score, max_fpr=level, sample_weight=weight) == pytest.approx(
            tpr[fpr <= level].max(), abs=1e-12
        )
        # scikit-learn ends its curve with an invented point of precision 1 at recall 0
        assert metrics.precision_at_recall(y, score, min_recall=level, sample_weight=weight) == pytest.approx(
            precision[:-1][recall[:-1] >= level].max(), abs=1e-12
        )


def test_ndcg_agrees_with_scikit_learn(rng):
    y, score, _ = sample(rng)
    for k in (None, 1, 10, 250):
        assert metrics.ndcg_score(y, score, k=k) == pytest.approx(
            sklearn_metrics.ndcg_score(y[None], score[None], k=k), abs=1e-12
        )


def test_ndcg_of_weights_too_large_to_tabulate(rng):
    y, score, weight = sample(rng, n=20)
    weight = weight + 1
    times = 100_000 * weight.astype(int)  # about five million positions
    assert metrics.ndcg_score(y, score, sample_weight=times) == pytest.approx(
        sum_of_discounts(y, score, times), rel=1e-11
    )
    assert 0 < metrics.ndcg_score(y, score, sample_weight=weight * 1e12) <= 1


def sum_of_discounts(y, score, times):
    discount = 1 / np.log2(np.arange(2, times.sum() + 2))
    total, start = 0.0, 0
    for value in np.unique(score)[::-1]:
        run = score == value
        end = start + times[run].sum()
        total += discount[start:end].mean() * times[run & (y == 1)].sum()
        start = end
    return total / discount[: times[y == 1].sum()].sum()


def test_bedroc_tends_to_the_area_under_the_curve(rng):
    y, score, weight = sample(rng)
    assert metrics.bedroc_score(y, score, alpha=1e-7, sample_weight=weight) == pytest.approx(
        sklearn_metrics.roc_auc_score(y, score, sample_weight=weight), abs=1e-6
    )
    assert 0 <= metrics.bedroc_score(y, score, alpha=1e4) <= 1


@given(
    y=arrays(np.int64, 60, elements=st.integers(0, 50)),
    score=arrays(np.float64, 60, elements=st.integers(0, 20).map(float)),
)
def test_wmw_of_the_full_graph_is_somers_d(y, score):
    if len(set(y)) > 1 and len(set(score)) > 1:  # SciPy has no value for constant scores; ours is tested below
        # Somers' D of the scores given the labels is (concordant - discordant) / pairs that differ in the label
        assert metrics.wmw_score(y, score) == pytest.approx((1 + somersd(y, score).statistic) / 2, abs=1e-12)


def test_wmw_of_two_levels_is_the_area_under_the_curve(rng):
    y, score, weight = sample(rng)
    expected = sklearn_metrics.roc_auc_score(y, score, sample_weight=weight)
    for graph in ("full", "chain", [(1, 0)]):
        assert metrics.wmw_score(y, score, graph=graph, sample_weight=weight) == pytest.approx(expected, abs=1e-12)
    assert metrics.wmw_score(y, score, labels=[1, 0], sample_weight=weight) == pytest.approx(1 - expected, abs=1e-12)


def test_wmw_of_as_many_levels_as_rows_does_not_enumerate_pairs(rng):
    y = rng.permutation(50_000)
    assert metrics.wmw_score(y, y) == 1.0
    assert metrics.wmw_score(y, -y, graph="chain") == 0.0


def test_no_false_alarm_allowed_is_positives_at_top(rng):
    y, score, weight = sample(rng, distinct=1000)
    assert metrics.tpr_at_fpr(y, score, max_fpr=0, sample_weight=weight) == metrics.positives_at_top(
        y, score, sample_weight=weight
    )


def test_rounding_of_weights_does_not_lose_an_allowed_false_alarm():
    y, score = [0] * 3 + [1] + [0] * 7, np.arange(11.0)[::-1]
    weight = np.full(11, 0.1)  # the first three add up to 0.30000000000000004
    assert metrics.tpr_at_fpr(y, score, max_fpr=0.3, sample_weight=weight) == 1.0


def test_all_scores_equal():
    y, score = [1, 0, 0, 1, 0], np.zeros(5)
    assert metrics.positives_at_top(y, score) == 0
    assert metrics.tpr_at_fpr(y, score, max_fpr=0.9) == 0
    assert metrics.precision_at_k(y, score, k=1) == pytest.approx(0.4)
    assert metrics.recall_at_k(y, score, k=2) == pytest.approx(0.4)
    assert metrics.enrichment_factor(y, score, fraction=0.2) == pytest.approx(1)
    assert metrics.partial_auc_score(y, score, max_fpr=0.1) == pytest.approx(0.5)
    assert metrics.wmw_score(y, score) == pytest.approx(0.5)
    assert metrics.precision_at_recall(y, score, min_recall=0.5) == pytest.approx(0.4)
