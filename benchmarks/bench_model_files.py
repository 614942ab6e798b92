"""Files of `toprank.save` against those of skops, in one run: bytes, CPU time to save and load, what must be trusted.

    python benchmarks/bench_model_files.py [--repetitions 30]

Needs skops (`pip install skops`), which toprank does not use. CPU time leaves out that `toprank.save` waits for the
disk, which skops does not. skops gets the models as they are, and without what only a warm start needs, which
`toprank.save` leaves out. The last lines say what skops does with three files that no fit could have made.
"""

import argparse
import copy
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import TopPush, load, save
from toprank.datasets import load_bundled

try:
    import skops.io as skops_io
except ImportError:
    sys.exit("bench_model_files.py needs skops: pip install skops")


def fitted(**parameters):
    """A pipeline on a bundled set."""
    data = load_bundled("breast_cancer")
    return make_pipeline(StandardScaler(), TopPush(**parameters)).fit(data.X, data.y)


def without_solution(model):
    """A copy that cannot be warm-started."""
    model = copy.deepcopy(model)
    del model[-1]._solution
    return model


def best_times(calls, repetitions):
    """Least milliseconds of CPU time over alternating repetitions."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repetitions):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], 1000 * (time.process_time() - start))
    return best


def compare(name, model, folder, repetitions):
    """One line for each way to write a model."""
    bare, path = without_solution(model), folder / "model.toprank"
    files = {"skops": (model, folder / "model.skops"), "skops, bare": (bare, folder / "bare.skops")}
    save(model, path)
    calls = {("toprank", "save"): lambda: save(model, path), ("toprank", "load"): lambda: load(path)}
    trusted = {}
    for way, (item, file) in files.items():
        skops_io.dump(item, file)
        trusted[way] = skops_io.get_untrusted_types(file=file)
        calls[way, "save"] = lambda item=item, file=file: skops_io.dump(item, file)
        calls[way, "load"] = lambda way=way, file=file: skops_io.load(file, trusted=trusted[way])
    best = best_times(calls, repetitions)
    for way, file in {"toprank": path, **{way: file for way, (_, file) in files.items()}}.items():
        times = f"{best[way, 'save']:8.1f} {best[way, 'load']:8.1f}"
        print(f"{name:8} {way:12} {file.stat().st_size:8} {times}  {', '.join(trusted.get(way, []))}", flush=True)


def crafted(model):
    """What skops makes of wrong states whose types are trusted."""
    trusted = skops_io.get_untrusted_types(data=skops_io.dumps(model))
    wrong = {
        "coef_ of 3 features, not 30": {"coef_": np.zeros((1, 3))},
        "a text as decision_function": {"decision_function": "text"},
        "coef_ of 200 MB of zeros": {"coef_": np.zeros((1, 25_000_000))},
    }
    for title, state in wrong.items():
        other = copy.deepcopy(model)
        vars(other[-1]).update(state)
        content = skops_io.dumps(other, compression=zipfile.ZIP_DEFLATED)
        try:
            found = f"loaded as {type(skops_io.loads(content, trusted=trusted)).__name__}"
        except (ValueError, TypeError) as error:
            found = f"refused: {error}"
        print(f"{title:30} {len(content):8} bytes  {found}")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=30)
    arguments = parser.parse_args()
    print(f"{'model':8} {'file':12} {'bytes':>8} {'save ms':>8} {'load ms':>8}  to be trusted")
    models = {"linear": fitted(), "kernel": fitted(kernel="rbf")}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models.items():
            compare(name, model, Path(folder), arguments.repetitions)
    crafted(models["linear"])


if __name__ == "__main__":
    main()
