"""The growing of an ensemble, which says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.utils.validation import _num_samples

# Portions of a forest at most, and rows times trees of a portion at least, which take about a second.
_PORTIONS, _LEAST_WORK = 20, 2_000_000
# Forests that grow in portions. By `warm_start` scikit-learn gives each tree the seed that it would have had at once.
# That is so of boosting on histograms too, but each portion would sort the values into their bins anew: a fit of ten
# portions took 2.6 times as long, with weights 6.5 times.
_IN_PORTIONS = (ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor)


def grown(model: Any, X: Any, y: Any, sample_weight: ArrayLike | None, say: Callable[[str], object]) -> Any:
    """The model, fitted; a large forest in portions, between which it is said how many trees there are."""
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    name = type(model).__name__
    if not _grows_in_portions(model):
        say(f"growing {name}")
        return model.fit(X, y, **weights)
    n_trees = model.n_estimators
    step = max(-(-n_trees // _PORTIONS), _LEAST_WORK // max(_num_samples(X), 1), 1)
    model.set_params(warm_start=True)
    for done in range(0, n_trees, step):
        say(f"growing {name}: {done} of {n_trees} trees")
        model.set_params(n_estimators=min(done + step, n_trees)).fit(X, y, **weights)
    return model.set_params(warm_start=False)


def _grows_in_portions(model: Any) -> bool:
    """Whether its trees are the same in portions, at no cost.

    A class of a user may have a `fit` of its own, a number of trees that is none is left to the error of scikit-learn,
    a generator in place of a seed would go on with each portion, `oob_score` would be computed after each, and of class
    weights by a name scikit-learn would warn.
    """
    if type(model) not in _IN_PORTIONS or model.warm_start or model.oob_score:
        return False
    if isinstance(getattr(model, "class_weight", None), str):
        return False
    numbers = (model.n_estimators, model.random_state)
    return all(isinstance(number, int | np.integer) for number in numbers) and model.n_estimators > 0
