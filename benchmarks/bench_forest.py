"""Time of `TopForest`: python benchmarks/bench_forest.py predict, fit or sample.

predict: scores of rows by the trees of one forest: by toprank, by LightGBM, which gets the very same trees, and by as
many extra trees of scikit-learn, with the same least number of rows in a leaf. Processor time, by turns, the best of
some.

fit: seconds of processor time of each step and the largest memory of a process, as rows grow; a process for each size.

sample: card payments, of which a third is tested: a forest of the sample alone, one with trees of the sample and a head
over all rows, by Dask, and one of all rows in memory; the share of the fraud found, and the false positive rate of
`predict`.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier

from toprank import TopForest
from toprank.datasets import load, make_imbalanced, split_two_thirds
from toprank.log import logger
from toprank.metrics import tpr_at_fpr

_ROWS = {1: 300, 100: 50, 10_000: 3, 100_000: 2}  # and how often each is repeated
_N_FEATURES = 20


def best_times(calls: Sequence[Callable[[], Any]], repeats: int) -> list[float]:
    """Seconds of processor time of each call, the best of some turns; the first, which may compile, does not count."""
    times = np.empty((repeats + 1, len(calls)))
    for turn in times:
        for number, call in enumerate(calls):
            start = time.process_time()
            call()
            turn[number] = time.process_time() - start
    return times[1:].min(axis=0).tolist()


def predict(n_trees: int) -> None:
    """Print the time of scoring by each, and the ratio of ours to the fastest of the others."""
    X, y, _ = make_imbalanced(20_000, n_features=_N_FEATURES, random_state=0)
    X = X.astype(np.float32)
    ours = TopForest(tau=0.01, n_estimators=n_trees, alpha=0.1, honest=False, random_state=0).fit(X, y)
    grown = len(ours.n_leaves_)
    booster = ours.to_lightgbm()
    forest = ExtraTreesClassifier(grown, min_samples_leaf=3, bootstrap=True, random_state=0).fit(X, y)
    nodes = sum(tree.tree_.node_count for tree in forest.estimators_)
    print(f"{grown} trees, {len(ours.trees_.leaf):,} nodes; scikit-learn {nodes:,}; milliseconds of processor time")
    print(f"{'rows':>8} {'toprank':>9} {'LightGBM':>9} {'sklearn':>9} {'ratio':>6}")
    for n, repeats in _ROWS.items():
        rows = np.ascontiguousarray(np.resize(X, (n, _N_FEATURES)))
        calls = (
            lambda rows=rows: ours.decision_function(rows),
            lambda rows=rows: booster.predict(rows, raw_score=True, num_threads=1),
            lambda rows=rows: forest.predict_proba(rows),
        )
        found = [1e3 * seconds for seconds in best_times(calls, repeats)]
        print(f"{n:>8,} {found[0]:>9.3f} {found[1]:>9.3f} {found[2]:>9.3f} {found[0] / min(found[1:]):>6.2f}")


def fit(sizes: Sequence[int], n_trees: int) -> None:
    """Print what a fit takes at each size."""
    print(f"{n_trees} trees; seconds of processor time until the end of each step, and megabytes")
    for n in sizes:
        process = multiprocessing.get_context("spawn").Process(target=fit_once, args=(n, n_trees))
        process.start()
        process.join()


def fit_once(n: int, n_trees: int) -> None:
    """Print what one fit takes; 3 % of the rows are positive."""
    X, y, _ = make_imbalanced(n, n_features=30, positive_share=0.03, random_state=0)
    X, start, steps = X.astype(np.float32), time.process_time(), []

    def note(record: logging.LogRecord) -> bool:
        steps.append(f"{time.process_time() - start:.1f} s: {record.getMessage()}")
        return False

    logger().addFilter(note)
    print(f"{n:,} rows: {_memory():,.0f} MB before", flush=True)
    TopForest(n_estimators=n_trees, random_state=0, verbose=1, n_jobs=2).fit(X, y)
    print("\n".join(steps))
    print(f"{time.process_time() - start:.1f} s: done, at most {_memory():,.0f} MB", flush=True)


def sample(n_rows: int, n_trees: int, seed: int) -> None:
    """Print what the sample alone, the head over all rows, and all rows in memory find."""
    from dask import array, config

    from toprank.trees.forest_blocks import ForestBlocks

    data = load("creditcard_fraud")
    X, y = data.X, (data.y == np.max(data.y)).astype(int)
    train, test = split_two_thirds(y, stratify=True, random_state=seed)
    rows, labels = array.from_array(X[train], chunks=(20_000, -1)), array.from_array(y[train], chunks=20_000)
    model = TopForest(tau=0.01, n_estimators=n_trees, sample_rows=n_rows, random_state=seed)
    with config.set(scheduler="synchronous"):
        blocks = ForestBlocks.of(clone(model), rows, labels, None)
        drawn = blocks.drawn(n_rows, model.tau, np.random.RandomState(seed))
        alone = blocks.rows(drawn.sample)[:2]
        arms = {"the sample alone": alone, "head over all rows": (rows, labels), "all in memory": (X[train], y[train])}
        print(f"{'':20} {'at 0.1 %':>9} {'at 1 %':>9} {'FPR':>7} {'seconds':>8}")
        for name, given in arms.items():
            start = time.process_time()
            fitted = clone(model).fit(*given)
            taken, scores = time.process_time() - start, fitted.decision_function(X[test])
            found = [tpr_at_fpr(y[test], scores, max_fpr=rate) for rate in (0.001, 0.01)]
            above = float((scores[y[test] == 0] > 0).mean())
            print(f"{name:20} {found[0]:>9.3f} {found[1]:>9.3f} {above:>7.4f} {taken:>8.1f}", flush=True)


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["predict", "fit", "sample"])
    parser.add_argument("--trees", type=int, default=150, help="of each of the two forests")
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 200_000], help="sizes of fit")
    parser.add_argument("--sample", type=int, default=20_000, help="rows of the sample")
    parser.add_argument("--seed", type=int, default=0, help="of split, sample and trees")
    arguments = parser.parse_args()
    if arguments.part == "predict":
        predict(arguments.trees)
    elif arguments.part == "sample":
        sample(arguments.sample, arguments.trees, arguments.seed)
    else:
        fit(arguments.rows, arguments.trees)
