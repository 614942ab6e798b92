"""Dask arrays against one memory: bytes and trips of a round against n, overhead at equal cores, two processes to one.

``python benchmarks/bench_dask.py traffic|overhead [rows]``, ``disk|peer [rows] [folder]`` or
``processes [rows] [columns] [PatMatNP|TauFPL|nystroem] [blocks]``. Times are those of the clock, but `overhead`, which
is the processor time of one thread, best of three. `processes` says, too, what the machine gives to two processes that
do nothing but the products of such a fit. `disk` and `peer` write rows of 500 columns (2 KB a row) to files in
the folder, if they are not there, and fit them once from there: 10⁷ rows are 20 GB. `peer` needs dask-ml.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import dask
import dask.array as da
import numpy as np
from threadpoolctl import threadpool_limits

from toprank import PatMatNP, TauFPL
from toprank.datasets import make_imbalanced
from toprank.solvers.block_problem import BlockProblem
from toprank.solvers.incumbent import Incumbent

if TYPE_CHECKING:
    from distributed import Worker


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
    """What two workers send in a round, to the client and to each other, as n grows: by Dask's own counter.

    A busy worker's tasks are not given to the other, with their blocks, as Dask may do by the clock.
    """
    from distributed import Client, LocalCluster

    record, sent = Incumbent.record, []
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):

        def so_far() -> int:
            return sum(client.run(_sent_by).values())

        def recorded(incumbent: Incumbent) -> None:
            record(incumbent)
            if isinstance(incumbent.problem, BlockProblem):
                sent.append(so_far())

        Incumbent.record = recorded
        print("rows      rounds  passes  KB in the first round, in each other")
        n = 50_000
        while n <= largest:
            _, _, X, y = rows(n, 20, 300)
            sent[:] = [so_far()]
            found = model().fit(X, y)
            each = "  ".join(f"{size / 1e3:.0f}" for size in np.diff(sent))
            print(f"{n:<9,} {len(sent) - 1:6} {found.history_['passes'][-1]:7.1f}  {each}", flush=True)
            n *= 2


def _sent_by(dask_worker: Worker) -> int:
    return dask_worker.transfer_outgoing_bytes_total


def overhead(n: int) -> None:
    """The processor time of one thread against that in memory."""
    X, y, in_blocks, labels = rows(n, 50, n // 100, max(8, n // 250_000))
    with dask.config.set(scheduler="synchronous"):
        inside = best(partial(model().fit, X, y), time.process_time)
        blocks = best(partial(model().fit, in_blocks, labels), time.process_time)
    print(f"{n:,} x 50: in memory {inside:.2f} s, in blocks {blocks:.2f} s, {blocks / inside:.2f} times as long")


def processes(n: int, d: int, name: str, n_blocks: int) -> None:
    """Two worker processes of one thread against one, by turns: the clock, and the processor time of each process."""
    from distributed import Client, LocalCluster

    taken: dict[int, list[float]] = {1: [], 2: []}
    for workers in (1, 2, 1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            X, y = made_by_workers(n, d, n_blocks)
            fit = partial(MODELS[name]().fit, X, y)
            fit()  # compiled code is loaded, and rows are where they stay
            for _ in range(2):
                before, here, start = client.run(time.process_time), time.process_time(), time.perf_counter()
                found = fit()
                taken[workers].append(time.perf_counter() - start)
                here, after = time.process_time() - here, client.run(time.process_time)
                spent = ", ".join(f"{after[key] - before[key]:.1f}" for key in before)
                print(
                    f"{n:,} x {d} in {n_blocks} blocks, {name}, {workers} of one thread: {taken[workers][-1]:.1f} s; "
                    f"processor time: client and scheduler {here:.1f} s, workers {spent}; "
                    f"{found.history_['passes'][-1]:.1f} passes, gap {found.dual_gap_:.0e}",
                    flush=True,
                )
    one, two = (np.array(taken[workers]) for workers in (1, 2))
    print(
        f"one process {one.min():.1f} s, two {two.min():.1f} s, {one.min() / two.min():.2f} times as fast "
        f"(by means {one.mean() / two.mean():.2f})"
    )
    for product in ("scores", "curvature"):
        print(f"two processes that only compute {product}: {machine(product, d):.2f} times as fast as one")


def machine(product: str, d: int) -> float:
    """How many times as much two processes of one thread compute as one does, in the same time and without Dask."""
    context, taken = get_context("spawn"), {}
    for workers in (1, 2) * 3:
        with context.Pool(workers) as pool:
            seconds = max(pool.starmap(_seconds_of, [(product, d)] * workers, chunksize=1))
            taken[workers] = min(seconds, taken.get(workers, np.inf))
    return 2 * taken[1] / taken[2]


def _seconds_of(product: str, d: int) -> float:
    X = np.random.default_rng(0).standard_normal((60_000_000 // d, d))
    w, rows = np.ones(d), X[: len(X) // 10]
    compute, times = ((lambda: X @ w), 40) if product == "scores" else ((lambda: rows.T @ rows), 2000 // d + 2)
    with threadpool_limits(1):
        compute()
        start = time.perf_counter()
        for _ in range(times):
            compute()
        return time.perf_counter() - start


MODELS = {
    "PatMatNP": lambda: PatMatNP(tau=0.01, alpha=0.01, threshold="trained"),
    "TauFPL": model,
    "nystroem": lambda: PatMatNP(
        tau=0.01, alpha=0.01, threshold="trained", kernel="rbf", approximation="nystroem", n_components=500,
        cache_size=20_000, random_state=0,
    ),
}  # fmt: skip


def made_by_workers(n: int, d: int, n_blocks: int) -> tuple:
    """Rows of two normal classes, one in a hundred positive, made and kept by the workers."""
    size = n // n_blocks
    blocks = [dask.delayed(_block)(number, size, d) for number in range(n_blocks)]
    X = da.concatenate([da.from_delayed(block[0], (size, d), np.float64) for block in blocks])
    y = da.concatenate([da.from_delayed(block[1], (size,), np.int64) for block in blocks])
    return dask.persist(X, y)


def _block(number: int, size: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    direction = np.random.default_rng(0).standard_normal(d)
    random = np.random.default_rng([1, number])
    y = (random.random(size) < 0.01).astype(np.int64)
    X = random.standard_normal((size, d))
    X[y == 1] += 3.0 * direction / np.linalg.norm(direction)
    return X, y


# Rows of a block on disk: 50 MB of 500 columns.
ON_DISK, COLUMNS = 25_000, 500


def files(n: int, folder: Path) -> list[Path]:
    """A file for each block of rows in float32, with their labels beside it; one row in a hundred is positive."""
    direction = np.random.default_rng(0).standard_normal(COLUMNS).astype(np.float32) / np.float32(np.sqrt(COLUMNS))
    paths = [folder / f"rows-{number}.npy" for number in range(n // ON_DISK)]
    for number, path in enumerate(paths):
        if not path.exists():
            random = np.random.default_rng([1, number])
            y = random.random(ON_DISK) < 0.01
            X = random.standard_normal((ON_DISK, COLUMNS), dtype=np.float32)
            X[y] += np.float32(4.0) * direction
            np.save(path.with_suffix(".labels.npy"), y.astype(np.int8))
            np.save(path, X)
    return paths


def on_disk(paths: list[Path]) -> tuple:
    """The rows and labels of files, which are read for each pass."""
    rows = [da.from_delayed(dask.delayed(_rows_of)(path), (ON_DISK, COLUMNS), np.float32) for path in paths]
    labels = [da.from_array(np.load(path.with_suffix(".labels.npy"))) for path in paths]
    return da.concatenate(rows), da.concatenate(labels)


_read: list[Path] = []


def _rows_of(path: Path) -> np.ndarray:
    _read.append(path)
    return np.load(path)


def most_memory() -> float:
    """The most memory that this process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def disk(n: int, folder: Path) -> None:
    """Rows that stay on disk: passes, memory, and time against one pass of reading."""
    paths = files(n, folder)
    start = time.perf_counter()
    dask.compute(*[dask.delayed(_last_of)(path) for path in paths])
    reading = time.perf_counter() - start
    X, y = on_disk(paths)
    start = time.perf_counter()
    found = model().fit(X, y)
    taken, passes = time.perf_counter() - start, found.history_["passes"][-1]
    print(f"{n:,} x {COLUMNS}, {n * COLUMNS * 4e-9:.1f} GB: gap {found.dual_gap_:.0e}, {passes:.1f} passes, at most "
          f"{most_memory():.2f} GB, {taken:.0f} s, {taken / reading:.1f} times one pass of reading")  # fmt: skip
    some = paths[: max(1, 1_000_000 // ON_DISK)]
    inside = model().fit(np.concatenate([np.load(path) for path in some]), on_disk(some)[1].compute())
    print(f"in one memory, {len(some) * ON_DISK:,} of the rows: {inside.history_['passes'][-1]:.1f} passes")


def _last_of(path: Path) -> float:
    return float(np.load(path)[-1, -1])


def peer(n: int, folder: Path) -> None:
    """The same rows beside logistic regression of dask-ml."""
    from dask_ml.linear_model import LogisticRegression

    paths = files(n, folder)
    X, y = on_disk(paths)
    for name, fit in [
        ("TauFPL", lambda: model().fit(X, y)),
        ("dask-ml, lbfgs", lambda: LogisticRegression(solver="lbfgs", C=1.0).fit(X, y)),
    ]:
        _read.clear()
        start = time.perf_counter(), time.process_time()
        fit()
        taken = time.perf_counter() - start[0], time.process_time() - start[1]
        print(f"{n:,} x {COLUMNS}: {name} {taken[0]:.1f} s, {taken[1]:.1f} s of the processor, the rows were read "
              f"{len(_read) / len(paths):.0f} times", flush=True)  # fmt: skip


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    size = int(arguments[0]) if arguments else 400_000
    if what in ("disk", "peer"):
        {"disk": disk, "peer": peer}[what](size, Path(arguments[1] if len(arguments) > 1 else "."))
    elif what == "processes":
        d, name, n_blocks = (*arguments[1:], *("300", "PatMatNP", "4")[len(arguments[1:]) :])
        processes(size, int(d), name, int(n_blocks))
    else:
        {"traffic": traffic, "overhead": overhead}[what](size)
