"""What each part of `TopForest` is worth: leaves, prior, honesty, head, number of trees, size of leaves.

    python benchmarks/ablation_of_the_forest.py results.jsonl [--sets oil_spill,yeast] [--splits 5] [--part 0/2]
    python benchmarks/ablation_of_the_forest.py results.jsonl --print-only [--into docs/howto/worth-at-the-top.md]

Protocol: random stratified splits, two thirds for training, of these at most 3,000 rows (all positives, up to a half,
and random negatives). All variants of a split share their trees: of forests of 1,000 the first 50, 100 or 300. Each
chooses its penalty as the estimator does, by rows that its heads have not seen. One line for each set, split and
variant is appended to the file; what is there is not run again. Needs TOPRANK_DATA.
"""

import argparse
import copy
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from low_rates import RATES, shares_found
from result_lines import append_line, note_versions, put_into, read_lines
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from worth_sets import load_set, some_rows
from worth_tables import SHORT, line_of

from toprank import TauFPL, TopForest
from toprank.datasets import split_two_thirds
from toprank.matrices.leaves import LeafMatrix
from toprank.trees.grove import Grove, default_ensembles
from toprank.trees.head_choice import Candidate
from toprank.trees.sources import Forest

SETS = ("oil_spill", "yeast", "abalone", "winequality-white", "satimage", "mammography")
MOST_ROWS = 3000
MOST_TREES = 1000  # of the two forests; the boosted trees of the prior are the same for all
MARKS = ("<!-- ablation -->", "<!-- end of ablation -->")


class SharedTrees(TopForest):
    """`TopForest` that takes its trees from a store, and grows them only if they are not there."""

    store: dict = {}  # noqa: RUF012 - all variants of a split share it

    def _grow(self, X, positive, weights, random):
        """The first trees of the forest of the leaves and of that of the prior, and the boosted trees of the prior."""
        size, rows = self.min_samples_leaf, (X, positive.astype(np.int64), weights)
        leaves, forest, boosted = default_ensembles(TopForest.n_estimators, size, TopForest.max_features)
        leaves.n_estimators = MOST_TREES if size == TopForest.min_samples_leaf else self.n_estimators
        forest.n_estimators = MOST_TREES
        return SharedGrove((
            replace(first_trees(self._part(("leaves", size), leaves, rows), self.n_estimators), is_prior=False),
            replace(first_trees(self._part("forest", forest, rows), self.n_estimators), gets_values=False),
            replace(self._part("boosted", boosted, rows), gets_values=False),
        ))  # fmt: skip

    def _part(self, key, ensemble, rows):
        """An ensemble of the store."""
        if key not in self.store:
            seed = np.random.RandomState([self.random_state, len(str(key))])
            (self.store[key],) = Grove.of([ensemble], *rows, None, seed).parts
        return self.store[key]


class SharedGrove(Grove):
    """A grove that takes what is grown without a fold from the store too."""

    def regrown(self, X, y, sample_weight):
        """All parts; the boosted trees are grown once for the rows of a fold."""
        key = hash(X.tobytes())
        if key not in SharedTrees.store:
            SharedTrees.store[key] = super().regrown(X, y, sample_weight).parts[-1]
        return Grove((*self.parts[:-1], SharedTrees.store[key]))


def first_trees(part, number):
    """The same forest with fewer trees."""
    model = copy.copy(part.source.model)
    model.estimators_ = model.estimators_[:number]
    return replace(part, source=Forest(model))


class ForestAsPrior(SharedTrees):
    """Without the boosted trees."""

    def _grow(self, *arguments):
        leaves, forest, _ = super()._grow(*arguments).parts
        return Grove((leaves, forest))


class BoostingAsPrior(SharedTrees):
    """Without the forest of fully grown trees."""

    def _grow(self, *arguments):
        leaves, _, boosted = super()._grow(*arguments).parts
        return SharedGrove((leaves, boosted))


class WithoutPrior(SharedTrees):
    """Leaves alone."""

    def _candidates(self, honesty):
        return [OfLeaves(one.alpha, one.tau, one.honest) for one in super()._candidates(honesty) if not one.prior_alone]


class OfLeaves(Candidate):
    """A head that does not see the prior."""

    freedom = 0.0


class PriorAlone(SharedTrees):
    """The second forest and the boosted trees, each with a weight: no leaf gets a new value."""

    def _candidates(self, honesty):
        return [one for one in super()._candidates(honesty) if one.prior_alone]


class Logistic(SharedTrees):
    """The same leaves and the same prior under logistic loss."""

    def _head(self):
        return LogisticHead(tol=self.tol)


class LogisticHead(BaseEstimator):
    """Logistic regression with the parameters of a head."""

    def __init__(self, alpha=1.0, tau=None, tol=1e-4, warm_start=False, verbose=0):
        self.alpha, self.tau, self.tol, self.warm_start, self.verbose = alpha, tau, tol, warm_start, verbose

    def fit(self, X, y, sample_weight):
        """Minimise the mean loss with the penalty of the family."""
        model = LogisticRegression(C=1 / (self.alpha * sample_weight.sum()), tol=self.tol, max_iter=1000)
        model.fit(as_csr(X), y, sample_weight)
        self.model_, self.coef_, self.intercept_ = model, model.coef_, model.intercept_
        self.objective_ = self.dual_objective_ = self.dual_gap_ = self.n_iter_ = self.history_ = None
        return self

    def decision_function(self, X):
        """Log odds."""
        return self.model_.decision_function(as_csr(X))


def as_csr(X):
    """What scikit-learn reads."""
    return X.tocsr() if isinstance(X, LeafMatrix) else X


# Variant: class and parameters.
VARIANTS = {
    "TopForest": (SharedTrees, {}),
    "priors alone (no leaves)": (PriorAlone, {}),
    "leaves alone (no prior)": (WithoutPrior, {}),
    "forest as only prior": (ForestAsPrior, {}),
    "boosting as only prior": (BoostingAsPrior, {}),
    "honest leaves always": (SharedTrees, {"honest": True}),
    "honest leaves never": (SharedTrees, {"honest": False}),
    "head TauFPL": (SharedTrees, {"head": TauFPL()}),
    "head logistic": (Logistic, {}),
    "50 trees": (SharedTrees, {"n_estimators": 50}),
    "100 trees": (SharedTrees, {"n_estimators": 100}),
    "1000 trees": (SharedTrees, {"n_estimators": 1000}),
    "leaves of 1 row": (SharedTrees, {"min_samples_leaf": 1}),
    "leaves of 10 rows": (SharedTrees, {"min_samples_leaf": 10}),
}
REFERENCE = "TopForest"


def one_variant(variant, X, y, seed):
    """What a variant finds on the test part, and its processor time without the growing of shared trees."""
    train, test = split_two_thirds(y, stratify=True, random_state=seed)
    train = some_rows(y, train, seed, MOST_ROWS)
    kind, parameters = VARIANTS[variant]
    start = time.process_time()
    model = kind(random_state=seed, **parameters).fit(X[train], y[train])
    seconds = time.process_time() - start
    return {"found": shares_found(y[test], model.decision_function(X[test])), "seconds": round(seconds, 2)}


def run(path, sets, splits, part):
    """Append what is missing; the variants of a split one after the other, as they share its trees."""
    note_versions(path, ("toprank", "numpy", "scikit-learn"))
    done = {(row["set"], row["split"], row["variant"]) for row in read_lines(path) if "variant" in row}
    place, n_parts = part
    for name, seed in [(name, seed) for seed in range(1, splits + 1) for name in sets][place::n_parts]:
        SharedTrees.store.clear()
        for variant in VARIANTS:
            if (name, seed, variant) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = one_variant(variant, *load_set(name), seed)
            append_line(path, {"set": name, "split": seed, "variant": variant, **result})
            print(
                f"{name:18} {seed:2} {variant:24} {np.mean(result['found']):.3f} {result['seconds']:6.1f} s", flush=True
            )


def rendered(path):
    """One line a variant: means over rates for every set, means of all by both criteria, and sets won and lost."""
    found = {}
    for row in (row for row in read_lines(path) if "variant" in row):
        found.setdefault((row["set"], row["split"]), {})[row["variant"]] = row["found"]
    found = {key: shares for key, shares in found.items() if set(VARIANTS) <= set(shares)}
    sets = [name for name in SETS if any(key[0] == name for key in found)]
    means = {v: np.array([np.mean([s[v] for (n, _), s in found.items() if n == name], axis=0) for name in sets])
             for v in VARIANTS}  # fmt: skip
    heads = [*(SHORT.get(name, name) for name in sets), "mean", "difference", "better : worse", "at 1 %", "difference"]
    lines = [line_of(["variant", *heads]), "|---|" + "---|" * len(heads)]
    for variant, shares in means.items():
        over, at_one = shares.mean(axis=1), shares[:, RATES.index(0.01)]
        apart = np.round(over - means[REFERENCE].mean(axis=1), 9)
        apart_at_one = at_one.mean() - means[REFERENCE][:, RATES.index(0.01)].mean()
        compared = [f"{apart.mean():+.3f}", f"{sum(apart > 0)} : {sum(apart < 0)}", f"{at_one.mean():.3f}",
                    f"{apart_at_one:+.3f}"]  # fmt: skip
        if variant == REFERENCE:
            compared = ["", "", f"{at_one.mean():.3f}", ""]
        lines.append(line_of([variant, *(f"{value:.3f}" for value in over), f"{over.mean():.3f}", *compared]))
    splits = [str(sum(name == one for one, _ in found)) for name in sets]
    return "\n".join([*lines, line_of(["splits", *splits, "", "", "", "", ""]), ""])


def main():
    """Run what is missing, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--part", type=lambda text: tuple(map(int, text.split("/"))), default=(0, 1))
    parser.add_argument("--print-only", action="store_true")
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    if not arguments.print_only:
        run(arguments.results, arguments.sets, arguments.splits, arguments.part)
    if arguments.into is None:
        print(rendered(arguments.results))
    else:
        put_into(arguments.into, rendered(arguments.results), MARKS)


if __name__ == "__main__":
    main()
