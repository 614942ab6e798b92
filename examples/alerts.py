"""Two hundred alerts a day: card fraud from one day's transactions to the next day's list.

The credit card data have two days, 284,807 transactions, 492 of them fraud. Everything is learned and chosen on the
first day; the second day is scored once, as on a working day. Needs TOPRANK_DATA.

Run: python examples/alerts.py [figure.png]
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import DegenerateSolutionWarning, NeymanPearsonClassifier, PatMatNP, TauFPL, TopKClassifier
from toprank.datasets import load
from toprank.metrics import get_scorer, precision_at_k, recall_at_k
from toprank.plots import PrecisionAtKDisplay, RocAtTopDisplay

ALERTS = 200
DAY = 24 * 3600
# Beside the alerts, a promise: so few false alarms among the honest payments, with 95 % confidence.
MAX_FPR = 0.001


def days():
    """(X, y) of the first and of the second day; the time itself is no feature."""
    data = load("creditcard_fraud")
    first = data.X[:, 0] < DAY
    X, y = data.X[:, 1:].astype(np.float64), data.y
    return (X[first], y[first]), (X[~first], y[~first])


def candidates():
    """Name: a search over penalties by folds of the first day."""
    scorer = get_scorer("tpr_at_fpr", max_fpr=MAX_FPR)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    gaussian = {"kernel": "rbf", "approximation": "nystroem", "n_components": 300, "gamma": 0.01, "random_state": 0}
    models = {
        "logistic regression": (LogisticRegression(max_iter=2000), "C", [1e-3, 1e-1, 1e1]),
        "TauFPL": (TauFPL(tau=MAX_FPR, tol=1e-3), "alpha", [1e-1, 1e-2, 1e-3]),
        "PatMatNP": (PatMatNP(tau=MAX_FPR, tol=1e-3), "alpha", [1e-1, 1e-2, 1e-3]),
        "PatMatNP, Gaussian": (PatMatNP(tau=MAX_FPR, tol=1e-3, **gaussian), "alpha", [1e-1, 1e-2, 1e-3]),
    }
    return {
        name: GridSearchCV(
            make_pipeline(StandardScaler(), model),
            {f"{type(model).__name__.lower()}__{key}": values},
            scoring=scorer,
            cv=folds,
        )
        for name, (model, key, values) in models.items()
    }


def false_alarm_rates(search, X, y, X_next, y_next):
    """Of a threshold from half of the honest payments of day 1, and of one set anew in the first hours of day 2.

    Both are measured on the rest of day 2.
    """
    early = np.arange(len(y_next)) < len(y_next) // 4
    old = NeymanPearsonClassifier(search.best_estimator_, max_fpr=MAX_FPR, random_state=0).fit(X, y)
    new = NeymanPearsonClassifier(FrozenEstimator(old.estimator_), max_fpr=MAX_FPR).fit(X_next[early], y_next[early])
    honest = X_next[~early & (y_next == 0)]
    return [float(np.mean(model.predict(honest))) for model in (old, new)]


def main(figure_path, every=1):
    """Print the table and write the figure; `every` thins the honest payments for a quick look."""
    if "TOPRANK_DATA" not in os.environ:
        print("name the folder of the data sets by TOPRANK_DATA to run this example")
        return {}
    (X, y), (X_next, y_next) = days()
    kept = (y == 1) | (np.arange(len(y)) % every == 0)
    X, y = X[kept], y[kept]
    print(f"day 1: {len(y):,} payments, {y.sum()} fraud; day 2: {len(y_next):,} payments, {y_next.sum()} fraud")
    print(f"{'':20} {'fraud in':>10} {'':>9} {'':>7} {'false alarms, threshold of':>28}")
    print(f"{'':20} {ALERTS:>3} alerts {'precision':>9} {'recall':>7} {'day 1':>13} {'day 2, early':>14}")
    scores, caught = {}, {}
    for name, search in candidates().items():
        with warnings.catch_warnings():
            for category in (ConvergenceWarning, DegenerateSolutionWarning):
                warnings.simplefilter("ignore", category)  # of a candidate; the table shows the chosen one
            search.fit(X, y)
            old, new = false_alarm_rates(search, X, y, X_next, y_next)
        model = TopKClassifier(FrozenEstimator(search.best_estimator_), k=ALERTS).fit(X, y)
        caught[name] = int(y_next[model.predict(X_next) == 1].sum())
        scores[name] = search.decision_function(X_next)
        rates = precision_at_k(y_next, scores[name], k=ALERTS), recall_at_k(y_next, scores[name], k=ALERTS)
        print(f"{name:20} {caught[name]:10} {rates[0]:9.3f} {rates[1]:7.3f} {old:13.2%} {new:14.2%}", flush=True)
    draw(y_next, scores, figure_path)
    print(f"figure: {figure_path}")
    return caught


def draw(y, scores, path):
    """Left: recall by false alarms. Right: precision by number of alerts."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for name, values in scores.items():
        RocAtTopDisplay.from_predictions(y, values, name=name, k=ALERTS, ax=left)
        PrecisionAtKDisplay.from_predictions(y, values, name=name, k=ALERTS, ax=right)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "alerts.png"))
