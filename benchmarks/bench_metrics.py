"""Time of every metric on a million scores, as a ratio to scikit-learn's roc_auc_score in the same run.

The best of several alternating repetitions is taken for both sides, because other work on the
machine only ever adds time. Growth is the time for the largest size divided by the time for a tenth of it.
"""

import argparse
import time

import numpy as np
from sklearn.metrics import roc_auc_score

from toprank import metrics


def cases(n):
    """Calls by name: every metric with unit weights, and the costliest variants of some."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.05).astype(int)
    level = rng.integers(0, 6, n)
    day = rng.integers(0, 365, n)
    score = rng.normal(size=n) + y
    weight = rng.random(n)
    tied = np.round(score, 2)
    return {
        "roc_auc_score (scikit-learn)": lambda: roc_auc_score(y, score),
        "positives_at_top": lambda: metrics.positives_at_top(y, score),
        "precision_at_k": lambda: metrics.precision_at_k(y, score, k=200),
        "precision_at_k, k per day": lambda: metrics.precision_at_k(y, score, k=200, groups=day),
        "recall_at_k": lambda: metrics.recall_at_k(y, score, k=200),
        "recall_at_k, k per day": lambda: metrics.recall_at_k(y, score, k=200, groups=day),
        "precision_at_quantile": lambda: metrics.precision_at_quantile(y, score, tau=0.01),
        "tpr_at_fpr": lambda: metrics.tpr_at_fpr(y, score, max_fpr=0.01),
        "tpr_at_fpr, weighted": lambda: metrics.tpr_at_fpr(y, score, max_fpr=0.01, sample_weight=weight),
        "tpr_at_fpr, ties": lambda: metrics.tpr_at_fpr(y, tied, max_fpr=0.01),
        "tpr_at_fpr, float32": lambda: metrics.tpr_at_fpr(y, score.astype("float32"), max_fpr=0.01),
        "precision_at_recall": lambda: metrics.precision_at_recall(y, score, min_recall=0.2),
        "partial_auc_score": lambda: metrics.partial_auc_score(y, score, max_fpr=0.05),
        "partial_auc_score, two-way": lambda: metrics.partial_auc_score(y, score, max_fpr=0.5, min_tpr=0.5),
        "optroc_accuracy": lambda: metrics.optroc_accuracy(y, score),
        "ndcg_score": lambda: metrics.ndcg_score(y, score),
        "enrichment_factor": lambda: metrics.enrichment_factor(y, score),
        "bedroc_score": lambda: metrics.bedroc_score(y, score),
        "wmw_score, 6 levels, full": lambda: metrics.wmw_score(level, score),
        "wmw_score, 6 levels, chain": lambda: metrics.wmw_score(level, score, graph="chain"),
        "wmw_score, 6 levels, 5 edges": lambda: metrics.wmw_score(level, score, graph=[(5, i) for i in range(5)]),
    }


def best_times(calls, repetitions):
    """Least seconds of each call over alternating repetitions."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repetitions):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    small = best_times(cases(arguments.rows // 10), arguments.repetitions)
    large = best_times(cases(arguments.rows), arguments.repetitions)
    peer = large["roc_auc_score (scikit-learn)"]
    print(f"{arguments.rows} scores, best of {arguments.repetitions}")
    print(f"{'metric':32} {'seconds':>8} {'ratio':>6} {'growth':>7}")
    for name, seconds in large.items():
        print(f"{name:32} {seconds:8.3f} {seconds / peer:6.2f} {seconds / small[name]:7.1f}")
    worst = max(large[name] / peer for name in large)
    print(f"largest ratio to roc_auc_score: {worst:.2f} (limit 2)")


if __name__ == "__main__":
    main()
