"""`TopBlend` against its own models, their plain mean and a stack, at low false positive rates.

    python benchmarks/bench_blend.py [--sets mammography,satimage] [--splits 4]

Four models (logistic regression, ExtraTrees, LightGBM, SVC), nothing tuned; at most 3,000 training rows. Needs lightgbm
and the data folder that TOPRANK_DATA names. One line a set and model: the share of positives found at a false positive
rate of 1 %, its mean over rates from 0.2 to 5 %, and seconds of a fit.
"""

import argparse
import time
import warnings

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.ensemble import ExtraTreesClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from toprank import TopBlend
from toprank.datasets import load_task
from toprank.metrics import tpr_at_fpr

SETS = "oil_spill,yeast,satimage,mammography,winequality-white,bank_marketing,ecoli,abalone"
RATES = (0.002, 0.005, 0.01, 0.02, 0.05)
MODELS = [
    ("logistic", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))),
    ("ExtraTrees", ExtraTreesClassifier(150, min_samples_leaf=2, random_state=0)),
    (
        "LightGBM",
        LGBMClassifier(
            n_estimators=100,
            num_leaves=15,
            subsample=0.7,
            subsample_freq=1,
            colsample_bytree=0.7,
            min_child_samples=5,
            verbose=-1,
            n_jobs=1,
            random_state=0,
        ),
    ),
    ("SVC", make_pipeline(StandardScaler(), SVC())),
]
RIVALS = {
    **dict(MODELS),
    "StackingClassifier": StackingClassifier(MODELS),
    "plain mean": TopBlend(MODELS, alpha=1e4, random_state=0),
    "TopBlend": TopBlend(MODELS, random_state=0),
}


def one_split(model, X, y, seed):
    """The share found at 1 %, its mean over the rates, and the seconds of the fit."""
    train, test = next(StratifiedShuffleSplit(1, test_size=0.4, random_state=seed).split(X, y))
    train, test = np.random.default_rng(seed).permutation(train)[:3000], test[:20_000]
    start = time.perf_counter()
    model.fit(X[train], y[train])
    seconds = time.perf_counter() - start
    has_scores = hasattr(model, "decision_function")
    scores = model.decision_function(X[test]) if has_scores else model.predict_proba(X[test])[:, 1]
    found = [tpr_at_fpr(y[test], scores, max_fpr=rate) for rate in RATES]
    return found[RATES.index(0.01)], np.mean(found), seconds


def main():
    """All sets, then the mean over them."""
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--splits", type=int, default=4)
    arguments = parser.parse_args()
    print(f"{'set':20} {'model':20} {'at 1 %':>7} {'mean':>7} {'seconds':>8}")
    overall = {name: [] for name in RIVALS}
    for name in arguments.sets.split(","):
        task = load_task(name)
        X, y = np.asarray(task.X, dtype=float), (np.asarray(task.y) > 0).astype(int)
        for label, model in RIVALS.items():
            row = np.mean([one_split(model, X, y, seed) for seed in range(arguments.splits)], axis=0)
            overall[label].append(row)
            print(f"{name:20} {label:20} {row[0]:7.3f} {row[1]:7.3f} {row[2]:8.2f}", flush=True)
    for label, rows in overall.items():
        mean = np.mean(rows, axis=0)
        print(f"{'mean of all sets':20} {label:20} {mean[0]:7.3f} {mean[1]:7.3f} {mean[2]:8.2f}")


if __name__ == "__main__":
    main()
