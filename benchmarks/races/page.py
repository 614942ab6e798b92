"""The page of the races: a table and a figure for linear, kernel and pairwise problems."""

from functools import partial

import numpy as np
from benchmarks.races import contenders, problems
from benchmarks.races.race import BUDGET, GROWTH, TARGET, race
from benchmarks.tables.design import Cell, Experiment, Figure, Measure, Paper, Table
from matplotlib.ticker import NullFormatter

TINY = ("breast_cancer", "RandPoly")


def _races(kind: str, of: dict, running: dict, lacking: dict[str, tuple[str, ...]], tiny: str) -> Experiment:
    """The races of a kind; `lacking` says which contenders cannot run on what."""

    def methods(name):
        out = {method for start, without in lacking.items() if start in name for method in without}
        return tuple(method for method in running if method not in out)

    names = tuple(name for name in of if not name.startswith(TINY))

    def run(cell):
        return race(cell.set, running, cell.method)

    (small,) = (name for name in of if name.startswith(TINY))
    return Experiment(f"races-{kind}", run, methods, names, trials=1, tiny=Cell(small, tiny, 0))


EXPERIMENTS = {
    "linear": _races(
        "linear",
        problems.LINEAR,
        contenders.LINEAR,
        {"w8a": ("Clarabel",), "20newsgroups": ("Clarabel",)},
        "newton",
    ),
    "kernel": _races("kernel", problems.KERNEL, contenders.KERNEL, {"spambase": ("Clarabel",)}, "pairs"),
    "pairwise": _races(
        "pairwise",
        problems.PAIRWISE,
        contenders.PAIRWISE,
        {
            "hinge": ("ncg", "ncg, erfc", "lbfgs on pairs"),
            "squared hinge": ("skglm on pairs",),
            "Airplane, hinge": ("skglm on pairs",),
            "Abalone": ("LIBLINEAR on pairs", "lbfgs on pairs", "skglm on pairs"),
        },
        "toprank",
    ),
}
OURS = {"linear": "newton", "kernel": "pairs", "pairwise": "toprank"}
NOTES = {
    "linear": (
        "“newton” and “pairs” are toprank's solvers for rows of features, “apg” is Algorithm 1 of the TopPush paper "
        "with the usual test of a step, “sgd” the framework paper's. Clarabel, an interior-point method for cones, "
        "gets the same problem from cvxpy. LIBLINEAR solves another problem, the squared hinge of all rows at "
        "C = 1/(λm) with m positives, to its default tolerance. skglm cannot express any of these problems, nor those "
        "with a kernel: its losses are sums over rows, and here the highest negative is in the loss of each positive.",
    ),
    "kernel": (
        "Gaussian kernel of the usual width, C = 1, so λ = 1/m; TopPushK has k = 5, Pat&Mat τ = 0.1 and β = 1, all the "
        "quadratic loss. “pairs” and “low-rank” are toprank's, “dual-cd” is the kernel paper's. Clarabel gets a factor "
        "of the kernel matrix, made beforehand. SVC solves another problem, the hinge of all rows at C = 1.",
    ),
    "pairwise": (
        "λ = 10⁻³ of the mean loss over pairs. “toprank” is newton-cg with exact sums for the logistic loss "
        "(`WMWRanker`) and for the squared hinge (`RankSVM`), cutting planes for the plain hinge. “ncg, erfc” is "
        "RankNCG: its gradient replaces the sigmoid, so it ends at a distance. “on pairs” are scikit-learn's solvers "
        "of the same problem on the differences of all pairs, which are made beforehand; Abalone has 4 million. skglm "
        "has Newton steps with its elastic net at no part of L1 for the logistic loss and coordinate ascent in the "
        "dual for the plain hinge, which ended far above the optimum on Auto-MPG and was not run on more pairs; it has "
        "no squared one.",
    ),
}
FORM = (
    f"Seconds of the processor and passes over the data until the objective is {TARGET:g} above the optimum, relative "
    "to it; time is the ratio of seconds to those of the first line of a problem. “end”: how far above the optimum the "
    f"last run was, what its own certificate said, and its seconds. Limits of iterations grow by {GROWTH:g}, so a "
    f"time may be that much too long; all runs of a contender together get {BUDGET:g} seconds."
)


def table(number: str, kind: str) -> Table:
    """Who arrives, and when."""
    measures = (
        Measure("seconds_to_target", f"time / {OURS[kind]}", None, ".3g", ratio_to=OURS[kind]),
        Measure("seconds_to_target", "seconds", None, ".2g"),
        Measure("passes_to_target", "passes", None, ".0f"),
        Measure("last_excess", "end: above the optimum", None, ".0e"),
        Measure("last_gap", "end: gap", None, ".0e"),
        Measure("last_seconds", "end: seconds", None, ".2g"),
    )
    return Table(number, f"{kind.capitalize()} problems", EXPERIMENTS[kind], measures, {}, 1, (FORM, *NOTES[kind]))


def draw(kind: str, canvas, results) -> None:
    """Above the optimum against seconds and against passes, a column for each problem."""
    experiment = EXPERIMENTS[kind]
    panels = canvas.subplots(2, len(experiment.sets), squeeze=False, sharey=True)
    colours = {method: f"C{place}" for place, method in enumerate(getattr(contenders, kind.upper()))}
    for column, name in enumerate(experiment.sets):
        lines = [line for cell, line in results.cells.items() if cell.set == name]
        for panel, key in zip(panels[:, column], ("seconds", "passes"), strict=True):
            draw_panel(panel, key, lines, colours)
        panels[0, column].set_title(name, fontsize=8)
    for row, key in enumerate(("seconds", "passes")):
        panels[row, 0].set_ylabel("above the optimum, gap", fontsize=7)
        for panel in panels[row]:
            panel.set_xlabel(key, fontsize=7)
            panel.tick_params(labelsize=6)
    handles = dict(zip(*reversed(panels[0, 0].get_legend_handles_labels()), strict=True))
    canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=7, fontsize=7)


def draw_panel(panel, key: str, lines: list, colours: dict[str, str]) -> None:
    """The curves of all contenders for one problem; gaps are dashed, other problems and w = 0 are lines."""
    for line in lines:
        colour, label = colours[line["method"]], line["method"]
        if "excess" not in line:
            if key == "seconds":
                panel.axvline(line["last_seconds"], color=colour, ls=":", label=f"{label} (another problem)")
            continue
        cost, excess, gaps = (np.array(line[name], dtype=float) for name in (key, "excess", "gaps"))  # None is NaN
        panel.plot(cost, np.maximum(excess, 1e-12), color=colour, marker=".", ms=3, lw=1, label=label)
        panel.plot(cost, np.maximum(gaps, 1e-12), color=colour, ls="--", lw=0.6)
    if lines:
        panel.axhline(max(lines[0]["zero"], 1e-12), color="k", lw=0.8, label="w = 0")
    panel.set(xscale="log", yscale="log", ylim=(1e-10, 30))
    panel.xaxis.set_minor_formatter(NullFormatter())


def figure(number: str, kind: str) -> Figure:
    """The curves behind a table."""
    notes = ("Solid: objective above the optimum, relative to it. Dashed: the gap by the solver's own certificate.",)
    width = 1.9 * len(EXPERIMENTS[kind].sets)
    return Figure(number, f"{kind.capitalize()} problems", EXPERIMENTS[kind], partial(draw, kind), (width, 4.4), notes)


PAPER = Paper(
    "races",
    "Solver races",
    "",
    tuple(make(number, kind) for number, kind in zip("123", EXPERIMENTS, strict=True) for make in (table, figure)),
)
