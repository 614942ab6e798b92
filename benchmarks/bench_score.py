"""Score a large CSV file by the command line, beside polars reading it and one matrix product.

    python benchmarks/bench_score.py [--rows 5000000] [--features 20] [--repeats 3] [--folder DIR]

Writes a CSV file of numbers and one with a tenth of its rows into a temporary folder, fits a model to the first rows,
and runs each of two programs in a process of its own, in turns: `toprank score`, which also writes the scores, and
polars reading the whole file, making an array of it and multiplying by a vector. Seconds are measured inside the
process, so that imports do not count for either. It prints the best of the repeats, rows per second, their ratio, and
the peak of the resident memory; that of `toprank score` should be the same for both files.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

PEER = """
import json, resource, sys, time
import numpy as np
import polars as pl
start = time.perf_counter()
frame = pl.read_csv(sys.argv[1])
X = frame.drop("id", "y").to_numpy()
scores = X @ np.ones(X.shape[1])
seconds = time.perf_counter() - start
print(json.dumps({"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""
OURS = """
import contextlib, io, json, resource, sys
import polars
import toprank.decision
import toprank.files.scoring
from toprank.cli.app import app
said = io.StringIO()
with contextlib.redirect_stdout(said):
    app(["score", sys.argv[1], "--model", sys.argv[2], "--output", sys.argv[3], "--json"], standalone_mode=False)
seconds = json.loads(said.getvalue())["seconds"]
print(json.dumps({"seconds": seconds, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def write(path, n_rows, n_features, size=200_000):
    """Rows of two normal classes with six decimals, an identifier and a label, in constant memory."""
    rng = np.random.default_rng(0)
    with open(path, "wb") as stream:
        for start in range(0, n_rows, size):
            n = min(size, n_rows - start)
            y = (rng.random(n) < 0.02).astype(np.int8)
            X = rng.normal(size=(n, n_features)) + 1.5 * y[:, None] * (np.arange(n_features) < 3)
            frame = pl.DataFrame(X, schema=[f"x{i}" for i in range(n_features)])
            frame = frame.insert_column(0, pl.Series("id", np.arange(start, start + n))).with_columns(pl.Series("y", y))
            frame.write_csv(stream, include_header=start == 0, float_precision=6)


def run(program, *arguments):
    """What a program says at its end."""
    done = subprocess.run([sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def race(path, model, output, repeats):
    """The best run of each."""
    runs = [(run(OURS, path, model, output), run(PEER, path)) for _ in range(repeats)]
    return [min(column, key=lambda one: one["seconds"]) for column in zip(*runs, strict=True)]


def check(path, output, n_rows):
    """Every row has a score, in the order of the file."""
    ids = pl.read_csv(output, columns=["id"])["id"]
    assert len(ids) == n_rows, (len(ids), n_rows)
    assert (ids == pl.read_csv(path, columns=["id"])["id"]).all()


def main():
    """Print a table of both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None, help="where to make the temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        train, model, output = folder / "train.csv", folder / "model.toprank", folder / "scores.csv"
        write(train, 20_000, options.features)
        fit = ["fit", train, "--target", "y", "--id", "id", "--model", model, "--quiet"]
        subprocess.run([sys.executable, "-m", "toprank.cli", *map(str, fit)], check=True, stdout=subprocess.DEVNULL)
        print(f"{'rows':>10} {'MB':>6}   {'toprank score':^26}   {'polars and a product':^26}   ratio")
        for n_rows in (options.rows // 10, options.rows):
            path = folder / f"{n_rows}.csv"
            write(path, n_rows, options.features)
            ours, peer = race(path, model, output, options.repeats)
            check(path, output, n_rows)
            cells = [f"{n_rows / one['seconds']:12,.0f} rows/s {one['megabytes']:5.0f} MB" for one in (ours, peer)]
            ratio = peer["seconds"] / ours["seconds"]
            print(f"{n_rows:10,} {path.stat().st_size / 1e6:6.0f}   {cells[0]}   {cells[1]}   {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
