"""The demonstration: what models put at the top of the list, on held-out rows of two embedded data sets.

Run it by ``make demo`` or ``python -m toprank.demo``. It trains on 2/3 of the rows, evaluates on the rest, repeats
that on several random splits, prints mean ± standard deviation, and draws the mean ROC curves.
"""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank import metrics
from toprank.datasets import binarize, load_bundled, split_two_thirds
from toprank.persistence.atomic import write_atomically

Scores = dict[str, list[tuple[NDArray[Any], NDArray[Any]]]]

METRICS: dict[str, Callable[..., float]] = {
    "pos@top": metrics.positives_at_top,
    "prec@20": lambda y, score: metrics.precision_at_k(y, score, k=20),
    "TPR@FPR1%": lambda y, score: metrics.tpr_at_fpr(y, score, max_fpr=0.01),
    "pAUC5%": lambda y, score: metrics.partial_auc_score(y, score, max_fpr=0.05),
    "AUC": metrics.wmw_score,
}


def tasks() -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """The two tasks by title, as X and y."""
    cancer, digits = load_bundled("breast_cancer"), load_bundled("digits")
    return {
        "breast cancer: malignant against benign": (cancer.X, cancer.y),
        "digits: 8 against the rest": (digits.X, binarize(digits.y, positive=8)),
    }


def models() -> dict[str, Any]:
    """The models by name, the one to compare with first; all with their default penalty."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from toprank import PatMatNP, TauFPL, TopPushK

    rankers = {
        "logistic regression": LogisticRegression(max_iter=1000),
        "TopPushK(k=5)": TopPushK(k=5),
        "TauFPL(tau=0.01)": TauFPL(tau=0.01),
        "PatMatNP(tau=0.01)": PatMatNP(tau=0.01),
    }
    return {name: make_pipeline(StandardScaler(), ranker) for name, ranker in rankers.items()}


def held_out_scores(X: NDArray[Any], y: NDArray[Any], n_splits: int) -> tuple[Scores, float]:
    """Train every model on 2/3 of the rows and score the rest, once for each split; and the largest duality gap."""
    scores: Scores = {name: [] for name in models()}
    largest_gap = 0.0
    for seed in range(n_splits):
        train, test = split_two_thirds(y, stratify=True, random_state=seed)
        for name, model in models().items():
            score = model.fit(X[train], y[train]).decision_function(X[test])
            scores[name].append((y[test], score))
            largest_gap = max(largest_gap, getattr(model[-1], "dual_gap_", 0.0))
    return scores, largest_gap


def table(scores: Scores) -> str:
    """Mean ± standard deviation of every metric for every model; the best mean of a column is starred."""
    values = {
        name: {title: [metric(y, score) for y, score in parts] for title, metric in METRICS.items()}
        for name, parts in scores.items()
    }
    best = {title: max(f"{np.mean(row[title]):.3f}" for row in values.values()) for title in METRICS}
    lines = [f"  {'':20}" + "".join(f"{title:>16}" for title in METRICS)]
    for name, row in values.items():
        cells = []
        for title in METRICS:
            mean, deviation = f"{np.mean(row[title]):.3f}", f"{np.std(row[title], ddof=1):.3f}"
            cells.append(f"{mean} ± {deviation}" + ("*" if mean == best[title] else " "))
        lines.append(f"  {name:20}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def draw(results: dict[str, Scores], path: Path) -> None:
    """Draw the mean ROC curves with a logarithmic false-alarm axis, one panel a task, and write them as PNG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(11, 4.6), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(1, len(results), sharey=True)
        grid = np.geomspace(1e-3, 1, 200)
        for panel, (title, scores) in zip(panels, results.items(), strict=True):
            for (name, parts), style in zip(scores.items(), ["-", "--", "-.", ":", (0, (5, 1, 1, 1))], strict=False):
                curves = [[metrics.tpr_at_fpr(y, score, max_fpr=fpr) for fpr in grid] for y, score in parts]
                panel.plot(
                    grid, np.mean(curves, axis=0), linestyle=style, linewidth=2, drawstyle="steps-post", label=name
                )
            panel.axvline(0.01, color="0.6", linewidth=1)
            panel.annotate("budget: 1 % false alarms", (0.0105, 0.02), color="0.35", fontsize=9)
            panel.set(xscale="log", xlim=(1e-3, 1), ylim=(0, 1.01), title=title, xlabel="false positive rate")
        panels[0].set_ylabel("true positive rate on held-out rows")
        panels[0].legend(loc="lower right", frameon=False)
        image = io.BytesIO()
        figure.savefig(image, dpi=130, format="png")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, [image.getvalue()])


def main(arguments: list[str] | None = None) -> int:
    """Run the demonstration; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m toprank.demo", description=str(__doc__).splitlines()[0])
    parser.add_argument("--splits", type=int, default=10, help="number of random splits (default: 10, at least 2)")
    parser.add_argument("--out", type=Path, default=Path("build/demo.png"), help="where to write the figure")
    options = parser.parse_args(arguments)
    if options.splits < 2:
        parser.error(f"--splits must be at least 2 to give a standard deviation, got {options.splits}")
    start = time.perf_counter()
    results = {}
    for title, (X, y) in tasks().items():
        results[title], gap = held_out_scores(X, y, options.splits)
        share = 100 * float(np.mean(y))
        print(f"{title} ({len(y)} rows, {X.shape[1]} features, {share:.0f} % positive)")
        print(table(results[title]))
        print(f"  largest relative duality gap of the models of toprank: {gap:.1e}\n")
    print(
        f"mean ± standard deviation on held-out thirds of {options.splits} random splits, * best mean of the column\n"
        "pos@top: positives above the best negative; prec@20: right among the first 20; TPR@FPR1%: found at 1 % false\n"
        "alarms; pAUC5%: area under the curve up to 5 % false alarms, standardised; AUC: area under the whole curve"
    )
    try:
        draw(results, options.out)
    except ModuleNotFoundError:
        print("no figure: matplotlib is not installed; add it by: pip install 'toprank[plot]'")
        return 1
    except OSError as error:
        reason = error.__cause__ if isinstance(error.__cause__, OSError) else error
        print(f"no figure: {options.out} cannot be written ({reason.strerror}); name another place by --out")
        return 1
    print(f"figure: {options.out}   ({time.perf_counter() - start:.0f} s)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
