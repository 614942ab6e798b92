"""What the docstrings of the displays have in common, by the names that stand for it."""

from toprank.ranking.texts import ROWS_TEXTS

TEXTS = ROWS_TEXTS | {
    "model": """estimator : fitted classifier, ranker or pipeline
    What scores the rows.
X : {array-like, sparse matrix, dataframe} of shape (n, n_features)
    Rows to score.
y : array-like of shape (n,)
    Their labels.""",
    "drawing": """ax : matplotlib Axes, optional
    Where to draw; by default on a new figure.
plot_kwargs : dict, optional
    Parameters of `plot`.""",
    "drawn": """Returns
-------
display
    It has been drawn.""",
    "ax": """ax : matplotlib Axes, optional
    Where to draw; by default on a new figure, which pyplot does not know of.""",
    "legend": """legend : str or None, default="auto"
    "above" the axes, a place inside as in matplotlib, or None for no legend. "auto" is "above" in a figure with
    constrained layout, as new ones are, else "best".""",
    "data_and_name": """Build it by `from_estimator` or `from_predictions`.

Parameters
----------
data : {data_class}
    The computed data.
name : str, optional
    Name of the model, for the label of the horizontal axis.""",
    "curves": """Build it by `from_estimator`, `from_predictions` or `from_cv_results`.

Parameters
----------
curves : {data_class} or list of {data_class}
    The curve, or those of the folds.
name : str, optional
    Name in the legend.
test_over_train : float, optional
    For folds: rows of a test part over rows of a training part.
confidence : float, default=0.95
    Confidence of the band.

Other Parameters
----------------
max_fpr : float, optional
    Rule of the computation that chooses the operating point: at most this share of the negatives are alerts.
k : float, optional
    Another such rule: the k best rows are alerts.
threshold : float, optional
    Another such rule: rows with a score above this one are alerts.

Attributes
----------
curves : list of {data_class}
    The computed data.
band : Band or None
    The curve, of folds their mean, with limits.
line_, band_, point_ : matplotlib artists
    The curve, the band and the operating point; the latter two may be None.
{place}""",
    "place": """ax_, figure_ : matplotlib Axes and Figure
    Where it was drawn.""",
}
