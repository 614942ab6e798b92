"""Seconds of a first fit on a new machine, where nothing is compiled yet, against the second process.

    python benchmarks/bench_cold_start.py [--only TEXT] [--functions]

Every case runs twice in a process of its own: with an empty folder of compiled loops, then with the one that the first
run left. Both columns are seconds of processor time of the import, the fit and the scores; "compiled" counts the
loops of toprank that the first run compiled, each with its parts. With --functions the seconds that each of them and of
the parts took to compile follow. A case that fails is told at the end, after the others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Any

import numpy as np

# Name: what is run, with the rows X, `sparse` ones and `wide` ones, their labels y and the path of a file with rows.
CASES = {
    "TopPush": "fitted(TopPush(), X)",
    "TopPush, sparse": "fitted(TopPush(), sparse)",
    "TopPush, more columns than rows": "fitted(TopPush(), wide)",
    "TopPushK, hinge": "fitted(TopPushK(surrogate='hinge'), X)",
    "PatMat": "fitted(PatMat(), X)",
    "PatMat, hinge": "fitted(PatMat(surrogate='hinge'), X)",
    "GrillNP": "fitted(GrillNP(), X)",
    "TauFPL, solver='apg'": "fitted(TauFPL(solver='apg'), X)",
    "TauFPL, solver='pairs'": "fitted(TauFPL(solver='pairs'), sparse)",
    "TopPush, kernel": "fitted(TopPush(kernel='rbf'), X)",
    "TopPush, kernel, float32": "fitted(TopPush(kernel='rbf'), X.astype('f4'))",
    "PatMatNP, kernel": "fitted(PatMatNP(kernel='rbf'), X)",
    "TopPush, kernel, solver='dual-cd'": "fitted(TopPush(kernel='rbf', solver='dual-cd'), X)",
    "PatMatNP, Nyström": "fitted(PatMatNP(kernel='rbf', approximation='nystroem', n_components=20), X)",
    "WMWRanker": "fitted(WMWRanker(), X)",
    "WMWRanker, summation='erfc'": "fitted(WMWRanker(solver='ncg', summation='erfc'), X)",
    "WMWRanker, kernel": "fitted(WMWRanker(kernel='rbf', n_components=20), X)",
    "CBR": "fitted(CBR(), X)",
    "CBR, diagonal": "fitted(CBR(covariance='diag'), X)",
    "CBR, forgetting": "fitted(CBR(forgetting=0.99), X)",
    "OAM": "fitted(OAM(), X)",
    "OAM, gradient": "fitted(OAM(update='gradient'), X)",
    "OPAUC": "fitted(OPAUC(), X)",
    "OPAUC, low rank": "fitted(OPAUC(rank=5), X)",
    "AdaOAM": "fitted(AdaOAM(), X)",
    "UniExp": "fitted(UniExp(), X)",
    "TopForest": "fitted(TopForest(n_estimators=30, random_state=0), X)",
    "TopForest and reasons": "reasons(fitted(TopForest(n_estimators=30, random_state=0), X), X[:5])",
    "TopBlend": "fitted(TopBlend([('all', TopPush()), ('best', PatMat())]), X)",
    "LeafFeatures": "LeafFeatures(random_state=0).fit(X, y).transform(X)",
    "PNormPush": "fitted(PNormPush(), X)",
    "RankNet": "fitted(RankNet(), X)",
    "RankBoost": "fitted(RankBoost(), X)",
    "RankSVM": "fitted(RankSVM(), X)",
    "stream of a text file": "stream(path + '.csv', CBR(covariance='diag'), target='y')",
    "stream of an svmlight file": "stream(path + '.svm', CBR(covariance='diag'), n_features=6)",
}


def rows() -> dict[str, Any]:
    """Small sets of two classes that overlap, as the cases name them."""
    from scipy.sparse import random_array

    generator = np.random.default_rng(0)
    X, wide = generator.normal(size=(400, 6)), generator.normal(size=(60, 200))
    sparse = random_array((400, 40), density=0.1, format="csr", rng=generator)
    return {"X": X, "wide": wide, "sparse": sparse}


def labels(X: Any) -> Any:
    """Three rows in ten are positive."""
    noisy = np.asarray(X[:, :2].sum(axis=1)).ravel() + np.random.default_rng(1).normal(size=X.shape[0])
    return (noisy > np.quantile(noisy, 0.7)).astype(int)


def fitted(estimator: Any, X: Any) -> Any:
    """Fit and score."""
    estimator.fit(X, labels(X)).decision_function(X)
    return estimator


def run(case: str) -> dict[str, Any]:
    """Run a case in this process; returns seconds of processor time, and those of each function that was compiled."""
    seconds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        names = rows() | {"fitted": fitted, "path": os.path.join(folder, "rows")}
        names["y"] = labels(names["X"])
        _write(names["path"], names["X"], names["y"])
        listen(seconds)
        start = time.process_time()
        import toprank

        names |= {name: getattr(toprank, name) for name in toprank.HOMES if f"{name}(" in CASES[case]}
        eval(CASES[case], names)
        return {"seconds": time.process_time() - start, "functions": dict(seconds)}


def _write(path: str, X: Any, y: Any) -> None:
    with open(path + ".csv", "w") as csv, open(path + ".svm", "w") as svmlight:
        csv.write(",".join([f"x{k}" for k in range(X.shape[1])]) + ",y\n")
        for row, label in zip(X, y, strict=True):
            csv.write(",".join(map(repr, row.tolist())) + f",{label}\n")
            svmlight.write(f"{label} " + " ".join(f"{k + 1}:{value!r}" for k, value in enumerate(row.tolist())) + "\n")


def listen(seconds: Counter[str]) -> None:
    """Count the seconds that numba takes to compile each function, without those of the functions that it calls."""
    if "--functions" not in sys.argv:
        return
    from numba.core import event

    class Recorder(event.Listener):
        def __init__(self) -> None:
            self.open: list[list[Any]] = []

        def on_start(self, happened: Any) -> None:
            self.open.append([time.process_time(), 0.0])

        def on_end(self, happened: Any) -> None:
            began, inside = self.open.pop()
            took = time.process_time() - began
            function = happened.data["dispatcher"].py_func
            seconds[f"{function.__module__.removeprefix('toprank.')}.{function.__name__}"] += took - inside
            if self.open:
                self.open[-1][1] += took

    event.register("numba:compile", Recorder())


def measure(case: str, folder: str, *, functions: bool) -> dict[str, Any]:
    """Run a case in a process of its own, with the compiled loops in a folder."""
    command = [sys.executable, __file__, "--case", case] + ["--functions"] * functions
    done = subprocess.run(
        command, env=os.environ | {"NUMBA_CACHE_DIR": folder}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="only the cases whose name begins so")
    parser.add_argument("--functions", action="store_true", help="say which functions were compiled")
    asked = parser.parse_args()
    if asked.case:
        print(json.dumps(run(asked.case)))
        return
    failed: list[str] = []
    print(f"{'case':40}{'first':>8}{'second':>8}{'more':>8}{'compiled':>10}")
    for case in CASES:
        if not case.startswith(asked.only):
            continue
        try:
            with tempfile.TemporaryDirectory() as folder:
                first = measure(case, folder, functions=asked.functions)
                files = sum(name.endswith(".nbc") for _, _, names in os.walk(folder) for name in names)
                second = measure(case, folder, functions=False)
        except RuntimeError as error:
            failed.append(f"{case}\n{error}")
            print(f"{case:40}  failed", flush=True)
            continue
        more = first["seconds"] - second["seconds"]
        print(f"{case:40}{first['seconds']:8.2f}{second['seconds']:8.2f}{more:8.2f}{files:10}", flush=True)
        for name, took in sorted(first["functions"].items(), key=lambda item: -item[1]):
            print(f"    {took:7.3f}  {name}")
    if failed:
        raise SystemExit("\n".join(failed))


if __name__ == "__main__":
    main()
