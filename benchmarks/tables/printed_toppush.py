"""TopPush as its paper runs it: Algorithm 1 with its own rule to stop, and the last point in place of the best one."""

import numpy as np

from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import TopMean
from toprank.solvers.apg import solve_apg
from toprank.solvers.problem import Problem


class PrintedTopPush:
    """Accelerated gradients on the dual until g changes by less than ε, then w = (αᵀX⁺ − βᵀX⁻) / (λm).

    The test of a step is the usual one, as the printed one accepts almost anything. `n_iter_` is the number of
    iterations, `objective_` that of the best point on the way, and `collapsed_` says that this is w = 0.
    """

    def __init__(self, alpha=1.0, epsilon=1e-4, max_iter=500):
        self.alpha, self.epsilon, self.max_iter = alpha, epsilon, max_iter

    def fit(self, X, y):
        """Fit the model; y is 1 for positives."""
        quadratic = Formulation(get_surrogate("quadratic"), TopMean())
        problem = Problem(X, np.asarray(y) == 1, np.ones(len(y)), quadratic, self.alpha)
        found = solve_apg(problem, tol=self.epsilon, stop="objective", max_iter=self.max_iter)
        self.coef_ = problem.combine(problem.signed(found.state.y, found.state.p)) / self.alpha
        self.n_iter_, self.objective_, self.collapsed_ = found.n_iter, found.primal, not np.any(found.coef)
        return self

    def decision_function(self, X):
        """Scores."""
        return np.asarray(X @ self.coef_)
