"""Kernels: optimality, 50,000 images, and growth with the rows.

    python benchmarks/bench_kernels.py optimality | fashion [--sets heart,german] [--C 1]
    python benchmarks/bench_kernels.py growth [--sets 1000,4000,16000] [--C 1] [--features 5]

The first two need TOPRANK_DATA. C is that of the kernel paper: alpha = 1 / (C m), m positives. The tables of that
paper: `python -m benchmarks.tables kernels`; races: `python -m benchmarks.tables races`.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from hard_sets import curved_bands
from kernel_models import exact_factor, fashion_parts, paper_models
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from top_cases import fit, fit_seconds, load_case, scaled

from toprank import PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK
from toprank.formulations.surrogates import SURROGATES
from toprank.metrics import precision_at_recall

RECALLS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


def few_rows(X, y, most=250):
    """At most so many rows, with the shares of the classes."""
    rng = np.random.default_rng(0)
    share = min(1.0, most / len(y))
    parts = [rng.permutation(np.flatnonzero(y == label)) for label in (True, False)]
    rows = np.sort(np.concatenate([part[: max(8, int(share * len(part)))] for part in parts]))
    return X[rows], y[rows]


def optimality(arguments):
    """Dual and primal objective against cvxpy, every convex formulation and surrogate; and the linear kernel."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from cvxpy.error import SolverError

    from exact import optimum

    warnings.simplefilter("ignore")  # Clarabel warns where it is less exact than asked
    print("relative differences to the optimum by Clarabel, tol=1e-7, alpha 1e-1 and 1e-3, Gaussian kernel;")
    print("last column: dual objective of kernel='linear' against the optimum by the linear solver, alpha 1e-1")
    titles = f"{'dual':>9} {'primal':>9} {'gap':>9} {'converged':>9} {'no reference':>12} {'linear':>9}"
    print(f"{'set':10} {'formulation':10} {'surrogate':11} {'solver':9} {titles}")
    worst = []
    for name in arguments.sets or ("ionosphere", "heart", "german", "oil_spill"):
        X, y = few_rows(*load_case(name))
        X, weights = scaled(X), np.ones(len(y))
        factor = exact_factor(rbf_kernel(X, gamma=1 / (X.shape[1] * X.var())))
        for kind, model, threshold in [
            ("TopPush", TopPush(), {}),
            ("TopPushK", TopPushK(k=5), {"k": 5}),
            ("TauFPL", TauFPL(tau=0.1), {"share": 0.1}),
            ("TopMeanK", TopMeanK(tau=0.7), {"share": 0.7, "over": "all"}),
            ("PatMat", PatMat(tau=0.1, beta=0.5), {"tau": 0.1, "beta": 0.5, "over": "all"}),
            ("PatMatNP", PatMatNP(tau=0.1, beta=0.5), {"tau": 0.1, "beta": 0.5}),
        ]:
            for surrogate in SURROGATES:
                rows = []
                for alpha in (1e-1, 1e-3):
                    fit(model.set_params(surrogate=surrogate, alpha=alpha, tol=1e-7, kernel="rbf", solver="auto"), X, y)
                    try:
                        exact = optimum(factor, y, weights, alpha, surrogate, **threshold)
                    except SolverError:
                        exact = np.nan
                    differences = [abs(value - exact) / exact for value in (model.dual_objective_, model.objective_)]
                    rows.append((*differences, model.dual_gap_))
                solver = model.solver_
                linear = linear_kernel_difference(model.set_params(alpha=1e-1), X, y)
                dual, primal, gap = np.nanmax(rows, axis=0)
                worst.append((dual, linear))
                met = f"{sum(row[2] <= 1e-7 for row in rows)}/{len(rows)}"
                line = f"{name:10} {kind:10} {surrogate:11} {solver:9} {dual:9.1e} {primal:9.1e} {gap:9.1e} {met:>9} "
                print(f"{line}{int(np.isnan([row[0] for row in rows]).sum()):12} {linear:9.1e}", flush=True)
    print(f"worst: dual {np.max(worst, axis=0)[0]:.1e}, linear kernel {np.max(worst, axis=0)[1]:.1e}")


def linear_kernel_difference(model, X, y):
    """Between the dual objective of the expansion with the linear kernel and that of the linear solver."""
    linear = fit(model.set_params(kernel="linear", solver="auto"), X, y).dual_objective_
    return abs(fit(model.set_params(solver="low-rank"), X, y).dual_objective_ - linear) / linear


def fashion(arguments):
    """50,000 images, one process for each model: time, gap, memory, precision at recalls."""
    if arguments.child:
        print(json.dumps(one_fashion(arguments.child, arguments.C)))
        return
    print(f"Fashion-MNIST, 50,000 training rows, Gaussian kernel with sigma = 0.01, C = {arguments.C:g}, tol = 1e-3")
    columns = f"{'gap':>8} {'support':>7} {'peak MB':>8} {'of data':>8}" + "".join(f"  P@{r:<4g}" for r in RECALLS)
    print(f"{'model':16} {'solver':>8} {'seconds':>8} {columns}")
    for kind in arguments.sets or ("TopPush", "TopPushK K=5", "Pat&Mat 0.01"):
        command = [sys.executable, __file__, "fashion", "--child", kind, "--C", str(arguments.C)]
        row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        line = f"{kind:16} {row['solver']:>8} {row['seconds']:8.1f} {row['gap']:8.1e} {row['support']:7} "
        line += f"{row['peak']:8.0f} {row['before']:8.0f}" + "".join(f" {p:7.4f}" for p in row["precision"])
        print(line, flush=True)


def one_fashion(kind, C):
    """One model; memory in MB, before the fit and at its peak."""
    (X, y), _, (X_test, y_test) = fashion_parts()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    model = paper_models(y)[kind].set_params(kernel="rbf", gamma=0.01, alpha=1 / (C * y.sum()), tol=1e-3)
    seconds = fit_seconds(model, X, y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    scores = model.decision_function(X_test)
    return {
        "solver": model.solver_,
        "seconds": seconds,
        "gap": model.dual_gap_,
        "support": len(model.support_),
        "before": before,
        "peak": peak,
        "precision": [precision_at_recall(y_test, scores, min_recall=recall) for recall in RECALLS],
    }


def growth(arguments):
    """Classes in curved bands, more and more rows: TopPush and SVC by turns, after a fit of few rows."""
    print(f"curved bands, {arguments.features} features, C = {arguments.C:g}, processor seconds of one fit each")
    print(f"{'rows':>7} {'solver':>9} {'TopPush':>8} {'gap':>8} {'SVC':>8} {'ratio':>6} {'peak MB':>8}")
    warnings.simplefilter("ignore")
    for solver in ("pairs", "low-rank"):
        TopPush(kernel="rbf", solver=solver).fit(*curved_bands(200, 2))
    for n in map(int, arguments.sets or (1000, 2000, 4000, 8000, 16_000, 32_000)):
        X, y = curved_bands(n, arguments.features)
        gamma, alpha = 1 / arguments.features, 1 / (arguments.C * y.sum())
        model = TopPush(alpha=alpha, kernel="rbf", gamma=gamma)
        seconds = []
        for one in (model, SVC(C=arguments.C, gamma=gamma)):
            start = time.process_time()
            one.fit(X, y)
            seconds.append(time.process_time() - start)
        ours, peer = seconds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        line = f"{n:7} {model.solver_:>9} {ours:8.2f} {model.dual_gap_:8.1e} {peer:8.2f} {ours / peer:6.2f} {peak:8.0f}"
        print(line, flush=True)


def main():
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["optimality", "fashion", "growth"])
    parser.add_argument(
        "--sets", type=lambda text: text.split(","), default=None, help="models of fashion, rows of growth"
    )
    parser.add_argument("--C", type=float, default=1.0, help="of fashion and growth")
    parser.add_argument("--features", type=int, default=5, help="of growth")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    globals()[arguments.part](arguments)


if __name__ == "__main__":
    main()
