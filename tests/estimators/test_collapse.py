"""A model that gains nothing over w = 0 but rounding is w = 0, and says so."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from toprank import DegenerateSolutionWarning, PatMat, PatMatNP, TauFPL, TopPushK


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("surrogate", ["quadratic", "hinge", "huber", "logistic", "exponential"])
def test_rows_that_are_all_alike(surrogate, kernel):
    X, y = np.full((19, 1), -3.7), np.arange(19) % 3 == 0
    for model in (PatMat(0.1, 1.0), PatMatNP(0.1, 1.0), TauFPL(0.2)):
        with pytest.warns(DegenerateSolutionWarning):
            model.set_params(surrogate=surrogate, kernel=kernel, alpha=1e-3).fit(X, y)
        np.testing.assert_array_equal(model._solution.coef, 0.0)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("surrogate", ["logistic", "exponential"])
def test_low_rank_in_single_precision_is_stored_as_well_as_it_is_solved(surrogate, storage):
    """What is stored is w = Xᵀc, so c itself, of large entries that cancel, must not be rounded before."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((60, 6)) * 10.0 ** np.arange(-3, 3)).astype(np.float32)
    y = X[:, 0] * 1e3 + rng.standard_normal(60) > 0.5
    for model in (TopPushK(5), PatMat(0.2, 1.0)):
        model.set_params(solver="low-rank", surrogate=surrogate, alpha=1e-3)
        single = model.fit(storage(X), y).objective_
        w = model.coef_[0].astype(np.float64)
        scores = X.astype(np.float64) @ w
        loss = model._formulation().evaluate(scores, y, np.ones(60))[0]
        assert single == pytest.approx(0.5e-3 * w @ w + loss, rel=1e-3)
        assert single == pytest.approx(model.fit(X.astype(np.float64), y).objective_, rel=2e-4)


def test_a_kernel_whose_large_weights_cancel_does_not_hide_a_collapse():
    """Three positives and a negative are the same row: weights of 1e4 cancel to a gain of 1e-10, which is rounding."""
    row, other = [1.0989851, -0.20346662, -1.0187703], [-1.2638055, 1.0958457, 0.028366474]
    X, y = csr_array(np.array([row, other, other, row, row, row], np.float32)), np.array([1, 0, 0, 1, 1, 0])
    alpha, tau, gamma = 7.227471883497274e-05, 0.00777064184740554, 71.98592267215211
    model = TauFPL(tau, alpha=alpha, surrogate="huber", kernel="rbf", gamma=gamma, tol=1e-6)
    with pytest.warns(DegenerateSolutionWarning):
        model.fit(X, y)
    assert not model.dual_coef_.any()
