"""Tasks on blocks: where they run, and with how many threads."""

from __future__ import annotations

import contextlib
import threading

import pytest

from toprank.matrices import block_tasks, dense_or_sparse
from toprank.matrices.block_tasks import fetched, on_each, places_of
from toprank.matrices.dask_columns import blocks_of
from toprank.matrices.dense_or_sparse import in_parallel

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def _n_threads(_):
    """How many threads take part in a product of several parts."""
    started = threading.Barrier(2)

    def part(_):
        with contextlib.suppress(threading.BrokenBarrierError):
            started.wait(0.2)  # so that one thread cannot do all parts before another begins
        return threading.get_ident()

    return len(set(in_parallel(part, [slice(0)] * 4)))


def test_a_task_has_one_thread_where_as_many_tasks_as_cores_run(monkeypatch):
    monkeypatch.setattr(dense_or_sparse, "n_cores", lambda: 2)
    monkeypatch.setattr(block_tasks, "n_cores", lambda: 2)
    assert fetched(on_each(_n_threads, [range(2)])) == [1, 1]
    assert fetched(on_each(_n_threads, [range(1)])) == [2]
    assert _n_threads(None) == 2


def test_a_task_of_a_worker_has_one_thread(cluster):
    with dask.config.set(scheduler=None):
        assert fetched(on_each(_n_threads, [range(1)])) == [1]


def _address(*_):
    from distributed import get_worker

    return get_worker().address


def test_rows_stay_where_they_are_if_their_labels_are_elsewhere(cluster):
    from distributed import wait

    dX, dy = da.zeros((400, 4), chunks=(100, 4)), da.zeros(400, chunks=100)
    one, other = list(cluster.scheduler_info()["workers"])[:2]
    with dask.config.set(scheduler=None):
        dX, dy = cluster.persist(dX, workers=[one]), cluster.persist(dy, workers=[other])
        wait([dX, dy])
        blocks, labels = blocks_of(dX), blocks_of(dy)
        assert places_of(blocks + labels) == [(one,)] * 4 + [(other,)] * 4
        assert fetched(on_each(_address, [blocks, labels], at=places_of(blocks))) == [one] * 4
        gone = ["tcp://127.0.0.1:1"]
        assert set(fetched(on_each(_address, [blocks], at=[gone] * 4))) <= {one, other}
        lazy = blocks_of(dX + 1)
        assert places_of(lazy) == [()] * 4
        assert set(fetched(on_each(_address, [lazy], at=places_of(lazy)))) <= {one, other}
    assert places_of(blocks) == [()] * 4  # in this process
