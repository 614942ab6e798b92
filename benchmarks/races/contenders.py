"""Those that run: what is prepared for a problem, what is timed, and how that which was found is read."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from benchmarks.kernel_models import exact_factor
from benchmarks.races.problems import PairProblem, Point, TopProblem
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

# What all are asked for, so that limits of iterations stop them and not tolerances.
SMALLEST = 1e-9


class Toprank:
    """The estimator of the problem, with a solver."""

    def __init__(self, problem: TopProblem | PairProblem, **parameters: Any) -> None:
        self.problem = problem
        self.model = problem.model.set_params(tol=SMALLEST, **parameters)

    def run(self, limit: int):
        """Fit: this is timed."""
        return self.model.set_params(max_iter=limit).fit(self.problem.X, self.problem.y)

    def read(self, model) -> Point:
        """Scores of all rows, and what the certificate says."""
        if isinstance(self.problem, TopProblem) and self.problem.is_kernel:
            coefficients = model.dual_coef_.ravel()
            scores = self.problem.kernel_matrix[:, model.support_] @ coefficients
            squared_norm = float(coefficients @ scores[model.support_])
        else:
            w = model.coef_.ravel()
            scores, squared_norm = np.asarray(self.problem.X @ w), float(w @ w)
        gap = model.dual_gap_ if hasattr(model, "dual_gap_") else model.suboptimality_ / model.objective_
        passes = model.history_["passes"]  # none where the limit ends the search for a first point
        return Point(scores, squared_norm, float(gap), float(passes[-1]) if len(passes) else None, int(model.n_iter_))


class Clarabel:
    """An interior-point method for cones, through cvxpy, which makes the problem beforehand."""

    def __init__(self, problem: TopProblem) -> None:
        import cvxpy as cp
        from tests.exact import program

        thresholds = {"TopPush": {}, "TopPushK": {"k": 5}, "Pat&Mat": {"tau": 0.1, "beta": 1.0}}
        self.features = exact_factor(problem.kernel_matrix) if problem.is_kernel else problem.X
        weights, threshold = np.ones(len(problem.y)), thresholds[problem.formulation]
        self.program, self.w = program(self.features, problem.y, weights, problem.alpha, "quadratic", **threshold)
        self.data, self.chain, self.inverse = self.program.get_problem_data(
            cp.CLARABEL, solver_opts={"accept_unknown": True}
        )

    def run(self, limit: int):
        """Solve: this is timed."""
        options = {"max_iter": limit, "tol_gap_abs": SMALLEST, "tol_gap_rel": SMALLEST, "tol_feas": SMALLEST}
        return self.chain.solve_via_data(self.program, self.data, solver_opts=options)

    def read(self, found) -> Point:
        """The scores of its w; the threshold is taken anew, as its own may not be feasible yet."""
        self.program.unpack_results(found, self.chain, self.inverse)
        w = self.w.value
        return Point(self.features @ w, float(w @ w), n_iter=int(found.iterations))


class OnPairs:
    """A linear classifier of scikit-learn on the differences of all pairs, which are made beforehand."""

    def __init__(self, problem: PairProblem, is_lbfgs: bool = False) -> None:
        self.problem = problem
        common = {"C": 1 / (problem.alpha * len(problem.pairs[0])), "fit_intercept": False, "tol": SMALLEST}
        if problem.loss == "logistic":
            self.model = LogisticRegression(solver="lbfgs" if is_lbfgs else "liblinear", **common)
        else:
            self.model = LinearSVC(loss=problem.loss, dual=problem.loss == "hinge", random_state=0, **common)

    def run(self, limit: int):
        """Fit: this is timed."""
        return self.model.set_params(max_iter=limit).fit(*self.problem.differences)

    def read(self, model) -> Point:
        """The scores of all rows."""
        w = model.coef_.ravel()
        return Point(self.problem.X @ w, float(w @ w), n_iter=int(np.max(model.n_iter_)))


class SkglmOnPairs:
    """Solvers of skglm on the same differences: Newton steps for the logistic loss, the dual for the plain hinge."""

    def __init__(self, problem: PairProblem) -> None:
        self.problem = problem
        rows, self.signs = problem.differences
        self.rows = np.asfortranarray(rows)

    def run(self, limit: int):
        """Fit: this is timed."""
        from skglm import GeneralizedLinearEstimator
        from skglm import LinearSVC as DualSVC
        from skglm.datafits import Logistic
        from skglm.penalties import L1_plus_L2
        from skglm.solvers import ProxNewton

        if self.problem.loss == "logistic":
            solver = ProxNewton(max_iter=limit, tol=SMALLEST, fit_intercept=False)
            model = GeneralizedLinearEstimator(Logistic(), L1_plus_L2(self.problem.alpha, l1_ratio=0.0), solver)
        else:
            C = 1 / (self.problem.alpha * len(self.signs))
            model = DualSVC(C=C, max_iter=limit, tol=SMALLEST, fit_intercept=False)
        return model.fit(self.rows, self.signs)

    def read(self, model) -> Point:
        """The scores of all rows."""
        w = model.coef_.ravel()
        return Point(self.problem.X @ w, float(w @ w), n_iter=int(model.n_iter_))


class OtherProblem:
    """An established solver of another problem with the same rows and penalty, at its own tolerance."""

    def __init__(self, problem: TopProblem) -> None:
        C = 1 / (problem.alpha * np.count_nonzero(problem.y))
        self.problem = problem
        self.model = SVC(C=C, gamma=problem.gamma) if problem.is_kernel else LinearSVC(C=C, dual=False)

    def run(self, limit: int):
        """Fit: this is timed."""
        return self.model.fit(self.problem.X, self.problem.y)

    read = None


def solver(name: str, **more: Any) -> Callable[[Any], Toprank]:
    """A solver of toprank by its name."""
    return lambda problem: Toprank(problem, solver=name, **more)


class Entrant(NamedTuple):
    """What makes a contender of a problem, and its first limit of iterations: a number, or more by the rows."""

    make: Callable[[Any], Any]
    least: int = 1
    a_row: float = 0.0

    def first_limit(self, problem: TopProblem | PairProblem) -> int:
        """The first limit; one move of two multipliers among thousands shows nothing."""
        return max(self.least, int(self.a_row * len(problem.y)))


LINEAR = {
    "newton": Entrant(solver("newton")),
    "pairs": Entrant(solver("pairs"), a_row=1 / 8),
    "apg": Entrant(solver("apg"), least=10),
    "sgd": Entrant(solver("sgd", random_state=0)),
    "Clarabel": Entrant(Clarabel, least=4),
    "LIBLINEAR": Entrant(OtherProblem),
}
KERNEL = {
    "pairs": Entrant(solver("pairs"), a_row=1 / 8),
    "low-rank": Entrant(solver("low-rank"), least=3),
    "dual-cd": Entrant(solver("dual-cd", random_state=0), a_row=1.0),
    "Clarabel": Entrant(Clarabel, least=4),
    "SVC": Entrant(OtherProblem),
}
PAIRWISE = {
    "toprank": Entrant(Toprank),
    "ncg": Entrant(solver("ncg"), least=2),
    "ncg, erfc": Entrant(solver("ncg", summation="erfc"), least=2),
    "LIBLINEAR on pairs": Entrant(OnPairs),
    "lbfgs on pairs": Entrant(lambda problem: OnPairs(problem, is_lbfgs=True), least=2),
    "skglm on pairs": Entrant(SkglmOnPairs),
}
