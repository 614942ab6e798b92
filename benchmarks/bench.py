"""Where the speed stands, in two minutes: ratios to named peers beside the last committed ones, so that a loss is seen.

    make bench                                         the table
    make bench BENCH="--only kernel"                   one part: linear, text, kernel, other, real or cold
    make bench BENCH="--only large-text"               what takes too long for all of it: 100,000 rows of words,
    make bench BENCH="--only real-kernel"              kernels on real sets and more bands,
    make bench BENCH="--only real-text"                words of real sets,
    make bench BENCH="--only more-cold"                and every other first fit that compiles something
    make bench BENCH=--long                            all of that, too, which takes long
    make bench BENCH=--write                           and keep it in benchmarks/results/bench.json and in
                                                       docs/theory/speed.md, to commit

Both sides of a ratio are seconds of processor time in one process, by turns, the best of several rounds. They get the
same rows and, where there is one, the same penalty: C = 1 / (alpha m) with m positives. Ours stop at a relative
duality gap of 1e-4, the peers at their defaults. "cold" is the processor time of a first fit with nothing compiled,
against the second process. With TOPRANK_DATA there are real sets, too. Nothing is asserted.
"""

import argparse
import json
import os
import platform
import tempfile
import time
import warnings
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
from hard_sets import curved_bands, zipf_text
from result_lines import now, put_into
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, LinearSVC

COMMITTED = Path(__file__).parent / "results" / "bench.json"
PAGE, MARKS = Path(__file__).parents[1] / "docs" / "theory" / "speed.md", ("<!-- bench -->", "<!-- end of bench -->")
ALPHAS = (1.0, 1e-2, 1e-4)
# Rows, features and share of positives of the small sets.
SMALL = ((5000, 10, 0.1), (5400, 5, 0.33), (6000, 20, 0.05), (6600, 40, 0.3), (7400, 21, 0.02))
COLD = ("TopPush, kernel", "WMWRanker", "CBR", "OAM", "OPAUC")


def noisy_plane(n, d, share, seed=0):
    """Normal rows whose label is the side of a plane, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noisy = X[:, : (d + 1) // 2].sum(axis=1) + rng.normal(size=n) * np.sqrt(d) / 8
    return X, noisy > np.quantile(noisy, 1 - share)


def liblinear(alpha, y):
    """LIBLINEAR's squared hinge in the primal, with the same penalty."""
    return LinearSVC(C=1 / (alpha * y.sum()), dual=False)


def linear_cases():
    """Small fits one by one, and as a search over 18 penalties in 3 folds, which is where they are felt."""
    from toprank import TopPush, TopSearchCV

    for n, d, share in SMALL:
        X, y = noisy_plane(n, d, share)
        for alpha in ALPHAS:
            name = f"small fit, {n} × {d}, {share:.0%} positive, alpha {alpha:g}"
            yield name, "LIBLINEAR", _fit(TopPush(alpha=alpha), X, y), _fit(liblinear(alpha, y), X, y)
    X, y = noisy_plane(5000, 10, 0.1)
    alphas = np.logspace(0, -4, 18)
    penalties = {"C": 1 / (alphas * y.sum() * 2 / 3)}
    ours = TopSearchCV(TopPush(), {"alpha": alphas}, cv=3, scoring="roc_auc")
    peer = GridSearchCV(LinearSVC(dual=False), penalties, cv=3, scoring="roc_auc")
    yield (
        "18 penalties × 3 folds, 5000 × 10, TopSearchCV",
        "GridSearchCV, LIBLINEAR",
        _fit(ours, X, y),
        _fit(peer, X, y),
    )
    ours = GridSearchCV(TopPush(), {"alpha": alphas}, cv=3, scoring="roc_auc")
    yield (
        "18 penalties × 3 folds, 5000 × 10, GridSearchCV",
        "GridSearchCV, LIBLINEAR",
        _fit(ours, X, y),
        _fit(peer, X, y),
    )
    X, y = noisy_plane(100_000, 30, 0.1)
    peer = LogisticRegression(C=1 / (1e-2 * y.sum()), solver="liblinear")
    yield "large fit, 100000 × 30", "LIBLINEAR, logistic", _fit(TopPush(alpha=1e-2), X, y), _fit(peer, X, y)


def text_cases(n_rows=20_000, n_columns=20_000, alphas=(1e-2, 1e-4)):
    """Words by Zipf's law."""
    from toprank import TopPush

    X, y = zipf_text(n_rows, n_columns)
    for alpha in alphas:
        name = f"text, Zipf {n_rows} × {n_columns}, alpha {alpha:g}"
        ours, peer = TopPush(alpha=alpha), LogisticRegression(C=1 / (alpha * y.sum()), solver="liblinear")
        yield name, "LIBLINEAR, logistic", _fit(ours, X, y), _fit(peer, X, y)


def large_text_cases():
    """The same with more rows and words."""
    yield from text_cases(100_000, 50_000, ALPHAS)


def kernel_cases():
    """Classes that overlap in curved bands."""
    from toprank import TauFPL, TopPush

    X, y = curved_bands(2000, 5)
    for C in (0.1, 1.0, 100.0):
        alpha, peer = 1 / (C * y.sum()), SVC(C=C, gamma=0.2)
        for ours in (TopPush, TauFPL):
            name = f"kernel, bands 2000 × 5, C {C:g}, {ours.__name__}"
            yield name, "SVC", _fit(ours(alpha=alpha, kernel="rbf", gamma=0.2), X, y), _fit(peer, X, y)


def other_cases():
    """Online learning, sums over pairs, forests, metrics."""
    from toprank import CBR, OPAUC, TopForest, WMWRanker
    from toprank.metrics import tpr_at_fpr
    from toprank.pairwise import pair_sum

    X, y = noisy_plane(10_000, 50, 0.1)
    peer = SGDClassifier(max_iter=1, tol=None)
    for ours in (CBR(covariance="diag"), CBR(), OPAUC()):
        name = type(ours).__name__ + (f" {ours.covariance}" if isinstance(ours, CBR) else "")
        yield f"online, one pass, 10000 × 50, {name}", "SGDClassifier, one pass", _fit(ours, X, y), _fit(peer, X, y)
    yield from covariance_cases()
    X, y = noisy_plane(50_000, 10, 0.1)
    peer = LogisticRegression(solver="newton-cholesky")
    yield "all pairs, 50000 × 10, WMWRanker", "logistic, newton-cholesky", _fit(WMWRanker(), X, y), _fit(peer, X, y)
    scores = np.random.default_rng(0).normal(size=10**6) + (labels := np.arange(10**6) % 10 == 0)
    ours = lambda: pair_sum(scores[labels], scores[~labels])  # noqa: E731
    yield "sum over 10^11 pairs", "roc_auc_score", ours, lambda: roc_auc_score(labels, scores)
    yield (
        "tpr_at_fpr of 10^6",
        "roc_auc_score",
        lambda: tpr_at_fpr(labels, scores, max_fpr=0.01),
        lambda: roc_auc_score(labels, scores),
    )
    from sklearn.ensemble import RandomForestClassifier

    X, y = noisy_plane(5000, 10, 0.1)
    forest = {"n_estimators": 100, "min_samples_leaf": 3, "random_state": 0}
    ours, peer = TopForest(**forest), RandomForestClassifier(**forest)
    yield "forest, 5000 × 10, 100 trees", "RandomForestClassifier", _fit(ours, X, y), _fit(peer, X, y)


def covariance_cases():
    """A full covariance against what BLAS needs for as many updates, one for each pair."""
    from bench_online import blas_loop, every_pair

    run = blas_loop()
    for n, d in ((1000, 54), (200, 200)):
        model, X, y, pairs = every_pair(n, d)
        ours = _fit(model, X, y)
        yield f"full covariance, {pairs} pairs of {d} features", "dsymv and dsyr", ours, partial(run, pairs, d)


def real_cases():
    """Spambase, linear and with a kernel, and 20 newsgroups, if they are there."""
    if "TOPRANK_DATA" not in os.environ:
        return
    from top_cases import load_case, scaled

    from toprank import TopPush

    X, y = load_case("spambase")
    X = scaled(X)
    for alpha in ALPHAS:
        yield (
            f"spambase, alpha {alpha:g}",
            "LIBLINEAR",
            _fit(TopPush(alpha=alpha), X, y),
            _fit(liblinear(alpha, y), X, y),
        )
    ours = TopPush(alpha=1 / y.sum(), kernel="rbf", gamma=0.02)
    yield "spambase, kernel, C 1", "SVC", _fit(ours, X, y), _fit(SVC(gamma=0.02), X, y)
    X, y = load_case("20newsgroups")
    X = scaled(X)
    ours, peer = TopPush(alpha=1e-2), LogisticRegression(C=1 / (1e-2 * y.sum()), solver="liblinear")
    yield "20 newsgroups, alpha 0.01", "LIBLINEAR, logistic", _fit(ours, X, y), _fit(peer, X, y)


def real_kernel_cases():
    """Kernels on larger bands, both wines and spambase for four C; six penalties at once against one fit."""
    from top_cases import load_case, scaled

    from toprank import TopPush, TopSearchCV, path

    bands, bad = curved_bands(5400, 5)
    alpha = 1e-3
    ours, peer = TopPush(alpha=alpha, kernel="rbf", gamma=0.2), SVC(C=1 / (alpha * bad.sum()), gamma=0.2)
    yield "kernel, bands 5400 × 5, alpha 0.001", "SVC", _fit(ours, bands, bad), _fit(peer, bands, bad)
    for d in (2, 3, 10):
        X, y = curved_bands(5400, d)
        for C in (0.1, 1.0, 10.0, 100.0):
            ours, peer = TopPush(alpha=1 / (C * y.sum()), kernel="rbf", gamma=1 / d), SVC(C=C, gamma=1 / d)
            yield f"kernel, bands 5400 × {d}, C {C:g}", "SVC", _fit(ours, X, y), _fit(peer, X, y)
    for name in ("winequality-white", "winequality-red", "spambase"):
        X, y = load_case(name)
        X, gamma = scaled(X), 0.02 if name == "spambase" else 1 / X.shape[1]
        for C in (0.1, 1.0, 10.0, 100.0):
            ours = TopPush(alpha=1 / (C * y.sum()), kernel="rbf", gamma=gamma)
            yield f"kernel, {name}, C {C:g}", "SVC", _fit(ours, X, y), _fit(SVC(C=C, gamma=gamma), X, y)
        train, test = np.arange(len(y)) % 3 > 0, np.arange(len(y)) % 3 == 0
        alphas = [1 / (C * y.sum()) for C in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)]
        search = TopSearchCV(
            TopPush(kernel="rbf", gamma=gamma), {"alpha": alphas}, refit=False,
            cv=[(np.flatnonzero(train), np.flatnonzero(test))],
        )  # fmt: skip
        one = _fit(TopPush(alpha=alphas[2], kernel="rbf", gamma=gamma), X[train], y[train])
        yield f"kernel, {name}, six penalties", "one fit, C 1", _fit(search, X, y), one
        six = partial(path, TopPush(kernel="rbf", gamma=gamma), X[train], y[train], alphas=alphas)
        yield f"kernel, {name}, six penalties by path", "one fit, C 1", six, one


def real_text_cases():
    """20 newsgroups and w8a."""
    from top_cases import load_case, scaled

    from toprank import TopPush

    for name in ("20newsgroups", "w8a"):
        X, y = load_case(name)
        X = scaled(X)
        for alpha in ALPHAS:
            ours, peer = TopPush(alpha=alpha), LogisticRegression(C=1 / (alpha * y.sum()), solver="liblinear")
            yield f"text, {name}, alpha {alpha:g}", "LIBLINEAR, logistic", _fit(ours, X, y), _fit(peer, X, y)


def cold_cases(cases=COLD):
    """Seconds of a first process and of the second one."""
    from bench_cold_start import measure

    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            first, second = (measure(case, folder, functions=False)["seconds"] for _ in range(2))
        yield f"cold, {case}", "second process", first, second


def more_cold_cases():
    """The same of all else that compiles something."""
    from toprank.compilation import CASES

    yield from cold_cases([case for case in CASES if case not in COLD])


PARTS = {
    "linear": linear_cases,
    "text": text_cases,
    "kernel": kernel_cases,
    "other": other_cases,
    "real": real_cases,
    "cold": cold_cases,
    "large-text": large_text_cases,
    "real-kernel": real_kernel_cases,
    "real-text": real_text_cases,
    "more-cold": more_cold_cases,
}
# Parts that are run only if they are asked for.
LONG = ("large-text", "real-kernel", "real-text", "more-cold")


def _fit(model, X, y):
    return lambda: model.fit(X, y)


def best_of(ours, peer, seconds=1.5, rounds=(3, 10)):
    """Least processor time of both, by turns, after a first call of ours, in about so many seconds and rounds."""
    ours()  # which may compile: neither its time nor what it leaves of the seconds counts
    best, start = [np.inf, np.inf], time.process_time()
    for done in range(1, rounds[1] + 1):
        for side, call in enumerate((ours, peer)):
            began = time.process_time()
            call()
            best[side] = min(best[side], time.process_time() - began)
        if done >= rounds[0] and time.process_time() - start > seconds:
            break
    return best


def arguments_of(argv=None):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--long", action="store_true", help="all parts")
    parser.add_argument("--write", action="store_true", help=f"keep the numbers in {COMMITTED.name} and {PAGE.name}")
    return parser.parse_args(argv)


def measured(part, known):
    """Print and give the numbers of a part, a case at a time, beside those that are known."""
    for name, peer_name, ours, peer in PARTS[part]():
        seconds = (ours, peer) if "cold" in part else best_of(ours, peer)
        ratio, change, last = seconds[0] / seconds[1], "", ""
        if name in known:
            before = known[name]["ours"] / known[name]["peer"]
            change, last = f"{ratio / before - 1:+.0%}", f"{before:.2f}"
        print(
            f"{name:56} {seconds[0]:8.3f} {seconds[1]:8.3f} {ratio:6.2f} {last:>6} {change:>7}  {peer_name}", flush=True
        )
        yield (
            name,
            {
                "part": part,
                "ours": round(seconds[0], 5),
                "peer": round(seconds[1], 5),
                "peer_name": peer_name,
                "load": round(os.getloadavg()[0], 1),
                "date": now(),
            },
        )


def page_of(record):
    """The tables of the page: a line a case, a table a part."""
    cases = record["cases"]
    loads, dates = ([case[key] for case in cases.values()] for key in ("load", "date"))
    lines = [
        f"Run from {min(dates)} to {max(dates)} (UTC) on {record['cores']} cores with a load of {min(loads):.1f} to "
        f"{max(loads):.1f}, of which about one is the benchmark itself; {record['versions']}."
    ]
    for part, make in PARTS.items():
        of_part = {name: case for name, case in cases.items() if case["part"] == part}
        if of_part:
            lines += ["", f"**{make.__doc__.splitlines()[0]}**", ""]
            lines += ["| | ours, s | peer, s | ours / peer | ours − peer, s | peer |", "|---|---|---|---|---|---|"]
        for name, case in of_part.items():
            ours, peer = case["ours"], case["peer"]
            numbers = f"{ours:.3g} | {peer:.3g} | {ours / peer:.2f} | {ours - peer:.2g}"
            lines.append(f"| {name} | {numbers} | {case['peer_name']} |")
    return "\n".join(lines)


def main():
    """Print the table."""
    asked = arguments_of()
    warnings.simplefilter("ignore")
    record = json.loads(COMMITTED.read_text()) if COMMITTED.exists() else {"cases": {}}
    if record["cases"]:
        print(f"last: {max(case['date'] for case in record['cases'].values())}, {record['versions']}")
    print(f"{'case':56} {'ours':>8} {'peer':>8} {'ratio':>6} {'last':>6} {'change':>7}  peer")
    found = {}
    for part in [asked.only] if asked.only else [part for part in PARTS if asked.long or part not in LONG]:
        found.update(measured(part, record["cases"]))
    small = [case["ours"] / case["peer"] for name, case in found.items() if name.startswith("small fit")]
    if small:
        print(f"small fits: median {np.median(small):.2f}, worst {max(small):.2f}")
    if asked.write:
        packages = ("numpy", "scipy", "scikit-learn", "numba")
        versions = ", ".join([f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in packages)])
        record = {"cores": os.cpu_count(), "versions": versions, "cases": record["cases"] | found}
        COMMITTED.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        put_into(PAGE, page_of(record), MARKS)


if __name__ == "__main__":
    main()
