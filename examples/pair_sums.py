"""Measure how exact the fast sums over pairs are.

Left: the erfc series of the RankNCG paper keeps the error that was asked for. Right: the error of each sum at targets
from far below to far above the sources, as a share of the sum itself: the exact summation keeps its digits in the
tails, while the sigmoid made of erfc is off by up to 0.023 in the middle and has no right digit in the lower tail.

Run: python examples/pair_sums.py [figure.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy.special import erfc

from toprank.pairwise import pair_sum

EPS = 10.0 ** -np.arange(3, 13)
FUNCTIONS = {"sigmoid": "σ", "log_sigmoid": "log σ", "sigmoid_derivative": "σ'"}


def reference(function, y, z):
    """The sum in extended precision."""
    s = y[:, None].astype(np.longdouble) - z
    decay = np.exp(-np.abs(s))
    terms = {
        "sigmoid": np.where(s > 0, 1, decay) / (1 + decay),
        "log_sigmoid": np.minimum(s, 0) - np.log1p(decay),
        "sigmoid_derivative": decay / (1 + decay) ** 2,
    }
    return terms[function].sum(axis=1)


def errors_by_eps(rng):
    """Largest error of the erfc sums relative to Σ|q|, for each ε, and that of the exact sum."""
    y, z, q = 3 * rng.normal(size=3000), 3 * rng.normal(size=3000), rng.normal(size=3000)
    direct = erfc(y[:, None] - z) @ q
    results = [pair_sum(y, z, q, function="erfc", summation="erfc", eps=eps) for eps in EPS]
    results.append(pair_sum(y, z, q, function="erfc"))
    *series, exact = (np.abs(result - direct).max() / np.abs(q).sum() for result in results)
    return np.array(series), exact


def errors_by_target(rng):
    """Relative error of each sum at targets along the line; the last one is the sigmoid made of erfc."""
    y, z = np.linspace(-60, 60, 1201), rng.normal(size=500)
    errors = {
        label: np.abs(pair_sum(y, z, function=name) / reference(name, y, z) - 1) for name, label in FUNCTIONS.items()
    }
    errors["σ by erfc"] = np.abs(pair_sum(y, z, summation="erfc", eps=1e-12) / reference("sigmoid", y, z) - 1)
    return y, {label: np.maximum(error.astype(np.float64), 1e-17) for label, error in errors.items()}


def draw(series, exact, y, errors, path):
    """Both panels."""
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.loglog(EPS, EPS, "k:", label="asked for: ε")
    left.loglog(EPS, series, "o-", color="#d55e00", label="erfc series")
    left.axhline(exact, color="#0072b2", label="exact summation")
    left.set(title="largest error of a sum of erfc", xlabel="ε", ylabel="error / Σ|q|", ylim=(1e-17, 1e-2))
    left.invert_xaxis()
    left.legend(frameon=False, loc="lower right")
    for (label, error), colour in zip(errors.items(), ["#0072b2", "#009e73", "#cc79a7", "#d55e00"], strict=True):
        right.semilogy(y, error, ".", markersize=2, color=colour, label=label)
    right.set(title="500 normal sources: error at a target", xlabel="target y", ylabel="error / value")
    right.set_ylim(1e-17, 1e3)
    right.legend(frameon=False, markerscale=6, ncols=2, loc="upper right")
    figure.savefig(path, dpi=90)


def main(path):
    """Measure, print, draw; returns the errors of the series, of the exact sum, and along the line."""
    rng = np.random.default_rng(0)
    series, exact = errors_by_eps(rng)
    y, errors = errors_by_target(rng)
    for eps, error in zip(EPS, series, strict=True):
        print(f"erfc series, ε = {eps:.0e}: {error:.1e}")
    print(f"exact: {exact:.1e}")
    for label, error in errors.items():
        print(f"{label:10} largest relative error along the line: {error.max():.1e}")
    draw(series, exact, y, errors, path)
    print(f"figure: {path}")
    return series, exact, errors


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pair_sums.png"))
