"""Cuts and means of the largest over blocks: as in one array, whatever the blocks, ties and weights are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

dask = pytest.importorskip("dask")

from toprank.formulations.thresholds import top_mean as in_memory  # noqa: E402
from toprank.matrices import block_selection  # noqa: E402
from toprank.matrices.block_order import Order  # noqa: E402
from toprank.matrices.block_selection import Search, find, top_mean  # noqa: E402
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


@pytest.fixture(params=[(3, 2), (48, 200)], ids=["many rounds", "as it is"])
def _rounds(request, monkeypatch):
    for name, value in zip(("_EDGES", "_FEW"), request.param, strict=True):
        monkeypatch.setattr(block_selection, name, value)


@pytest.mark.usefixtures("_rounds")
def test_mean_and_cuts_are_those_of_one_array():
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(scores_in_blocks(), st.floats(0.01, 0.98), st.sampled_from([None, (0.0, 1.0), (3.0, 1e-6)]))
    def check(case, share, guess):
        scores, weights, lengths = case
        caps, count = weights / (share * weights.sum()), int(np.ceil(share * len(scores)))
        vector, of_caps = in_blocks(scores, lengths), in_blocks(caps, lengths)
        # two searches in the same trips
        end, at_count = find(
            [Search(vector, of_caps, 1 - 1e-12, guess=guess), Search(vector, 1.0, count, by_weight=False, guess=guess)]
        )
        assert top_mean(end) == pytest.approx(in_memory(scores, caps)[0], abs=1e-12)
        order = np.argsort(-scores, kind="stable")
        assert at_count.value == scores[order[count - 1]]
        assert at_count.n_above == (scores > at_count.value).sum()
        assert end.n_equal == (scores == end.value).sum()
        ranked = Order.of(vector, of_caps)
        blocks = np.searchsorted(vector.offsets, order[:count], side="right") - 1
        assert ranked.cut(count).tolist() == np.bincount(blocks, minlength=len(lengths)).tolist()
        beyond = ranked.first_beyond(0.5 * caps.sum())
        assert caps[scores >= beyond].sum() > 0.5 * caps.sum() >= caps[scores > beyond].sum() - 1e-12

    check()


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
