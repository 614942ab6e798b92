"""Bad input is refused in words that name the value and the remedy."""

import numpy as np
import pandas as pd
import polars as pl
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


DAY, NEXT_DAY = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]")
GAPS = {
    "nan": [1.0, np.nan, 1.0, np.nan],
    "nan and a class": [1.0, np.nan, 1.0, 0.0],
    "None": [1, None, 1, 1],
    "None and a class": [1, None, 1, 0],
    "text and None": ["a", None, "a", "b"],
    "text and nan": ["a", np.nan, "a", "a"],  # NumPy would make it the text "nan"
    "text column and nan": [["a"], [np.nan], ["a"], ["b"]],
    "text and NA": ("a", pd.NA, "a", "b"),
    "text in a series": pd.Series(["a", None, "a", "b"]),
    "text in polars": pl.Series(["a", None, "a", "b"]),
    "category": pd.Series(["a", None, "a", "b"], dtype="category"),
    "nullable integers": pd.Series([1, None, 1, 0], dtype="Int64"),
    "NaT": np.array([DAY, "NaT", DAY, DAY], dtype="datetime64[D]"),
    "NaT among objects": np.array([DAY, pd.NaT, DAY, DAY], dtype=object),
}
with_gaps = pytest.mark.parametrize("gaps", GAPS)


@with_gaps
def test_missing_labels(gaps):
    labels = GAPS[gaps]
    positive = np.asarray(labels, dtype=object).ravel()[0]
    positive = DAY if gaps.startswith("NaT") else positive
    with pytest.raises(ValueError, match=r"y_true has missing values such as (nan|None|NaT|<NA>); drop such rows"):
        metrics.tpr_at_fpr(labels, SCORE, max_fpr=0.5, pos_label=positive)
    with pytest.raises(ValueError, match="y_true has missing values"):
        metrics.precision_at_k(labels, SCORE, k=1)
    with pytest.raises(ValueError, match="y_true has missing values"):
        metrics.wmw_score(labels, SCORE)


@with_gaps
def test_missing_groups(gaps):
    with pytest.raises(ValueError, match=r"groups has missing values such as (nan|None|NaT|<NA>); give such rows"):
        metrics.precision_at_k(Y, SCORE, k=1, groups=GAPS[gaps])


def test_the_text_nan_is_a_label_and_dates_are_groups():
    assert metrics.positives_at_top(["nan", "b", "nan", "b"], SCORE, pos_label="nan") == 0.5
    assert metrics.precision_at_k(Y, SCORE, k=1, groups=np.array([DAY, DAY, NEXT_DAY, NEXT_DAY])) == 1
    # a row of weight 0 is removed, whatever its group
    assert metrics.precision_at_k(Y, SCORE, k=1, groups=[1, 1, 1, np.nan], sample_weight=[1, 1, 1, 0]) == 1


def test_precision_needs_no_positive():
    assert metrics.precision_at_k([0, 0], [1, 2], k=1) == 0
    assert metrics.precision_at_quantile([0, 0], [1, 2], tau=0.5) == 0


def test_small_groups_are_taken_whole():
    y, groups = [1, 0, 1], ["Mo", "Mo", "Tu"]
    assert metrics.precision_at_k(y, [3, 2, 1], k=5, groups=groups) == pytest.approx(2 / 3)
    assert metrics.recall_at_k(y, [3, 2, 1], k=5, groups=groups) == 1
