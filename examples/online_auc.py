"""Five online rankers on one stream: each batch is scored first and learned from afterwards.

The stream is the bundled handwritten digits, 8 against the rest, in random order and several times over. The figure
shows the area under the ROC curve of the last 1000 rows, as scored when they came (prequential AUC). At two thirds of
the stream the task changes to 3 against the rest, which shows who follows.

Run: python examples/online_auc.py [figure.png]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from toprank.datasets import load_bundled
from toprank.online import CBR, OAM, OPAUC, AdaOAM, UniExp

WINDOW, BATCH = 1000, 50
MODELS = {
    "CBR": CBR(C=0.1),
    "CBR, forgetting=0.999": CBR(C=0.1, forgetting=0.999),
    "OAM": OAM(C=0.001, random_state=0),
    "OPAUC": OPAUC(learning_rate=0.01),
    "AdaOAM": AdaOAM(learning_rate=0.1),
    "UniExp": UniExp(learning_rate=0.001),
}
STYLES = {
    "CBR": ("#0072b2", "-"),
    "CBR, forgetting=0.999": ("#56b4e9", "--"),
    "OAM": ("#d55e00", "-"),
    "OPAUC": ("#009e73", "-."),
    "AdaOAM": ("#cc79a7", "-"),
    "UniExp": ("#555555", ":"),
}


def make_stream(passes, seed=0):
    """Rows in random order; 8 against the rest for two thirds of the stream, then 3 against the rest."""
    digits = load_bundled("digits")
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(len(digits.y)) for _ in range(passes)])
    X = StandardScaler().fit_transform(digits.X)[rows]
    change = 2 * len(rows) // 3 // BATCH * BATCH
    y = np.where(np.arange(len(rows)) < change, digits.y[rows] == 8, digits.y[rows] == 3)
    return X, y.astype(int), change


def prequential_auc(model, X, y):
    """Number of rows seen and AUC of the last WINDOW of them, after each batch, once the window is full."""
    scores = np.zeros(len(y))
    model.partial_fit(X[:BATCH], y[:BATCH], classes=[0, 1])
    for start in range(BATCH, len(y) - BATCH + 1, BATCH):
        batch = slice(start, start + BATCH)
        scores[batch] = model.decision_function(X[batch]) + model.threshold_
        model.partial_fit(X[batch], y[batch])
    ends = np.arange(BATCH + WINDOW, len(y) + 1, BATCH)
    return ends, np.array([roc_auc_score(y[end - WINDOW : end], scores[end - WINDOW : end]) for end in ends])


def draw(curves, change, path):
    """One line a ranker."""
    figure = Figure(figsize=(9, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for name, (seen, auc) in curves.items():
        color, line = STYLES[name]
        axes.plot(seen, auc, line, color=color, label=f"{name} ({auc[-1]:.3f} at the end)")
    axes.axvline(change, color="black", linewidth=0.8)
    axes.annotate(" the task changes: 8, then 3", (change, 0.71), fontsize=9)
    axes.set(
        xlabel="rows seen", ylabel=f"AUC of the last {WINDOW} rows, scored before learning", ylim=(0.7, 1.01),
        title="Five online rankers on a stream of handwritten digits",
    )  # fmt: skip
    axes.legend(loc="lower left", frameon=False)
    figure.savefig(path, dpi=90)


def main(path, passes=6):
    """Run all, say how it ended, draw."""
    X, y, change = make_stream(passes)
    curves = {name: prequential_auc(model, X, y) for name, model in MODELS.items()}
    for name, (seen, auc) in curves.items():
        before = auc[seen <= change][-1]
        print(f"{name:24} AUC before the change {before:.3f}, at the end {auc[-1]:.3f}")
    draw(curves, change, path)
    print(f"figure: {path}")
    return {name: auc[seen <= change][-1] for name, (seen, auc) in curves.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "online_auc.png"))
