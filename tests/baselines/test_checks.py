"""The checks of scikit-learn: one estimator of each base in the default suite, all others as slow tests."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank.baselines import (
    AATP,
    OWPC,
    SVMMAP,
    CostSensitive,
    InfinitePush,
    PNormPush,
    RankBoost,
    RankNet,
    RankSVM,
    SVMpAUC,
)

# The checks compare models to 1e-7, so an optimum has to be found that exactly, or as far as rounding errors let it.
# Some of their labels are 1 and 2, and some of their classes cannot be told apart.
pytestmark = [
    pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning"),
    pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@parametrize_with_checks(
    [
        RankBoost(n_estimators=2),
        RankSVM(tol=1e-14, alpha=1.0, loss="squared_hinge"),
        SVMpAUC(max_fpr=1.0, tol=1e-10, alpha=1.0),
    ]
)
def test_one_of_each_base(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        AATP(max_candidates=2, tau=0.3, alpha=1.0, tol=1e-10),
        CostSensitive(loss="logistic", tol=1e-9),
        InfinitePush(tol=1e-12, alpha=0.01),
        InfinitePush(penalty="l1", tol=1e-9, alpha=0.01),
        OWPC(tol=1e-12),
        PNormPush(surrogate="hinge", tol=1e-12, alpha=1.0),
        RankNet(hidden_units=0, alpha=0.1, tol=1e-15),
        RankNet(hidden_units=2, max_iter=2),
        RankSVM(tol=1e-12, alpha=0.1),
        SVMMAP(tol=1e-6, alpha=0.01),
    ]
)
def test_all_others(estimator, check):
    check(estimator)
