"""What methods are worth at the top: the share of positives found at low false positive rates, on held-out rows.

    python benchmarks/worth_at_the_top.py results.jsonl [--sets oil_spill,yeast] [--methods TopForest] [--splits 3]

One line for each set, method and split is appended to the file; what is there is not run again, so that a run may be
stopped at any time, shared by processes (`--part 0/2` and `--part 1/2`), and go on with further methods. The tables
are made by `worth_tables.py`. Needs TOPRANK_DATA, lightgbm, xgboost and catboost.

Protocol: random stratified splits, two thirds for training; 10 splits of sets of up to 12,000 rows, 5 of letter, 3 of
the three large sets. At most 8,000 training rows, the same for all methods: of larger sets all positives (at most half
of the 8,000) and random negatives, which leaves the criterion as it is. Likewise at most 60,000 test rows. Three folds
of at most 3,000 of the training rows tune each method over its own grid, by the mean share found over the five rates;
the model is then fitted to all of them. Ensembles have 300 trees, forests 100 while they are tuned. No choice is made
by a look at test rows. All models have one thread, and seconds are those of the processor.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from low_rates import shares_found
from result_lines import append_line, note_versions, read_lines
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from worth_methods import METHODS, top_scores
from worth_sets import SETS, load_set, some_rows

from toprank.datasets import split_two_thirds

MOST_ROWS = 8000
TUNING_ROWS = 3000
TEST_ROWS = 60_000
PACKAGES = ("toprank", "numpy", "scikit-learn", "lightgbm", "xgboost", "catboost")


def tuned(estimator, points, X, y, seed):
    """The first of the points with the best mean over folds and rates."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=seed).split(X, y))
    means = []
    for point in points:
        models = [clone(estimator).set_params(**point).fit(X[train], y[train]) for train, _ in folds]
        means.append(
            np.mean(
                [
                    shares_found(y[test], top_scores(model, X[test]))
                    for model, (_, test) in zip(models, folds, strict=True)
                ]
            )
        )
    return points[int(np.argmax(means))]


def one_split(method, X, y, seed):
    """What the tuned model finds on the test part, its parameters, and the seconds of tuning and of the last fit."""
    train, test = split_two_thirds(y, stratify=True, random_state=seed)
    train, test = some_rows(y, train, seed, MOST_ROWS), some_rows(y, test, seed, TEST_ROWS)
    tune = some_rows(y, train, seed, TUNING_ROWS)
    estimator, points = method.estimator(seed), method.points(X.shape[1])
    start = time.process_time()
    smaller = clone(estimator).set_params(**method.tuning)
    chosen = dict(tuned(smaller, points, X[tune], y[tune], seed)) if points else {}
    ready = time.process_time()
    if "model__C" in chosen:  # C stands against a sum of losses, other penalties against a mean
        chosen["model__C"] *= len(tune) / len(train)
    model = clone(estimator).set_params(**chosen).fit(X[train], y[train])
    fitted = time.process_time()
    return {
        "found": shares_found(y[test], top_scores(model, X[test])),
        "tuning_seconds": round(ready - start, 3),
        "fit_seconds": round(fitted - ready, 3),
        "chosen": chosen | selected(model),
    }


def selected(model):
    """What a model chose itself, if it tells."""
    told, keys = getattr(model, "selection_", {}), ("alpha", "tau", "honest", "prior_alone")
    return {key: told[key] for key in keys if isinstance(told.get(key), bool | float)}


def queue(sets, methods, splits):
    """All cells: the first methods before the next ones, and the first splits of all sets before the next ones."""
    seeds = range(1, splits + 1)
    return [(name, method, seed) for method in methods for seed in seeds for name in sets if seed <= SETS[name]]


def run(path, sets, methods, splits, part):
    """Append the cells of a part that are missing."""
    note_versions(path, PACKAGES)
    done = {(row["set"], row["method"], row["split"]) for row in read_lines(path) if "method" in row}
    place, n_parts = part
    for cell in [cell for cell in queue(sets, methods, splits) if cell not in done][place::n_parts]:
        name, method, seed = cell
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a collapse shows in the table, as a rate of zero
            result = one_split(METHODS[method], *load_set(name), seed)
        append_line(path, {"set": name, "method": method, "split": seed, **result})
        seconds = result["tuning_seconds"] + result["fit_seconds"]
        print(f"{name:18} {method:20} {seed:3} {np.mean(result['found']):.3f} {seconds:7.1f} s", flush=True)


def names(text):
    """Names with commas between them."""
    return text.split(",")


def main():
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", type=names, default=list(SETS))
    parser.add_argument("--methods", type=names, default=list(METHODS))
    parser.add_argument("--splits", type=int, default=max(SETS.values()), help="only the first ones")
    parser.add_argument("--part", type=lambda text: tuple(map(int, text.split("/"))), default=(0, 1))
    arguments = parser.parse_args()
    run(arguments.results, arguments.sets, arguments.methods, arguments.splits, arguments.part)


if __name__ == "__main__":
    main()
