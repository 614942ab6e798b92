"""Compile the loops ahead of their first use: for an image, or a machine where nobody should wait.

Run it by ``toprank compile`` or ``python -m toprank.compilation``. Numba compiles a loop for the types of its
arguments, so each method learns from a few rows, and the files are those that a first fit would leave.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import toprank
from toprank.exceptions import InputError
from toprank.log import quiet


class FewRows:
    """Small sets of two classes that overlap: dense rows, sparse ones, rows as of words, and files of rows."""

    def __init__(self, folder: str) -> None:
        from scipy.sparse import random_array

        generator = np.random.default_rng(0)
        self.X = generator.normal(size=(400, 6))
        self.sparse = random_array((400, 400), density=0.01, format="csr", rng=generator)
        self.words = random_array((400, 5000), density=0.01, format="csr", rng=generator)
        self.csv, self.svmlight = os.path.join(folder, "rows.csv"), os.path.join(folder, "rows.svm")

    def learn(self, estimator: Any, X: Any = None) -> Any:
        """Fit and score."""
        X = self.X if X is None else X
        estimator.fit(X, labels(X)).decision_function(X)
        return estimator

    def write(self) -> FewRows:
        """Write the files."""
        with open(self.csv, "w") as csv, open(self.svmlight, "w") as svmlight:
            csv.write(",".join([f"x{k}" for k in range(self.X.shape[1])]) + ",y\n")
            for row, label in zip(self.X.tolist(), labels(self.X), strict=True):
                csv.write(",".join(map(repr, row)) + f",{label}\n")
                svmlight.write(f"{label} " + " ".join(f"{k + 1}:{value!r}" for k, value in enumerate(row)) + "\n")
        return self


def labels(X: Any) -> Any:
    """Three rows in ten are positive."""
    noisy = np.asarray(X[:, :2].sum(axis=1)).ravel() + np.random.default_rng(1).normal(size=X.shape[0])
    return (noisy > np.quantile(noisy, 0.7)).astype(int)


# What compiles anything, by name; `t` is the package, which loads its parts on first use.
CASES: dict[str, Callable[[Any, FewRows], Any]] = {
    "TopPush, sparse": lambda t, r: r.learn(t.TopPush(), r.sparse),
    "TopPush, sparse, float32": lambda t, r: r.learn(t.TopPush(), r.sparse.astype("f4")),
    "TopPush, words": lambda t, r: r.learn(t.TopPush(), r.words),
    "TopPush, words, float32": lambda t, r: r.learn(t.TopPush(), r.words.astype("f4")),
    "TopPush, kernel": lambda t, r: r.learn(t.TopPush(kernel="rbf")),
    "TopPush, kernel, float32": lambda t, r: r.learn(t.TopPush(kernel="rbf"), r.X.astype("f4")),
    "PatMatNP, kernel": lambda t, r: r.learn(t.PatMatNP(kernel="rbf")),
    "TopPush, kernel, solver='dual-cd'": lambda t, r: r.learn(t.TopPush(kernel="rbf", solver="dual-cd")),
    "TauFPL, solver='apg'": lambda t, r: r.learn(t.TauFPL(solver="apg")),
    "TauFPL, solver='pairs'": lambda t, r: r.learn(t.TauFPL(solver="pairs"), r.sparse),
    "WMWRanker": lambda t, r: r.learn(t.WMWRanker()),
    "WMWRanker, summation='erfc'": lambda t, r: r.learn(t.WMWRanker(solver="ncg", summation="erfc")),
    "WMWRanker, kernel": lambda t, r: r.learn(t.WMWRanker(kernel="rbf", n_components=20)),
    "CBR": lambda t, r: r.learn(t.CBR()),
    "CBR, diagonal": lambda t, r: r.learn(t.CBR(covariance="diag")),
    "CBR, forgetting": lambda t, r: r.learn(t.CBR(forgetting=0.99)),
    "CBR, diagonal, forgetting": lambda t, r: r.learn(t.CBR(covariance="diag", forgetting=0.99)),
    "OAM": lambda t, r: r.learn(t.OAM()),
    "OAM, gradient": lambda t, r: r.learn(t.OAM(update="gradient")),
    "OPAUC": lambda t, r: r.learn(t.OPAUC()),
    "OPAUC, low rank": lambda t, r: r.learn(t.OPAUC(rank=5)),
    "AdaOAM": lambda t, r: r.learn(t.AdaOAM()),
    "UniExp": lambda t, r: r.learn(t.UniExp()),
    "UniExp, sparse": lambda t, r: r.learn(t.UniExp(), r.sparse),
    "UniExp, columns": lambda t, r: r.learn(t.UniExp(), np.asfortranarray(r.X)),
    "TopForest": lambda t, r: r.learn(t.TopForest(n_estimators=30, random_state=0)),
    "TopForest and reasons": lambda t, r: t.reasons(r.learn(t.TopForest(n_estimators=30, random_state=0)), r.X[:5]),
    "LeafFeatures": lambda t, r: t.LeafFeatures(random_state=0).fit(r.X, labels(r.X)).transform(r.X),
    "RankBoost": lambda t, r: r.learn(t.RankBoost()),
    "SVMMAP": lambda t, r: r.learn(t.SVMMAP()),
    "stream of a text file": lambda t, r: t.stream(r.write().csv, t.CBR(covariance="diag"), target="y"),
    "stream of an svmlight file": lambda t, r: t.stream(r.write().svmlight, t.CBR(covariance="diag"), n_features=6),
}


def compile_loops(only: str = "") -> Iterator[tuple[str, int]]:
    """Compile what the cases need whose name begins so; gives the name of each and the number of loops compiled."""
    from toprank.compiled import counted

    if not any(name.startswith(only) for name in CASES):
        raise InputError.saying(
            "{only} must begin the name of a method, got {text!r}; use one of {names}",
            text=only,
            names="; ".join(CASES),
        )
    with tempfile.TemporaryDirectory() as folder:
        rows = FewRows(folder)
        for name, case in CASES.items():
            if name.startswith(only):
                with counted() as compiled, warnings.catch_warnings(), quiet(True):
                    warnings.simplefilter("ignore")  # few rows are all that is wrong with them
                    case(toprank, rows)
                yield name, compiled.loops


def main(arguments: list[str] | None = None) -> None:
    """Compile, and say what."""
    parser = argparse.ArgumentParser(prog="python -m toprank.compilation", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only what the methods need whose name begins so")
    start, total = time.perf_counter(), 0
    for name, compiled in compile_loops(parser.parse_args(arguments).only):
        print(f"{name:40}{compiled:4}", flush=True)
        total += compiled
    print(f"{total} loops compiled in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
