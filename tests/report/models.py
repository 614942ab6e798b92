"""Models and lists for the tests of the report."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class FirstColumn(ClassifierMixin, BaseEstimator):
    """The first column is the score, whatever was learned."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


def ranked_rows(n, *, ties=False, dtype=np.float64, seed=0):
    """Labels and scores that are better than chance; with ties there are few distinct scores."""
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.12).astype(int)
    y[:2] = 0, 1
    scores = random.normal(size=n) + 1.6 * y
    if ties:
        scores = np.round(2 * scores) / 2
    return y, scores.astype(dtype)


def model_and_rows(y, scores):
    X = np.column_stack([scores, np.zeros_like(scores)])
    return FirstColumn().fit(X, y), X


def cut_by_precision(y, scores, least):
    """Positives and negatives above the lowest threshold with enough precision, by trying all; None without one."""
    for score in np.unique(scores):
        taken = scores >= score
        if np.mean(y[taken] == 1) >= least * (1 - 1e-12):
            return np.sum(y[taken] == 1), np.sum(y[taken] != 1)
    return None
