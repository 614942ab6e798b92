"""The linear top family: optimality, growth and float32.

    python benchmarks/bench_top.py optimality | growth | float32 [--sets heart,diabetes]

All figures are ratios within one run. Needs TOPRANK_DATA for optimality. Races: `python -m benchmarks.tables races`.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from top_cases import SMALL, fit, fit_seconds, load_case, scaled

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
    parser.add_argument("part", choices=["optimality", "growth", "float32"])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=None)
    arguments = parser.parse_args()
    globals()[arguments.part](arguments)


if __name__ == "__main__":
    main()
