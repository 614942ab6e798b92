"""The products of `toprank.matrices.dense_or_sparse` against those of tabmat, in one run.

    python benchmarks/bench_matrices.py [--cores 2] [--repetitions 15] [--sets w8a,20newsgroups]

Needs tabmat (`pip install tabmat`), which toprank does not use, and for the real sets TOPRANK_DATA. Times are tabmat's
as ratios to ours, the best of alternating repetitions: of CPU time on one core, where other work on the machine hardly
matters, of the clock on several.

convert: from CSR, or from a C-ordered array, to what tabmat multiplies, in units of our sandwich product of all rows.
all rows, 10 %: XᵀDX with weights on all rows and on a tenth of them, as of a Newton step (tabmat gets these as
`rows=`). working set: a tenth of the rows is copied from the data and multiplied once, as when a working set changes;
tabmat's time is with its conversion. X w, Xᵀr: products with a vector. error: of tabmat's sandwich product, relative to
its largest entry, against ours, which sums in float64. Sandwich products have at most as many columns as the
interior-point method factorises.
"""

import argparse
import os
import sys
import time
from contextlib import nullcontext

COLUMNS = ("convert", "all rows", "10 %", "working set", "X w", "Xᵀr", "error")
# Columns of 20newsgroups that are kept for a sandwich product: those of most entries.
COMMON_WORDS = 2000


def dense_cases():
    """Name and C-ordered matrix."""
    import numpy as np

    rng = np.random.default_rng(0)
    for n, d in ((20_000, 100), (5_000, 500)):
        X = rng.normal(size=(n, d))
        for kind in (np.float64, np.float32):
            yield f"dense {n} × {d}, {kind.__name__}", X.astype(kind)


def sparse_cases(names):
    """Name and CSR matrix of real sets, and of the commonest columns where there are too many to factorise."""
    import numpy as np
    from top_cases import load_case

    for name in names:
        X, _ = load_case(name)
        for kind in (np.float64, np.float32):
            yield f"{name}, {kind.__name__}", X.astype(kind)
        if X.shape[1] > COMMON_WORDS:
            common = np.sort(np.argsort(-X.getnnz(axis=0), kind="stable")[:COMMON_WORDS])
            yield f"{name}, {COMMON_WORDS} columns", X[:, common]


def converted(X):
    """Tabmat's matrix with both of the forms that its products need."""
    import tabmat
    from scipy.sparse import issparse

    if not issparse(X):
        return tabmat.DenseMatrix(X)
    matrix = tabmat.SparseMatrix(X)
    matrix.array_csr  # noqa: B018  (computed on first use)
    return matrix


def calls(X):
    """Column: (ours, tabmat's)."""
    import numpy as np

    from toprank.matrices.dense_or_sparse import matvec, sandwich, transpose_matvec
    from toprank.matrices.working_rows import MOST_FEATURES

    rng = np.random.default_rng(1)
    n, d = X.shape
    w, weights = rng.normal(size=d), rng.random(n) + 0.5
    rows = np.sort(rng.choice(n, n // 10, replace=False))
    some = np.zeros(n)
    some[rows] = weights[rows]
    theirs, kind = converted(X), X.dtype
    index = rows.astype(np.int32)
    w_, weights_, some_ = w.astype(kind), weights.astype(kind), some.astype(kind)
    pairs = {
        "X w": (lambda: matvec(X, w), lambda: theirs.matvec(w_)),
        "Xᵀr": (lambda: transpose_matvec(X, weights), lambda: theirs.transpose_matvec(weights_)),
    }
    if d <= MOST_FEATURES:
        pairs |= {
            "all rows": (lambda: sandwich(X, weights), lambda: theirs.sandwich(weights_)),
            "10 %": (lambda: sandwich(X, some), lambda: theirs.sandwich(some_, rows=index)),
            "working set": (
                lambda: sandwich(X[rows], weights[rows]),
                lambda: converted(X[rows]).sandwich(weights_[rows]),
            ),
            "convert": (lambda: None, lambda: converted(X)),
        }
    return pairs


def relative_error(ours, theirs):
    """Largest difference in the lower triangle, of which ours has no other."""
    import numpy as np

    return np.abs(np.tril(ours - theirs)).max() / np.abs(ours).max()


def ratios(X, repetitions, clock):
    """Column: ratio of the least times, and the error."""
    from toprank.matrices.threads import one_blas_thread

    pairs = calls(X)
    ours, theirs = dict.fromkeys(pairs, float("inf")), dict.fromkeys(pairs, float("inf"))
    for _ in range(repetitions + 1):  # the first one compiles
        for column, sides in pairs.items():
            for call, best, blas in zip(sides, (ours, theirs), (one_blas_thread, nullcontext), strict=True):
                with blas():  # as in our solvers
                    start = clock()
                    call()
                    best[column] = min(best[column], clock() - start)
    if "convert" in pairs:
        ours["convert"] = ours["all rows"]
    found = {column: f"{theirs[column] / ours[column]:.2f}" for column in pairs}
    if "all rows" in pairs:
        first, second = (call() for call in pairs["all rows"])
        found["error"] = f"{relative_error(first, second):.0e}"
    return found


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--repetitions", type=int, default=15)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=["w8a", "20newsgroups"])
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):  # before the libraries count the cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    try:
        import tabmat
    except ImportError:
        sys.exit("bench_matrices.py needs tabmat: pip install tabmat")

    clock = time.process_time if arguments.cores == 1 else time.perf_counter
    print(f"tabmat {tabmat.__version__}, time / ours, cores: {arguments.cores}, best of {arguments.repetitions}")
    print(f"{'case':30} " + " ".join(f"{column:>11}" for column in COLUMNS))
    sparse = sparse_cases(arguments.sets) if os.environ.get("TOPRANK_DATA") else ()
    for cases in (dense_cases(), sparse):
        for name, X in cases:
            found = ratios(X, arguments.repetitions, clock)
            print(f"{name:30} " + " ".join(f"{found.get(column, '–'):>11}" for column in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
