"""Two hundred alerts a day: from payments with labels to the lists of the next days.

The payments that come with the package are 100,000 made rows of ten days. Everything is learned and chosen on the first
seven; the last three are scored once, as on working days. With `--cards` the same is done with the real card data, two
days with 284,807 payments of which 492 are fraud (needs TOPRANK_DATA).

Run: python examples/alerts.py [figure.png] [--cards]
"""

import argparse
import os
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
from lightgbm import LGBMClassifier
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, PowerTransformer, StandardScaler

from toprank import DegenerateSolutionWarning, NeymanPearsonClassifier, PatMatNP, TauFPL, TopKClassifier
from toprank.datasets import load, make_payments, write_payments
from toprank.metrics import get_scorer
from toprank.plots import PrecisionAtKDisplay, RocAtTopDisplay

ALERTS = 200


def payments(every=1):
    """The payments that come with the package; the best score is known, so no list can find more than that one.

    `every` thins the honest payments to learn from, for a quick look.
    """
    with tempfile.TemporaryDirectory() as folder:
        train, test = (pl.read_csv(path, try_parse_dates=True) for path in write_payments(folder))
    best = make_payments(random_state=0)[2][len(train) :]
    train = train.filter((pl.col("fraud") == 1) | (pl.int_range(pl.len()) % every == 0))
    day = train["time"].dt.ordinal_day().to_numpy()
    choosing = day > day.max() - 2
    return SimpleNamespace(
        X=train, y=train["fraud"].to_numpy(), X_next=test, y_next=test["fraud"].to_numpy(),
        day=test["time"].dt.ordinal_day().to_numpy(), best=best, features=payment_features(), max_fpr=0.02,
        cv=[(np.flatnonzero(~choosing), np.flatnonzero(choosing))],  # chosen by the last two days
    )  # fmt: skip


def payment_features():
    """The amount without its long tail, medians for gaps, a column of 0 and 1 for each word."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore")
    return make_column_transformer(
        (PowerTransformer(method="box-cox"), ["amount"]),
        (numbers, ["payments_today", "account_age"]),
        (words, ["merchant", "device", "country", "new_device"]),
        sparse_threshold=0,
    )


def cards(every=1):
    """The real card data: a day to learn from, and the next; the time itself is no feature."""
    data = load("creditcard_fraud")
    first = data.X[:, 0] < 24 * 3600
    kept = first & ((data.y == 1) | (np.arange(len(data.y)) % every == 0))
    X, y = data.X[:, 1:].astype(np.float64), data.y
    return SimpleNamespace(
        X=X[kept], y=y[kept], X_next=X[~first], y_next=y[~first], day=np.zeros((~first).sum()), best=None,
        features=StandardScaler(), max_fpr=0.001, cv=StratifiedKFold(3, shuffle=True, random_state=0),
    )  # fmt: skip


def candidates(case):
    """Name: a search over its parameters."""
    products = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler())
    ours = PatMatNP(tau=case.max_fpr, tol=1e-3)
    gaussian = PatMatNP(
        tau=case.max_fpr, tol=1e-3, kernel="rbf", approximation="nystroem", n_components=300, random_state=0
    )
    boosted = LGBMClassifier(learning_rate=0.05, min_child_samples=50, random_state=0, n_jobs=1, verbose=-1)
    C, alpha = {"logisticregression__C": [0.01, 1, 100]}, {"patmatnp__alpha": [1e-2, 1e-3, 1e-4]}
    sizes = {"lgbmclassifier__num_leaves": [4, 8, 31], "lgbmclassifier__n_estimators": [100, 200, 400]}
    models = {
        "logistic regression": ([LogisticRegression(max_iter=1000)], C),
        "LightGBM": ([boosted], sizes),
        "PatMatNP": ([ours], alpha),
        "PatMatNP, Gaussian": ([gaussian], {"patmatnp__gamma": [0.01, 0.02, 0.1], **alpha}),
    }
    if case.best is None:
        models["TauFPL"] = [TauFPL(tau=case.max_fpr, tol=1e-3)], {"taufpl__alpha": [1e-1, 1e-2, 1e-3]}
    else:  # few columns: all products of two are not too many
        models["logistic regression, products"] = [products, LogisticRegression(max_iter=1000)], C
        models["PatMatNP, products"] = [products, ours], alpha
    scorer = get_scorer("tpr_at_fpr", max_fpr=case.max_fpr)
    return {
        name: GridSearchCV(make_pipeline(case.features, *steps), grid, scoring=scorer, cv=case.cv)
        for name, (steps, grid) in models.items()
    }


def scores_of(model, X):
    """Larger is more suspicious."""
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]


def false_alarm_rates(search, case):
    """Of a threshold from half of the honest payments learned from, and of one set anew in the days that follow.

    The latter takes the first quarter of these days; both are measured on the rest.
    """
    early, late = np.split(np.arange(len(case.y_next)), [len(case.y_next) // 4])
    old = NeymanPearsonClassifier(search.best_estimator_, max_fpr=case.max_fpr, random_state=0).fit(case.X, case.y)
    new = NeymanPearsonClassifier(FrozenEstimator(old.estimator_), max_fpr=case.max_fpr)
    new.fit(case.X_next[early], case.y_next[early])
    honest = case.X_next[late[case.y_next[late] == 0]]
    return [float(np.mean(model.predict(honest))) for model in (old, new)]


def main(figure_path, *, real=False, every=1):
    """Print the table and write the figure; returns the fraud found by each model."""
    if real and "TOPRANK_DATA" not in os.environ:
        print("name the folder of the data sets by TOPRANK_DATA to run this example with the card data")
        return {}
    case = cards(every) if real else payments(every)
    y, days = case.y_next, len(np.unique(case.day))
    print(f"to learn from: {len(case.y):,} payments, {case.y.sum()} fraud; days that follow: {days}")
    print(
        f"with {len(y):,} payments, {y.sum()} fraud; {days * ALERTS} alerts; at most {case.max_fpr:.1%} false alarms:"
    )
    print(f"{'':30} {'fraud':>6} {'':>9} {'':>7} {'false alarms, threshold':>24}")
    print(f"{'':30} {'found':>6} {'precision':>9} {'recall':>7} {'before':>13} {'set anew':>10}  chosen")
    scores, found = {}, {}
    for name, search in candidates(case).items():
        with warnings.catch_warnings():
            for category in (ConvergenceWarning, DegenerateSolutionWarning, UserWarning):
                warnings.simplefilter("ignore", category)  # of candidates; the table shows the chosen one
            search.fit(case.X, case.y)
            old, new = false_alarm_rates(search, case)
            scores[name] = scores_of(search, case.X_next)
            lists = TopKClassifier(FrozenEstimator(search.best_estimator_), k=ALERTS).fit(case.X, case.y)
            found[name] = int(y[lists.predict(case.X_next, groups=case.day) == 1].sum())
        rates = found[name] / (days * ALERTS), found[name] / y.sum()
        parameters = ", ".join(f"{key.split('__')[1]}={value}" for key, value in search.best_params_.items())
        print(
            f"{name:30} {found[name]:6} {rates[0]:9.3f} {rates[1]:7.3f} {old:13.2%} {new:10.2%}  {parameters}",
            flush=True,
        )
    if case.best is not None:
        best = sum(y[day][np.argsort(-case.best[day])[:ALERTS]].sum() for day in map(case.day.__eq__, set(case.day)))
        print(f"{'the best that there can be':30} {best:6}")
    draw(y, scores, days * ALERTS, figure_path)
    print(f"figure: {figure_path}")
    return found


def draw(y, scores, alerts, path):
    """Left: recall by false alarms. Right: precision by number of alerts."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for name, values in scores.items():
        RocAtTopDisplay.from_predictions(y, values, name=name, k=alerts, ax=left)
        PrecisionAtKDisplay.from_predictions(y, values, name=name, k=alerts, ax=right)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("figure", nargs="?", type=Path, default=Path("alerts.png"))
    parser.add_argument("--cards", action="store_true", help="the real card data")
    options = parser.parse_args()
    main(options.figure, real=options.cards)
