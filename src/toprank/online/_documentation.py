"""The parts of the docstrings that the online rankers share."""

SHARED_TEXT = {
    "buffers": """\
buffer_size : int or pair of int, default=50
    Number of rows to keep of each class; a pair is (of the negative class, of the positive class).""",
    "threshold": """\
max_fpr : float, optional
    What the threshold of `predict` is for. A share: a false positive rate of at most this. None: the least mean of
    the error rates of both classes.
threshold_window : int, default=1000
    The threshold is taken from the scores of so many rows of each class, the latest ones, each scored before the
    model learned from it; as long as there are fewer than twice as many, from the later half of them. For `max_fpr`
    it is the ⌈(1 − max_fpr)(n + 1)⌉-th smallest of n negative scores: if the next negative is exchangeable with
    them, it is above with probability max_fpr at most. That needs n + 1 ≥ 1 / max_fpr; until then it is the highest of
    them. A model that still changes, or a drift, makes old scores differ from new ones: then it is an estimate, without
    a guarantee.
{pos_label}""",
    "attributes": """\
coef_ : ndarray of shape (1, n_features)
    The direction w.
intercept_ : ndarray of shape (1,)
    Minus the threshold.
threshold_ : float
    Scores ``X @ w`` above it are predicted positive; 0 as long as no row tells anything about it.
classes_ : ndarray of shape (2,)
    The two classes, the positive one last.
n_samples_seen_ : int
    Number of rows learned from.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Names of the features, if X had names.""",
}
