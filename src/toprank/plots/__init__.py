"""Displays of the top of a list, in the manner of scikit-learn.

``from_estimator(model, X, y)``, ``from_predictions(y, score)`` and, for curves, ``from_cv_results(...)`` of a display
compute and draw; ``plot(ax=...)`` draws once more. The computed data are dataclasses of arrays, without matplotlib. A
display without `ax` makes a figure of its own, unknown to pyplot: a notebook shows the display, a script calls
``display.figure_.savefig(...)``. No setting of matplotlib is changed.
"""

from toprank.plots.convergence import ConvergenceDisplay, ConvergenceTrace
from toprank.plots.densities import ScoreDensityDisplay, ScoreHistogram
from toprank.plots.drift import DriftDisplay
from toprank.plots.neyman_pearson import NeymanPearsonBand, NeymanPearsonDisplay
from toprank.plots.roc import RocAtTopDisplay
from toprank.plots.top_of_list import GainDisplay, LiftDisplay, PrecisionAtKDisplay, PrecisionRecallAtTopDisplay
from toprank.ranking.curves import GainCurve, LiftCurve, PrecisionAtKCurve, PrecisionRecallCurve, RocCurve
from toprank.ranking.drift import ScoreDrift, ScoreSample
from toprank.ranking.ranked_list import OperatingPoint, RankedList
from toprank.ranking.thinning import thin

__all__ = [
    "ConvergenceDisplay",
    "ConvergenceTrace",
    "DriftDisplay",
    "GainCurve",
    "GainDisplay",
    "LiftCurve",
    "LiftDisplay",
    "NeymanPearsonBand",
    "NeymanPearsonDisplay",
    "OperatingPoint",
    "PrecisionAtKCurve",
    "PrecisionAtKDisplay",
    "PrecisionRecallAtTopDisplay",
    "PrecisionRecallCurve",
    "RankedList",
    "RocAtTopDisplay",
    "RocCurve",
    "ScoreDensityDisplay",
    "ScoreDrift",
    "ScoreHistogram",
    "ScoreSample",
    "thin",
]
