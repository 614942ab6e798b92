"""The data of the displays equal the metrics, at every threshold and every k, with ties and weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_curve, roc_curve

from toprank.metrics import (
    enrichment_factor,
    positives_at_top,
    precision_at_k,
    precision_at_recall,
    recall_at_k,
    tpr_at_fpr,
)
from toprank.plots import (
    GainCurve,
    LiftCurve,
    PrecisionAtKCurve,
    PrecisionRecallCurve,
    RankedList,
    RocCurve,
)
from toprank.ranking.curves import EVERY_K, list_lengths


@st.composite
def weighted_lists(draw):
    """Labels, scores with many ties and weights, some of them zero; both classes have weight."""
    n = draw(st.integers(2, 25))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    score = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    weight = draw(st.lists(st.sampled_from([0, 1, 2, 3]), min_size=n, max_size=n))
    y[0], y[1], weight[0], weight[1] = 0, 1, max(weight[0], 1), max(weight[1], 1)
    return np.array(y), np.array(score, dtype=float), np.array(weight, dtype=float)


def ranked_list(y, score, weight):
    return RankedList.from_predictions(y, score, sample_weight=weight)


@settings(max_examples=40)
@given(weighted_lists())
def test_roc_is_tpr_at_fpr(rows):
    y, score, weight = rows
    curve = RocCurve.from_ranking(ranked_list(*rows))
    bounds = np.concatenate([curve.fpr, np.linspace(0, 1, 30)])
    expected = [tpr_at_fpr(y, score, max_fpr=bound, sample_weight=weight) for bound in bounds]
    np.testing.assert_array_equal(curve.at(bounds), expected)
    assert curve.at(0.0) == positives_at_top(y, score, sample_weight=weight)


@settings(max_examples=40)
@given(weighted_lists())
def test_corners_are_those_of_scikit_learn(rows):
    y, score, weight = rows
    roc = RocCurve.from_ranking(ranked_list(*rows))
    fpr, tpr, thresholds = roc_curve(y, score, sample_weight=weight, drop_intermediate=False)
    kept = np.append(True, np.isin(thresholds[1:], score[weight > 0]))  # a score of weight zero is no corner
    np.testing.assert_allclose(roc.fpr, fpr[kept], atol=1e-12)
    np.testing.assert_allclose(roc.tpr, tpr[kept], atol=1e-12)
    np.testing.assert_array_equal(roc.thresholds, thresholds[kept])
    curve = PrecisionRecallCurve.from_ranking(ranked_list(*rows))
    used = weight > 0
    precision, recall, thresholds = precision_recall_curve(y[used], score[used], sample_weight=weight[used])
    np.testing.assert_allclose(curve.precision, precision[:-1][::-1], atol=1e-12)
    np.testing.assert_allclose(curve.recall, recall[:-1][::-1], atol=1e-12)
    np.testing.assert_array_equal(curve.thresholds, thresholds[::-1])


@settings(max_examples=40)
@given(weighted_lists())
def test_best_precision_from_a_recall_on_is_precision_at_recall(rows):
    y, score, weight = rows
    curve = PrecisionRecallCurve.from_ranking(ranked_list(*rows))
    for recall in [*curve.recall, 0.0, 0.3, 0.5, 1.0]:
        best = curve.precision[curve.recall >= recall * (1 - 1e-12)].max()
        assert best == precision_at_recall(y, score, min_recall=recall, sample_weight=weight)
        assert curve.at(recall) <= best


def test_precision_recall_reads_the_shortest_list():
    ranked = RankedList.from_predictions([1, 0, 0, 1, 1, 0], [6, 5, 4, 3, 2, 1])
    curve = PrecisionRecallCurve.from_ranking(ranked)
    np.testing.assert_allclose(curve.at([0.0, 1 / 3, 0.34, 2 / 3, 0.7, 1.0]), [1, 1, 0.5, 0.5, 0.6, 0.6])
    wrong = PrecisionRecallCurve.from_ranking(RankedList.from_predictions([0, 1], [2, 1]))
    np.testing.assert_array_equal(wrong.at([0.0, 1e-3, 1.0]), [0.0, 0.5, 0.5])


@settings(max_examples=20)
@given(weighted_lists())
def test_curves_over_the_list_are_the_metrics_at_every_k(rows):
    y, score, weight = rows
    ranked = ranked_list(*rows)
    at_k, lift = PrecisionAtKCurve.from_ranking(ranked), LiftCurve.from_ranking(ranked)
    np.testing.assert_array_equal(at_k.k, np.arange(1, weight.sum() + 1))
    precision = [precision_at_k(y, score, k=k, sample_weight=weight) for k in at_k.k]
    np.testing.assert_allclose(at_k.precision, precision, rtol=1e-12, atol=1e-15)
    assert np.all(at_k.lower <= at_k.precision + 1e-12)
    assert np.all(at_k.precision <= at_k.upper + 1e-12)
    factor = [enrichment_factor(y, score, fraction=share, sample_weight=weight) for share in lift.share]
    np.testing.assert_allclose(lift.lift, factor, rtol=1e-12, atol=1e-15)
    lengths = np.linspace(0.1, weight.sum(), 17)  # also between whole numbers
    recall = [recall_at_k(y, score, k=k, sample_weight=weight) for k in lengths]
    np.testing.assert_allclose(GainCurve.from_ranking(ranked).at(lengths / weight.sum()), recall, rtol=1e-12)
    precision = [precision_at_k(y, score, k=k, sample_weight=weight) for k in lengths]
    np.testing.assert_allclose(at_k.at(lengths), precision, rtol=1e-12)
    factor = [enrichment_factor(y, score, fraction=k / weight.sum(), sample_weight=weight) for k in lengths]
    np.testing.assert_allclose(lift.at(lengths / weight.sum()), factor, rtol=1e-9)


@settings(max_examples=40)
@given(weighted_lists())
def test_weights_are_repeated_rows(rows):
    y, score, weight = rows
    times = weight.astype(int)
    repeated = RankedList.from_predictions(np.repeat(y, times), np.repeat(score, times))
    for curve_class in (RocCurve, PrecisionRecallCurve, GainCurve, PrecisionAtKCurve, LiftCurve):
        weighted = curve_class.from_ranking(ranked_list(*rows), k=1)
        other = curve_class.from_ranking(repeated, k=1)
        np.testing.assert_allclose(weighted.x, other.x, atol=1e-12)
        np.testing.assert_allclose(weighted.y, other.y, atol=1e-12)
        assert weighted.point == other.point


@given(weighted_lists(), st.floats(0, 1), st.floats(0.01, 1), st.floats(-4, 4))
def test_operating_points_are_the_metrics(rows, max_fpr, share, threshold):
    y, score, weight = rows
    ranked = ranked_list(*rows)
    within = ranked.operating_point(max_fpr=max_fpr)
    assert within.recall == tpr_at_fpr(y, score, max_fpr=max_fpr, sample_weight=weight)
    assert within.fpr <= max_fpr * (1 + 1e-12)
    assert within.true_positives == weight[(y == 1) & (score > within.threshold)].sum()
    assert within.false_positives == weight[(y == 0) & (score > within.threshold)].sum()
    k = share * weight.sum()
    best = ranked.operating_point(k=k)
    assert best.precision == pytest.approx(precision_at_k(y, score, k=k, sample_weight=weight), rel=1e-9, abs=1e-12)
    assert best.recall == pytest.approx(recall_at_k(y, score, k=k, sample_weight=weight), rel=1e-9, abs=1e-12)
    assert best.alerts == pytest.approx(k)
    assert weight[score > best.threshold].sum() <= k * (1 + 1e-9) <= weight[score >= best.threshold].sum() * (1 + 2e-9)
    above = ranked.operating_point(threshold=threshold)
    assert above.true_positives == weight[(y == 1) & (score > threshold)].sum()
    assert above.false_positives == weight[(y == 0) & (score > threshold)].sum()


def test_threshold_of_k_alerts():
    ranked = RankedList.from_predictions([1, 0, 1, 0, 1], [5, 4, 3, 3, 1])
    thresholds = [ranked.operating_point(k=k).threshold for k in (0.5, 1, 2, 2.5, 3, 4, 5)]
    assert thresholds == [5, 4, 3, 3, 3, 1, -np.inf]


def test_points_lie_on_their_curves():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    ranked = RankedList.from_predictions(y, np.round(rng.normal(size=200) + y, 1))
    for rule in ({"max_fpr": 0.1}, {"k": 37}, {"threshold": 0.5}):
        for curve_class in (GainCurve, PrecisionAtKCurve, LiftCurve):
            curve = curve_class.from_ranking(ranked, **rule)
            x, height = curve.locate(curve.point)
            assert curve.at(x) == pytest.approx(height, rel=1e-9)
        if "k" not in rule:
            roc = RocCurve.from_ranking(ranked, **rule)
            x, height = roc.locate(roc.point)
            assert roc.at(x) == height
            pr = PrecisionRecallCurve.from_ranking(ranked, **rule)
            assert np.isclose(np.column_stack([pr.recall, pr.precision]), pr.locate(pr.point)).all(axis=1).any()


def test_rules_in_words():
    ranked = RankedList.from_predictions([1, 0, 1], [3, 2, 1])
    rules = [{"max_fpr": 0.01}, {"k": 1}, {"k": 2}, {"threshold": 0.5}]
    assert [ranked.operating_point(**rule).rule for rule in rules] == [
        "FPR ≤ 0.01",
        "1 alert",
        "2 alerts",
        "score > 0.5",
    ]
    assert ranked.operating_point() is None


def test_nothing_and_everything_taken():
    ranked = RankedList.from_predictions([1, 0], [2, 1])
    nothing = ranked.operating_point(threshold=np.inf)
    assert (nothing.alerts, nothing.recall, nothing.fpr) == (0, 0, 0)
    assert np.isnan(nothing.precision)
    everything = ranked.operating_point(max_fpr=1.0)
    assert (everything.threshold, everything.alerts, everything.share) == (-np.inf, 2, 1)


def test_places_are_dense_enough_to_hide_nothing():
    rng = np.random.default_rng(1)
    n = 50_000
    y = (rng.random(n) < 0.2).astype(int)
    ranked = RankedList.from_predictions(y, rng.normal(size=n) + y)
    curve = PrecisionAtKCurve.from_ranking(ranked, k=12_345)
    assert len(curve.k) < 1500
    assert {1, EVERY_K, 12_345, n} <= set(curve.k)
    every = np.arange(1, n + 1)
    exact = ranked.found_at(every) / every
    before = curve.precision[np.searchsorted(curve.k, every, side="right") - 1]
    assert np.abs(exact - before).max() <= 0.005
    assert np.all(np.diff(curve.k[:EVERY_K]) == 1)


@pytest.mark.parametrize("total", [0.25, 1.0, 1.5, 200.0, 201.0, 1e6])
def test_list_lengths_end_with_the_list(total):
    lengths = list_lengths(total)
    assert lengths[-1] == total
    assert np.all(np.diff(lengths) > 0)
    assert lengths[0] == min(total, 1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_types_of_scores(dtype):
    y = np.array([0, 1, 1, 0, 1])
    score = np.array([0, 1, 1, 0, 0]).astype(dtype)
    ranked = RankedList.from_predictions(y, score)
    assert ranked.scores.dtype == dtype
    assert ranked.operating_point(max_fpr=0.0).recall == tpr_at_fpr(y, score, max_fpr=0.0)
    assert ranked.operating_point(threshold=0.5).alerts == 2


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"max_fpr": 1.5}, r"max_fpr must be in \[0, 1\], got 1.5"),
        ({"max_fpr": np.nan}, r"max_fpr must be in \[0, 1\], got nan"),
        ({"k": 0}, r"k must be in \(0, 3\].* got 0"),
        ({"k": 4}, r"k must be in \(0, 3\].* got 4"),
        ({"k": np.nan}, "k must be in"),
        ({"threshold": np.nan}, "threshold is nan"),
        ({"k": 1, "threshold": 0.0}, "k and threshold are given; keep one"),
    ],
)
def test_bad_rules(rule, message):
    ranked = RankedList.from_predictions([1, 0, 1], [3, 2, 1])
    with pytest.raises(ValueError, match=message):
        ranked.operating_point(**rule)


def test_missing_classes():
    only_negatives = RankedList.from_predictions([0, 0], [1, 2])
    only_positives = RankedList.from_predictions([1, 1], [1, 2])
    for curve_class in (RocCurve, PrecisionRecallCurve, GainCurve, PrecisionAtKCurve, LiftCurve):
        with pytest.raises(ValueError, match="no positive row"):
            curve_class.from_ranking(only_negatives)
    with pytest.raises(ValueError, match="no negative row"):
        RocCurve.from_ranking(only_positives)
    with pytest.raises(ValueError, match="no negative row"):
        GainCurve.from_ranking(only_positives, max_fpr=0.1)
    assert np.all(PrecisionAtKCurve.from_ranking(only_positives).precision == 1)
