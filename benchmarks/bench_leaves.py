"""The matrix of leaves against the same matrix in CSR: memory, products, products of rows, and a fit on each.

    python benchmarks/bench_leaves.py [--rows 20000] [--trees 300] [--leaves 60]

Times are seconds of processor time, the least of several; a ratio above 1 means that the matrix of leaves is ahead. The
cost of a product grows with rows times trees in both, that of the products of rows with the square of the rows.
"""

import argparse
import time

import numpy as np

from toprank import PatMatNP
from toprank.matrices.dense_or_sparse import products_of_rows
from toprank.matrices.leaves import LeafMatrix

ROWS_OF_PRODUCTS = 2000


def made(n, n_trees, n_leaves, share):
    """Leaves of rows of two classes, of which one in ten is positive and tends to leaves of higher numbers."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.1).astype(int)
    numbers = np.minimum(rng.integers(0, n_leaves, (n, n_trees)) + (rng.random((n, n_trees)) < 0.2) * y[:, None] * 5,
                         n_leaves - 1)  # fmt: skip
    used = None if share is None else rng.random(numbers.shape) < share
    return LeafMatrix.of(numbers, [n_leaves] * n_trees, used), y


def least_time(call, repetitions):
    """Seconds of processor time of a call, after one that compiles."""
    call()
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def main():
    """Print a table for all leaves, and for those that honesty leaves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--leaves", type=int, default=60)
    arguments = parser.parse_args()
    some = np.arange(min(ROWS_OF_PRODUCTS, arguments.rows))
    for name, share in (("all leaves", None), ("honest leaves", 0.37)):
        X, y = made(arguments.rows, arguments.trees, arguments.leaves, share)
        csr = X.tocsr()
        rng = np.random.default_rng(1)
        w, r = rng.standard_normal(X.shape[1]), rng.standard_normal(len(X))
        assert np.array_equal(X @ w, csr @ w)
        assert np.array_equal(X.T @ r, csr.T @ r)
        size = csr.data.nbytes + csr.indices.nbytes + csr.indptr.nbytes
        print(f"{name}: {X.shape[0]:,} rows, {X.n_trees} trees, {X.shape[1]:,} leaves")
        print(
            f"  memory           {X.nbytes / 2**20:9.1f} MB   CSR {size / 2**20:9.1f} MB   ratio {size / X.nbytes:5.2f}"
        )
        calls = {
            "X w": (lambda X=X, w=w: X @ w, lambda csr=csr, w=w: csr @ w, 10),
            "Xᵀr": (lambda X=X, r=r: X.T @ r, lambda csr=csr, r=r: csr.T @ r, 10),
            "X[rows]": (lambda X=X: X[some], lambda csr=csr: csr[some], 10),
            "products of rows": (
                lambda X=X: products_of_rows(X[some]),
                lambda csr=csr: products_of_rows(csr[some]),
                3,
            ),
            "fit of PatMatNP": (
                lambda X=X, y=y: PatMatNP(tau=0.01).fit(X, y),
                lambda csr=csr, y=y: PatMatNP(tau=0.01).fit(csr, y),
                1,
            ),
        }
        for what, (ours, theirs, repetitions) in calls.items():
            mine, other = least_time(ours, repetitions), least_time(theirs, repetitions)
            print(f"  {what:16} {1e3 * mine:9.1f} ms   CSR {1e3 * other:9.1f} ms   ratio {other / mine:5.2f}")


if __name__ == "__main__":
    main()
