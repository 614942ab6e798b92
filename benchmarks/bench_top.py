"""The linear top family: optimality, a race to a relative gap of 1e-4, growth, float32 and threads.

    python benchmarks/bench_top.py optimality | race | growth | float32 [--sets spambase,w8a] [--apg-seconds 60]

All figures are ratios within one run. Needs TOPRANK_DATA for all parts but growth and float32.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from top_cases import LARGE, SMALL, fit, fit_seconds, load_case, scaled, variants

from toprank import PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from toprank.datasets import make_imbalanced
from toprank.formulations.surrogates import SURROGATES

ALPHAS = (1.0, 1e-2, 1e-4)


def optimality(arguments):
    """Objective against cvxpy on small sets, every convex formulation and surrogate."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from cvxpy.error import SolverError

    from exact import optimum

    warnings.simplefilter("ignore")  # Clarabel warns where it is less exact than asked
    titles = f"{'worst difference':>17} {'worst gap':>10} {'converged':>9} {'no reference':>12}"
    print(f"{'set':12} {'formulation':10} {'cases':>5} {titles}")
    for name in arguments.sets or SMALL:
        X, y = load_case(name)
        X, weights = scaled(X), np.ones(len(y))
        for kind, model, threshold in [
            ("TopPush", TopPush(), {}),
            ("TopPushK", TopPushK(k=5), {"k": 5}),
            ("TauFPL", TauFPL(tau=0.1), {"share": 0.1}),
            ("TopMeanK", TopMeanK(tau=0.5), {"share": 0.5, "over": "all"}),
            ("PatMat", PatMat(tau=0.1, beta=0.5), {"tau": 0.1, "beta": 0.5, "over": "all"}),
            ("PatMatNP", PatMatNP(tau=0.1, beta=0.5), {"tau": 0.1, "beta": 0.5}),
        ]:
            rows = []
            for surrogate in SURROGATES:
                for alpha in ALPHAS:
                    fit(model.set_params(surrogate=surrogate, alpha=alpha, tol=1e-7), X, y)
                    try:
                        exact = optimum(X, y, weights, alpha, surrogate, **threshold)
                    except SolverError:
                        exact = np.nan
                    rows.append((abs(model.objective_ - exact) / exact, model.dual_gap_))
            worst, gap = np.nanmax(rows, axis=0)
            met, missing = sum(row[1] <= 1e-7 for row in rows), int(np.isnan(rows).sum())
            met_of = f"{met}/{len(rows)}"
            print(f"{name:12} {kind:10} {len(rows):5} {worst:17.1e} {gap:10.1e} {met_of:>9} {missing:12}", flush=True)


def race(arguments):
    """Time to a relative gap of 1e-4: newton against apg and against LIBLINEAR's logistic regression."""
    for storage, d in ((np.asarray, 10), (csr_array, 200), (csr_array, 4000)):  # load what was compiled, off the clock
        X, y, _ = make_imbalanced(600, d, separation=3.0, random_state=0)
        fit(TauFPL(tau=0.2), storage(np.where(X > 1.5, X, 0.0)), y)
    titles = f"{'gap':>8} {'passes':>7} {'seconds':>8} {'/liblinear':>10} {'apg/newton':>11}"
    print(f"{'case':24} {'alpha':>6} {'k':>6} {titles}")
    rows = []
    for name in arguments.sets or LARGE:
        for label, X, y in variants(name):
            for alpha in ALPHAS:
                peer = fit_seconds(liblinear(alpha, y), X, y)
                rows += [one_race(label, kind, alpha, X, y, peer, arguments.apg_seconds) for kind in arguments.kinds]
    ratios = np.array([row[0] for row in rows])
    passes = np.array([row[1] for row in rows])
    speed = np.array([row[2] for row in rows if np.isfinite(row[2])])
    print(f"seconds / liblinear: median {np.median(ratios):.2f}, worst {ratios.max():.2f}")
    print(f"passes: median {np.median(passes):.0f}, worst {passes.max():.0f}")
    if len(speed):
        print(f"apg / newton: median {np.median(speed):.0f}, least {speed.min():.1f}; > marks an apg run cut off")


def liblinear(alpha, y):
    """The peer, at the same penalty."""
    return LogisticRegression(solver="liblinear", C=1 / (alpha * y.sum()), max_iter=1000)


def one_race(label, kind, alpha, X, y, peer, apg_seconds):
    """Print one line; returns the ratio to the peer, the passes and the ratio of apg (nan if it was not run)."""
    model = {"max": TopPush(), "k10": TopPushK(k=10), "5%": TauFPL(tau=0.05)}[kind].set_params(alpha=alpha)
    seconds = fit_seconds(model, X, y)
    passes = model.history_["passes"][-1]
    speed, mark = np.nan, ""
    if apg_seconds > 0:
        speed, mark = apg_ratio(model, X, y, seconds, apg_seconds)
    print(
        f"{label:24} {alpha:6g} {kind:>6} {model.dual_gap_:8.1e} {passes:7.0f} {seconds:8.3f} {seconds / peer:10.2f} "
        f"{mark}{speed:10.1f}",
        flush=True,
    )
    return seconds / peer, passes, speed


def apg_ratio(model, X, y, seconds, limit):
    """Time of apg over ours; it is cut off at 60 times our time or at `limit`, and then the ratio is a lower bound."""
    apg = type(model)(**{**model.get_params(), "solver": "apg", "max_iter": 1})
    fit(apg, X, y)  # compiles, or loads what was compiled
    budget, iterations, taken = min(limit, 60 * seconds), 100, 0.0
    while True:
        taken = fit_seconds(apg.set_params(max_iter=iterations), X, y)
        if apg.dual_gap_ <= 1e-4 or taken >= 0.8 * budget:
            return taken / seconds, ">" if apg.dual_gap_ > 1e-4 else " "
        iterations = int(iterations * min(20.0, max(1.5, budget / taken)))


def growth(arguments):
    """Ten times the rows: time and the largest memory, 50 features."""
    import tracemalloc

    before = None
    print(f"{'rows':>9} {'alpha':>6} {'gap':>8} {'passes':>7} {'seconds':>8} {'growth':>7} {'peak/input':>10}")
    for alpha in (1e-2, 1e-4):
        before = None
        for n in (10**4, 10**5, 10**6):
            X, y, _ = make_imbalanced(n, 50, positive_share=0.1, separation=3.0, random_state=0)
            model = TauFPL(tau=0.01, alpha=alpha)
            seconds = fit_seconds(model, X, y)
            tracemalloc.start()
            fit(model, X, y)
            peak = tracemalloc.get_traced_memory()[1] / X.nbytes
            tracemalloc.stop()
            grown = f"{seconds / before:7.1f}" if before else "      -"
            passes = model.history_["passes"][-1]
            print(
                f"{n:9} {alpha:6g} {model.dual_gap_:8.1e} {passes:7.0f} {seconds:8.3f} {grown} {peak:10.2f}", flush=True
            )
            before = seconds


def float32(arguments):
    """float32 against float64: time and the difference of the models."""
    print(f"{'rows':>9} {'features':>8} {'32/64 time':>10} {'difference of objectives':>25} {'dtype':>8}")
    for n, d in ((10**5, 50), (2 * 10**5, 300)):
        X, y, _ = make_imbalanced(n, d, positive_share=0.1, separation=3.0, random_state=0)
        double, single = TauFPL(tau=0.01), TauFPL(tau=0.01)
        times = [(fit_seconds(double, X, y), fit_seconds(single, X.astype(np.float32), y)) for _ in range(3)]
        first, second = np.min(times, axis=0)
        difference = abs(single.objective_ - double.objective_) / double.objective_
        print(f"{n:9} {d:8} {second / first:10.2f} {difference:25.1e} {single.coef_.dtype!s:>8}")


def main():
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["optimality", "race", "growth", "float32"])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=None)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=["max", "k10", "5%"])
    parser.add_argument("--apg-seconds", type=float, default=60.0, help="0 leaves apg out")
    arguments = parser.parse_args()
    globals()[arguments.part](arguments)


if __name__ == "__main__":
    main()
