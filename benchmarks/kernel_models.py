"""The models and the Fashion-MNIST parts of the kernel paper, and a factor of a kernel matrix."""

import numpy as np
from sklearn.model_selection import train_test_split

from toprank import PatMatNP, TopPush, TopPushK
from toprank.datasets import binarize, load, split_half_quarters


def paper_models(y):
    """The six rows of Table 3; its Pat&Mat has the quantile τ N / n of the negatives."""
    per_negative = len(y) / np.count_nonzero(y == 0)
    return {
        "TopPush": TopPush(),
        **{f"TopPushK K={k}": TopPushK(k=k) for k in (5, 10)},
        **{f"Pat&Mat {tau}": PatMatNP(tau=tau * per_negative, beta=1.0) for tau in (0.01, 0.05, 0.1)},
    }


def fashion_parts(n_train=50_000, draw=0):
    """Training, validation and test part, pixels in [0, 1] as float32: the division of the paper.

    Of the training part as many random rows as are asked for; `draw` is the seed of their choice.
    """
    data = load("fashion-mnist")
    y = binarize(data.y, positive=0)
    X = data.X.astype(np.float32) / np.float32(255)
    train, validation, test = split_half_quarters(y, n_train=data.n_train, random_state=0)
    if n_train < len(train):
        train = train_test_split(train, train_size=n_train, stratify=y[train], random_state=draw)[0]
    return [(X[part], y[part]) for part in (train, validation, test)]


def exact_factor(K):
    """Φ with ΦΦᵀ = K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))
