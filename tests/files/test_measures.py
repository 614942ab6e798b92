"""Measures against counting by hand."""

import numpy as np
import pytest
from scipy.stats import binomtest

from toprank.cli.describing import measures_text
from toprank.files.measures import measure
from toprank.metrics import positives_at_top, precision_at_k, tpr_at_fpr, wmw_score
from toprank.plain_data import plain


@pytest.mark.parametrize("seed", [0, 1])
def test_measures_are_counts(seed):
    random = np.random.default_rng(seed)
    y = (random.random(300) < 0.2).astype(int)
    scores = np.round(random.normal(size=300) + y, 1)  # with ties
    found = measure(y, scores, ks=(10, 5000), rates=(0.05,), confidence=0.9)
    values = {one.name: one.value for one in found.values}
    above, positive = scores > 0, y == 1
    assert (found.alerts, found.caught, found.positives) == (above.sum(), (above & positive).sum(), positive.sum())
    assert values == pytest.approx(
        {
            "precision": (above & positive).sum() / above.sum(),
            "tpr": (above & positive).sum() / positive.sum(),
            "fpr": (above & ~positive).sum() / (~positive).sum(),
            "precision_at_10": precision_at_k(y, scores, k=10),
            "positives_at_top": positives_at_top(y, scores),
            "tpr_at_fpr_0.05": tpr_at_fpr(y, scores, max_fpr=0.05),
            "auc": wmw_score(y, scores),
        }
    )
    limits = binomtest(int((above & ~positive).sum()), int((~positive).sum())).proportion_ci(0.9, "exact")
    (fpr,) = (one for one in found.values if one.name == "fpr")
    assert (fpr.lower, fpr.upper) == pytest.approx(tuple(limits))
    assert "90 % interval" in measures_text(plain(found.record()))
    assert found.record()["false_alarms"] == (above & ~positive).sum()


def test_without_alerts_there_is_no_precision():
    found = measure(np.array([0, 1, 0, 1]), np.array([-1.0, -2.0, -3.0, -4.0]))
    assert np.isnan(found.values[0].value)
    assert "0 of 4 rows are above the threshold" in measures_text(plain(found.record()))
