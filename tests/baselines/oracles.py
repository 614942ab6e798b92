"""Optima of the baselines by cvxpy and by enumeration: nothing here is fast, and nothing is shared with the package."""

from itertools import permutations, product

import cvxpy as cp
import numpy as np


def two_classes(n=40, d=3, seed=0, apart=0.8):
    """Rows of two classes that overlap, with weights."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < 0.4 * n).astype(int)
    X = rng.normal(size=(n, d)) + apart * y[:, None] * np.arange(1, d + 1) / d
    order = rng.permutation(n)
    return X[order], y[order], rng.integers(1, 4, n).astype(float)


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


def largest_plane(planes, X, alpha):
    """The least penalised maximum of planes (constant, slopes by the scores)."""
    w, level = cp.Variable(X.shape[1]), cp.Variable(nonneg=True)
    constants, slopes = (np.array(part) for part in zip(*planes, strict=True))
    return solved(alpha / 2 * cp.sum_squares(w) + level, [constants + (slopes @ X) @ w <= level])


def partial_auc_planes(y, before, until):
    """A plane for each list of negatives up to the end of the range, and each place of each positive in it."""
    positives, negatives, planes = np.flatnonzero(y == 1), np.flatnonzero(y == 0), []
    for listed in permutations(negatives, until):
        for places in product(range(until + 1), repeat=len(positives)):
            constant, slopes = 0.0, np.zeros(len(y))
            for i, place in zip(positives, places, strict=True):
                constant += max(place - before, 0)
                slopes[list(listed[:place])] += 1
                slopes[i] -= place
            scale = len(positives) * (until - before)
            planes.append((constant / scale, slopes / scale))
    return planes


def average_precision_planes(y):
    """A plane for each ranking of all rows."""
    planes, n_pairs = [], np.sum(y == 1) * np.sum(y == 0)
    for ranking in permutations(range(len(y))):
        labels = y[list(ranking)]
        precision = np.mean(np.cumsum(labels)[labels == 1] / (np.flatnonzero(labels) + 1))
        slopes = np.zeros(len(y))
        for place, row in enumerate(ranking):
            if y[row] == 0:
                below = [other for other in ranking[place:] if y[other] == 1]
                slopes[below] -= 2 / n_pairs
                slopes[row] += 2 * len(below) / n_pairs
        planes.append((1 - precision, slopes))
    return planes
