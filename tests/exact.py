"""The optimum of a convex formulation by cvxpy and Clarabel: an independent, exact reference for small problems."""

import cvxpy as cp
import numpy as np


def loss(name, z):
    """The surrogate as an expression of cvxpy."""
    if name == "quadratic":
        return cp.square(cp.pos(1 + z))
    if name == "hinge":
        return cp.pos(1 + z)
    if name == "huber":  # the smallest u²/2 + v with u + v >= 3/2 + z, so a parabola up to slope 1, then a line
        u = cp.Variable(z.shape, nonneg=True)
        return cp.square(u) / 2 + cp.pos(1.5 + z - u)
    if name == "logistic":
        return cp.logistic(z) / np.log(2)
    return cp.exp(z)


def optimum(*problem, **threshold):
    """Least objective of a problem, see `minimum`."""
    return minimum(*problem, **threshold)[0]


def minimum(*problem, **threshold):
    """Least objective of a problem and w there, see `program`."""
    least, w = program(*problem, **threshold)
    least.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return least.value, w.value


def program(X, positive, weights, alpha, surrogate, *, k=None, share=None, tau=None, beta=None, over="negatives"):
    """The problem of cvxpy and its w; the threshold is a top-k mean (k, share or neither) or a surrogate quantile."""
    X = np.asarray(X, dtype=float)
    rows = ~positive if over == "negatives" else np.full(len(X), True)
    w, t = cp.Variable(X.shape[1]), cp.Variable()
    scores = X[rows] @ w
    row_weights = weights[rows]
    if tau is not None:
        above = loss(surrogate, beta * (scores - t))
        constraints = [cp.sum(cp.multiply(row_weights / row_weights.sum(), above)) <= tau]
    elif k is None and share is None:
        constraints = [scores <= t]
    else:
        k = share * row_weights.sum() if k is None else k
        level = cp.Variable()
        constraints = [level + cp.sum(cp.multiply(row_weights, cp.pos(scores - level))) / k <= t]
    shares = weights[positive] / weights[positive].sum()
    mean_loss = cp.sum(cp.multiply(shares, loss(surrogate, t - X[positive] @ w)))
    return cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + mean_loss), constraints), w
