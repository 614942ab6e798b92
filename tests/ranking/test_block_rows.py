"""Metrics of Dask arrays: those of one array, whatever the blocks, ties and weights are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank import metrics

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from toprank.ranking import block_parts, block_rows  # noqa: E402

METRICS = [
    ("tpr_at_fpr", {"max_fpr": 0.0}),
    ("tpr_at_fpr", {"max_fpr": 0.15}),
    ("tpr_at_fpr", {"max_fpr": 1.0}),
    ("precision_at_recall", {"min_recall": 0.4}),
    ("partial_auc_score", {"max_fpr": 0.2}),
    ("partial_auc_score", {"max_fpr": 0.7, "min_tpr": 0.3, "standardized": False}),
    ("roc_auc_score", {}),
    ("optroc_accuracy", {}),
    ("positives_at_top", {}),
    ("precision_at_k", {"k": 2.5}),
    ("recall_at_k", {"k": 4}),
    ("precision_at_quantile", {"tau": 0.3}),
    ("enrichment_factor", {"fraction": 0.1}),
    ("ndcg_score", {}),
    ("ndcg_score", {"k": 3}),
    ("bedroc_score", {}),
]


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(params=[(4, 2), (2**21, 2**13)], ids=["many parts", "as it is"])
def _parts(request, monkeypatch):
    for name, value in zip(("PART", "STEP"), request.param, strict=True):
        monkeypatch.setattr(block_parts, name, value)


@st.composite
def lists_in_blocks(draw):
    n = draw(st.integers(6, 50))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    labels = rng.integers(0, 2, n)
    labels[:2] = 0, 1
    scores = rng.standard_normal(n) + labels
    digits = draw(st.sampled_from([None, 0, 1]))
    scores = scores if digits is None else np.round(scores, digits)
    kind = draw(st.sampled_from(["none", "integers", "reals"]))
    weights = {"none": None, "integers": rng.integers(0, 4, n), "reals": rng.random(n) * 3}[kind]
    if weights is not None:
        weights[:6] = 1
    ends = np.sort(rng.integers(0, n + 1, draw(st.integers(0, 4))))
    return labels, scores, weights, tuple(np.diff(np.concatenate([[0], ends, [n]])).tolist())


def in_blocks(column, lengths):
    return None if column is None else da.from_array(column, chunks=(lengths,))


@pytest.mark.usefixtures("_parts")
def test_metrics_are_those_of_one_array():
    @settings(max_examples=8, deadline=None, derandomize=True)
    @given(lists_in_blocks(), st.lists(st.sampled_from(METRICS), min_size=2, max_size=2))
    def check(case, some):
        labels, scores, weights, lengths = case
        blocks = [in_blocks(column, lengths) for column in (labels, scores)]
        for name, parameters in some:
            metric = getattr(metrics, name)
            expected = metric(labels, scores, sample_weight=weights, **parameters)
            found = metric(*blocks, sample_weight=in_blocks(weights, lengths), **parameters)
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-12), name

    check()


@pytest.mark.usefixtures("_parts")
def test_groups_and_labels_of_any_kind():
    rng = np.random.default_rng(3)
    day = rng.choice(np.array(["2024-01-01", "2024-01-02", "2024-02-01"], dtype="datetime64[D]"), 40)
    fraud, scores = rng.random(40) < 0.3, rng.integers(0, 9, 40)
    labels, lengths = np.where(fraud, "fraud", "ok"), (11, 0, 29)
    blocks = [in_blocks(column, lengths) for column in (labels, scores, day)]
    for groups in (day, day.astype(str)):
        for average in ("micro", "macro"):
            options = {"k": 3, "average": average, "pos_label": "fraud"}
            expected = metrics.precision_at_k(labels, scores, groups=groups, **options)
            found = metrics.precision_at_k(*blocks[:2], groups=in_blocks(groups, lengths), **options)
            assert found == pytest.approx(expected, abs=1e-12)
    # one of the columns may be in this memory, and blocks may differ
    expected = pytest.approx(metrics.roc_auc_score(fraud, scores), rel=1e-12)
    assert metrics.roc_auc_score(labels, blocks[1], pos_label="fraud") == expected
    assert metrics.roc_auc_score(blocks[0].rechunk(7), scores, pos_label="fraud") == expected


def test_lengths_may_be_unknown_and_little_is_fetched(monkeypatch):
    rng = np.random.default_rng(0)
    labels, scores = (rng.random(20_000) < 0.1).astype(int), rng.standard_normal(20_000).astype(np.float32)
    dy, ds = in_blocks(labels, (9_000, 11_000)), in_blocks(scores, (9_000, 11_000))
    kept = ds > -1
    sizes = []

    def counted(pieces):
        found = fetched(pieces)
        sizes.append(sum(np.size(value) for value in found))
        return found

    fetched = block_rows.fetched
    for module in (block_rows, block_parts):
        monkeypatch.setattr(module, "fetched", counted)
    for name, options in (("tpr_at_fpr", {"max_fpr": 0.1}), ("precision_at_k", {"k": 300}), ("roc_auc_score", {})):
        found = getattr(metrics, name)(dy[kept], ds[kept], **options)
        expected = getattr(metrics, name)(labels[scores > -1], scores[scores > -1], **options)
        assert found == pytest.approx(expected, rel=1e-12)
    assert max(sizes) < 50


def test_what_is_wrong_is_named():
    labels, scores = np.array([0, 1, 0, 1]), np.array([1.0, 2.0, np.nan, 4.0])
    blocks = [in_blocks(column, (2, 2)) for column in (labels, scores)]
    with pytest.raises(ValueError, match="y_score has 1 values that are not finite") as caught:
        metrics.roc_auc_score(*blocks)
    assert "in block 1 of the rows" in caught.value.__notes__
    with pytest.raises(ValueError, match="y_true must have two classes, found 0, 1, 2"):
        metrics.roc_auc_score(in_blocks(np.array([0, 1, 2, 0]), (2, 2)), blocks[0])
    with pytest.raises(ValueError, match="pos_label='frud' does not occur in y_true"):
        metrics.roc_auc_score(in_blocks(np.array(["fraud", "ok"] * 2), (2, 2)), blocks[0], pos_label="frud")
    with pytest.raises(ValueError, match="no positive row with a positive weight"):
        metrics.roc_auc_score(*blocks[:1], in_blocks(labels, (2, 2)), sample_weight=np.array([1, 0, 1, 0]))
    with pytest.raises(ValueError, match="all sample weights are zero"):
        metrics.roc_auc_score(*blocks[:1], in_blocks(labels, (2, 2)), sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="k=9 is longer than the list, which has 4 rows"):
        metrics.precision_at_k(*blocks[:1], in_blocks(labels, (2, 2)), k=9)
    with pytest.raises(ValueError, match="y_true has 3 rows, y_score has 4 rows"):
        metrics.roc_auc_score(labels[:3], blocks[1])
