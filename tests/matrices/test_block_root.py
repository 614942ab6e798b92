"""Roots of sums over blocks, and several numbers of vectors in one trip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

dask = pytest.importorskip("dask")

from toprank.arrays import numbers_of  # noqa: E402
from toprank.formulations.surrogates import get_surrogate  # noqa: E402
from toprank.formulations.thresholds import SurrogateQuantile  # noqa: E402
from toprank.matrices import block_root, block_vector  # noqa: E402
from toprank.matrices.block_vector import BlockVector  # noqa: E402


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def trips(monkeypatch):
    """How often blocks are asked."""
    counted = []
    for module in (block_root, block_vector):
        fetched = module.fetched
        monkeypatch.setattr(module, "fetched", lambda pieces, fetched=fetched: counted.append(1) or fetched(pieces))
    return counted


def in_blocks(values, ends):
    lengths = np.diff(np.concatenate([[0], ends, [len(values)]])).tolist()
    return BlockVector.of(np.split(values, ends), lengths)


@pytest.mark.parametrize("name", ["quadratic", "hinge", "huber", "logistic"])
def test_a_root_is_that_of_one_array(name):
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(
        st.integers(0, 10**6),
        st.sampled_from([1.0, 1e-6, 1e4]),
        st.sampled_from([None, (0.0, 0.0), (-0.3, 0.5), (1e-9, 1e-9), (4.0, 0.1), (-50.0, 1e-3)]),
        st.sampled_from([0.5, 0.03]),
    )
    def check(seed, spread, begin, tau):
        rng = np.random.default_rng(seed)
        scores, share = spread * rng.standard_normal(80), rng.dirichlet(np.ones(80))
        threshold = SurrogateQuantile(tau, 1 / spread, get_surrogate(name))
        expected, ends = threshold.solve(scores, share), np.sort(rng.integers(0, 81, 3))
        start, above = (-np.inf, 0.0) if begin is None else (expected - spread * begin[0], spread * begin[1])
        found = threshold.solve(in_blocks(scores, ends), in_blocks(share, ends), start, above)
        # Newton's method in one memory ends where a step is 1e-15 or less
        assert found == pytest.approx(expected, rel=1e-12, abs=2e-15)

    check()


@pytest.mark.parametrize("name", ["quadratic", "logistic"])
def test_a_good_start_saves_trips(name, trips):
    rng = np.random.default_rng(0)
    scores, share, ends = rng.standard_normal(2000), np.full(2000, 1 / 2000), [500, 600]
    threshold = SurrogateQuantile(0.01, 1.0, get_surrogate(name))
    expected = threshold.solve(scores, share)
    found = threshold.solve(in_blocks(scores, ends), in_blocks(share, ends), expected - 0.02, 0.05)
    assert found == pytest.approx(expected, rel=1e-13)
    assert len(trips) <= 3


def test_numbers_of_several_vectors_take_one_trip(rng, trips):
    a, b = rng.standard_normal(50), np.round(rng.standard_normal(50))
    ends = [0, 20, 20, 45]  # two blocks are empty
    asked = (np.dot, "a", "b"), (np.max, "a"), (np.sum, "b"), (np.count_nonzero, "b")
    arrays, vectors = {"a": a, "b": b}, {"a": in_blocks(a, ends), "b": in_blocks(b, ends)}
    expected = numbers_of(*((function, *(arrays[name] for name in names)) for function, *names in asked))
    assert expected == [a @ b, a.max(), b.sum(), np.count_nonzero(b)]
    found = numbers_of(*((function, *(vectors[name] for name in names)) for function, *names in asked))
    assert found == pytest.approx(expected)
    assert len(trips) == 1
    assert vectors["b"].sum() == pytest.approx(b.sum())
    assert len(trips) == 1  # it is known
