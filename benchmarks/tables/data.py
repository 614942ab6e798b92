"""Data of the experiments: the papers' tasks, bundled sets for tests, scalings, and where a trial divides the rows."""

from functools import lru_cache

import numpy as np
from scipy.sparse import issparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler

from toprank.datasets import load_bundled, load_task

SCALINGS = {
    "raw": FunctionTransformer(),
    "standardised": StandardScaler(),
    "−1 to 1": MinMaxScaler((-1, 1)),
    "0 to 1": MinMaxScaler(),
    "rows": Normalizer(),
    "largest": MaxAbsScaler(),
    "tf-idf": TfidfTransformer(),
}


@lru_cache(maxsize=2)
def read_task(name):
    """X as dense float64 or CSR, y as 0 and 1: a task of the data folder, or a set of scikit-learn."""
    if name == "breast_cancer":
        data = load_bundled(name)
        return data.X, data.y
    data = load_task(name)
    X = data.X.tocsr() if issparse(data.X) else data.X
    return X.astype(np.float64), np.asarray(data.y).astype(int)


def usual_scaling(name, X):
    """Standardised where dense; counts of words as tf-idf; columns of other sparse sets divided by their largest."""
    if not issparse(X):
        return "standardised"
    return "tf-idf" if name == "20newsgroups" else "largest"


def scaled(scaling, X, train, *others):
    """Rows of X, scaled by those of the training part."""
    scaler = SCALINGS[scaling].fit(X[train])
    return [scaler.transform(X[rows]) for rows in (train, *others)]
