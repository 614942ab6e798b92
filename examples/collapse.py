"""One outlier makes TopPush collapse; PatMat survives it.

The data of section 3.2.4 of the framework paper: two separable squares and a single negative at (2, 0), far on the
positive side. The figure shows the scores' decision lines and how the objective of TopPush looks around its optimum.

Run: python examples/collapse.py [figure.png]
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from toprank import DegenerateSolutionWarning, PatMat, TopPush, TopPushK
from toprank.datasets import make_outlier


def objective(X, y, w):
    """Objective of TopPush with the hinge and no penalty."""
    scores = X @ w
    return np.maximum(0, 1 + scores[y == 0].max() - scores[y == 1]).mean()


def fit_all(X, y):
    """The fitted models by name, and the names of those that warned of collapse."""
    models, collapsed = {}, []
    for name, model in {
        "TopPush": TopPush(surrogate="hinge", alpha=1e-3),
        "TopPushK(k=50)": TopPushK(k=50, surrogate="hinge", alpha=1e-3),
        "PatMat(tau=0.1)": PatMat(tau=0.1, surrogate="hinge", alpha=1e-3),
    }.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            models[name] = model.fit(X, y)
        if any(issubclass(warning.category, DegenerateSolutionWarning) for warning in caught):
            collapsed.append(name)
    return models, collapsed


def draw(X, y, models, path):
    """Left: the data and the directions found. Right: TopPush's objective, lowest at the origin."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.scatter(*X[y == 0].T, s=9, marker="x", color="#d55e00", label="negative")
    left.scatter(*X[y == 1].T, s=9, facecolors="none", edgecolors="#0072b2", label="positive")
    left.scatter(2, 0, s=90, marker="x", color="#d55e00", linewidths=3)
    left.annotate("one outlier", (2, 0), xytext=(1.55, 0.35), arrowprops={"arrowstyle": "->"})
    for (name, model), style in zip(models.items(), ["-", "--", ":"], strict=True):
        direction = model.coef_[0]
        if direction.any():
            unit = direction / np.linalg.norm(direction)
            left.annotate("", unit, (0, 0), arrowprops={"arrowstyle": "->", "linestyle": style, "linewidth": 2})
            left.annotate(name, unit, xytext=(unit[0] + 0.03, unit[1] - 0.17 - 0.17 * (style == ":")))
    left.set(title="directions found (TopPush: none)", xlabel="x₁", ylabel="x₂", xlim=(-1.1, 2.4), aspect="equal")
    left.legend(loc="upper right", frameon=False)
    grid = np.linspace(-1.5, 1.5, 121)
    values = np.array([[objective(X, y, np.array([a, b])) for a in grid] for b in grid])
    contours = right.contour(grid, grid, values, levels=np.arange(1.05, 4, 0.25), cmap="viridis")
    right.clabel(contours, fontsize=8)
    right.plot(0, 0, "k*", markersize=14)
    right.set(title="TopPush's objective is lowest at w = 0", xlabel="w₁", ylabel="w₂", aspect="equal")
    figure.savefig(path, dpi=90)


def main(path):
    """Fit, say what happened, draw."""
    X, y = make_outlier(500, random_state=0)
    models, collapsed = fit_all(X, y)
    for name, model in models.items():
        state = "collapsed to w = 0" if name in collapsed else f"w = {np.round(model.coef_[0], 3)}"
        print(f"{name:16} objective {model.objective_:.4f}, gap {model.dual_gap_:.0e}: {state}")
    draw(X, y, models, path)
    print(f"figure: {path}")
    return models, collapsed


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "collapse.png"))
