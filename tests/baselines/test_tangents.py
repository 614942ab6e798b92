"""The best point between two against a fine grid of points between them."""

import numpy as np
import pytest

from baselines.oracles import two_classes
from toprank.baselines._risk import RiskValue
from toprank.baselines.hinge_pairs import HingePairLoss
from toprank.baselines.svm_map import AveragePrecisionRisk
from toprank.baselines.svm_pauc import PartialAUCRisk
from toprank.baselines.tangents import Way
from toprank.pairwise.graph import Preferences

X, Y, _ = two_classes(60, 4)
PREFERENCES = Preferences(Y, np.tri(2, k=-1), np.ones(60), np.empty((0, 2), int), np.empty(0))
RISKS = {
    "highest negative": PartialAUCRisk(Y == 1, np.ones(60), 0.0, None),
    "range": PartialAUCRisk(Y == 1, np.ones(60), 0.1, 0.4),
    "average precision": AveragePrecisionRisk(Y == 1, np.ones(60)),
    "pairs": HingePairLoss(PREFERENCES, squared=False),
}


def way_between(risk, alpha, old, new):
    return Way(risk, alpha, X @ old, X @ new, (old @ old, old @ new, new @ new))


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize("name", RISKS)
def test_little_of_the_gain_is_left(name, alpha, rng):
    risk, shares = RISKS[name], np.linspace(0, 1, 501)
    for scale in (0.1, 1.0, 10.0):
        old, new = rng.normal(size=4) / 5, scale * rng.normal([0, 0, 1, 1])
        way = way_between(risk, alpha, old, new)
        found = way.best(risk(X @ old))
        points = [old + share * (new - old) for share in shares]
        values = [alpha / 2 * w @ w + risk(X @ w).value for w in points]
        at_found = old + found.share * (new - old)
        assert found.value == pytest.approx(alpha / 2 * at_found @ at_found + risk(X @ at_found).value, rel=1e-9)
        assert found.value - min(values) <= 0.11 * (values[0] - min(values)) + 1e-9


def test_looks_end_where_the_objective_falls_all_the_way_or_nowhere(rng):
    calls = []

    def risk(scores):
        calls.append(scores)
        return RiskValue(float(scores @ scores), 2 * scores)

    away = rng.normal(size=4)
    assert way_between(risk, 0.1, away, 0.5 * away).best(risk(X @ away)).share == 1.0
    assert way_between(risk, 0.1, away, 2 * away).best(risk(X @ away)).share == 0.0
    assert len(calls) == 4
