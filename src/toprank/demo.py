"""The demonstration: what 200 alerts a day find among card payments, against logistic regression and LightGBM.

Run it by ``make demo``, ``toprank demo`` or ``python -m toprank.demo``. It writes the payments that come with the
package as two CSV files, learns from the first seven days, lists the 200 most suspicious payments of each of the next
three, draws what is on these lists, and writes the scores of all models.
"""

from __future__ import annotations

import argparse
import io
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toprank.datasets import make_payments, write_payments
from toprank.persistence.atomic import write_atomically

ALERTS = 200
FOLDER = "toprank-demo"
BEST = "the best list there can be"
OURS = "PatMatNP, Gaussian"


def features() -> Any:
    """What all models see: the amount without its long tail, medians for gaps, a column of 0 and 1 for each word."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler

    numbers = SimpleImputer(strategy="median", add_indicator=True)
    return make_column_transformer(
        (PowerTransformer(method="box-cox"), ["amount"]),
        (make_pipeline(numbers, StandardScaler()), ["payments_today", "account_age"]),
        (OneHotEncoder(), ["merchant", "device", "country", "new_device"]),
        sparse_threshold=0,
    )


def models() -> dict[str, Any]:
    """Models by name, with parameters that were chosen on the first seven days by ``examples/alerts.py``."""
    from sklearn.linear_model import LogisticRegression

    from toprank import PatMatNP

    share = ALERTS / 10_000  # of the payments of a day
    chosen: dict[str, Any] = {"logistic regression": LogisticRegression(max_iter=1000)}
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        sizes: dict[str, Any] = {"n_estimators": 100, "num_leaves": 31, "learning_rate": 0.05, "min_child_samples": 50}
        chosen["LightGBM"] = LGBMClassifier(**sizes, random_state=0, n_jobs=1, verbose=-1)
    chosen["PatMatNP, linear"] = PatMatNP(tau=share)
    chosen[OURS] = PatMatNP(
        tau=share, alpha=1e-4, kernel="rbf", gamma=0.02, approximation="nystroem", n_components=300, random_state=0
    )
    return chosen


def scores_by_model(train: Any, test: Any) -> dict[str, NDArray[Any]]:
    """Scores of the payments to test with, by models that learned from the others; and the best that there can be."""
    made = features().fit(train)
    X, y, X_test = made.transform(train), train["fraud"].to_numpy(), made.transform(test)
    scores = {name: _scores(model.fit(X, y), X_test) for name, model in models().items()}
    return scores | {BEST: make_payments(random_state=0)[2][len(train) :]}


def _scores(model: Any, X: NDArray[Any]) -> NDArray[Any]:
    scores = model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]
    return np.asarray(scores)


def daily_lists(scores: NDArray[Any], day: NDArray[Any], length: int = ALERTS) -> list[NDArray[np.intp]]:
    """Rows of the most suspicious payments of each day, the most suspicious first."""
    days = (np.flatnonzero(day == one) for one in np.unique(day))
    return [rows[np.argsort(-scores[rows], kind="stable")[:length]] for rows in days]


def table(y: NDArray[Any], scores: dict[str, NDArray[Any]], day: NDArray[Any]) -> str:
    """What the lists of each model find, by day and together."""
    dates = [str(one) for one in np.unique(day)]
    total = int(y.sum())
    lines = ["  " + f"{'fraud found':26}" + "".join(f"{date:>12}" for date in dates) + f"{'together':>20}"]
    for name, values in scores.items():
        found = [int(y[rows].sum()) for rows in daily_lists(values, day)]
        together = f"{sum(found)} of {total}"
        lines.append(f"  {name:26}" + "".join(f"{number:12}" for number in found) + f"{together:>20}")
    return "\n".join(lines)


def draw(y: NDArray[Any], scores: dict[str, NDArray[Any]], day: NDArray[Any], path: Path) -> None:
    """Above, the alerts of the first day, a square each; below, what lists of other lengths find. Written as PNG."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [name for name in scores if name not in (BEST, "PatMatNP, linear")]
    with mpl.rc_context({"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}):
        figure: Any = Figure(figsize=(11, 7), layout="constrained")
        FigureCanvasAgg(figure)
        above, below = figure.subfigures(2, 1, height_ratios=[1, 1.25])
        first = np.unique(day)[0]
        above.suptitle(
            f"the {ALERTS} alerts of {first}, a square each: fraud is red, a false alarm is grey", fontsize=11
        )
        for panel, name in zip(above.subplots(1, len(shown)), shown, strict=True):
            _draw_alerts(panel, name, y, daily_lists(scores[name], day)[0], int(y[day == first].sum()))
        _draw_curves(below.subplots(), y, scores, day)
        image = io.BytesIO()
        figure.savefig(image, dpi=110, format="png")
        write_atomically(path, [image.getvalue()])


def _draw_alerts(panel: Any, name: str, y: NDArray[Any], alerts: NDArray[np.intp], frauds: int) -> None:
    """The alerts in lines of 20, the most suspicious first."""
    place = np.arange(len(alerts))
    colours = np.where(y[alerts] == 1, "#c1121f", "#d0d0d0")
    panel.scatter(place % 20, -(place // 20), marker="s", s=95, c=colours, linewidths=0)
    panel.set_title(f"{name}: {int(y[alerts].sum())} of {frauds} frauds", fontsize=11)
    panel.set_aspect("equal")
    panel.set_axis_off()


def _draw_curves(panel: Any, y: NDArray[Any], scores: dict[str, NDArray[Any]], day: NDArray[Any]) -> None:
    """Share of the fraud that is found, by the number of alerts a day."""
    lengths = np.arange(0, 501, 5)
    styles = [":", "-.", (0, (5, 1, 1, 1)), "-", "--"]
    for (name, values), style in zip(scores.items(), styles[-len(scores) :], strict=True):
        lists = daily_lists(values, day, int(lengths[-1]))
        found = [sum(int(y[rows[:length]].sum()) for rows in lists) / y.sum() for length in lengths]
        look = {"color": "0.4", "linewidth": 1.2} if name == BEST else {"linewidth": 2.2}
        panel.plot(lengths, found, linestyle=style, label=name, **look)
    panel.axvline(ALERTS, color="0.7", linewidth=1, zorder=0)
    panel.set(xlim=(0, lengths[-1]), ylim=(0, 1), xlabel="alerts a day", ylabel="share of the fraud that is found")
    panel.legend(loc="lower right", frameon=False)


def main(arguments: list[str] | None = None) -> int:
    """Run the demonstration; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m toprank.demo", description=str(__doc__).splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path(FOLDER), help="where to write the files")
    folder = parser.parse_args(arguments).folder
    missing = [name for name in ("polars", "matplotlib") if not find_spec(name)]
    if missing:
        print(f"{' and '.join(missing)} not installed; in a clone: pip install '.[demo]'")
        return 1
    start = time.perf_counter()
    try:
        train_path, test_path = write_payments(folder)
        _show(train_path, test_path, folder)
    except OSError as error:
        reason = error.__cause__ if isinstance(error.__cause__, OSError) else error
        print(f"{folder} cannot be written ({reason.strerror}); name another folder")
        return 1
    seconds = time.perf_counter() - start
    print(f"figure: {folder / 'alerts.png'}; scores: {folder / 'payments-scores.csv'}; {seconds:.0f} s")
    return 0


def _show(train_path: Path, test_path: Path, folder: Path) -> None:
    import polars as pl

    train, test = (pl.read_csv(path, try_parse_dates=True) for path in (train_path, test_path))
    for title, path, part in (("to learn from", train_path, train), ("to judge by", test_path, test)):
        print(f"{title}: {path}, {len(part):,} payments, {part['fraud'].sum()} of them fraud")
    if not find_spec("lightgbm"):
        print("without LightGBM, which is not installed; in a clone: pip install '.[demo]'")
    y, day = test["fraud"].to_numpy(), test["time"].dt.date().to_numpy()
    scores = scores_by_model(train, test)
    print(f"\n{ALERTS} alerts a day, on three days that no model has seen:\n{table(y, scores, day)}\n")
    others = ", and so does LightGBM" if "LightGBM" in scores else ""
    print(
        "A line cannot tell these frauds from honest travellers and shoppers: the linear PatMatNP is no better than\n"
        f"logistic regression. With a kernel it finds nearly all that can be found{others}.\n"
        "What is disputed later looks like any other payment: nobody finds it."
    )
    draw(y, scores, day, folder / "alerts.png")
    columns = {name.replace(",", "").replace(" ", "_").lower(): values for name, values in scores.items()}
    table_of_scores = test.select("payment", "time", "fraud").with_columns(**columns)
    write_atomically(folder / "payments-scores.csv", [table_of_scores.write_csv().encode()])


if __name__ == "__main__":
    raise SystemExit(main())
