"""Pairwise ranking: the fast sums, the two solvers, Tables 2 and 3 of the RankNCG paper, and a large fit.

    python benchmarks/bench_pairwise.py sums | errors | solvers | tables | large [--sets Diabetes,Abalone] [--repeat 5]

All figures are ratios within one run; times are the best of several, taken in turn. `solvers` and `tables` read the
data folder that TOPRANK_DATA names.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank.datasets import discretize, five_folds, load, make_randnet, make_randpoly
from toprank.pairwise import WMWRanker, pair_sum

ALPHAS = 10.0 ** np.arange(-6, 1)

# Name: (data, levels, average number of training pairs, seconds direct and fast, WMW direct and fast), as published.
PUBLISHED = {
    "Diabetes": ("diabetes_cpeptide", 2, 272, (0.11, 0.06), (0.677, 0.650)),
    "Pyrimidines": ("pyrimidines", 3, 1113, (0.63, 0.12), (0.987, 0.948)),
    "Triazines": ("triazines", 4, 7674, (17.63, 0.70), (0.942, 0.914)),
    "Wisconsin": ("wisconsin_prognostic", 4, 8162, (13.41, 0.33), (0.764, 0.771)),
    "Machine-CPU": ("machine_cpu", 4, 9820, (20.38, 0.97), (0.920, 0.938)),
    "Auto-MPG": ("auto_mpg", 3, 30057, (28.05, 0.40), (0.999, 0.998)),
    "Boston": ("boston_housing", 2, 33693, (18.92, 0.16), (1.000, 1.000)),
    "Airplane": ("stocks", 5, 217301, (332.88, 3.29), (0.984, 0.984)),
    "RandNet-1000": (make_randnet, 1000, 195907, (250.37, 5.08), (0.944, 0.944)),
    "RandPoly-1000": (make_randpoly, 1000, 225131, (102.48, 0.78), (0.625, 0.625)),
    "Abalone": ("abalone", 3, 3713729, (1736.47, 1.47), (0.536, 0.534)),
    "RandNet-5000": (make_randnet, 5000, 6269910, (6731.09, 19.10), (0.917, 0.917)),
    "RandPoly-5000": (make_randpoly, 5000, 5367241, (2556.93, 3.59), (0.623, 0.623)),
    "California": ("california_housing", 3, 82420255, (np.nan, 46.86), (np.nan, 0.979)),
}


def read(name):
    """X and the levels of a set of the paper's Table 1."""
    source, number = PUBLISHED[name][:2]
    if callable(source):
        return source(number, random_state=0)[:2]
    data = load(source)
    return data.X.astype(np.float64), discretize(data.y, number)


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


def quiet_fit(model, X, y):
    """Fit without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def solver_seconds(models, X, y, repeat):
    """Seconds of each solver to its tolerance, best of several runs in turn; validation of the input is left out."""
    times = [[quiet_fit(model, X, y).history_["seconds"][-1] for model in models] for _ in range(repeat)]
    return np.min(times, axis=0)


def solvers(arguments):
    """Time to the tolerance of newton-cg with exact sums against ncg with erfc sums, by penalty."""
    titles = f"{'newton':>9} {'iter':>5} {'ncg erfc':>9} {'iter':>5} {'ratio':>6}"
    print(f"{'set':14} {'alpha':>6} {titles} {'WMW':>7} {'WMW':>7} {'bound':>8} {'bound':>8}")
    ratios = {}
    for name in arguments.sets or PUBLISHED:
        X, y = read(name)
        X = StandardScaler().fit_transform(X)
        for alpha in (1e-1, 1e-3, 1e-5):
            newton = WMWRanker(alpha=alpha)
            ncg = WMWRanker(alpha=alpha, solver="ncg", summation="erfc")
            fast, slow = solver_seconds([newton, ncg], X, y, arguments.repeat if len(y) < 10**4 else 2)
            ratios.setdefault(alpha, []).append(slow / fast)
            print(
                f"{name:14} {alpha:6g} {fast:9.4f} {newton.n_iter_:5} {slow:9.4f} {ncg.n_iter_:5} {slow / fast:6.1f} "
                f"{newton.score(X, y):7.4f} {ncg.score(X, y):7.4f} {newton.suboptimality_ / newton.objective_:8.0e} "
                f"{ncg.suboptimality_ / ncg.objective_:8.0e}",
                flush=True,
            )
    for alpha, values in ratios.items():
        print(f"ncg erfc / newton, alpha {alpha:g}: median {np.median(values):.1f}, least {min(values):.1f}")
    print(f"ncg erfc / newton, all: median {np.median(np.concatenate(list(ratios.values()))):.1f}")


def choose_alpha(X, y):
    """The penalty with the best WMW in five folds."""
    scores = np.zeros(len(ALPHAS))
    for train, test in five_folds(y, stratify=np.bincount(y)[np.unique(y)].min() >= 5, random_state=1):
        if len(np.unique(y[test])) < 2:
            continue
        scaler = StandardScaler().fit(X[train])
        for i, alpha in enumerate(ALPHAS):
            model = quiet_fit(WMWRanker(alpha=alpha), scaler.transform(X[train]), y[train])
            scores[i] += model.score(scaler.transform(X[test]), y[test])
    return ALPHAS[np.argmax(scores)]


def tables(arguments):
    """Tables 2 and 3: five folds, the penalty by five folds within, beside the published values of RankNCG."""
    print("Seconds and WMW: mean over five folds; (d) and (f) are the published direct and fast versions.")
    print(
        f"{'set':14} {'pairs':>9} {'publ.':>9} | {'newton':>8} {'ncg erfc':>8} {'ratio':>6} {'(d)':>8} {'(f)':>6} | "
        f"{'newton':>13} {'ncg erfc':>13} {'(d)':>6} {'(f)':>6}"
    )
    ratios = []
    for name in arguments.sets or PUBLISHED:
        X, y = read(name)
        published = PUBLISHED[name]
        rows = []
        for train, test in five_folds(y, random_state=0):
            alpha = choose_alpha(X[train], y[train])
            scaler = StandardScaler().fit(X[train])
            newton = WMWRanker(alpha=alpha)
            ncg = WMWRanker(alpha=alpha, solver="ncg", summation="erfc")
            repeat = arguments.repeat if len(y) < 10**4 else 2
            seconds = solver_seconds([newton, ncg], scaler.transform(X[train]), y[train], repeat)
            counts = np.bincount(y[train])
            pairs = (len(train) ** 2 - (counts**2).sum()) / 2
            scores = [model.score(scaler.transform(X[test]), y[test]) for model in (newton, ncg)]
            rows.append([pairs, *seconds, seconds[1] / seconds[0], *scores])
        pairs, fast, slow, _, wmw_newton, wmw_ncg = np.mean(rows, axis=0)
        ratio = np.median(np.array(rows)[:, 3])
        spread = np.std(rows, axis=0)[4:]
        ratios.append(ratio)
        print(
            f"{name:14} {pairs:9.0f} {published[2]:9} | {fast:8.4f} {slow:8.4f} {ratio:6.1f} {published[3][0]:8.2f} "
            f"{published[3][1]:6.2f} | {wmw_newton:.3f} ± {spread[0]:.3f} {wmw_ncg:.3f} ± {spread[1]:.3f} "
            f"{published[4][0]:6.3f} {published[4][1]:6.3f}",
            flush=True,
        )
    print(f"ncg erfc / newton at the chosen penalties: median {np.median(ratios):.1f}")


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


def main():
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["sums", "errors", "solvers", "tables", "large"])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=None)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    globals()[arguments.part](arguments)


if __name__ == "__main__":
    main()
