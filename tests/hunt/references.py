"""What a case is judged by: its objective by plain NumPy, and points found by others.

Every value of the objective, at whatever point, is an upper bound of the optimum. So a lower bound that is above one of
them is false, however inexact the solver was that found the point.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit

import exact
from hunt.problems import Case
from toprank import PatMat, TopMeanK, TopPushK, WMWRanker

Wide = np.longdouble


@dataclass
class Objective:
    """The objective of a case as a function of the scores and of ‖w‖²."""

    case: Case
    products: Any
    """Inner products of the rows in the space of the model, or the rows themselves if it is linear."""
    linear: bool

    def __call__(self, coefficients: np.ndarray) -> float:
        """The objective at w, or at Σ c φ(x)."""
        c = coefficients.astype(Wide)
        scores = self.products @ c
        squared_norm = c @ c if self.linear else c @ scores
        loss = _pair_loss if isinstance(self.case.estimator, WMWRanker) else _top_loss
        return float(Wide(self.case.estimator.alpha) / 2 * squared_norm + loss(self.case, scores))


def objective_of(case: Case, fitted: Any) -> Objective:
    """The objective of the problem that a fitted model solved."""
    if kernel_matrix_is_needed(fitted):
        return Objective(case, kernel_matrix(case.dense, fitted._kernel), linear=False)
    rows = case.dense
    if hasattr(fitted, "feature_map_"):
        rows = np.asarray(fitted.feature_map_(case.X), dtype=np.float64)
    return Objective(case, rows.astype(Wide), linear=True)


def kernel_matrix_is_needed(fitted: Any) -> bool:
    """Whether the model is a sum over rows."""
    return fitted.kernel != "linear" and not hasattr(fitted, "feature_map_")


def kernel_matrix(rows: np.ndarray, kernel: Any) -> np.ndarray:
    """The kernel of all rows, from exact differences or products."""
    X = rows.astype(Wide)
    if kernel.name == "rbf":
        squared = np.array([((X - row) ** 2).sum(axis=1) for row in X])
        return np.exp(-Wide(kernel.gamma) * squared)
    return (Wide(kernel.gamma) * (X @ X.T) + Wide(kernel.coef0)) ** int(kernel.degree)


def coefficients_of(case: Case, fitted: Any) -> np.ndarray:
    """What `Objective` takes, of a fitted model."""
    if not kernel_matrix_is_needed(fitted):
        return np.asarray(fitted.coef_[0])
    c = np.zeros(len(case.y))
    if isinstance(fitted, WMWRanker):
        kept = np.flatnonzero(weights_of(case) > 0)
        c[kept] = fitted.dual_coef_
    else:
        c[fitted.support_] = fitted.dual_coef_[0]
    return c


def point_of_reference(case: Case, objective: Objective) -> np.ndarray | None:
    """Coefficients found by cvxpy, or for the pairwise ranker by SciPy; None if that failed."""
    products = objective.products.astype(np.float64)
    features, back = products, None
    if not objective.linear:
        values, vectors = np.linalg.eigh(products)
        used = values > 1e-14 * values[-1]
        root = np.sqrt(values[used])
        features, back = vectors[:, used] * root, vectors[:, used] / root
    w = _pairwise_minimum(case, features) if isinstance(case.estimator, WMWRanker) else _top_minimum(case, features)
    if w is None or not np.isfinite(w).all():
        return None
    return w if back is None else back @ w


def weights_of(case: Case) -> np.ndarray:
    """The weights, ones if there are none."""
    return np.ones(len(case.y)) if case.weights is None else case.weights


def _threshold(case: Case) -> dict[str, Any]:
    """The threshold of the estimator, as `exact.minimum` takes it."""
    estimator = case.estimator
    over = "all" if isinstance(estimator, TopMeanK | PatMat) else "negatives"
    if hasattr(estimator, "beta"):
        return {"tau": estimator.tau, "beta": estimator.beta, "over": over}
    if hasattr(estimator, "tau"):
        return {"share": estimator.tau, "over": over}
    return {"k": estimator.k} if isinstance(estimator, TopPushK) else {}


def _top_minimum(case: Case, features: np.ndarray) -> np.ndarray | None:
    """By cvxpy, on centred features without rows that weigh nothing beside the others."""
    weights = weights_of(case)
    kept = weights > 1e-14 * weights.max()
    rows, positive = features[kept] - features[kept].mean(axis=0), case.y[kept]
    if positive.all() or not positive.any():
        return None
    if not rows.any():  # cvxpy fails on a product with zeros only
        return np.zeros(rows.shape[1])
    try:
        return exact.minimum(
            rows, positive, weights[kept], case.estimator.alpha, case.estimator.surrogate, **_threshold(case)
        )[1]
    except (exact.cp.SolverError, ValueError, ArithmeticError, AttributeError):  # the last one is cvxpy's
        return None


def _top_loss(case: Case, scores: np.ndarray) -> Any:
    weights = weights_of(case).astype(Wide)
    threshold = _threshold(case)
    rows = (weights > 0) & (~case.y | (threshold.get("over") == "all"))
    s, v = scores[rows], weights[rows]
    if "tau" in threshold:
        t = _quantile(s, v / v.sum(), case.estimator.surrogate, threshold["tau"], threshold["beta"])
    else:
        k = threshold["share"] * v.sum() if "share" in threshold else threshold.get("k")
        t = s.max() if k is None else _top_mean(s, v, k)
    positives = case.y & (weights > 0)
    share = weights[positives] / weights[positives].sum()
    return share @ loss(case.estimator.surrogate, t - scores[positives])


def _top_mean(s: np.ndarray, v: np.ndarray, k: Any) -> Any:
    """The mean of the k largest, the last one in part."""
    order = np.argsort(-s)
    before = np.concatenate([[0], np.cumsum(v[order])[:-1]])
    taken = np.clip(k - before, 0, v[order])
    return taken @ s[order] / taken.sum()


def _quantile(s: np.ndarray, share: np.ndarray, surrogate: str, tau: float, beta: float) -> Any:
    def excess(t: float) -> float:
        with np.errstate(over="ignore"):
            return float(np.minimum(share @ loss(surrogate, beta * (s - t)), 1e300)) - tau

    spread = float(s.max() - s.min()) + 1 / beta
    low, high = float(s.min()), float(s.max())
    while excess(low) < 0:
        low -= spread
        spread *= 2
    while excess(high) > 0:
        high += spread
        spread *= 2
    return brentq(excess, low, high, xtol=1e-300, rtol=1e-15, maxiter=500)


def loss(name: str, z: np.ndarray) -> np.ndarray:
    """The surrogate."""
    with np.errstate(over="ignore"):
        if name == "quadratic":
            return np.maximum(1 + z, 0) ** 2
        if name == "hinge":
            return np.maximum(1 + z, 0)
        if name == "huber":
            return np.where(z > -0.5, 1 + z, np.maximum(1.5 + z, 0) ** 2 / 2)
        if name == "logistic":
            return np.logaddexp(Wide(0), z) / np.log(Wide(2))
        return np.exp(z)


def _pairs(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    weights = weights_of(case)
    better, worse = np.flatnonzero(case.y), np.flatnonzero(~case.y)
    p = np.outer(weights[better], weights[worse]).ravel()
    pairs = np.array(np.meshgrid(better, worse, indexing="ij")).reshape(2, -1)
    return pairs[0], pairs[1], p / p.sum()


def _pair_loss(case: Case, scores: np.ndarray) -> Any:
    better, worse, p = _pairs(case)
    return p.astype(Wide) @ np.logaddexp(Wide(0), scores[worse] - scores[better])


def _pairwise_minimum(case: Case, features: np.ndarray) -> np.ndarray:
    better, worse, p = _pairs(case)
    D, alpha = features[better] - features[worse], case.estimator.alpha

    def value(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = D @ w
        return alpha / 2 * w @ w + p @ np.logaddexp(0, -z), alpha * w - D.T @ (p * expit(-z))

    def hessian(w: np.ndarray) -> np.ndarray:
        z = D @ w
        return alpha * np.eye(len(w)) + (D.T * (p * expit(z) * expit(-z))) @ D

    start = np.zeros(features.shape[1])
    return minimize(value, start, jac=True, hess=hessian, method="trust-exact", options={"gtol": 1e-9}).x
