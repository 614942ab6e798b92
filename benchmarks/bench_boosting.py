"""Objectives of the top inside LightGBM against its log loss: share of positives found at low false positive rates.

    python benchmarks/bench_boosting.py [--sets mammography,satimage] [--splits 5]

The same trees, learning rate and number of rounds for all; nothing is tuned. Training rows: three fifths, at most
5,000. Needs lightgbm, and the data folder that TOPRANK_DATA names. One line a set and objective: the share at a false
positive rate of 1 %, its mean over rates from 0.2 to 5 %, seconds of a fit.
"""

import argparse
import time

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.model_selection import StratifiedShuffleSplit

from toprank.boosting import objective
from toprank.datasets import load_task
from toprank.metrics import tpr_at_fpr

SETS = "mammography,satimage,oil_spill,yeast,letter,abalone,winequality-white,bank_marketing"
RATES = (0.002, 0.005, 0.01, 0.02, 0.05)
OBJECTIVES = {
    "log loss": "binary",
    "TauFPL 5 %, logistic": objective("TauFPL", tau=0.05, surrogate="logistic"),
    "TauFPL 1 %, logistic": objective("TauFPL", tau=0.01, surrogate="logistic"),
    "TauFPL 5 %, quadratic": objective("TauFPL", tau=0.05),
    "PatMatNP 1 %, beta 1": objective("PatMatNP", tau=0.01, beta=1.0),
    "PatMatNP 5 %, logistic, beta 1": objective("PatMatNP", tau=0.05, beta=1.0, surrogate="logistic"),
}


def one_split(X, y, chosen, seed):
    """The share found at 1 %, its mean over the rates, and the seconds of the fit."""
    train, test = next(StratifiedShuffleSplit(1, test_size=0.4, random_state=seed).split(X, y))
    train = np.random.default_rng(seed).permutation(train)[:5000]
    model = LGBMClassifier(
        n_estimators=200, num_leaves=15, min_child_samples=5, objective=chosen, verbose=-1, n_jobs=1, random_state=0
    )
    start = time.perf_counter()
    model.fit(X[train], y[train])
    seconds = time.perf_counter() - start
    scores = model.predict(X[test], raw_score=True)
    found = [tpr_at_fpr(y[test], scores, max_fpr=rate) for rate in RATES]
    return found[RATES.index(0.01)], np.mean(found), seconds


def main():
    """All sets, then the mean over them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--splits", type=int, default=5)
    arguments = parser.parse_args()
    print(f"{'set':20} {'objective':32} {'at 1 %':>7} {'mean':>7} {'seconds':>8}")
    overall = {name: [] for name in OBJECTIVES}
    for name in arguments.sets.split(","):
        task = load_task(name)
        X, y = np.asarray(task.X, dtype=float), (np.asarray(task.y) > 0).astype(int)
        for label, chosen in OBJECTIVES.items():
            row = np.mean([one_split(X, y, chosen, seed) for seed in range(arguments.splits)], axis=0)
            overall[label].append(row)
            print(f"{name:20} {label:32} {row[0]:7.3f} {row[1]:7.3f} {row[2]:8.2f}", flush=True)
    for label, rows in overall.items():
        mean = np.mean(rows, axis=0)
        print(f"{'mean of all sets':20} {label:32} {mean[0]:7.3f} {mean[1]:7.3f} {mean[2]:8.2f}")


if __name__ == "__main__":
    main()
