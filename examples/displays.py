"""All displays on one page: the digit 8 among 1797 images, found at the top of a list.

Two models score held-out images: one trained for the top of the list, with a Gaussian kernel, and logistic regression,
which is linear. The last panel shows three solvers on the same linear problem. Nothing is downloaded; the images come
with scikit-learn.

Run: python examples/displays.py [figure.png]
"""

import sys
from pathlib import Path

from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import TauFPL
from toprank.datasets import binarize, load_bundled
from toprank.plots import (
    ConvergenceDisplay,
    GainDisplay,
    LiftDisplay,
    NeymanPearsonDisplay,
    PrecisionAtKDisplay,
    PrecisionRecallAtTopDisplay,
    RocAtTopDisplay,
    ScoreDensityDisplay,
)

MAX_FPR = 0.02
ALERTS = 60


def fitted_models(X, y):
    """Name: fitted pipeline."""
    models = {"TauFPL": TauFPL(tau=MAX_FPR, alpha=0.01, kernel="rbf"), "logistic": LogisticRegression(C=0.01)}
    return {name: make_pipeline(StandardScaler(), model).fit(X, y) for name, model in models.items()}


def draw_curves(axes, models, X, y):
    """The displays that hold several models, one for each axes."""
    rules = [
        (RocAtTopDisplay, {"max_fpr": MAX_FPR}),
        (PrecisionAtKDisplay, {"k": ALERTS}),
        (PrecisionRecallAtTopDisplay, {"max_fpr": MAX_FPR}),
        (GainDisplay, {"k": ALERTS}),
        (LiftDisplay, {"k": ALERTS}),
    ]
    displays = {}
    for ax, (display, rule) in zip(axes, rules, strict=True):
        for name, model in models.items():
            displays[display.__name__, name] = display.from_estimator(model, X, y, name=name, ax=ax, **rule)
    return displays


def draw_convergence(ax, X, y):
    """The gap of three solvers by passes over the data."""
    X = StandardScaler().fit_transform(X)
    solved = {
        name: TauFPL(tau=MAX_FPR, alpha=1, tol=1e-2, solver=name).fit(X, y) for name in ("apg", "newton", "pairs")
    }
    return ConvergenceDisplay.from_estimators(solved, ax=ax, plot_kwargs={"x": "passes", "xscale": "log"})


def main(path):
    """Fit, draw, print; returns the displays by class and model."""
    data = load_bundled("digits")
    y = binarize(data.y, positive=8)
    X_train, X_test, y_train, y_test = train_test_split(data.X, y, test_size=0.5, stratify=y, random_state=0)
    models = fitted_models(X_train, y_train)
    figure = Figure(figsize=(11, 9), layout="constrained")
    axes = figure.subplots(3, 3).ravel()
    displays = draw_curves(axes[:5], models, X_test, y_test)

    folds = cross_validate(
        make_pipeline(StandardScaler(), TauFPL(tau=MAX_FPR, alpha=0.01, kernel="rbf")),
        data.X,
        y,
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        return_estimator=True,
        return_indices=True,
    )
    displays["folds"] = RocAtTopDisplay.from_cv_results(folds, data.X, y, name="TauFPL", ax=axes[5], max_fpr=MAX_FPR)

    top = models["TauFPL"]
    displays["densities"] = ScoreDensityDisplay.from_estimator(top, X_test, y_test, name="TauFPL", ax=axes[6])
    displays["band"] = NeymanPearsonDisplay.from_estimator(
        top, X_test, y_test, name="TauFPL", ax=axes[7], max_fpr=MAX_FPR
    )
    displays["convergence"] = draw_convergence(axes[8], X_train, y_train)
    figure.savefig(path, dpi=110)

    for name in models:
        point = displays["RocAtTopDisplay", name].curves[0].point
        print(f"{name:9} finds {point.recall:.1%} of the eights with {point.fpr:.1%} false alarms")
    print(f"figure: {path}")
    return displays


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "displays.png"))
