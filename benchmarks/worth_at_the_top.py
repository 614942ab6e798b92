"""What kernels are worth at the top: the share of positives found at a false positive rate of 1 %, on held-out rows.

    python benchmarks/worth_at_the_top.py results.jsonl [--sets oil_spill,yeast] [--print-only]

Every method is tuned on the training part of every split by the same folds and the same criterion, over eighteen
points that span orders of magnitude; no choice was made by a look at test rows. One line for each set and method is
appended to the file; what is there is not run again. Needs TOPRANK_DATA and LightGBM (`pip install toprank[boost]`).

Protocol: random stratified splits, two thirds for training; 10 splits of sets of up to 12,000 rows, 5 of letter, 3 of
the three large sets. At most 8,000 training rows, the same for all methods: of larger sets all positives (at most half
of the 8,000) and random negatives, which leaves the criterion as it is. Three folds of at most 3,000 of these rows,
chosen likewise, tune; the model is then fitted to all of them. Features are standardised, the kernels exact.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from toprank import PatMatNP, TauFPL
from toprank.datasets import binarize, load, load_task, split_two_thirds
from toprank.metrics import get_scorer

# Set and number of splits.
SETS = {
    "oil_spill": 10,
    "yeast": 10,
    "hiva": 10,
    "abalone": 10,
    "winequality-white": 10,
    "satimage": 10,
    "mammography": 10,
    "letter": 5,
    "bank_marketing": 3,
    "protein_homo": 3,
    "creditcard_fraud": 3,
}
MOST_ROWS = 8000
TUNING_ROWS = 3000
SCORER = get_scorer("tpr_at_fpr", max_fpr=0.01)
# Times one over the number of features.
GAMMAS = (0.1, 1.0, 10.0)


def methods(d):
    """Name: estimator and grid of eighteen points, for d features."""
    gammas = [factor / d for factor in GAMMAS]
    kernel = {"alpha": [1e-1, 1e-2, 1e-3], "gamma": gammas}
    return {
        "kernel TauFPL": (TauFPL(kernel="rbf", tol=1e-3), kernel | {"tau": [0.01, 0.1]}),
        "kernel PatMatNP": (PatMatNP(0.01, kernel="rbf", tol=1e-3), kernel | {"beta": [0.1, 1.0]}),
        "linear TauFPL": (TauFPL(tol=1e-3), {"alpha": np.logspace(0, -5, 6), "tau": [0.01, 0.03, 0.1]}),
        "logistic regression": (LogisticRegression(max_iter=2000), {"C": np.logspace(-4, 4, 18)}),
        "SVC": (SVC(cache_size=500), {"C": np.logspace(-1, 4, 6), "gamma": gammas}),
        "LightGBM": (
            lightgbm(),
            {"num_leaves": [7, 15, 31], "learning_rate": [0.02, 0.05, 0.1], "min_child_samples": [5, 20]},
        ),
    }


def lightgbm():
    """200 trees on one thread."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise SystemExit("this benchmark compares with LightGBM: pip install toprank[boost]") from error
    return LGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1, random_state=0)


def load_set(name):
    """X in float32 and y; of white wine the bad ones, quality 4 or lower."""
    if name == "winequality-white":
        data = load(name)
        return data.X.astype(np.float32), binarize(data.y, positive=(3, 4))
    data = load_task(name)
    return data.X.astype(np.float32), data.y


def training_rows(y, rows, seed, most=MOST_ROWS):
    """All rows, or `most` of them: the positives, up to a half, and random negatives."""
    if len(rows) <= most:
        return rows
    rng = np.random.default_rng(seed)
    positives, negatives = rng.permutation(rows[y[rows] == 1]), rng.permutation(rows[y[rows] == 0])
    positives = positives[: most // 2]
    return np.sort(np.concatenate([positives, negatives[: most - len(positives)]]))


def one_split(model, grid, X, y, seed):
    """TPR on the test part of the model that the folds of the training part choose; and its parameters."""
    train, test = split_two_thirds(y, stratify=True, random_state=seed)
    train = training_rows(y, train, seed)
    tune = training_rows(y, train, seed, TUNING_ROWS)
    step = type(model).__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {f"{step}__{parameter}": values for parameter, values in grid.items()},
        scoring=SCORER,
        cv=StratifiedKFold(3, shuffle=True, random_state=seed),
        error_score="raise",
        refit=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a collapse shows in the table, as a rate of zero
        search.fit(X[tune], y[tune])
        chosen = search.best_params_.copy()
        if (name := f"{step}__C") in chosen:  # C stands against a sum of losses, alpha against a mean
            chosen[name] *= len(tune) / len(train)
        best = clone(search.estimator).set_params(**chosen).fit(X[train], y[train])
    return float(SCORER(best, X[test], y[test])), {key.split("__")[1]: float(v) for key, v in chosen.items()}


def run(path, sets):
    """Append what is missing."""
    done = {(row["set"], row["method"]) for row in read(path)}
    for name in sets:
        X, y = load_set(name)
        for method, (model, grid) in methods(X.shape[1]).items():
            if (name, method) in done:
                continue
            start = time.perf_counter()
            results = [one_split(model, grid, X, y, seed) for seed in range(1, SETS[name] + 1)]
            row = {
                "set": name,
                "method": method,
                "tpr": [rate for rate, _ in results],
                "chosen": [chosen for _, chosen in results],
                "seconds": time.perf_counter() - start,
            }
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{name:18} {method:20} {np.mean(row['tpr']):.3f} {row['seconds']:7.1f} s", flush=True)


def read(path):
    """The rows that are there."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def summarise(path):
    """Print means, standard errors, ranks, wins and losses of the sets that are complete."""
    rates = {}
    for row in read(path):
        rates.setdefault(row["set"], {})[row["method"]] = np.array(row["tpr"])
    names = list(methods(1))
    rates = {name: rates[name] for name in SETS if set(names) <= set(rates.get(name, ()))}
    print(f"{'set':18} {'splits':>6} " + " ".join(f"{name:>20}" for name in names))
    for name, columns in rates.items():
        cells = [f"{v.mean():.3f} ± {v.std(ddof=1) / np.sqrt(len(v)):.3f}" for v in (columns[m] for m in names)]
        print(f"{name:18} {len(columns[names[0]]):6} " + " ".join(f"{cell:>20}" for cell in cells))
    means = np.array([[columns[method].mean() for method in names] for columns in rates.values()])
    ranks = np.mean([rankdata(-row) for row in means], axis=0)
    print(f"{'mean rank':25} " + " ".join(f"{rank:20.2f}" for rank in ranks))
    print(f"{'mean TPR':25} " + " ".join(f"{mean:20.3f}" for mean in means.mean(axis=0)))
    for own in names[:2]:
        for peer in (name for name in names if name != own):
            difference = means[:, names.index(own)] - means[:, names.index(peer)]
            spread = np.array([standard_error(columns[own] - columns[peer]) for columns in rates.values()])
            clear = f"clearly (two standard errors of the paired differences) {sum(difference > 2 * spread)} : "
            clear += f"{sum(difference < -2 * spread)}"
            print(f"{own} : {peer:20} {sum(difference > 0)} : {sum(difference < 0)} sets, {clear}")


def standard_error(differences):
    """Of the mean over splits; as the splits share rows it is too small rather than too large."""
    return differences.std(ddof=1) / np.sqrt(len(differences))


def main():
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--print-only", action="store_true")
    arguments = parser.parse_args()
    if not arguments.print_only:
        run(arguments.results, arguments.sets)
    summarise(arguments.results)


if __name__ == "__main__":
    main()
