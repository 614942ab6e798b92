"""Pairwise ranking: the fast sums, and a large fit.

    python benchmarks/bench_pairwise.py sums | errors | large | blocks [--repeat 5]

All figures are ratios within one run; times are the best of several, taken in turn. The tables of the RankNCG paper:
`python -m benchmarks.tables rankncg`; its solver beside ours: `python -m benchmarks.tables races`.
"""

import argparse
import pickle
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from toprank.pairwise import WMWRanker, pair_sum


def best_times(functions, repeat):
    """The best time of each function, run in turn."""
    times = np.full((repeat, len(functions)), np.inf)
    for row in times:
        for column, function in enumerate(functions):
            start = time.perf_counter()
            function()
            row[column] = time.perf_counter() - start
    return times.min(axis=0)


def sums(arguments):
    """One million sources and targets, and the growth from 1e5 to 1e7."""
    rng = np.random.default_rng(0)
    small = rng.normal(size=10)
    for summation in ("exact", "erfc"):
        pair_sum(small, small, summation=summation)  # load what was compiled
    titles = f"{'exact σ':>9} {'exact erfc':>11} {'erfc 1e-6':>10} {'erfc/exact σ':>13} {'erfc/exact erfc':>16}"
    print(f"{'points':>9} {titles}")
    rows = []
    for n in (10**5, 10**6, 10**7):
        y, z, q = rng.normal(size=n), rng.normal(size=n), rng.random(n)
        runs = [
            lambda y=y, z=z, q=q: pair_sum(y, z, q),
            lambda y=y, z=z, q=q: pair_sum(y, z, q, function="erfc"),
            lambda y=y, z=z, q=q: pair_sum(y, z, q, function="erfc", summation="erfc", eps=1e-6),
        ]
        rows.append(best_times(runs, arguments.repeat if n < 10**7 else 3))
        a, b, c = rows[-1]
        print(f"{n:9} {a:9.4f} {b:11.4f} {c:10.4f} {c / a:13.1f} {c / b:16.1f}", flush=True)
    for title, grown in zip(("1e5 to 1e6", "1e6 to 1e7"), np.array(rows)[1:] / np.array(rows)[:-1], strict=True):
        print(f"growth from {title}: exact σ {grown[0]:.1f}, exact erfc {grown[1]:.1f}, erfc {grown[2]:.1f}")
    n = 5000
    y, z, q = rng.normal(size=n), rng.normal(size=n), rng.random(n)
    direct = best_times([lambda: pair_sum(y, z, q, summation="direct")], arguments.repeat)[0] * (10**6 / n) ** 2
    print(f"direct σ at 1e6 points, extrapolated from {n}: {direct:.0f} s, {direct / rows[1][0]:.0f} times exact σ")
    wide = rng.uniform(-1e6, 1e6, 10**6)
    print(f"exact σ, 1e6 points spread over 2e6: {best_times([lambda: pair_sum(wide, wide)], 2)[0]:.2f} s")


def errors(arguments):
    """Largest error relative to Σ|q| against the direct sum, on normal points with weights of both signs."""
    rng = np.random.default_rng(0)
    y, z, q = 3 * rng.normal(size=4000), 3 * rng.normal(size=4000), rng.normal(size=4000)
    direct = {name: pair_sum(y, z, q, function=name, summation="direct") for name in ("sigmoid", "log_sigmoid", "erfc")}
    for name, exact in direct.items():
        print(f"exact {name:12}: {np.abs(pair_sum(y, z, q, function=name) - exact).max() / np.abs(q).sum():.1e}")
    for eps in 10.0 ** -np.arange(3, 13):
        result = pair_sum(y, z, q, function="erfc", summation="erfc", eps=eps)
        print(f"erfc, eps {eps:.0e}: {np.abs(result - direct['erfc']).max() / np.abs(q).sum():.1e}")


def large(arguments):
    """200,000 rows, 50 features, 5 levels, about 1.6e10 pairs: time as a ratio to logistic regression by lbfgs."""
    rng = np.random.default_rng(0)
    n, d = 200_000, 50
    X = rng.normal(size=(n, d))
    noisy = X @ rng.normal(size=d) / np.sqrt(d) + rng.logistic(size=n)
    y = np.digitize(noisy, np.quantile(noisy, [0.2, 0.4, 0.6, 0.8]))
    WMWRanker().fit(X[:100], y[:100])
    print(f"{'alpha':>6} {'seconds':>8} {'iter':>5} {'passes':>6} {'bound':>8} {'lbfgs':>7} {'ratio':>6}")
    for alpha in (1e-2, 1e-4, 1e-6):
        model = make_pipeline(WMWRanker(alpha=alpha))
        peer = LogisticRegression(solver="lbfgs", C=1 / (alpha * n), max_iter=1000)
        ours, theirs = best_times([lambda m=model: m.fit(X, y), lambda m=peer: m.fit(X, y)], arguments.repeat)
        ranker = model[-1]
        print(
            f"{alpha:6g} {ours:8.2f} {ranker.n_iter_:5} {ranker.history_['passes'][-1]:6.0f} "
            f"{ranker.suboptimality_ / ranker.objective_:8.0e} {theirs:7.2f} {ours / theirs:6.2f}",
            flush=True,
        )


def blocks(arguments):
    """Rows in 4 blocks of Dask, in this thread: what the client receives, and processor time against one memory."""
    import dask
    from dask import array

    compute, sent = dask.compute, []

    def counting(*tasks, **options):
        found = compute(*tasks, **options)
        sent.append(sum(len(pickle.dumps(part, 5)) for part in found))
        return found

    dask.compute = counting
    travels = f"{'trips':>5} {'KB a trip':>9} {'most KB':>8}"
    print(f"{'rows':>9} {'levels':>6} {'steps':>5} {'passes':>6} {travels} {'time':>5}")
    for n, n_levels in ((50_000, 5), (100_000, 5), (200_000, 5), (400_000, 5), (50_000, 50), (50_000, 500)):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 20))
        noisy = X @ rng.normal(size=20) + 4 * rng.normal(size=n)
        y = np.digitize(noisy, np.quantile(noisy, np.arange(1, n_levels) / n_levels))
        dask_X, dask_y = array.from_array(X, chunks=(n // 4, 20)), array.from_array(y, chunks=n // 4)
        times = []
        for given in ((X, y), (dask_X, dask_y)):
            with dask.config.set(scheduler="synchronous"):
                WMWRanker().fit(*given)
                sent.clear()
                start = time.process_time()
                model = WMWRanker().fit(*given)
                times.append(time.process_time() - start)
        steps, passes = model.n_iter_, model.history_["passes"][-1]
        travelled = f"{len(sent):5} {np.mean(sent) / 1e3:9.1f} {max(sent) / 1e3:8.0f}"
        print(f"{n:9,} {n_levels:6} {steps:5} {passes:6.0f} {travelled} {times[1] / times[0]:5.2f}", flush=True)


def main():
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["sums", "errors", "large", "blocks"])
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    globals()[arguments.part](arguments)


if __name__ == "__main__":
    main()
