"""Shirts at the top of 10,000 images: straight and curved score functions.

The comparison of Figures 1 and 2 of the paper on kernelised ranking (Mácha, Adam and Šmídl 2020): Fashion-MNIST,
T-shirts against the rest, a linear and a Gaussian kernel with σ = 0.01 on pixels in [0, 1], C = 1, that is
alpha = 1 / m for m positives. Drawn are precision and recall on the test images, and the densities of their scores with
a line at the top 5 % of all of them. Pat&Mat has its quantile over the negatives, as in that paper.

Run: python examples/kernel_fashion.py [figure.png] [training rows, at most 60000]

It reads Fashion-MNIST from the folder that TOPRANK_DATA names.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde
from sklearn.metrics import precision_recall_curve
from sklearn.model_selection import train_test_split

from toprank import DegenerateSolutionWarning, PatMatNP, TopPush, TopPushK
from toprank.datasets import binarize, load
from toprank.metrics import precision_at_recall

RECALLS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
COLOURS = {"TopPush": "#0072b2", "TopPushK(5)": "#d55e00", "PatMatNP(0.05)": "#009e73"}


def models(n_positives):
    """Name: model, for the linear kernel."""
    alpha = 1 / n_positives
    return {
        "TopPush": TopPush(alpha=alpha, tol=1e-3),
        "TopPushK(5)": TopPushK(k=5, alpha=alpha, tol=1e-3),
        "PatMatNP(0.05)": PatMatNP(tau=0.05, beta=1.0, alpha=alpha, tol=1e-3),
    }


def read(n_train):
    """Some of the training images, and all test images."""
    data = load("fashion-mnist")
    X, y = data.X.astype(np.float32) / np.float32(255), binarize(data.y, positive=0)
    rows = np.arange(data.n_train)
    if n_train < data.n_train:
        rows = train_test_split(rows, train_size=n_train, stratify=y[rows], random_state=0)[0]
    return X[rows], y[rows], X[data.n_train :], y[data.n_train :]


def draw_densities(axes, scores, y):
    """Densities of the scores of both classes, of equal height, and a line at the top 5 % of all rows."""
    grid = np.linspace(scores.min(), scores.max(), 300)
    for label, colour, name in ((0, "#777777", "other"), (1, "#cc79a7", "T-shirts")):
        if np.ptp(scores[y == label]) > 0:
            density = gaussian_kde(scores[y == label])(grid)
            axes.fill_between(grid, density / density.max(), alpha=0.5, color=colour, label=name)
    axes.axvline(np.quantile(scores, 0.95), color="black", linewidth=1.2)
    axes.set(yticks=[], ylim=(0, 1.1))


def draw(scores, y, path):
    """Left, precision by recall; right, densities. Above, the linear kernel; below, the Gaussian one."""
    figure = Figure(figsize=(12, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, 1 + len(COLOURS))
    for row, kernel in zip(grid, ("linear", "Gaussian"), strict=True):
        for axes, (name, colour) in zip(row[1:], COLOURS.items(), strict=True):
            precision, recall, _ = precision_recall_curve(y, scores[kernel, name])
            row[0].plot(recall[:-1], precision[:-1], "--" if name == "TopPushK(5)" else "-", color=colour, label=name)
            draw_densities(axes, scores[kernel, name], y)
            axes.set_title(f"{name}, {kernel} kernel", fontsize=10)
        row[0].set(xlim=(0, 1), ylim=(0.4, 1.02), xlabel="recall", ylabel="precision")
        row[0].set_title(f"{kernel} kernel", fontsize=10)
    grid[0, 0].legend(frameon=False, fontsize=8, loc="lower left")
    grid[0, 1].legend(frameon=False, fontsize=8)
    for axes in grid[1, 1:]:
        axes.set_xlabel("score minus threshold")
    figure.savefig(path, dpi=90)


def main(path, n_train=8000):
    """Fit, print, draw; returns the precisions at the recalls by kernel and model."""
    if not os.environ.get("TOPRANK_DATA"):
        print("Fashion-MNIST is not part of toprank: set TOPRANK_DATA to the folder that holds it. Nothing was done.")
        return {}
    X, y, X_test, y_test = read(n_train)
    print(
        f"{'kernel':9} {'model':15} {'solver':9} {'seconds':>7} {'gap':>7} " + "".join(f"  P@{r:<4g}" for r in RECALLS)
    )
    scores, precisions = {}, {}
    for kernel, parameters in (("linear", {}), ("Gaussian", {"kernel": "rbf", "gamma": 0.01})):
        for name, model in models(np.count_nonzero(y)).items():
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DegenerateSolutionWarning)
                model.set_params(**parameters).fit(X, y)
            seconds = time.perf_counter() - start
            scores[kernel, name] = model.decision_function(X_test)
            found = [precision_at_recall(y_test, scores[kernel, name], min_recall=recall) for recall in RECALLS]
            precisions[kernel, name] = found
            shown = "".join(f" {value:7.3f}" for value in found)
            print(f"{kernel:9} {name:15} {model.solver_:9} {seconds:7.1f} {model.dual_gap_:7.0e} {shown}", flush=True)
    draw(scores, y_test, path)
    print(f"figure: {path}")
    return precisions


if __name__ == "__main__":
    arguments = sys.argv[1:]
    path = Path(arguments[0] if arguments else "kernel_fashion.png")
    main(path, int(arguments[1]) if len(arguments) > 1 else 8000)
