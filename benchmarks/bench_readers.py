"""CSV readers for streams: the own parser against polars and pyarrow, in batches, and after an interruption.

    python benchmarks/bench_readers.py [--rows 1000000] [--features 20] [--threads 2] [--repeats 3]

Every reader turns the same file of numbers into dense matrices and labels, each in a process of its own. Printed are
rows a second of the clock and of one core (the best of the repeats), the peak of the resident memory above that after a
small file, the seconds until the first rows are there again after 90 % of the file, and what a line "oops" does. The
last column says whether the reader knows the byte at which the next row starts, which is what a checkpoint keeps:
without it the file is read again from its start. Readers that are not installed are left out.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from bench_streams import write


def own(path, threads, place):
    """Rows by the parser of streams; a place is that of the next line."""
    from toprank.files.open import open_rows

    source = open_rows(path, "y", None, None, "csv", None, None, False, None)
    for block in source.blocks(source.start() if place is None else type(source.start())(*place)):
        yield block.rows.X, block.rows.y, block.end


def polars_by_blocks(path, threads, place):
    """Rows by the reader of tables: blocks of whole lines, each parsed by polars."""
    from toprank.files import open_table

    table = open_table(path)
    kinds, skipped = dict.fromkeys(table.names, "number"), place or 0
    for batch in table.batches(kinds):
        end = batch.first_row + len(batch.frame)
        if end > skipped:
            frame = batch.frame.slice(max(0, skipped - batch.first_row))
            yield frame.drop("y").to_numpy(), frame["y"].to_numpy().astype(np.int64), end


def polars_batches(path, threads, place):
    """Rows by polars, which cuts the file itself."""
    import polars as pl

    schema = dict.fromkeys(pl.scan_csv(path).collect_schema(), pl.Float64)
    rows = place or 0
    for frame in pl.scan_csv(path, schema=schema, skip_rows_after_header=rows).collect_batches(maintain_order=True):
        rows += len(frame)
        yield frame.drop("y").to_numpy(), frame["y"].to_numpy().astype(np.int64), rows


def pyarrow_batches(path, threads, place):
    """Rows by pyarrow.csv.open_csv, in blocks of 4 MB as the own parser has."""
    import pyarrow.csv as arrow

    rows = place or 0
    reading = arrow.ReadOptions(use_threads=threads > 1, block_size=4 << 20, skip_rows_after_names=rows)
    for batch in arrow.open_csv(path, read_options=reading):
        rows += len(batch)
        columns = [batch.column(name).to_numpy() for name in batch.schema.names]
        yield np.column_stack(columns[:-1]), columns[-1].astype(np.int64), rows


READERS = {
    "own parser": (own, "toprank", "byte of the next row"),
    "polars by blocks": (polars_by_blocks, "polars", "end of a block"),
    "polars batches": (polars_batches, "polars", "no"),
    "pyarrow open_csv": (pyarrow_batches, "pyarrow", "no"),
}


def peak():
    """Largest resident memory of this process so far, in MB; that of `resource` begins with the parent's."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def bad_line(reader, path, threads):
    """What a line that is no row does."""
    try:
        return f"{1000 - sum(len(y) for _, y, _ in reader(path, threads, None))} rows lost"
    except Exception as error:  # each package has its own
        return f"stops ({type(error).__name__})"


def measured(title, path, threads, repeats):
    """Rows a second, memory and seconds to go on, of this process."""
    reader, package, _ = READERS[title]
    if package != "toprank":
        importlib.import_module(package)
    small = path.replace("rows.csv", "few.csv")
    rows = sum(len(y) for _, y, _ in reader(small, threads, None))  # load what was compiled
    before, seconds, work, places = peak(), np.inf, np.inf, []
    for _ in range(repeats):
        start, used, rows, places = time.perf_counter(), time.process_time(), 0, []
        for X, y, place in reader(path, threads, None):
            assert X.dtype == np.float64
            rows += len(y)
            places.append((rows, place))
        seconds = min(seconds, time.perf_counter() - start)
        work = min(work, time.process_time() - used)
    memory = peak() - before
    _, place = next((at, place) for at, place in places if at >= 0.9 * rows)
    start = time.perf_counter()
    next(iter(reader(path, threads, place)), None)
    waited = time.perf_counter() - start
    oops = bad_line(reader, path.replace("rows.csv", "spoiled.csv"), threads)
    return {"rows": rows, "seconds": seconds, "work": work, "memory": memory, "resume": waited, "oops": oops}


def main():
    """Write a file, and run each reader on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--worker", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        print(json.dumps(measured(*given.worker, given.threads, given.repeats)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.csv")
        write(path, "csv", given.rows, given.features)
        few = os.path.join(folder, "few.csv")
        write(few, "csv", 1000, given.features)
        with open(few, "rb") as whole, open(os.path.join(folder, "spoiled.csv"), "wb") as spoiled:
            lines = whole.readlines()
            spoiled.writelines([*lines[:500], b"oops\n", *lines[500:]])
        size = os.path.getsize(path) >> 20
        print(f"{given.rows} rows of {given.features} numbers, {size} MB, {given.threads} threads", flush=True)
        print(f"{'reader':18}{'rows/s':>10}{'of a core':>11}{'MB':>5}{'to go on s':>12}  {'a bad line':23}place")
        limits = {"POLARS_MAX_THREADS": str(given.threads), "OMP_NUM_THREADS": str(given.threads)}
        for title, (_, package, place) in READERS.items():
            if importlib.util.find_spec(package) is None:
                print(f"{title:18}is not installed", flush=True)
                continue
            command = [sys.executable, __file__, "--threads", str(given.threads), "--repeats", str(given.repeats)]
            answer = subprocess.run(
                [*command, "--worker", title, path], env={**os.environ, **limits}, capture_output=True, text=True,
                check=True,
            )  # fmt: skip
            found = json.loads(answer.stdout)
            assert found["rows"] == given.rows, found
            rates = [given.rows / found[time] for time in ("seconds", "work")]
            told = f"{found['memory']:5.0f}{found['resume']:12.3f}  {found['oops']:23}{place}"
            print(f"{title:18}{rates[0]:10.0f}{rates[1]:11.0f}{told}", flush=True)


if __name__ == "__main__":
    main()
