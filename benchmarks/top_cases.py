"""What several benchmarks share: sets, scaled or raw, as X and a boolean y, and the clock."""

import time
import warnings

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from toprank.datasets import binarize, load, load_task

SMALL = ("ionosphere", "heart", "german", "australian", "diabetes", "ecoli", "yeast", "oil_spill")


def load_case(name):
    """A task as CSR or dense float64; of fashion-mnist the official training part, 0 against the rest."""
    if name == "fashion-mnist":
        data = load(name)
        return data.X[: data.n_train].astype(np.float64), binarize(data.y[: data.n_train], positive=0) == 1
    data = load_task(name)
    X = data.X.tocsr() if issparse(data.X) else data.X
    return X.astype(np.float64), data.y == 1


def scaled(X):
    """Standardised where dense, divided by the largest absolute value of each column where sparse."""
    return MaxAbsScaler().fit_transform(X) if issparse(X) else StandardScaler().fit_transform(X)


def fit(model, X, y):
    """Fit without warnings; what they would say is in the tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def fit_seconds(model, X, y):
    """Seconds of a fit."""
    start = time.perf_counter()
    fit(model, X, y)
    return time.perf_counter() - start
