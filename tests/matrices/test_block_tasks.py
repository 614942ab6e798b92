"""Tasks on blocks: where they run, and with how many threads."""

from __future__ import annotations

import threading
import time

import pytest

from toprank.matrices import block_tasks, threads
from toprank.matrices.block_tasks import fetched, on_each, places_of
from toprank.matrices.dask_columns import blocks_of
from toprank.matrices.threads import in_parallel

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def _has_one_thread(_):
    """Whether a product of several parts is computed by the thread that asks for it, and by no other."""

    def slowly(_):
        time.sleep(0.05)  # others have the time to begin
        return threading.get_ident()

    return set(in_parallel(slowly, [slice(0)] * 4)) == {threading.get_ident()}


def test_a_task_has_one_thread_where_as_many_tasks_as_cores_run(monkeypatch):
    monkeypatch.setattr(threads, "n_cores", lambda: 2)
    monkeypatch.setattr(block_tasks, "n_cores", lambda: 2)
    assert fetched(on_each(_has_one_thread, [range(2)])) == [True, True]
    assert fetched(on_each(_has_one_thread, [range(1)])) == [False]
    assert not _has_one_thread(None)


def test_a_task_of_a_worker_has_one_thread(cluster):
    with dask.config.set(scheduler=None):
        assert fetched(on_each(_has_one_thread, [range(1)])) == [True]


def _address(*_):
    from distributed import get_worker

    return get_worker().address


def test_a_task_runs_where_it_should(cluster):
    from distributed import wait

    small, large = da.zeros(100, chunks=100), da.zeros(100_000, chunks=100_000)
    one, other = list(cluster.scheduler_info()["workers"])[:2]
    with dask.config.set(scheduler=None):
        small, large = cluster.persist(small, workers=[one]), cluster.persist(large, workers=[other])
        wait([small, large])
        blocks, labels = blocks_of(small), blocks_of(large)
        assert places_of(blocks + labels) == [(one,), (other,)]
        # Dask alone would send the smaller one
        assert fetched(on_each(_address, [blocks, labels], at=places_of(blocks))) == [one]
        assert fetched(on_each(_address, [blocks], at=[["tcp://127.0.0.1:1"]]))[0] in (one, other)  # it is gone
        lazy = blocks_of(small + 1)
        assert places_of(lazy) == [()]
        assert fetched(on_each(_address, [lazy], at=places_of(lazy)))[0] in (one, other)
    assert places_of(blocks) == [()]  # in this process
