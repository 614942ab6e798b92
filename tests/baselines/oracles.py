"""Optima of the baselines by cvxpy and by enumeration: nothing here is fast, and nothing is shared with the package."""

import cvxpy as cp
import numpy as np


def two_classes(n=40, d=3, seed=0, share=0.4, dtype=float):
    """Rows of two classes that overlap, with weights."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < share * n).astype(int)
    X = rng.normal(size=(n, d)) + 0.8 * y[:, None] * np.arange(1, d + 1) / d
    order = rng.permutation(n)
    return X[order].astype(dtype), y[order], rng.integers(1, 4, n).astype(float)


def solved(objective, constraints=()):
    """The least value of an objective of cvxpy."""
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def pair_optimum(differences, weights, alpha, power):
    """The least penalised mean of the hinge loss, to a power, over explicit differences of rows."""
    w = cp.Variable(differences.shape[1])
    losses = cp.pos(1 - differences @ w)
    losses = cp.square(losses) if power == 2 else losses
    return solved(alpha / 2 * cp.sum_squares(w) + cp.sum(cp.multiply(weights / weights.sum(), losses)))
