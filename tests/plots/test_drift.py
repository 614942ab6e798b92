"""The display of the drift of scores."""

import numpy as np

from toprank.plots import DriftDisplay


def test_the_curves_cross_the_threshold_at_the_two_rates():
    random = np.random.default_rng(0)
    before, now = random.normal(-2, size=4000), random.normal(-1.5, size=3000)
    display = DriftDisplay.from_scores(before, now, threshold=0.25)
    for line, scores in zip(display.lines_, (before, now), strict=True):
        x, y = line.get_data()
        assert np.all(np.diff(x) > 0)
        assert np.all(np.diff(y) < 0)
        at = y[np.searchsorted(x, 0.25, side="right") - 1]
        assert at == (scores > 0.25).mean()
    assert display.line_.get_xdata()[0] == 0.25
    assert display._repr_png_().startswith(b"\x89PNG")
    assert "p = " in display.line_.get_label()


def test_few_scores_and_equal_scores_can_be_drawn():
    DriftDisplay.from_scores([0.5], [-0.5, 1.0])
    DriftDisplay.from_scores(np.zeros(10), np.zeros(20))
