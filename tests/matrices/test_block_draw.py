"""Rows in blocks drawn at random: chances by weight, and nothing that depends on the blocks."""

from __future__ import annotations

import numpy as np
import pytest

dask = pytest.importorskip("dask")

from toprank.matrices.block_draw import draw_rows, random_numbers, row_numbers  # noqa: E402
from toprank.matrices.block_vector import BlockVector  # noqa: E402


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def in_blocks(values, lengths):
    return BlockVector.of(np.split(values, np.cumsum(lengths)[:-1]), lengths)


def whole(vector):
    return np.concatenate(vector.on_blocks(np.asarray))


def test_numbers_do_not_depend_on_the_blocks():
    like = [in_blocks(np.ones(1000), lengths) for lengths in ((1000,), (1, 0, 400, 599))]
    found = [whole(random_numbers(vector, 7)) for vector in like]
    assert found[0].tolist() == found[1].tolist() != whole(random_numbers(like[0], 8)).tolist()
    assert len(set(found[0])) == 1000
    assert np.histogram(found[0], 10, (0, 1))[0] == pytest.approx(100, abs=40)
    assert whole(row_numbers(like[1])).tolist() == list(range(1000))


def test_rows_are_drawn_by_their_weights():
    weights = np.repeat([1.0, 3.0], [150, 50])
    drawn = []
    for seed in range(25):
        some = [
            draw_rows(in_blocks(weights, lengths), 20, np.random.RandomState(seed)) for lengths in ((200,), (60, 140))
        ]
        assert some[0].tolist() == some[1].tolist() == sorted(set(some[0]))
        assert len(some[0]) == 20
        drawn.append(np.mean(some[0] >= 150))
    # one by one, so that the heavy ones run out: a little less than half
    one_by_one = [
        np.mean(np.random.default_rng(seed).choice(200, 20, replace=False, p=weights / weights.sum()) >= 150)
        for seed in range(2000)
    ]
    assert np.mean(drawn) == pytest.approx(np.mean(one_by_one), abs=4 * np.std(one_by_one) / np.sqrt(25))
    assert draw_rows(in_blocks(np.ones(5), (2, 3)), 5, np.random.RandomState(0)).tolist() == [0, 1, 2, 3, 4]
