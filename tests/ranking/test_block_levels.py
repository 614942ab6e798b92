"""The ordinal metric of Dask arrays: that of one array, whatever the blocks, graphs, ties and weights are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.metrics import wmw_score

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from toprank.matrices import dask_columns  # noqa: E402
from toprank.ranking import block_levels, block_parts  # noqa: E402

GRAPHS = ["full", "chain", [(2, 0), (0, 1, 0.5), (3, 1, 2.5), (2, 0, 1.0)]]


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(params=[(4, 2), (2**21, 2**13)], ids=["many parts", "as it is"])
def _parts(request, monkeypatch):
    for name, value in zip(("PART", "STEP"), request.param, strict=True):
        monkeypatch.setattr(block_parts, name, value)


def in_blocks(column, lengths):
    return None if column is None else da.from_array(column, chunks=(tuple(lengths),))


@st.composite
def levels_in_blocks(draw):
    n = draw(st.integers(8, 60))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    y = rng.integers(0, 4, n)
    y[:4] = 0, 1, 2, 3
    scores, digits = rng.standard_normal(n) + y, draw(st.sampled_from([None, 0, 1]))
    scores = scores if digits is None else np.round(scores, digits)
    kind = draw(st.sampled_from(["none", "integers", "reals"]))
    weights = {"none": None, "integers": rng.integers(0, 4, n), "reals": rng.random(n) * 3e200}[kind]
    if weights is not None:
        weights[:4] = weights.max() / 2 + 1
    if draw(st.booleans()):
        order = np.argsort(y, kind="stable")
        y, scores, weights = y[order], scores[order], None if weights is None else weights[order]
    ends = np.sort(rng.integers(0, n + 1, draw(st.integers(0, 4))))
    return y, scores, weights, np.diff(np.concatenate([[0], ends, [n]])).tolist()


@pytest.mark.usefixtures("_parts")
def test_the_share_is_that_of_one_array():
    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(levels_in_blocks(), st.sampled_from(GRAPHS))
    def check(case, graph):
        y, scores, weights, lengths = case
        expected = wmw_score(y, scores, graph=graph, sample_weight=weights)
        found = wmw_score(*(in_blocks(c, lengths) for c in (y, scores)), graph=graph, sample_weight=weights)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)

    check()


@pytest.mark.usefixtures("_parts")
def test_labels_of_any_kind_and_number():
    rng = np.random.default_rng(2)
    y, scores, lengths = rng.normal(size=120), rng.normal(size=120).round(1).astype(np.float32), (50, 0, 70)
    blocks = [in_blocks(column, lengths) for column in (y, scores)]
    assert wmw_score(*blocks) == pytest.approx(wmw_score(y, scores), rel=1e-12)  # every row is a level
    names = np.array(["low", "middle", "high"], dtype=object)[np.digitize(y, [-0.5, 0.5])]
    options = {"labels": ["low", "middle", "high"], "graph": "chain"}
    expected = wmw_score(names, scores, **options)
    assert wmw_score(in_blocks(names, lengths), scores, **options) == pytest.approx(expected, rel=1e-12)
    two = np.where(y > 0, "fraud", "ok")
    expected = wmw_score(two, scores, pos_label="fraud")
    assert wmw_score(in_blocks(two, lengths), blocks[1], pos_label="fraud") == pytest.approx(expected, rel=1e-12)
    # lengths may be unknown
    chosen, positive = blocks[1] > 0, scores > 0
    expected = wmw_score(y[positive], scores[positive])
    assert wmw_score(blocks[0][chosen], blocks[1][chosen]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("_parts")
def test_bands_of_labels_take_the_place_of_levels(monkeypatch):
    monkeypatch.setattr(block_levels, "MOST_LEVELS", 5)

    @settings(max_examples=15, deadline=None, derandomize=True)
    @given(levels_in_blocks(), st.sampled_from([0, 1, None]), st.booleans())
    def check(case, digits, whole):
        y, scores, weights, lengths = case
        rng = np.random.default_rng(len(y))
        y = y + rng.standard_normal(len(y))
        y = y if digits is None else np.round(y, digits)
        y = np.round(10 * y).astype(np.int64) if whole else y
        expected = wmw_score(y, scores, sample_weight=weights)
        found = wmw_score(*(in_blocks(c, lengths) for c in (y, scores)), sample_weight=weights)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)

    check()


def test_too_many_labels_that_are_not_in_order_are_refused(monkeypatch):
    monkeypatch.setattr(block_levels, "MOST_LEVELS", 5)
    y, scores = np.arange(12) % 7, np.arange(12.0)
    dy, ds = in_blocks(y, (5, 7)), in_blocks(scores, (5, 7))
    words = in_blocks(np.array(list("abcdefghijkl")), (5, 7))
    for labels, options in [(dy, {"graph": "chain"}), (dy, {"graph": [(1, 0)]}), (words, {})]:
        with pytest.raises(ValueError, match=r"more than 5 different labels.*labels= lists.*round the labels"):
            wmw_score(labels, ds, **options)
    for graph in ("full", "chain", [(1, 0), (6, 2)]):
        expected = wmw_score(y, scores, graph=graph)
        assert wmw_score(dy, ds, graph=graph, labels=range(7)) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match=r"y_true has the labels \[6\], which are not in labels"):
        wmw_score(dy, ds, labels=range(6))
    with pytest.raises(ValueError, match="all sample weights are zero"):
        wmw_score(dy, ds, sample_weight=np.zeros(12))
    with pytest.raises(ValueError, match=r"labels in blocks must be floats, or integers up to 2\*\*53"):
        wmw_score(dy + 2**60, ds)


@pytest.mark.parametrize("each_its_own", [False, True])
def test_little_is_fetched(monkeypatch, each_its_own):
    rng = np.random.default_rng(0)
    y, scores, sizes = rng.integers(0, 5, 20_000), rng.standard_normal(20_000), []
    if each_its_own:
        y = y + rng.random(20_000)
        monkeypatch.setattr(block_levels, "MOST_LEVELS", 20)

    def counted(pieces):
        found = fetched(pieces)
        sizes.append(sum(np.size(value) for value in found))
        return found

    fetched = block_levels.fetched
    for module in (block_levels, block_parts, dask_columns):
        monkeypatch.setattr(module, "fetched", counted)
    expected = wmw_score(y, scores)
    assert wmw_score(*(in_blocks(c, (9_000, 11_000)) for c in (y, scores))) == pytest.approx(expected, rel=1e-12)
    assert 0 < max(sizes) < 50


def test_what_is_wrong_is_named():
    y, scores = np.array([0, 1, 2, 1]), np.array([1.0, 2.0, 3.0, 4.0])
    dy, ds = in_blocks(y, (2, 2)), in_blocks(scores, (2, 2))
    with pytest.raises(ValueError, match="y_score has 1 values that are not finite") as caught:
        wmw_score(dy, in_blocks(np.array([1.0, 2.0, np.nan, 4.0]), (2, 2)))
    assert "in block 1 of the rows" in caught.value.__notes__
    with pytest.raises(ValueError, match="y_true has missing values") as caught:
        wmw_score(in_blocks(np.array([0.0, np.nan, 1.0, 1.0]), (2, 2)), ds)
    assert "in block 0 of the rows" in caught.value.__notes__
    with pytest.raises(ValueError, match="no pair of rows is ordered"):
        wmw_score(in_blocks(np.ones(4), (2, 2)), ds)
    with pytest.raises(ValueError, match=r"found the levels \[1, 2\]"):
        wmw_score(dy, ds, graph=[(1, 0)], sample_weight=np.array([0, 1, 1, 1]))
    with pytest.raises(ValueError, match="not in labels"):
        wmw_score(dy, ds, labels=[0, 1])
    with pytest.raises(ValueError, match="all sample weights are zero"):
        wmw_score(dy, ds, sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="y_true has 3 rows, y_score has 4 rows"):
        wmw_score(y[:3], ds)
    with pytest.raises(ValueError, match="are empty"):
        wmw_score(in_blocks(y[:0], (0,)), in_blocks(scores[:0], (0,)))
