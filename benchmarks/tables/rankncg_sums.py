"""RankNCG, Figures 5 and 6: the fast sums, and what their precision does."""

import time

import numpy as np
from benchmarks.ordinal_sets import read_ordinal
from benchmarks.tables.design import Cell, Experiment, Figure
from benchmarks.tables.rankncg_folds import rank_ncg
from sklearn.preprocessing import StandardScaler

from toprank.datasets import five_folds
from toprank.pairwise import pair_sum


# Figure 5.
def of_sums(cell):
    """Time and largest error relative to Σ|q| of a sum of erfc, by the number of points; and seconds by ε."""
    rng = np.random.default_rng(cell.trial)
    how = {"direct": {"summation": "direct"}, "erfc series": {"summation": "erfc", "eps": 1e-6}, "exact": {}}[
        cell.method
    ]
    pair_sum(rng.normal(size=10), rng.normal(size=10), function="erfc", **how)  # loads what was compiled
    most = {"normal points": {"direct": 12_800}.get(cell.method, 819_200)}.get(cell.set, 400)
    sizes = [100 * 2**k for k in range(14) if 100 * 2**k <= most]
    seconds, errors = [], []
    for size in sizes:
        y, z = rng.normal(size=size), rng.normal(size=size)
        start = time.process_time()
        found = pair_sum(y, z, function="erfc", **how)
        seconds.append(time.process_time() - start)
        if size <= 12_800:
            some = slice(0, 200)
            truth = pair_sum(y[some], z, function="erfc", summation="direct")
            errors.append(float(np.abs(found[some] - truth).max() / size))
    by_eps = []
    if cell.method == "erfc series":
        for k in range(2, 11):
            y, z = rng.normal(size=most // 4), rng.normal(size=most // 4)
            start = time.process_time()
            pair_sum(y, z, function="erfc", summation="erfc", eps=10.0**-k)
            by_eps.append((10.0**-k, time.process_time() - start))
    return {"sizes": sizes, "seconds": seconds, "errors": errors, "by_eps": by_eps}


SUMS = Experiment(
    "rankncg-sums",
    of_sums,
    lambda name: ("direct", "erfc series", "exact"),
    ("normal points",),
    trials=1,
    tiny=Cell("few points", "erfc series", 0),
)


def draw_sums(canvas, results):
    """Seconds, errors, and seconds by ε."""
    left, middle, right = canvas.subplots(1, 3)
    for line in results.cells.values():
        left.loglog(line["sizes"], np.maximum(line["seconds"], 1e-6), marker="o", ms=3, label=line["method"])
        errors = np.maximum(line["errors"], 1e-17)
        middle.loglog(line["sizes"][: len(errors)], errors, marker="o", ms=3, label=line["method"])
        if line["by_eps"]:
            eps, seconds = np.array(line["by_eps"]).T
            right.loglog(eps, seconds, marker="o", ms=3)
    left.set(xlabel="points", ylabel="seconds")
    middle.axhline(1e-6, color="k", lw=0.7)
    middle.set(xlabel="points", ylabel="largest error / Σ|q|")
    right.set(xlabel="ε of the series", ylabel="seconds")
    left.legend(fontsize=7)


FIGURE_5 = Figure(
    "5",
    "Sums of erfc: time, error, and time by ε",
    SUMS,
    draw_sums,
    size=(9.0, 3.0),
    notes=(
        "ε = 10⁻⁶ (the line in the middle), normal points, weights of 1; errors against direct sums at 200 of the "
        "targets; on the right 204,800 points. “exact” are toprank's default sums.",
    ),
)


# Figure 6.
EPSILONS = tuple(10.0**-k for k in range(1, 9))


def of_epsilon(cell):
    """Seconds, iterations and WMW of a fold of data set 10 by ε; and of the direct version."""
    X, y = read_ordinal(cell.set)
    train, test = five_folds(y, random_state=0)[cell.trial]
    scaler = StandardScaler().fit(X[train])
    X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    direct = cell.method == "direct"
    ways = [{"summation": "direct"}] if direct else [{"summation": "erfc", "eps": eps} for eps in EPSILONS]
    lines = []
    for way in ways:
        start = time.process_time()
        model = rank_ncg(1e-2, **way).fit(X_train, y[train])
        lines.append((time.process_time() - start, model.n_iter_, float(model.score(X_test, y[test]))))
    seconds, iterations, wmw = zip(*lines, strict=True)
    return {"seconds": seconds, "iterations": iterations, "wmw": wmw}


EPSILON = Experiment(
    "rankncg-epsilon",
    of_epsilon,
    lambda name: ("direct", "erfc series"),
    ("RandPoly-1000",),
    trials=5,
    tiny=Cell("RandPoly-60", "erfc series", 0),
)


def draw_epsilon(canvas, results):
    """Seconds and WMW by ε, with the direct version as a line."""
    panels = canvas.subplots(1, 2)
    for panel, key in zip(panels, ("seconds", "wmw"), strict=True):
        series = np.array(results.values("RandPoly-1000", "erfc series", key))
        direct = np.array(results.values("RandPoly-1000", "direct", key))
        if len(series):
            panel.errorbar(EPSILONS, series.mean(axis=0), series.std(axis=0), marker="o", ms=3, capsize=2, label="fast")
        if len(direct):
            panel.axhline(direct.mean(), color="k", ls="--", label="direct")
        panel.set(xscale="log", xlabel="ε", ylabel={"wmw": "WMW"}.get(key, key))
    panels[0].set_yscale("log")
    panels[0].legend(fontsize=7)


FIGURE_6 = Figure(
    "6",
    "Data set 10 (RandPoly): time and WMW by the precision ε of the gradient",
    EPSILON,
    draw_epsilon,
    notes=("Penalty 10⁻²; bars are deviations over folds.",),
)
