"""Streams: ten million rows in constant memory, a run killed half way, and readers against their peers.

    python benchmarks/bench_streams.py killed [--rows 10000000] [--features 20] [--format csv|svmlight|parquet]
    python benchmarks/bench_streams.py readers [--rows 300000] [--features 20]

`killed` writes a file of at least 100000 rows into a temporary folder and learns from it three times: without
interruption, killed by SIGKILL half way, and resumed. It prints the peak of the resident memory of each process and
of one that reads a tenth of the rows, and whether the models have the same bytes. `readers` prints rows per second of
our readers beside those of polars and scikit-learn, in one run.
"""

import argparse
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

LEARN = """
import json, resource, sys, time
from toprank.online import CBR
from toprank.persistence import save
from toprank.streams import stream

path, run, out, options = sys.argv[1:]
model = CBR(covariance="diag", buffer_size=10, random_state=0)
start = time.perf_counter()
result = stream(path, model, batch=5_000, window=500_000, checkpoint=run, every=250_000, **json.loads(options))
seconds = time.perf_counter() - start
save(result.model, out)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(result.n_rows, result.resumed_at, round(seconds, 1), round(peak), result.history["auc"][-1])
"""
OPTIONS = {"csv": {"target": "y"}, "parquet": {"target": "y"}, "svmlight": {}}


def chunks(n_rows, n_features, size=200_000):
    """Rows of two normal classes, three decimals."""
    rng = np.random.default_rng(0)
    for start in range(0, n_rows, size):
        n = min(size, n_rows - start)
        y = (rng.random(n) < 0.05).astype(np.int64)
        X = rng.normal(size=(n, n_features))
        X[:, 0] += 1.5 * y
        yield np.round(X, 3), y


def write(path, form, n_rows, n_features):
    """A file of one of the formats, in constant memory."""
    import polars as pl

    names = [f"x{i}" for i in range(n_features)]
    if form == "parquet":
        frames = [pl.DataFrame(X, schema=names).with_columns(y=pl.Series(y)) for X, y in chunks(n_rows, n_features)]
        pl.concat(frames).write_parquet(path, row_group_size=100_000)
        return
    with open(path, "wb") as stream:
        for number, (X, y) in enumerate(chunks(n_rows, n_features)):
            frame = pl.DataFrame(X, schema=names)
            if form == "csv":
                frame.with_columns(y=pl.Series(y)).write_csv(stream, include_header=number == 0)
            else:
                pairs = [pl.format(f"{i + 1}:{{}}", pl.col(name)) for i, name in enumerate(names)]
                frame.select(pl.Series(y).cast(pl.String).alias("y"), *pairs).write_csv(
                    stream, include_header=False, separator=" "
                )


def learn(folder, path, name, form):
    """The command of one run."""
    run, out = folder / f"{name}.run", folder / f"{name}.model"
    return [sys.executable, "-c", LEARN, str(path), str(run), str(out), json.dumps(OPTIONS[form])]


def rows_of(run):
    """Rows that a checkpoint has seen."""
    from toprank.persistence.model_file import read_tree

    return read_tree(run, kind="checkpoint")["n_rows"] if run.exists() else 0


def shown(name, output):
    """Print what a run said."""
    n_rows, resumed, seconds, peak, auc = output.split()
    rate = (int(n_rows) - int(resumed)) / max(float(seconds), 1e-9)
    print(
        f"{name:14} {n_rows:>9} rows, from row {resumed:>8}, {rate:9.0f} rows/s, peak {peak} MB, last AUC {auc}",
        flush=True,
    )


def killed(arguments):
    """Memory, and bits after SIGKILL."""
    n_rows, form = arguments.rows or 10**7, arguments.format
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, small = folder / f"rows.{form}", folder / f"tenth.{form}"
        write(path, form, n_rows, arguments.features)
        write(small, form, n_rows // 10, arguments.features)
        print(f"{form}: {path.stat().st_size / 2**20:.0f} MB, {n_rows} rows, {arguments.features} features", flush=True)
        for title, file in (("a tenth", small), ("uninterrupted", path)):
            output = subprocess.run(learn(folder, file, title, form), capture_output=True, text=True, check=True).stdout
            shown(title, output)
        process = subprocess.Popen(learn(folder, path, "killed", form), stdout=subprocess.DEVNULL)
        while process.poll() is None and rows_of(folder / "killed.run") < n_rows // 2:
            time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        print(f"killed half way: exit code {process.wait()}", flush=True)
        output = subprocess.run(learn(folder, path, "killed", form), capture_output=True, text=True, check=True).stdout
        shown("resumed", output)
        sums = [hashlib.sha256((folder / f"{n}.model").read_bytes()).hexdigest() for n in ("uninterrupted", "killed")]
        print("models are", "bit-identical" if sums[0] == sums[1] else "DIFFERENT", sums[0][:16], sums[1][:16])


def readers(arguments):
    """Rows per second of reading alone."""
    import polars as pl
    from sklearn.datasets import load_svmlight_file

    from toprank.files.open import open_rows

    n_rows = arguments.rows or 300_000
    with tempfile.TemporaryDirectory() as name:
        paths = {form: os.path.join(name, f"rows.{form}") for form in OPTIONS}
        for form, path in paths.items():
            write(path, form, n_rows, arguments.features)

        def ours(form):
            target = OPTIONS[form].get("target")
            source = open_rows(paths[form], target, None, None, form, None, arguments.features, False, None)
            return sum(len(block.rows) for block in source.blocks(source.start()))

        text = Path(paths["svmlight"]).read_bytes()
        runs = {
            "csv, toprank": lambda: ours("csv"),
            "csv, polars whole": lambda: len(pl.read_csv(paths["csv"]).to_numpy()),
            "parquet, toprank": lambda: ours("parquet"),
            "parquet, polars whole": lambda: len(pl.read_parquet(paths["parquet"]).to_numpy()),
            "svmlight, toprank": lambda: ours("svmlight"),
            "svmlight, scikit-learn": lambda: load_svmlight_file(io.BytesIO(text))[0].shape[0],
        }
        for function in runs.values():
            function()  # load what was compiled
        wall, cpu = dict.fromkeys(runs, np.inf), dict.fromkeys(runs, np.inf)
        for _ in range(3):
            for title, function in runs.items():
                start, used = time.perf_counter(), time.process_time()
                assert function() == n_rows
                wall[title] = min(wall[title], time.perf_counter() - start)
                cpu[title] = min(cpu[title], time.process_time() - used)
        print(f"{'reader':24} {'rows/s':>10} {'rows/s of one core':>20}")
        for title in runs:
            print(f"{title:24} {n_rows / wall[title]:10.0f} {n_rows / cpu[title]:20.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["killed", "readers"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--format", choices=list(OPTIONS), default="csv")
    arguments = parser.parse_args()
    {"killed": killed, "readers": readers}[arguments.what](arguments)
