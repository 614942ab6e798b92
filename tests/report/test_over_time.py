"""What the page says of alerts a day, amounts and drift."""

import numpy as np
import pytest

from toprank import NeymanPearsonClassifier, PatMatNP
from toprank.datasets import make_imbalanced
from toprank.files.alerts_per_period import AlertsPerPeriod
from toprank.files.times import Times
from toprank.plots import ScoreDrift
from toprank.report import build_report


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = make_imbalanced(4000, separation=3.0, random_state=0)
    return NeymanPearsonClassifier(PatMatNP(), max_fpr=0.05, random_state=0).fit(X[:2000], y[:2000]), X[2000:], y[2000:]


def test_all_three_are_on_the_page(fitted):
    model, X, y = fitted
    scores, seconds = model.decision_function(X), np.arange(2000) * 600.0
    per_period = AlertsPerPeriod.of(Times(seconds, "t"), "day", y, scores > 0)
    drift = ScoreDrift.of(scores[y == 0] - 0.5, scores[y == 0])
    amounts = np.random.default_rng(0).exponential(10, 2000)
    page = build_report(model, X, y, per_period=per_period, drift=drift, amounts=amounts, n_top_rows=0)
    assert "Alerts over time, amount found, drift" in page
    assert f"{per_period.mean:,.1f} alerts a day on average" in page
    assert 'id="figure-drift"' in page
    assert 'id="figure-alerts-over-time"' in page
    assert "since the fit" in page
    found = round(amounts[(scores > 0) & (y == 1)].sum())
    assert f"is found, {found:,} of {round(amounts[y == 1].sum()):,}" in page


def test_nothing_known_is_nothing_said(fitted):
    model, X, y = fitted
    page = build_report(model, X, y, n_top_rows=0)
    assert 'id="time"' not in page
    alone = build_report(model, X, y, n_top_rows=0, amounts=np.zeros(2000))
    assert "The positives have no amount." in alone
    with pytest.raises(ValueError, match="amounts"):
        build_report(model, X, y, amounts=np.zeros(3))
