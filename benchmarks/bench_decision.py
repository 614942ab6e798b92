"""Thresholds with a guarantee and the choice of models: coverage, the cost of a search, a table on real sets.

    python benchmarks/bench_decision.py coverage [--repetitions 2000]
    python benchmarks/bench_decision.py search [--sets spambase,w8a]
    python benchmarks/bench_decision.py table results.jsonl [--sets oil_spill,yeast] [--print-only]

coverage: how often the true false positive rate exceeds the bound, with fits, for a split, a unanimous vote and the
threshold of pooled folds. search: time of TopSearchCV over that of GridSearchCV for the same grid and folds, in one
run.

table: what is found at a false positive rate of at most 1 % with a confidence of 95 %, ours against logistic
regression, a cost-sensitive SVM and LightGBM, each with the same threshold rule on the same held-out negatives. One
line for each set and method is appended to the file; what is there is not run again. Needs TOPRANK_DATA and LightGBM.

Protocol of the table: the sets of worth_at_the_top.py, the sets with at most 10 % positives; random
stratified splits, two thirds for training; of its negatives a half (of oil_spill 60 %, as the rule needs 299) is held
out for the threshold. On the rest, at most 8,000 rows, every method is tuned over eighteen points by the same three
folds of at most 3,000 rows, for the share of positives found at a false positive rate of 1 %. The last third gives the
realised rates. The SVM weighs the classes by the inverse of their shares.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from result_lines import append_line, read_lines
from scipy.sparse import issparse
from scipy.stats import betabinom, norm, rankdata
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import SVC
from top_cases import fit, fit_seconds, load_case
from worth_at_the_top import MOST_ROWS, TUNING_ROWS
from worth_methods import GAMMAS, lightgbm_default
from worth_sets import load_set, some_rows

from toprank import NeymanPearsonClassifier, PatMatNP, TauFPL, TopSearchCV
from toprank.datasets import split_two_thirds
from toprank.decision import threshold_rule
from toprank.metrics import get_scorer
from toprank.selection.search import ALPHAS

# Set and number of splits.
SETS = {
    "oil_spill": 5,
    "yeast": 5,
    "abalone": 5,
    "winequality-white": 5,
    "satimage": 3,
    "mammography": 3,
    "letter": 3,
    "hiva": 3,
    "protein_homo": 3,
    "creditcard_fraud": 3,
}
OURS = "kernel PatMatNP"
PEERS = ("logistic regression", "cost-sensitive SVM", "LightGBM")
MAX_FPR, CONFIDENCE = 0.01, 0.95
SCORER = get_scorer("tpr_at_fpr", max_fpr=MAX_FPR)
HOW = {
    "split": {},
    "unanimous, 2 folds": {"cv": 2},
    "refit, 5 folds": {"cv": 5, "combine": "refit"},
}
# Difference of the class means in the simulation.
SHIFT = (1.5, 0.5, 0.0)
SEARCHED = ("spambase", "ionosphere", "w8a", "oil_spill", "yeast", "fashion-mnist")


def normal_classes(rng, n_negatives, n_positives=50):
    """Two normal classes of three features, so that the false positive rate of a linear score is known."""
    y = np.repeat([0, 1], [n_negatives, n_positives])
    return rng.normal(size=(len(y), 3)) + y[:, None] * SHIFT, y


def true_rate(model, negatives):
    """The false positive rate: exact for one linear model, of a vote on many negatives."""
    if len(model.estimators_) > 1:
        return model.predict(negatives).mean()
    inner = model.estimator_
    return norm.sf((model.threshold_ - inner.intercept_[0]) / np.linalg.norm(inner.coef_))


def coverage(arguments):
    """Violations of the bound over many data sets, with fits of logistic regression each time; 95 % confidence."""
    negatives = np.random.default_rng(0).normal(size=(20_000, 3))
    positives = negatives[:5000] + np.array(SHIFT)
    print(f"{'negatives':>9} {'max_fpr':>8} {'how':20} {'violations':>10} {'tail':>7} {'mean FPR':>9} {'mean TPR':>9}")
    for n, max_fpr in ((1000, 0.05), (1000, 0.01), (200, 0.05)):
        for how, options in HOW.items():
            rates, found = [], []
            for seed in range(arguments.repetitions):
                X, y = normal_classes(np.random.default_rng(seed), n)
                model = NeymanPearsonClassifier(
                    LogisticRegression(), max_fpr, CONFIDENCE, random_state=seed, **options
                ).fit(X, y)
                rates.append(true_rate(model, negatives))
                if seed < 100:
                    found.append(model.predict(positives).mean())
            share = 100 * np.mean(np.array(rates) > max_fpr)
            tail = 100 * model.violation_probability_
            cells = f"{share:9.2f}% {tail:6.2f}% {np.mean(rates):9.4f} {np.mean(found):9.3f}"
            print(f"{n:9} {max_fpr:8g} {how:20} {cells}", flush=True)


def search(arguments):
    """Time of a search along warm-started paths over that of a grid search, the same grid and folds."""
    titles = f"{'ours/grid':>9} {'ours/fit':>9} {'fits':>5} {'same choice':>11} {'difference':>10}"
    print(f"{'case':20} {'estimator':9} {titles}")
    ratios = []
    for name in arguments.sets or SEARCHED:
        X, y = load_case(name)
        X, y = (X[:20_000], y[:20_000].astype(int)) if name == "fashion-mnist" else (X, y.astype(int))
        first = MaxAbsScaler() if issparse(X) else StandardScaler()
        for model in (TauFPL(tau=0.05), PatMatNP(tau=0.05)):
            pipeline = Pipeline([("scale", first), ("top", model)])
            folds = StratifiedKFold(5, shuffle=True, random_state=0)
            fit(pipeline, X[:: max(1, len(y) // 500)], y[:: max(1, len(y) // 500)])  # loads what was compiled
            once = fit_seconds(pipeline, X, y)
            ours = TopSearchCV(pipeline, cv=folds)
            scoring = get_scorer("tpr_at_fpr", max_fpr=0.05)
            grid = GridSearchCV(pipeline, {"top__alpha": ALPHAS}, scoring=scoring, cv=folds)
            seconds, peer = fit_seconds(ours, X, y), fit_seconds(grid, X, y)
            difference = np.abs(ours.cv_results_["mean_test_score"] - grid.cv_results_["mean_test_score"]).max()
            same = ours.best_params_ == grid.best_params_
            cells = (
                f"{seconds / peer:9.2f} {seconds / once:9.1f} {5 * len(ALPHAS) + 1:5} {same!s:>11} {difference:10.4f}"
            )
            print(f"{name:20} {type(model).__name__:9} {cells}", flush=True)
            ratios.append(seconds / peer)
    print(f"ours/grid: median {np.median(ratios):.2f}, worst {max(ratios):.2f}")


def contestants(d):
    """Name: estimator and grid of eighteen points, for d features."""
    gammas = [factor / d for factor in GAMMAS]
    kernel = {"alpha": [1e-1, 1e-2, 1e-3], "gamma": gammas, "beta": [0.1, 1.0]}
    trees = {"num_leaves": [7, 15, 31], "learning_rate": [0.02, 0.05, 0.1], "min_child_samples": [5, 20]}
    svm = SVC(cache_size=500, class_weight="balanced")
    return {
        OURS: (PatMatNP(0.01, kernel="rbf", tol=1e-3), kernel),
        "logistic regression": (LogisticRegression(max_iter=2000), {"C": np.logspace(-4, 4, 18)}),
        "cost-sensitive SVM": (svm, {"C": np.logspace(-1, 4, 6), "gamma": gammas}),
        "LightGBM": (lightgbm_default(0).set_params(n_estimators=200), trees),
    }


def held_out_negatives(name, y, train, seed):
    """Rows of the training part to fit to, and negatives of it for the threshold."""
    negatives = np.random.default_rng(seed).permutation(train[y[train] == 0])
    held_out = negatives[: int((0.6 if name == "oil_spill" else 0.5) * len(negatives))]
    return some_rows(y, np.setdiff1d(train, held_out), seed, MOST_ROWS), held_out


def tuned(model, grid, X, y, rows, seed):
    """The pipeline that folds of at most TUNING_ROWS of the rows choose, fitted to all of them."""
    tune = some_rows(y, rows, seed, TUNING_ROWS)
    pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
    search = GridSearchCV(
        pipeline,
        {f"model__{parameter}": values for parameter, values in grid.items()},
        scoring=SCORER,
        cv=StratifiedKFold(3, shuffle=True, random_state=seed),
        error_score="raise",
        refit=False,
    )
    chosen = fit(search, X[tune], y[tune]).best_params_
    if "model__C" in chosen:  # C stands against a sum of losses, alpha against a mean
        chosen["model__C"] *= len(tune) / len(rows)
    return fit(clone(pipeline).set_params(**chosen), X[rows], y[rows])


def one_split(name, model, grid, X, y, seed):
    """Realised rates of false alarms and of positives found on the test part, and numbers of negatives."""
    train, test = split_two_thirds(y, stratify=True, random_state=seed)
    rows, held_out = held_out_negatives(name, y, train, seed)
    frozen = FrozenEstimator(tuned(model, grid, X, y, rows, seed))
    decided = NeymanPearsonClassifier(frozen, MAX_FPR, CONFIDENCE).fit(X[held_out], y[held_out])
    alarm = decided.predict(X[test]) == 1
    return {
        "fpr": float(alarm[y[test] == 0].mean()),
        "tpr": float(alarm[y[test] == 1].mean()),
        "held_out": decided.n_calibration_,
        "tested": int(np.sum(y[test] == 0)),
    }


def table(arguments):
    """Run what is missing and print the table."""
    if not arguments.print_only:
        done = {(row["set"], row["method"]) for row in read_lines(arguments.results)}
        for name in arguments.sets or SETS:
            X, y = load_set(name)
            for method, (model, grid) in contestants(X.shape[1]).items():
                if (name, method) in done:
                    continue
                start = time.perf_counter()
                splits = [one_split(name, model, grid, X, y, seed) for seed in range(1, SETS[name] + 1)]
                row = {"set": name, "method": method, "splits": splits, "seconds": time.perf_counter() - start}
                append_line(arguments.results, row)
                print(f"{name:18} {method:20} {row['seconds']:7.1f} s", flush=True)
    summarise(arguments.results)


def summarise(path):
    """Means over the splits of the realised rates, and how often the realised rate was above the bound."""
    rates = {}
    for row in read_lines(path):
        columns = {key: np.array([split[key] for split in row["splits"]]) for key in row["splits"][0]}
        rates.setdefault(row["set"], {})[row["method"]] = columns
    names = [OURS, *PEERS]
    rates = {name: rates[name] for name in SETS if set(names) <= set(rates.get(name, ()))}
    print("TPR ± standard error / FPR, in %, on held-out rows")
    print(f"{'set':18} {'splits':>6} {'held out':>8} " + " ".join(f"{name:>22}" for name in names))
    for name, columns in rates.items():
        cells = [
            f"{100 * c['tpr'].mean():.1f} ± {100 * standard_error(c['tpr']):.1f} / {100 * c['fpr'].mean():.2f}"
            for c in (columns[method] for method in names)
        ]
        first = columns[OURS]
        print(
            f"{name:18} {len(first['tpr']):6} {first['held_out'][0]:8.0f} " + " ".join(f"{cell:>22}" for cell in cells)
        )
    tpr = np.array([[columns[method]["tpr"].mean() for method in names] for columns in rates.values()])
    ranks = np.mean([rankdata(-row) for row in tpr], axis=0)
    above = [np.mean(np.concatenate([c[method]["fpr"] > MAX_FPR for c in rates.values()])) for method in names]
    print(f"{'mean TPR':34} " + " ".join(f"{100 * mean:22.1f}" for mean in tpr.mean(axis=0)))
    print(f"{'mean rank':34} " + " ".join(f"{rank:22.2f}" for rank in ranks))
    print(f"{'splits with FPR > 1 % on test rows':34} " + " ".join(f"{100 * share:20.1f} %" for share in above))
    expected = np.mean(
        [expected_excess(split) for row in read_lines(path) if row["set"] in rates for split in row["splits"]]
    )
    print(f"expected of them, as test rows are a sample too: {100 * expected:.1f} %")
    for peer in PEERS:
        print(duel(rates, peer))


def standard_error(values):
    """Of the mean over splits; as the splits share rows it is too small rather than too large."""
    return values.std(ddof=1) / np.sqrt(len(values))


def expected_excess(split):
    """Probability that the rate on the test rows is above the bound, for scores without ties (beta-binomial)."""
    rule = threshold_rule(split["held_out"], MAX_FPR, CONFIDENCE)
    alarms = betabinom(split["tested"], rule.n_negatives - rule.rank + 1, rule.rank)
    return alarms.sf(np.floor(MAX_FPR * split["tested"]))


def duel(rates, peer):
    """Sets won and lost, and clearly so."""
    pairs = [columns[OURS]["tpr"] - columns[peer]["tpr"] for columns in rates.values()]
    means, spreads = np.array([pair.mean() for pair in pairs]), np.array([standard_error(pair) for pair in pairs])
    clear = f"{sum(means > 2 * spreads)} : {sum(means < -2 * spreads)}"
    return f"{OURS} : {peer:20} {sum(means > 0)} : {sum(means < 0)} sets, by two standard errors {clear}"


def main():
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["coverage", "search", "table"])
    parser.add_argument("results", type=Path, nargs="?", default=None)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=None)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--print-only", action="store_true")
    arguments = parser.parse_args()
    if arguments.part == "table" and arguments.results is None:
        parser.error("table needs the file of results, for instance results.jsonl")
    globals()[arguments.part](arguments)


if __name__ == "__main__":
    main()
