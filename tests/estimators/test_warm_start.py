"""Warm starts from a fit of something else: they are starts, not sources of bounds."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from toprank import DegenerateSolutionWarning, PatMatNP, TauFPL, TopPush, TopPushK

pytestmark = pytest.mark.usefixtures("trained_thresholds")
CHANGES = {
    "wider": (TauFPL(tau=0.05), {"tau": 0.5}),
    "narrower": (TauFPL(tau=0.5), {"tau": 0.05}),
    "more": (TopPushK(k=1), {"k": 8}),
    "quantile": (PatMatNP(tau=0.05), {"tau": 0.3}),
}
# The linear form has no pairs for a surrogate quantile.
CASES = [
    (name, kernel, solver)
    for name in CHANGES
    for kernel in ("linear", "rbf")
    for solver in ("pairs", "dual-cd")
    if (name, kernel, solver) != ("quantile", "linear", "pairs")
]


@pytest.mark.parametrize(("name", "kernel", "solver"), CASES)
def test_another_threshold(name, kernel, solver, rng):
    """The old dual point need not be feasible: no bound may come of it, and no error."""
    model, change = CHANGES[name]
    X = rng.standard_normal((60, 3))
    y = np.linalg.norm(X, axis=1) + 0.3 * rng.standard_normal(60) < 1.3
    weights = rng.choice([1.0, 2.0, 5.0], 60)
    common = {"kernel": kernel, "gamma": 0.3, "solver": solver, "alpha": 0.01, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # dual-cd is slow, its bounds hold nevertheless
        warnings.simplefilter("ignore", DegenerateSolutionWarning)
        warm = clone(model).set_params(warm_start=True, **common).fit(X, y)
        warm.set_params(**change).fit(X, y, sample_weight=weights)
        cold = clone(model).set_params(**common | change | {"solver": "low-rank"}).fit(X, y, sample_weight=weights)
    assert warm.dual_objective_ <= cold.objective_ * (1 + 1e-9)
    assert warm.objective_ >= cold.dual_objective_ * (1 - 1e-9)
    if solver == "pairs":
        assert warm.dual_gap_ <= warm.tol


def test_another_kind_of_model_is_no_start(rng):
    X = rng.standard_normal((60, 5))
    y = X[:, 0] + 0.5 * rng.standard_normal(60) > 0.5
    model = TopPush(kernel="rbf", warm_start=True).fit(X, y)
    linear = model.set_params(kernel="linear").fit(X, y)
    np.testing.assert_array_equal(linear.coef_, TopPush().fit(X, y).coef_)
