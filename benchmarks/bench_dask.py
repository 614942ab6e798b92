"""Dask arrays against one memory: bytes and trips of a round against n, overhead at equal cores, two processes to one.

``python benchmarks/bench_dask.py traffic|overhead|processes [rows]``. Times are those of the clock, best of three, but
`overhead`, which is the processor time of one thread.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable
from functools import partial

import dask
import dask.array as da

from toprank import TauFPL
from toprank.datasets import make_imbalanced


def rows(n: int, d: int, n_positive: int, n_blocks: int = 8) -> tuple:
    """Rows in one memory, and the same in blocks that are kept."""
    X, y, _ = make_imbalanced(n, d, positive_share=n_positive / n, separation=4.0, random_state=0)
    size = -(-n // n_blocks)
    return X, y, da.from_array(X, chunks=(size, -1)).persist(), da.from_array(y, chunks=size).persist()


def model() -> TauFPL:
    """What is fitted."""
    return TauFPL(tau=0.01, alpha=0.01, threshold="trained")


def best(fit: Callable[[], object], clock: Callable[[], float], n: int = 3) -> float:
    """The shortest of some runs."""
    times = []
    for _ in range(n):
        start = clock()
        fit()
        times.append(clock() - start)
    return min(times)


def traffic(largest: int) -> None:
    """What the client receives in a round, as n grows."""
    compute, sent = dask.compute, []

    def counting(*tasks: object, **options: object) -> object:
        found = compute(*tasks, **options)
        sent.append(sum(len(pickle.dumps(part, 5)) for part in found))
        return found

    dask.compute = counting
    print("rows      rounds  trips  passes  KB a round")
    n = 50_000
    while n <= largest:
        _, _, X, y = rows(n, 20, 300)
        sent.clear()
        found = model().fit(X, y)
        rounds = len(found.history_["gap"])
        print(f"{n:<9,} {rounds:6} {len(sent):6} {found.history_['passes'][-1]:7.1f} {sum(sent) / rounds / 1e3:11.0f}")
        n *= 2


def overhead(n: int) -> None:
    """The processor time of one thread against that in memory."""
    X, y, in_blocks, labels = rows(n, 50, n // 100)
    with dask.config.set(scheduler="synchronous"):
        inside = best(partial(model().fit, X, y), time.process_time)
        blocks = best(partial(model().fit, in_blocks, labels), time.process_time)
    print(f"{n:,} x 50: in memory {inside:.2f} s, in blocks {blocks:.2f} s, {blocks / inside:.2f} times as long")


def processes(n: int) -> None:
    """Two worker processes of one thread against one."""
    from distributed import Client, LocalCluster

    taken = {}
    for workers in (1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            Client(cluster),
        ):
            _, _, X, y = rows(n, 50, n // 1000)
            model().fit(X, y)
            taken[workers] = best(partial(model().fit, X, y), time.perf_counter)
    print(f"{n:,} x 50: one process {taken[1]:.2f} s, two {taken[2]:.2f} s, {taken[1] / taken[2]:.2f} times as fast")


if __name__ == "__main__":
    what, size = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 400_000
    {"traffic": traffic, "overhead": overhead, "processes": processes}[what](size)
