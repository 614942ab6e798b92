"""The judge of the hunt finds what it is there to find."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hunt import judge as judging
from hunt.problems import Case, draw
from hunt.references import coefficients_of, objective_of, point_of_reference
from toprank import PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK, WMWRanker

MODELS = [
    TopPush(tol=1e-6),
    TopPushK(2, surrogate="hinge", tol=1e-6),
    TauFPL(0.2, surrogate="logistic", tol=1e-6),
    TopMeanK(0.6, surrogate="huber", kernel="rbf", gamma=0.5, tol=1e-6),
    PatMatNP(0.2, 1.0, surrogate="exponential", tol=1e-6),
    PatMatNP(0.2, 1.0, kernel="poly", degree=2, coef0=1.0, tol=1e-6),
    WMWRanker(),
]


def ordinary(estimator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(40) > 0.5
    return Case(0, X, y, rng.integers(1, 4, 40).astype(float), estimator)


@pytest.mark.parametrize("estimator", MODELS, ids=lambda model: type(model).__name__)
def test_library_and_references_agree(estimator):
    case = ordinary(estimator)
    fitted = clone(estimator).fit(case.X, case.y, case.weights)
    objective = objective_of(case, fitted)
    own = objective(coefficients_of(case, fitted))
    assert own == pytest.approx(fitted.objective_, rel=1e-9)
    assert objective(point_of_reference(case, objective)) == pytest.approx(own, rel=1e-5)


def sins(lower=0.5, stated=1.0, own=1.0, best=1.0, at_zero=2.0, warned=()):
    """What the judge says of a model with these values."""
    case = ordinary(TopPush())
    fitted = clone(case.estimator)
    fitted.dual_objective_, fitted.objective_ = lower, stated
    verdict = judging.Verdict(0, "", ())
    judging._compare(case, fitted, list(warned), np.array([at_zero, own, best]), verdict)
    return list(verdict.sins)


def test_each_sin_is_seen():
    assert sins() == []
    assert sins(lower=1.00001) == ["false certificate"]
    assert sins(stated=1.01) == ["wrong objective", "false optimum"]
    assert sins(best=0.9) == ["false optimum"]
    assert sins(best=0.9, warned=[ConvergenceWarning]) == []
    assert sins(at_zero=1.0) == ["silent collapse"]


@pytest.mark.parametrize("error", [np.linalg.LinAlgError("raw"), ValueError("of another library")])
def test_raw_errors_are_seen(error, monkeypatch):
    def fit(*_, **__):
        raise error

    case = ordinary(TopPush())
    monkeypatch.setattr(case.estimator, "fit", fit)
    verdict = judging.Verdict(0, "", ())
    judging._fit(case, case.estimator, verdict)
    assert list(verdict.sins) == ["raw error"]


def test_a_seed_is_a_case():
    first, second = draw(5), draw(5)
    assert str(first) == str(second)
    np.testing.assert_array_equal(first.dense, second.dense)


@pytest.mark.parametrize("seed", [5550130, 6661076, 6661892, 7770052, 7771846, 8880273, 8880851])
def test_what_a_hunt_has_found_is_mended(seed):
    assert judging.judge(seed).sins == {}
