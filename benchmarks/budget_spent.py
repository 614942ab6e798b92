"""What `predict` spends of its budget on new rows, with the threshold of the formulation and with that of the budget.

    python benchmarks/budget_spent.py [--splits 30] [--sets spambase,mammography] [--methods PatMatNP,TauFPL]

Random stratified halves, at most 20,000 rows to learn from; features are standardised, parameters are the defaults but
for τ. Printed are means over the splits: the false positive rate of `predict` on the other half as a multiple of τ, its
standard deviation, the share of positives found, that at a false positive rate of exactly τ by the same scores, and how
many times as long a fit takes. Needs TOPRANK_DATA.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import toprank
from toprank.datasets import load_task
from toprank.metrics import tpr_at_fpr

# Set and τ.
SETS = {"creditcard_fraud": 0.001, "bank_marketing": 0.01, "spambase": 0.01, "mammography": 0.01, "satimage": 0.01}
MOST_ROWS = 20_000


def halves(X, y, seed):
    """Standardised rows to learn from and to test with, and their labels."""
    train, test = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=seed)
    if len(train) > MOST_ROWS:
        train = train_test_split(train, train_size=MOST_ROWS, stratify=y[train], random_state=seed)[0]
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def one_split(method, tau, X, y, seed):
    """Rates and times of one split."""
    X, y, new, labels = halves(X, y, seed)
    row = {}
    for threshold in ("trained", "budget"):
        model = getattr(toprank, method)(tau=tau, threshold=threshold)
        start = time.perf_counter()
        model.fit(X, y)
        row[f"{threshold} seconds"] = time.perf_counter() - start
        scores = model.decision_function(new)
        row[f"{threshold} spent"] = np.mean(scores[labels == 0] > 0) / tau
        row[f"{threshold} found"] = np.mean(scores[labels == 1] > 0)
    row["possible"] = tpr_at_fpr(labels, scores, max_fpr=tau)
    return row


def main():
    """Print a row of the table for each set and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--methods", type=lambda text: text.split(","), default=["PatMatNP", "TauFPL"])
    arguments = parser.parse_args()
    print(
        "| set | τ | method | trained: FPR/τ | found | budget: FPR/τ | found | possible | time |\n" + "|---" * 9 + "|"
    )
    warnings.simplefilter("ignore")  # that a method collapses shows in the table
    for name in arguments.sets:
        data = load_task(name)
        X, y = np.asarray(data.X, dtype=float), data.y
        for method in arguments.methods:
            rows = [one_split(method, SETS[name], X, y, seed) for seed in range(arguments.splits)]
            mean = {key: np.mean([row[key] for row in rows]) for key in rows[0]}
            cells = [name, f"{SETS[name]}", method]
            for threshold in ("trained", "budget"):
                spread = np.std([row[f"{threshold} spent"] for row in rows])
                cells += [f"{mean[f'{threshold} spent']:.2f} ± {spread:.2f}", f"{mean[f'{threshold} found']:.3f}"]
            times = mean["budget seconds"] / mean["trained seconds"]
            cells += [f"{mean['possible']:.3f}", f"×{times:.1f}"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
