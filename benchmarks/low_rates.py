"""Models against each other by the share of positives found at low false positive rates: what some benchmarks share."""

import argparse
import time

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from toprank.datasets import load_task
from toprank.metrics import tpr_at_fpr

RATES = (0.002, 0.005, 0.01, 0.02, 0.05)


def one_split(model, X, y, seed, most_rows):
    """The share found at 1 %, its mean over the rates, and the seconds of the fit; two fifths of the rows are new."""
    train, test = next(StratifiedShuffleSplit(1, test_size=0.4, random_state=seed).split(X, y))
    train, test = np.random.default_rng(seed).permutation(train)[:most_rows], test[:20_000]
    start = time.perf_counter()
    model.fit(X[train], y[train])
    seconds = time.perf_counter() - start
    found = shares_found(y[test], raw_scores(model, X[test]))
    return found[RATES.index(0.01)], np.mean(found), seconds


def shares_found(y, scores):
    """The share of positives above each of the rates."""
    return [float(tpr_at_fpr(y, scores, max_fpr=rate)) for rate in RATES]


def raw_scores(model, X):
    """Scores by the first way that a model has: its decision function, raw scores of LightGBM, probabilities."""
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    if type(model).__name__ == "LGBMClassifier":
        return model.predict(X, raw_score=True)
    return model.predict_proba(X)[:, 1]


def main(rivals, description, sets, splits, most_rows):
    """All sets, then the mean over them; one line a set and model."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--sets", default=sets)
    parser.add_argument("--splits", type=int, default=splits)
    arguments = parser.parse_args()
    print(f"{'set':20} {'model':32} {'at 1 %':>7} {'mean':>7} {'seconds':>8}")
    overall = {name: [] for name in rivals}
    for name in arguments.sets.split(","):
        task = load_task(name)
        X, y = np.asarray(task.X, dtype=float), (np.asarray(task.y) > 0).astype(int)
        for label, model in rivals.items():
            row = np.mean([one_split(model, X, y, seed, most_rows) for seed in range(arguments.splits)], axis=0)
            overall[label].append(row)
            print(f"{name:20} {label:32} {row[0]:7.3f} {row[1]:7.3f} {row[2]:8.2f}", flush=True)
    for label, rows in overall.items():
        mean = np.mean(rows, axis=0)
        print(f"{'mean of all sets':20} {label:32} {mean[0]:7.3f} {mean[1]:7.3f} {mean[2]:8.2f}")
