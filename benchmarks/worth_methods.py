"""The methods of `worth_at_the_top.py`: estimators, the grids over which they are tuned, and how they score."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from catboost import CatBoostClassifier
from lightgbm import LGBMClassifier
from low_rates import raw_scores
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from xgboost import XGBClassifier

from toprank import PatMatNP, TauFPL, TopBlend, TopForest

# Of all ensembles, and of forests while they are tuned.
TREES, FEWER = 300, {"n_estimators": 100}
# Times one over the number of features.
GAMMAS = (0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Method:
    """An estimator for a seed, and the points that tuning compares for d features; none if nothing is tuned."""

    estimator: Callable[[int], Any]
    points: Callable[[int], list[dict[str, Any]]] = field(default=lambda d: [])
    # What is different while it is tuned.
    tuning: dict[str, Any] = field(default_factory=dict)


def crossed(**values):
    """All combinations."""
    points = [{}]
    for name, choices in values.items():
        points = [point | {name: choice} for point in points for choice in choices]
    return points


def scaled(model):
    """On standardised features."""
    return Pipeline([("scale", StandardScaler()), ("model", model)])


def extra_trees(seed):
    """Extremely randomised trees, all else as scikit-learn has it."""
    return ExtraTreesClassifier(TREES, random_state=seed)


def random_forest(seed):
    """A random forest, all else as scikit-learn has it."""
    return RandomForestClassifier(TREES, random_state=seed)


def lightgbm(seed):
    """Gradient boosting of as many trees as the others have."""
    return LGBMClassifier(n_estimators=TREES, subsample_freq=1, n_jobs=1, verbose=-1, random_state=seed)


def lightgbm_default(seed):
    """Gradient boosting as LightGBM has it."""
    return LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed)


def xgboost(seed):
    """Gradient boosting of as many trees as the others have."""
    return XGBClassifier(n_estimators=TREES, n_jobs=1, random_state=seed)


def catboost(seed):
    """Gradient boosting, all but the number of trees as CatBoost has it."""
    return CatBoostClassifier(
        iterations=TREES, thread_count=1, verbose=False, allow_writing_files=False, random_seed=seed
    )


def logistic(seed):
    """Logistic regression on standardised features."""
    return scaled(LogisticRegression(max_iter=2000))


def svc(seed):
    """The usual SVM with Gaussian kernel."""
    return scaled(SVC(cache_size=500))


def kernel_of(model):
    """The exact Gaussian kernel of a method, on standardised features."""
    return lambda seed: scaled(model(kernel="rbf", tol=1e-3))


def members(seed):
    """What is stacked and blended; nothing of it is tuned."""
    return [
        ("extra_trees", extra_trees(seed)),
        ("random_forest", random_forest(seed)),
        ("lightgbm", lightgbm_default(seed)),
        ("logistic", logistic(seed)),
    ]


def many_features(d):
    """A share of features for each split that is well above the square root of their number."""
    return 0.3 if d <= 200 else 0.1


def forest_points(d):
    """Four: sizes of leaves, and more features a split."""
    return crossed(min_samples_leaf=[1, 3, 10]) + crossed(min_samples_leaf=[3], max_features=[many_features(d)])


def lightgbm_points(d):
    """Twelve: size, learning rate, sampling of rows and features."""
    size = {"num_leaves": [7, 31], "learning_rate": [0.03, 0.1]}
    plain = crossed(**size)
    sampled = crossed(**size, min_child_samples=[5, 20], subsample=[0.7], colsample_bytree=[0.7])
    return plain + sampled


def xgboost_points(d):
    """Six: depth, learning rate, sampling of rows and features."""
    sampled = crossed(max_depth=[3, 6], learning_rate=[0.03, 0.1], subsample=[0.7], colsample_bytree=[0.7])
    return crossed(max_depth=[3, 6], learning_rate=[0.1]) + sampled


def catboost_points(d):
    """Four: depth and learning rate; two of many features, for which a fit takes half a minute."""
    return crossed(depth=[4, 6] if d <= 200 else [4], learning_rate=[0.03, 0.1])


def kernel_points(d):
    """Nine: penalty and width."""
    return crossed(model__alpha=[1e-1, 1e-2, 1e-3], model__gamma=[factor / d for factor in GAMMAS])


# What matters most comes first: the queue of the runs has this order.
METHODS = {
    "LightGBM": Method(lightgbm, lightgbm_points),
    "ExtraTrees": Method(extra_trees, forest_points, FEWER),
    "ExtraTrees default": Method(extra_trees),
    "LightGBM default": Method(lightgbm_default),
    "RandomForest": Method(random_forest, forest_points, FEWER),
    "XGBoost": Method(xgboost, xgboost_points),
    "CatBoost default": Method(catboost),
    "CatBoost": Method(catboost, catboost_points),
    "logistic regression": Method(logistic, lambda d: crossed(model__C=np.logspace(-4, 3, 8).tolist())),
    "StackingClassifier": Method(
        lambda seed: StackingClassifier(
            members(seed),
            final_estimator=LogisticRegression(),
            cv=StratifiedKFold(5, shuffle=True, random_state=seed),  # rows of some sets are in the order of time
        )
    ),
    "TopForest": Method(lambda seed: TopForest(random_state=seed)),
    "TopForest tuned": Method(
        lambda seed: TopForest(random_state=seed),
        lambda d: crossed(min_samples_leaf=[3, 10], max_features=["sqrt", many_features(d)]),
        FEWER,
    ),
    "TopBlend": Method(lambda seed: TopBlend(members(seed), random_state=seed)),
    "SVC": Method(
        svc, lambda d: crossed(model__C=[0.1, 10.0, 1000.0], model__gamma=[factor / d for factor in GAMMAS])
    ),
    "linear TauFPL": Method(
        lambda seed: scaled(TauFPL(tol=1e-3)),
        lambda d: crossed(model__alpha=np.logspace(0, -3, 4).tolist(), model__tau=[0.01, 0.1]),
    ),
    "kernel PatMatNP": Method(kernel_of(PatMatNP), kernel_points),
    "kernel TauFPL": Method(kernel_of(TauFPL), kernel_points),
}  # fmt: skip


def top_scores(model, X):
    """Scores of rows, before they are squeezed into probabilities where a model can say them: no ties at the top."""
    if isinstance(model, XGBClassifier):
        return model.predict(X, output_margin=True)
    if isinstance(model, CatBoostClassifier):
        return model.predict(X, prediction_type="RawFormulaVal")
    return raw_scores(model, X)
