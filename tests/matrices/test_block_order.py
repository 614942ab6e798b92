"""Cuts and means of the largest over blocks: as in one array, whatever the blocks, ties and weights are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

dask = pytest.importorskip("dask")

from toprank.formulations.thresholds import top_mean as in_memory  # noqa: E402
from toprank.matrices import block_order  # noqa: E402
from toprank.matrices.block_order import Order, next_to_cut, top_mean  # noqa: E402
from toprank.matrices.block_vector import BlockVector  # noqa: E402


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def in_blocks(values, lengths):
    return BlockVector.of(np.split(values, np.cumsum(lengths)[:-1]), lengths)


@st.composite
def scores_in_blocks(draw):
    n = draw(st.integers(2, 60))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    scores = rng.standard_normal(n)
    digits = draw(st.sampled_from([None, 0, -1]))
    if digits is not None:
        scores = np.round(scores, digits)
    weights = rng.integers(1, 4, n).astype(float) if draw(st.booleans()) else np.ones(n)
    ends = np.sort(rng.integers(0, n + 1, draw(st.integers(0, 4))))
    return scores, weights, np.diff(np.concatenate([[0], ends, [n]])).tolist()


@pytest.fixture(params=[(3, 4, 2), (64, 256, 500)], ids=["many rounds", "as it is"])
def _rounds(request, monkeypatch):
    for name, value in zip(("_PLACES", "_ASKED", "_FEW"), request.param, strict=True):
        monkeypatch.setattr(block_order, name, value)


@pytest.mark.usefixtures("_rounds")
def test_mean_and_cuts_are_those_of_one_array():
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(scores_in_blocks(), st.floats(0.01, 0.98))
    def check(case, share):
        scores, weights, lengths = case
        caps = weights / (share * weights.sum())
        vector, of_caps = in_blocks(scores, lengths), in_blocks(caps, lengths)
        assert top_mean(vector, of_caps) == pytest.approx(in_memory(scores, caps)[0], abs=1e-12)
        order, ranked = np.argsort(-scores, kind="stable"), Order.of(vector, of_caps)
        end = min(int(np.searchsorted(np.cumsum(caps[order]), 1 - 1e-12)) + 1, len(scores))
        for found, rank in (
            (ranked.cut(1 - 1e-12, by_weight=True), end),
            (ranked.cut(end // 2, by_weight=False), end // 2),
        ):
            blocks = np.searchsorted(vector.offsets, order[:rank], side="right") - 1
            # blocks without rows share their offset with the next one
            expected = np.bincount(blocks, minlength=len(lengths))
            assert found.tolist() == expected.tolist()

    check()


def test_rows_next_to_the_cut_at_two_points():
    rng = np.random.default_rng(0)
    a, lengths = rng.standard_normal(80), [30, 0, 1, 49]
    b = a + 0.1 * rng.standard_normal(80)
    caps, keep = np.full(80, 1 / 20), np.array([3, 70])
    inside, above = next_to_cut([in_blocks(a, lengths), in_blocks(b, lengths)], in_blocks(caps, lengths), 10, keep)
    tops = [set(np.argsort(-s)[:15]) for s in (a, b)]
    windows = [set(np.argsort(-s)[15:25]) for s in (a, b)]
    expected = windows[0] | windows[1] | set(keep) | (tops[0] ^ tops[1])
    assert set(inside) == expected
    assert set(np.flatnonzero(above)) == (tops[0] & tops[1]) - expected


def test_vectors_compute_as_numpy_does():
    rng = np.random.default_rng(1)
    a, b, lengths = rng.standard_normal(20), rng.standard_normal(20), [7, 0, 13]
    u, v = in_blocks(a, lengths), in_blocks(b, lengths)
    assert u @ v == pytest.approx(a @ b)
    assert (2 * u - v / 3).max() == (2 * a - b / 3).max()
    assert np.where(u > 0, u, -1.0).sum() == pytest.approx(np.where(a > 0, a, -1.0).sum())
    assert np.flatnonzero(u > v).tolist() == np.flatnonzero(a > b).tolist()
    assert u[v > 0].sum() == pytest.approx(a[b > 0].sum())
    assert u[np.array([19, 0, 7])].tolist() == a[[19, 0, 7]].tolist()
    assert (np.argmax(u), len(u[v > 0])) == (np.argmax(a), (b > 0).sum())
    total, expected = u, a
    for i in range(12):  # an expression of many vectors
        total, expected = total + i * in_blocks(b + i, lengths), expected + i * (b + i)
    assert total.min() == pytest.approx(expected.min())
    with pytest.raises(TypeError, match="20 rows in 3 blocks"):
        np.asarray(u)
