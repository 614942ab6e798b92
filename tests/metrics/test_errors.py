"""Bad input is refused in words that name the value and the remedy."""

import numpy as np
import pytest

from toprank import metrics

Y, SCORE = [1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6]


@pytest.mark.parametrize(
    ("y", "score", "more", "message"),
    [
        (Y, [0.9, np.nan, 0.7, np.nan], {}, "y_score has 2 values .* first is nan in row 1"),
        (Y, [0.9, np.inf, 0.7, 0.6], {}, "first is inf in row 1"),
        (Y, np.array([1, np.nan, 1, 1], dtype="float32"), {}, "first is nan in row 1"),
        (Y, ["a", "b", "c", "d"], {}, "y_score must be numeric"),
        (Y, SCORE[:3], {}, "inconsistent numbers of samples"),
        ([], [], {}, "empty"),
        (Y, SCORE, {"sample_weight": [1, 1, -2, 1]}, r"sample_weight\[2\] is -2.0; .* negative"),
        (Y, SCORE, {"sample_weight": [1, 1, np.nan, 1]}, "sample_weight has 1 values"),
        (Y, SCORE, {"sample_weight": [0, 0, 0, 0]}, "all sample weights are zero"),
        (Y, SCORE, {"sample_weight": [1, 1]}, "inconsistent numbers of samples"),
        ([1, 1, 1, 1], SCORE, {}, "no negative row"),
        ([0, 0, 0, 0], SCORE, {}, "no positive row"),
        (Y, SCORE, {"sample_weight": [0, 1, 0, 1]}, "no positive row with a positive weight"),
        ([0, 1, 2, 1], SCORE, {}, "two classes, found 0, 1, 2; reduce it with toprank.datasets.binarize"),
        (["a", "b", "a", "b"], SCORE, {}, "labels 'a', 'b'; without pos_label"),
        ([1, 2, 1, 2], SCORE, {}, "without pos_label"),
        (["a", "b", "a", "b"], SCORE, {"pos_label": "c"}, "pos_label='c' does not occur"),
        (["a", "b", "a", "b"], SCORE, {"pos_label": 1}, "pos_label=1 does not occur"),
        ([[1, 0], [0, 1]], SCORE, {}, "1d array"),
    ],
)
def test_rows(y, score, more, message):
    with pytest.raises(ValueError, match=message):
        metrics.tpr_at_fpr(y, score, max_fpr=0.5, **more)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("precision_at_k", {"k": 0}, "k must be positive, got 0"),
        ("precision_at_k", {"k": np.nan}, "k must be positive, got nan"),
        ("recall_at_k", {"k": 5}, "k=5 is longer than the list, which has 4 rows"),
        ("precision_at_k", {"k": 1, "average": "mean", "groups": [1, 1, 2, 2]}, "average must be"),
        ("precision_at_k", {"k": 1, "groups": [1, 1, 2]}, "inconsistent numbers"),
        ("precision_at_k", {"k": 1, "groups": [1, 1, 2, np.nan]}, "groups has missing values"),
        ("precision_at_quantile", {"tau": 0}, r"tau must be in \(0, 1\], got 0"),
        ("precision_at_quantile", {"tau": 1.5}, "tau must be"),
        ("enrichment_factor", {"fraction": -0.1}, "fraction must be"),
        ("tpr_at_fpr", {"max_fpr": 1.1}, r"max_fpr must be in \[0, 1\], got 1.1"),
        ("tpr_at_fpr", {"max_fpr": np.nan}, "max_fpr must be"),
        ("precision_at_recall", {"min_recall": -1}, "min_recall must be"),
        ("partial_auc_score", {"max_fpr": 0}, r"max_fpr must be in \(0, 1\]"),
        ("partial_auc_score", {"min_tpr": 1}, "min_tpr=1 leaves no area"),
        ("ndcg_score", {"k": -1}, "k must be positive"),
        ("bedroc_score", {"alpha": 0}, "alpha must be positive"),
        ("bedroc_score", {"alpha": np.inf}, "alpha must be positive and finite"),
        ("wmw_score", {"graph": "ring"}, "graph must be 'full', 'chain' or a list of edges, got 'ring'"),
        ("wmw_score", {"graph": [(1,)]}, "an edge is"),
        ("wmw_score", {"graph": [(1, 1)]}, "prefers a level to itself"),
        ("wmw_score", {"graph": [(1, 7)]}, "names the label 7"),
        ("wmw_score", {"graph": [(1, 0, -1)]}, "positive and finite strength"),
        ("wmw_score", {"graph": []}, "no pair of rows"),
        ("wmw_score", {"labels": [0, 0, 1]}, "labels must be distinct"),
        ("wmw_score", {"labels": [0, 2]}, r"y_true has the labels \[1\]"),
    ],
)
def test_parameters(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        getattr(metrics, name)(Y, SCORE, **parameters)


def test_wmw_refuses_missing_labels():
    with pytest.raises(ValueError, match="y_true has missing values"):
        metrics.wmw_score([1.0, np.nan, 0.0, 1.0], SCORE)


def test_precision_needs_no_positive():
    assert metrics.precision_at_k([0, 0], [1, 2], k=1) == 0
    assert metrics.precision_at_quantile([0, 0], [1, 2], tau=0.5) == 0


def test_small_groups_are_taken_whole():
    y, groups = [1, 0, 1], ["Mo", "Mo", "Tu"]
    assert metrics.precision_at_k(y, [3, 2, 1], k=5, groups=groups) == pytest.approx(2 / 3)
    assert metrics.recall_at_k(y, [3, 2, 1], k=5, groups=groups) == 1
