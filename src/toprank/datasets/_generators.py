"""Made data with a known answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toprank.checks import require_count, require_number, require_share
from toprank.datasets._labels import discretize
from toprank.docstrings import documented

if TYPE_CHECKING:
    from numpy.random import RandomState

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TEXTS = {
    "levels": """n_levels : int, default=6
    Number of levels.
random_state : int, RandomState or None
    Seed.

Returns
-------
X : ndarray of shape (n_samples, n_features)
    Inputs.
y : ndarray of int64 of shape (n_samples,)
    Levels 0, ..., n_levels - 1.
scores : ndarray of shape (n_samples,)
    The values f(x): ranking by them orders every pair of levels rightly (WMW statistic 1).""",
}


def make_outlier(n_per_class: int = 1000, *, random_state: Any = None) -> tuple[Floats, Ints]:
    r"""Two separable squares and one negative far on the positive side.

    `n_per_class` negatives are uniform on :math:`[-1, 0] \times [-1, 1]`, as many positives are
    uniform on :math:`[0, 1] \times [-1, 1]`, and one more negative lies at :math:`(2, 0)`. Without
    this outlier the direction :math:`w = (1, 0)` separates the classes.

    Parameters
    ----------
    n_per_class : int, default=1000
        Number of negatives besides the outlier, and of positives.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    X : ndarray of shape (2 * n_per_class + 1, 2)
        First the negatives, then the positives, and the outlier as the last row.
    y : ndarray of int64 of shape (2 * n_per_class + 1,)
        1 for positives, 0 for negatives.

    Notes
    -----
    The example is that of Macha's general framework for classification at the top (section 3.2.4).
    With the hinge :math:`\max(0, 1 + s)`, no penalty, many rows and :math:`\tau \le 1/2`, the
    threshold t and the objective f of the formulations are

    ===========  ================  =========  ================  =========
    formulation  t at (0, 0)       f          t at (1, 0)       f
    ===========  ================  =========  ================  =========
    TopPush      0                 1          2                 0.5 + t
    TopPushK     0                 1          2 / k             0.5 + t
    TopMeanK     0                 1          1 - tau           0.5 + t
    Pat&Mat      (1 - tau) / beta  1 + t      (1 - tau) / beta  0.5 + t
    Grill        0                 2          1 - 2 tau         see below
    ===========  ================  =========  ================  =========

    So for TopPush, and for TopMeanK with :math:`\tau < 1/2`, the useless zero vector has the lower
    objective. Two remarks on Table 3.1 of that work. For Grill it prints
    :math:`1.5 + 2\tau(1 - \tau)`, but the positives contribute :math:`1.5 - 2\tau` and the
    negatives :math:`2\tau^2`, hence :math:`f = 1.5 - 2\tau(1 - \tau)`. For Pat&Mat at (1, 0) the
    threshold holds for :math:`\beta \le \tau`, where no row is on the flat part of the hinge; for
    :math:`\tau \le \beta` it is :math:`t = 1 + 1/\beta - 2\sqrt{\tau/\beta}`.

    Examples
    --------
    >>> from toprank.datasets import make_outlier
    >>> X, y = make_outlier(100, random_state=0)
    >>> X.shape, X[-1].tolist(), int(y[-1])
    ((201, 2), [2.0, 0.0], 0)
    """
    require_count("n_per_class", n_per_class)
    rng = random_of(random_state)
    negatives = rng.uniform([-1, -1], [0, 1], size=(n_per_class, 2))
    positives = rng.uniform([0, -1], [1, 1], size=(n_per_class, 2))
    X = np.vstack([negatives, positives, [[2.0, 0.0]]])
    y = np.repeat([0, 1, 0], [n_per_class, n_per_class, 1])
    return X, y.astype(np.int64)


@documented(_TEXTS)
def make_randnet(
    n_samples: int = 1000, n_features: int = 50, *, n_hidden: int = 10, n_levels: int = 6, random_state: Any = None
) -> tuple[Floats, Ints, Floats]:
    r"""Ordered levels given by a random two-layer network.

    .. math:: f(x) = \tanh\bigl(v^\top \tanh(W x + b) + c\bigr)

    Inputs, weights and biases are independent and uniform on :math:`[-1, 1]`; the levels are bins
    of equal width of :math:`f`, see :func:`discretize`.

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 50
        Shape of X. The experiments use 1000 and 5000 rows.
    n_hidden : int, default=10
        Number of hidden units.
    {levels}

    Notes
    -----
    RandNet of RankNCG (Raykar, Duraiswami and Krishnapuram 2008, section 6.1) follows the artificial data of RankNet
    (Burges et al. 2005): inputs and weights uniform on [-1, 1], ten hidden units, six bins. The RankNCG paper does not
    name the activations, and tanh is a choice made here. The output unit does not change the order but the sizes of the
    bins: with a linear output the published pair counts (195907 for 1000 rows, 6269910 for 5000) lie outside what 80
    draws gave; with tanh they lie inside, as they do with logistic units in both layers.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.datasets import make_randnet
    >>> X, y, scores = make_randnet(random_state=0)
    >>> X.shape, np.unique(y).tolist()
    ((1000, 50), [0, 1, 2, 3, 4, 5])
    >>> bool(np.all(np.diff(y[np.argsort(scores)]) >= 0))
    True
    """
    for name, value in (("n_samples", n_samples), ("n_features", n_features), ("n_hidden", n_hidden)):
        require_count(name, value)
    require_count("n_levels", n_levels, least=2)
    rng = random_of(random_state)
    X = rng.uniform(-1, 1, size=(n_samples, n_features))
    W = rng.uniform(-1, 1, size=(n_features, n_hidden))
    b, v = rng.uniform(-1, 1, size=(2, n_hidden))
    scores = np.tanh(np.tanh(X @ W + b) @ v + rng.uniform(-1, 1))
    return X, discretize(scores, n_levels), scores


@documented(_TEXTS)
def make_randpoly(
    n_samples: int = 1000, n_features: int = 50, *, n_levels: int = 6, random_state: Any = None
) -> tuple[Floats, Ints, Floats]:
    r"""Ordered levels given by a random polynomial of degree three.

    .. math:: f(x) = \tfrac13 \Bigl( S\bigl[u^\top x\bigr] + S\bigl[\sum_i x_i x_{p(i)}\bigr]
              + S\bigl[\sum_i x_i x_{q(i)} x_{r(i)}\bigr] \Bigr)

    Inputs and the vector u are independent and uniform on :math:`[-1, 1]`, the permutations p, q
    and r are random, and S scales a term to mean 0 and variance 1 over the rows. The levels are
    bins of equal width of :math:`f`, see :func:`discretize`.

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 50
        Shape of X. The experiments use 1000 and 5000 rows.
    {levels}

    Notes
    -----
    RandPoly of RankNCG (Raykar, Duraiswami and Krishnapuram 2008, section 6.1) follows the
    artificial data of RankNet (Burges et al. 2005), whose second ranking function is this mean of
    a linear, a quadratic and a cubic term. The published pair counts (225131 for 1000 rows,
    5367241 for 5000) lie within what 60 draws gave with bins of equal width.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank.datasets import make_randpoly
    >>> X, y, scores = make_randpoly(random_state=0)
    >>> X.shape, np.unique(y).tolist()
    ((1000, 50), [0, 1, 2, 3, 4, 5])
    """
    require_count("n_samples", n_samples, least=2)
    require_count("n_features", n_features)
    require_count("n_levels", n_levels, least=2)
    rng = random_of(random_state)
    X = rng.uniform(-1, 1, size=(n_samples, n_features))
    u = rng.uniform(-1, 1, size=n_features)
    p, q, r = (rng.permutation(n_features) for _ in range(3))
    terms = np.stack([X @ u, (X * X[:, p]).sum(axis=1), (X * X[:, q] * X[:, r]).sum(axis=1)])
    centred = terms - terms.mean(axis=1, keepdims=True)
    scores = (centred / centred.std(axis=1, keepdims=True)).mean(axis=0)
    return X, discretize(scores, n_levels), scores


def make_imbalanced(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    positive_share: float = 0.05,
    separation: float = 2.0,
    condition: float = 1.0,
    random_state: Any = None,
) -> tuple[Floats, Ints, Floats]:
    r"""Two Gaussians with the same covariance, whose best scoring direction is known.

    Negatives are :math:`N(0, D^2)` and positives :math:`N(\delta D u, D^2)`, with a random unit
    vector u, the separation :math:`\delta` and a diagonal D. By the Neyman-Pearson lemma no score
    is better, at any false-positive rate, than :math:`w^\top x` with :math:`w = D^{-1} u`: it is
    :math:`N(0, 1)` for negatives and :math:`N(\delta, 1)` for positives. Its true-positive rate is
    :func:`optimal_tpr`.

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 10
        Shape of X.
    positive_share : float, default=0.05
        Share of positives; their number is rounded, but each class gets at least one row.
    separation : float, default=2.0
        Distance :math:`\delta \ge 0` of the two means in standard deviations.
    condition : float, default=1.0
        Condition number of the covariance :math:`D^2`, at least 1. Above 1 the difference of the
        means is no longer the best direction.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows in random order.
    y : ndarray of int64 of shape (n_samples,)
        1 for positives, 0 for negatives.
    direction : ndarray of shape (n_features,)
        The optimal w.

    Examples
    --------
    >>> from toprank.datasets import make_imbalanced, optimal_tpr
    >>> X, y, direction = make_imbalanced(2000, positive_share=0.01, separation=3, random_state=0)
    >>> X.shape, int(y.sum())
    ((2000, 10), 20)
    >>> round(float(optimal_tpr(0.01, separation=3)), 4)
    0.7497
    """
    require_count("n_samples", n_samples, least=2)
    require_count("n_features", n_features)
    require_number("separation", separation, least=0)
    require_number("condition", condition, least=1)
    require_share("positive_share", positive_share)
    rng = random_of(random_state)
    n_positive = min(max(round(n_samples * positive_share), 1), n_samples - 1)
    y = rng.permutation(np.arange(n_samples) < n_positive).astype(np.int64)
    u = rng.standard_normal(n_features)
    u /= np.linalg.norm(u)
    scale = np.geomspace(1, condition**-0.5, n_features)
    standard = rng.standard_normal((n_samples, n_features)) + separation * np.outer(y, u)
    return standard * scale, y, u / scale


def optimal_tpr(max_fpr: ArrayLike, *, separation: float) -> Any:
    r"""Largest true-positive rate at a false-positive rate, for :func:`make_imbalanced`.

    .. math:: \text{TPR}(\tau) = \Phi\bigl(\delta + \Phi^{-1}(\tau)\bigr)

    It is a property of the distribution: a sample, above all one with few rows among its top
    :math:`\tau` negatives, scatters around it.

    Parameters
    ----------
    max_fpr : float or array-like
        False-positive rate :math:`\tau`, in [0, 1].
    separation : float
        The :math:`\delta` that the data were made with.

    Returns
    -------
    float or ndarray
        Of the shape of `max_fpr`.

    Examples
    --------
    >>> from toprank.datasets import optimal_tpr
    >>> optimal_tpr([0.0, 0.5, 1.0], separation=0.0)
    array([0. , 0.5, 1. ])
    """
    from scipy.special import ndtr, ndtri

    require_number("separation", separation, least=0)
    rates = np.asarray(max_fpr, dtype=np.float64)
    if not np.all((rates >= 0) & (rates <= 1)):
        raise ValueError(f"max_fpr must be in [0, 1], got {rates}.")
    return ndtr(separation + ndtri(rates))


def random_of(random_state: Any) -> RandomState:
    from sklearn.utils import check_random_state

    rng: RandomState = check_random_state(random_state)
    return rng
