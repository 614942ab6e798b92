"""Tables of the results of `worth_at_the_top.py`, as Markdown.

    python benchmarks/worth_tables.py benchmarks/results/worth_at_the_top.jsonl [--into docs/howto/worth-at-the-top.md]

With `--into`, what stands between the two marks of the page is written anew.
"""

import argparse
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
from low_rates import RATES
from result_lines import put_into, read_lines
from scipy.stats import rankdata

OURS = "TopForest"
# Models of several kinds at once: shown, but not ranked among single models.
OF_SEVERAL = ("StackingClassifier", "TopBlend")
SHORT = {"winequality-white": "white wine", "bank_marketing": "bank", "protein_homo": "protein",
         "creditcard_fraud": "cards"}  # fmt: skip
CRITERIA = {
    "at 1 %": "Share of positives found at a false positive rate of 1 %",
    "mean": "Mean of the shares found at the rates 0.2, 0.5, 1, 2 and 5 %",
}
# Methods that were not run on all splits are compared on those that all of them share, on sets with so many.
LEAST = 3
MARKS = ("<!-- tables -->", "<!-- end of tables -->")


@dataclass(frozen=True)
class Results:
    """Shares found, by set, method and split; seconds likewise."""

    cells: dict[tuple[str, str, int], dict]

    @classmethod
    def of(cls, path):
        """Of a file; a cell that was run twice counts once, by its last line."""
        rows = [line for line in read_lines(path) if "method" in line]
        return cls({(row["set"], row["method"], row["split"]): row for row in rows})

    def shared(self, methods, sets):
        """Of some methods and sets, and the splits that all of them were run on."""
        both = {name: set.intersection(*(set(self.splits(name, method)) for method in methods)) for name in sets}
        return Results(
            {
                (name, method, split): self.cells[name, method, split]
                for method in methods
                for name in sets
                for split in sorted(both[name])
            }
        )

    @cached_property
    def methods(self):
        """All methods, in the order of the file."""
        return list(dict.fromkeys(method for _, method, _ in self.cells))

    @cached_property
    def sets(self):
        """The sets that are compared: those that ours was run on."""
        names = dict.fromkeys(name for name, _, _ in self.cells)
        return [name for name in names if self.splits(name, OURS)]

    @cached_property
    def _splits(self):
        found = {}
        for name, method, split in sorted(self.cells):
            found.setdefault((name, method), []).append(split)
        return found

    def splits(self, name, method):
        """The splits that were run."""
        return self._splits.get((name, method), [])

    def covered(self, method):
        """The sets on which a method was run on several of the splits of ours."""
        return tuple(name for name in self.sets if len(self._with_ours(name, method)) >= LEAST)

    def _with_ours(self, name, method):
        return set(self.splits(name, OURS)) & set(self.splits(name, method))

    def is_complete(self, method):
        """Whether it was run on all splits that ours was run on."""
        return all(self._with_ours(name, method) == set(self.splits(name, OURS)) for name in self.sets)

    def complete(self):
        """The methods that were run on all splits that ours was run on, best mean rank first."""
        whole = [method for method in self.methods if self.is_complete(method)]
        ranks = self.ranks(whole, "mean")
        return sorted(whole, key=lambda method: ranks[method])

    def further(self):
        """The others in groups of the same sets, with these; those of most sets first."""
        groups = {}
        for method in (method for method in self.methods if not self.is_complete(method)):
            groups.setdefault(self.covered(method), []).append(method)
        return [(groups[sets], sets) for sets in sorted(groups, key=len, reverse=True) if sets]

    def found(self, name, method, criterion):
        """The criterion on each split that ours was run on."""
        shares = np.array([self.cells[name, method, split]["found"] for split in self.splits(name, OURS)])
        return shares[:, RATES.index(0.01)] if criterion == "at 1 %" else shares.mean(axis=1)

    def means(self, methods, criterion):
        """One row a set, one column a method."""
        return np.array([[self.found(name, m, criterion).mean() for m in methods] for name in self.sets])

    def ranks(self, methods, criterion):
        """Mean over sets of the rank by the mean over splits: 1 is best."""
        if not methods:
            return {}
        ranks = [rankdata(-np.round(row, 9)) for row in self.means(methods, criterion)]
        return dict(zip(methods, np.mean(ranks, axis=0), strict=True))

    def seconds(self, name, method, key):
        """Mean over splits."""
        return float(np.mean([self.cells[name, method, split][key] for split in self.splits(name, OURS)]))


def table_of_sets(results, methods, criterion):
    """One line a method: the mean of every set, the mean of all, and mean ranks; the best of a set is bold."""
    means = results.means(methods, criterion)
    everyone, single = results.ranks(methods, criterion), results.ranks(singles(methods), criterion)
    names = [SHORT.get(name, name) for name in results.sets]
    lines = [line_of(["method", *names, "mean", "rank", "rank of single"]), "|---|" + "---|" * (len(names) + 3)]
    for place, method in enumerate(methods):
        cells = [bold_if(f"{row[place]:.3f}", row[place] >= row.max() - 1e-9) for row in means]
        rank = f"{single[method]:.2f}" if method in single else "–"
        lines.append(line_of([method, *cells, f"{means[:, place].mean():.3f}", f"{everyone[method]:.2f}", rank]))
    splits = [str(len(results.splits(name, OURS))) for name in results.sets]
    return [*lines, line_of(["splits", *splits, "", "", ""])]


def table_of_duels(results, methods):
    """One line a peer: sets won, tied and lost by both criteria, and how likely as much is by chance."""
    heads = [f"{what}, {criterion}" for criterion in CRITERIA for what in ("won : tied : lost", "difference", "p")]
    lines = [line_of([f"`{OURS}` against", *heads]), "|---|" + "---|" * len(heads)]
    for peer in (method for method in methods if method != OURS):
        cells = []
        for criterion in CRITERIA:
            difference = np.round(np.subtract(*results.means([OURS, peer], criterion).T), 9)
            won, lost = int(np.sum(difference > 0)), int(np.sum(difference < 0))
            p = signed_rank_p(difference)
            cells += [f"{won} : {len(difference) - won - lost} : {lost}", f"{difference.mean():+.3f}", f"{p:.3f}"]
        lines.append(line_of([peer, *cells]))
    return lines


def signed_rank_p(difference):
    """The p of the Wilcoxon signed-rank test, two-sided, over all signs of the differences that are not 0.

    SciPy's is the same, but takes half a second where two differences are equal.
    """
    difference = difference[difference != 0]
    ranks = rankdata(np.abs(difference))
    sums = np.array([np.dot(signs, ranks) for signs in product((0, 1), repeat=len(ranks))])
    seen = ranks[difference > 0].sum()
    return min(1.0, 2 * min(np.mean(sums >= seen), np.mean(sums <= seen)))


def table_of_times(results, methods):
    """One line a method: processor seconds of tuning and of the last fit, in the mean of sets and on some."""
    shown = [name for name in ("oil_spill", "mammography", "hiva", "creditcard_fraud") if name in results.sets]
    heads = ["tuning, mean", "fit, mean", *(f"fit, {SHORT.get(name, name)}" for name in shown)]
    lines = [line_of(["method", *heads]), "|---|" + "---|" * len(heads)]
    for method in methods:
        tuning = np.mean([results.seconds(name, method, "tuning_seconds") for name in results.sets])
        fits = {name: results.seconds(name, method, "fit_seconds") for name in results.sets}
        cells = [f"{tuning:.1f}" if tuning >= 0.05 else "–", f"{np.mean(list(fits.values())):.2f}"]
        lines.append(line_of([method, *cells, *(f"{fits[name]:.2f}" for name in shown)]))
    return lines


def in_words(results, methods, criterion):
    """The place of ours among single models, and how many sets it is ahead of tuned LightGBM on."""
    ranks = results.ranks(singles(methods), criterion)
    first, place = min(ranks, key=ranks.get), 1 + sum(rank < ranks[OURS] - 1e-9 for rank in ranks.values())
    difference = np.round(np.subtract(*results.means([OURS, "LightGBM"], criterion).T), 9)
    return (
        f"By this criterion `{OURS}`, untuned, has place {place} of {len(ranks)} single models by mean rank "
        f"({ranks[OURS]:.2f}; the first is {first}, {ranks[first]:.2f}), and is ahead of tuned LightGBM on "
        f"{sum(difference > 0)} of {len(difference)} sets."
    )


def singles(methods):
    """Those that are one model each."""
    return [method for method in methods if method not in OF_SEVERAL]


def line_of(cells):
    """A line of a table."""
    return "| " + " | ".join(cells) + " |"


def bold_if(text, best):
    """Bold, if it is the best."""
    return f"**{text}**" if best else text


def told_about(path):
    """When and by what the cells were made."""
    lines = read_lines(path)
    dates = sorted(line["date"] for line in lines)
    versions = [line for line in lines if "versions" in line][-1]
    packages = ", ".join(f"{name} {version}" for name, version in versions["versions"].items())
    return f"Run from {dates[0]} to {dates[-1]} (UTC), one thread a model, {versions['cores']} cores: {packages}."


def compared(results, methods):
    """The tables of both criteria, and ours against each."""
    parts = []
    for criterion, words in CRITERIA.items():
        parts += [f"**{words}**, mean over splits:", "", *table_of_sets(results, methods, criterion), ""]
        parts += [in_words(results, methods, criterion), ""]
    parts += [f"**`{OURS}` against each**, sets by their means; p of the Wilcoxon signed-rank test over sets:", ""]
    return [*parts, *table_of_duels(results, methods), ""]


def seconds(results, methods):
    """The table of times, with its title."""
    return ["**Seconds of the processor**, mean over splits:", "", *table_of_times(results, methods), ""]


def table_of_splits(results):
    """One line a method that was not run on all splits: the number of those it was run on."""
    names = [SHORT.get(name, name) for name in results.sets]
    lines = [line_of(["splits run", *names]), "|---|" + "---|" * len(names)]
    unfinished = (method for method in results.methods if not results.is_complete(method))
    counts = {method: [len(results.splits(name, method)) for name in results.sets] for method in (OURS, *unfinished)}
    return [*lines, *(line_of([method, *map(str, of_sets)]) for method, of_sets in counts.items())]


def rendered(path):
    """All tables of a file of results."""
    results = Results.of(path)
    methods = results.complete()
    parts = [told_about(path), "", *compared(results, methods), *seconds(results, methods)]
    known = [(methods, tuple(results.sets))]
    for further, sets in results.further():
        known.append((further, sets))
        some = results.shared([m for group, of_group in known if set(sets) <= set(of_group) for m in group], sets)
        without = [SHORT.get(name, name) for name in results.sets if name not in sets]
        but = f", without {', '.join(without)}" if without else ""
        parts += [f"### With {', '.join(further)}: the splits that all were run on{but}", ""]
        parts += [*compared(some, some.complete()), *seconds(some, [OURS, *further])]
    if len(methods) < len(results.methods):
        parts += ["**What was not run on all splits**:", "", *table_of_splits(results), ""]
    return "\n".join(parts)


def main():
    """Print the tables, or put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--into", type=Path)
    arguments = parser.parse_args()
    if arguments.into is None:
        print(rendered(arguments.results))
    else:
        put_into(arguments.into, rendered(arguments.results), MARKS)


if __name__ == "__main__":
    main()
