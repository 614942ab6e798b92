"""Online ranking: throughput and numerical health.

    python benchmarks/bench_online.py throughput | covariance | health

"covariance" is the part of "throughput" that needs no other library.

Tables 3 to 6 of the CBR paper: `python -m benchmarks.tables cbr`.
"""

import argparse
import ctypes
import time

import numpy as np
from numba import njit
from numba.extending import get_cython_function_address
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import roc_auc_score

from toprank.datasets import load_task
from toprank.matrices.threads import one_blas_thread
from toprank.online import CBR


def blas_loop():
    """A compiled loop that calls BLAS without any detour over Python: (n, A, x, y) → n times dsymv and dsyr."""
    pointers = [ctypes.c_void_p] * 10
    addresses = [get_cython_function_address("scipy.linalg.cython_blas", name) for name in ("dsymv", "dsyr")]
    symv, syr = (ctypes.CFUNCTYPE(None, *pointers[:k])(at) for k, at in zip((10, 7), addresses, strict=True))

    @njit
    def loop(n, A, x, y, lower, size, one, zero, tiny, step):
        for _ in range(n):
            symv(lower.ctypes, size.ctypes, one.ctypes, A.ctypes, size.ctypes, x.ctypes, step.ctypes, zero.ctypes,
                 y.ctypes, step.ctypes)  # fmt: skip
            syr(lower.ctypes, size.ctypes, tiny.ctypes, y.ctypes, step.ctypes, A.ctypes, size.ctypes)

    def run(n, d):
        numbers = np.array([1.0]), np.array([0.0]), np.array([-1e-12])
        lower, step = np.array([ord("L")], np.uint8), np.array([1], np.int32)
        loop(n, np.eye(d), np.ones(d), np.zeros(d), lower, np.array([d], np.int32), *numbers, step)

    return run


def best_times(functions, repeat):
    """The best processor time of each function, run in turn."""
    times = np.full((repeat, len(functions)), np.inf)
    for row in times:
        for column, function in enumerate(functions):
            start = time.process_time()
            function()
            row[column] = time.process_time() - start
    return times.min(axis=0)


def throughput(arguments):
    """Pair updates a second against BLAS, and rows a second against river, each within one run."""
    covariance(arguments)
    text_rows(arguments.repeat)


def every_pair(n, d):
    """A model with a full covariance that every pair updates, as near η = 1; rows, labels and the number of pairs."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    return CBR(eta=1 - 1e-9, C=1e-3), X, y, int(sum(min(50, np.sum(y[:t] != y[t])) for t in range(n)))


def covariance(arguments):
    """Rows a second with a full covariance against one dsymv and one dsyr a pair."""
    run = blas_loop()
    for n, d in ((1000, 54), (200, 200)):
        model, X, y, pairs = every_pair(n, d)
        model.fit(X[:10], np.arange(10) % 2)
        run(1, d)
        with one_blas_thread():
            ours, blas = best_times([lambda: model.fit(X, y), lambda: run(pairs, d)], arguments.repeat)  # noqa: B023
        print(
            f"d = {d}: CBR {n / ours:.0f} rows a second, BLAS alone for its {pairs / n:.0f} pairs a row "
            f"{n / blas:.0f}; share of that bound {blas / ours:.2f}"
        )


def text_rows(repeat):
    """CBR-diag against logistic regression with an AUC in river, test then train, on the same stream of text."""
    try:
        from river import linear_model, metrics
    except ImportError as error:
        raise SystemExit("this benchmark compares with river: pip install river") from error
    data = load_task("20newsgroups")
    rows = np.random.default_rng(0).permutation(len(data.y))
    X, y = TfidfTransformer().fit_transform(data.X[rows].astype(np.float64)), data.y[rows]
    dicts = [dict(zip(X[i].indices.tolist(), X[i].data.tolist(), strict=True)) for i in range(len(y))]

    def river():
        model, metric = linear_model.LogisticRegression(), metrics.ROCAUC()
        for x, label in zip(dicts, y.tolist(), strict=True):
            metric.update(label, model.predict_proba_one(x)[True])
            model.learn_one(x, label)
        return metric.get()

    def ours():
        model, scores = CBR(covariance="diag"), np.zeros(len(y))
        for start in range(0, len(y), 1000):
            part = slice(start, start + 1000)
            batch = X[part]
            if start:
                scores[part] = model.decision_function(batch)
            model.partial_fit(batch, y[part], classes=[0, 1])
        return roc_auc_score(y[1000:], scores[1000:])

    print(f"text: {X.nnz / len(y):.0f} entries a row; AUC of CBR-diag {ours():.3f}, of river {river():.3f}")
    own, peer = best_times([ours, river], repeat)
    print(f"CBR-diag {len(y) / own:.0f} rows/s, river {len(y) / peer:.0f} rows/s; ratio {peer / own:.1f}")


def health(arguments):
    """Whether Σ is positive definite after ten million pairs, with a constant, a zero and a copied feature."""
    rng = np.random.default_rng(0)
    print(f"{'C':>8} {'forgetting':>10} {'pairs':>9} {'least D':>9} {'least':>9} {'largest eigenvalue':>18} {'AUC':>6}")
    for C in (0.01, 1.0, 1e6):
        for kept in (1.0, 0.9999):
            model = CBR(C=C, growing_penalty=True, forgetting=kept)
            for _ in range(20):
                X = rng.normal(size=(10**4, 10)) @ np.triu(np.ones((10, 10)))
                X[:, -1], X[:, -2], X[:, -3] = 1.0, 0.0, X[:, 0]
                y = (X[:, 0] + rng.normal(size=10**4) > 0).astype(int)
                auc = roc_auc_score(y, model.decision_function(X)) if hasattr(model, "classes_") else np.nan
                model.partial_fit(X, y, classes=[0, 1])
            values = np.linalg.eigvalsh(model.covariance_)
            print(
                f"{C:8g} {kept:10g} {50 * model.n_samples_seen_:9.1e} {model.variances_.min():9.1e} {values[0]:9.1e} "
                f"{values[-1]:18.3f} {auc:6.3f}",
                flush=True,
            )


def main():
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["throughput", "covariance", "health"])
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    globals()[arguments.part](arguments)


if __name__ == "__main__":
    main()
