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


def measures_of(rows: Any) -> list[float]:
    """One metric of each kind: of a part of the list, of a curve, and of pairs."""
    from toprank.compilation import labels
    from toprank.metrics import ndcg_score, precision_at_k, tpr_at_fpr, wmw_score

    y, scores = labels(rows.X), rows.X[:, 0]
    found = (precision_at_k(y, scores, k=20), tpr_at_fpr(y, scores, max_fpr=0.1))
    return [*found, ndcg_score(y, scores), wmw_score(y, scores)]


# What compiles nothing, beside the cases of `toprank compile`.
LINEAR = {
    "TopPush": lambda t, r: r.learn(t.TopPush()),
    "TopPush, more columns than rows": lambda t, r: r.learn(t.TopPush(), r.words[:60].toarray()),
    "TopPushK, hinge": lambda t, r: r.learn(t.TopPushK(surrogate="hinge")),
    "PatMat": lambda t, r: r.learn(t.PatMat()),
    "PatMat, hinge": lambda t, r: r.learn(t.PatMat(surrogate="hinge")),
    "PatMatNP, Nyström": lambda t, r: r.learn(
        t.PatMatNP(kernel="rbf", approximation="nystroem", n_components=20, random_state=0)
    ),
    "PatMat, solver='sgd'": lambda t, r: r.learn(t.PatMat(solver="sgd", random_state=0)),
    "GrillNP": lambda t, r: r.learn(t.GrillNP()),
    "TopBlend": lambda t, r: r.learn(t.TopBlend([("all", t.TopPush()), ("best", t.PatMat())])),
    "PNormPush": lambda t, r: r.learn(t.PNormPush()),
    "InfinitePush": lambda t, r: r.learn(t.InfinitePush()),
    "AATP": lambda t, r: r.learn(t.AATP(tau=0.1)),
    "SVMpAUC": lambda t, r: r.learn(t.SVMpAUC(max_fpr=0.1)),
    "RankNet": lambda t, r: r.learn(t.RankNet()),
    "RankSVM": lambda t, r: r.learn(t.RankSVM()),
    "metrics": lambda t, r: measures_of(r),
}


def run(case: str) -> dict[str, Any]:
    """Run a case in this process; returns seconds of processor time, and those of each function that was compiled."""
    seconds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        listen(seconds)
        start = time.process_time()
        import toprank
        from toprank.compilation import CASES, FewRows

        (LINEAR | CASES)[case](toprank, FewRows(folder))
        return {"seconds": time.process_time() - start, "functions": dict(seconds)}


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
    from toprank.compilation import CASES

    for case in LINEAR | CASES:
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
